//! What a session freezes when it opens: model route, system prompt, tools, workspace.
//!
//! Prompt and tool schemas stay byte for byte the same for the session's life, whoever continues it
//! and after however many restarts (spec 20 §4).

use std::path::{Path, PathBuf};
use std::sync::Arc;

use hermes_context::{
    ModelSwitch, PromptExtras, PromptInputs, PromptParts, ReadCheck, Restore, build_prompt, restore,
    switch_model,
};
use hermes_core::{Instant, Principal, SessionId, SessionInfo, SessionOptions, TurnOptions};
use hermes_providers::{PrefixCache, Route, RouteChoice, ToolList};
use hermes_state::{NewSession, StoredSession};
use hermes_tools::{
    ResultLimits, SessionTools, ToolSettings, ToolsetChoice, ToolsetSettings, Workspace, WorkspaceInput,
};
use tracing::{info, warn};

use crate::api::EngineError;
use crate::session::git::GitFacts;
use crate::shared::Shared;

/// The surface of a session that names none.
const DEFAULT_PLATFORM: &str = "cli";
/// Surfaces that ask once and do not listen any more.
const NEVER_WOKEN: [&str; 4] = ["cron", "webhook", "api_server", "api-server"];
/// The provider that stands in while no model is configured (design §8).
const OFFLINE: &str = "offline";

/// Frozen facts of a live session, and the call state that lives as long.
#[derive(Debug)]
pub(crate) struct SessionFacts {
    pub(crate) id: SessionId,
    pub(crate) title: Option<String>,
    pub(crate) route: Route,
    pub(crate) system_prompt: Arc<str>,
    pub(crate) tools: Arc<SessionTools>,
    pub(crate) tool_list: ToolList,
    pub(crate) workspace: Arc<Workspace>,
    /// The surface: `cli`, `telegram`, `cron`, …
    pub(crate) platform: Arc<str>,
    pub(crate) limits: ResultLimits,
    /// What was sent so far, serialised.
    pub(crate) prefix: PrefixCache,
    /// Off once the provider refused to stream.
    pub(crate) streaming: bool,
    /// The row to create with the first turn; `None` once it exists.
    pub(crate) unsaved: Option<NewSession>,
    /// The stored prompt named another model and was rebuilt.
    pub(crate) prompt_changed: bool,
    /// The stored session had no tools frozen, so they were chosen now.
    pub(crate) tools_changed: bool,
    cwd: PathBuf,
}

/// Facts, and what the user should know about them.
#[derive(Debug)]
pub(crate) struct Opened {
    pub(crate) facts: SessionFacts,
    pub(crate) warnings: Vec<String>,
}

impl SessionFacts {
    /// Whether a notice that comes after a turn of this kind can begin another one (spec 40 §6.2).
    pub(crate) fn wakeable(&self, principal: &Principal, options: &TurnOptions) -> bool {
        let once = matches!(principal, Principal::Cron { .. } | Principal::Webhook { .. });
        !options.one_shot && !once && !NEVER_WOKEN.contains(&&*self.platform)
    }

    pub(crate) fn info(&self) -> SessionInfo {
        SessionInfo {
            model: self.route.model.clone(),
            provider: self.route.provider.clone(),
            title: self.title.clone(),
            cwd: Some(self.cwd.display().to_string()),
            tools: self.tools.names().to_vec(),
            running: false,
            yolo: false,
        }
    }

    /// Facts of a new session. Reads project files, so it runs off the async threads.
    pub(crate) fn create(
        shared: &Shared,
        options: &SessionOptions,
        title: Option<String>,
    ) -> Result<Opened, EngineError> {
        let deps = &shared.deps;
        let now = deps.clock.now();
        let id = SessionId::mint(&deps.local.stamp(now));
        let platform = platform_of(options);
        let mut warnings = Vec::new();
        let route = shared
            .route(&RouteChoice { provider: options.provider.as_deref(), model: options.model.as_deref() })?;
        let (cwd, cwd_is_fallback) = working_directory(shared, options.cwd.as_deref())?;
        let tools = choose_tools(shared, options, &platform);
        warnings.extend(tools.warnings().iter().cloned());
        let prompt =
            Renderer { shared, route: &route, tools: &tools, platform: &platform, cwd: &cwd, began: now }
                .render(options.skip_context, cwd_is_fallback, &mut warnings);
        let git = GitFacts::of(&cwd);
        let unsaved = NewSession {
            id: id.clone(),
            source: options.source.clone().unwrap_or_else(|| platform.clone()),
            platform: Some(platform.clone()),
            user_id: None,
            model: route.model.clone(),
            provider: route.provider.clone(),
            base_url: route.shown_address().to_owned(),
            system_prompt: prompt.clone(),
            tool_names: tools.names().to_vec(),
            tool_schemas: tools.json().to_string(),
            parent: None,
            cwd: Some(cwd.display().to_string()),
            git_branch: git.branch,
            git_repo_root: git.root.map(|root| root.display().to_string()),
            title: title.clone(),
            started_at: now,
            profile_name: deps.home.profile().to_string(),
            model_config: None,
        };
        let facts = Self::assemble(shared, id, title, route, prompt, tools, cwd, &platform, options);
        Ok(Opened { facts: Self { unsaved: Some(unsaved), ..facts }, warnings })
    }

