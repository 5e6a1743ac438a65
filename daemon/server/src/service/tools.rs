//! `Tools`: snapshots of the files that turns touched, and the processes that tools left running.

use hermes_core::SessionId;
use hermes_proto::v1 as wire;
use hermes_proto::v1::tools_server::Tools;
use tonic::{Code, Request, Response, Status};

use super::{ToolsService, grant};
use crate::convert::{read_tools, write_tools};
use crate::{error, limit};

#[tonic::async_trait]
impl Tools for ToolsService {
    async fn list_snapshots(
        &self,
        request: Request<wire::ListSnapshotsRequest>,
    ) -> Result<Response<wire::ListSnapshotsResponse>, Status> {
        let (session_id, limit) = read_tools::list(request.get_ref())?;
        self.0.confined.check(grant(&request)?, &session_id)?;
        let snapshots = self.0.deps.snapshots.list(&session_id, limit).await;
        let snapshots = snapshots.map_err(|error| error::snapshots(&error))?;
        let snapshots = snapshots.into_iter().map(write_tools::snapshot).collect();
        limit::reply(wire::ListSnapshotsResponse { snapshots }, "ask for fewer snapshots")
    }

    async fn diff_snapshot(
        &self,
        request: Request<wire::DiffSnapshotRequest>,
    ) -> Result<Response<wire::DiffSnapshotResponse>, Status> {
        let grant = grant(&request)?.clone();
        let asked = read_tools::diff(request.into_inner())?;
        self.0.confined.check(&grant, &asked.session_id)?;
        let diff = self.0.deps.snapshots.diff(&asked.session_id, &asked.id, asked.file).await;
        Ok(Response::new(write_tools::diff(diff.map_err(|error| error::snapshots(&error))?)))
    }

    async fn restore_snapshot(
        &self,
        request: Request<wire::RestoreSnapshotRequest>,
    ) -> Result<Response<wire::RestoreSnapshotResponse>, Status> {
        let grant = grant(&request)?.clone();
        let (session_id, asked) = read_tools::restore(request.into_inner())?;
        self.0.confined.check(&grant, &session_id)?;
        if !asked.dry_run {
            self.no_turn_runs(&session_id).await?;
        }
        let done = self.0.deps.snapshots.restore(&session_id, asked).await;
        let done = write_tools::restored(done.map_err(|error| error::snapshots(&error))?);
        limit::reply(done, "restore one file at a time")
    }

    async fn list_processes(
        &self,
        request: Request<wire::ListProcessesRequest>,
    ) -> Result<Response<wire::ListProcessesResponse>, Status> {
        let session = read_tools::processes(request.get_ref())?;
        let processes = self.0.deps.processes.list(session.as_ref()).into_iter();
        let processes =
            processes.map(|process| write_tools::process(process, &self.0.deps.redactor)).collect();
        limit::reply(wire::ListProcessesResponse { processes }, "ask for the processes of one session")
    }
}

impl ToolsService {
    /// What a running turn writes next must not meet files that change under it.
    async fn no_turn_runs(&self, session_id: &SessionId) -> Result<(), Status> {
        let found = self.0.deps.engine.get(session_id.as_str(), false).await;
        let (_, running, _) = found.map_err(|error| error::engine(&error))?;
        if running {
            let what = "a turn of this session is running";
            let hint = "wait for its end or interrupt it, then undo";
            return Err(error::with_hint(Code::FailedPrecondition, what, hint));
        }
        Ok(())
    }
}
