//! The questions that a session puts to this client: shown one after the other, answered, withdrawn.

use std::collections::{BTreeSet, VecDeque};
use std::time::Duration;

use hermes_client::{SessionWatch, TurnStep};
use hermes_proto::v1::{self, event::Payload};
use tokio::time::timeout;

use super::lines::{Hidden, Lines, Typed};
use super::question::{Question, Reading};
use crate::failure::Outcome;
use crate::output::Output;

/// How long giving an answer may take.
const ANSWER_LIMIT: Duration = Duration::from_secs(5);

/// What this client does about questions.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Manner {
    /// A person is here who answers.
    Ask,
    /// A person reads along and cannot answer.
    Tell,
    /// Nobody reads along.
    Ignore,
}

/// The open questions, the first of which is on the screen.
#[derive(Debug)]
pub(super) struct Questions {
    manner: Manner,
    open: VecDeque<Question>,
    /// The first one was answered unclearly, and asked again.
    again: bool,
    /// Answered here: their ends are known.
    answered: BTreeSet<String>,
    hidden: Option<Hidden>,
}

impl Questions {
    pub(super) fn new(manner: Manner) -> Self {
        Self { manner, open: VecDeque::new(), again: false, answered: BTreeSet::new(), hidden: None }
    }

    /// Whether the next line that is typed is an answer.
    pub(super) fn are_open(&self) -> bool {
        !self.open.is_empty()
    }

    /// Takes a step of a turn in, after it was shown.
    pub(super) fn step(&mut self, step: &TurnStep, lines: &mut Lines, output: &mut Output) -> Outcome<()> {
        match step {
            TurnStep::Event(event) => self.event(event, lines, output),
            TurnStep::Reattached(attachment) => {
                let pending = &attachment.attached.pending_prompts;
                if attachment.attached.gap {
                    self.forget_closed(pending, lines, output)?;
                }
                self.pending(pending, lines, output)
            }
            TurnStep::Ended(_) => Ok(()),
        }
    }

    /// Takes any event of the session in.
    pub(super) fn event(&mut self, event: &v1::Event, lines: &mut Lines, output: &mut Output) -> Outcome<()> {
        match event.payload.as_ref() {
            Some(Payload::PromptResolved(resolved)) => self.resolved(resolved, lines, output),
            Some(payload) => match Question::of_event(payload) {
                Some(question) => self.put_up(question, lines, output),
                // Something else was written below the question: the cursor stands there alone.
                None if self.are_open() && is_shown(payload) => self.invite(output),
                None => Ok(()),
            },
            None => Ok(()),
        }
    }

    /// Takes questions in that were up before.
    pub(super) fn pending(
        &mut self,
        prompts: &[v1::PendingPrompt],
        lines: &mut Lines,
        output: &mut Output,
    ) -> Outcome<()> {
        for question in prompts.iter().filter_map(Question::of_pending) {
            self.put_up(question, lines, output)?;
        }
        Ok(())
    }

    fn put_up(&mut self, question: Question, lines: &mut Lines, output: &mut Output) -> Outcome<()> {
        let known = self.answered.contains(&question.request_id)
            || self.open.iter().any(|open| open.request_id == question.request_id);
        match self.manner {
            Manner::Ask if !known => {
                self.open.push_back(question);
                if self.open.len() == 1 {
                    self.show(lines, output)?;
                }
            }
            Manner::Tell => output.note(&format!("· {}", question.summary())),
            Manner::Ask | Manner::Ignore => {}
        }
        Ok(())
    }

    /// Shows the first question, if there is one.
    fn show(&mut self, lines: &mut Lines, output: &mut Output) -> Outcome<()> {
        self.again = false;
        let Some(question) = self.open.front() else { return Ok(()) };
        lines.put_aside();
        for (at, line) in question.screen(output.style().columns).iter().enumerate() {
            if at == 0 {
                output.painted_line(line, "33")?;
            } else {
                output.line(line)?;
            }
        }
        if question.is_secret() {
            // Where it cannot be hidden it is not asked for.
            match Hidden::begin() {
                Ok(hidden) => self.hidden = Some(hidden),
                Err(error) => {
                    output
                        .note(&format!("the terminal would show what you type ({error}): just press Enter"));
                }
            }
        }
        self.invite(output)
    }

    fn invite(&self, output: &mut Output) -> Outcome<()> {
        if let Some(question) = self.open.front() {
            output.text(question.invitation())?;
        }
        Ok(())
    }

    /// Before a step is shown: what it writes begins on a line of its own, not behind the cursor of a question.
    pub(super) fn make_room(&self, step: &TurnStep, output: &mut Output) -> Outcome<()> {
        let TurnStep::Event(event) = step else { return Ok(()) };
        if self.are_open() && event.payload.as_ref().is_some_and(is_shown) {
            output.line("")?;
        }
        Ok(())
    }

