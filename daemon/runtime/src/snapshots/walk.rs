//! A terminal command that looks destructive: the project's files are kept before it, and what it did to them is
//! found out after it (spec 40 §5.10; the heuristic is that of spec 10 §10.1).
//!
//! Until the command has ended all files of the project stand in an index of their own; then only those that it
//! changed, deleted or made go into the turn's. When the daemon dies meanwhile, that is done at the next look.

use std::collections::{BTreeMap, HashMap};
use std::fs::{self, Metadata};
use std::io;
use std::os::unix::fs::MetadataExt as _;
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

use ignore::WalkBuilder;

use super::blobs::{Pin, private_folder};
use super::index::{Entry, Index, PathText};
use super::keep::settle;
use super::look::{Look, State, large, look};
use super::store::Store;

/// A project with more files is not kept.
const MAX_FILES: usize = 50_000;
/// Longest time that a command waits for it.
const PATIENCE: Duration = Duration::from_secs(30);
/// Names of walks begin with this, so that they are never taken for snapshots: an id is hexadecimal.
pub(super) const WALK: &str = "walk-";
/// What marks a project's root.
const MARKERS: [&str; 9] = [
    ".git",
    ".hg",
    "pyproject.toml",
    "package.json",
    "Cargo.toml",
    "go.mod",
    "Makefile",
    "pom.xml",
    "Gemfile",
];
/// Folders that are made from something else.
const SKIPPED_FOLDERS: [&str; 22] = [
    ".git",
    ".hg",
    ".svn",
    "node_modules",
    "bower_components",
    "target",
    "build",
    "dist",
    "out",
    "vendor",
    "__pycache__",
    ".venv",
    "venv",
    ".tox",
    ".mypy_cache",
    ".pytest_cache",
    ".ruff_cache",
    ".cache",
    ".gradle",
    ".next",
    ".nuxt",
    ".worktrees",
];
/// Native code, media, archives, logs.
const SKIPPED_ENDINGS: [&str; 38] = [
    "o", "a", "so", "dylib", "dll", "exe", "class", "pyc", "wasm", "jar", "war", "png", "jpg", "jpeg", "gif",
    "webp", "ico", "bmp", "mp3", "mp4", "mov", "avi", "mkv", "wav", "flac", "ogg", "zip", "tar", "gz", "tgz",
    "bz2", "xz", "zst", "7z", "rar", "iso", "dmg", "log",
];

/// A command that runs.
#[derive(Debug)]
pub(super) struct WalkRun {
    /// The name of its index file.
    name: String,
    session: String,
}

/// What is known of files without reading them again.
#[derive(Debug, Default)]
pub(super) struct StampCache {
    /// Of one project: who works in two pays for reading.
    root: PathBuf,
    states: HashMap<PathBuf, (Stamp, State)>,
}

/// Metadata that changes with every write: the change time cannot be set.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
struct Stamp {
    device: u64,
    inode: u64,
    len: u64,
    mode: u32,
    modified: (i64, i64),
    changed: (i64, i64),
}

impl Stamp {
    fn of(meta: &Metadata) -> Self {
        Self {
            device: meta.dev(),
            inode: meta.ino(),
            len: meta.len(),
            mode: meta.mode(),
            modified: (meta.mtime(), meta.mtime_nsec()),
            changed: (meta.ctime(), meta.ctime_nsec()),
        }
    }
}

/// Keeps the project of `cwd`. `None` when there is no project that can be kept.
pub(super) fn begin(
    store: &Store,
    index: &Index,
    cwd: &Path,
    pin: &mut Pin<'_>,
) -> io::Result<Option<WalkRun>> {
    let Some(root) = project_root(store, cwd) else { return Ok(None) };
    let Some(files) = files_of(store, &root) else { return Ok(None) };
    let limit = store.settings().max_file();
    let forbidden = store.paths.never_opened();
    let until = Instant::now() + PATIENCE;
    let now = file_time(store)?;
    let mut cache = std::mem::take(&mut *Store::lock(&store.stamps));
    if cache.root != root {
        cache = StampCache { root: root.clone(), states: HashMap::new() };
    }
    let mut walk =
        Index { workspace: PathText(root), files: Vec::with_capacity(files.len()), ..index.clone() };
    for (path, meta) in files {
        let stamp = Stamp::of(&meta);
        let known = cache.states.get(&path).filter(|(at, _)| *at == stamp).map(|(_, state)| state.clone());
        let state = match known {
            Some(state) => state,
            None if meta.len() > limit => large(&meta),
            None => {
                let look = look(&path, limit, &forbidden);
                store.put(&look, pin)?;
                // A file that was written a moment ago may be written again within the same tick.
                if stamp.changed.0 + 1 < now {
                    cache.states.insert(path.clone(), (stamp, look.state.clone()));
                }
                look.state
            }
        };
        if state != State::Other {
            walk.files.push(Entry::new(&path, state));
        }
        if Instant::now() > until {
            tracing::warn!(root = %walk.workspace.0.display(), "the project is too large to be kept in time");
            return Ok(None);
        }
    }
    *Store::lock(&store.stamps) = cache;
    let name = format!("{WALK}{}", uuid::Uuid::now_v7().simple());
    store.shelf.save_as(&walk, &name)?;
    Store::lock(&store.walks).insert(name.clone());
    Ok(Some(WalkRun { name, session: walk.session }))
}

