//! API modes: the wires that a model can be spoken to over (spec 30 §2).

use std::fmt;

/// How a route's server is spoken to.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum ApiMode {
    /// `POST {base}/chat/completions`.
    ChatCompletions,
    /// `POST {base}/v1/messages`.
    AnthropicMessages,
    /// `POST {base}/responses`.
    CodexResponses,
    /// The built-in responder; no server.
    Offline,
}

impl ApiMode {
    /// What `api_mode` may say in `config.yaml`.
    pub const NAMES: [&str; 3] = ["chat_completions", "anthropic_messages", "codex_responses"];

    /// The name used in settings, in the database and in logs.
    pub fn as_str(self) -> &'static str {
        match self {
            Self::ChatCompletions => "chat_completions",
            Self::AnthropicMessages => "anthropic_messages",
            Self::CodexResponses => "codex_responses",
            Self::Offline => "offline",
        }
    }

    /// Reads a configured name. `openai_chat` is the older spelling of `chat_completions`.
    pub(crate) fn parse(text: &str) -> Option<Self> {
        match text {
            "chat_completions" | "openai_chat" => Some(Self::ChatCompletions),
            "anthropic_messages" => Some(Self::AnthropicMessages),
            "codex_responses" => Some(Self::CodexResponses),
            _ => None,
        }
    }

    /// Whether this version can speak it.
    pub(crate) fn is_built(self) -> bool {
        matches!(self, Self::ChatCompletions | Self::Offline)
    }
}

impl fmt::Display for ApiMode {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.as_str())
    }
}
