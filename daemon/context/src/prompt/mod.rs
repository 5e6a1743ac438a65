//! The system prompt: three tiers in the order stable, context, volatile (spec 20 §2).
//!
//! It is built once for a session, stored, and replayed byte for byte. Equal inputs give equal bytes: nothing here
//! reads a clock, and every list has an order. Guidance about a tool that the session does not have is never in it.

mod environment;
mod model_blocks;
mod platform;
mod restore;
mod soul;
mod volatile;

use std::fmt;
use std::path::Path;

use hermes_config::Home;

pub use environment::MachineFacts;
pub use restore::{ModelSwitch, Restore, restore, switch_model};
pub use volatile::LocalDate;

use crate::project::{
    FileReport, FileState, Project, ProjectInput, ReadCheck, context_file_cap, load, one_line,
};
use crate::prompts::{self, fill};
use crate::settings::ContextSettings;
use crate::steer::{STEER_CLOSE, STEER_OPEN};
use soul::Soul;

/// Tools of which one must be there for the skills index to be of use.
const SKILL_TOOLS: [&str; 3] = ["skills_list", "skill_view", "skill_manage"];
/// Surfaces whose fallback directory is where the user's own shell stands.
const SHELL_SURFACES: [&str; 2] = ["cli", "tui"];
/// A platform on which nobody can write while the model works.
const UNATTENDED: &str = "cron";

/// Everything that a prompt is made of.
#[derive(Debug, Clone, Copy)]
pub struct PromptInputs<'a> {
    /// The session's own profile home.
    pub home: &'a Home,
    /// The session's working directory, absolute.
    pub cwd: &'a Path,
    /// Nobody chose the working directory.
    pub cwd_is_fallback: bool,
    pub platform: &'a str,
    pub model: &'a str,
    pub provider: &'a str,
    /// The model's context window in tokens.
    pub window: Option<u64>,
    /// The final tool list of the session.
    pub tool_names: &'a [String],
    pub settings: &'a ContextSettings,
    pub parts: &'a PromptParts,
    /// When the session began.
    pub now: &'a LocalDate,
    pub machine: &'a MachineFacts,
    /// Leaves out the project's files and the owner's persona (delegated children).
    pub skip_context: bool,
    /// A text of the caller's for the context tier.
    pub system_message: Option<&'a str>,
    pub extra: &'a PromptExtras,
}

/// Rarer inputs; the default asks for none of them.
#[derive(Clone, Default)]
pub struct PromptExtras {
    /// The product's own install or source tree: project files in it are not taken for the user's.
    pub install_dir: Option<std::path::PathBuf>,
    /// Loads the owner's persona although `skip_context` is set (scheduled runs).
    pub load_soul: bool,
    /// Names the session in the prompt.
    pub session_id: Option<String>,
    /// Telegram renders rich messages (`platforms.telegram.extra.rich_messages`).
    pub telegram_rich: bool,
    /// The client is the terminal pane of the desktop app.
    pub desktop_pane: bool,
    /// Whether a project file may be read at all, on its path with links resolved by the check itself.
    pub may_read: Option<ReadCheck>,
}

impl fmt::Debug for PromptExtras {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("PromptExtras")
            .field("install_dir", &self.install_dir)
            .field("load_soul", &self.load_soul)
            .field("session_id", &self.session_id)
            .field("telegram_rich", &self.telegram_rich)
            .field("desktop_pane", &self.desktop_pane)
            .field("may_read", &self.may_read.is_some())
            .finish()
    }
}

/// Blocks that other rooms render.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct PromptParts {
    /// Guidance bound to tools that are present, as one block.
    pub tool_guidance: Option<String>,
    /// The index of skills; used only beside a skill tool.
    pub skills_index: Option<String>,
    /// The snapshot of MEMORY.
    pub memory: Option<String>,
    /// The snapshot of USER.
    pub user: Option<String>,
}

/// A finished prompt.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct BuiltPrompt {
    pub text: String,
    /// BLAKE3 of the text, in hex.
    pub hash: String,
    /// Bytes of the stable tier at the beginning of the text: what sessions of one profile share.
    pub stable_len: usize,
    /// What the user of this session should see.
    pub notices: Vec<String>,
    /// Every file that entered the prompt or could have.
    pub files: Vec<FileReport>,
    /// SOUL.md did not exist and was written.
    pub soul_seeded: bool,
}

/// Builds the prompt of a session. Blocking: it reads SOUL.md and the project's files, and seeds a missing SOUL.md.
pub fn build_prompt(inputs: &PromptInputs<'_>) -> BuiltPrompt {
    let cap = context_file_cap(inputs.window, inputs.settings.context_file_max_chars);
    let soul = identity(inputs, cap);
    let project = project(inputs, cap);
    let platform = inputs.platform.trim().to_lowercase();

    let stable = join(stable_tier(inputs, &platform, &soul.text));
    let context =
        join([inputs.system_message.unwrap_or_default().to_owned(), project.block.unwrap_or_default()]);
    let volatile = join(volatile_tier(inputs, &platform));
    let stable_len = stable.len();
    let text = join([stable, context, volatile]);

    let mut notices = soul.notices;
    notices.extend(unknown_words(inputs.settings));
    notices.extend(project.notices);
    let files = soul.report.into_iter().chain(project.reports).collect();
    let hash = blake3::hash(text.as_bytes()).to_hex().to_string();
    tracing::info!(directory = %inputs.cwd.display(), bytes = text.len(), %hash, "system prompt built");
    BuiltPrompt { text, hash, stable_len, notices, files, soul_seeded: soul.seeded }
}

