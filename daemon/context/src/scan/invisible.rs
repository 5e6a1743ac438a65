//! Characters that a reader does not see but a model reads.

use super::Finding;

/// Finds invisible characters, one finding per code point, at its first place.
///
/// Joiners inside emoji and in scripts that need them are no findings, nor are the tag characters of a flag.
pub(super) fn find(text: &str) -> Vec<Finding> {
    let mut findings: Vec<Finding> = Vec::new();
    if text.is_ascii() {
        return findings;
    }
    let mut line = 1;
    // The nearest earlier character that is neither a joiner nor a modifier of an emoji.
    let mut base: Option<char> = None;
    let mut in_flag = false;
    let mut rest = text.chars();
    while let Some(c) = rest.next() {
        if c == '\n' {
            line += 1;
        }
        let legitimate = match c {
            '\u{200c}' | '\u{200d}' => joins(c, base, next_base(rest.as_str())),
            '\u{e0020}'..='\u{e007f}' => in_flag,
            _ => false,
        };
        if is_invisible(c) && !legitimate {
            let id = format!("invisible_U+{:04X}", u32::from(c));
            if findings.iter().all(|finding| finding.id != id) {
                findings.push(Finding { id: id.into(), line });
            }
        }
        match c {
            '\u{1f3f4}' => in_flag = true,
            '\u{e0020}'..='\u{e007e}' => {}
            _ => in_flag = false,
        }
        if !is_emoji_modifier(c) && !is_invisible(c) {
            base = Some(c);
        }
    }
    findings
}

fn is_invisible(c: char) -> bool {
    matches!(c,
        '\u{200b}'..='\u{200d}' | '\u{2060}' | '\u{2062}'..='\u{2064}' | '\u{feff}'
        | '\u{202a}'..='\u{202e}' | '\u{2066}'..='\u{2069}'
        // Tag characters: a second ASCII that nothing shows.
        | '\u{e0001}' | '\u{e0020}'..='\u{e007f}')
}

/// The next character that is no modifier of an emoji.
fn next_base(rest: &str) -> Option<char> {
    rest.chars().find(|c| !is_emoji_modifier(*c))
}

/// Whether a joiner between these two characters does its proper work.
fn joins(joiner: char, before: Option<char>, after: Option<char>) -> bool {
    let (Some(before), Some(after)) = (before, after) else {
        // A word of a joining script may end in a joiner.
        return before.is_some_and(uses_joiners);
    };
    (joiner == '\u{200d}' && is_pictograph(before) && is_pictograph(after))
        || uses_joiners(before)
        || uses_joiners(after)
}

/// Variation selectors, skin tones and the keycap: they stand between an emoji and its joiner.
fn is_emoji_modifier(c: char) -> bool {
    matches!(c, '\u{fe0e}' | '\u{fe0f}' | '\u{1f3fb}'..='\u{1f3ff}' | '\u{20e3}')
}

fn is_pictograph(c: char) -> bool {
    matches!(c,
        '\u{a9}' | '\u{ae}' | '\u{203c}' | '\u{2049}' | '\u{2122}' | '\u{2139}' | '\u{2190}'..='\u{21ff}'
        | '\u{2300}'..='\u{23ff}' | '\u{25a0}'..='\u{27bf}' | '\u{2900}'..='\u{297f}' | '\u{2b00}'..='\u{2bff}'
        | '\u{3030}' | '\u{303d}' | '\u{3297}' | '\u{3299}' | '\u{1f000}'..='\u{1faff}')
}

/// Scripts whose spelling needs joiners: Arabic and its relatives, the scripts of India and South-East Asia,
/// Mongolian.
fn uses_joiners(c: char) -> bool {
    matches!(c,
        '\u{600}'..='\u{8ff}' | '\u{900}'..='\u{dff}' | '\u{e80}'..='\u{109f}' | '\u{1780}'..='\u{18af}'
        | '\u{1900}'..='\u{1aff}' | '\u{1b00}'..='\u{1c4f}' | '\u{1cd0}'..='\u{1cff}' | '\u{a800}'..='\u{a82f}'
        | '\u{a840}'..='\u{a8ff}' | '\u{a900}'..='\u{aaff}' | '\u{abc0}'..='\u{abff}' | '\u{fb50}'..='\u{fdff}'
        | '\u{fe70}'..='\u{fefc}' | '\u{10a00}'..='\u{10aff}' | '\u{11000}'..='\u{11fff}')
}
