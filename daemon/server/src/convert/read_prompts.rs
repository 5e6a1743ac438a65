//! Contract → core: answers to questions.

use hermes_core::{PromptId, SessionId};
use hermes_proto::v1 as wire;

use super::field::{InvalidField, request_id, session_id};

/// One answer.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct PromptAnswer {
    pub(crate) session_id: SessionId,
    pub(crate) request_id: PromptId,
    pub(crate) text: String,
}

/// Reads an answer. An empty text is legal: to a clarify question it means "no answer".
pub(crate) fn answer(request: wire::AnswerRequest) -> Result<PromptAnswer, InvalidField> {
    Ok(PromptAnswer {
        session_id: session_id(&request.session_id)?,
        request_id: request_id(&request.request_id)?,
        text: request.answer,
    })
}

pub(crate) fn list(request: &wire::ListPendingRequest) -> Result<SessionId, InvalidField> {
    session_id(&request.session_id)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_answer_names_its_session_and_its_question() {
        let request = wire::AnswerRequest { session_id: "s".into(), ..Default::default() };
        assert_eq!(answer(request).unwrap_err().field, "request_id");
        let request = wire::AnswerRequest { request_id: PromptId::mint().to_string(), ..Default::default() };
        assert_eq!(answer(request).unwrap_err().field, "session_id");
    }
}
