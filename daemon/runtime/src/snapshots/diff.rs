//! What changed since a snapshot: unified diffs from what was kept to what stands there now.

use std::fmt::Write as _;
use std::path::Path;
use std::time::Duration;

use similar::TextDiff;

use super::index::{Entry, Index};
use super::look::{State, look};
use super::store::Store;

/// Lines around a change.
const CONTEXT: usize = 3;
/// Time after which one file's diff may be coarser than the best one.
const PATIENCE: Duration = Duration::from_millis(500);
/// Bytes after which no further file is shown.
const MAX_BYTES: usize = 512 * 1024;
/// A larger text is not compared line by line.
const MAX_COMPARED: usize = 4 * 1024 * 1024;

/// A diff for a person.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct SnapshotDiff {
    /// Secrets are masked.
    pub text: String,
    /// There is more than is shown.
    pub truncated: bool,
}

pub(super) fn run(store: &Store, index: &Index, only: impl Fn(&Entry) -> bool) -> SnapshotDiff {
    let mut diff = SnapshotDiff { text: String::new(), truncated: false };
    for entry in index.files.iter().filter(|entry| only(entry)) {
        if diff.text.len() > MAX_BYTES {
            diff.truncated = true;
            break;
        }
        let part = of_file(store, entry);
        diff.text.push_str(&store.redactor.redact_file_content(&part).0);
    }
    if diff.text.len() > MAX_BYTES {
        diff.truncated = true;
        diff.text.truncate(diff.text.floor_char_boundary(MAX_BYTES));
    }
    diff
}

fn of_file(store: &Store, entry: &Entry) -> String {
    let path = &entry.path.0;
    let now = look(path, store.settings().max_file(), &store.paths.never_opened());
    if now.state == entry.before {
        return String::new();
    }
    let old = match &entry.before {
        State::File { hash, .. } => match store.blobs.read(hash) {
            Ok(bytes) => bytes,
            Err(error) => return note(path, &format!("its earlier content cannot be read: {error}")),
        },
        State::Absent => Vec::new(),
        State::Large { .. } | State::Other => return note(path, "its earlier content was not kept"),
    };
    if matches!(now.state, State::Large { .. } | State::Other) {
        return note(path, "what stands there now is too large to compare, or is no regular file");
    }
    let name = shown(path);
    let (before, after) = (header("a", &name, &entry.before), header("b", &name, &now.state));
    let mode = match (entry.before.mode(), now.state.mode()) {
        (Some(old), Some(new)) if old != new => format!("mode of {name}: {old:o} → {new:o}\n"),
        _ => String::new(),
    };
    if old == now.bytes {
        return mode;
    }
    let texts = std::str::from_utf8(&old).ok().zip(std::str::from_utf8(&now.bytes).ok());
    let small = old.len().max(now.bytes.len()) <= MAX_COMPARED;
    let Some((old, new)) = texts.filter(|(old, new)| small && !old.contains('\0') && !new.contains('\0'))
    else {
        return format!(
            "{mode}--- {before}\n+++ {after}\nthe contents differ and are not shown (binary or large)\n"
        );
    };
    let diff = TextDiff::configure().timeout(PATIENCE).diff_lines(old, new);
    format!("{mode}{}", diff.unified_diff().context_radius(CONTEXT).header(&before, &after))
}

fn header(side: &str, name: &str, state: &State) -> String {
    if *state == State::Absent { "/dev/null".to_owned() } else { format!("{side}{name}") }
}

fn note(path: &Path, what: &str) -> String {
    let mut text = String::new();
    let _ = writeln!(text, "{}: {what}", shown(path));
    text
}

/// A path on one line, whatever is in it.
pub(super) fn shown(path: &Path) -> String {
    path.to_string_lossy().chars().map(|c| if c.is_control() { '\u{fffd}' } else { c }).collect()
}
