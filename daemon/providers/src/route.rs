//! A route: everything that one call needs to know about where it goes.

use std::time::Duration;

use hermes_core::Json;
use hermes_runtime::Secret;

use crate::catalog::OFFLINE;
use crate::mode::ApiMode;

/// A resolved route. Built once per session or turn, handed to every call.
#[derive(Debug, Clone)]
pub struct Route {
    /// The provider's id; a user's own provider by its name.
    pub provider: String,
    /// The model's id as the provider spells it.
    pub model: String,
    /// Without the endpoint's own path and without a slash at the end; empty for `offline`.
    pub base_url: String,
    pub api_mode: ApiMode,
    pub credential: Option<Secret>,
    /// Where the credential was found, for error texts: `OPENROUTER_API_KEY in .env`.
    pub credential_source: Option<String>,
    /// In tokens; `None` when it is not known.
    pub context_window: Option<u64>,
    /// Most output tokens of one call; `None` leaves it to the server.
    pub max_tokens: Option<u32>,
    pub timeouts: CallTimeouts,
    /// A JSON object whose fields are added to each request body, and win over ours.
    pub extra_body: Option<Json>,
    /// Headers added to each request. Values may be secret.
    pub extra_headers: Vec<(String, Secret)>,
    /// The server stands on this machine or in the private network around it (spec 30 §16).
    pub is_local: bool,
    /// What was corrected on the way here, to be logged or shown once.
    pub notes: Vec<String>,
}

impl Route {
    /// The route of the built-in responder.
    pub fn offline() -> Self {
        Self {
            provider: OFFLINE.to_owned(),
            model: OFFLINE.to_owned(),
            base_url: String::new(),
            api_mode: ApiMode::Offline,
            credential: None,
            credential_source: None,
            context_window: None,
            max_tokens: None,
            timeouts: CallTimeouts::default(),
            extra_body: None,
            extra_headers: Vec::new(),
            is_local: true,
            notes: Vec::new(),
        }
    }

    /// Whether no model is behind this route.
    pub fn is_offline(&self) -> bool {
        self.api_mode == ApiMode::Offline
    }

    /// The address without its query, which may hold a key: for rows, results and texts.
    pub fn shown_address(&self) -> &str {
        self.base_url.split(['?', '#']).next().unwrap_or_default()
    }

    /// The server's host and port, for texts; `offline` has none.
    pub fn host(&self) -> &str {
        let after_scheme = self.base_url.split_once("://").map_or(self.base_url.as_str(), |(_, rest)| rest);
        after_scheme.split(['/', '?']).next().unwrap_or_default()
    }

    /// Whether the model's name says that it belongs to one of these families.
    pub(crate) fn model_contains(&self, families: &[&str]) -> bool {
        let model = self.model.to_lowercase();
        families.iter().any(|family| model.contains(family))
    }
}

/// Limits in time of one call (spec 30 §15).
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct CallTimeouts {
    /// From the first byte sent to the last byte received.
    pub whole: Duration,
    /// Longest time without progress while a stream is awaited or read.
    pub stream_stale: StaleLimit,
    /// Longest time without progress of a call that does not stream.
    pub whole_answer_stale: StaleLimit,
}

impl Default for CallTimeouts {
    fn default() -> Self {
        Self {
            whole: Duration::from_mins(30),
            stream_stale: StaleLimit::BySize { small: 180, medium: 240, large: 300, floor: 0 },
            whole_answer_stale: StaleLimit::BySize { small: 90, medium: 150, large: 240, floor: 0 },
        }
    }
}

/// How long a call may go without progress.
#[derive(Debug, Clone, Copy, PartialEq)]
pub enum StaleLimit {
    /// As configured, or as is usual for a local server.
    Fixed(Duration),
    /// Seconds that grow with the prompt: above 50,000 and above 100,000 estimated tokens.
    /// `floor` is what a model that thinks for long needs.
    BySize { small: u64, medium: u64, large: u64, floor: u64 },
    /// Only the limit of the whole call holds.
    Never,
}

