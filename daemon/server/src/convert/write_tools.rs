//! Core → contract: snapshots of files, background processes. A path that is no text goes out as it is shown.

use std::path::PathBuf;

use hermes_proto::v1 as wire;
use hermes_runtime::{ProcessView, Redactor, Restored, Snapshot, SnapshotDiff, SnapshotFile};

pub(crate) fn snapshot(snapshot: Snapshot) -> wire::Snapshot {
    wire::Snapshot {
        id: snapshot.id,
        session_id: snapshot.session,
        turn_id: snapshot.turn.unwrap_or_default(),
        created_at: snapshot.created_at.unix_seconds(),
        reason: snapshot.reason,
        files: snapshot.files.into_iter().map(file).collect(),
        restored: snapshot.restored,
    }
}

fn file(file: SnapshotFile) -> wire::SnapshotFile {
    wire::SnapshotFile {
        path: text(file.path),
        change: file.change.as_str().to_owned(),
        added_lines: file.added_lines,
        removed_lines: file.removed_lines,
        edited_since: file.edited_since,
        not_kept: file.not_kept,
    }
}

pub(crate) fn process(process: ProcessView, redactor: &Redactor) -> wire::BackgroundProcess {
    let status = if process.end.is_some() { "exited" } else { "running" };
    wire::BackgroundProcess {
        id: process.id,
        session_id: process.session.as_str().to_owned(),
        command: redactor.redact(&process.command).into_owned(),
        cwd: text(process.cwd),
        pid: u32::try_from(process.pid).unwrap_or_default(),
        started_at: process.started_at.unix_seconds(),
        status: status.to_owned(),
        exit_code: process.end.and_then(|end| end.exit_code),
        detached: process.detached,
    }
}

pub(crate) fn diff(diff: SnapshotDiff) -> wire::DiffSnapshotResponse {
    wire::DiffSnapshotResponse { diff: diff.text, truncated: diff.truncated }
}

pub(crate) fn restored(done: Restored) -> wire::RestoreSnapshotResponse {
    wire::RestoreSnapshotResponse {
        snapshot: Some(snapshot(done.snapshot)),
        restored: done.restored.into_iter().map(text).collect(),
        removed: done.removed.into_iter().map(text).collect(),
        kept: done
            .kept
            .into_iter()
            .map(|(path, reason)| wire::KeptFile { path: text(path), reason })
            .collect(),
        undone_by: done.undone_by,
    }
}

fn text(path: PathBuf) -> String {
    path.into_os_string().into_string().unwrap_or_else(|odd| odd.to_string_lossy().into_owned())
}
