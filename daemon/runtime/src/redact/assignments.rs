//! Secrets that the name they are assigned to gives away: `API_KEY=…`, `"password": "…"`, `Authorization: Bearer …`,
//! `?token=…` (spec 40 §10.3).
//!
//! A name alone proves little: code is full of `token = next()` and `password: String`. So what stands behind it must
//! look like a value, not like an expression, a type, a word or a placeholder. Where a line is an environment
//! assignment (`NAME=value`), nearly any value counts.

use std::sync::LazyLock;

use aho_corasick::AhoCorasick;

use super::Span;
use super::mask::holds_mask;
use super::scan::{before, run_end, run_start};

/// Parts of names that may mean a secret; each hit is then looked at as a whole name.
const HINTS: [&str; 8] = ["key", "token", "secret", "pass", "pwd", "credential", "authorization", "bearer"];

/// Words that, before `key`, make it a secret.
const SECRET_KEYS: [&str; 22] = [
    "access",
    "account",
    "admin",
    "api",
    "app",
    "auth",
    "bot",
    "client",
    "deploy",
    "encryption",
    "license",
    "master",
    "private",
    "secret",
    "service",
    "session",
    "shared",
    "signing",
    "storage",
    "subscription",
    "webhook",
    "write",
];

/// Words that, before `token`, make it none: pages and positions.
const HARMLESS_TOKENS: [&str; 22] = [
    "bos",
    "cls",
    "continuation",
    "cursor",
    "end",
    "eos",
    "finish",
    "first",
    "last",
    "mask",
    "max",
    "min",
    "next",
    "pad",
    "page",
    "prev",
    "resume",
    "sep",
    "start",
    "stop",
    "sync",
    "unk",
];

/// Words that, before `KEY` in an environment name, make it none.
const HARMLESS_KEYS: [&str; 12] = [
    "cache",
    "foreign",
    "group",
    "hot",
    "index",
    "partition",
    "primary",
    "public",
    "registry",
    "routing",
    "sort",
    "unique",
];

/// Values that say that there is a secret, not which.
const WORDS: [&str; 22] = [
    "true",
    "false",
    "null",
    "none",
    "nil",
    "undefined",
    "string",
    "str",
    "text",
    "secret",
    "password",
    "token",
    "required",
    "optional",
    "basic",
    "bearer",
    "changeme",
    "redacted",
    "hidden",
    "masked",
    "include",
    "omit",
];

static SEARCH: LazyLock<Option<AhoCorasick>> = LazyLock::new(|| {
    // Building fails only beyond sizes that no such list reaches.
    AhoCorasick::builder().ascii_case_insensitive(true).build(HINTS).ok()
});

/// How a value stands in the text, which decides how much proof it needs.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Form {
    /// `NAME=value` at the beginning of a word, in capitals.
    Environment,
    /// In quotes.
    Quoted,
    /// `name: value` to the end of the line or of the surrounding quotes.
    Line,
    /// `name=value` within a line.
    Inline,
    /// `?name=value&…` in a URL or a form.
    Query,
}

pub(super) fn find(text: &str, spans: &mut Vec<Span<'_>>) {
    let Some(search) = &*SEARCH else { return };
    let bytes = text.as_bytes();
    let mut done = 0;
    for hit in search.find_iter(text) {
        // Several hints may stand in one name, or in the value of the name before.
        if hit.start() < done {
            continue;
        }
        let (start, end) = name_around(bytes, hit.start(), hit.end());
        let Some(name) = text.get(start..end) else { continue };
        done = end;
        // The user part of a URL is looked at as such.
        if bytes.get(..start).is_some_and(|head| head.ends_with(b"://")) {
            continue;
        }
        let lower = name.to_ascii_lowercase();
        let value = if lower == "bearer" {
            bearer(text, end)
        } else if lower.ends_with("authorization") {
            separator(bytes, end).and_then(|separator| authorization(text, separator.end))
        } else if names_secret(name) {
            separator(bytes, end).and_then(|separator| assigned(text, (start, end), separator))
        } else {
            None
        };
        if let Some((from, to)) = value.filter(|(from, to)| from < to) {
            let label = if names_password(name) { "password" } else { "secret" };
            spans.push(Span { start: from, end: to, label, opaque: false });
            done = to;
        }
    }
}

fn is_name(byte: u8) -> bool {
    byte.is_ascii_alphanumeric() || matches!(byte, b'_' | b'-' | b'.')
}

