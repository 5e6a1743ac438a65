//! Settings of models and providers: sections `model`, `providers` and a part of `agent`.
//!
//! Only keys that act stand here. What they mean together is decided in `resolve`.

use std::collections::BTreeMap;

use hermes_runtime::Secret;
use schemars::JsonSchema;
use serde::Deserialize;
use serde_json::{Map, Value};

/// Section `model`: which model answers, and where it is served.
#[derive(Debug, Clone, PartialEq, Eq, Default, Deserialize, JsonSchema)]
#[serde(default)]
pub struct ModelSettings {
    /// The provider that serves the model: a built-in one, `custom`, or a name under `providers`.
    pub provider: Option<String>,
    /// The id of the default model, as the provider spells it.
    pub default: Option<String>,
    /// Address of an OpenAI-compatible server, up to but without `/chat/completions`.
    pub base_url: Option<String>,
    /// The key for `base_url`. Better kept in `.env`.
    pub api_key: Option<Secret>,
    /// How the server is spoken to: `chat_completions`, `anthropic_messages` or `codex_responses`.
    pub api_mode: Option<String>,
    /// Most tokens that one answer may have; without it the server's own limit holds.
    #[schemars(range(min = 1))]
    pub max_tokens: Option<u32>,
    /// The model's context window in tokens, as a whole number.
    #[schemars(range(min = 1))]
    pub context_length: Option<u64>,
}

/// Section `providers`: one's own servers by name, or changes to built-in providers by their id.
#[derive(Debug, Clone, PartialEq, Default, Deserialize, JsonSchema)]
#[serde(default, transparent)]
pub struct ProvidersSettings(pub BTreeMap<String, ProviderEntry>);

/// One entry of section `providers`.
#[derive(Debug, Clone, PartialEq, Deserialize, JsonSchema)]
#[serde(default)]
pub struct ProviderEntry {
    /// Whether it may be used.
    pub enabled: bool,
    /// Address of the server, up to but without `/chat/completions`.
    pub base_url: Option<String>,
    /// The key. Better kept in `.env` and named by `key_env`.
    pub api_key: Option<Secret>,
    /// The variable of `.env` that holds the key.
    pub key_env: Option<String>,
    /// How the server is spoken to: `chat_completions`, `anthropic_messages` or `codex_responses`.
    pub api_mode: Option<String>,
    /// The model that is used when none is named.
    pub default_model: Option<String>,
    /// Facts about single models, by id.
    pub models: BTreeMap<String, ModelEntry>,
    /// Longest time for one whole call, in seconds.
    #[schemars(range(min = 1))]
    pub request_timeout_seconds: Option<f64>,
    /// Longest time without progress within a call, in seconds.
    #[schemars(range(min = 1))]
    pub stale_timeout_seconds: Option<f64>,
    /// Fields that are added to the body of every request, and win over ours.
    pub extra_body: Option<Map<String, Value>>,
    /// Headers that are added to every request.
    pub extra_headers: BTreeMap<String, Secret>,
}

impl Default for ProviderEntry {
    fn default() -> Self {
        Self {
            enabled: true,
            base_url: None,
            api_key: None,
            key_env: None,
            api_mode: None,
            default_model: None,
            models: BTreeMap::new(),
            request_timeout_seconds: None,
            stale_timeout_seconds: None,
            extra_body: None,
            extra_headers: BTreeMap::new(),
        }
    }
}

/// Facts about one model of a provider.
#[derive(Debug, Clone, PartialEq, Default, Deserialize, JsonSchema)]
#[serde(default)]
pub struct ModelEntry {
    /// The model's context window in tokens, as a whole number.
    #[schemars(range(min = 1))]
    pub context_length: Option<u64>,
    /// Most tokens that one answer may have.
    #[schemars(range(min = 1))]
    pub max_output_tokens: Option<u32>,
    /// Longest time for one whole call, in seconds.
    #[schemars(range(min = 1))]
    pub timeout_seconds: Option<f64>,
    /// Longest time without progress within a call, in seconds.
    #[schemars(range(min = 1))]
    pub stale_timeout_seconds: Option<f64>,
}

/// Section `agent`, as far as calls to models act on it.
#[derive(Debug, Clone, PartialEq, Deserialize, JsonSchema)]
#[serde(default)]
pub struct RetrySettings {
    /// Most attempts of one model call.
    #[schemars(range(min = 1, max = 100))]
    pub api_max_retries: u32,
    /// Longest time without progress within a call to a server on this machine or network, in seconds.
    #[schemars(range(min = 1))]
    pub local_stream_stale_timeout: f64,
}

impl Default for RetrySettings {
    fn default() -> Self {
        Self { api_max_retries: 3, local_stream_stale_timeout: 900.0 }
    }
}

/// All that route resolution reads.
#[derive(Debug, Clone, PartialEq, Default)]
pub struct RouteSettings {
    pub model: ModelSettings,
    pub providers: ProvidersSettings,
    pub agent: RetrySettings,
}

impl RouteSettings {
    /// Takes the sections out of a profile's settings.
    pub fn from_settings(settings: &hermes_config::Settings) -> Self {
        Self {
            model: settings.section("model"),
            providers: settings.section("providers"),
            agent: settings.section("agent"),
        }
    }
}

#[cfg(test)]
mod tests {
    use pretty_assertions::assert_eq;
    use serde_json::json;

    use super::*;

    #[test]
    fn a_key_in_the_settings_is_never_printed() {
        let model: ModelSettings = serde_json::from_value(json!({"api_key": "hunter2hunter2"})).unwrap();
        assert!(!format!("{model:?}").contains("hunter2"));
        assert_eq!(model.api_key.unwrap().expose(), "hunter2hunter2");
    }

    #[test]
    fn own_providers_carry_facts_about_models() {
        let providers: ProvidersSettings = serde_json::from_value(json!({
            "lab": {"base_url": "http://lab:8000/v1", "models": {"q": {"context_length": 32768, "timeout_seconds": 60}}}
        }))
        .unwrap();
        let lab = &providers.0["lab"];
        assert_eq!(lab.models["q"].context_length, Some(32768));
        assert_eq!(lab.models["q"].timeout_seconds, Some(60.0));
        assert!(lab.enabled);
    }
}
