//! What is written down of a snapshot: one JSON file each, `sessions/s-<session>/<id>.json`, replaced whole.

use std::ffi::OsString;
use std::fmt::Write as _;
use std::fs;
use std::io;
use std::os::unix::ffi::{OsStrExt as _, OsStringExt as _};
use std::path::{Path, PathBuf};

use hermes_core::{SessionId, TurnId};
use serde::{Deserialize, Deserializer, Serialize, Serializer};

use super::blobs::{private_folder, replace};
use super::look::{Hash, State};
use super::walk::WALK;

/// The format of the index files.
const VERSION: u32 = 1;
/// Digits of an id.
const ID_DIGITS: usize = 16;

/// A snapshot as it is written down.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub(super) struct Index {
    pub(super) version: u32,
    pub(super) id: String,
    pub(super) session: String,
    /// Empty for a snapshot that a restore made.
    pub(super) turn: String,
    pub(super) created_at: f64,
    /// Orders snapshots of one moment: a UUIDv7.
    pub(super) order: String,
    pub(super) reason: String,
    /// The root of the session's workspace.
    pub(super) workspace: PathText,
    /// Made by a restore: the snapshot that was restored.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(super) undoes: Option<String>,
    #[serde(default)]
    pub(super) restored: bool,
    pub(super) files: Vec<Entry>,
}

/// One file of a snapshot.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[expect(clippy::struct_excessive_bools, reason = "a file of facts, each of which stands alone")]
pub(super) struct Entry {
    pub(super) path: PathText,
    /// As it was before the turn.
    pub(super) before: State,
    /// As the agent left it, as far as that is known.
    pub(super) after: State,
    /// A call that changes it has begun and has not been seen to end.
    #[serde(default, skip_serializing_if = "is_false")]
    pub(super) open: bool,
    /// Somebody else changed it between two calls of the turn.
    #[serde(default, skip_serializing_if = "is_false")]
    pub(super) mixed: bool,
    /// The write was one into another profile, and allowed as such.
    #[serde(default, skip_serializing_if = "is_false")]
    pub(super) cross_profile: bool,
    /// Folders that were not there before, outermost first.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub(super) made_dirs: Vec<PathText>,
    #[serde(default)]
    pub(super) added: u32,
    #[serde(default)]
    pub(super) removed: u32,
    /// Where the file was moved instead of being deleted, below the folder of all snapshots.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(super) trash: Option<String>,
    #[serde(default, skip_serializing_if = "is_false")]
    pub(super) restored: bool,
}

#[expect(clippy::trivially_copy_pass_by_ref, reason = "the form that serde asks for")]
fn is_false(flag: &bool) -> bool {
    !*flag
}

impl Entry {
    /// A file that is about to be changed for the first time.
    pub(super) fn new(path: &Path, before: State) -> Self {
        Self {
            path: PathText(path.to_owned()),
            after: before.clone(),
            before,
            open: true,
            mixed: false,
            cross_profile: false,
            made_dirs: Vec::new(),
            added: 0,
            removed: 0,
            trash: None,
            restored: false,
        }
    }
}

impl Index {
    pub(super) fn new(
        id: String,
        session: &SessionId,
        created_at: f64,
        reason: String,
        workspace: &Path,
    ) -> Self {
        Self {
            version: VERSION,
            id,
            session: session.as_str().to_owned(),
            turn: String::new(),
            created_at,
            order: uuid::Uuid::now_v7().to_string(),
            reason,
            workspace: PathText(workspace.to_owned()),
            undoes: None,
            restored: false,
            files: Vec::new(),
        }
    }

    pub(super) fn entry(&mut self, path: &Path) -> Option<&mut Entry> {
        self.files.iter_mut().find(|entry| entry.path.0 == path)
    }

    /// All contents that it names.
    pub(super) fn hashes(&self) -> impl Iterator<Item = &Hash> {
        self.files.iter().filter_map(|entry| match &entry.before {
            State::File { hash, .. } => Some(hash),
            _ => None,
        })
    }
}

