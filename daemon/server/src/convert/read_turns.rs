//! Contract → core: inputs, steering and interrupts.

use hermes_core::{InterruptCause, Principal, SessionId, TurnId};
use hermes_engine::{InterruptInput, SubmitInput};
use hermes_proto::v1 as wire;

use super::field::{InvalidField, name, not_blank, session_id, turn_id};
use super::read_options;

pub(crate) fn submit(
    request: wire::SubmitRequest,
    principal: Principal,
) -> Result<SubmitInput, InvalidField> {
    Ok(SubmitInput {
        session_id: session_id(&request.session_id)?,
        text: not_blank("text", request.text)?,
        principal,
        client_message_id: request.client_message_id.map(|id| name("client_message_id", &id)).transpose()?,
        options: read_options::turn(request.options)?,
    })
}

pub(crate) fn steer(request: wire::SteerRequest) -> Result<(SessionId, String), InvalidField> {
    Ok((session_id(&request.session_id)?, not_blank("text", request.text)?))
}

pub(crate) fn interrupt(request: &wire::InterruptRequest) -> Result<InterruptInput, InvalidField> {
    Ok(InterruptInput {
        session_id: session_id(&request.session_id)?,
        turn_id: request.turn_id.as_deref().map(turn_id).transpose()?,
        cause: InterruptCause::UserStop,
    })
}

pub(crate) fn get(request: &wire::GetTurnRequest) -> Result<(SessionId, TurnId), InvalidField> {
    Ok((session_id(&request.session_id)?, turn_id(&request.turn_id)?))
}

#[cfg(test)]
mod tests {
    use super::*;

    const SESSION: &str = "20260101_000000_00000000";

    #[test]
    fn an_input_must_say_something() {
        let request =
            wire::SubmitRequest { session_id: SESSION.into(), text: " \n".into(), ..Default::default() };
        assert_eq!(submit(request, Principal::Owner).unwrap_err().field, "text");
    }

    #[test]
    fn an_input_keeps_its_text_byte_for_byte() {
        let text = "  two\n lines \n";
        let request =
            wire::SubmitRequest { session_id: SESSION.into(), text: text.into(), ..Default::default() };
        assert_eq!(submit(request, Principal::Owner).unwrap().text, text);
    }

    #[test]
    fn ids_are_checked_in_every_request() {
        assert_eq!(submit(wire::SubmitRequest::default(), Principal::Owner).unwrap_err().field, "session_id");
        let request = wire::InterruptRequest { session_id: SESSION.into(), turn_id: Some("7".into()) };
        assert_eq!(interrupt(&request).unwrap_err().field, "turn_id");
        let request = wire::GetTurnRequest { session_id: SESSION.into(), turn_id: String::new() };
        assert_eq!(get(&request).unwrap_err().field, "turn_id");
    }
}
