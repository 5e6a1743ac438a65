//! `Policy`: what the agent may do, for admins alone.

use hermes_proto::v1 as wire;
use hermes_proto::v1::policy_server::Policy;
use hermes_runtime::ApprovalEntry;
use serde_json::Value;
use tonic::{Code, Request, Response, Status};

use super::PolicyService;
use crate::convert::{field, read_policy};
use crate::error;
use crate::policy_desk::{PolicyError, WaitingEdit};

#[tonic::async_trait]
impl Policy for PolicyService {
    async fn list_approvals(
        &self,
        _request: Request<wire::ListApprovalsRequest>,
    ) -> Result<Response<wire::ListApprovalsResponse>, Status> {
        let approvals = self.0.deps.approvals.list().into_iter().map(standing).collect();
        Ok(Response::new(wire::ListApprovalsResponse { approvals }))
    }

    async fn revoke_approval(
        &self,
        request: Request<wire::RevokeApprovalRequest>,
    ) -> Result<Response<wire::RevokeApprovalResponse>, Status> {
        let id = field::name("id", &request.get_ref().id)?;
        let revoked = self.0.deps.approvals.revoke(&id).await.map_err(Status::internal)?;
        Ok(Response::new(wire::RevokeApprovalResponse { revoked }))
    }

    async fn list_waiting_edits(
        &self,
        _request: Request<wire::ListWaitingEditsRequest>,
    ) -> Result<Response<wire::ListWaitingEditsResponse>, Status> {
        let edits = self.0.deps.policy.waiting().into_iter().map(waiting).collect();
        Ok(Response::new(wire::ListWaitingEditsResponse { edits }))
    }

    async fn accept_edits(
        &self,
        request: Request<wire::AcceptEditsRequest>,
    ) -> Result<Response<wire::AcceptEditsResponse>, Status> {
        let edits = read_policy::edits(request.into_inner())?;
        let accepted = self.0.deps.policy.accept(edits).await.map_err(|error| refused(&error))?;
        Ok(Response::new(wire::AcceptEditsResponse { accepted }))
    }

    async fn set_config(
        &self,
        request: Request<wire::SetConfigRequest>,
    ) -> Result<Response<wire::SetConfigResponse>, Status> {
        let (key, value) = read_policy::setting(request.into_inner())?;
        let written = self.0.deps.policy.set_config(key, value).await.map_err(|error| refused(&error))?;
        Ok(Response::new(wire::SetConfigResponse {
            path: written.path.display().to_string(),
            applied: written.applied,
            note: written.note,
        }))
    }
}

fn standing(entry: ApprovalEntry) -> wire::StandingApproval {
    wire::StandingApproval {
        id: entry.id,
        rule: entry.rule,
        shape: entry.shape,
        session_id: entry.session.map(|session| session.as_str().to_owned()),
        granted_at: entry.granted_at.unix_seconds(),
    }
}

fn waiting(edit: WaitingEdit) -> wire::WaitingEdit {
    let json = |value: Option<Value>| value.as_ref().map(error::json);
    wire::WaitingEdit { key: edit.key, in_force: json(edit.in_force), in_file: json(edit.in_file) }
}

fn refused(refusal: &PolicyError) -> Status {
    let code = match refusal {
        PolicyError::Changed { .. } => Code::Aborted,
        PolicyError::Invalid(_) => Code::InvalidArgument,
        PolicyError::File(_) => Code::FailedPrecondition,
        PolicyError::Storage(_) => Code::Internal,
    };
    error::with_hint(code, &refusal.to_string(), "")
}
