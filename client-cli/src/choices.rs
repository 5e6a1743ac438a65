//! What this call chooses for its session and turn, and from which layer (spec 80 §8.1, contract §8).
//!
//! The daemon knows the profile's own settings. What a client alone sees (its flags, its environment, the
//! project file in its directory, another config file) is resolved here and sent along.

use hermes_config::{
    CONFIG_VARIABLE, Loaded, Origin, PROJECT_FILE, Settings, Severity, env_mappings, is_truthy,
};
use hermes_proto::v1;

use crate::args::{ChatFlags, GlobalFlags};
use crate::profile;
use crate::surroundings::Surroundings;

/// Keys that travel with a session or a turn.
const MODEL: &str = "model.default";
const PROVIDER: &str = "model.provider";
const MAX_TURNS: &str = "agent.max_turns";
const SENT: [&str; 3] = [MODEL, PROVIDER, MAX_TURNS];
/// A key by which a project takes tools away; it cannot be sent, and must not be lost in silence.
const TAKEN_AWAY: &str = "agent.disabled_toolsets";
/// The variable that stands for `--yolo`; it is of a turn, not a setting.
const YOLO_VARIABLE: &str = "HERMES_YOLO_MODE";

/// What goes to the daemon. An absent value means: as the profile says.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub(crate) struct Choices {
    pub(crate) model: Option<String>,
    pub(crate) provider: Option<String>,
    pub(crate) max_turns: Option<u32>,
    pub(crate) toolsets: Option<Vec<String>>,
    pub(crate) yolo: bool,
    /// What the user should know about layers that could not be followed.
    pub(crate) notes: Vec<String>,
}

/// Whether a layer that only this client sees may set something, so that settings have to be loaded.
pub(crate) fn needs_settings(global: &GlobalFlags, around: &Surroundings) -> bool {
    let sets_something = |name: &str| around.variable(name).is_some();
    global.config.is_some()
        || sets_something(CONFIG_VARIABLE)
        || env_mappings().iter().any(|map| SENT.contains(&map.key) && sets_something(map.variable))
        || around.cwd.as_deref().is_some_and(|cwd| cwd.join(PROJECT_FILE).exists())
}

/// Merges the layers. `loaded` is absent when [`needs_settings`] said so. A resumed session keeps its
/// model unless a flag names another one: variables and project files speak of new sessions.
pub(crate) fn resolve(
    flags: &ChatFlags,
    global: &GlobalFlags,
    around: &Surroundings,
    loaded: Option<&Loaded>,
    resumes: bool,
) -> Choices {
    let mut choices = Choices {
        model: flags.model.clone(),
        provider: flags.provider.clone(),
        max_turns: flags.max_turns,
        toolsets: flags.toolsets.as_deref().map(split_list),
        yolo: flags.yolo
            || around.variable(YOLO_VARIABLE).and_then(|text| text.to_str()).is_some_and(is_truthy),
        notes: Vec::new(),
    };
    let Some(Loaded { settings, diagnostics, .. }) = loaded else { return choices };
    let layers = Layers { settings, config: profile::chosen_config(global, around) };

    if !resumes {
        // A model below a `--provider` flag was chosen for another provider, unless the caller's own
        // environment names it.
        if choices.model.is_none() {
            choices.model = layers.text(MODEL, flags.provider.is_some());
        }
        if choices.provider.is_none() {
            choices.provider = layers.text(PROVIDER, false);
        }
    }
    if choices.max_turns.is_none() {
        choices.max_turns = layers.number(MAX_TURNS);
    }
    choices.notes.extend(
        diagnostics
            .iter()
            .filter(|finding| finding.severity >= Severity::Warning && layers.is_ours(&finding.origin))
            .map(ToString::to_string),
    );
    if let Some(origin) = settings.origin(TAKEN_AWAY).filter(|origin| layers.is_ours(origin)) {
        choices.notes.push(format!(
            "{origin}: `{TAKEN_AWAY}` does not reach the daemon; set it in the profile's config.yaml"
        ));
    }
    choices
}

