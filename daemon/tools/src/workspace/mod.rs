//! A live session's place in the world: where it works, and what it has seen of the files there.

mod bounded;
mod file_state;
mod ledger;
mod paths;
mod stamp;
mod turns;

use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use hermes_core::{ClientEnv, SessionId, ToolCallId};
use hermes_runtime::{Secret, SessionKey};

pub(crate) use file_state::{FileState, ReadKey, Repeat, Seen, WARN_AT};
pub use ledger::FileLedger;
pub(crate) use paths::real_path;
pub use paths::{PathError, ResolvedPath};
pub(crate) use stamp::Stamp;
pub(crate) use turns::{Turn, Turns};

/// What a session's workspace is made of.
#[derive(Debug, Clone)]
pub struct WorkspaceInput {
    pub session_id: SessionId,
    /// Absolute directory that the session works in. It need not exist.
    pub cwd: PathBuf,
    /// What `~` means.
    pub user_home: Option<PathBuf>,
    pub client_env: ClientEnv,
}

/// One per live session, shared by its calls.
#[derive(Debug)]
pub struct Workspace {
    session_id: SessionId,
    root: PathBuf,
    user_home: Option<PathBuf>,
    client_env: ClientEnv,
    shell: SessionKey,
    // Short sections without I/O and without `.await`: std locks.
    cwd: Mutex<PathBuf>,
    files: Mutex<FileState>,
    sudo: Mutex<Option<Secret>>,
    turns: Arc<Turns>,
}

impl Workspace {
    /// Opens the workspace of a session: its root is `input.cwd` with symbolic links resolved. Touches the
    /// file system once.
    pub fn new(input: WorkspaceInput) -> Self {
        let root = real_path(&input.cwd).unwrap_or(input.cwd);
        Self {
            shell: SessionKey::from(&input.session_id),
            session_id: input.session_id,
            cwd: Mutex::new(root.clone()),
            root,
            user_home: input.user_home,
            client_env: input.client_env,
            files: Mutex::default(),
            sudo: Mutex::default(),
            turns: Arc::default(),
        }
    }

    /// The session whose workspace this is.
    pub fn session_id(&self) -> &SessionId {
        &self.session_id
    }

    /// Where the session was opened.
    pub fn root(&self) -> &Path {
        &self.root
    }

    /// Where the session is now: commands move it.
    pub fn cwd(&self) -> PathBuf {
        self.cwd.lock().unwrap_or_else(PoisonError::into_inner).clone()
    }

    /// Moves the session.
    pub fn set_cwd(&self, cwd: PathBuf) {
        *self.cwd.lock().unwrap_or_else(PoisonError::into_inner) = cwd;
    }

    /// The password for `sudo` that somebody gave in this session.
    pub(crate) fn sudo_password(&self) -> Option<Secret> {
        self.sudo.lock().unwrap_or_else(PoisonError::into_inner).clone()
    }

    /// Remembers a password, or forgets the one that there is.
    pub(crate) fn set_sudo_password(&self, password: Option<Secret>) {
        *self.sudo.lock().unwrap_or_else(PoisonError::into_inner) = password;
    }

    /// What the client that opened the session handed over of its environment.
    pub fn client_env(&self) -> &ClientEnv {
        &self.client_env
    }

    /// Names the shell state that the session's commands share.
    pub fn shell(&self) -> &SessionKey {
        &self.shell
    }

    /// A written path, absolute but with its links: `~` expanded, relative to where the session is. Looks
    /// at no file.
    pub fn locate(&self, written: &str) -> Result<PathBuf, PathError> {
        paths::absolute(written, &self.cwd(), self.user_home.as_deref())
    }

    /// The file that a written path means: `~` expanded, relative to where the session is, symbolic links
    /// resolved. Looks at the file system, but reads no file.
    pub fn resolve(&self, written: &str) -> Result<ResolvedPath, PathError> {
        let absolute = self.locate(written)?;
        let path = real_path(&absolute)?;
        let relative = !written.starts_with(['/', '~']);
        let strayed = relative && !path.starts_with(&self.root);
        Ok(ResolvedPath { written: absolute, path, strayed })
    }

    /// The path as the model can write it back: relative when it is below where the session is.
    pub(crate) fn shown(&self, path: &Path) -> String {
        match path.strip_prefix(self.cwd()) {
            Ok(below) if below.as_os_str().is_empty() => ".".to_owned(),
            Ok(below) => below.display().to_string(),
            Err(_) => path.display().to_string(),
        }
    }

    /// The model no longer has what it read (its context was compressed or rewound): unchanged
    /// files are read anew instead of being called unchanged.
    pub fn forget_reads(&self) {
        self.files().forget_delivered();
    }

    /// The model did not get the result of this call, or only a part of it: what it would have read is read anew.
    pub(crate) fn forget_read_of(&self, call: &ToolCallId) {
        self.files().forget_delivered_by(call);
    }

    /// The place of a call that begins now, behind those that began before.
    pub(crate) fn take_turn(&self) -> Arc<Turn> {
        Arc::new(self.turns.take())
    }

    pub(crate) fn files(&self) -> MutexGuard<'_, FileState> {
        self.files.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn relative_paths_follow_the_session_and_straying_is_noticed() {
        let dir = tempfile::tempdir().unwrap();
        let root = std::fs::canonicalize(dir.path()).unwrap();
        std::fs::create_dir_all(root.join("w/sub")).unwrap();
        let workspace = Workspace::new(WorkspaceInput {
            session_id: SessionId::parse("s").unwrap(),
            cwd: root.join("w"),
            user_home: Some(root.clone()),
            client_env: ClientEnv::default(),
        });
        let resolved = |written: &str| {
            let resolved = workspace.resolve(written).unwrap();
            (resolved.path, resolved.strayed)
        };
        assert_eq!(resolved("a"), (root.join("w/a"), false));
        workspace.set_cwd(root.join("w/sub"));
        assert_eq!(resolved("../a"), (root.join("w/a"), false));
        assert_eq!(resolved("../../b"), (root.join("b"), true));
        assert_eq!(resolved("~/b"), (root.join("b"), false));
        assert_eq!(workspace.locate("../a").unwrap(), root.join("w/sub/../a"));
        assert_eq!(workspace.shown(&root.join("w/sub/x")), "x");
        assert_eq!(workspace.shown(&root.join("w/sub")), ".");
    }
}
