//! Tests of the registry.

use std::sync::atomic::{AtomicBool, Ordering};

use async_trait::async_trait;
use hermes_core::Instant;
use pretty_assertions::assert_eq;
use serde_json::{Value, json};

use super::*;
use crate::output::ToolOutput;
use crate::services::ToolCx;
use crate::settings::ToolsetSettings;
use crate::tool::OwnedEffect;
use crate::workspace::Workspace;

#[derive(Debug)]
struct Named {
    name: &'static str,
    toolset: &'static str,
    available: Arc<AtomicBool>,
}

impl Named {
    fn tool(name: &'static str, toolset: &'static str) -> Arc<dyn Tool> {
        Arc::new(Self { name, toolset, available: Arc::new(AtomicBool::new(true)) })
    }
}

#[async_trait]
impl Tool for Named {
    fn name(&self) -> &str {
        self.name
    }

    fn toolset(&self) -> &str {
        self.toolset
    }

    fn schema(&self, _: &ToolSettings) -> ToolSchema {
        ToolSchema {
            name: "another name".to_owned(),
            description: format!("about {}", self.name),
            parameters: Json::from(json!({ "type": "object" })),
        }
    }

    fn available(&self) -> bool {
        self.available.load(Ordering::Relaxed)
    }

    fn preview(&self, _: &Value) -> String {
        String::new()
    }

    fn effect(&self, _: &Value, _: &Workspace) -> Result<Vec<OwnedEffect>, String> {
        Ok(Vec::new())
    }

    async fn run(&self, _: &ToolCx, _: Value) -> ToolOutput {
        ToolOutput::looked(json!({}))
    }
}

#[derive(Debug, Default)]
struct SetClock(Mutex<f64>);

impl Clock for SetClock {
    fn now(&self) -> Instant {
        Instant(*self.0.lock().unwrap())
    }
}

impl SetClock {
    fn set(&self, seconds: f64) {
        *self.0.lock().unwrap() = seconds;
    }
}

fn registry() -> (Registry, Arc<SetClock>) {
    let clock = Arc::new(SetClock::default());
    (Registry::new(Arc::clone(&clock) as Arc<dyn Clock>), clock)
}

fn open(registry: &Registry, toolsets: &[&str]) -> SessionTools {
    let names: Vec<String> = toolsets.iter().map(|name| (*name).to_owned()).collect();
    let settings = ToolsetSettings::default();
    let choice = ToolsetChoice { explicit: Some(&names), platform: "cli", settings: &settings };
    registry.open_session(&choice, &ToolSettings::default())
}

#[test]
fn one_name_belongs_to_one_toolset() {
    let (registry, _) = registry();
    registry.register(Named::tool("x", "a")).unwrap();
    registry.register(Named::tool("x", "a")).unwrap();
    let error = registry.register(Named::tool("x", "b")).unwrap_err();
    assert_eq!(error.to_string(), "tool `x` of toolset `a` cannot be replaced by one of toolset `b`");
    registry.register(Named::tool("m", "mcp-one")).unwrap();
    registry.register(Named::tool("m", "mcp-two")).unwrap();
    assert_eq!(registry.toolset_of("m").as_deref(), Some("mcp-two"));
}

#[test]
fn names_of_the_bridge_and_odd_names_are_refused() {
    let (registry, _) = registry();
    for name in ["tool_call", "tool_search", "tool_describe", "", "a b", "ä"] {
        assert!(registry.register(Named::tool(name, "a")).is_err(), "{name}");
    }
}

#[test]
fn every_change_counts_a_generation() {
    let (registry, _) = registry();
    let before = registry.generation();
    registry.register(Named::tool("x", "a")).unwrap();
    assert!(!registry.deregister("x", "b"));
    assert_eq!(registry.generation(), before + 1);
    assert!(registry.deregister("x", "a"));
    assert_eq!(registry.generation(), before + 2);
    assert!(registry.get("x").is_none());
}

