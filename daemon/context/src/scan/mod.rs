//! The injection scan: does a text that enters the prompt try to give orders of its own? (spec 20 §6.1)
//!
//! It finds known phrases and invisible characters. It is a mitigation and no security boundary: a cloned
//! repository stays untrusted. Patterns are looked for in lower-cased NFKC text; each is compiled only when one
//! of its key words occurs, so a clean file costs a few passes of plain search.

mod invisible;
mod patterns;

use std::borrow::Cow;

use unicode_normalization::UnicodeNormalization as _;

/// Most characters that [`scan`] looks at.
pub const SCAN_CHARS: usize = 65_536;

/// Which patterns apply. Each scope holds those before it.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum ScanScope {
    All,
    /// Project files, hint files and tool results.
    Context,
    /// What is written to memory and skills.
    Strict,
}

/// One hit.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub struct Finding {
    /// The pattern's name, or `invisible_U+XXXX` with the code point.
    pub id: Cow<'static, str>,
    /// The first line of the hit, from 1.
    pub line: usize,
}

/// Scans the first 65,536 characters of `text`, after a leading byte-order mark. Each pattern is reported once, at
/// its first hit; the order is that of the pattern table, invisible characters first.
pub fn scan(text: &str, scope: ScanScope) -> Vec<Finding> {
    let text = text.strip_prefix('\u{feff}').unwrap_or(text);
    scan_whole(head(text, SCAN_CHARS), scope)
}

/// Scans `text` without a limit; for pieces that are bounded already.
pub(crate) fn scan_whole(text: &str, scope: ScanScope) -> Vec<Finding> {
    let mut findings = invisible::find(text);
    let folded = fold(text);
    findings.extend(patterns::find(&folded, scope));
    findings
}

/// Text as the patterns expect it: NFKC, lower case, every kind of white space a blank, a typographic apostrophe a
/// plain one. Line breaks stay where they are.
fn fold(text: &str) -> String {
    if text.is_ascii() {
        return text.to_ascii_lowercase();
    }
    let plain = |c: char| match c {
        '\n' => '\n',
        '\u{2019}' => '\'',
        c if c.is_whitespace() => ' ',
        c => c,
    };
    text.nfkc().flat_map(char::to_lowercase).map(plain).collect()
}

/// The ids of `findings`, joined by commas: for placeholders and notices.
pub(crate) fn ids(findings: &[Finding]) -> String {
    let ids: Vec<&str> = findings.iter().map(|finding| finding.id.as_ref()).collect();
    ids.join(", ")
}

/// The line of the byte position `at`, from 1.
fn line_at(text: &str, at: usize) -> usize {
    text.bytes().take(at).filter(|byte| *byte == b'\n').count() + 1
}

/// The first `chars` characters of `text`.
pub(crate) fn head(text: &str, chars: usize) -> &str {
    text.char_indices().nth(chars).and_then(|(at, _)| text.get(..at)).unwrap_or(text)
}

#[cfg(test)]
mod tests;
