//! One context file on its way into the prompt: fitted to its cap and scanned.

use std::path::Path;

use super::fit::fit;
use super::read::FileText;
use crate::scan::{self, Finding, SCAN_CHARS, ScanScope};

/// A file that was fitted and scanned.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Vetted {
    /// What may enter the prompt.
    pub(crate) text: String,
    /// What was left out, in words; `None` when the text is whole.
    pub(crate) cut: Option<String>,
    pub(crate) findings: Vec<Finding>,
}

/// Fits `text` to `cap` and scans it: its first 65,536 characters, and whatever else is kept of it.
pub(crate) fn vet(text: &FileText, cap: u64, name: &str, path: &Path, read_file: bool) -> Vetted {
    let mut findings = scan::scan(&text.head, ScanScope::Context);
    let fitted = fit(text, cap);
    if scan::head(&text.head, SCAN_CHARS).len() < text.head.len() {
        // Padding must not carry a phrase past the scanned part and into the prompt.
        let offset = leading_lines(&text.head);
        add(&mut findings, scan::scan_whole(fitted.head, ScanScope::Context), Some(offset));
        if let Some(cut) = &fitted.cut {
            let offset = cut.tail_line.map(|line| line - 1 + offset);
            add(&mut findings, scan::scan_whole(cut.tail, ScanScope::Context), offset);
        }
    }
    for finding in findings.iter_mut().filter(|finding| finding.line > 0) {
        finding.line += text.skipped_lines;
    }
    Vetted { findings, ..fit_only(text, cap, name, path, read_file) }
}

/// Fits `text` to `cap` without a scan, for text that was scanned already.
pub(crate) fn fit_only(text: &FileText, cap: u64, name: &str, path: &Path, read_file: bool) -> Vetted {
    let fitted = fit(text, cap);
    let cut = fitted.cut.as_ref().map(|cut| {
        format!(
            "has {}; the prompt holds its first {} and its last {} characters (the limit is {cap})",
            cut.full, cut.head_chars, cut.tail_chars
        )
    });
    Vetted {
        text: fitted.render(name, &one_line(&path.to_string_lossy()), read_file),
        cut,
        findings: Vec::new(),
    }
}

impl Vetted {
    /// What stands in the prompt for a file with findings.
    pub(crate) fn placeholder(&self, name: &str) -> String {
        format!("[{name} was not loaded: it looks like prompt injection ({})]", scan::ids(&self.findings))
    }

    /// What the user is told about a file that was replaced.
    pub(crate) fn blocked_notice(&self, name: &str) -> Option<String> {
        let places = self.places()?;
        Some(format!(
            "{name} was not loaded: it looks like prompt injection ({places}). If the text is yours, reword it and \
             start a new session"
        ))
    }

    /// What the user is told about a file that is theirs and was loaded all the same.
    pub(crate) fn flagged_notice(&self, name: &str) -> Option<String> {
        let places = self.places()?;
        Some(format!(
            "{name} was loaded, but it looks like prompt injection ({places}). Look at it if you did not write it"
        ))
    }

    /// What the user is told about a file that did not fit.
    pub(crate) fn cut_notice(&self, name: &str) -> Option<String> {
        let cut = self.cut.as_ref()?;
        Some(format!("{name} {cut}. Shorten it, or set `context_file_max_chars`"))
    }

    fn places(&self) -> Option<String> {
        let places: Vec<String> = self
            .findings
            .iter()
            .map(|finding| match finding.line {
                0 => format!("near its end: {}", finding.id),
                line => format!("line {line}: {}", finding.id),
            })
            .collect();
        (!places.is_empty()).then(|| places.join("; "))
    }
}

/// Adds findings of a later piece; without an `offset` their line is not known and becomes 0.
fn add(findings: &mut Vec<Finding>, more: Vec<Finding>, offset: Option<usize>) {
    for finding in more {
        if findings.iter().all(|known| known.id != finding.id) {
            let line = offset.map_or(0, |offset| finding.line + offset);
            findings.push(Finding { line, ..finding });
        }
    }
}

/// Blank lines before the first text.
fn leading_lines(text: &str) -> usize {
    let blank = text.len() - text.trim_start().len();
    text.bytes().take(blank).filter(|byte| *byte == b'\n').count()
}

/// Control characters would let a path break out of its line.
pub(crate) fn one_line(text: &str) -> String {
    text.chars().map(|c| if c.is_control() { '\u{fffd}' } else { c }).collect()
}