/// The whole name around a hint.
fn name_around(bytes: &[u8], start: usize, end: usize) -> (usize, usize) {
    let mut from = run_start(bytes, start, is_name);
    // Text inside JSON: the `n` of `\nAPI_KEY` is no part of the name.
    if before(bytes, from) == Some(b'\\')
        && matches!(bytes.get(from), Some(b'n' | b'r' | b't'))
        && from < start
    {
        from += 1;
    }
    // Options (`--api-key`) and trailing dots.
    from += run_end(bytes, from, |byte| matches!(byte, b'-' | b'.')) - from;
    let to = run_end(bytes, end, |byte| is_name(byte) && byte != b'.');
    (from.min(start), to)
}

/// The words of a name, in lower case, without digits at the end: `awsSecretKey2` → aws, secret, key.
fn words(name: &str) -> Vec<String> {
    let mut words: Vec<String> = Vec::new();
    let mut previous_lower = false;
    for c in name.chars() {
        let is_break = !c.is_ascii_alphanumeric();
        if is_break || (c.is_ascii_uppercase() && previous_lower) || words.is_empty() {
            words.push(String::new());
        }
        if let (false, Some(word)) = (is_break, words.last_mut()) {
            word.push(c.to_ascii_lowercase());
        }
        previous_lower = c.is_ascii_lowercase();
    }
    for word in &mut words {
        word.truncate(word.trim_end_matches(|c: char| c.is_ascii_digit()).len());
    }
    words.retain(|word| !word.is_empty());
    words
}

/// Whether a name is that of a password, which may have any shape.
pub(super) fn names_password(name: &str) -> bool {
    let words = words(name);
    let Some(last) = words.last() else { return false };
    ["password", "passwd", "passphrase"].iter().any(|ending| last.ends_with(ending))
        || (last == "pwd" && words.len() > 1)
        || (last == "pass" && words.len() > 1)
}

/// Whether a name is that of a secret.
fn names_secret(name: &str) -> bool {
    if names_password(name) {
        return true;
    }
    let words = words(name);
    let Some((last, head)) = words.split_last() else { return false };
    let previous = head.last().map(String::as_str);
    let is_capitals = is_environment_name(name);
    match last.as_str() {
        "secret" | "credential" | "credentials" => true,
        "token" => !previous.is_some_and(|word| HARMLESS_TOKENS.contains(&word)),
        "key" if is_capitals => previous.is_some_and(|word| !HARMLESS_KEYS.contains(&word)),
        "key" => previous.is_some_and(|word| SECRET_KEYS.contains(&word)),
        // SECRET_KEY_BASE
        "base" => head.ends_with(&["secret".to_owned(), "key".to_owned()]),
        joined => {
            let before_token =
                joined.strip_suffix("token").is_some_and(|word| !HARMLESS_TOKENS.contains(&word));
            let before_key = joined.strip_suffix("key").is_some_and(|word| SECRET_KEYS.contains(&word));
            before_token || before_key || joined.ends_with("secret")
        }
    }
}

fn is_environment_name(name: &str) -> bool {
    name.bytes().all(|byte| byte.is_ascii_uppercase() || byte.is_ascii_digit() || byte == b'_')
        && name.bytes().any(|byte| byte.is_ascii_uppercase())
}

/// What stands between a name and its value.
#[derive(Debug, Clone, Copy)]
struct Separator {
    /// `=` or `:`.
    sign: u8,
    /// No space around it, and no quote or bracket before it.
    tight: bool,
    end: usize,
}

/// Reads `"name": `, `name = `, `name := `, `["name"] => ` from the end of the name on.
fn separator(bytes: &[u8], from: usize) -> Option<Separator> {
    const MAX_BLANKS: usize = 16;
    let blanks = |at: usize| {
        let end = run_end(bytes, at, |byte| matches!(byte, b' ' | b'\t'));
        (end - at <= MAX_BLANKS).then_some(end)
    };
    let mut at = from;
    if bytes.get(at) == Some(&b'\\') && matches!(bytes.get(at + 1), Some(b'"' | b'\'')) {
        at += 1;
    }
    if matches!(bytes.get(at), Some(b'"' | b'\'' | b'`')) {
        at += 1;
    }
    if bytes.get(at) == Some(&b']') {
        at += 1;
    }
    let closed = at;
    let at = blanks(at)?;
    let (sign, after) = match (bytes.get(at), bytes.get(at + 1)) {
        // Comparisons and paths are no assignments.
        (Some(b'='), Some(b'=' | b'~')) | (Some(b':'), Some(b':')) => return None,
        (Some(b'='), Some(b'>')) | (Some(b':'), Some(b'=')) => (b'=', at + 2),
        (Some(&sign @ (b'=' | b':')), _) => (sign, at + 1),
        _ => return None,
    };
    let end = blanks(after)?;
    Some(Separator { sign, tight: closed == from && at == closed && end == after, end })
}