/// Finds out what the command did, and puts it into the turn's index. When it is `cut_off`, nobody knows whether
/// what stands there now is the command's work.
pub(super) fn end(store: &Store, run: &WalkRun, index: Option<Index>, cut_off: bool) -> Option<Index> {
    let walk = store.shelf.load(&run.session, &run.name);
    let began = fs::metadata(store.shelf.folder(&run.session).join(format!("{}.json", run.name)));
    let merged = match (walk, began) {
        (Some(walk), Ok(began)) => Some(merge(store, &walk, index, &began, cut_off)),
        _ => index,
    };
    // The index that names the contents first, then the walk that named them until now.
    if let Some(index) = &merged
        && !index.files.is_empty()
        && let Err(error) = store.shelf.save(index)
    {
        tracing::warn!(%error, "a snapshot could not be written");
    }
    store.shelf.remove(&run.session, &run.name);
    Store::lock(&store.walks).remove(&run.name);
    merged
}

/// Settles walks of a session whose commands died with their daemon.
pub(super) fn settle_left_over(store: &Store, session: &str) {
    for name in store.shelf.names(session).into_iter().filter(|name| name.starts_with(WALK)) {
        if Store::lock(&store.walks).contains(&name) {
            continue;
        }
        let Some(walk) = store.shelf.load(session, &name) else {
            store.shelf.remove(session, &name);
            continue;
        };
        let index = store.shelf.load(session, &walk.id);
        end(store, &WalkRun { name, session: session.to_owned() }, index, true);
    }
}

fn merge(store: &Store, walk: &Index, index: Option<Index>, began: &Metadata, cut_off: bool) -> Index {
    let root = walk.workspace.0.clone();
    let (limit, forbidden) = (store.settings().max_file(), store.paths.never_opened());
    let mut index = index.unwrap_or_else(|| Index { files: Vec::new(), ..walk.clone() });
    let now: BTreeMap<PathBuf, Metadata> = files_of(store, &root).unwrap_or_default().into_iter().collect();
    let mut touched = |mut entry: Entry, look: &Look| {
        let path = entry.path.0.clone();
        // What stood there before the turn may be known already.
        if let Some(known) = index.entry(&path) {
            known.mixed |= !known.open && !entry.before.same_content(&known.after);
            return settle(store, known, look);
        }
        settle(store, &mut entry, look);
        entry.open = cut_off;
        index.files.push(entry);
    };
    for entry in &walk.files {
        // What was not written since the command began need not be read again.
        let path = &entry.path.0;
        let unchanged =
            now.get(path).is_some_and(|meta| !is_later(meta, began) && is_size(&entry.before, meta));
        if unchanged {
            continue;
        }
        let look = look(path, limit, &forbidden);
        if look.state != entry.before && look.state != State::Other {
            touched(entry.clone(), &look);
        }
    }
    let before: std::collections::BTreeSet<&Path> =
        walk.files.iter().map(|entry| entry.path.0.as_path()).collect();
    for (path, _) in
        now.iter().filter(|(path, meta)| is_later(meta, began) && !before.contains(path.as_path()))
    {
        // Older ones were there, but excluded: by an ignore file that has changed, for one.
        let look = look(path, limit, &forbidden);
        touched(Entry::new(path, State::Absent), &look);
    }
    index
}

fn is_later(meta: &Metadata, began: &Metadata) -> bool {
    (meta.ctime(), meta.ctime_nsec()) >= (began.ctime(), began.ctime_nsec())
}

fn is_size(state: &State, meta: &Metadata) -> bool {
    matches!(state, State::File { len, .. } | State::Large { len, .. } if *len == meta.len())
}

/// The time as the file system writes it: by this clock, not by ours, files are told apart.
fn file_time(store: &Store) -> io::Result<i64> {
    private_folder(&store.root)?;
    Ok(tempfile::tempfile_in(&store.root)?.metadata()?.ctime())
}

