//! The book's page of settings, from the same schema that checks them.
//!
//! `HERMES_UPDATE_SCHEMA=1 cargo test -p hermesd settings_page` writes `docs/settings.md` anew.

use std::fmt::Write as _;
use std::path::PathBuf;

use serde_json::Value;

const INTRODUCTION: &str = "\
# Settings

Behaviour stands in `config.yaml` of the profile's home, secrets in `.env` beside it. Highest first, a value comes from: command-line
flags, the environment variables that have a meaning, `config.yaml`, `cli-config.yaml` of the project's folder (presentation and
agent limits only), the defaults below. Maps merge, lists and values replace.

`hermes-cli config check` names what is wrong, with file and line. A value of the wrong type or out of range falls back to its
default; an unknown key is named with the nearest known one. A word that is not among a key's choices, and a file that cannot be
parsed, keep the daemon from starting.

`${NAME}` in a value is filled in from `.env`.

Sessions freeze what they need when they open, turns when they begin. This page is generated from the code.
";

/// The whole page.
fn page(schema: &Value) -> String {
    let mut page = INTRODUCTION.to_owned();
    let properties = schema["properties"].as_object().expect("the schema has sections");
    let (sections, single): (Vec<_>, Vec<_>) =
        properties.iter().partition(|(_, section)| section["properties"].is_object());
    for (name, section) in sections {
        let _ = write!(page, "\n## `{name}`\n\n");
        table(&mut page, "", section);
    }
    page.push_str("\n## Single keys and maps\n\n");
    head(&mut page);
    for (name, schema) in single {
        row(&mut page, name, schema);
    }
    page
}

fn table(page: &mut String, above: &str, section: &Value) {
    if above.is_empty() {
        head(page);
    }
    for (key, schema) in section["properties"].as_object().into_iter().flatten() {
        let path = if above.is_empty() { key.clone() } else { format!("{above}.{key}") };
        if schema["properties"].is_object() {
            table(page, &path, schema);
        } else {
            row(page, &path, schema);
        }
    }
}

fn head(page: &mut String) {
    page.push_str("| key | takes | default | meaning |\n|---|---|---|---|\n");
}

fn row(page: &mut String, key: &str, schema: &Value) {
    let default = match &schema["default"] {
        Value::Null => "–".to_owned(),
        Value::String(text) if text.is_empty() => "empty".to_owned(),
        value => format!("`{}`", value.to_string().trim_matches('"')),
    };
    let meaning = schema["description"].as_str().unwrap_or_default().replace('\n', " ");
    let _ = writeln!(page, "| `{key}` | {} | {default} | {} |", takes(schema), meaning.replace('|', "\\|"));
}

/// What a key takes, in words.
fn takes(schema: &Value) -> String {
    for list in ["anyOf", "oneOf"] {
        if let Some(choices) = schema[list].as_array() {
            let mut words: Vec<String> = choices.iter().map(takes).collect();
            words.dedup();
            return words.join(", ");
        }
    }
    if let Some(word) = schema["const"].as_str() {
        return format!("`{word}`");
    }
    if let Some(words) = schema["enum"].as_array() {
        let words: Vec<String> =
            words.iter().filter_map(Value::as_str).map(|word| format!("`{word}`")).collect();
        return words.join(", ");
    }
    let kinds: Vec<&str> = match &schema["type"] {
        Value::String(kind) => vec![kind],
        Value::Array(kinds) => kinds.iter().filter_map(Value::as_str).collect(),
        _ => Vec::new(),
    };
    let words: Vec<String> = kinds
        .into_iter()
        .map(|kind| match (kind, schema["minimum"].as_f64()) {
            ("integer", Some(least)) => format!("whole number from {least}"),
            ("number", Some(least)) => format!("number from {least}"),
            ("integer", None) => "whole number".to_owned(),
            ("string", _) => "text".to_owned(),
            ("boolean", _) => "`true`, `false`".to_owned(),
            ("array", _) => "list".to_owned(),
            ("object", _) => "map".to_owned(),
            ("null", _) => "nothing".to_owned(),
            (other, _) => other.to_owned(),
        })
        .collect();
    words.join(" or ")
}

#[test]
fn the_committed_page_of_settings_is_the_schemas_own() {
    let root = PathBuf::from(env!("CARGO_MANIFEST_DIR")).join("../..");
    let schema = std::fs::read_to_string(root.join("daemon/config/schema.json")).unwrap();
    let fresh = page(&serde_json::from_str(&schema).unwrap());
    let path = root.join("docs/settings.md");
    if std::env::var_os("HERMES_UPDATE_SCHEMA").is_some_and(|value| value == "1") {
        std::fs::write(&path, &fresh).unwrap();
    }
    let committed = std::fs::read_to_string(&path).unwrap_or_default();
    assert!(
        committed == fresh,
        "docs/settings.md is stale: run `HERMES_UPDATE_SCHEMA=1 cargo test -p hermesd`, twice if the schema changed too"
    );
}
