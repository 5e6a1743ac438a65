//! Which settings look like secrets, and how they are shown (spec 80 §8.5).

use std::borrow::Cow;

use serde_json::Value;

use crate::tree::{Node, Tree};

/// What stands in place of a secret.
pub(crate) const MASK: &str = "***";

/// Last words of a key whose value is a secret.
const SECRET_WORDS: [&str; 12] = [
    "apikey",
    "authorization",
    "cookie",
    "credential",
    "credentials",
    "passphrase",
    "passwd",
    "password",
    "secret",
    "secrets",
    "token",
    "tokens",
];
/// Words that make a secret of a following `key`: `api_key`, `privateKey`, but not `ssh_key` (a path), `record_key`.
const KEY_WORDS: [&str; 9] =
    ["access", "api", "auth", "client", "encryption", "private", "secret", "signing", "subscription"];

/// Whether a key's name says that its value is a secret: `api_key`, `BOT_TOKEN`, `x-auth-token`, `password_hash`;
/// but not `max_tokens`, `key_env` (the name of a variable) or `token_url`.
pub fn is_secret_key(key: &str) -> bool {
    let words = words(key);
    let mut words: &[String] = &words;
    // A hash of a password lets others guess it at leisure.
    if let [head @ .., last] = words
        && last == "hash"
    {
        words = head;
    }
    match words {
        [.., before, last] if last == "key" || last == "keys" => KEY_WORDS.contains(&before.as_str()),
        [head @ .., last] if last == "tokens" => {
            !head.iter().any(|word| matches!(word.as_str(), "max" | "min"))
        }
        [.., last] => SECRET_WORDS.contains(&last.as_str()),
        [] => false,
    }
}

/// Splits `apiKey`, `API_KEY` and `api-key` alike.
fn words(key: &str) -> Vec<String> {
    let mut words = vec![String::new()];
    let mut after_lower = false;
    for c in key.chars() {
        let separator = !c.is_alphanumeric();
        if (separator || (after_lower && c.is_uppercase()))
            && words.last().is_some_and(|word| !word.is_empty())
        {
            words.push(String::new());
        }
        if let Some(word) = words.last_mut().filter(|_| !separator) {
            word.extend(c.to_lowercase());
        }
        after_lower = c.is_lowercase() || c.is_ascii_digit();
    }
    words.retain(|word| !word.is_empty());
    words
}

/// The tree as it may be shown: secrets masked, and templates in place of what they were filled with.
pub(crate) fn masked(node: &Node, under_secret: bool) -> Value {
    match &node.tree {
        Tree::Map(entries) => Value::Object(
            entries
                .iter()
                .map(|(key, node)| (key.clone(), masked(node, under_secret || holds_secret(key, node))))
                .collect(),
        ),
        Tree::List(items) => Value::Array(items.iter().map(|item| masked(item, under_secret)).collect()),
        Tree::Scalar(value) => match (&node.template, value) {
            (Some(template), _) => Value::from(template.as_ref()),
            (None, Value::String(text)) if under_secret && !text.is_empty() => Value::from(MASK),
            // A password of digits.
            (None, Value::Number(_)) if under_secret => Value::from(MASK),
            (None, Value::String(text)) => Value::from(without_url_password(text)),
            (None, other) => other.clone(),
        },
    }
}

/// The value of a dotted key as it may be shown.
pub fn masked_value(key: &str, value: &Value) -> Value {
    let node = Node::from_value(value, &crate::tree::Source::Default);
    let secret = key.split('.').any(is_secret_key) && node.as_map().is_none();
    masked(&node, secret)
}

/// A map under a secret-looking name is a section (`secrets:`), whose own keys decide.
fn holds_secret(key: &str, node: &Node) -> bool {
    is_secret_key(key) && node.as_map().is_none()
}

/// Hides the passwords of all `scheme://user:password@host` in a text.
pub(crate) fn without_url_password(text: &str) -> Cow<'_, str> {
    if !text.contains("://") {
        return Cow::Borrowed(text);
    }
    let pieces: Vec<Cow<'_, str>> = text.split("://").enumerate().map(without_password).collect();
    Cow::Owned(pieces.join("://"))
}

/// Hides the password in what follows a scheme.
fn without_password((position, rest): (usize, &str)) -> Cow<'_, str> {
    let ends = |c: char| c.is_whitespace() || matches!(c, '/' | '?' | '#');
    let authority = rest.split(ends).next().unwrap_or_default();
    let parts = authority.rsplit_once('@').and_then(|(user_info, _)| {
        let (user, _) = user_info.split_once(':')?;
        Some((user, rest.strip_prefix(user_info)?))
    });
    match parts.filter(|_| position > 0) {
        Some((user, tail)) => Cow::Owned(format!("{user}:{MASK}{tail}")),
        None => Cow::Borrowed(rest),
    }
}

