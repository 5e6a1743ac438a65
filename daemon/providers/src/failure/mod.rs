//! Failed calls: what kind of failure it was, what is known of it, and what the user can do.

pub(crate) mod body;
pub(crate) mod classify;
pub(crate) mod retry_after;

use std::fmt;
use std::time::Duration;

use hermes_runtime::Redactor;

use crate::route::Route;

/// Longest error text that is shown or stored, in characters.
const MAX_MESSAGE_CHARS: usize = 300;

/// The kind of a failure: one per thing that someone handles differently (spec 30 §13).
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum FailureClass {
    /// The key was refused.
    Auth,
    /// The key is good, but not for this.
    Forbidden,
    /// No money or quota is left.
    Billing,
    RateLimit,
    Overloaded,
    ServerError,
    /// The server, or the whole call, took too long.
    Timeout,
    /// No connection, or it broke.
    Connection,
    /// The server's certificate is not trusted.
    Certificate,
    /// Nothing came for too long.
    Stale,
    /// The stream ended with nothing in it.
    EmptyStream,
    /// The stream is not what it should be.
    MalformedStream,
    /// The server refuses to stream.
    StreamingUnsupported,
    /// The prompt is larger than the model's window.
    ContextOverflow,
    /// The cap on the answer is larger than the model allows.
    OutputCap,
    /// The request's bytes are more than the server takes.
    PayloadTooLarge,
    ContentPolicy,
    ModelNotFound,
    /// A proxy or firewall in front of the server refused.
    UpstreamBlocked,
    /// There is no such API at this address.
    WrongEndpoint,
    /// The request was refused for its form.
    BadRequest,
    /// The server said that all is well, but there is no answer in it.
    InvalidResponse,
    /// We stopped it.
    Cancelled,
    /// The route cannot be called as it is configured.
    Config,
    Unknown,
}

impl FailureClass {
    /// The name used in events, in the database and in logs.
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Auth => "auth",
            Self::Forbidden => "forbidden",
            Self::Billing => "billing",
            Self::RateLimit => "rate_limit",
            Self::Overloaded => "overloaded",
            Self::ServerError => "server_error",
            Self::Timeout => "timeout",
            Self::Connection => "connection",
            Self::Certificate => "ssl_cert_verification",
            Self::Stale => "stream_stale",
            Self::EmptyStream => "empty_stream",
            Self::MalformedStream => "malformed_stream",
            Self::StreamingUnsupported => "streaming_unsupported",
            Self::ContextOverflow => "context_overflow",
            Self::OutputCap => "output_cap_exceeded",
            Self::PayloadTooLarge => "payload_too_large",
            Self::ContentPolicy => "content_policy_blocked",
            Self::ModelNotFound => "model_not_found",
            Self::UpstreamBlocked => "upstream_blocked",
            Self::WrongEndpoint => "wrong_endpoint",
            Self::BadRequest => "format_error",
            Self::InvalidResponse => "invalid_response",
            Self::Cancelled => "cancelled",
            Self::Config => "config",
            Self::Unknown => "unknown",
        }
    }

    /// Whether the same request may succeed on the same route a little later.
    pub fn is_retryable(self) -> bool {
        match self {
            Self::RateLimit
            | Self::Overloaded
            | Self::ServerError
            | Self::Timeout
            | Self::Connection
            | Self::Stale
            | Self::EmptyStream
            | Self::MalformedStream
            | Self::StreamingUnsupported
            | Self::InvalidResponse
            | Self::Unknown => true,
            Self::Auth
            | Self::Forbidden
            | Self::Billing
            | Self::Certificate
            | Self::ContextOverflow
            | Self::OutputCap
            | Self::PayloadTooLarge
            | Self::ContentPolicy
            | Self::ModelNotFound
            | Self::UpstreamBlocked
            | Self::WrongEndpoint
            | Self::BadRequest
            | Self::Cancelled
            | Self::Config => false,
        }
    }
}

impl fmt::Display for FailureClass {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.as_str())
    }
}

/// Where a failed call went. Kept with the failure, so that only that route is blamed.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct RouteFacts {
    pub provider: String,
    pub model: String,
    /// Host and port; empty when there is no server.
    pub host: String,
    /// Where the key was found, when one was used.
    pub credential_source: Option<String>,
    pub is_local: bool,
}

impl RouteFacts {
    pub(crate) fn of(route: &Route) -> Self {
        Self {
            provider: route.provider.clone(),
            model: route.model.clone(),
            host: route.host().to_owned(),
            credential_source: route.credential_source.clone(),
            is_local: route.is_local,
        }
    }
}

/// A call that gave no answer.
#[derive(Debug, Clone, PartialEq)]
pub struct CallError {
    pub class: FailureClass,
    /// The HTTP status, or the code that an error inside a stream carried in its place. 200 for a
    /// stream that broke after it had begun; `None` when no answer came at all.
    pub status: Option<u16>,
    /// One line, secrets masked, at most 300 characters.
    pub message: String,
    /// How long the server asks to wait.
    pub retry_after: Option<Duration>,
    /// Visible text that had been shown before the failure.
    pub streamed_text: String,
    /// A tool call was being written.
    pub tool_in_flight: bool,
    /// Names of the calls that were being written. None was executed.
    pub dropped_calls: Vec<String>,
    pub route: RouteFacts,
}

