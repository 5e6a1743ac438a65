//! The providers that are known by name: where they are, how they are spoken to and which variable
//! of `.env` holds their key (spec 30 §9).

use crate::mode::ApiMode;

/// One built-in provider.
#[derive(Debug, Clone, Copy)]
pub(crate) struct BuiltIn {
    pub(crate) id: &'static str,
    pub(crate) aliases: &'static [&'static str],
    /// Variables of `.env` that hold a key, in the order in which they are tried.
    pub(crate) key_variables: &'static [&'static str],
    /// `None`: the user says where it is.
    pub(crate) base_url: Option<&'static str>,
    /// The variable of `.env` that may name another address.
    pub(crate) base_variable: Option<&'static str>,
    /// `None`: the address decides.
    pub(crate) mode: Option<ApiMode>,
    pub(crate) key: KeyNeed,
    /// Hosts that the provider's own key may be sent to; a sub-domain counts.
    pub(crate) key_hosts: &'static [&'static str],
}

/// Whether a provider can be used without a key.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum KeyNeed {
    Required,
    Optional,
}

const NO_NAMES: &[&str] = &[];

/// The built-in providers, in the order in which a key in `.env` chooses one.
///
/// Providers whose wire is not spoken yet stand here too, so that naming one says so.
pub(crate) const BUILT_IN: &[BuiltIn] = &[
    BuiltIn {
        id: "openrouter",
        aliases: &["or"],
        key_variables: &["OPENROUTER_API_KEY"],
        base_url: Some("https://openrouter.ai/api/v1"),
        base_variable: Some("OPENROUTER_BASE_URL"),
        mode: Some(ApiMode::ChatCompletions),
        key: KeyNeed::Required,
        key_hosts: &["openrouter.ai"],
    },
    BuiltIn {
        id: "openai",
        aliases: NO_NAMES,
        key_variables: &["OPENAI_API_KEY"],
        base_url: Some("https://api.openai.com/v1"),
        base_variable: Some("OPENAI_BASE_URL"),
        mode: Some(ApiMode::ChatCompletions),
        key: KeyNeed::Required,
        key_hosts: &["openai.com", "openai.azure.com"],
    },
    BuiltIn {
        id: "deepseek",
        aliases: NO_NAMES,
        key_variables: &["DEEPSEEK_API_KEY"],
        base_url: Some("https://api.deepseek.com/v1"),
        base_variable: Some("DEEPSEEK_BASE_URL"),
        mode: Some(ApiMode::ChatCompletions),
        key: KeyNeed::Required,
        key_hosts: &["deepseek.com"],
    },
    BuiltIn {
        id: "lmstudio",
        aliases: &["lm-studio"],
        key_variables: &["LM_API_KEY"],
        base_url: Some("http://127.0.0.1:1234/v1"),
        base_variable: Some("LM_BASE_URL"),
        mode: Some(ApiMode::ChatCompletions),
        key: KeyNeed::Optional,
        key_hosts: &["127.0.0.1", "localhost"],
    },
    BuiltIn {
        id: CUSTOM,
        aliases: &["ollama", "vllm", "local", "llamacpp", "llama.cpp"],
        key_variables: NO_NAMES,
        base_url: None,
        base_variable: None,
        mode: None,
        key: KeyNeed::Optional,
        key_hosts: NO_NAMES,
    },
    BuiltIn {
        id: "anthropic",
        aliases: &["claude", "claude-code"],
        key_variables: &["ANTHROPIC_API_KEY", "ANTHROPIC_TOKEN", "CLAUDE_CODE_OAUTH_TOKEN"],
        base_url: Some("https://api.anthropic.com"),
        base_variable: Some("ANTHROPIC_BASE_URL"),
        mode: Some(ApiMode::AnthropicMessages),
        key: KeyNeed::Required,
        key_hosts: &["anthropic.com", "claude.com"],
    },
    BuiltIn {
        id: "minimax",
        aliases: &["minimax-cn", "minimax-oauth"],
        key_variables: &["MINIMAX_API_KEY", "MINIMAX_CN_API_KEY"],
        base_url: Some("https://api.minimax.io/anthropic"),
        base_variable: None,
        mode: Some(ApiMode::AnthropicMessages),
        key: KeyNeed::Required,
        key_hosts: &["minimax.io", "minimaxi.com"],
    },
    BuiltIn {
        id: "openai-api",
        aliases: NO_NAMES,
        key_variables: &["OPENAI_API_KEY"],
        base_url: Some("https://api.openai.com/v1"),
        base_variable: Some("OPENAI_BASE_URL"),
        mode: Some(ApiMode::CodexResponses),
        key: KeyNeed::Required,
        key_hosts: &["openai.com", "openai.azure.com"],
    },
    BuiltIn {
        id: "openai-codex",
        aliases: &["codex"],
        key_variables: NO_NAMES,
        base_url: Some("https://chatgpt.com/backend-api/codex"),
        base_variable: None,
        mode: Some(ApiMode::CodexResponses),
        key: KeyNeed::Required,
        key_hosts: &["chatgpt.com"],
    },
    BuiltIn {
        id: "xai",
        aliases: &["grok", "x-ai", "x.ai", "xai-oauth", "grok-oauth"],
        key_variables: &["XAI_API_KEY"],
        base_url: Some("https://api.x.ai/v1"),
        base_variable: Some("XAI_BASE_URL"),
        mode: Some(ApiMode::CodexResponses),
        key: KeyNeed::Required,
        key_hosts: &["x.ai"],
    },
];

/// The id under which any OpenAI-compatible server can be used.
pub(crate) const CUSTOM: &str = "custom";

/// The id of the built-in responder.
pub(crate) const OFFLINE: &str = "offline";

/// Finds a built-in provider by id or alias; `name` is in lower case.
pub(crate) fn find(name: &str) -> Option<&'static BuiltIn> {
    BUILT_IN.iter().find(|provider| provider.id == name || provider.aliases.contains(&name))
}

/// The variables that hold the key of a provider this version can talk to, without repeats.
///
/// Callers filter the names of an environment by it to tell the user which key they saw.
pub fn key_variables() -> impl Iterator<Item = &'static str> {
    usable().flat_map(|provider| provider.key_variables.iter().copied())
}

/// The provider that a key variable belongs to.
pub(crate) fn provider_of_key(variable: &str) -> Option<&'static BuiltIn> {
    usable().find(|provider| provider.key_variables.contains(&variable))
}

/// The ids that can be used, for error texts.
pub(crate) fn usable_ids() -> impl Iterator<Item = &'static str> {
    usable().map(|provider| provider.id)
}

fn usable() -> impl Iterator<Item = &'static BuiltIn> {
    BUILT_IN.iter().filter(|provider| provider.mode.is_none_or(ApiMode::is_built))
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;

    use super::*;

    #[test]
    fn names_are_unique_and_in_lower_case() {
        let mut seen = BTreeSet::new();
        for provider in BUILT_IN {
            for name in provider.aliases.iter().chain([&provider.id]) {
                assert!(seen.insert(*name), "{name} stands twice");
                assert_eq!(*name, name.to_lowercase());
            }
        }
        assert!(!seen.contains(OFFLINE));
    }

    #[test]
    fn a_key_variable_belongs_to_one_usable_provider() {
        let variables: Vec<&str> = key_variables().collect();
        let unique: BTreeSet<&str> = variables.iter().copied().collect();
        assert_eq!(variables.len(), unique.len());
        assert_eq!(provider_of_key("OPENAI_API_KEY").unwrap().id, "openai");
    }
}