/// The id of a turn's snapshot: the same turn always has the same one.
pub(super) fn turn_snapshot(session: &SessionId, turn: &TurnId) -> String {
    digits(format!("{session}\0{turn}").as_bytes())
}

/// A new id, for a snapshot that a restore makes.
pub(super) fn new_snapshot() -> String {
    digits(uuid::Uuid::now_v7().as_bytes())
}

fn digits(bytes: &[u8]) -> String {
    blake3::hash(bytes).to_hex().chars().take(ID_DIGITS).collect()
}

/// The index files of the profile.
#[derive(Debug)]
pub(super) struct Shelf {
    root: PathBuf,
}

impl Shelf {
    pub(super) fn new(root: PathBuf) -> Self {
        Self { root }
    }

    /// The folder of a session's index files. The prefix keeps an id such as `..` from being more than a name.
    pub(super) fn folder(&self, session: &str) -> PathBuf {
        self.root.join(format!("s-{session}"))
    }

    pub(super) fn save(&self, index: &Index) -> io::Result<()> {
        self.save_as(index, &index.id)
    }

    /// Writes an index under another name than its own: one that is not a snapshot yet.
    pub(super) fn save_as(&self, index: &Index, name: &str) -> io::Result<()> {
        let folder = self.folder(&index.session);
        private_folder(&folder)?;
        let text = serde_json::to_vec(index).map_err(io::Error::other)?;
        replace(&folder, &folder.join(format!("{name}.json")), &text)
    }

    /// `None` when there is none, or none that can be read.
    pub(super) fn load(&self, session: &str, name: &str) -> Option<Index> {
        read(&self.folder(session).join(format!("{name}.json")))
    }

    pub(super) fn remove(&self, session: &str, name: &str) {
        let folder = self.folder(session);
        let _ = fs::remove_file(folder.join(format!("{name}.json")));
        // Goes only when it is empty.
        let _ = fs::remove_dir(folder);
    }

    /// The names of a session's index files, without `.json`.
    pub(super) fn names(&self, session: &str) -> Vec<String> {
        names(&self.folder(session))
    }

    /// A session's snapshots, newest first.
    pub(super) fn of_session(&self, session: &str) -> Vec<Index> {
        let names = self.names(session);
        // A walk is no snapshot yet.
        let snapshots = names.iter().filter(|name| !name.starts_with(WALK));
        sorted(snapshots.filter_map(|name| self.load(session, name)))
    }

    /// The sessions that have snapshots.
    pub(super) fn sessions(&self) -> Vec<String> {
        let entries = fs::read_dir(&self.root).into_iter().flatten().flatten();
        entries
            .filter_map(|entry| entry.file_name().to_str()?.strip_prefix("s-").map(str::to_owned))
            .collect()
    }
}

fn sorted(indexes: impl Iterator<Item = Index>) -> Vec<Index> {
    let mut indexes: Vec<Index> = indexes.collect();
    indexes.sort_by(|a, b| b.created_at.total_cmp(&a.created_at).then_with(|| b.order.cmp(&a.order)));
    indexes
}

fn names(folder: &Path) -> Vec<String> {
    let entries = fs::read_dir(folder).into_iter().flatten().flatten();
    entries
        .filter_map(|entry| {
            let name = entry.file_name().to_str()?.strip_suffix(".json")?.to_owned();
            (!name.starts_with('.')).then_some(name)
        })
        .collect()
}

fn read(path: &Path) -> Option<Index> {
    let bytes = fs::read(path).ok()?;
    match serde_json::from_slice::<Index>(&bytes) {
        Ok(index) if index.version == VERSION && index.is_sound() => Some(index),
        Ok(_) => {
            tracing::warn!(path = %path.display(), "a snapshot of another format is not used");
            None
        }
        Err(error) => {
            tracing::warn!(path = %path.display(), %error, "a snapshot's index cannot be read");
            None
        }
    }
}