    /// Facts of a stored session, as they were frozen.
    pub(crate) fn reopen(
        shared: &Shared,
        stored: StoredSession,
        options: &SessionOptions,
    ) -> Result<Opened, EngineError> {
        let mut warnings = Vec::new();
        let route = stored_route(shared, &stored, options, &mut warnings)?;
        let cwd = stored_directory(shared, &stored, options, &mut warnings)?;
        let platform = stored.platform.clone().unwrap_or_else(|| platform_of(options));
        let (tools, tools_are_new) = match frozen_tools(&stored) {
            Some(tools) => (tools, false),
            None => (choose_tools(shared, options, &platform), true),
        };
        let renderer = Renderer {
            shared,
            route: &route,
            tools: &tools,
            platform: &platform,
            cwd: &cwd,
            began: stored.started_at,
        };
        let state = restore(stored.system_prompt.as_deref(), &route.model, &route.provider);
        let (prompt, prompt_changed) = match (state, stored.system_prompt.clone()) {
            (Restore::Present, Some(prompt)) => (prompt, false),
            (Restore::StaleRuntime, Some(prompt)) => {
                info!(session = %stored.id, model = %route.model, "the session goes on with another model");
                let switched = renderer.switch(&prompt);
                (
                    switched.unwrap_or_else(|| renderer.render(options.skip_context, false, &mut warnings)),
                    true,
                )
            }
            (state, _) => {
                warn!(session = %stored.id, ?state, "the session has no usable prompt; rendering one");
                (renderer.render(options.skip_context, false, &mut warnings), true)
            }
        };
        if tools_are_new {
            info!(session = %stored.id, "the session has no frozen tools; choosing them now");
        }
        let mut facts =
            Self::assemble(shared, stored.id, stored.title, route, prompt, tools, cwd, &platform, options);
        facts.prompt_changed = prompt_changed;
        facts.tools_changed = tools_are_new;
        Ok(Opened { facts, warnings })
    }

    #[expect(clippy::too_many_arguments, reason = "the two ways to open a session meet here, once")]
    fn assemble(
        shared: &Shared,
        id: SessionId,
        title: Option<String>,
        route: Route,
        prompt: String,
        tools: SessionTools,
        cwd: PathBuf,
        platform: &str,
        options: &SessionOptions,
    ) -> Self {
        Self {
            workspace: Arc::new(Workspace::new(WorkspaceInput {
                session_id: id.clone(),
                cwd: cwd.clone(),
                user_home: Some(shared.deps.machine.user_home.clone()),
                client_env: options.client_env.clone(),
            })),
            platform: platform.into(),
            limits: ResultLimits::for_window(route.context_window),
            tool_list: ToolList::frozen(tools.schemas(), tools.json()),
            prefix: PrefixCache::default(),
            streaming: true,
            unsaved: None,
            prompt_changed: false,
            tools_changed: false,
            system_prompt: prompt.into(),
            tools: Arc::new(tools),
            id,
            title,
            route,
            cwd,
        }
    }
}

/// Renders a system prompt from a session's choices.
struct Renderer<'a> {
    shared: &'a Shared,
    route: &'a Route,
    tools: &'a SessionTools,
    platform: &'a str,
    cwd: &'a Path,
    /// When the session began: its date stands in the prompt.
    began: Instant,
}

impl Renderer<'_> {
    fn render(&self, skip_context: bool, cwd_is_fallback: bool, notices: &mut Vec<String>) -> String {
        let deps = &self.shared.deps;
        let built = build_prompt(&PromptInputs {
            home: &deps.home,
            cwd: self.cwd,
            cwd_is_fallback,
            platform: self.platform,
            model: &self.route.model,
            provider: &self.route.provider,
            window: self.route.context_window,
            tool_names: self.tools.names(),
            settings: &self.shared.section(""),
            parts: &PromptParts::default(),
            now: &deps.local.date(self.began),
            machine: &deps.machine,
            skip_context,
            system_message: None,
            extra: &PromptExtras { may_read: Some(self.read_check()), ..PromptExtras::default() },
        });
        notices.extend(built.notices);
        built.text
    }

    /// The stored prompt with only its model-dependent parts changed.
    fn switch(&self, stored: &str) -> Option<String> {
        switch_model(
            stored,
            &ModelSwitch {
                model: &self.route.model,
                provider: &self.route.provider,
                tool_names: self.tools.names(),
                settings: &self.shared.section("agent"),
            },
        )
    }

    /// A project file that links to a secret, or to anything outside the project, is not the project's to show.
    fn read_check(&self) -> ReadCheck {
        let policy = self.shared.deps.dispatcher.services().policy.clone();
        let project = GitFacts::of(self.cwd).root.unwrap_or_else(|| self.cwd.to_path_buf());
        Arc::new(move |path| {
            policy.paths().check_read(path).map_err(|refusal| refusal.to_string())?;
            let target = std::fs::canonicalize(path).map_err(|error| error.to_string())?;
            let inside = std::fs::canonicalize(&project).is_ok_and(|project| target.starts_with(project));
            if inside { Ok(()) } else { Err(format!("it leads out of the project, to {}", target.display())) }
        })
    }
}

