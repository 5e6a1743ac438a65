//! Brings a planned patch to the disk: all of it, or nothing of it.

use std::fs;
use std::io;
use std::path::{Path, PathBuf};

use super::super::super::atomic;
use super::super::super::open::plain;

/// One change on disk. Steps are done in order.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum Step {
    /// The file stands there with the content `old`.
    Write {
        path: PathBuf,
        old: Vec<u8>,
        new: Vec<u8>,
    },
    /// Nothing stands there.
    Create {
        path: PathBuf,
        new: Vec<u8>,
    },
    /// A file stands at `from` and nothing at `to`.
    Rename {
        from: PathBuf,
        to: PathBuf,
    },
    Remove {
        path: PathBuf,
    },
}

/// Why nothing was changed, or what could not be brought back.
#[derive(Debug, PartialEq, Eq)]
pub(super) struct Failed {
    /// Which file, and why.
    pub(super) problem: String,
    /// Files that are not as they were before; empty when all are.
    pub(super) not_restored: Vec<String>,
}

/// How to take a step back.
#[derive(Debug)]
enum Undo {
    Write { path: PathBuf, old: Vec<u8> },
    Remove { path: PathBuf },
    Rename { from: PathBuf, to: PathBuf },
    RemoveDir { path: PathBuf },
}

/// Does all steps, or takes back those that were done.
pub(super) fn run(steps: &[Step]) -> Result<(), Failed> {
    let mut undo = Vec::new();
    let mut removed = Vec::new();
    for step in steps {
        if let Err((path, error)) = take(step, &mut undo, &mut removed) {
            let problem = format!("{}: {}", path.display(), plain(&error));
            return Err(Failed { problem, not_restored: take_back(undo) });
        }
    }
    // Nothing can fail any more that would leave a half: what is removed stands under other names.
    for stash in removed {
        let _ = fs::remove_file(stash);
    }
    Ok(())
}

type StepError = (PathBuf, io::Error);

fn take(step: &Step, undo: &mut Vec<Undo>, removed: &mut Vec<PathBuf>) -> Result<(), StepError> {
    match step {
        Step::Write { path, old, new } => {
            let at = |error| (path.clone(), error);
            if fs::read(path).map_err(at)? != *old {
                return Err(at(io::Error::other("was changed by somebody else just now")));
            }
            atomic::replace(path, new).map_err(at)?;
            undo.push(Undo::Write { path: path.clone(), old: old.clone() });
        }
        Step::Create { path, new } => {
            let at = |error| (path.clone(), error);
            nothing_at(path).map_err(at)?;
            make_folders(path, undo).map_err(at)?;
            atomic::replace(path, new).map_err(at)?;
            undo.push(Undo::Remove { path: path.clone() });
        }
        Step::Rename { from, to } => {
            let at = |error| (to.clone(), error);
            nothing_at(to).map_err(at)?;
            make_folders(to, undo).map_err(at)?;
            rename(from, to).map_err(at)?;
            undo.push(Undo::Rename { from: to.clone(), to: from.clone() });
        }
        Step::Remove { path } => {
            let at = |error| (path.clone(), error);
            let stash = atomic::unused_name_beside(path).map_err(at)?;
            if let Err(error) = fs::rename(path, &stash) {
                let _ = fs::remove_file(&stash);
                return Err(at(error));
            }
            undo.push(Undo::Rename { from: stash.clone(), to: path.clone() });
            removed.push(stash);
        }
    }
    Ok(())
}

fn nothing_at(path: &Path) -> io::Result<()> {
    match fs::symlink_metadata(path) {
        Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(()),
        Err(error) => Err(error),
        Ok(_) => Err(io::Error::other("something stands there already")),
    }
}

/// Makes the folders that `path` needs, and notes each for the way back.
fn make_folders(path: &Path, undo: &mut Vec<Undo>) -> io::Result<()> {
    let missing: Vec<&Path> =
        path.ancestors().skip(1).take_while(|folder| fs::symlink_metadata(folder).is_err()).collect();
    for folder in missing.into_iter().rev() {
        fs::create_dir(folder)?;
        undo.push(Undo::RemoveDir { path: folder.to_owned() });
    }
    Ok(())
}

/// Moves a file, also to another file system.
fn rename(from: &Path, to: &Path) -> io::Result<()> {
    match fs::rename(from, to) {
        Err(error) if error.kind() == io::ErrorKind::CrossesDevices => {
            let copied = fs::copy(from, to).and_then(|_| fs::remove_file(from));
            if copied.is_err() {
                let _ = fs::remove_file(to);
            }
            copied
        }
        renamed => renamed,
    }
}

