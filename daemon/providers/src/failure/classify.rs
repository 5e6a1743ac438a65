//! From what an error says to what kind it is (spec 30 §13).
//!
//! Pure and table-driven. Machine-readable codes come first, then the status, refined by the text,
//! then the text alone. A number inside the text never counts as a status.

use crate::failure::FailureClass;
use crate::failure::body::ErrorFacts;

/// Codes that say more than the status that they come with.
const PRECISE_CODES: &[(&str, FailureClass)] = &[
    ("context_length_exceeded", FailureClass::ContextOverflow),
    ("context_window_exceeded", FailureClass::ContextOverflow),
    ("exceed_context_size_error", FailureClass::ContextOverflow),
    ("string_above_max_length", FailureClass::ContextOverflow),
    ("insufficient_quota", FailureClass::Billing),
    ("insufficient_credits", FailureClass::Billing),
    ("insufficient_balance", FailureClass::Billing),
    ("billing_not_active", FailureClass::Billing),
    ("billing_hard_limit_reached", FailureClass::Billing),
    ("credit_balance_exhausted", FailureClass::Billing),
    ("terminal_quota_exhausted", FailureClass::Billing),
    ("invalid_api_key", FailureClass::Auth),
    ("invalid_token", FailureClass::Auth),
    ("token_expired", FailureClass::Auth),
    ("token_invalidated", FailureClass::Auth),
    ("token_revoked", FailureClass::Auth),
    ("model_not_found", FailureClass::ModelNotFound),
    ("model_not_available", FailureClass::ModelNotFound),
    ("content_filter", FailureClass::ContentPolicy),
    ("content_policy_violation", FailureClass::ContentPolicy),
    ("responsibleaipolicyviolation", FailureClass::ContentPolicy),
    ("new_sensitive", FailureClass::ContentPolicy),
    ("upstream_unavailable", FailureClass::Overloaded),
    ("prefill_memory_exceeded", FailureClass::Overloaded),
    ("overloaded_error", FailureClass::Overloaded),
];

/// Codes that only name a group; a status is more precise than they are.
const BROAD_CODES: &[(&str, FailureClass)] = &[
    ("authentication_error", FailureClass::Auth),
    ("unauthenticated", FailureClass::Auth),
    ("unauthorized", FailureClass::Auth),
    ("permission_error", FailureClass::Forbidden),
    ("permission_denied", FailureClass::Forbidden),
    ("billing_error", FailureClass::Billing),
    ("rate_limit_exceeded", FailureClass::RateLimit),
    ("rate_limit_error", FailureClass::RateLimit),
    ("rate_limited", FailureClass::RateLimit),
    ("resource_exhausted", FailureClass::RateLimit),
    ("too_many_requests", FailureClass::RateLimit),
    ("overloaded", FailureClass::Overloaded),
    ("unavailable", FailureClass::Overloaded),
    ("server_error", FailureClass::ServerError),
    ("api_error", FailureClass::ServerError),
    ("upstream_error", FailureClass::ServerError),
    ("internal", FailureClass::ServerError),
    ("internal_error", FailureClass::ServerError),
    ("internal_server_error", FailureClass::ServerError),
    ("timeout", FailureClass::Timeout),
    ("timeout_error", FailureClass::Timeout),
    ("deadline_exceeded", FailureClass::Timeout),
    ("not_found_error", FailureClass::ModelNotFound),
    ("request_too_large", FailureClass::PayloadTooLarge),
    ("unsupported_parameter", FailureClass::BadRequest),
    ("invalid_request_error", FailureClass::BadRequest),
    ("invalid_argument", FailureClass::BadRequest),
];

const CONTEXT: &[&str] = &[
    "context length",
    "context size",
    "context window",
    "context_length",
    "maximum context",
    "token limit",
    "too many tokens",
    "prompt is too long",
    "input is too long",
    "max_model_len",
    "slot context",
    "n_ctx",
    "tokens in request more than max tokens allowed",
    "maximum allowed input length",
    "exceeds the available context",
    "maximum number of tokens",
    "超过最大长度",
    "上下文长度",
];
const BILLING: &[&str] = &[
    "insufficient credits",
    "insufficient balance",
    "insufficient_quota",
    "insufficient quota",
    "exceeded your current quota",
    "out of funds",
    "key limit exceeded",
    "spending limit",
    "not available on the free tier",
    "credit balance is too low",
    "requires more credits",
    "billing hard limit",
    "out of extra usage",
    "payment required",
];
const OVERLOADED: &[&str] =
    &["overloaded", "at capacity", "out of memory", "memory guard", "model is loading", "loading model"];
