//! What a masked secret looks like, and how it is known again.

use super::{MARKER_START, Span};

/// Secrets shorter than this are masked whole.
const SHOW_FROM_CHARS: usize = 18;
const HEAD_CHARS: usize = 6;
const TAIL_CHARS: usize = 4;
const WHOLE: &str = "***";
const GAP: &str = "...";

/// The mask of one secret.
pub(super) fn masked(secret: &str, span: &Span<'_>) -> String {
    let chars = secret.chars().count();
    // Half an escape (`\n` in JSON text) would break what is around it.
    if span.opaque || chars < SHOW_FROM_CHARS || secret.contains('\\') {
        return WHOLE.to_owned();
    }
    let head: String = secret.chars().take(HEAD_CHARS).collect();
    let tail: String = secret.chars().skip(chars - TAIL_CHARS).collect();
    format!("{head}{GAP}{tail}")
}

/// Whether a found value was masked before.
pub(super) fn holds_mask(value: &str) -> bool {
    value.contains(GAP) || value.contains(WHOLE) || value.contains(MARKER_START)
}