struct Layers<'a> {
    settings: &'a Settings,
    /// The file that stands in for the profile's config.yaml.
    config: Option<std::path::PathBuf>,
}

impl Layers<'_> {
    /// Whether only this client, not the daemon, sees this layer.
    fn is_ours(&self, origin: &Origin) -> bool {
        match origin {
            Origin::Env(_) | Origin::Project(..) => true,
            Origin::File(file, _) => self.config.as_ref() == Some(file),
            Origin::Flag | Origin::Default => false,
        }
    }

    fn text(&self, key: &str, environment_only: bool) -> Option<String> {
        let origin = self.settings.origin(key)?;
        let taken = if environment_only { matches!(origin, Origin::Env(_)) } else { self.is_ours(&origin) };
        let text = self.settings.get(key)?.as_str()?;
        (taken && !text.is_empty()).then(|| text.to_owned())
    }

    fn number(&self, key: &str) -> Option<u32> {
        let origin = self.settings.origin(key)?;
        let value = self.settings.get(key)?;
        // A variable's text is typed by the schema where that knows the key.
        let number = value.as_u64().or_else(|| value.as_str()?.parse().ok())?;
        u32::try_from(number).ok().filter(|number| *number > 0 && self.is_ours(&origin))
    }
}

fn split_list(text: &str) -> Vec<String> {
    text.split(',').map(str::trim).filter(|name| !name.is_empty()).map(str::to_owned).collect()
}