const RATE: &[&str] = &[
    "rate limit",
    "rate-limit",
    "ratelimit",
    "too many requests",
    "throttl",
    "resource_exhausted",
    "resource has been exhausted",
    "tokens per minute",
    "requests per minute",
];
const AUTH: &[&str] = &[
    "invalid api key",
    "incorrect api key",
    "invalid_api_key",
    "api key not valid",
    "no api key",
    "missing api key",
    "unauthorized",
    "token expired",
    "token has expired",
    "access denied",
    "authentication",
    "user not found",
];
const POLICY: &[&str] = &[
    "content policy",
    "content_policy",
    "content management policy",
    "content_filter",
    "flagged as",
    "was flagged",
    "moderation",
    "responsibleaipolicyviolation",
    "safety system",
    "usage policies",
    "usage policy",
];
const MODEL: &[&str] = &[
    "model not found",
    "model_not_found",
    "is not a valid model",
    "no such model",
    "unknown model",
    "invalid model",
    "unsupported model",
    "no endpoints found",
    "model not exist",
];
const OUTPUT_CAP: &[&str] = &["max_tokens", "max_completion_tokens", "max tokens", "max_output_tokens"];
const OUTPUT_CAP_VERB: &[&str] = &[
    "available",
    "should be",
    "must be",
    "too large",
    "at most",
    "less than",
    "range of",
    "maximum allowed",
];
const NO_STREAM: &[&str] = &[
    "streaming is not supported",
    "streaming not supported",
    "does not support stream",
    "doesn't support stream",
    "stream is not supported",
    "stream not supported",
    "unsupported value: 'stream'",
    "streaming is unsupported",
    "must be verified to stream",
    "stream_options is not supported",
];
const BAD_PARAMETER: &[&str] = &[
    "unsupported parameter",
    "unknown parameter",
    "unrecognized request argument",
    "extra inputs are not permitted",
    "request validation failed",
];
const FIREWALL: &[&str] = &[
    "attention required",
    "cf_chl",
    "just a moment",
    "request was blocked",
    "you have been blocked",
    "access denied",
];
const TIMEOUT: &[&str] = &["timed out", "timeout", "deadline exceeded"];
const SERVER: &[&str] = &[
    "internal server error",
    "internal error",
    "server error",
    "bad gateway",
    "service unavailable",
    "upstream error",
    "empty response",
];
const LIMIT_RESETS: &[&str] = &["try again", "resets", "window", "usage limit"];

/// The kind of the failure that `facts` tell of. `streaming`: the request asked for a stream.
pub(crate) fn classify(facts: &ErrorFacts, streaming: bool) -> FailureClass {
    if let Some(class) = by_code(facts, PRECISE_CODES) {
        return class;
    }
    let text = facts.message.to_lowercase();
    if let Some(class) = facts.status.and_then(|status| by_status(status, facts, &text, streaming)) {
        return class;
    }
    by_code(facts, BROAD_CODES)
        .filter(|class| *class != FailureClass::BadRequest)
        .or_else(|| by_text(&text, streaming))
        .or_else(|| by_code(facts, BROAD_CODES))
        .unwrap_or(FailureClass::Unknown)
}

fn by_code(facts: &ErrorFacts, table: &[(&str, FailureClass)]) -> Option<FailureClass> {
    facts.codes.iter().find_map(|code| table.iter().find(|(name, _)| name == code)).map(|(_, class)| *class)
}

fn by_status(status: u16, facts: &ErrorFacts, text: &str, streaming: bool) -> Option<FailureClass> {
    let says = |phrases: &[&str]| phrases.iter().any(|phrase| text.contains(phrase));
    Some(match status {
        401 => FailureClass::Auth,
        402 if says(LIMIT_RESETS) => FailureClass::RateLimit,
        402 => FailureClass::Billing,
        403 if says(BILLING) => FailureClass::Billing,
        403 if facts.is_html && says(FIREWALL) => FailureClass::UpstreamBlocked,
        403 if says(POLICY) => FailureClass::ContentPolicy,
        403 => FailureClass::Forbidden,
        404 if says(BILLING) => FailureClass::Billing,
        404 if is_about_a_model(text) || by_code(facts, BROAD_CODES) == Some(FailureClass::ModelNotFound) => {
            FailureClass::ModelNotFound
        }
        300..=399 | 404 | 405 => FailureClass::WrongEndpoint,
        408 => FailureClass::Timeout,
        413 if says(CONTEXT) => FailureClass::ContextOverflow,
        413 => FailureClass::PayloadTooLarge,
        429 if says(BILLING) => FailureClass::Billing,
        429 if says(OVERLOADED) => FailureClass::Overloaded,
        429 => FailureClass::RateLimit,
        400..=499 => by_text(text, streaming)
            .filter(|class| !matches!(class, FailureClass::Timeout | FailureClass::ServerError))
            .unwrap_or(FailureClass::BadRequest),
        503 | 529 => FailureClass::Overloaded,
        500..=599 if says(CONTEXT) => FailureClass::ContextOverflow,
        500..=599 if says(BAD_PARAMETER) => FailureClass::BadRequest,
        500..=599 if says(OVERLOADED) => FailureClass::Overloaded,
        500..=599 => FailureClass::ServerError,
        _ => return None,
    })
}