fn identity(inputs: &PromptInputs<'_>, cap: u64) -> Soul {
    if inputs.skip_context && !inputs.extra.load_soul {
        return Soul::builtin();
    }
    soul::load(&inputs.home.soul_md(), cap, inputs.has("read_file"))
}

fn project(inputs: &PromptInputs<'_>, cap: u64) -> Project {
    if inputs.skip_context {
        return suppressed(inputs.cwd, None);
    }
    if inputs.is_own_tree() {
        let notice = format!(
            "no project file was loaded: {} belongs to Hermes itself and nobody chose it as the working directory. \
             Set `terminal.cwd`",
            inputs.cwd.display()
        );
        return suppressed(inputs.cwd, Some(notice));
    }
    load(&ProjectInput {
        cwd: inputs.cwd,
        cap,
        read_file: inputs.has("read_file"),
        may_read: inputs.extra.may_read.as_ref(),
    })
}

fn suppressed(cwd: &Path, notice: Option<String>) -> Project {
    Project {
        block: None,
        reports: vec![FileReport { path: cwd.to_owned(), state: FileState::Suppressed, tokens: 0 }],
        notices: notice.into_iter().collect(),
    }
}

impl PromptInputs<'_> {
    fn has(&self, tool: &str) -> bool {
        self.tool_names.iter().any(|name| name == tool)
    }

    /// Whether the working directory is a mere fallback inside the product's own tree.
    fn is_own_tree(&self) -> bool {
        let Some(tree) = self.extra.install_dir.as_deref().filter(|_| self.cwd_is_fallback) else {
            return false;
        };
        let resolve = |path: &Path| path.canonicalize().unwrap_or_else(|_| path.to_owned());
        let platform = self.platform.trim().to_lowercase();
        !SHELL_SURFACES.contains(&platform.as_str()) && resolve(self.cwd).starts_with(resolve(tree))
    }
}

fn stable_tier(inputs: &PromptInputs<'_>, platform: &str, identity: &str) -> Vec<String> {
    let settings = &inputs.settings.agent;
    let any_tool = !inputs.tool_names.is_empty();
    let mut blocks = vec![identity.to_owned(), self_help(inputs)];
    if any_tool && settings.task_completion_guidance {
        blocks.push(prompts::FINISH.to_owned());
    }
    if any_tool && settings.parallel_tool_call_guidance {
        blocks.push(prompts::PARALLEL.to_owned());
    }
    blocks.extend(inputs.parts.tool_guidance.clone());
    if any_tool && platform != UNATTENDED {
        blocks.push(fill(prompts::STEERING, &[("open", STEER_OPEN), ("close", STEER_CLOSE)]));
    }
    blocks.extend(model_blocks::render(settings, inputs.tool_names, inputs.model, inputs.provider));
    let home = one_line(&inputs.home.dir().to_string_lossy());
    blocks.push(fill(prompts::PROFILE, &[("profile", inputs.home.profile().as_str()), ("home", &home)]));
    let facts = platform::HintFacts {
        tool_names: inputs.tool_names,
        telegram_rich: inputs.extra.telegram_rich,
        desktop_pane: inputs.extra.desktop_pane,
    };
    blocks.extend(platform::hint(platform, &facts, &inputs.settings.platform_hints));
    blocks
}

fn self_help(inputs: &PromptInputs<'_>) -> String {
    let parts = [
        Some(prompts::SELF_HELP),
        inputs.has("terminal").then_some(prompts::SELF_HELP_TERMINAL),
        inputs.has("skill_view").then_some(prompts::SELF_HELP_SKILL),
    ];
    parts.into_iter().flatten().collect::<Vec<_>>().join(" ")
}

fn volatile_tier(inputs: &PromptInputs<'_>, platform: &str) -> Vec<String> {
    let parts = inputs.parts;
    let skills = parts.skills_index.clone().filter(|_| SKILL_TOOLS.iter().any(|tool| inputs.has(tool)));
    let mut blocks: Vec<String> =
        [skills, parts.memory.clone(), parts.user.clone()].into_iter().flatten().collect();
    let session_id = inputs.extra.session_id.as_deref();
    blocks.push(volatile::trailer(inputs.now, session_id, inputs.model, inputs.provider, platform));
    let hint = &inputs.settings.agent.environment_hint;
    blocks.push(environment::render(inputs.machine, inputs.cwd, inputs.has("terminal"), hint));
    blocks
}

/// Joins trimmed blocks by one blank line; empty ones vanish.
fn join(blocks: impl IntoIterator<Item = String>) -> String {
    let blocks: Vec<String> =
        blocks.into_iter().map(|block| block.trim().to_owned()).filter(|block| !block.is_empty()).collect();
    blocks.join("\n\n")
}

/// One notice for each guidance switch that holds a word we do not know.
fn unknown_words(settings: &ContextSettings) -> Vec<String> {
    let agent = &settings.agent;
    [
        ("agent.tool_use_enforcement", &agent.tool_use_enforcement),
        ("agent.execution_guidance", &agent.execution_guidance),
    ]
    .into_iter()
    .filter_map(|(key, switch)| {
        let word = switch.unknown_word()?;
        Some(format!("`{key}` is `{word}`, which is none of auto, true, false or a list; `auto` is used"))
    })
    .collect()
}

#[cfg(test)]
mod tests;
