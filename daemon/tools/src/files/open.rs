//! Opens a file for reading without the risks of opening: no waiting for a pipe, no device, and the
//! file that was opened is the one that was judged.

use std::fs::{File, Metadata, OpenOptions};
use std::io;
use std::os::unix::fs::OpenOptionsExt as _;
use std::path::{Path, PathBuf};

use hermes_core::EffectDisposition;
use serde_json::json;

use super::near_names::near_names;
use crate::output::ToolOutput;
use crate::services::ToolCx;
use crate::tool::OwnedEffect;
use crate::workspace::ResolvedPath;

/// Opens the regular file that `target` leads to. An `Err` is the call's result.
pub(super) fn open_regular(cx: &ToolCx, target: &ResolvedPath) -> Result<(File, Metadata), Box<ToolOutput>> {
    let path = target.path.as_path();
    let opened = OpenOptions::new().read(true).custom_flags(nix::libc::O_NONBLOCK).open(path);
    let file = opened.map_err(|error| Box::new(open_failed(path, &error)))?;
    let metadata = file.metadata().map_err(|error| Box::new(open_failed(path, &error)))?;
    if metadata.is_dir() {
        let hint = cx.if_has("search_files", "; list it with search_files, target \"files\", pattern \"*\"");
        return Err(Box::new(ToolOutput::error(format!("{} is a directory{hint}", path.display()))));
    }
    if !metadata.is_file() {
        return Err(Box::new(not_regular(path)));
    }
    // The policy judged the written path. When that is not simply where the file is, a link may have been
    // swapped since.
    let actual = opened_path(&file).unwrap_or_else(|| path.to_owned());
    if actual != target.written
        && let Some(reason) = cx.denies(&OwnedEffect::Read { path: actual })
    {
        return Err(Box::new(ToolOutput::error(reason)));
    }
    Ok((file, metadata))
}

/// Where the opened file really is: a link may have been swapped since the path was judged.
#[cfg(target_os = "linux")]
fn opened_path(file: &File) -> Option<PathBuf> {
    use std::os::fd::AsRawFd as _;
    std::fs::read_link(format!("/proc/self/fd/{}", file.as_raw_fd())).ok()
}

#[cfg(not(target_os = "linux"))]
fn opened_path(_: &File) -> Option<PathBuf> {
    None
}

fn not_regular(path: &Path) -> ToolOutput {
    ToolOutput::error(format!("{} is not a regular file but a pipe, socket or device", path.display()))
}

/// The result of a path that cannot be opened.
pub(super) fn open_failed(path: &Path, error: &io::Error) -> ToolOutput {
    if error.kind() == io::ErrorKind::NotADirectory {
        return ToolOutput::error(format!("{}: a part of this path is a file, not a folder", path.display()));
    }
    if error.raw_os_error() == Some(nix::libc::ENXIO) {
        return not_regular(path);
    }
    if error.kind() == io::ErrorKind::NotFound {
        let folder_missing = path.parent().is_some_and(|folder| !folder.is_dir());
        let folder = if folder_missing { " (its folder does not exist either)" } else { "" };
        let similar = near_names(path);
        let output = ToolOutput::error(format!("{} does not exist{folder}", path.display()));
        return if similar.is_empty() { output } else { output.with("similar_files", json!(similar)) };
    }
    ToolOutput::error(format!("cannot open {}: {}", path.display(), plain(error)))
}

/// The result of a write that failed. The old file is as it was.
pub(super) fn write_failed(path: &Path, error: &io::Error) -> ToolOutput {
    let advice = match error.kind() {
        io::ErrorKind::StorageFull => "; the disk is full: free some space first",
        io::ErrorKind::QuotaExceeded => "; the disk quota is used up",
        io::ErrorKind::ReadOnlyFilesystem => "; the file system is read-only",
        _ => "",
    };
    let message = format!("cannot write {}: {}{advice}. Nothing was changed", path.display(), plain(error));
    ToolOutput { effect: EffectDisposition::None, ..ToolOutput::error(message) }
}

/// The error's words without its number.
pub(super) fn plain(error: &io::Error) -> String {
    let text = error.to_string();
    match text.split_once(" (os error") {
        Some((words, _)) => words.to_lowercase(),
        None => text,
    }
}
