//! What one session knows of the files that it read, wrote and searched (spec 40 §5.2, §5.9).

use std::path::{Path, PathBuf};

use hermes_core::ToolCallId;

use super::bounded::BoundedMap;
use super::stamp::Stamp;

/// Entries kept per session (spec 40 §5.9).
const READS: usize = 1000;
const PATCH_FAILURES: usize = 500;

/// One exact read.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub(crate) struct ReadKey {
    pub(crate) path: PathBuf,
    pub(crate) offset: usize,
    pub(crate) limit: usize,
}

/// What asking for the same read again comes to.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Repeat {
    /// Read it.
    Fresh,
    /// Nothing changed since the model got this content: tell it so.
    Unchanged,
    /// It was told, and asks again.
    AlreadyRead { times: u32 },
    /// The file changes all the time and was read again and again.
    Polling { times: u32 },
}

/// The last time that the session saw a file.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Seen {
    pub(crate) stamp: Stamp,
    /// Not all of it was shown.
    pub(crate) partial: bool,
    /// The ledger's count of writes at that moment.
    pub(crate) writes: u64,
}

#[derive(Debug)]
struct Delivered {
    stamp: Stamp,
    /// The call whose result has the content.
    call: ToolCallId,
    /// How often it was asked for again, unchanged.
    again: u32,
}

/// All of it; guarded by the workspace's lock, for short sections without I/O.
#[derive(Debug)]
pub(crate) struct FileState {
    delivered: BoundedMap<ReadKey, Delivered>,
    seen: BoundedMap<PathBuf, Seen>,
    patch_failures: BoundedMap<PathBuf, u32>,
    /// The last read or search and how often it came in a row.
    last: Option<(Repeated, u32)>,
}

#[derive(Debug, PartialEq, Eq)]
enum Repeated {
    Read(ReadKey),
    Search(String),
}

impl Default for FileState {
    fn default() -> Self {
        Self {
            delivered: BoundedMap::new(READS),
            seen: BoundedMap::new(READS),
            patch_failures: BoundedMap::new(PATCH_FAILURES),
            last: None,
        }
    }
}

/// In a row of identical real reads or searches, this one is still done but comes with a warning.
pub(crate) const WARN_AT: u32 = 3;

impl FileState {
    /// Asked before reading.
    pub(crate) fn before_read(&mut self, key: &ReadKey, stamp: Stamp) -> Repeat {
        if let Some(delivered) = self.delivered.get_mut(key)
            && delivered.stamp == stamp
        {
            delivered.again += 1;
            return match delivered.again {
                1 => Repeat::Unchanged,
                again => Repeat::AlreadyRead { times: again + 1 },
            };
        }
        match &self.last {
            Some((Repeated::Read(last), times)) if last == key && *times >= WARN_AT => {
                Repeat::Polling { times: times + 1 }
            }
            _ => Repeat::Fresh,
        }
    }

    /// Told after a real read. Gives how often this very read came in a row, this one included.
    pub(crate) fn after_read(&mut self, key: ReadKey, seen: Seen, call: &ToolCallId) -> u32 {
        self.delivered.insert(key.clone(), Delivered { stamp: seen.stamp, call: call.clone(), again: 0 });
        self.seen.insert(key.path.clone(), seen);
        self.count(Repeated::Read(key))
    }

    /// Told before a search. Gives how often this very search came in a row, this one included.
    pub(crate) fn note_search(&mut self, signature: String) -> u32 {
        self.count(Repeated::Search(signature))
    }

    fn count(&mut self, what: Repeated) -> u32 {
        let times = match &self.last {
            Some((last, times)) if *last == what => times + 1,
            _ => 1,
        };
        self.last = Some((what, times));
        times
    }

    /// A tool that neither reads nor searches ran: rows of repetitions end here.
    pub(crate) fn note_other_call(&mut self) {
        self.last = None;
        for delivered in self.delivered.values_mut() {
            delivered.again = 0;
        }
    }

    /// This session wrote the file and knows all of it now.
    pub(crate) fn note_write(&mut self, path: &Path, seen: Seen) {
        self.delivered.retain(|key, _| key.path != path);
        self.seen.insert(path.to_owned(), seen);
        self.patch_failures.retain(|failed, _| failed != path);
    }

