//! Puts files back as they were before a turn, and nothing else: what somebody edited since stays as it is.
//!
//! The state before the restore is a snapshot of its own, on disk before the first file is touched, so that an undo
//! can be undone and a crash in the middle loses nothing.

use std::fs::{self, Permissions};
use std::io::{self, Read as _, Write as _};
use std::os::unix::fs::{MetadataExt as _, PermissionsExt as _};
use std::path::{Path, PathBuf};

use hermes_core::SessionId;

use super::blobs::{damaged, private_folder};
use super::index::{Entry, Index, PathText, new_snapshot};
use super::keep::missing_folders;
use super::look::{self, Hash, Look, State, look};
use super::store::Store;

/// Mode of a file whose mode is not known.
const NEW_FILE_MODE: u32 = 0o644;

/// What to restore.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct RestoreRequest {
    /// Beginning of a snapshot's id; `None`: the newest turn that was not restored.
    pub id: Option<String>,
    /// Only this file.
    pub file: Option<PathBuf>,
    /// Overwrite files that were edited since as well.
    pub all: bool,
    /// Say what would be done, and do nothing.
    pub dry_run: bool,
}

/// What was done, or would be.
#[derive(Debug, Clone, PartialEq)]
pub struct Restored {
    pub snapshot: super::Snapshot,
    pub restored: Vec<PathBuf>,
    /// Files that the agent had made: moved into the trash.
    pub removed: Vec<PathBuf>,
    /// Left as they are, each with the reason.
    pub kept: Vec<(PathBuf, String)>,
    /// The snapshot of the state before, by which this can be undone.
    pub undone_by: Option<String>,
}

/// What is to be done with one file.
enum Act {
    /// It is as it was.
    Nothing,
    Keep(String),
    Do(Box<Deed>),
}

/// A change of one file.
struct Deed {
    /// Its place in the snapshot.
    at: usize,
    now: Look,
    target: State,
}

pub(super) fn run(
    store: &Store,
    session: &SessionId,
    mut index: Index,
    newer: &[Index],
    request: &RestoreRequest,
) -> io::Result<Restored> {
    let mut done = Restored {
        snapshot: super::describe(store, &index),
        restored: Vec::new(),
        removed: Vec::new(),
        kept: Vec::new(),
        undone_by: None,
    };
    let mut deeds = Vec::new();
    let mut settled = Vec::new();
    for (at, entry) in
        index.files.iter().enumerate().filter(|(_, entry)| is_meant(entry, request.file.as_deref()))
    {
        match decide(store, at, entry, newer, request.all) {
            Act::Nothing => settled.push(at),
            Act::Keep(reason) => done.kept.push((entry.path.0.clone(), reason)),
            Act::Do(deed) => deeds.push(deed),
        }
    }
    if request.dry_run {
        for deed in deeds {
            done.note(&index, &deed);
        }
        return Ok(done);
    }

    let mut before = snapshot_of_now(store, session, &index, &deeds)?;
    for (place, deed) in deeds.iter().enumerate() {
        let entry = index.files.get(deed.at).expect("a deed names a file of its snapshot");
        let noted = before.files.get_mut(place).expect("each deed has its line");
        match perform(store, entry, deed, noted.trash.as_deref()) {
            Ok(()) => {
                settled.push(deed.at);
                done.note(&index, deed);
            }
            Err(error) => {
                // It was not touched, so there is nothing to undo.
                noted.after = noted.before.clone();
                done.kept.push((entry.path.0.clone(), format!("could not be put back: {error}")));
            }
        }
    }
    before.files.retain(|entry| {
        !entry.before.same_content(&entry.after) || entry.before.mode() != entry.after.mode()
    });
    if !before.files.is_empty() {
        done.undone_by = Some(before.id.clone());
    }
    store.save_or_remove(&mut before)?;
    // An undo that could do nothing at all is not done: it is offered again.
    let whole = request.file.is_none() && (done.kept.is_empty() || !settled.is_empty());
    for at in settled {
        if let Some(entry) = index.files.get_mut(at) {
            entry.restored = true;
        }
    }
    index.restored |= whole || index.files.iter().all(|entry| entry.restored);
    mark_the_other_way(store, session.as_str(), &index);
    store.shelf.save(&index)?;
    done.snapshot = super::describe(store, &index);
    Ok(done)
}

impl Restored {
    fn note(&mut self, index: &Index, deed: &Deed) {
        let Some(entry) = index.files.get(deed.at) else { return };
        let list = if deed.target == State::Absent { &mut self.removed } else { &mut self.restored };
        list.push(entry.path.0.clone());
    }
}