fn take_back(undo: Vec<Undo>) -> Vec<String> {
    let mut not_restored = Vec::new();
    for step in undo.into_iter().rev() {
        let (path, done) = match &step {
            Undo::Write { path, old } => (path, atomic::replace(path, old).map(drop)),
            Undo::Remove { path } => (path, fs::remove_file(path)),
            Undo::Rename { from, to } => (to, rename(from, to)),
            // Somebody may have put something into it meanwhile.
            Undo::RemoveDir { path } => (path, fs::remove_dir(path)),
        };
        if let Err(error) = done {
            tracing::warn!(path = %path.display(), %error, "a patch could not be taken back");
            not_restored.push(path.display().to_string());
        }
    }
    not_restored
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeMap;
    use std::os::unix::fs::{MetadataExt as _, PermissionsExt as _};

    use pretty_assertions::assert_eq;

    use super::*;

    /// All files and folders below, with content, mode and inode.
    fn picture(root: &Path) -> BTreeMap<PathBuf, (Option<Vec<u8>>, u32)> {
        let mut found = BTreeMap::new();
        let mut open = vec![root.to_owned()];
        while let Some(folder) = open.pop() {
            for entry in fs::read_dir(folder).unwrap() {
                let path = entry.unwrap().path();
                let mode = fs::symlink_metadata(&path).unwrap().mode();
                if path.is_dir() {
                    open.push(path.clone());
                }
                let content = path.is_file().then(|| fs::read(&path).unwrap());
                found.insert(path, (content, mode));
            }
        }
        found
    }

    fn place() -> (tempfile::TempDir, PathBuf) {
        let dir = tempfile::tempdir().unwrap();
        let root = dir.path().to_owned();
        for name in ["a", "b", "c", "sub/d"] {
            fs::create_dir_all(root.join(name).parent().unwrap()).unwrap();
            fs::write(root.join(name), name).unwrap();
        }
        fs::set_permissions(root.join("a"), fs::Permissions::from_mode(0o751)).unwrap();
        (dir, root)
    }

    fn steps(root: &Path) -> Vec<Step> {
        vec![
            Step::Write { path: root.join("a"), old: b"a".to_vec(), new: b"changed".to_vec() },
            Step::Create { path: root.join("x/y/new"), new: b"new".to_vec() },
            Step::Rename { from: root.join("b"), to: root.join("moved/b") },
            Step::Remove { path: root.join("c") },
            Step::Write { path: root.join("sub/d"), old: b"sub/d".to_vec(), new: b"last".to_vec() },
        ]
    }

    #[test]
    fn all_steps_are_done_and_nothing_else_is_left() {
        let (_dir, root) = place();
        run(&steps(&root)).unwrap();
        let names: Vec<String> = picture(&root)
            .into_iter()
            .filter(|(_, (content, _))| content.is_some())
            .map(|(path, _)| path.strip_prefix(&root).unwrap().display().to_string())
            .collect();
        assert_eq!(names, ["a", "moved/b", "sub/d", "x/y/new"]);
        assert_eq!(fs::read(root.join("a")).unwrap(), b"changed");
        assert_eq!(fs::metadata(root.join("a")).unwrap().mode() & 0o777, 0o751);
    }

    #[test]
    fn a_step_that_fails_leaves_every_file_as_it_was() {
        type Spoil = fn(&Path);
        let spoils: [Spoil; 4] = [
            // The last file became a folder.
            |root| {
                fs::remove_file(root.join("sub/d")).unwrap();
                fs::create_dir(root.join("sub/d")).unwrap();
            },
            // It was changed by somebody else.
            |root| fs::write(root.join("sub/d"), "edited by hand").unwrap(),
            // Where the new file belongs, something stands.
            |root| {
                fs::create_dir_all(root.join("x/y/new")).unwrap();
            },
            // Where a folder belongs, a file stands.
            |root| fs::write(root.join("moved"), "in the way").unwrap(),
        ];
        for spoil in spoils {
            let (_dir, root) = place();
            spoil(&root);
            let before = picture(&root);
            let failed = run(&steps(&root)).unwrap_err();
            assert_eq!(failed.not_restored, Vec::<String>::new(), "{failed:?}");
            assert_eq!(picture(&root), before, "{failed:?}");
        }
    }

    #[test]
    fn a_folder_that_turned_read_only_leaves_every_file_as_it_was() {
        if nix::unistd::geteuid().is_root() {
            // Nothing is read-only to root; the other causes are tested above.
            return;
        }
        let (_dir, root) = place();
        fs::set_permissions(root.join("sub"), fs::Permissions::from_mode(0o555)).unwrap();
        let before = picture(&root);
        run(&steps(&root)).unwrap_err();
        assert_eq!(picture(&root), before);
        fs::set_permissions(root.join("sub"), fs::Permissions::from_mode(0o755)).unwrap();
    }
}
