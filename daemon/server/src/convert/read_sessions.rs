//! Contract → core: making, finding, reading and watching sessions.

use hermes_core::{Epoch, MessageId, Principal, Scope};
use hermes_engine::{AttachInput, CreateInput, OpenInput};
use hermes_proto::v1 as wire;
use hermes_state::ListFilter;

use super::field::{InvalidField, not_blank, optional_name, session_id};
use super::read_options;
use crate::peer::Grant;

/// Most sessions of one list.
const MAX_LISTED: u32 = 1_000;
/// Sessions of a list when the caller names no number (spec 70 §8.1).
const DEFAULT_LISTED: u32 = 200;
/// Most hits of one search.
const MAX_HITS: u32 = 200;
/// Hits when the caller names no number.
const DEFAULT_HITS: u32 = 20;

pub(crate) fn create(
    request: wire::CreateSessionRequest,
    principal: Principal,
) -> Result<CreateInput, InvalidField> {
    Ok(CreateInput {
        principal,
        options: read_options::session(request.options)?,
        title: request.title.map(|title| not_blank("title", title)).transpose()?,
    })
}

pub(crate) fn open(request: wire::OpenSessionRequest) -> Result<OpenInput, InvalidField> {
    Ok(OpenInput {
        reference: not_blank("reference", request.reference)?,
        source: optional_name("source", request.source)?,
        options: read_options::session(request.options)?,
    })
}

/// Reads an attach. Kinds of prompts that the connection's scope may not answer are left out, so that
/// such a client never counts as one who could be asked (contract §7).
pub(crate) fn attach(request: wire::AttachRequest, grant: &Grant) -> Result<AttachInput, InvalidField> {
    let mut can_answer = request.can_answer;
    for kind in &can_answer {
        if answer_scope(kind).is_none() {
            return Err(InvalidField::new(
                "can_answer",
                format!("`{kind}` is not one of approval, clarify, sudo, secret"),
            ));
        }
    }
    can_answer.retain(|kind| {
        // The agent does not answer itself, not even what it asks the user.
        grant.confined.is_none() && answer_scope(kind).is_some_and(|needed| grant.scope >= needed)
    });
    can_answer.sort();
    can_answer.dedup();
    Ok(AttachInput {
        session_id: session_id(&request.session_id)?,
        epoch: request.epoch.as_deref().map(Epoch::from_wire),
        after_seq: request.after_seq,
        after_message_id: row("after_message_id", request.after_message_id)?,
        can_answer,
    })
}

/// The scope that an answer to a prompt of this kind needs; `None` for an unknown kind.
pub(crate) fn answer_scope(kind: &str) -> Option<Scope> {
    match kind {
        "clarify" => Some(Scope::Chat),
        "approval" | "sudo" | "secret" => Some(Scope::Approve),
        _ => None,
    }
}

/// A row that was seen; 0 means none.
pub(crate) fn row(field: &'static str, id: i64) -> Result<MessageId, InvalidField> {
    if id < 0 {
        return Err(InvalidField::new(field, format!("{id} is below 0")));
    }
    Ok(MessageId(id))
}

pub(crate) fn list(request: wire::ListSessionsRequest) -> Result<ListFilter, InvalidField> {
    Ok(ListFilter {
        source: optional_name("source", request.source)?,
        workspace: request.workspace.map(|text| not_blank("workspace", text)).transpose()?,
        text: request.text.filter(|text| !text.is_empty()),
        include_archived: request.include_archived,
        limit: bounded("limit", request.limit, DEFAULT_LISTED, MAX_LISTED)?,
        offset: request.offset,
    })
}

/// What to read of one session.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Reading {
    pub(crate) reference: String,
    pub(crate) rows: Option<Page>,
}

/// A part of a transcript.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Page {
    pub(crate) after: MessageId,
    pub(crate) limit: u32,
}

/// Reads what is asked of one session; at most `most` rows at once.
pub(crate) fn get(request: wire::GetSessionRequest, most: u32) -> Result<Reading, InvalidField> {
    let after = row("after_message_id", request.after_message_id)?;
    let limit = if request.limit == 0 { most } else { request.limit.min(most) };
    Ok(Reading {
        reference: not_blank("reference", request.reference)?,
        rows: request.with_rows.then_some(Page { after, limit }),
    })
}

/// A full-text query and how many hits at most.
pub(crate) fn search(request: wire::SearchRequest) -> Result<(String, u32), InvalidField> {
    let query = not_blank("query", request.query)?;
    Ok((query, bounded("limit", request.limit, DEFAULT_HITS, MAX_HITS)?))
}

/// A number of results: 0 means the default.
fn bounded(field: &'static str, asked: u32, default: u32, most: u32) -> Result<u32, InvalidField> {
    match asked {
        0 => Ok(default),
        asked if asked <= most => Ok(asked),
        asked => Err(InvalidField::new(field, format!("{asked} is above the limit of {most}"))),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn grant(scope: Scope) -> Grant {
        Grant { scope, ..Grant::owner() }
    }

    fn attach_request(can_answer: &[&str]) -> wire::AttachRequest {
        wire::AttachRequest {
            session_id: "20260101_000000_00000000".into(),
            can_answer: can_answer.iter().map(|kind| (*kind).to_owned()).collect(),
            ..Default::default()
        }
    }

    #[test]
    fn a_client_answers_only_what_its_scope_allows() {
        let kinds = ["approval", "clarify", "secret"];
        let read = |scope| attach(attach_request(&kinds), &grant(scope)).unwrap().can_answer;
        assert_eq!(read(Scope::Read), Vec::<String>::new());
        assert_eq!(read(Scope::Chat), ["clarify"]);
        assert_eq!(read(Scope::Approve), ["approval", "clarify", "secret"]);
    }

    #[test]
    fn an_unknown_kind_of_prompt_is_refused() {
        let error = attach(attach_request(&["mindread"]), &grant(Scope::Admin)).unwrap_err();
        assert_eq!(error.field, "can_answer");
    }

    #[test]
    fn a_row_number_is_never_negative() {
        let request = wire::AttachRequest { after_message_id: -1, ..attach_request(&[]) };
        assert_eq!(attach(request, &grant(Scope::Admin)).unwrap_err().field, "after_message_id");
    }

    #[test]
    fn lists_are_bounded() {
        let ask = |limit| list(wire::ListSessionsRequest { limit, ..Default::default() });
        assert_eq!(ask(0).unwrap().limit, DEFAULT_LISTED);
        assert_eq!(ask(7).unwrap().limit, 7);
        assert_eq!(ask(MAX_LISTED + 1).unwrap_err().field, "limit");
    }

    #[test]
    fn a_blank_reference_or_query_is_refused() {
        assert_eq!(open(wire::OpenSessionRequest::default()).unwrap_err().field, "reference");
        assert_eq!(search(wire::SearchRequest::default()).unwrap_err().field, "query");
    }
}
