//! Turns of the session that this terminal did not begin: another client's, or one that a background process
//! called for. They are shown as they come, so that nothing happens unseen.

use std::io;

use hermes_client::TurnStep;
use hermes_proto::v1::{self, event::Payload};

use crate::output::{Output, Report, TurnView};

/// Shows them, one after the other.
#[derive(Debug, Default)]
pub(super) struct Guests(Option<Guest>);

#[derive(Debug)]
struct Guest {
    turn_id: String,
    view: TurnView,
}

impl Guests {
    /// Whether such a turn is being shown.
    pub(super) fn is_shown(&self) -> bool {
        self.0.is_some()
    }

    /// Whether showing this event begins such a turn. `own` is the turn that is this terminal's.
    pub(super) fn begins(&self, event: &v1::Event, own: Option<&str>) -> bool {
        let Some(turn_id) = event.turn_id.as_deref().filter(|turn_id| Some(*turn_id) != own) else {
            return false;
        };
        self.0.as_ref().is_none_or(|guest| guest.turn_id != turn_id)
            && matches!(
                event.payload,
                Some(
                    Payload::TurnAccepted(_)
                        | Payload::MessageStart(_)
                        | Payload::MessageDelta(_)
                        | Payload::ToolStart(_)
                )
            )
    }

    /// Shows an event of such a turn; `true` when that was its end.
    pub(super) fn event(
        &mut self,
        output: &mut Output,
        event: &v1::Event,
        own: Option<&str>,
    ) -> io::Result<bool> {
        if self.begins(event, own) {
            output.dim_line("· a turn that was not begun here")?;
            let turn_id = event.turn_id.clone().unwrap_or_default();
            self.0 = Some(Guest { turn_id, view: TurnView::feed() });
        }
        let Some(guest) = self.0.as_mut().filter(|guest| event.turn_id.as_ref() == Some(&guest.turn_id))
        else {
            return Ok(false);
        };
        guest.view.step(output, &guest.turn_id, &TurnStep::Event(Box::new(event.clone())))?;
        let Some(Payload::MessageComplete(result)) = &event.payload else { return Ok(false) };
        let report = Report { result: Some((**result).clone()), ..Report::default() };
        guest.view.end(output, &report)?;
        self.0 = None;
        Ok(true)
    }

    /// The connection is lost: the turn goes on elsewhere, and its end will not be seen here.
    pub(super) fn leave(&mut self) {
        self.0 = None;
    }

    /// Ends the line that a streamed text stands in: something else is about to be written.
    pub(super) fn end_line(&mut self, output: &mut Output) -> io::Result<()> {
        self.0.as_mut().map_or(Ok(()), |guest| guest.view.end_line(output))
    }
}