impl Index {
    /// Whether what becomes a path is a path of ours: a damaged or forged index leads nowhere else.
    fn is_sound(&self) -> bool {
        self.hashes().all(|hash| Hash::parse(hash.as_str()).is_some())
            && self.files.iter().all(|entry| {
                entry.path.0.is_absolute()
                    && entry.made_dirs.iter().all(|dir| dir.0.is_absolute())
                    && entry.trash.as_deref().is_none_or(|trash| {
                        trash.starts_with("trash/") && !trash.split('/').any(|part| part == "..")
                    })
            })
    }
}

/// A path in JSON: text where it is text, else its bytes in hexadecimal.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct PathText(pub(super) PathBuf);

#[derive(Serialize, Deserialize)]
#[serde(untagged)]
enum Written {
    Text(String),
    Bytes { bytes: String },
}

impl Serialize for PathText {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        let written = match self.0.to_str() {
            Some(text) => Written::Text(text.to_owned()),
            None => Written::Bytes { bytes: to_hex(self.0.as_os_str().as_bytes()) },
        };
        written.serialize(serializer)
    }
}

impl<'de> Deserialize<'de> for PathText {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        match Written::deserialize(deserializer)? {
            Written::Text(text) => Ok(Self(text.into())),
            Written::Bytes { bytes } => from_hex(&bytes)
                .map(|bytes| Self(OsString::from_vec(bytes).into()))
                .ok_or_else(|| serde::de::Error::custom("not hexadecimal")),
        }
    }
}

fn to_hex(bytes: &[u8]) -> String {
    bytes.iter().fold(String::new(), |mut text, byte| {
        let _ = write!(text, "{byte:02x}");
        text
    })
}

fn from_hex(text: &str) -> Option<Vec<u8>> {
    let digits = text.as_bytes();
    if !digits.len().is_multiple_of(2) {
        return None;
    }
    digits.chunks(2).map(|pair| u8::from_str_radix(std::str::from_utf8(pair).ok()?, 16).ok()).collect()
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn index(session: &str) -> Index {
        let session = SessionId::parse(session).unwrap();
        Index::new(new_snapshot(), &session, 1.0, "write_file a".into(), Path::new("/w"))
    }

    #[test]
    fn a_session_named_like_a_folder_above_stays_in_its_own() {
        let dir = tempfile::tempdir().unwrap();
        let shelf = Shelf::new(dir.path().join("sessions"));
        shelf.save(&index("..")).unwrap();
        assert_eq!(fs::read_dir(dir.path()).unwrap().count(), 1);
        assert_eq!((shelf.sessions(), shelf.of_session("..").len()), (vec!["..".to_owned()], 1));
    }

    #[test]
    fn an_index_that_was_cut_off_hides_no_other() {
        let dir = tempfile::tempdir().unwrap();
        let shelf = Shelf::new(dir.path().to_owned());
        let (good, cut) = (index("s"), index("s"));
        shelf.save(&good).unwrap();
        shelf.save(&cut).unwrap();
        let path = shelf.folder("s").join(format!("{}.json", cut.id));
        let whole = fs::read(&path).unwrap();
        fs::write(&path, whole.get(..whole.len() / 2).unwrap()).unwrap();
        // A write that was killed before its rename.
        fs::write(shelf.folder("s").join(".new-x"), "{").unwrap();
        assert_eq!(shelf.of_session("s"), [good]);
    }

    #[test]
    fn a_forged_index_names_no_place_of_its_own() {
        let dir = tempfile::tempdir().unwrap();
        let shelf = Shelf::new(dir.path().to_owned());
        let mut bad = index("s");
        bad.files.push(Entry {
            trash: Some("trash/../../x".into()),
            ..Entry::new(Path::new("/a"), State::Absent)
        });
        shelf.save(&bad).unwrap();
        assert_eq!(shelf.load("s", &bad.id), None);
    }

    proptest! {
        #[test]
        fn any_path_survives_its_way_through_json(bytes in proptest::collection::vec(any::<u8>(), 0..40)) {
            let path = PathText(OsString::from_vec(bytes).into());
            let text = serde_json::to_string(&path).unwrap();
            prop_assert_eq!(serde_json::from_str::<PathText>(&text).unwrap(), path);
        }
    }
}
