//! How one prompt's run is shown: only its answer, with a live feed, or as JSON.

use std::collections::HashMap;
use std::io;

use hermes_client::{Attachment, TurnStep};
use hermes_proto::v1::{self, event::Payload};
use serde_json::{Value, json};

use super::{Output, Report, feed};

/// What is known of a session when its run begins.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub(crate) struct SessionIntro {
    pub(crate) session_id: String,
    pub(crate) model: String,
    pub(crate) provider: String,
    pub(crate) cwd: Option<String>,
    pub(crate) resumed: bool,
}

/// How a run is shown.
#[derive(Debug)]
pub(crate) enum TurnView {
    /// The final text alone.
    Answer,
    /// Tool lines and the answer while it comes.
    Feed(Box<FeedView>),
    /// One object at the end.
    Json,
    /// One event a line, the result last.
    StreamJson,
}

impl TurnView {
    pub(crate) fn feed() -> Self {
        Self::Feed(Box::default())
    }

    /// Whether people read along, so that notices belong on stderr.
    pub(crate) fn is_feed(&self) -> bool {
        matches!(self, Self::Feed(_))
    }

    /// Ends the line that a streamed text stands in: something else is about to be written.
    pub(crate) fn end_line(&mut self, output: &mut Output) -> io::Result<()> {
        match self {
            Self::Feed(view) => view.new_line(output),
            Self::Answer | Self::Json | Self::StreamJson => Ok(()),
        }
    }

    pub(crate) fn begin(&mut self, output: &mut Output, intro: &SessionIntro) -> io::Result<()> {
        match self {
            Self::StreamJson => output.line(
                &json!({
                    "type": "session",
                    "session_id": intro.session_id,
                    "model": intro.model,
                    "provider": intro.provider,
                    "cwd": intro.cwd,
                    "resumed": intro.resumed,
                })
                .to_string(),
            ),
            Self::Answer | Self::Feed(_) | Self::Json => Ok(()),
        }
    }

    /// Shows a step of the turn `turn_id`; steps of other turns of the session are not this run's.
    pub(crate) fn step(&mut self, output: &mut Output, turn_id: &str, step: &TurnStep) -> io::Result<()> {
        let event = match step {
            TurnStep::Event(event) => Some(event.as_ref()),
            TurnStep::Reattached(_) | TurnStep::Ended(_) => None,
        };
        if event.is_some_and(|event| event.turn_id.as_deref().is_some_and(|other| other != turn_id)) {
            return Ok(());
        }
        match (self, step) {
            (Self::Feed(view), TurnStep::Event(event)) => view.event(output, event),
            (Self::Feed(view), TurnStep::Reattached(attachment)) => {
                view.reattached(output, turn_id, attachment)
            }
            (Self::Feed(_), TurnStep::Ended(_)) => Ok(()),
            (Self::StreamJson, TurnStep::Event(event)) => match event.payload.as_ref() {
                Some(payload) if is_streamed(payload) => output.line(&event_json(event)),
                _ => Ok(()),
            },
            (Self::StreamJson, TurnStep::Ended(end)) => {
                // The end is an event too; the client library hands it out as the result.
                let (seq, time) = end.seen.unwrap_or_default();
                let event = v1::Event {
                    session_id: end.result.session_id.clone(),
                    seq,
                    turn_id: Some(turn_id.to_owned()),
                    time,
                    payload: Some(Payload::MessageComplete(Box::new(end.result.clone()))),
                };
                output.line(&event_json(&event))
            }
            (Self::StreamJson, TurnStep::Reattached(_)) | (Self::Answer | Self::Json, _) => Ok(()),
        }
    }

    /// Shows the end: the answer, where it was not shown yet.
    pub(crate) fn end(&mut self, output: &mut Output, report: &Report) -> io::Result<()> {
        match self {
            Self::Answer => match report.answer() {
                Some(answer) => output.line(answer.trim_end_matches('\n')),
                None => Ok(()),
            },
            Self::Feed(view) => view.end(output, report.answer()),
            Self::Json => output.line(&report.to_json().to_string()),
            Self::StreamJson => output.line(&report.to_stream_json().to_string()),
        }
    }
}

/// Events that `stream-json` prints (spec 80 §4.2).
fn is_streamed(payload: &Payload) -> bool {
    matches!(
        payload,
        Payload::MessageDelta(_)
            | Payload::ReasoningDelta(_)
            | Payload::ToolStart(_)
            | Payload::ToolComplete(_)
            | Payload::ApprovalRequest(_)
            | Payload::MessageComplete(_)
    )
}

/// The event with its type first, so that a person can read the stream too.
fn event_json(event: &v1::Event) -> String {
    let Ok(Value::Object(mut fields)) = serde_json::to_value(event) else { return String::new() };
    let mut line = serde_json::Map::new();
    if let Some(kind) = fields.remove("type") {
        line.insert("type".into(), kind);
    }
    line.extend(fields);
    Value::Object(line).to_string()
}

