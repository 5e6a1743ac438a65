//! One JSON Schema for the whole of `config.yaml`, from the sections' own structs.
//!
//! `hermes-config` embeds the committed copy; the test below fails when that is stale, and
//! `HERMES_UPDATE_SCHEMA=1 cargo test -p hermesd schema` writes it anew.

use std::path::PathBuf;

use hermes_context::ContextSettings;
use hermes_engine::{AgentSettings, BusySettings, ClarifySettings};
use hermes_providers::{ModelSettings, ProvidersSettings, RetrySettings};
use hermes_runtime::{
    ApprovalSettings, CheckpointSettings, CommandAllowlist, SecuritySettings, TerminalSettings,
};
use hermes_state::StateSettings;
use hermes_tools::{
    AgentToolSettings, FileReadMaxChars, GuardrailSettings, PlatformToolsets, ToolOutputSettings,
    ToolTimeouts,
};
use schemars::JsonSchema;
use schemars::generate::SchemaSettings;
use serde_json::{Map, Value, json};

use crate::settings::{DaemonSettings, DrainSettings, LoggingSettings};

/// Every section, by its place. Several structs may share a place: each crate declares the keys that it
/// acts on.
fn sections() -> Vec<(&'static str, Value)> {
    vec![
        ("", of::<ContextSettings>()),
        ("agent", of::<AgentSettings>()),
        ("agent", of::<AgentToolSettings>()),
        ("agent", of::<DrainSettings>()),
        ("agent", of::<RetrySettings>()),
        ("approvals", of::<ApprovalSettings>()),
        ("checkpoints", of::<CheckpointSettings>()),
        ("clarify", of::<ClarifySettings>()),
        ("command_allowlist", of::<CommandAllowlist>()),
        ("daemon", of::<DaemonSettings>()),
        ("display", of::<BusySettings>()),
        ("file_read_max_chars", of::<FileReadMaxChars>()),
        ("logging", of::<LoggingSettings>()),
        ("model", of::<ModelSettings>()),
        ("platform_toolsets", of::<PlatformToolsets>()),
        ("providers", of::<ProvidersSettings>()),
        ("security", of::<SecuritySettings>()),
        ("state", of::<StateSettings>()),
        ("terminal", of::<TerminalSettings>()),
        ("timeouts.tools", of::<ToolTimeouts>()),
        ("tool_loop_guardrails", of::<GuardrailSettings>()),
        ("tool_output", of::<ToolOutputSettings>()),
    ]
}

/// The schema of one struct, with everything it refers to written in place.
fn of<T: JsonSchema>() -> Value {
    let settings = SchemaSettings::draft2020_12().with(|settings| settings.inline_subschemas = true);
    let mut schema = settings.into_generator().into_root_schema_for::<T>().to_value();
    if let Some(schema) = schema.as_object_mut() {
        schema.remove("$schema");
        schema.remove("title");
    }
    schema
}

/// Puts all sections into one schema.
fn compose(sections: Vec<(&'static str, Value)>) -> Value {
    let mut root = json!({
        "$schema": "https://json-schema.org/draft/2020-12/schema",
        "title": "Settings",
        "type": "object",
        "properties": {},
    });
    for (place, section) in sections {
        match place.rsplit_once('.') {
            _ if place.is_empty() => merge(place, &mut root, section),
            Some((above, key)) => add(place, container(&mut root, above), key, section),
            None => add(place, &mut root, place, section),
        }
    }
    sort_properties(&mut root);
    root
}

/// The map at a dotted place, made when it is not there.
fn container<'a>(root: &'a mut Value, place: &str) -> &'a mut Value {
    place.split('.').fold(root, |at, step| {
        properties(at).entry(step).or_insert_with(|| json!({"type": "object", "properties": {}}))
    })
}

/// Puts a section under `key`, beside what other crates declared of it.
fn add(place: &str, above: &mut Value, key: &str, section: Value) {
    match properties(above).get_mut(key) {
        Some(known) => merge(place, known, section),
        None => {
            properties(above).insert(key.to_owned(), section);
        }
    }
}

fn properties(schema: &mut Value) -> &mut Map<String, Value> {
    let map = schema.as_object_mut().expect("a section's schema is an object");
    map.entry("properties").or_insert_with(|| json!({})).as_object_mut().expect("`properties` is an object")
}

/// Adds a section's keys. Two crates must not declare one key differently.
fn merge(place: &str, target: &mut Value, mut section: Value) {
    for (key, schema) in std::mem::take(properties(&mut section)) {
        let place = format!("{place}.{key}");
        match properties(target).get_mut(&key) {
            Some(known) if known.get("properties").is_some() => merge(&place, known, schema),
            Some(known) => assert_eq!(known, &schema, "`{place}` is declared twice"),
            None => {
                properties(target).insert(key, schema);
            }
        }
    }
    let target = target.as_object_mut().expect("a section's schema is an object");
    for (keyword, value) in section.as_object().into_iter().flatten() {
        match (keyword.as_str(), target.get_mut(keyword)) {
            ("properties", _) => {}
            // Two crates describe their halves of a section: both are kept.
            ("description", Some(Value::String(known))) => {
                known.push_str("\n\n");
                known.push_str(value.as_str().unwrap_or_default());
            }
            (_, Some(known)) => assert_eq!(known, value, "`{keyword}` of `{place}`"),
            (_, None) => {
                target.insert(keyword.clone(), value.clone());
            }
        }
    }
}

/// Keys in the order of the alphabet, so that the file does not depend on the order of the crates.
fn sort_properties(schema: &mut Value) {
    match schema {
        Value::Object(map) => {
            if let Some(Value::Object(properties)) = map.get_mut("properties") {
                properties.sort_keys();
            }
            map.values_mut().for_each(sort_properties);
        }
        Value::Array(items) => items.iter_mut().for_each(sort_properties),
        _ => {}
    }
}

#[test]
fn the_committed_schema_is_the_sections_own() {
    let fresh = serde_json::to_string_pretty(&compose(sections())).unwrap() + "\n";
    let path = PathBuf::from(env!("CARGO_MANIFEST_DIR")).join("../config/schema.json");
    if std::env::var_os("HERMES_UPDATE_SCHEMA").is_some_and(|value| value == "1") {
        std::fs::write(&path, &fresh).unwrap();
    }
    let committed = std::fs::read_to_string(&path).unwrap();
    assert!(
        committed == fresh,
        "daemon/config/schema.json is stale: run `HERMES_UPDATE_SCHEMA=1 cargo test -p hermesd schema`"
    );
}

#[test]
fn two_crates_can_share_a_section_but_not_a_key() {
    let half = |key: &str, kind: &str| json!({"type": "object", "description": key, "properties": {key: {"type": kind}}});
    let whole = compose(vec![("a.b", half("y", "string")), ("a.b", half("x", "integer"))]);
    let section = whole.pointer("/properties/a/properties/b").unwrap();
    assert_eq!(section.pointer("/properties/x/type"), Some(&"integer".into()));
    assert_eq!(section.pointer("/properties/y/type"), Some(&"string".into()));
    assert_eq!(section.get("description"), Some(&"y\n\nx".into()));
    let keys: Vec<&String> = section.pointer("/properties").unwrap().as_object().unwrap().keys().collect();
    assert_eq!(keys, ["x", "y"]);
}