impl Choices {
    /// The options of a new session, or what a client brings to an old one.
    pub(crate) fn session_options(&self, flags: &ChatFlags, around: &Surroundings) -> v1::SessionOptions {
        let client_env = around.client_env();
        v1::SessionOptions {
            cwd: around.cwd.as_ref().and_then(|cwd| cwd.to_str()).map(str::to_owned),
            client_env: client_env.iter().map(|(name, value)| (name.to_owned(), value.to_owned())).collect(),
            platform: Some("cli".into()),
            model: self.model.clone(),
            provider: self.provider.clone(),
            toolsets: self.toolsets.clone().map(|items| v1::StringList { items }),
            source: flags.source.clone(),
            ..v1::SessionOptions::default()
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use hermes_config::{Home, LoadInput};
    use pretty_assertions::assert_eq;

    struct Scene {
        dir: tempfile::TempDir,
    }

    impl Scene {
        /// A home with this config.yaml, and a working directory with this project file.
        fn new(config: &str, project: &str) -> Self {
            let dir = tempfile::tempdir().unwrap();
            for folder in ["home", "work"] {
                std::fs::create_dir(dir.path().join(folder)).unwrap();
            }
            std::fs::write(dir.path().join("home/config.yaml"), config).unwrap();
            if !project.is_empty() {
                std::fs::write(dir.path().join("work").join(PROJECT_FILE), project).unwrap();
            }
            Self { dir }
        }

        fn around(&self, variables: &[(&str, &str)]) -> Surroundings {
            Surroundings {
                cwd: Some(self.dir.path().join("work")),
                environment: variables.iter().map(|(name, value)| (name.into(), value.into())).collect(),
                ..Surroundings::default()
            }
        }

        fn resolve(&self, flags: &ChatFlags, variables: &[(&str, &str)], resumes: bool) -> Choices {
            let around = self.around(variables);
            let home = Home::at(self.dir.path().join("home"));
            let loaded = hermes_config::load(&LoadInput {
                env: around.text_variables().collect(),
                project_dir: around.cwd.as_deref(),
                ..LoadInput::new(&home)
            })
            .unwrap();
            resolve(flags, &GlobalFlags::default(), &around, Some(&loaded), resumes)
        }
    }

    fn flags(model: Option<&str>, provider: Option<&str>) -> ChatFlags {
        ChatFlags {
            model: model.map(str::to_owned),
            provider: provider.map(str::to_owned),
            ..ChatFlags::default()
        }
    }

    fn pair(choices: &Choices) -> (Option<&str>, Option<&str>) {
        (choices.model.as_deref(), choices.provider.as_deref())
    }

    #[test]
    fn flags_stand_over_the_environment_over_the_project() {
        let scene = Scene::new("", "model: {default: from-project, provider: p-project}\n");
        let env = [("HERMES_MODEL", "from-env")];
        assert_eq!(
            pair(&scene.resolve(&flags(Some("from-flag"), None), &env, false)),
            (Some("from-flag"), Some("p-project"))
        );
        assert_eq!(
            pair(&scene.resolve(&flags(None, None), &env, false)),
            (Some("from-env"), Some("p-project"))
        );
        assert_eq!(
            pair(&scene.resolve(&flags(None, None), &[], false)),
            (Some("from-project"), Some("p-project"))
        );
    }

    #[test]
    fn what_the_profile_says_is_left_to_the_daemon_and_stands_over_the_project() {
        let scene = Scene::new("model: {default: mine, provider: own}\n", "model: {default: theirs}\n");
        assert_eq!(pair(&scene.resolve(&flags(None, None), &[], false)), (None, None));
    }

    #[test]
    fn a_provider_flag_takes_no_model_that_was_meant_for_another_provider() {
        let scene = Scene::new("", "model: {default: from-project}\n");
        let only_provider = flags(None, Some("other"));
        assert_eq!(pair(&scene.resolve(&only_provider, &[], false)), (None, Some("other")));
        let env = [("HERMES_INFERENCE_MODEL", "mine")];
        assert_eq!(pair(&scene.resolve(&only_provider, &env, false)), (Some("mine"), Some("other")));
    }

    #[test]
    fn a_resumed_session_keeps_its_model_unless_a_flag_says_otherwise() {
        let scene = Scene::new("", "model: {default: from-project}\nagent: {max_turns: 7}\n");
        let env = [("HERMES_MODEL", "from-env")];
        let resumed = scene.resolve(&flags(None, None), &env, true);
        assert_eq!((pair(&resumed), resumed.max_turns), ((None, None), Some(7)));
        assert_eq!(pair(&scene.resolve(&flags(Some("m"), None), &env, true)), (Some("m"), None));
    }

    #[test]
    fn the_iteration_cap_follows_the_layers_too() {
        let scene = Scene::new("", "agent: {max_turns: 7}\n");
        let flag = ChatFlags { max_turns: Some(3), ..ChatFlags::default() };
        let env = [("HERMES_MAX_ITERATIONS", "5")];
        assert_eq!(scene.resolve(&flag, &env, false).max_turns, Some(3));
        assert_eq!(scene.resolve(&ChatFlags::default(), &env, false).max_turns, Some(5));
        assert_eq!(scene.resolve(&ChatFlags::default(), &[], false).max_turns, Some(7));
    }

    #[test]
    fn settings_are_loaded_only_when_a_layer_of_this_client_may_set_something() {
        let none = Scene::new("model: {default: mine}\n", "");
        let global = GlobalFlags::default();
        assert!(!needs_settings(&global, &none.around(&[("PATH", "/bin"), ("HERMES_MODEL", "")])));
        assert!(needs_settings(&global, &none.around(&[("HERMES_MODEL", "m")])));
        assert!(needs_settings(
            &GlobalFlags { config: Some("c".into()), ..global.clone() },
            &none.around(&[])
        ));
        assert!(needs_settings(&global, &Scene::new("", "display: {}\n").around(&[])));
    }

    #[test]
    fn yolo_comes_from_the_flag_or_a_truthy_variable() {
        let scene = Scene::new("", "");
        let yolo = |variables: &[(&str, &str)]| {
            let around = scene.around(variables);
            resolve(&ChatFlags::default(), &GlobalFlags::default(), &around, None, false).yolo
        };
        assert!(yolo(&[("HERMES_YOLO_MODE", "1")]));
        assert!(!yolo(&[("HERMES_YOLO_MODE", "0")]));
        assert!(!yolo(&[]));
    }

    #[test]
    fn an_empty_list_of_toolsets_means_no_tools() {
        assert_eq!(split_list("a, b,,c"), ["a", "b", "c"]);
        assert_eq!(split_list(""), Vec::<String>::new());
    }
}
