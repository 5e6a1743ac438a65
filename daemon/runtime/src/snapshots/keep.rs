//! Before and after a call: what was there is kept, and what the agent left is written down.

use std::collections::HashMap;
use std::io;
use std::path::{Path, PathBuf};

use hermes_core::{SessionId, TurnId};

use super::index::{Entry, Index, PathText, turn_snapshot};
use super::look::{Look, State, look};
use super::store::Store;
use super::walk::{self, WalkRun};
use super::{SnapshotCall, Touch};

/// A larger content is not looked through for its lines.
const MAX_COUNTED: usize = 1024 * 1024;

/// What a call is about to change, from its beginning to its end.
#[derive(Debug)]
pub(super) struct Kept {
    session: SessionId,
    turn: TurnId,
    paths: Vec<PathBuf>,
    walk: Option<WalkRun>,
    /// The turn has just got its snapshot.
    pub(super) is_new: bool,
}

/// Keeps what is there now. `None` when there is nothing to keep.
pub(super) fn before(store: &Store, call: &SnapshotCall, touches: &[Touch]) -> io::Result<Option<Kept>> {
    let settings = store.settings();
    if !settings.enabled {
        return Ok(None);
    }
    let session_lock = store.session_lock(call.session.as_str());
    let _locked = Store::lock(&session_lock);
    let id = turn_snapshot(&call.session, &call.turn);
    let known = store.shelf.load(call.session.as_str(), &id);
    let is_new = known.is_none();
    let mut index = known.unwrap_or_else(|| Index {
        turn: call.turn.as_str().to_owned(),
        ..Index::new(id, &call.session, store.now(), call.reason.clone(), &call.workspace)
    });

    let mut pin = store.blobs.pin();
    let forbidden = store.paths.never_opened();
    let mut paths = Vec::new();
    let mut walk = None;
    let mut is_news = false;
    for touch in touches {
        match touch {
            Touch::Write { path, cross_profile } => {
                let Ok(path) = store.paths.resolve(path) else { continue };
                let look = look(&path, settings.max_file(), &forbidden);
                if let Some(entry) = index.entry(&path) {
                    // A second call leaves no mark that it has begun: should it be cut off, the file is not as
                    // the first one left it, and that is enough to be careful.
                    if !entry.open && !entry.mixed && !look.state.same_content(&entry.after) {
                        entry.mixed = true;
                        is_news = true;
                    }
                } else if look.state == State::Other {
                    // A folder or a pipe: no tool writes it, and there is no content to keep.
                    continue;
                } else {
                    store.put(&look, &mut pin)?;
                    let made_dirs =
                        if look.state == State::Absent { missing_folders(&path) } else { Vec::new() };
                    index.files.push(Entry {
                        made_dirs,
                        cross_profile: *cross_profile,
                        ..Entry::new(&path, look.state)
                    });
                    is_news = true;
                }
                paths.push(path);
            }
            Touch::Command { command, cwd } => {
                if settings.terminal && walk.is_none() && walk::is_destructive(command) {
                    walk = walk::begin(store, &index, cwd, &mut pin)?;
                }
            }
        }
    }
    if paths.is_empty() && walk.is_none() {
        return Ok(None);
    }
    if is_news {
        store.shelf.save(&index)?;
    }
    Ok(Some(Kept { session: call.session.clone(), turn: call.turn.clone(), paths, walk, is_new }))
}

/// Writes down how the call left its files. A call that changed nothing leaves no trace.
pub(super) fn after(store: &Store, kept: Kept) -> io::Result<()> {
    let session_lock = store.session_lock(kept.session.as_str());
    let _locked = Store::lock(&session_lock);
    let id = turn_snapshot(&kept.session, &kept.turn);
    let mut index = store.shelf.load(kept.session.as_str(), &id);
    if let Some(walk) = kept.walk {
        index = walk::end(store, &walk, index, false);
    }
    let Some(mut index) = index else { return Ok(()) };
    let (limit, forbidden) = (store.settings().max_file(), store.paths.never_opened());
    for path in &kept.paths {
        let look = look(path, limit, &forbidden);
        if let Some(entry) = index.entry(path) {
            settle(store, entry, &look);
        }
    }
    store.save_or_remove(&mut index)
}

/// Takes the state in which the agent left a file into its entry.
pub(super) fn settle(store: &Store, entry: &mut Entry, look: &Look) {
    entry.open = false;
    entry.after = look.state.clone();
    let before = match &entry.before {
        State::File { hash, len, .. } if *len <= MAX_COUNTED as u64 => store.blobs.read(hash).ok(),
        State::Absent => Some(Vec::new()),
        _ => None,
    };
    let countable =
        look.bytes.len() <= MAX_COUNTED && !matches!(look.state, State::Large { .. } | State::Other);
    (entry.added, entry.removed) = match before {
        Some(before) if countable => changed_lines(&before, &look.bytes),
        _ => (0, 0),
    };
}

impl Entry {
    /// Whether the file is as it was before the turn, as far as the agent is concerned.
    pub(super) fn is_unchanged(&self) -> bool {
        !self.open && !self.mixed && self.before == self.after
    }
}

/// Folders above `path` that do not exist, outermost first.
pub(super) fn missing_folders(path: &Path) -> Vec<PathText> {
    let mut missing: Vec<PathText> = path
        .ancestors()
        .skip(1)
        .take_while(|folder| !folder.exists())
        .map(|folder| PathText(folder.to_owned()))
        .collect();
    missing.reverse();
    missing
}

/// Lines of `after` that `before` has not, and the other way round. A line that only moved counts as neither: this
/// is a measure for lists, on the path of every write, and a real diff would cost more than the write.
fn changed_lines(before: &[u8], after: &[u8]) -> (u32, u32) {
    if [before, after].iter().any(|bytes| memchr::memchr(0, bytes).is_some()) {
        return (0, 0);
    }
    let mut counts: HashMap<&[u8], i64> = HashMap::new();
    for line in before.split_inclusive(|byte| *byte == b'\n') {
        *counts.entry(line).or_default() -= 1;
    }
    for line in after.split_inclusive(|byte| *byte == b'\n') {
        *counts.entry(line).or_default() += 1;
    }
    let sum = |counts: &mut dyn Iterator<Item = i64>| u32::try_from(counts.sum::<i64>()).unwrap_or(u32::MAX);
    let added = sum(&mut counts.values().copied().filter(|count| *count > 0));
    let removed = sum(&mut counts.values().map(|count| -count).filter(|count| *count > 0));
    (added, removed)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn lines_are_counted_by_what_is_new_and_what_is_gone() {
        assert_eq!(changed_lines(b"", b"a\nb\n"), (2, 0));
        assert_eq!(changed_lines(b"a\nb\nc\n", b"a\nx\nc\n"), (1, 1));
        assert_eq!(changed_lines(b"a\na\n", b"a\n"), (0, 1));
        assert_eq!(changed_lines(b"a\nb\n", b"b\na\n"), (0, 0));
        assert_eq!(changed_lines(b"a\0", b"b\n"), (0, 0));
    }
}