fn by_text(text: &str, streaming: bool) -> Option<FailureClass> {
    let says = |phrases: &[&str]| phrases.iter().any(|phrase| text.contains(phrase));
    let is_output_cap = says(OUTPUT_CAP) && says(OUTPUT_CAP_VERB);
    // "max_tokens" inside a text about the whole window is not about the cap.
    let class = if is_output_cap && !says(CONTEXT) {
        FailureClass::OutputCap
    } else if says(BAD_PARAMETER) {
        FailureClass::BadRequest
    } else if says(OVERLOADED) {
        FailureClass::Overloaded
    } else if says(CONTEXT) {
        FailureClass::ContextOverflow
    } else if says(POLICY) {
        FailureClass::ContentPolicy
    } else if is_about_a_model(text) {
        FailureClass::ModelNotFound
    } else if streaming && says(NO_STREAM) {
        FailureClass::StreamingUnsupported
    } else if says(BILLING) {
        FailureClass::Billing
    } else if says(RATE) {
        FailureClass::RateLimit
    } else if says(AUTH) {
        FailureClass::Auth
    } else if says(TIMEOUT) {
        FailureClass::Timeout
    } else if says(SERVER) {
        FailureClass::ServerError
    } else {
        return None;
    };
    Some(class)
}

/// "does not exist" and "not found" are said of many things; here only of a model.
fn is_about_a_model(text: &str) -> bool {
    let is_missing =
        text.contains("does not exist") || text.contains("not found") || text.contains("try pulling");
    MODEL.iter().any(|phrase| text.contains(phrase)) || (is_missing && text.contains("model"))
}

#[cfg(test)]
mod tests {
    use super::FailureClass as Class;
    use super::*;