/// The nearest folder with a project's mark, else the folder itself; never the root of the disk, the user's home
/// or what is above it.
fn project_root(store: &Store, cwd: &Path) -> Option<PathBuf> {
    let cwd = fs::canonicalize(cwd).ok()?;
    let marked = cwd.ancestors().find(|folder| MARKERS.iter().any(|marker| folder.join(marker).exists()));
    let home = fs::canonicalize(&store.user_home).unwrap_or_else(|_| store.user_home.clone());
    let too_wide = |folder: &Path| folder.parent().is_none() || home.starts_with(folder);
    [marked, Some(cwd.as_path())].into_iter().flatten().find(|folder| !too_wide(folder)).map(Path::to_owned)
}

/// The project's own files; `None` when there are too many.
fn files_of(store: &Store, root: &Path) -> Option<Vec<(PathBuf, Metadata)>> {
    let own = store.root.parent().and_then(|home| fs::canonicalize(home).ok());
    let walk = WalkBuilder::new(root)
        .hidden(false)
        .follow_links(false)
        .same_file_system(true)
        .require_git(false)
        .filter_entry(move |entry| {
            let name = entry.file_name().to_string_lossy();
            let is_folder = entry.file_type().is_some_and(|kind| kind.is_dir());
            if is_folder {
                return entry.depth() == 0
                    || (!SKIPPED_FOLDERS.contains(&&*name) && own.as_deref() != Some(entry.path()));
            }
            let ending = Path::new(&*name).extension().and_then(|ending| ending.to_str());
            !name.starts_with(".env")
                && !ending.is_some_and(|ending| SKIPPED_ENDINGS.contains(&&*ending.to_ascii_lowercase()))
        })
        .build();
    let mut files = Vec::new();
    let until = Instant::now() + PATIENCE;
    for entry in walk.flatten() {
        let Some(meta) = entry.metadata().ok().filter(Metadata::is_file) else { continue };
        if files.len() == MAX_FILES || Instant::now() > until {
            tracing::info!(root = %root.display(), "the project is too large to be kept");
            return None;
        }
        files.push((entry.into_path(), meta));
    }
    Some(files)
}

/// Whether a command looks as if it destroyed something (spec 10 §10.1). It may be wrong in both ways: the policy
/// decides what runs, this only whether it is worth a look at the files first.
pub(super) fn is_destructive(command: &str) -> bool {
    const PROGRAMS: [&str; 8] = ["rm", "rmdir", "cp", "install", "mv", "truncate", "dd", "shred"];
    const GIT: [&str; 4] = ["reset", "clean", "checkout", "restore"];
    if overwrites(command) {
        return true;
    }
    let words: Vec<&str> = command
        .split(|c: char| {
            c.is_whitespace() || matches!(c, ';' | '|' | '&' | '(' | ')' | '`' | '{' | '}' | '"' | '\'')
        })
        .filter(|word| !word.is_empty())
        .collect();
    words.iter().enumerate().any(|(at, word)| {
        let program = word.rsplit('/').next().unwrap_or(word).trim_start_matches('\\');
        let rest = words.get(at + 1..).unwrap_or_default();
        PROGRAMS.contains(&program)
            || (program == "sed"
                && rest.iter().any(|word| word.starts_with("-i") || word.starts_with("--in-place")))
            || (program == "git" && rest.iter().any(|word| GIT.contains(word)))
    })
}

/// A single `>`: neither `>>` nor a duplication such as `2>&1`.
fn overwrites(command: &str) -> bool {
    let bytes = command.as_bytes();
    bytes.iter().enumerate().any(|(at, byte)| {
        let next = bytes.get(at + 1);
        let previous = at.checked_sub(1).and_then(|at| bytes.get(at));
        *byte == b'>'
            && !matches!(next, Some(b'>' | b'&' | b'('))
            && !matches!(previous, Some(b'>' | b'-' | b'='))
            && !command
                .get(at..)
                .is_some_and(|rest| rest.trim_start_matches(['>', '|', ' ']).starts_with("/dev/null"))
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn commands_that_destroy_are_told_from_those_that_look() {
        for destructive in [
            "rm -rf build",
            "cd x && rm a",
            "/bin/rm a",
            "\\rm a",
            "sudo mv a b",
            "bash -c 'rm a'",
            "sed -i s/a/b/ f",
            "git reset --hard",
            "git -C /x checkout .",
            "echo x > f",
            "echo x 2>err",
            "ls >| f",
            "dd if=/dev/zero of=f",
            "find . | xargs rm",
        ] {
            assert!(is_destructive(destructive), "{destructive}");
        }
        for harmless in [
            "ls -la",
            "git status",
            "cargo test 2>&1",
            "echo x >> f",
            "sed -n 1p f",
            "rmdirs",
            "grep -r rm_all .",
            "make >/dev/null",
            "cmp <(a) >(b)",
            "python -c 'x = a -> b'",
        ] {
            assert!(!is_destructive(harmless), "{harmless}");
        }
    }
}