    /// Whether a step brings something that is written here.
    pub(super) fn will_show(&self, step: &TurnStep) -> bool {
        matches!(step, TurnStep::Event(event) if self.opens(event))
    }

    /// Whether an event puts up a question that is written here.
    pub(super) fn opens(&self, event: &v1::Event) -> bool {
        let asks = event.payload.as_ref().is_some_and(|payload| Question::of_event(payload).is_some());
        self.manner != Manner::Ignore && asks
    }

    /// Takes a typed line as the answer to the first question.
    pub(super) async fn typed(
        &mut self,
        typed: Typed,
        watch: &SessionWatch,
        lines: &mut Lines,
        output: &mut Output,
    ) -> Outcome<()> {
        let was_hidden = self.hidden.take().is_some();
        let Some(question) = self.open.front() else { return Ok(()) };
        let reading = match typed {
            // Shown as it was typed: it may be in the scrollback, but it goes no further.
            Typed::Line(_) if question.is_secret() && !was_hidden => question.refused(),
            Typed::Line(line) => question.read(&line, self.again),
            Typed::End => {
                output.line("")?;
                question.refused()
            }
        };
        match reading {
            Reading::Unclear(why) => {
                self.again = true;
                output.line(&format!("  {why}; one more try"))?;
                self.invite(output)
            }
            Reading::Answer { answer, said } => {
                self.give(answer, &said, watch, output).await?;
                self.show(lines, output)
            }
        }
    }

    /// Refuses all open questions: the person interrupts.
    pub(super) async fn refuse_all(&mut self, watch: &SessionWatch, output: &mut Output) -> Outcome<()> {
        self.hidden = None;
        while let Some(question) = self.open.front() {
            let Reading::Answer { answer, said } = question.refused() else { break };
            output.line("")?;
            self.give(answer, &said, watch, output).await?;
        }
        Ok(())
    }

    /// Gives the answer to the first question and takes it down, whatever becomes of the answer.
    async fn give(
        &mut self,
        answer: String,
        said: &str,
        watch: &SessionWatch,
        output: &mut Output,
    ) -> Outcome<()> {
        let Some(question) = self.open.pop_front() else { return Ok(()) };
        self.answered.insert(question.request_id.clone());
        let request = v1::AnswerRequest {
            session_id: watch.session_id().to_owned(),
            request_id: question.request_id,
            answer,
        };
        let told = match timeout(ANSWER_LIMIT, watch.client().answer_prompt(request)).await {
            Ok(Ok(response)) if response.status == "ok" => format!("→ {said}"),
            Ok(Ok(_)) => "→ too late: the question was closed before the answer came".to_owned(),
            Ok(Err(error)) => format!("→ not answered: {error}"),
            Err(_) => "→ not answered: the daemon does not react".to_owned(),
        };
        output.dim_line(&format!("  {told}"))?;
        Ok(())
    }

    /// A question has come to its end, perhaps not by this client.
    fn resolved(&mut self, end: &v1::PromptResolved, lines: &mut Lines, output: &mut Output) -> Outcome<()> {
        if self.answered.remove(&end.request_id) {
            return Ok(());
        }
        let Some(at) = self.open.iter().position(|open| open.request_id == end.request_id) else {
            return Ok(());
        };
        self.open.remove(at);
        if at > 0 {
            return Ok(());
        }
        self.hidden = None;
        output.line("")?;
        output.dim_line(&format!("  → {}", ending(end)))?;
        self.show(lines, output)
    }

    /// After a gap only what is still pending is open.
    fn forget_closed(
        &mut self,
        pending: &[v1::PendingPrompt],
        lines: &mut Lines,
        output: &mut Output,
    ) -> Outcome<()> {
        let first = self.open.front().map(|question| question.request_id.clone());
        self.open.retain(|open| pending.iter().any(|prompt| prompt.request_id == open.request_id));
        if first.is_some() && self.open.front().map(|question| &question.request_id) != first.as_ref() {
            self.hidden = None;
            output.line("")?;
            output.dim_line("  → the question was closed while the daemon was out of reach")?;
            self.show(lines, output)?;
        }
        Ok(())
    }
}

/// How a question ended that was not answered here.
fn ending(end: &v1::PromptResolved) -> String {
    match end.by.as_str() {
        "timeout" => "no answer in time: denied".into(),
        "interrupt" => "withdrawn: the turn was interrupted".into(),
        "session_end" => "withdrawn: the session was closed".into(),
        by => format!("answered elsewhere ({by}): {}", end.decision),
    }
}

/// Whether a feed writes something for it.
fn is_shown(payload: &Payload) -> bool {
    matches!(
        payload,
        Payload::ToolComplete(_)
            | Payload::MessageInterim(_)
            | Payload::SessionNotice(_)
            | Payload::NotificationShow(_)
            | Payload::Error(_)
    )
}
