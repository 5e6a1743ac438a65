//! How much of a context file enters the prompt (spec 20 §7).

use std::num::NonZeroU64;

use super::read::FileText;
use crate::scan::head;

/// The least and the most characters of one source when the cap follows the window.
const MIN_CAP: u64 = 20_000;
const MAX_CAP: u64 = 500_000;
/// The share of the window that one source may fill: 6 %, at 4 characters a token.
const WINDOW_CHARS_PERCENT: u64 = 4 * 6;

/// The cap in characters for each context source of a model with `window` tokens. `pinned` overrides the formula.
pub fn context_file_cap(window: Option<u64>, pinned: Option<NonZeroU64>) -> u64 {
    match (pinned, window) {
        (Some(pinned), _) => pinned.get(),
        (None, Some(window)) => (window.saturating_mul(WINDOW_CHARS_PERCENT) / 100).clamp(MIN_CAP, MAX_CAP),
        (None, None) => MIN_CAP,
    }
}

/// A source that fits its cap.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Fitted<'a> {
    /// What is kept of the beginning: the whole text when nothing was cut.
    pub(crate) head: &'a str,
    /// What is kept of the end.
    pub(crate) cut: Option<Cut<'a>>,
}

/// What was cut.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Cut<'a> {
    pub(crate) tail: &'a str,
    pub(crate) head_chars: usize,
    pub(crate) tail_chars: usize,
    /// The full size, with its unit.
    pub(crate) full: String,
    /// The first line of `tail`, from 1; unknown when the middle was never read.
    pub(crate) tail_line: Option<usize>,
}

/// Keeps the first 70 % and the last 20 % of `cap` characters when `text` is longer than `cap`.
pub(crate) fn fit(text: &FileText, cap: u64) -> Fitted<'_> {
    let cap = usize::try_from(cap).unwrap_or(usize::MAX);
    let whole = text.head.trim();
    if text.tail.is_none() && head(whole, cap).len() == whole.len() {
        return Fitted { head: whole, cut: None };
    }
    // In this order neither product overflows, and small caps round as the formula says.
    let share = |tenths: usize| cap / 10 * tenths + cap % 10 * tenths / 10;
    let kept_head = head(whole, share(7));
    let source = text.tail.as_deref().unwrap_or(whole).trim_end();
    let kept_tail = last(source, share(2));
    let (full, tail_line) = if text.tail.is_some() {
        (format!("{} bytes", text.bytes), None)
    } else {
        let before = source.len() - kept_tail.len();
        let lines = whole.bytes().take(before).filter(|byte| *byte == b'\n').count() + 1;
        (format!("{} characters", whole.chars().count()), Some(lines))
    };
    Fitted {
        head: kept_head,
        cut: Some(Cut {
            tail: kept_tail,
            head_chars: kept_head.chars().count(),
            tail_chars: kept_tail.chars().count(),
            full,
            tail_line,
        }),
    }
}

impl Fitted<'_> {
    /// The text with a marker where something was left out. `path` is where the whole text is; `read_file` says
    /// whether the model has that tool.
    pub(crate) fn render(&self, name: &str, path: &str, read_file: bool) -> String {
        let Some(cut) = &self.cut else { return self.head.to_owned() };
        let how = if read_file { "read the rest with read_file" } else { "the whole text is in" };
        let Cut { tail, head_chars, tail_chars, full, .. } = cut;
        format!(
            "{}\n\n[… {name}, cut here: {head_chars} + {tail_chars} characters of {full} are shown; {how}: {path} …]\n\n{tail}",
            self.head
        )
    }
}

/// The last `chars` characters of `text`.
fn last(text: &str, chars: usize) -> &str {
    match chars.checked_sub(1) {
        None => "",
        Some(back) => text.char_indices().rev().nth(back).and_then(|(at, _)| text.get(at..)).unwrap_or(text),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn the_cap_follows_the_window() {
        for (window, cap) in [
            (None, 20_000),
            (Some(0), 20_000),
            (Some(8_000), 20_000),
            (Some(83_333), 20_000),
            (Some(128_000), 30_720),
            (Some(200_000), 48_000),
            (Some(1_000_000), 240_000),
            (Some(2_083_334), 500_000),
            (Some(u64::MAX), 500_000),
        ] {
            assert_eq!(context_file_cap(window, None), cap, "{window:?}");
        }
        assert_eq!(context_file_cap(Some(1_000_000), NonZeroU64::new(7)), 7);
    }

    #[test]
    fn a_long_file_keeps_its_ends_around_a_marker() {
        let text = FileText::whole(format!("{}{}", "a".repeat(30_000), "b".repeat(15_000)));
        let fitted = fit(&text, 20_000);
        let cut = fitted.cut.clone().unwrap();
        assert_eq!((cut.head_chars, cut.tail_chars), (14_000, 4_000));
        let rendered = fitted.render("AGENTS.md", "/p/AGENTS.md", true);
        assert_eq!(
            rendered,
            format!(
                "{}\n\n[… AGENTS.md, cut here: 14000 + 4000 characters of 45000 characters are shown; read the rest with read_file: /p/AGENTS.md …]\n\n{}",
                "a".repeat(14_000),
                "b".repeat(4_000)
            )
        );
        assert!(!fitted.render("AGENTS.md", "/p/AGENTS.md", false).contains("read_file"));
    }

    #[test]
    fn a_file_at_the_cap_is_whole() {
        let text = FileText::whole("é".repeat(20_000));
        assert_eq!(fit(&text, 20_000).render("x", "y", true), "é".repeat(20_000));
    }

    #[test]
    fn of_a_huge_file_the_size_is_in_bytes() {
        let text = FileText {
            head: "a".repeat(100),
            tail: Some("z".repeat(100)),
            bytes: 2_147_483_648,
            skipped_lines: 0,
        };
        let fitted = fit(&text, 50);
        let rendered = fitted.render("AGENTS.md", "/p", true);
        assert!(rendered.contains("35 + 10 characters of 2147483648 bytes"), "{rendered}");
    }

    proptest! {
        #[test]
        fn the_kept_parts_are_the_ends_and_no_longer_than_the_formula(text in "\\PC{0,80}", cap in 1_u64..60) {
            let source = FileText::whole(text.clone());
            let fitted = fit(&source, cap);
            let whole = text.trim();
            match &fitted.cut {
                None => prop_assert_eq!(fitted.head, whole),
                Some(cut) => {
                    prop_assert!(whole.chars().count() as u64 > cap);
                    prop_assert_eq!(cut.head_chars as u64, cap * 7 / 10);
                    prop_assert_eq!(cut.tail_chars as u64, cap * 2 / 10);
                    prop_assert!(whole.starts_with(fitted.head) && whole.ends_with(cut.tail));
                }
            }
        }
    }
}