impl StaleLimit {
    /// The limit for a prompt of that many (estimated) tokens.
    pub(crate) fn for_tokens(self, tokens: usize) -> Option<Duration> {
        match self {
            Self::Fixed(limit) => Some(limit),
            Self::Never => None,
            Self::BySize { small, medium, large, floor } => {
                let seconds = match tokens {
                    0..=50_000 => small,
                    50_001..=100_000 => medium,
                    _ => large,
                };
                Some(Duration::from_secs(seconds.max(floor)))
            }
        }
    }

    /// Raises a limit that goes by size; one that the user set stays.
    pub(crate) fn with_floor(self, seconds: u64) -> Self {
        match self {
            Self::BySize { small, medium, large, floor } => {
                Self::BySize { small, medium, large, floor: floor.max(seconds) }
            }
            Self::Fixed(_) | Self::Never => self,
        }
    }
}

/// Seconds that a model which thinks before it speaks must be given (spec 10 §17). 0 for others.
///
/// A name matches at the start of the id after its last `/`, when it ends there or a `-`, `.`, `_`
/// or `:` follows; the longest match decides.
pub(crate) fn thinking_floor_seconds(model: &str) -> u64 {
    const FLOORS: [(u64, &[&str]); 4] = [
        (
            600,
            &[
                "nemotron-3-ultra",
                "nemotron-3-super",
                "deepseek-r1",
                "deepseek-reasoner",
                "deepseek-v4-flash",
                "deepseek-v4-pro",
                "o1",
                "o1-mini",
                "o1-pro",
                "o1-preview",
                "o3",
                "o3-pro",
            ],
        ),
        (
            300,
            &[
                "nemotron-3-nano",
                "qwq-32b",
                "o3-mini",
                "o4-mini",
                "grok-4-fast-reasoning",
                "grok-4.20-reasoning",
                "grok-4.5",
            ],
        ),
        (240, &["claude-opus-4"]),
        (
            180,
            &[
                "qwen3",
                "claude-sonnet-5",
                "claude-sonnet-4.5",
                "claude-sonnet-4.6",
                "grok-4-fast-non-reasoning",
            ],
        ),
    ];
    let slug = model.rsplit('/').next().unwrap_or_default().to_lowercase();
    let matches = |name: &str| {
        slug.strip_prefix(name).is_some_and(|rest| rest.is_empty() || rest.starts_with(['-', '.', '_', ':']))
    };
    FLOORS
        .iter()
        .flat_map(|(seconds, names)| names.iter().map(move |name| (name.len(), *seconds, *name)))
        .filter(|(_, _, name)| matches(name))
        .max_by_key(|(length, _, _)| *length)
        .map_or(0, |(_, seconds, _)| seconds)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_stale_limit_grows_with_the_prompt_but_not_when_it_was_set() {
        let limit = CallTimeouts::default().stream_stale;
        let seconds = |limit: StaleLimit, tokens| limit.for_tokens(tokens).map(|limit| limit.as_secs());
        assert_eq!(seconds(limit, 0), Some(180));
        assert_eq!(seconds(limit, 50_001), Some(240));
        assert_eq!(seconds(limit, 100_001), Some(300));
        assert_eq!(seconds(limit.with_floor(600), 0), Some(600));
        assert_eq!(seconds(StaleLimit::Fixed(Duration::from_secs(7)).with_floor(600), 0), Some(7));
        assert_eq!(seconds(StaleLimit::Never, 0), None);
    }

    #[test]
    fn floors_match_whole_names_only() {
        let cases = [
            ("openai/o3-mini", 300),
            ("o3-mini-2025", 300),
            ("o3", 600),
            ("o30", 0),
            ("qwen3:8b", 180),
            ("qwen3.5", 180),
            ("deepseek/deepseek-r1-0528", 600),
            ("my-o1", 0),
            ("gpt-4o", 0),
        ];
        for (model, seconds) in cases {
            assert_eq!(thinking_floor_seconds(model), seconds, "{model}");
        }
    }

    #[test]
    fn the_host_is_named_without_scheme_and_path() {
        let mut route = Route::offline();
        assert_eq!(route.host(), "");
        route.base_url = "https://api.example.com:8443/v1".into();
        assert_eq!(route.host(), "api.example.com:8443");
    }
}