/// A value as it may stand in a message: short, on one line, and masked when it may be a secret.
pub(crate) fn shown(key: &str, node: &Node) -> String {
    /// Longest piece of a value that a message repeats.
    const MAX_CHARS: usize = 60;
    let name = key.rsplit('.').next().unwrap_or(key).split('[').next().unwrap_or(key);
    match masked(node, is_secret_key(name)) {
        Value::Object(_) => "a map".to_owned(),
        Value::Array(_) => "a list".to_owned(),
        Value::String(text) => {
            let short: String = text.chars().take(MAX_CHARS).flat_map(char::escape_debug).collect();
            let cut = if text.chars().count() > MAX_CHARS { "…" } else { "" };
            format!("\"{short}{cut}\" (text)")
        }
        other => node.written.as_deref().map_or_else(|| other.to_string(), ToOwned::to_owned),
    }
}

#[cfg(test)]
mod tests {
    use pretty_assertions::assert_eq;
    use serde_json::json;

    use super::*;
    use crate::tree::Source;

    #[test]
    fn names_tell_secrets_from_their_neighbours() {
        for secret in [
            "api_key",
            "apiKey",
            "API_KEY",
            "OPENAI_API_KEY",
            "token",
            "TELEGRAM_BOT_TOKEN",
            "accessToken",
            "password",
            "SUDO_PASSWORD",
            "password_hash",
            "client_secret",
            "Authorization",
            "x-api-key",
            "privateKey",
            "apikey",
        ] {
            assert!(is_secret_key(secret), "{secret}");
        }
        for open in [
            "max_tokens",
            "model.max_tokens",
            "key_env",
            "access_token_env",
            "token_url",
            "ssh_key",
            "record_key",
            "key",
            "skin",
            "copy_shortcut",
            "min_secret_chars",
            "show_token_analytics",
            "keyboard",
            "session_key",
            "",
        ] {
            assert!(!is_secret_key(open), "{open}");
        }
    }

    #[test]
    fn a_shown_tree_holds_no_secret() {
        let value = json!({
            "model": {"api_key": "sk-1", "default": "m", "max_tokens": 5},
            "providers": {"x": {"token": ["a", "b"], "api_key": ""}},
            "secrets": {"onepassword": {"account": "me"}},
            "network": {"proxy": "http://user:pass@proxy:8080/x"},
            "mcp_servers": {"g": {
                "env": {"GITHUB_TOKEN": "ghp", "PIN_PASSWORD": 1234},
                "headers": {"Authorization": "Bearer t"},
            }},
        });
        let expected = json!({
            "model": {"api_key": "***", "default": "m", "max_tokens": 5},
            "providers": {"x": {"token": ["***", "***"], "api_key": ""}},
            "secrets": {"onepassword": {"account": "me"}},
            "network": {"proxy": "http://user:***@proxy:8080/x"},
            "mcp_servers": {"g": {
                "env": {"GITHUB_TOKEN": "***", "PIN_PASSWORD": "***"},
                "headers": {"Authorization": "***"},
            }},
        });
        assert_eq!(masked(&Node::from_value(&value, &Source::Flag), false), expected);
    }

    #[test]
    fn a_filled_template_is_shown_as_the_template() {
        let mut node = Node::text("https://h/?k=sk-1", Source::Flag);
        node.template = Some("https://h/?k=${KEY}".into());
        assert_eq!(masked(&node, false), json!("https://h/?k=${KEY}"));
    }

    #[test]
    fn urls_without_a_password_stay_as_they_are() {
        for url in ["http://proxy:8080", "https://h/a@b:c", "http://user@h/", "a: b@c", "ssh://"] {
            assert_eq!(without_url_password(url), url);
        }
    }

    #[test]
    fn a_message_repeats_only_a_short_harmless_piece() {
        let node = Node::text(&"é\n".repeat(100), Source::Flag);
        let text = shown("a.b", &node);
        assert!(text.chars().count() < 110 && !text.contains('\n'), "{text}");
        assert_eq!(shown("a.api_key", &Node::text("sk", Source::Flag)), "\"***\" (text)");
        assert_eq!(shown("tokens[0]", &Node::text("sk", Source::Flag)), "\"***\" (text)");
    }
}