    /// This session took the file away.
    pub(crate) fn note_removed(&mut self, path: &Path) {
        self.delivered.retain(|key, _| key.path != path);
        self.seen.retain(|seen, _| seen != path);
        self.patch_failures.retain(|failed, _| failed != path);
    }

    /// The model no longer has what it read: it may read everything again.
    pub(crate) fn forget_delivered(&mut self) {
        self.delivered.clear();
        self.last = None;
    }

    /// The result of this call did not come before the model.
    pub(crate) fn forget_delivered_by(&mut self, call: &ToolCallId) {
        self.delivered.retain(|_, delivered| delivered.call != *call);
    }

    pub(crate) fn seen(&self, path: &Path) -> Option<Seen> {
        self.seen.get(path).copied()
    }

    /// A patch found no place in the file. Gives how often that happened since the last write to it.
    pub(crate) fn patch_failed(&mut self, path: &Path) -> u32 {
        let times = self.patch_failures.get(path).copied().unwrap_or(0) + 1;
        self.patch_failures.insert(path.to_owned(), times);
        times
    }
}

#[cfg(test)]
mod tests {
    use pretty_assertions::assert_eq;

    use super::*;

    fn stamps() -> (Stamp, Stamp) {
        let dir = tempfile::tempdir().unwrap();
        let stamp = |name: &str, text: &str| {
            let path = dir.path().join(name);
            std::fs::write(&path, text).unwrap();
            Stamp::from(&std::fs::metadata(path).unwrap())
        };
        (stamp("a", "a"), stamp("b", "bb"))
    }

    fn key(path: &str) -> ReadKey {
        ReadKey { path: path.into(), offset: 1, limit: 500 }
    }

    fn read(state: &mut FileState, path: &str, stamp: Stamp) -> Repeat {
        let repeat = state.before_read(&key(path), stamp);
        if repeat == Repeat::Fresh {
            state.after_read(key(path), Seen { stamp, partial: false, writes: 0 }, &ToolCallId::new(path));
        }
        repeat
    }

    #[test]
    fn an_unchanged_file_is_read_once_then_told_then_refused() {
        let (stamp, changed) = stamps();
        let mut state = FileState::default();
        assert_eq!(read(&mut state, "/a", stamp), Repeat::Fresh);
        assert_eq!(read(&mut state, "/a", stamp), Repeat::Unchanged);
        assert_eq!(read(&mut state, "/a", stamp), Repeat::AlreadyRead { times: 3 });
        assert_eq!(read(&mut state, "/a", changed), Repeat::Fresh);
    }

    #[test]
    fn another_tool_resets_the_count_and_forgetting_resets_the_content() {
        let (stamp, _) = stamps();
        let mut state = FileState::default();
        read(&mut state, "/a", stamp);
        read(&mut state, "/a", stamp);
        state.note_other_call();
        assert_eq!(read(&mut state, "/a", stamp), Repeat::Unchanged);
        state.forget_delivered();
        assert_eq!(read(&mut state, "/a", stamp), Repeat::Fresh);
        state.forget_delivered_by(&ToolCallId::new("/b"));
        assert_eq!(read(&mut state, "/a", stamp), Repeat::Unchanged);
        state.forget_delivered_by(&ToolCallId::new("/a"));
        assert_eq!(read(&mut state, "/a", stamp), Repeat::Fresh);
        state.note_write(Path::new("/a"), Seen { stamp, partial: false, writes: 1 });
        assert_eq!(read(&mut state, "/a", stamp), Repeat::Fresh);
    }

    #[test]
    fn a_file_that_always_changes_is_not_polled_forever() {
        let (one, two) = stamps();
        let mut state = FileState::default();
        for stamp in [one, two, one] {
            assert_eq!(read(&mut state, "/log", stamp), Repeat::Fresh);
        }
        assert_eq!(read(&mut state, "/log", two), Repeat::Polling { times: 4 });
        assert_eq!(read(&mut state, "/other", two), Repeat::Fresh);
        assert_eq!(read(&mut state, "/log", two), Repeat::Fresh);
    }

    #[test]
    fn searches_are_counted_in_a_row() {
        let mut state = FileState::default();
        assert_eq!(state.note_search("x".into()), 1);
        assert_eq!(state.note_search("x".into()), 2);
        assert_eq!(state.note_search("y".into()), 1);
        state.note_search("y".into());
        state.note_other_call();
        assert_eq!(state.note_search("y".into()), 1);
    }
}