impl CallError {
    /// A failure of `route` before anything was shown.
    pub(crate) fn new(class: FailureClass, message: &str, route: &Route, redactor: &Redactor) -> Self {
        Self {
            class,
            status: None,
            message: one_line(message, route, redactor),
            retry_after: None,
            streamed_text: String::new(),
            tool_in_flight: false,
            dropped_calls: Vec::new(),
            route: RouteFacts::of(route),
        }
    }

    /// Whether the same request may succeed on the same route a little later.
    pub fn retryable(&self) -> bool {
        self.class.is_retryable()
    }

    /// What the user can do now.
    pub fn hint(&self) -> String {
        let RouteFacts { provider, model, host, credential_source, is_local } = &self.route;
        match self.class {
            FailureClass::Auth => match credential_source {
                Some(source) => format!("{host} refused the key from {source}: check it"),
                None => format!(
                    "no key was sent to {host}: set `api_key` in config.yaml, or the key's variable in .env"
                ),
            },
            FailureClass::Forbidden => {
                format!("the key is known to {host}, but may not use `{model}`: check the account's rights")
            }
            FailureClass::Billing => {
                format!(
                    "the account at {provider} has no credit or quota left: top it up, or use another provider"
                )
            }
            FailureClass::RateLimit => match self.retry_after {
                Some(wait) => format!("{provider} limits requests: try again in {} s", wait.as_secs().max(1)),
                None => format!("{provider} limits requests: wait a minute and try again"),
            },
            FailureClass::Overloaded => {
                format!("{provider} is overloaded: try again later, or use another model")
            }
            FailureClass::ServerError => format!("the fault lies at {host}: try again later"),
            FailureClass::Timeout | FailureClass::Stale => format!(
                "{host} was too slow: try again, or raise `providers.{provider}.stale_timeout_seconds` and \
                 `request_timeout_seconds` in config.yaml"
            ),
            FailureClass::Connection if self.status.is_some() => {
                format!(
                    "{host} broke off its answer: try again, and look at the server's log if it happens again"
                )
            }
            FailureClass::Connection if *is_local => {
                format!("is the model server at {host} running? Its address is `base_url` in config.yaml")
            }
            FailureClass::Connection => {
                format!(
                    "check the network, a proxy in the environment, and `base_url` in config.yaml ({host})"
                )
            }
            FailureClass::Certificate => format!(
                "the certificate of {host} is not trusted by this machine: install its authority's certificate, \
                 or correct `base_url`"
            ),
            FailureClass::EmptyStream | FailureClass::MalformedStream | FailureClass::InvalidResponse => {
                format!(
                    "{host} did not answer as an OpenAI-compatible server does: check `base_url` and the server's log"
                )
            }
            FailureClass::StreamingUnsupported => format!("{host} does not stream `{model}`"),
            FailureClass::ContextOverflow => format!(
                "the conversation no longer fits `{model}`: start a new session, or use a model with a larger window"
            ),
            FailureClass::OutputCap => "lower `model.max_tokens` in config.yaml".to_owned(),
            FailureClass::PayloadTooLarge => {
                "the request is larger than the server takes: start a new session".to_owned()
            }
            FailureClass::ContentPolicy => "the provider refused the content: rephrase it".to_owned(),
            FailureClass::ModelNotFound => {
                format!("{provider} does not know `{model}`: check `model.default` in config.yaml, or -m")
            }
            FailureClass::UpstreamBlocked => {
                format!("a proxy or firewall in front of {host} refused the request: try another network")
            }
            FailureClass::WrongEndpoint => format!(
                "check `base_url` in config.yaml: that of an OpenAI-compatible server usually ends in /v1 ({host})"
            ),
            FailureClass::BadRequest => {
                format!(
                    "{host} does not accept the request for `{model}`; see logs/errors.log of this profile"
                )
            }
            FailureClass::Cancelled => "nothing is wrong: the call was stopped".to_owned(),
            FailureClass::Config => "correct config.yaml and try again".to_owned(),
            FailureClass::Unknown => format!("see what {host} says above, and try again"),
        }
    }
}

impl fmt::Display for CallError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let RouteFacts { provider, model, host, .. } = &self.route;
        write!(f, "{}", self.message)?;
        if host.is_empty() {
            write!(f, " (provider {provider}, model {model})")
        } else {
            write!(f, " (provider {provider}, model {model}, at {host})")
        }
    }
}

impl std::error::Error for CallError {}

/// One line of at most 300 characters, with the route's own key and every known secret masked.
pub(crate) fn one_line(text: &str, route: &Route, redactor: &Redactor) -> String {
    let joined = text.split_whitespace().collect::<Vec<_>>().join(" ");
    let cleaned: String = joined.chars().filter(|character| !character.is_control()).collect();
    // Masked before it is cut: half a key at the cut would no longer look like one.
    let mut masked = redactor.redact(&cleaned).into_owned();
    for secret in route.credential.iter().chain(route.extra_headers.iter().map(|(_, value)| value)) {
        /// Shorter values are words, and masking them would only make the text unreadable.
        const MIN_SECRET_BYTES: usize = 8;
        if secret.expose().len() >= MIN_SECRET_BYTES && masked.contains(secret.expose()) {
            masked = masked.replace(secret.expose(), "***");
        }
    }
    if masked.chars().count() <= MAX_MESSAGE_CHARS {
        return masked;
    }
    masked.chars().take(MAX_MESSAGE_CHARS - 1).chain(['…']).collect()
}
