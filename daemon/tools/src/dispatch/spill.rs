//! Files of results that are too long for the model.

use std::fs::OpenOptions;
use std::io::{self, Write as _};
use std::os::unix::fs::OpenOptionsExt as _;
use std::path::{Path, PathBuf};

use hermes_core::{SessionId, ToolCallId};

use crate::services::ToolServices;

/// Characters of an id that go into a file name.
const ID_CHARS: usize = 120;
/// Hex digits of the hash that tells changed ids apart.
const HASH_DIGITS: usize = 12;

/// Saves `text` as the result of a call. Gives the file, readable by the owner only.
pub(super) async fn save(
    services: &ToolServices,
    session: &SessionId,
    call: &ToolCallId,
    text: String,
) -> io::Result<PathBuf> {
    let folder = services.results_dir.join(safe_name(session.as_str()));
    let path = folder.join(format!("{}.txt", safe_name(call.as_str())));
    let written = path.clone();
    let work = services.tasks.spawn_blocking("save_result", move || write(&folder, &written, &text));
    work.await.map_err(io::Error::other)??;
    Ok(path)
}

/// Removes all saved results of a session.
pub(super) async fn remove(services: &ToolServices, session: &SessionId) -> io::Result<()> {
    let folder = services.results_dir.join(safe_name(session.as_str()));
    let work = services.tasks.spawn_blocking("remove_results", move || std::fs::remove_dir_all(folder));
    match work.await.map_err(io::Error::other)? {
        Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(()),
        done => done,
    }
}

fn write(folder: &Path, path: &Path, text: &str) -> io::Result<()> {
    hermes_config::create_private_dir(folder)?;
    // Another result under the same id replaces the first; a link in its place is not followed.
    let mut file = OpenOptions::new()
        .write(true)
        .create(true)
        .truncate(true)
        .mode(0o600)
        .custom_flags(nix::libc::O_NOFOLLOW)
        .open(path)?;
    file.write_all(text.as_bytes())
}

/// `id` as the name of a file: letters, digits, `_`, `.` and `-`; a hash tells apart what was changed.
fn safe_name(id: &str) -> String {
    let mut name: String = id
        .chars()
        .take(ID_CHARS)
        .map(|c| if c.is_ascii_alphanumeric() || matches!(c, '_' | '.' | '-') { c } else { '_' })
        .collect();
    if name.starts_with('.') {
        name.replace_range(..1, "_");
    }
    if name == id && !name.is_empty() {
        return name;
    }
    let hash = blake3::hash(id.as_bytes()).to_hex();
    format!("{name}-{}", hash.chars().take(HASH_DIGITS).collect::<String>())
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    #[test]
    fn usual_ids_stay_readable() {
        assert_eq!(safe_name("call_aB3-x.1"), "call_aB3-x.1");
        assert_ne!(safe_name("a/b"), safe_name("a_b"));
    }

    proptest! {
        #[test]
        fn a_name_never_leaves_its_folder(id in ".{0,200}") {
            let name = safe_name(&id);
            prop_assert!(!name.is_empty() && name.len() <= ID_CHARS + 1 + HASH_DIGITS);
            prop_assert!(!name.starts_with('.'));
            prop_assert!(name.chars().all(|c| c.is_ascii_alphanumeric() || matches!(c, '_' | '.' | '-')));
        }
    }
}
