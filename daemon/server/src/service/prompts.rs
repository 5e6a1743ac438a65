//! `Prompts`: answers of people to the agent's questions.

use hermes_core::Scope;
use hermes_proto::v1 as wire;
use hermes_proto::v1::prompts_server::Prompts;
use tonic::{Request, Response, Status};

use super::{PromptsService, grant};
use crate::convert::{read_prompts, read_sessions, write_events};
use crate::gate;

#[tonic::async_trait]
impl Prompts for PromptsService {
    async fn answer(
        &self,
        request: Request<wire::AnswerRequest>,
    ) -> Result<Response<wire::AnswerResponse>, Status> {
        let grant = grant(&request)?.clone();
        let answer = read_prompts::answer(request.into_inner())?;
        let engine = &self.0.deps.engine;
        let open = engine.pending(&answer.session_id);
        let asked = open.iter().find(|prompt| prompt.request_id == answer.request_id);
        if let Some(prompt) = asked {
            // A kind that nobody knows here asks for the highest right there is.
            let needed = read_sessions::answer_scope(prompt.kind).unwrap_or(Scope::Admin);
            gate::require(&grant, needed, &format!("an answer to a question of kind `{}`", prompt.kind))?;
        }
        let by = grant.principal.to_string();
        let taken =
            asked.is_some() && engine.answer(&answer.session_id, &answer.request_id, &answer.text, &by);
        let status = if taken { "ok" } else { "expired" };
        Ok(Response::new(wire::AnswerResponse { status: status.into() }))
    }

    async fn list_pending(
        &self,
        request: Request<wire::ListPendingRequest>,
    ) -> Result<Response<wire::ListPendingResponse>, Status> {
        let session_id = read_prompts::list(request.get_ref())?;
        self.0.confined.check(grant(&request)?, &session_id)?;
        let prompts = self.0.deps.engine.pending(&session_id);
        Ok(Response::new(wire::ListPendingResponse {
            prompts: prompts.into_iter().map(write_events::pending).collect(),
        }))
    }
}
