//! Whether the model's picture of a file that it is about to change is still right (spec 40 §5.3).

use std::fs::Metadata;
use std::path::Path;

use crate::services::ToolCx;
use crate::workspace::{Seen, Stamp};

/// How much of the old content a change takes away.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Extent {
    /// All of it: what was never read is lost unseen.
    Whole,
    /// A text that the model quoted, and so knows.
    Quoted,
}

/// A warning about the file as it is now, the most serious one only. `metadata` is that of the existing file.
pub(super) fn warning(
    cx: &ToolCx,
    path: &Path,
    metadata: Option<&Metadata>,
    extent: Extent,
    strayed: bool,
) -> Option<String> {
    let seen = cx.workspace.files().seen(path);
    if let Some(metadata) = metadata {
        let text = match (seen, extent) {
            (Some(seen), _) if cx.services.files.written_by_another(path, &cx.session_id, seen.writes) => {
                Some("another session wrote this file after you read it; check that nothing of it is lost")
            }
            (Some(seen), _) if seen.stamp != Stamp::from(metadata) => {
                Some("the file had changed on disk after you read it; check that nothing of it is lost")
            }
            (Some(Seen { partial: true, .. }), Extent::Whole) => {
                Some("you had read only a part of this file")
            }
            (None, Extent::Whole) => Some("you had not read this file in this session"),
            _ => None,
        };
        if let Some(text) = text {
            return Some(text.to_owned());
        }
    }
    strayed.then(|| format!("the path leads out of the session's directory, to {}", path.display()))
}

/// Notes that this session wrote the file. It knows all of it after a write of the whole, and as much as
/// before after an edit.
pub(super) fn note_write(cx: &ToolCx, path: &Path, metadata: &Metadata, extent: Extent) {
    let writes = cx.services.files.note_write(path, &cx.session_id);
    let mut files = cx.workspace.files();
    let partial = extent == Extent::Quoted && files.seen(path).is_none_or(|seen| seen.partial);
    files.note_write(path, Seen { stamp: Stamp::from(metadata), partial, writes });
}

/// Notes that this session took the file away.
pub(super) fn note_removed(cx: &ToolCx, path: &Path) {
    cx.services.files.note_write(path, &cx.session_id);
    cx.workspace.files().note_removed(path);
}