/// Whether a file is the one that was asked for, if one was. A path that is no text is asked for as it is shown.
pub(super) fn is_meant(entry: &Entry, file: Option<&Path>) -> bool {
    let path = &entry.path.0;
    file.is_none_or(|file| file == path || Some(&*path.to_string_lossy()) == file.to_str())
}

fn decide(store: &Store, at: usize, entry: &Entry, newer: &[Index], all: bool) -> Act {
    let path = &entry.path.0;
    let now = look(path, store.settings().max_file(), &store.paths.never_opened());
    if now.state == entry.before {
        return Act::Nothing;
    }
    if matches!(entry.before, State::Large { .. }) && entry.trash.is_none() {
        return Act::Keep("was too large to be kept".into());
    }
    if now.state == State::Other {
        return Act::Keep("is no regular file any more, or cannot be read".into());
    }
    match store.paths.resolve(path) {
        Ok(target) if target == *path => {}
        _ => return Act::Keep("a symbolic link stands in its way now".into()),
    }
    match store.paths.check_write(path) {
        Ok(()) => {}
        Err(refusal) if entry.cross_profile && refusal.lifts_for_cross_profile() => {}
        Err(_) => return Act::Keep("the path may not be written".into()),
    }
    let as_left = now.state.same_content(&entry.after);
    if !all {
        if entry.mixed {
            return Act::Keep("was edited by somebody else during the turn".into());
        }
        if !as_left {
            return Act::Keep(why_not_as_left(entry, &now, newer));
        }
    }
    // A mode that somebody changed since is theirs, unless everything is to be as it was.
    let target = match (now.state.mode(), entry.after.mode()) {
        (Some(mode), Some(left)) if mode != left && !all => with_mode(&entry.before, mode),
        _ => entry.before.clone(),
    };
    Act::Do(Box::new(Deed { at, now, target }))
}

fn why_not_as_left(entry: &Entry, now: &Look, newer: &[Index]) -> String {
    let by_later_turn = newer.iter().filter(|index| !index.restored).find(|index| {
        index.files.iter().any(|later| later.path == entry.path && later.after.same_content(&now.state))
    });
    match (by_later_turn, &now.state) {
        (Some(later), _) => format!("was changed again by a later turn: undo {} first", later.id),
        _ if entry.open => "the turn was cut off, so it is not known who changed it last".into(),
        (None, State::Absent) => "was deleted since".into(),
        (None, _) => "was edited since".into(),
    }
}

fn with_mode(state: &State, mode: u32) -> State {
    match state.clone() {
        State::File { hash, len, .. } => State::File { hash, len, mode },
        State::Large { len, mtime, inode, .. } => State::Large { len, mode, mtime, inode },
        other => other,
    }
}

/// The snapshot by which the restore can be undone, on disk.
fn snapshot_of_now(
    store: &Store,
    session: &SessionId,
    index: &Index,
    deeds: &[Box<Deed>],
) -> io::Result<Index> {
    let id = new_snapshot();
    let reason = format!("undo of {} ({})", index.id, index.reason);
    let mut before = Index {
        undoes: Some(index.id.clone()),
        ..Index::new(id, session, store.now(), reason, &index.workspace.0)
    };
    let mut pin = store.blobs.pin();
    for (place, deed) in deeds.iter().enumerate() {
        let Some(entry) = index.files.get(deed.at) else { continue };
        let mut noted = Entry {
            open: false,
            after: deed.target.clone(),
            cross_profile: entry.cross_profile,
            ..Entry::new(&entry.path.0, deed.now.state.clone())
        };
        match (&deed.now.state, &deed.target) {
            // It is moved, so its content need not be stored twice.
            (_, State::Absent) => noted.trash = Some(trash_place(&before.id, place, &entry.path.0)),
            (State::Absent, _) => noted.made_dirs = missing_folders(&entry.path.0),
            (State::File { .. }, _) => store.put(&deed.now, &mut pin)?,
            (State::Large { .. }, _) => noted.trash = Some(trash_place(&before.id, place, &entry.path.0)),
            (State::Other, _) => {}
        }
        before.files.push(noted);
    }
    if !before.files.is_empty() {
        store.shelf.save(&before)?;
    }
    Ok(before)
}

/// A place of its own for each file, with a name that a person recognises.
fn trash_place(id: &str, place: usize, path: &Path) -> String {
    let name = path.file_name().unwrap_or_default().to_string_lossy();
    let name: String =
        name.chars().filter(|c| !c.is_control() && *c != '/' && *c != '\u{fffd}').take(60).collect();
    format!("trash/{id}/{place}-{name}")
}

