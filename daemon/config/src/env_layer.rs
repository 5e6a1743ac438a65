//! Environment variables that set a key: one table (spec 80 §8.1). There is no other way from a variable into the
//! settings, and new behaviour gets a key in `config.yaml`, not a variable.

use std::sync::Arc;

use serde_json::Value;

use crate::diagnostic::{Diagnostic, DiagnosticKind, Severity};
use crate::env_file::EnvFile;
use crate::schema::Schema;
use crate::tree::{Node, Source};

/// What a variable's text becomes.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Reading {
    /// The value itself, typed by the schema.
    Value,
    /// A truthy text sets this fixed value; anything else sets nothing.
    Switch(&'static str),
}

/// A variable that sets a key.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct EnvMapping {
    /// The variable's name.
    pub variable: &'static str,
    /// The dotted key that it sets.
    pub key: &'static str,
    reading: Reading,
}

const fn value(variable: &'static str, key: &'static str) -> EnvMapping {
    EnvMapping { variable, key, reading: Reading::Value }
}

/// In falling precedence: of two variables for one key, the earlier wins.
const MAPPINGS: [EnvMapping; 11] = [
    value("HERMES_MODEL", "model.default"),
    value("HERMES_INFERENCE_MODEL", "model.default"),
    value("HERMES_PROVIDER", "model.provider"),
    value("HERMES_INFERENCE_PROVIDER", "model.provider"),
    value("HERMES_MAX_ITERATIONS", "agent.max_turns"),
    value("HERMES_TERMINAL_TIMEOUT", "terminal.timeout"),
    value("TERMINAL_ENV", "terminal.backend"),
    value("HERMES_LANGUAGE", "display.language"),
    value("HERMES_TIMEZONE", "timezone"),
    value("HERMES_ACCEPT_HOOKS", "hooks_auto_accept"),
    EnvMapping { variable: "HERMES_TUI", key: "display.interface", reading: Reading::Switch("tui") },
];

/// `TERMINAL_X` sets `terminal.x` where the schema knows that key.
const TERMINAL_PREFIX: &str = "TERMINAL_";

/// The table of variables, for the reference page and `doctor`. Beside it, every `TERMINAL_X` sets `terminal.x`;
/// `HERMES_HOME` and `HERMES_CONFIG` choose files; `HERMES_YOLO_MODE`, `HERMES_TUI_THEME` and `NO_COLOR` are read by
/// the clients, which send a turn's options or only paint.
pub fn env_mappings() -> &'static [EnvMapping] {
    &MAPPINGS
}

/// The layer that the caller's environment sets.
pub(crate) fn from_environment(variables: &[(String, String)], schema: &Schema) -> Node {
    let lookup = |name: &str| {
        let found = variables.iter().find(|(known, _)| known == name)?;
        Some((found.1.as_str(), Source::Env(Arc::from(name))))
    };
    let names = variables.iter().map(|(name, _)| name.as_str());
    build(lookup, names, schema).0
}

/// The layer that ordinary settings in `.env` set; each is named, since they belong into `config.yaml`.
pub(crate) fn from_env_file(file: &EnvFile, schema: &Schema, report: &mut Vec<Diagnostic>) -> Node {
    let path: Arc<std::path::Path> = Arc::from(file.path());
    let lookup = |name: &str| {
        let source = Source::EnvFile(path.clone(), file.line(name).unwrap_or_default());
        Some((file.get(name)?, source))
    };
    let (layer, used) = build(lookup, file.iter().map(|(name, _)| name), schema);
    for (variable, key, source) in used {
        let message = format!("{variable} is no secret; set `{key}` in config.yaml instead");
        let finding = Diagnostic::new(DiagnosticKind::EnvFile, source.origin(), message);
        report.push(finding.severity(Severity::Info));
    }
    layer
}

type Used = Vec<(String, String, Source)>;