fn choose_tools(shared: &Shared, options: &SessionOptions, platform: &str) -> SessionTools {
    let settings = shared.deps.settings.borrow().clone();
    let choice = ToolsetChoice {
        explicit: options.toolsets.as_deref(),
        platform,
        settings: &ToolsetSettings::from_settings(&settings),
    };
    shared.deps.dispatcher.registry().open_session(&choice, &ToolSettings::from_settings(&settings))
}

/// The tools that a stored session was opened with; `None` for the original's rows, which have no schemas.
fn frozen_tools(stored: &StoredSession) -> Option<SessionTools> {
    let (names, json) = (stored.tool_names.clone()?, stored.tool_schemas.as_deref()?);
    match SessionTools::restore(names, json) {
        Ok(tools) => Some(tools),
        Err(error) => {
            warn!(session = %stored.id, %error, "choosing the session's tools anew");
            None
        }
    }
}

fn platform_of(options: &SessionOptions) -> String {
    options.platform.as_deref().unwrap_or(DEFAULT_PLATFORM).trim().to_lowercase()
}

/// The session's directory, and whether nobody chose it.
fn working_directory(shared: &Shared, asked: Option<&Path>) -> Result<(PathBuf, bool), EngineError> {
    let Some(asked) = asked else {
        return Ok((shared.deps.machine.user_home.clone(), true));
    };
    if !asked.is_absolute() {
        let reason = format!("{} is not an absolute path", asked.display());
        return Err(EngineError::Invalid { field: "cwd", reason });
    }
    match std::fs::canonicalize(asked) {
        Ok(path) if path.is_dir() => Ok((path, false)),
        Ok(path) => {
            let reason = format!("{} is not a directory", path.display());
            Err(EngineError::Invalid { field: "cwd", reason })
        }
        Err(error) => {
            let reason = format!("{} cannot be entered: {error}", asked.display());
            Err(EngineError::Invalid { field: "cwd", reason })
        }
    }
}

/// The stored directory, or its nearest parent that still exists.
fn stored_directory(
    shared: &Shared,
    stored: &StoredSession,
    options: &SessionOptions,
    warnings: &mut Vec<String>,
) -> Result<PathBuf, EngineError> {
    let Some(recorded) = stored.cwd.as_deref().map(Path::new).filter(|path| path.is_absolute()) else {
        return Ok(working_directory(shared, options.cwd.as_deref())?.0);
    };
    if recorded.is_dir() {
        return Ok(recorded.to_path_buf());
    }
    let nearest = recorded.ancestors().find(|path| path.is_dir()).unwrap_or(Path::new("/")).to_path_buf();
    warnings.push(format!(
        "The session's directory {} is gone; it goes on in {}.",
        recorded.display(),
        nearest.display()
    ));
    Ok(nearest)
}

/// The model that a stored session goes on with: an explicit choice, else its own, else the settings'.
fn stored_route(
    shared: &Shared,
    stored: &StoredSession,
    options: &SessionOptions,
    warnings: &mut Vec<String>,
) -> Result<Route, EngineError> {
    let explicit = RouteChoice { provider: options.provider.as_deref(), model: options.model.as_deref() };
    let own_provider = stored.provider.as_deref().filter(|name| !name.is_empty() && *name != OFFLINE);
    let own_model = stored.model.as_deref().filter(|name| !name.is_empty());
    let (Some(provider), Some(model)) = (own_provider, own_model) else {
        return Ok(shared.route(&explicit)?);
    };
    if explicit.provider.is_some() || explicit.model.is_some() {
        return Ok(shared.route(&explicit)?);
    }
    match shared.route(&RouteChoice { provider: Some(provider), model: Some(model) }) {
        Ok(route) => Ok(route),
        Err(error) => {
            let route = shared.route(&explicit)?;
            warnings.push(format!(
                "The session's model {model} ({provider}) is not available any more ({error}); it goes on with {} ({}).",
                route.model, route.provider
            ));
            Ok(route)
        }
    }
}
