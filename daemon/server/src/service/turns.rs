//! `Turns`: the unit of execution.

use hermes_core::Scope;
use hermes_proto::v1 as wire;
use hermes_proto::v1::turns_server::Turns;
use tonic::{Request, Response, Status};

use super::{TurnsService, grant};
use crate::convert::{read_turns, write_turns};
use crate::{error, gate, limit};

#[tonic::async_trait]
impl Turns for TurnsService {
    async fn submit(
        &self,
        request: Request<wire::SubmitRequest>,
    ) -> Result<Response<wire::SubmitResponse>, Status> {
        let grant = grant(&request)?.clone();
        let input = read_turns::submit(request.into_inner(), grant.principal.clone())?;
        self.0.confined.check(&grant, &input.session_id)?;
        if input.options.yolo {
            gate::require(&grant, Scope::Approve, "options.yolo")?;
        }
        let submitted = self.0.deps.engine.submit(input).await.map_err(|error| error::engine(&error))?;
        Ok(Response::new(write_turns::submitted(&submitted)))
    }

    async fn steer(
        &self,
        request: Request<wire::SteerRequest>,
    ) -> Result<Response<wire::SteerResponse>, Status> {
        let grant = grant(&request)?.clone();
        let (session_id, text) = read_turns::steer(request.into_inner())?;
        self.0.confined.check(&grant, &session_id)?;
        let taken =
            self.0.deps.engine.steer(&session_id, text).await.map_err(|error| error::engine(&error))?;
        let status = if taken { "queued" } else { "rejected" };
        Ok(Response::new(wire::SteerResponse { status: status.into() }))
    }

    async fn interrupt(
        &self,
        request: Request<wire::InterruptRequest>,
    ) -> Result<Response<wire::InterruptResponse>, Status> {
        let input = read_turns::interrupt(request.get_ref())?;
        self.0.confined.check(grant(&request)?, &input.session_id)?;
        let stopped = self.0.deps.engine.interrupt(input).await.map_err(|error| error::engine(&error))?;
        let status = if stopped { "interrupted" } else { "idle" };
        Ok(Response::new(wire::InterruptResponse { status: status.into() }))
    }

    async fn get(
        &self,
        request: Request<wire::GetTurnRequest>,
    ) -> Result<Response<wire::GetTurnResponse>, Status> {
        let (session_id, turn_id) = read_turns::get(request.get_ref())?;
        self.0.confined.check(grant(&request)?, &session_id)?;
        let turn =
            self.0.deps.engine.turn(&session_id, &turn_id).await.map_err(|error| error::engine(&error))?;
        limit::reply(write_turns::snapshot(turn), "read the session's rows instead")
    }
}
