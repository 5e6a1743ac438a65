//! What an error says: its text, code and type, dug out of whatever shape it came in.

use serde_json::Value;

use crate::sse::without_bom;

/// What is known of an error, before it is classified.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub(crate) struct ErrorFacts {
    pub(crate) status: Option<u16>,
    /// Machine-readable names: `code`, `type`, `status`, in lower case. Never a number.
    pub(crate) codes: Vec<String>,
    /// The text for people.
    pub(crate) message: String,
    /// It came as a web page.
    pub(crate) is_html: bool,
    /// It came from a server behind an aggregator, whose own message this wraps.
    pub(crate) is_upstream: bool,
}

impl ErrorFacts {
    /// Reads the body of an HTTP error.
    pub(crate) fn from_body(status: Option<u16>, body: &[u8]) -> Self {
        let body = without_bom(body);
        let text = String::from_utf8_lossy(body);
        let trimmed = text.trim();
        if trimmed.starts_with('<') {
            let message = html_title(trimmed).unwrap_or_else(|| "a web page without a title".to_owned());
            return Self { status, message, is_html: true, ..Self::default() };
        }
        match serde_json::from_str::<Value>(&hermes_core::scrub_surrogates(trimmed)) {
            Ok(value) => {
                let facts = Self::from_value(&value);
                // The real status beats the one that the body repeats.
                Self { status: status.or(facts.status), ..facts }
            }
            Err(_) => Self { status, message: trimmed.to_owned(), ..Self::default() },
        }
    }

    /// Reads an error object, or a body that holds one. Its numeric code becomes the status.
    pub(crate) fn from_value(value: &Value) -> Self {
        let mut facts = Self::default();
        facts.read(value, 0);
        facts
    }

    fn read(&mut self, value: &Value, depth: u8) {
        /// Aggregators wrap the server's error, which may hold JSON in its text: never deeper than that.
        const MAX_DEPTH: u8 = 5;
        if depth > MAX_DEPTH {
            return;
        }
        match value {
            Value::String(text) => match serde_json::from_str::<Value>(text) {
                Ok(inner @ Value::Object(_)) => self.read(&inner, depth + 1),
                _ => self.say(text),
            },
            Value::Array(items) => {
                for item in items.iter().take(3) {
                    self.read(item, depth + 1);
                }
            }
            Value::Object(fields) => {
                for name in ["code", "type", "status"] {
                    match fields.get(name) {
                        Some(Value::Number(number)) => self.note_status(number.as_u64()),
                        Some(Value::String(text)) => match text.trim().parse::<u64>() {
                            Ok(number) => self.note_status(Some(number)),
                            Err(_) => self.codes.push(text.trim().to_lowercase()),
                        },
                        _ => {}
                    }
                }
                // What the server behind an aggregator says is more to the point than its wrapping.
                if let Some(metadata) = fields.get("metadata") {
                    if metadata.get("provider_name").is_some() || metadata.get("raw").is_some() {
                        self.is_upstream = true;
                    }
                    if let Some(raw) = metadata.get("raw") {
                        self.read(raw, depth + 1);
                    }
                }
                for name in ["error", "message", "detail", "errorMessage", "error_message", "msg", "reason"] {
                    if let Some(inner) = fields.get(name) {
                        self.read(inner, depth + 1);
                    }
                }
            }
            _ => {}
        }
    }

    fn note_status(&mut self, number: Option<u64>) {
        let status = number.and_then(|number| u16::try_from(number).ok()).filter(|n| (300..600).contains(n));
        self.status = self.status.or(status);
    }

    fn say(&mut self, text: &str) {
        let text = text.trim();
        let is_new = !text.is_empty() && !self.message.contains(text);
        if is_new && self.message.is_empty() {
            text.clone_into(&mut self.message);
        } else if is_new {
            self.message.push_str(": ");
            self.message.push_str(text);
        }
    }

    /// One line for people: status and text.
    pub(crate) fn line(&self) -> String {
        let page = if self.is_html { "the server answered with a web page: " } else { "" };
        let text = if self.message.is_empty() {
            self.codes.first().map_or("no further text", String::as_str)
        } else {
            self.message.as_str()
        };
        match self.status {
            Some(status) => format!("HTTP {status}: {page}{text}"),
            None => format!("{page}{text}"),
        }
    }
}

