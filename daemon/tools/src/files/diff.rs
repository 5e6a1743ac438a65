//! Unified diffs of two versions of one file, bounded in time and size.

use std::fmt::Write as _;
use std::time::Duration;

use similar::{ChangeTag, TextDiff};

/// Lines around a change.
const CONTEXT: usize = 3;

/// Time after which the diff may be coarser than the best one.
const PATIENCE: Duration = Duration::from_millis(200);

/// Characters of a diff that are shown.
const MAX_CHARS: usize = 20_000;

/// The unified diff from `old` to `new`; empty when they are equal.
///
/// What both have in common at their ends is cut off first, so that an edit in a large file costs little.
pub(crate) fn unified(old: &str, new: &str, label: &str) -> String {
    if old == new {
        return String::new();
    }
    let (skipped, old, new) = middle(old, new);
    let diff = TextDiff::configure().timeout(PATIENCE).diff_lines(old, new);
    let mut out = format!("--- a/{label}\n+++ b/{label}\n");
    for group in diff.grouped_ops(CONTEXT) {
        let (Some(first), Some(last)) = (group.first(), group.last()) else { continue };
        let old_range = range(skipped, first.old_range().start, last.old_range().end);
        let new_range = range(skipped, first.new_range().start, last.new_range().end);
        let _ = writeln!(out, "@@ -{old_range} +{new_range} @@");
        for op in &group {
            for change in diff.iter_changes(op) {
                let sign = match change.tag() {
                    ChangeTag::Delete => '-',
                    ChangeTag::Insert => '+',
                    ChangeTag::Equal => ' ',
                };
                let line = change.value();
                out.push(sign);
                out.push_str(line.trim_end_matches(['\n', '\r']));
                out.push('\n');
                if !line.ends_with('\n') {
                    out.push_str("\\ No newline at end of file\n");
                }
            }
        }
    }
    bounded(out)
}

/// Lines that both begin with, less the context, and both texts without their common ends, less the context.
fn middle<'a>(old: &'a str, new: &'a str) -> (usize, &'a str, &'a str) {
    let mut starts = vec![0_usize];
    let mut same = 0_usize;
    for (a, b) in old.split_inclusive('\n').zip(new.split_inclusive('\n')) {
        if a != b {
            break;
        }
        same += a.len();
        starts.push(same);
    }
    let skipped = starts.len().saturating_sub(1 + CONTEXT);
    let start = starts.get(skipped).copied().unwrap_or(0);

    let (old_rest, new_rest) = (old.get(same..).unwrap_or_default(), new.get(same..).unwrap_or_default());
    let mut dropped = vec![0_usize];
    let mut tail = 0_usize;
    for (a, b) in old_rest.split_inclusive('\n').rev().zip(new_rest.split_inclusive('\n').rev()) {
        if a != b {
            break;
        }
        tail += a.len();
        dropped.push(tail);
    }
    let tail = dropped.get(dropped.len().saturating_sub(1 + CONTEXT)).copied().unwrap_or(0);
    let cut = |text: &'a str| text.get(start..text.len() - tail).unwrap_or_default();
    (skipped, cut(old), cut(new))
}

fn range(skipped: usize, start: usize, end: usize) -> String {
    let length = end.saturating_sub(start);
    let first = skipped + start;
    match length {
        // An empty range stands behind the line before it.
        0 => format!("{first},0"),
        1 => format!("{}", first + 1),
        _ => format!("{},{length}", first + 1),
    }
}

fn bounded(text: String) -> String {
    let (shown, cut) = super::text::first_chars(&text, MAX_CHARS);
    if !cut {
        return text;
    }
    let end = shown.rfind('\n').map_or(shown.len(), |at| at + 1);
    let mut shown = shown.get(..end).unwrap_or(shown).to_owned();
    let _ = writeln!(shown, "… [diff cut at {MAX_CHARS} characters]");
    shown
}

#[cfg(test)]
mod tests {
    use pretty_assertions::assert_eq;
    use proptest::prelude::*;

    use super::*;

    #[test]
    fn a_change_is_shown_with_its_place() {
        let old = (1..=20).map(|n| format!("line {n}\n")).collect::<Vec<_>>().concat();
        let new = old.replace("line 10\n", "line ten\n");
        assert_eq!(
            unified(&old, &new, "x.txt"),
            "--- a/x.txt\n+++ b/x.txt\n@@ -7,7 +7,7 @@\n line 7\n line 8\n line 9\n-line 10\n+line ten\n line 11\n line 12\n line 13\n",
        );
        assert_eq!(unified(&old, &old, "x"), "");
        assert_eq!(unified("", "a\n", "x"), "--- a/x\n+++ b/x\n@@ -0,0 +1 @@\n+a\n",);
        assert_eq!(
            unified("a", "b", "x"),
            "--- a/x\n+++ b/x\n@@ -1 +1 @@\n-a\n\\ No newline at end of file\n+b\n\\ No newline at end of file\n",
        );
    }

    #[test]
    fn a_huge_diff_is_cut_at_a_line() {
        let new = (0..5000).map(|n| format!("line {n}\n")).collect::<Vec<_>>().concat();
        let diff = unified("", &new, "x");
        assert!(diff.chars().count() <= MAX_CHARS + 60);
        assert!(diff.ends_with("characters]\n"));
    }

    /// Applies a unified diff, to see that its numbers are right.
    fn apply(old: &str, diff: &str) -> String {
        let lines: Vec<&str> = old.lines().collect();
        let mut out: Vec<&str> = Vec::new();
        let mut at = 0;
        for line in diff.lines().skip(2) {
            if let Some(header) = line.strip_prefix("@@ -") {
                let (start, length) =
                    header.split(' ').next().unwrap().split_once(',').unwrap_or((header, "1"));
                let start: usize = start.split(' ').next().unwrap().parse().unwrap();
                let upto = if length == "0" { start } else { start - 1 };
                out.extend(&lines[at..upto]);
                at = upto;
            } else if let Some(added) = line.strip_prefix('+') {
                out.push(added);
            } else if line.starts_with('-') || line.starts_with(' ') {
                if line.starts_with(' ') {
                    out.push(lines[at]);
                }
                at += 1;
            }
        }
        out.extend(&lines[at..]);
        out.iter().flat_map(|line| [line, "\n"]).collect()
    }

    proptest! {
        #[test]
        fn a_diff_turns_the_old_text_into_the_new(
            old in proptest::collection::vec("[abc]", 0..30),
            new in proptest::collection::vec("[abc]", 0..30),
        ) {
            let text = |lines: &[String]| lines.iter().flat_map(|line| [line.as_str(), "\n"]).collect::<String>();
            let (old, new) = (text(&old), text(&new));
            prop_assert_eq!(apply(&old, &unified(&old, &new, "x")), new);
        }
    }
}