    /// Status, body and class, as servers really answer.
    const CORPUS: &[(Option<u16>, &str, Class)] = &[
        (
            Some(401),
            r#"{"error":{"message":"Incorrect API key provided: sk-x","type":"invalid_request_error","code":"invalid_api_key"}}"#,
            Class::Auth,
        ),
        (Some(401), "<html><title>401</title></html>", Class::Auth),
        (Some(402), r#"{"error":{"message":"Insufficient credits","code":402}}"#, Class::Billing),
        (Some(402), r#"{"error":{"message":"usage limit reached, try again in 3 hours"}}"#, Class::RateLimit),
        (Some(403), r#"{"error":{"message":"Key limit exceeded","code":403}}"#, Class::Billing),
        (
            Some(403),
            "<html><head><title>Attention Required! | Cloudflare</title></head></html>",
            Class::UpstreamBlocked,
        ),
        (Some(403), r#"{"error":{"message":"Your input was flagged by moderation"}}"#, Class::ContentPolicy),
        (Some(403), r#"{"error":{"code":"upstream_unavailable","message":"x"}}"#, Class::Overloaded),
        (Some(403), "no", Class::Forbidden),
        (
            Some(404),
            r#"{"error":{"message":"The model `gpt-9` does not exist","code":"model_not_found"}}"#,
            Class::ModelNotFound,
        ),
        (
            Some(404),
            r#"{"error":{"message":"model \"llama9\" not found, try pulling it first"}}"#,
            Class::ModelNotFound,
        ),
        (
            Some(404),
            r#"{"error":{"message":"No endpoints found that support tool use."}}"#,
            Class::ModelNotFound,
        ),
        (Some(404), r#"{"detail":"Not Found"}"#, Class::WrongEndpoint),
        (Some(404), "404 page not found", Class::WrongEndpoint),
        (Some(405), "", Class::WrongEndpoint),
        (Some(308), "", Class::WrongEndpoint),
        (Some(408), "", Class::Timeout),
        (Some(413), "request entity too large", Class::PayloadTooLarge),
        (Some(413), r#"{"error":{"message":"prompt is too long"}}"#, Class::ContextOverflow),
        (Some(422), r#"{"detail":[{"msg":"Extra inputs are not permitted"}]}"#, Class::BadRequest),
        (
            Some(429),
            r#"{"error":{"message":"You exceeded your current quota","code":"insufficient_quota"}}"#,
            Class::Billing,
        ),
        (Some(429), r#"{"error":{"message":"The engine is currently overloaded"}}"#, Class::Overloaded),
        (
            Some(429),
            r#"{"error":{"message":"Rate limit reached for gpt-4o in organization org-503 on tokens per min"}}"#,
            Class::RateLimit,
        ),
        (Some(429), "", Class::RateLimit),
        (
            Some(400),
            r#"{"error":{"message":"This model's maximum context length is 8192 tokens. However, your messages resulted in 9000 tokens.","type":"invalid_request_error","code":"context_length_exceeded"}}"#,
            Class::ContextOverflow,
        ),
        (
            Some(400),
            r#"{"error":{"message":"the request exceeds the available context size, try increasing it","type":"exceed_context_size_error"}}"#,
            Class::ContextOverflow,
        ),
        (Some(400), r#"{"error":{"message":"max_tokens must be at most 4096"}}"#, Class::OutputCap),
        (
            Some(400),
            r#"{"error":{"message":"'max_tokens' is too large: 65536. This model's maximum context length is 32768 tokens"}}"#,
            Class::ContextOverflow,
        ),
        (
            Some(400),
            r#"{"error":{"message":"Unsupported parameter: 'max_tokens' is not supported with this model."}}"#,
            Class::BadRequest,
        ),
        (
            Some(400),
            r#"{"error":{"message":"streaming is not supported for this model"}}"#,
            Class::StreamingUnsupported,
        ),
        (Some(400), r#"{"error":{"message":"foo is not a valid model ID"}}"#, Class::ModelNotFound),
        (
            Some(400),
            r#"{"error":{"message":"The response was filtered due to the prompt triggering content management policy","code":"content_filter"}}"#,
            Class::ContentPolicy,
        ),
        (Some(400), r#"{"error":{"message":"messages.1: roles must alternate"}}"#, Class::BadRequest),
        (Some(400), "", Class::BadRequest),
        (
            Some(500),
            r#"{"error":{"message":"injected failure 500","type":"injected","code":500}}"#,
            Class::ServerError,
        ),
        (Some(500), r#"{"error":{"message":"Unsupported parameter: foo"}}"#, Class::BadRequest),
        (Some(502), "<html><head><title>502 Bad Gateway</title></head></html>", Class::ServerError),
        (Some(503), "", Class::Overloaded),
        (
            Some(529),
            r#"{"type":"error","error":{"type":"overloaded_error","message":"Overloaded"}}"#,
            Class::Overloaded,
        ),
        (None, r#"{"error":{"message":"boom","code":502}}"#, Class::ServerError),
        (None, r#"{"error":{"message":"slow","type":"rate_limit_error"}}"#, Class::RateLimit),
        (
            None,
            r#"{"error":{"message":"prompt is too long: 9 > 8","type":"invalid_request_error"}}"#,
            Class::ContextOverflow,
        ),
        (None, r#"{"error":{"message":"strange","type":"invalid_request_error"}}"#, Class::BadRequest),
        (None, r#"{"error":{"message":"overloaded","code":"overloaded"}}"#, Class::Overloaded),
        (None, r#"{"error":"request id 429-500 of user 401"}"#, Class::Unknown),
        (None, "", Class::Unknown),
    ];

    #[test]
    fn the_corpus_is_classified_as_recorded() {
        for (status, body, class) in CORPUS {
            let mut facts = ErrorFacts::from_body(*status, body.as_bytes());
            facts.status = facts.status.or(*status);
            assert_eq!(classify(&facts, true), *class, "{status:?} {body}");
        }
    }

    #[test]
    fn a_refusal_to_stream_only_counts_when_a_stream_was_asked_for() {
        let facts = ErrorFacts::from_body(Some(400), b"streaming is not supported");
        assert_eq!(classify(&facts, true), Class::StreamingUnsupported);
        assert_eq!(classify(&facts, false), Class::BadRequest);
    }
}