/// The live feed. It knows what it has written of the current answer, so that the end repeats nothing.
#[derive(Debug, Default)]
pub(crate) struct FeedView {
    /// Text of the answer that is being streamed.
    shown: String,
    /// The cursor stands within a line.
    within_line: bool,
    /// What starts told of their arguments, by call.
    previews: HashMap<String, String>,
    last_notice: String,
}

impl FeedView {
    fn event(&mut self, output: &mut Output, event: &v1::Event) -> io::Result<()> {
        match event.payload.as_ref() {
            Some(Payload::MessageDelta(delta)) => self.delta(output, &delta.text),
            Some(Payload::MessageInterim(interim)) => {
                if !interim.already_streamed && self.shown.is_empty() {
                    self.delta(output, &interim.text)?;
                }
                self.close_text(output)
            }
            Some(Payload::ToolStart(start)) => {
                self.previews.insert(start.tool_id.clone(), start.context.clone());
                Ok(())
            }
            Some(Payload::ToolComplete(end)) => {
                self.close_text(output)?;
                let preview = self.previews.remove(&end.tool_id).unwrap_or_default();
                feed::tool_ended(output, &preview, end)
            }
            Some(Payload::SessionNotice(notice)) => self.notice(output, &notice.text),
            Some(Payload::NotificationShow(notice)) => self.notice(output, &notice.text),
            Some(Payload::StatusUpdate(status)) if status.kind != "process" => {
                self.notice(output, &status.text)
            }
            Some(Payload::Error(error)) => self.notice(output, &error.message),
            _ => Ok(()),
        }
    }

    /// A notice on stderr; the same one is not told twice in a row.
    fn notice(&mut self, output: &mut Output, text: &str) -> io::Result<()> {
        if text.trim().is_empty() || self.last_notice == text {
            return Ok(());
        }
        text.clone_into(&mut self.last_notice);
        self.new_line(output)?;
        output.note(&format!("· {}", text.trim()));
        Ok(())
    }

    fn delta(&mut self, output: &mut Output, text: &str) -> io::Result<()> {
        // Models like to begin with empty lines.
        let text = if self.shown.is_empty() { text.trim_start_matches('\n') } else { text };
        if text.is_empty() {
            return Ok(());
        }
        output.text(text)?;
        self.shown.push_str(text);
        self.within_line = !text.ends_with('\n');
        Ok(())
    }

    fn new_line(&mut self, output: &mut Output) -> io::Result<()> {
        if std::mem::take(&mut self.within_line) {
            output.text("\n")?;
        }
        Ok(())
    }

    /// The text so far is done; what comes next is another one.
    fn close_text(&mut self, output: &mut Output) -> io::Result<()> {
        self.shown.clear();
        self.new_line(output)
    }

    fn reattached(&mut self, output: &mut Output, turn_id: &str, attachment: &Attachment) -> io::Result<()> {
        let attached = &attachment.attached;
        if attachment.restarted {
            self.notice(output, "the daemon was lost; connected again")?;
        }
        // Without a gap all that was missed still comes, as events.
        if !attached.gap {
            return Ok(());
        }
        for tool in attached.rows.iter().filter_map(|row| row.tool_name.as_deref()) {
            self.close_text(output)?;
            feed::tool_missed(output, tool)?;
        }
        let Some(inflight) = attached.inflight.as_ref().filter(|inflight| inflight.turn_id == turn_id) else {
            return Ok(());
        };
        // Deltas that were missed: the running text goes on where it was left, or begins anew.
        if let Some(rest) = inflight.assistant.strip_prefix(&self.shown) {
            return self.delta(output, rest);
        }
        self.close_text(output)?;
        self.delta(output, &inflight.assistant)
    }

    fn end(&mut self, output: &mut Output, answer: Option<&str>) -> io::Result<()> {
        // The whole answer comes trimmed; its stream may end in blanks.
        let answer = answer.map(str::trim).unwrap_or_default();
        match answer.strip_prefix(self.shown.trim()) {
            // Streamed whole, or but for its end.
            Some(rest) if !self.shown.is_empty() => {
                let rest = if rest.trim().is_empty() { "" } else { rest };
                // Blanks that stand on the screen are not written twice.
                let rest = if self.shown.ends_with(char::is_whitespace) { rest.trim_start() } else { rest };
                // The line that was ended on the screen is not ended twice.
                let rest = if self.within_line { rest } else { rest.trim_start_matches('\n') };
                self.delta(output, rest)?;
            }
            _ if answer.is_empty() => {}
            // Not streamed, or streamed as something else.
            _ => {
                self.close_text(output)?;
                self.delta(output, answer)?;
            }
        }
        self.close_text(output)
    }
}

#[cfg(test)]
mod tests;