#[test]
fn a_session_gets_what_its_toolsets_name_and_what_is_registered_sorted() {
    let (registry, _) = registry();
    for name in ["write_file", "patch", "read_file"] {
        registry.register(Named::tool(name, "file")).unwrap();
    }
    registry.register(Named::tool("todo", "todo")).unwrap();
    registry.register(Named::tool("mcp_git_log", "mcp-git")).unwrap();
    let tools = open(&registry, &["file", "mcp-git"]);
    assert_eq!(tools.names(), ["mcp_git_log", "patch", "read_file", "write_file"]);
    let schemas = tools.schemas();
    let names: Vec<&str> = schemas.iter().map(|schema| schema.name.as_str()).collect();
    assert_eq!(names, tools.names());
    assert!(tools.json().contains("\"parameters\":{\"type\":\"object\",\"properties\":{}}"));
    assert_eq!(open(&registry, &[]).names(), [] as [&str; 0]);
}

#[test]
fn a_session_stays_as_it_was_opened_and_equal_ones_share() {
    let (registry, _) = registry();
    registry.register(Named::tool("read_file", "file")).unwrap();
    let (one, two) = (open(&registry, &["file"]), open(&registry, &["file"]));
    assert!(Arc::ptr_eq(&one.json(), &two.json()));
    registry.register(Named::tool("patch", "file")).unwrap();
    let three = open(&registry, &["file"]);
    assert_eq!(one.names(), ["read_file"]);
    assert_eq!(three.names(), ["patch", "read_file"]);
}

#[test]
fn an_answer_is_believed_for_a_while_and_one_no_after_a_yes_is_a_flake() {
    let (registry, clock) = registry();
    let available = Arc::new(AtomicBool::new(true));
    let tool: Arc<dyn Tool> = Arc::new(Named { name: "x", toolset: "a", available: Arc::clone(&available) });
    registry.register(Arc::clone(&tool)).unwrap();
    assert!(registry.is_available(&*tool));
    available.store(false, Ordering::Relaxed);
    clock.set(29.0);
    assert!(registry.is_available(&*tool), "believed");
    clock.set(45.0);
    assert!(registry.is_available(&*tool), "a flake");
    clock.set(61.0);
    assert!(!registry.is_available(&*tool), "gone");
    available.store(true, Ordering::Relaxed);
    clock.set(80.0);
    assert!(!registry.is_available(&*tool), "believed");
    registry.flush_availability();
    assert!(registry.is_available(&*tool));
}

#[test]
fn a_check_that_panics_is_a_no() {
    #[derive(Debug)]
    struct Broken;
    #[async_trait]
    impl Tool for Broken {
        fn name(&self) -> &'static str {
            "broken"
        }
        fn toolset(&self) -> &'static str {
            "a"
        }
        fn schema(&self, _: &ToolSettings) -> ToolSchema {
            ToolSchema { name: String::new(), description: String::new(), parameters: Json::from(json!({})) }
        }
        fn available(&self) -> bool {
            panic!("on purpose")
        }
        fn preview(&self, _: &Value) -> String {
            String::new()
        }
        fn effect(&self, _: &Value, _: &Workspace) -> Result<Vec<OwnedEffect>, String> {
            Ok(Vec::new())
        }
        async fn run(&self, _: &ToolCx, _: Value) -> ToolOutput {
            ToolOutput::looked(json!({}))
        }
    }
    let (registry, _) = registry();
    registry.register(Arc::new(Broken)).unwrap();
    assert_eq!(open(&registry, &["a"]).names(), [] as [&str; 0]);
    assert!(!registry.is_toolset_available("a"));
}

#[test]
fn the_schemas_of_this_crate_are_short_product_text() {
    let (registry, _) = registry();
    for tool in crate::file_tools().into_iter().chain(crate::terminal_tools()) {
        registry.register(tool).unwrap();
    }
    let tools = open(&registry, &["file", "terminal"]);
    // Four characters a token is the usual estimate; the whole list is paid for in every request.
    assert!(tools.json().len() / 4 < 1500, "{} tokens", tools.json().len() / 4);
    let pretty: Value = serde_json::from_str(&tools.json()).unwrap();
    insta::assert_json_snapshot!("tool_schemas", pretty);
}