fn perform(store: &Store, entry: &Entry, deed: &Deed, trash: Option<&str>) -> io::Result<()> {
    let path = &entry.path.0;
    if let Some(trash) = trash {
        move_to(path, &store.root.join(trash))?;
    }
    match &deed.target {
        State::Absent => {
            // Folders that the agent had made, when nothing else is in them by now.
            for folder in entry.made_dirs.iter().rev() {
                if fs::remove_dir(&folder.0).is_err() {
                    break;
                }
            }
            Ok(())
        }
        State::File { hash, mode, .. } => {
            let content =
                entry.trash.as_deref().map(|trash| store.root.join(trash)).filter(|place| place.exists());
            let content = match content {
                Some(place) => look::open(&place)?,
                None => store.blobs.open(hash)?,
            };
            write(path, content, *mode, Some(hash))
        }
        State::Large { mode, .. } => {
            let place = entry.trash.as_deref().ok_or_else(damaged)?;
            write(path, look::open(&store.root.join(place))?, *mode, None)
        }
        State::Other => Ok(()),
    }
}

/// Replaces `path` in one step by `content`, checked against its hash first.
fn write(path: &Path, mut content: fs::File, mode: u32, hash: Option<&Hash>) -> io::Result<()> {
    let folder = path.parent().ok_or_else(|| io::Error::from(io::ErrorKind::IsADirectory))?;
    fs::create_dir_all(folder)?;
    let mut temporary = tempfile::Builder::new().prefix(".hermes-").suffix(".tmp").tempfile_in(folder)?;
    let mut hasher = blake3::Hasher::new();
    let mut buffer = vec![0; 64 * 1024];
    loop {
        let read = content.read(&mut buffer)?;
        let Some(bytes) = buffer.get(..read).filter(|bytes| !bytes.is_empty()) else { break };
        hasher.update(bytes);
        temporary.write_all(bytes)?;
    }
    if hash.is_some_and(|hash| *hash != Hash::finish(&hasher)) {
        return Err(damaged());
    }
    let file = temporary.as_file();
    if let Ok(old) = fs::symlink_metadata(path) {
        // Only root may give files away; a group that we are in is kept where possible.
        let _ = std::os::unix::fs::fchown(file, Some(old.uid()), Some(old.gid()));
    }
    file.set_permissions(Permissions::from_mode(if mode == 0 { NEW_FILE_MODE } else { mode }))?;
    file.sync_all()?;
    temporary.persist(path).map(drop).map_err(|error| error.error)
}

/// Moves a file, also to another file system.
fn move_to(from: &Path, to: &Path) -> io::Result<()> {
    if let Some(folder) = to.parent() {
        private_folder(folder)?;
    }
    match fs::rename(from, to) {
        Err(error) if error.kind() == io::ErrorKind::CrossesDevices => {
            let mut source = look::open(from)?;
            let mut target = fs::File::create_new(to)?;
            target.set_permissions(Permissions::from_mode(0o600))?;
            io::copy(&mut source, &mut target)?;
            target.sync_all()?;
            fs::remove_file(from)
        }
        moved => moved,
    }
}

/// A snapshot that a restore made and that is restored itself brings back what that restore undid.
fn mark_the_other_way(store: &Store, session: &str, index: &Index) {
    let mut next = index.undoes.clone();
    let mut restored = false;
    // A chain is as long as somebody went to and fro; its beginning is a turn.
    while let Some(mut other) = next.and_then(|id| store.shelf.load(session, &id)) {
        other.restored = restored;
        for entry in other.files.iter_mut().filter(|entry| is_in(index, &entry.path)) {
            entry.restored = restored;
        }
        if let Err(error) = store.shelf.save(&other) {
            tracing::warn!(%error, "a snapshot could not be marked");
        }
        next = other.undoes;
        restored = !restored;
    }
}

fn is_in(index: &Index, path: &PathText) -> bool {
    index.files.iter().any(|entry| entry.path == *path)
}

#[cfg(test)]
mod tests {
    use super::super::diff::shown;
    use super::*;

    #[test]
    fn the_trash_has_a_place_for_any_name() {
        use std::os::unix::ffi::OsStrExt as _;
        let odd = Path::new(std::ffi::OsStr::from_bytes(b"/a/b\n\xff\x1b.txt"));
        assert_eq!(trash_place("1", 7, odd), "trash/1/7-b.txt");
        assert_eq!(trash_place("1", 0, Path::new("/")), "trash/1/0-");
        assert_eq!(shown(odd).lines().count(), 1);
    }
}