/// The title of a web page, else its first heading.
pub(crate) fn html_title(page: &str) -> Option<String> {
    /// Pages that hide their title behind more than this are not worth reading on.
    const SEARCHED_BYTES: usize = 64 << 10;
    let head: String = page.chars().take(SEARCHED_BYTES).collect();
    // ASCII only, so that byte positions stay those of `head`.
    let lower = head.to_ascii_lowercase();
    ["title", "h1"].iter().find_map(|tag| {
        let open = lower.find(&format!("<{tag}"))?;
        let start = open + lower.get(open..)?.find('>')? + 1;
        let end = start + lower.get(start..)?.find(&format!("</{tag}"))?;
        let inner = head.get(start..end)?;
        let text = unescape(&without_tags(inner)).split_whitespace().collect::<Vec<_>>().join(" ");
        (!text.is_empty()).then_some(text)
    })
}

fn without_tags(text: &str) -> String {
    let mut in_tag = false;
    text.chars()
        .filter(|character| {
            match character {
                '<' => in_tag = true,
                '>' if in_tag => {
                    in_tag = false;
                    return false;
                }
                _ => {}
            }
            !in_tag
        })
        .collect()
}

fn unescape(text: &str) -> String {
    [("&lt;", "<"), ("&gt;", ">"), ("&quot;", "\""), ("&#39;", "'"), ("&nbsp;", " "), ("&amp;", "&")]
        .iter()
        .fold(text.to_owned(), |text, (entity, character)| text.replace(entity, character))
}

#[cfg(test)]
mod tests {
    use pretty_assertions::assert_eq;

    use super::*;

    fn facts(body: &str) -> (Option<u16>, Vec<String>, String) {
        let facts = ErrorFacts::from_body(None, body.as_bytes());
        (facts.status, facts.codes, facts.message)
    }

    #[test]
    fn errors_are_read_in_every_known_shape() {
        let cases = [
            (
                r#"{"error":{"message":"no","type":"invalid_request_error","code":null}}"#,
                None,
                &["invalid_request_error"][..],
                "no",
            ),
            (r#"{"error":{"message":"no","code":429}}"#, Some(429), &[], "no"),
            (r#"{"error":{"message":"no","code":"429"}}"#, Some(429), &[], "no"),
            (r#"{"error":"plain"}"#, None, &[], "plain"),
            (
                r#"{"object":"error","message":"vllm","type":"BadRequestError","code":400}"#,
                Some(400),
                &["badrequesterror"],
                "vllm",
            ),
            (r#"{"detail":"Not Found"}"#, None, &[], "Not Found"),
            (
                r#"{"detail":[{"msg":"field required","type":"value_error.missing"}]}"#,
                None,
                &["value_error.missing"],
                "field required",
            ),
            (r#"{"errorMessage":"boo"}"#, None, &[], "boo"),
            (
                r#"[{"error":{"code":400,"message":"gemini","status":"INVALID_ARGUMENT"}}]"#,
                Some(400),
                &["invalid_argument"],
                "gemini",
            ),
            (
                r#"{"error":{"message":"Provider returned error","code":429,"metadata":{"raw":"{\"error\":{\"message\":\"slow down\",\"code\":\"rate_limited\"}}","provider_name":"X"}}}"#,
                Some(429),
                &["rate_limited"],
                "slow down: Provider returned error",
            ),
            (
                r#"{"error":{"message":"{\"error\":{\"message\":\"inner\",\"type\":\"server_error\"}}"}}"#,
                None,
                &["server_error"],
                "inner",
            ),
            ("just text\n", None, &[], "just text"),
            ("", None, &[], ""),
        ];
        for (body, status, codes, message) in cases {
            let codes: Vec<String> = codes.iter().map(|&code| code.to_owned()).collect();
            assert_eq!(facts(body), (status, codes, message.to_owned()), "{body}");
        }
    }

    #[test]
    fn of_a_web_page_only_the_title_is_kept() {
        let page = "<!DOCTYPE html>\n<html><head><TITLE lang=en>502 Bad\n Gateway &amp; more</TITLE></head><body>x</body>";
        let facts = ErrorFacts::from_body(Some(502), page.as_bytes());
        assert!(facts.is_html);
        assert_eq!(facts.line(), "HTTP 502: the server answered with a web page: 502 Bad Gateway & more");
        assert_eq!(html_title("<html><h1>Hi <b>you</b></h1>").as_deref(), Some("Hi you"));
        assert_eq!(html_title("<html><title></title>"), None);
        assert_eq!(html_title("<title"), None);
    }

    #[test]
    fn text_that_nests_for_ever_ends() {
        let mut body = "\"x\"".to_owned();
        for _ in 0..10 {
            body = serde_json::json!({ "error": { "message": body } }).to_string();
        }
        assert_eq!(ErrorFacts::from_body(None, body.as_bytes()).status, None);
    }
}