/// The value after `Authorization:`, past the quote and the scheme.
fn authorization(text: &str, from: usize) -> Option<(usize, usize)> {
    let bytes = text.as_bytes();
    let quoted = opening_quote(bytes, from).map_or(from, |(_, inside)| inside);
    let scheme_end = run_end(bytes, quoted, |byte| byte.is_ascii_alphanumeric() || byte == b'-');
    let start = run_end(bytes, scheme_end, |byte| byte == b' ');
    let (start, has_scheme) =
        if start > scheme_end && scheme_end > quoted { (start, true) } else { (quoted, false) };
    let end = run_end(bytes, start, is_header_value);
    let value = text.get(start..end)?;
    let counts = if has_scheme { is_credential(value) } else { is_plausible(value) };
    counts.then_some((start, end))
}

/// The token after the word `Bearer`.
fn bearer(text: &str, from: usize) -> Option<(usize, usize)> {
    let bytes = text.as_bytes();
    let start = run_end(bytes, from, |byte| byte == b' ');
    let end = run_end(bytes, start, is_header_value);
    let value = text.get(start..end)?;
    (start > from && value.len() >= 16 && is_plausible(value)).then_some((start, end))
}

fn is_header_value(byte: u8) -> bool {
    byte.is_ascii_graphic()
        && !matches!(byte, b'"' | b'\'' | b'`' | b',' | b';' | b'<' | b'>' | b'\\' | b')' | b'}')
}

/// The quote at a position, and where its inside begins. Inside JSON text quotes are escaped.
fn opening_quote(bytes: &[u8], at: usize) -> Option<(u8, usize)> {
    match (bytes.get(at), bytes.get(at + 1)) {
        (Some(&quote @ (b'"' | b'\'' | b'`')), _) => Some((quote, at + 1)),
        (Some(b'\\'), Some(&quote @ (b'"' | b'\''))) => Some((quote, at + 2)),
        _ => None,
    }
}

/// The value that is assigned to a secret's name, if it looks like one.
fn assigned(
    text: &str,
    (name_start, name_end): (usize, usize),
    separator: Separator,
) -> Option<(usize, usize)> {
    let bytes = text.as_bytes();
    let name = text.get(name_start..name_end)?;
    let start = separator.end;
    if let Some((quote, inside)) = opening_quote(bytes, start) {
        let end = run_end(bytes, inside, |byte| !matches!(byte, b'"' | b'\'' | b'`' | b'\n' | b'\r' | b'\\'));
        let value = text.get(inside..end)?;
        // An end of line or another quote before this one closes is some other construct.
        let closes = matches!(bytes.get(end), Some(byte) if *byte == quote || *byte == b'\\');
        let form =
            if separator.tight && is_environment_name(name) { Form::Environment } else { Form::Quoted };
        return (closes && counts(name, value, form)).then_some((inside, end));
    }
    let previous = before(bytes, name_start);
    let end = run_end(bytes, start, |byte| {
        byte.is_ascii_graphic()
            && !matches!(byte, b'"' | b'\'' | b'`' | b',' | b';' | b'<' | b'>' | b'(' | b')' | b'[' | b']')
            && !matches!(byte, b'{' | b'}' | b'|' | b'\\')
    });
    let next = bytes.get(end).copied();
    let form = if separator.tight && separator.sign == b'=' && matches!(previous, Some(b'?' | b'&')) {
        Form::Query
    } else if separator.tight && separator.sign == b'=' && is_environment_name(name) {
        Form::Environment
    } else if separator.sign == b':' && ends_line(bytes, end) {
        Form::Line
    } else {
        Form::Inline
    };
    let end = if matches!(form, Form::Query | Form::Inline) && separator.sign == b'=' {
        run_end(bytes, start, |byte| byte != b'&' && byte != b'#').min(end)
    } else {
        end
    };
    // A call, an index, a path of names: an expression.
    if matches!(next, Some(b'(' | b'[' | b'{' | b'<')) {
        return None;
    }
    counts(name, text.get(start..end)?, form).then_some((start, end))
}

/// Whether nothing but a comment follows on the line, or the quotes around the whole assignment end.
fn ends_line(bytes: &[u8], at: usize) -> bool {
    let end = run_end(bytes, at, |byte| matches!(byte, b' ' | b'\t'));
    match bytes.get(end) {
        None | Some(b'\n' | b'\r' | b'"' | b'\'' | b'\\') => true,
        Some(b'#') => end > at,
        _ => false,
    }
}

