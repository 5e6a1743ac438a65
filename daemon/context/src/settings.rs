//! Settings that the prompt builder acts on (spec 20 §1).

use std::collections::BTreeMap;
use std::num::NonZeroU64;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// The settings of this crate, in the shape of the root of `config.yaml`.
///
/// `agent` holds only the keys that shape the system prompt; other keys of that section belong to
/// other crates.
#[derive(Debug, Clone, PartialEq, Default, Deserialize, JsonSchema)]
#[serde(default)]
pub struct ContextSettings {
    pub agent: GuidanceSettings,
    /// Changes to what the model is told about a surface, by platform name. A bare string is appended to the
    /// built-in hint.
    pub platform_hints: BTreeMap<String, HintOverride>,
    /// Most characters of SOUL.md and of the project file that enter the prompt; null = a share of the model's window.
    pub context_file_max_chars: Option<NonZeroU64>,
}

/// Section `agent`, as far as it shapes the system prompt.
#[derive(Debug, Clone, PartialEq, Deserialize, JsonSchema)]
#[serde(default)]
pub struct GuidanceSettings {
    /// Tell the model to deliver finished, proven work.
    pub task_completion_guidance: bool,
    /// Tell the model to put independent tool calls into one response.
    pub parallel_tool_call_guidance: bool,
    /// Tell the model to act instead of announcing: auto (models that need it), true, false, or a list of parts of
    /// model names.
    pub tool_use_enforcement: Switch,
    /// Tell the model to persist, verify and use tools for facts: auto, true, false, or a list of parts of model names.
    pub execution_guidance: Switch,
    /// Text for the environment block of the prompt, for those who embed Hermes.
    pub environment_hint: String,
}

impl Default for GuidanceSettings {
    fn default() -> Self {
        Self {
            task_completion_guidance: true,
            parallel_tool_call_guidance: true,
            tool_use_enforcement: Switch::default(),
            execution_guidance: Switch::default(),
            environment_hint: String::new(),
        }
    }
}

/// Whether a guidance block is in the prompt.
#[derive(Debug, Clone, PartialEq, Eq, Deserialize, JsonSchema, Serialize)]
#[serde(untagged)]
pub enum Switch {
    Bool(bool),
    /// `auto`; always, yes, on; never, no, off. Any other word counts as `auto`.
    Word(String),
    /// Parts of model names, without regard to case.
    Models(Vec<String>),
}

impl Default for Switch {
    fn default() -> Self {
        Self::Word("auto".to_owned())
    }
}

impl Switch {
    /// Whether the block applies to `model`; `auto` asks whether the name contains one of `families`.
    pub(crate) fn applies(&self, model: &str, families: &[&str]) -> bool {
        let model = model.to_lowercase();
        match self {
            Self::Bool(on) => *on,
            Self::Word(word) => match word.trim().to_lowercase().as_str() {
                "true" | "always" | "yes" | "on" => true,
                "false" | "never" | "no" | "off" => false,
                _ => families.iter().any(|family| model.contains(family)),
            },
            Self::Models(parts) => parts
                .iter()
                .map(|part| part.trim().to_lowercase())
                .any(|part| !part.is_empty() && model.contains(&part)),
        }
    }

    /// The word, when it is none that we know.
    pub(crate) fn unknown_word(&self) -> Option<&str> {
        const KNOWN: [&str; 9] = ["auto", "true", "always", "yes", "on", "false", "never", "no", "off"];
        match self {
            Self::Word(word) if !KNOWN.contains(&word.trim().to_lowercase().as_str()) => Some(word),
            Self::Word(_) | Self::Bool(_) | Self::Models(_) => None,
        }
    }
}

/// A change to one platform's hint.
#[derive(Debug, Clone, PartialEq, Eq, Deserialize, JsonSchema)]
#[serde(untagged)]
pub enum HintOverride {
    /// Text to append.
    Append(String),
    Parts {
        /// Text that follows the hint after a blank line.
        #[serde(default)]
        append: Option<String>,
        /// Text in place of the built-in hint.
        #[serde(default)]
        replace: Option<String>,
    },
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_switch_takes_words_booleans_and_lists() {
        let families = ["gpt", "qwen"];
        let applies =
            |json: &str, model: &str| serde_json::from_str::<Switch>(json).unwrap().applies(model, &families);
        for (json, gpt, claude) in [
            ("\"auto\"", true, false),
            ("true", true, true),
            ("false", false, false),
            ("\" Always \"", true, true),
            ("\"on\"", true, true),
            ("\"yes\"", true, true),
            ("\"never\"", false, false),
            ("\"no\"", false, false),
            ("\"off\"", false, false),
            ("\"sometimes\"", true, false),
            ("[\"Claude\"]", false, true),
            ("[]", false, false),
            ("[\"\"]", false, false),
        ] {
            assert_eq!(applies(json, "openai/GPT-5"), gpt, "{json} gpt");
            assert_eq!(applies(json, "claude-sonnet"), claude, "{json} claude");
        }
    }

    #[test]
    fn unknown_words_are_reported() {
        assert_eq!(Switch::Word("sometimes".into()).unknown_word(), Some("sometimes"));
        assert_eq!(Switch::Word("AUTO".into()).unknown_word(), None);
        assert_eq!(Switch::Bool(true).unknown_word(), None);
    }

    #[test]
    fn the_sections_read_from_the_root_of_the_settings() {
        let settings: ContextSettings = serde_json::from_str(
            r#"{"agent":{"max_turns":3,"task_completion_guidance":false},"context_file_max_chars":900,
                "platform_hints":{"cli":"be brief","sms":{"replace":"short"}},"model":"x"}"#,
        )
        .unwrap();
        assert!(!settings.agent.task_completion_guidance);
        assert!(settings.agent.parallel_tool_call_guidance);
        assert_eq!(settings.context_file_max_chars, NonZeroU64::new(900));
        assert_eq!(settings.platform_hints.get("cli"), Some(&HintOverride::Append("be brief".into())));
        assert_eq!(
            settings.platform_hints.get("sms"),
            Some(&HintOverride::Parts { append: None, replace: Some("short".into()) })
        );
        assert_eq!(serde_json::from_str::<ContextSettings>("{}").unwrap(), ContextSettings::default());
    }
}
