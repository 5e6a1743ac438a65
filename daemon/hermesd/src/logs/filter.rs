//! Which events are logged: one level for our own crates, warnings only for the libraries under them.

use std::borrow::Cow;

use schemars::{JsonSchema, Schema, SchemaGenerator, json_schema};
use serde::{Deserialize, Serialize};
use tracing::level_filters::LevelFilter;
use tracing_subscriber::filter::Targets;

/// How much is logged, as `logging.level` says it. Both the original's upper case and lower case are
/// read.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Deserialize, Serialize)]
pub(crate) enum LogLevel {
    #[serde(rename = "TRACE", alias = "trace")]
    Trace,
    #[serde(rename = "DEBUG", alias = "debug")]
    Debug,
    #[default]
    #[serde(rename = "INFO", alias = "info")]
    Info,
    #[serde(rename = "WARNING", alias = "warning", alias = "WARN", alias = "warn")]
    Warning,
    #[serde(rename = "ERROR", alias = "error", alias = "CRITICAL", alias = "critical")]
    Error,
}

impl LogLevel {
    /// All spellings that settings may use.
    const SPELLINGS: [&str; 14] = [
        "TRACE", "DEBUG", "INFO", "WARNING", "WARN", "ERROR", "CRITICAL", "trace", "debug", "info",
        "warning", "warn", "error", "critical",
    ];

    /// The level in the form that a filter takes.
    pub(crate) fn as_str(self) -> &'static str {
        match self {
            Self::Trace => "trace",
            Self::Debug => "debug",
            Self::Info => "info",
            Self::Warning => "warn",
            Self::Error => "error",
        }
    }
}

impl JsonSchema for LogLevel {
    fn schema_name() -> Cow<'static, str> {
        "LogLevel".into()
    }

    fn json_schema(_: &mut SchemaGenerator) -> Schema {
        json_schema!({ "type": "string", "enum": Self::SPELLINGS })
    }
}

/// A text that names no level.
#[derive(Debug, thiserror::Error)]
#[error(
    "`{levels}` is not a log level: use trace, debug, info, warn or error, or levels by crate such as `info,hermes_engine=debug`"
)]
pub(crate) struct FilterError {
    levels: String,
}

/// Reads `info`, `WARNING`, or a list of levels by crate.
pub(super) fn filter(levels: &str) -> Result<Targets, FilterError> {
    let failed = || FilterError { levels: levels.to_owned() };
    let mut targets = Targets::new();
    for part in levels.split(',').map(str::trim).filter(|part| !part.is_empty()) {
        targets = if let Some((target, name)) = part.split_once('=') {
            targets.with_target(target, level(name).ok_or_else(failed)?)
        } else {
            let own = level(part).ok_or_else(failed)?;
            targets.with_default(own.min(LevelFilter::WARN)).with_target("hermes", own)
        };
    }
    Ok(targets)
}

fn level(name: &str) -> Option<LevelFilter> {
    match name.to_ascii_lowercase().as_str() {
        "off" => Some(LevelFilter::OFF),
        "trace" => Some(LevelFilter::TRACE),
        "debug" => Some(LevelFilter::DEBUG),
        "info" => Some(LevelFilter::INFO),
        "warn" | "warning" => Some(LevelFilter::WARN),
        "error" | "critical" => Some(LevelFilter::ERROR),
        _ => None,
    }
}

#[cfg(test)]
mod tests {
    use tracing::Level;

    use super::*;

    #[test]
    fn one_level_is_for_our_crates_and_libraries_only_warn() {
        let targets = filter("debug").unwrap();
        assert!(targets.would_enable("hermes_engine::turn", &Level::DEBUG));
        assert!(targets.would_enable("hermesd", &Level::DEBUG));
        assert!(!targets.would_enable("h2::proto", &Level::INFO));
        assert!(targets.would_enable("h2::proto", &Level::WARN));
    }

    #[test]
    fn a_crate_can_have_a_level_of_its_own() {
        let targets = filter("warn,hermes_engine=trace").unwrap();
        assert!(targets.would_enable("hermes_engine::turn", &Level::TRACE));
        assert!(!targets.would_enable("hermes_state", &Level::INFO));
    }

    #[test]
    fn the_originals_names_are_understood() {
        assert!(!filter("WARNING").unwrap().would_enable("hermesd", &Level::INFO));
        let level: LogLevel = serde_json::from_str("\"WARNING\"").unwrap();
        assert_eq!(level, LogLevel::Warning);
        assert_eq!(serde_json::from_str::<LogLevel>("\"debug\"").unwrap(), LogLevel::Debug);
    }

    #[test]
    fn every_spelling_that_the_schema_accepts_is_read_and_filters() {
        for spelling in LogLevel::SPELLINGS {
            let level: LogLevel = serde_json::from_value(spelling.into()).unwrap();
            filter(level.as_str()).unwrap();
            filter(spelling).unwrap();
        }
    }

    #[test]
    fn anything_else_is_refused_with_what_is_accepted() {
        let error = filter("loud").unwrap_err().to_string();
        assert!(error.contains("`loud`") && error.contains("debug"), "{error}");
    }
}