/// Whether a value counts as a secret, given how it stands.
fn counts(name: &str, value: &str, form: Form) -> bool {
    if is_lookup(value) || is_placeholder(value) || holds_mask(value) {
        return false;
    }
    let is_password = names_password(name);
    match form {
        Form::Environment if is_password => value.len() >= 3,
        Form::Environment => value.len() >= 6 && !is_location(value) && !is_short_number(value),
        Form::Query => value.len() >= 6 && !value.bytes().all(|byte| byte.is_ascii_alphabetic()),
        Form::Quoted => value.len() >= 6 && !value.contains(char::is_whitespace) && is_plausible(value),
        Form::Line => value.len() >= 6 && is_plausible(value),
        Form::Inline => value.len() >= if is_password { 6 } else { 8 } && is_plausible(value),
    }
}

/// What follows a scheme (`Bearer`, `Basic`): nearly anything but a word.
fn is_credential(value: &str) -> bool {
    let is_word = value.len() < 16 && value.bytes().all(|byte| byte.is_ascii_lowercase());
    value.len() >= 6 && !(is_word || is_lookup(value) || is_placeholder(value))
}

/// Whether a value is taken from somewhere else.
pub(super) fn is_lookup(value: &str) -> bool {
    const BEGINNINGS: [&str; 16] = [
        "$",
        "{",
        "<",
        "%(",
        "%{",
        "#{",
        "@{",
        "process.env",
        "os.environ",
        "os.getenv",
        "env.",
        "env:",
        "ENV[",
        "import.meta",
        "op://",
        "vault:",
    ];
    BEGINNINGS.iter().any(|beginning| value.starts_with(beginning))
}

/// Whether a value only says that something belongs here: `***`, `xxxx`, `your-key`, `NAME_OF_IT`, `changeme`.
pub(super) fn is_placeholder(value: &str) -> bool {
    let lower = value.to_ascii_lowercase();
    let one_sign = value.chars().all(|c| matches!(c, '*' | 'x' | 'X' | '.' | '-' | '_' | '•' | '0' | '?'));
    let a_name = value.contains('_') && value.bytes().all(|byte| byte.is_ascii_uppercase() || byte == b'_');
    one_sign
        || a_name
        || WORDS.contains(&lower.as_str())
        || ["your-", "your_", "my-", "my_", "insert-", "replace", "example"]
            .iter()
            .any(|head| lower.starts_with(head))
}

fn is_location(value: &str) -> bool {
    ["/", "./", "../", "~/", "http://", "https://", "file:"].iter().any(|head| value.starts_with(head))
}

fn is_short_number(value: &str) -> bool {
    value.len() < 8 && value.bytes().all(|byte| byte.is_ascii_digit())
}

/// Whether a value looks drawn or chosen as a secret rather than being a word, a name, a type or a place.
fn is_plausible(value: &str) -> bool {
    if is_lookup(value) || is_placeholder(value) || is_location(value) || value.contains("::") {
        return false;
    }
    let is_letter = |byte: u8| byte.is_ascii_alphabetic();
    let mixed_part = |part: &str| {
        part.len() >= 6 && part.bytes().any(is_letter) && part.bytes().any(|byte| byte.is_ascii_digit())
    };
    let parts = || value.split(|c: char| !c.is_ascii_alphanumeric());
    if parts().any(|part| mixed_part(part) && !is_type_name(part)) {
        return true;
    }
    // Signs that neither names nor paths have.
    let has_sign = value.bytes().any(|byte| {
        matches!(byte, b'!' | b'#' | b'%' | b'^' | b'*' | b'~' | b'+' | b'=' | b'$' | b'?' | b'@')
    });
    if has_sign && value.bytes().any(is_letter) && !value.contains("()") {
        return true;
    }
    // Long mixed case without any separator: base64, not camel case (which has words of several letters).
    parts().any(|part| {
        let changes = part
            .as_bytes()
            .windows(2)
            .filter(|pair| pair.iter().filter(|byte| byte.is_ascii_uppercase()).count() == 1);
        part.len() >= 20 && changes.count() * 3 >= part.len()
    }) || (value.len() >= 8 && value.bytes().all(|byte| byte.is_ascii_digit()))
        || (value.len() >= 24 && value.bytes().all(|byte| byte.is_ascii_lowercase()))
}

/// `Uint8Array`, `Sha256Digest`, `Base64String`: capitalised words with a number between.
fn is_type_name(part: &str) -> bool {
    let digits = part.bytes().filter(u8::is_ascii_digit).count();
    part.len() < 24
        && digits <= 3
        && part.bytes().next().is_some_and(|byte| byte.is_ascii_uppercase())
        && part.bytes().last().is_some_and(|byte| byte.is_ascii_lowercase())
        && part.split(|c: char| c.is_ascii_digit()).filter(|word| !word.is_empty()).all(|word| {
            word.bytes().next().is_some_and(|byte| byte.is_ascii_uppercase())
                && word.bytes().filter(u8::is_ascii_uppercase).count() <= 3
        })
}
