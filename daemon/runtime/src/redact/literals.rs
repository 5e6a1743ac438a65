//! Secrets that are known by their value: those of the scope, in any shape and on any surface.

use aho_corasick::{AhoCorasick, MatchKind};

use super::Span;
use super::assignments::names_password;

/// Shorter values are matched only between characters that belong to no word.
const FREE_FROM: usize = 8;

/// The known values. Not searched before [`built`](Self::built).
#[derive(Clone, Default)]
pub(super) struct Literals {
    values: Vec<String>,
    search: Option<AhoCorasick>,
}

impl Literals {
    /// Takes a value, unless masking it would hurt more than help: `.env` files also hold `true`, `8080` and
    /// addresses, and local servers get keys such as `ollama`.
    pub(super) fn add(&mut self, name: Option<&str>, value: &str) {
        let value = value.trim();
        if !is_worth_masking(name, value) {
            return;
        }
        // The same value as it stands in JSON text and in a URL.
        for form in [value.to_owned(), json_form(value), percent_form(value)] {
            if !self.values.contains(&form) {
                self.values.push(form);
            }
        }
    }

    /// Makes the values searchable.
    pub(super) fn built(mut self) -> Self {
        self.search = (!self.values.is_empty())
            .then(|| AhoCorasick::builder().match_kind(MatchKind::LeftmostLongest).build(&self.values))
            .and_then(|search| {
                search.inspect_err(|error| tracing::error!(%error, "secrets of the scope not searched")).ok()
            });
        self
    }

    pub(super) fn len(&self) -> usize {
        self.values.len()
    }

    pub(super) fn find<'a>(&'a self, text: &str, spans: &mut Vec<Span<'a>>) {
        let Some(search) = &self.search else { return };
        for hit in search.find_iter(text) {
            let (start, end) = (hit.start(), hit.end());
            if end - start < FREE_FROM {
                let is_word = |c: Option<char>| c.is_some_and(char::is_alphanumeric);
                let previous = text.get(..start).and_then(|head| head.chars().next_back());
                let next = text.get(end..).and_then(|tail| tail.chars().next());
                if is_word(previous) || is_word(next) {
                    continue;
                }
            }
            spans.push(Span { start, end, label: "secret", opaque: false });
        }
    }
}

/// Whether a value of this name is a secret that can be told from ordinary words.
fn is_worth_masking(name: Option<&str>, value: &str) -> bool {
    let chars = value.chars().count();
    if name.is_some_and(names_password) {
        // A password is whatever its owner chose.
        return chars >= 6;
    }
    let plain_url = value.contains("://") && !value.contains(['@', '?']);
    if plain_url || value.starts_with('/') || value.starts_with("~/") {
        return false;
    }
    let has_digit = value.bytes().any(|byte| byte.is_ascii_digit());
    let has_letter = value.chars().any(char::is_alphabetic);
    match (has_letter, has_digit) {
        (true, true) => chars >= 8,
        (true, false) => chars >= 16,
        // Numbers of this length are ids and pins, not ports and limits.
        (false, _) => chars >= 8,
    }
}

fn json_form(value: &str) -> String {
    let mut form = String::with_capacity(value.len());
    for c in value.chars() {
        match c {
            '"' => form.push_str("\\\""),
            '\\' => form.push_str("\\\\"),
            '\n' => form.push_str("\\n"),
            '\r' => form.push_str("\\r"),
            '\t' => form.push_str("\\t"),
            c => form.push(c),
        }
    }
    form
}

fn percent_form(value: &str) -> String {
    let mut form = String::with_capacity(value.len());
    for byte in value.bytes() {
        if byte.is_ascii_alphanumeric() || matches!(byte, b'-' | b'_' | b'.' | b'~') {
            form.push(char::from(byte));
        } else {
            let encoded = format!("%{byte:02X}");
            form.push_str(&encoded);
        }
    }
    form
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn ordinary_values_are_no_secrets() {
        for (name, value, expected) in [
            ("OPENAI_API_KEY", "sk-1234567890", true),
            ("DB_PASSWORD", "letmein", true),
            ("DB_PASSWORD", "abc", false),
            ("OLLAMA_API_KEY", "ollama", false),
            ("LM_API_KEY", "lm-studio", false),
            ("DEBUG", "true", false),
            ("PORT", "8080", false),
            ("OLLAMA_BASE_URL", "http://localhost:11434/v1", false),
            ("DATABASE_URL", "postgres://u:p4ssw0rd@h/db", true),
            ("KEY_FILE", "/etc/keys/key1.pem", false),
            ("OWNER", "1234567890", true),
        ] {
            assert_eq!(is_worth_masking(Some(name), value), expected, "{name}={value}");
        }
        assert!(!is_worth_masking(None, "x") && is_worth_masking(None, "abcd1234"));
    }
}