fn build<'v>(
    lookup: impl Fn(&str) -> Option<(&'v str, Source)>,
    names: impl Iterator<Item = &'v str>,
    schema: &Schema,
) -> (Node, Used) {
    let mut layer = Node::map(Source::Default);
    let mut used = Vec::new();
    let mut set = |variable: &str, key: &str, text: &str, source: Source| {
        let path: Vec<&str> = key.split('.').collect();
        if layer.at(&path).is_none() && layer.put(&path, scalar(text, source.clone())) {
            used.push((variable.to_owned(), key.to_owned(), source));
        }
    };
    for mapping in MAPPINGS {
        let Some((text, source)) = lookup(mapping.variable).filter(|(text, _)| !text.is_empty()) else {
            continue;
        };
        match mapping.reading {
            Reading::Value => set(mapping.variable, mapping.key, text, source),
            Reading::Switch(chosen) if is_truthy(text) => set(mapping.variable, mapping.key, chosen, source),
            Reading::Switch(_) => {}
        }
    }
    for name in names {
        let Some(key) = name.strip_prefix(TERMINAL_PREFIX).map(str::to_ascii_lowercase) else {
            continue;
        };
        if schema.find(&["terminal", &key]).is_some()
            && let Some((text, source)) = lookup(name).filter(|(text, _)| !text.is_empty())
        {
            set(name, &format!("terminal.{key}"), text, source);
        }
    }
    (layer, used)
}

/// A variable's text; a structured value may be given as JSON.
fn scalar(text: &str, source: Source) -> Node {
    if text.starts_with(['[', '{'])
        && let Ok(value @ (Value::Array(_) | Value::Object(_))) = serde_json::from_str(text)
    {
        return Node::from_value(&value, &source);
    }
    Node::text(text, source)
}

/// Whether the text of a variable says yes.
pub fn is_truthy(text: &str) -> bool {
    matches!(text.trim().to_ascii_lowercase().as_str(), "1" | "true" | "yes" | "on")
}

#[cfg(test)]
mod tests {
    use pretty_assertions::assert_eq;
    use serde_json::json;

    use super::*;

    fn schema() -> Schema {
        Schema::new(json!({"type": "object", "properties": {"terminal": {"type": "object", "properties": {
            "timeout": {"type": "integer"}, "docker_volumes": {"type": "array", "items": {"type": "string"}}
        }}}}))
    }

    fn layer(pairs: &[(&str, &str)]) -> Value {
        let pairs: Vec<(String, String)> =
            pairs.iter().map(|(name, text)| ((*name).to_owned(), (*text).to_owned())).collect();
        from_environment(&pairs, &schema()).to_value()
    }

    #[test]
    fn only_mapped_names_set_anything() {
        assert_eq!(
            layer(&[
                ("OPENAI_API_KEY", "sk"),
                ("HERMES_INFERENCE_MODEL", "late"),
                ("HERMES_MODEL", "early"),
                ("HERMES_PROVIDER", ""),
                ("HERMES_TUI", "1"),
                ("TERMINAL_TIMEOUT", "7"),
                ("TERMINAL_EMULATOR", "xterm"),
                ("TERMINAL_DOCKER_VOLUMES", "[\"/a:/b\"]"),
            ]),
            json!({
                "model": {"default": "early"},
                "display": {"interface": "tui"},
                "terminal": {"timeout": "7", "docker_volumes": ["/a:/b"]},
            })
        );
        assert_eq!(layer(&[("HERMES_TUI", "0")]), json!({}));
        assert_eq!(
            layer(&[("TERMINAL_TIMEOUT", "7"), ("HERMES_TERMINAL_TIMEOUT", "9")]),
            json!({"terminal": {"timeout": "9"}})
        );
    }

    #[test]
    fn settings_among_the_secrets_are_honoured_and_named() {
        let file = EnvFile::parse("OPENAI_API_KEY=sk\nHERMES_MAX_ITERATIONS=5\n");
        let mut report = Vec::new();
        let layer = from_env_file(&file, &schema(), &mut report);
        assert_eq!(layer.to_value(), json!({"agent": {"max_turns": "5"}}));
        assert_eq!(report.len(), 1);
        assert_eq!(report[0].origin.line(), Some(2));
        assert!(report[0].message.contains("agent.max_turns"), "{}", report[0]);
    }
}
