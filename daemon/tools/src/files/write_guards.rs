//! Text that must not be written, because it is a picture of a file and not a file (spec 40 §5.3, §10.4).

use hermes_runtime::Redactor;

use super::read::UNCHANGED;

/// Share of numbered lines from which a text is taken for the output of `read_file`.
const NUMBERED_PERCENT: usize = 60;

/// Why `text` is not written; `None` when it may be.
pub(super) fn refusal(text: &str) -> Option<String> {
    if Redactor::contains_marker(text) {
        return Some(
            "the text holds a «redacted:…» mark, which stands for a secret that you cannot see; writing it \
             would destroy the secret. Leave such lines out of the edit"
                .to_owned(),
        );
    }
    refusal_but_marks(text)
}

/// The same for a text whose marks are looked at elsewhere.
pub(super) fn refusal_but_marks(text: &str) -> Option<String> {
    if text.contains(UNCHANGED) {
        return Some("this is the notice that a file has not changed, not the file's content".to_owned());
    }
    looks_numbered(text)
        .then(|| "the text has the line numbers of read_file's output (`12|text`); leave them out".to_owned())
}

/// At least two lines, most of them numbered, the numbers consecutive.
fn looks_numbered(text: &str) -> bool {
    let lines: Vec<&str> = text.lines().filter(|line| !line.trim().is_empty()).collect();
    let numbers: Vec<u64> = lines.iter().filter_map(|line| line.split_once('|')?.0.parse().ok()).collect();
    let consecutive = numbers.windows(2).all(|pair| matches!(pair, [a, b] if a.checked_add(1) == Some(*b)));
    numbers.len() >= 2 && numbers.len() * 100 >= lines.len() * NUMBERED_PERCENT && consecutive
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn numbered_output_is_recognised() {
        assert!(looks_numbered("1|use std::fmt;\n2|\n3|fn main() {}\n"));
        assert!(looks_numbered("9|a\n10|b\ncontinued"));
        for text in [
            "",
            "1|only one line",
            "1|a\n5|b\n",
            "a|b\nc|d\n",
            "1|x\n2|y\nz\nz\nz\nz\n",
            "| 1 | 2 |\n| 3 | 4 |",
        ] {
            assert!(!looks_numbered(text), "{text:?}");
        }
    }
}
