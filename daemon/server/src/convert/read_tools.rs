//! Contract → core: snapshots of files, background processes.

use std::path::{Path, PathBuf};

use hermes_core::SessionId;
use hermes_proto::v1 as wire;
use hermes_runtime::{RestoreRequest, SessionKey};

use super::field::{InvalidField, session_id};

/// Reads which snapshots are asked for, and how many; 0 means all.
pub(crate) fn list(request: &wire::ListSnapshotsRequest) -> Result<(SessionId, usize), InvalidField> {
    Ok((session_id(&request.session_id)?, usize::try_from(request.limit).unwrap_or(usize::MAX)))
}

/// Whose background processes are asked for; `None` means everybody's.
pub(crate) fn processes(request: &wire::ListProcessesRequest) -> Result<Option<SessionKey>, InvalidField> {
    let session = request.session_id.as_deref().map(session_id).transpose()?;
    Ok(session.as_ref().map(SessionKey::from))
}

/// Which snapshot is to be compared.
#[derive(Debug, PartialEq, Eq)]
pub(crate) struct DiffOf {
    pub(crate) session_id: SessionId,
    /// Checked where it is looked for.
    pub(crate) id: String,
    pub(crate) file: Option<PathBuf>,
}

pub(crate) fn diff(request: wire::DiffSnapshotRequest) -> Result<DiffOf, InvalidField> {
    Ok(DiffOf {
        session_id: session_id(&request.session_id)?,
        id: request.id,
        file: request.file.map(file).transpose()?,
    })
}

pub(crate) fn restore(
    request: wire::RestoreSnapshotRequest,
) -> Result<(SessionId, RestoreRequest), InvalidField> {
    let wire::RestoreSnapshotRequest { session_id: session, id, file: named, all, dry_run } = request;
    let file = named.map(file).transpose()?;
    Ok((session_id(&session)?, RestoreRequest { id, file, all, dry_run }))
}

fn file(text: String) -> Result<PathBuf, InvalidField> {
    if !Path::new(&text).is_absolute() {
        return Err(InvalidField::new("file", format!("`{text}` is no absolute path")));
    }
    Ok(text.into())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_file_is_named_by_its_absolute_path() {
        let request = |file: &str| wire::RestoreSnapshotRequest {
            session_id: "s".into(),
            file: Some(file.into()),
            ..Default::default()
        };
        assert_eq!(restore(request("a/b")).unwrap_err().field, "file");
        assert_eq!(restore(request("/a/b")).unwrap().1.file, Some("/a/b".into()));
    }
}
