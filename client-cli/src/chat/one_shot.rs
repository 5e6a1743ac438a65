//! One prompt in, one answer out: the run that scripts use (spec 80 §4.1, contract §10).
//!
//! It ends with its turn. A signal, the own time limit or a reader that left stop the turn first; a lost
//! daemon is found again, and what became of the turn is told.

use std::time::{Duration, Instant};

use hermes_client::{NewTurn, TurnRun, TurnStep};
use hermes_proto::v1;
use tokio::time::{sleep_until, timeout};

use super::lines::Lines;
use super::questions::Questions;
use super::session::{self, Opened};
use super::signals::Signals;
use super::{Chat, tell_programs};
use crate::args::OutputFormat;
use crate::exit::{Exit, StopCause};
use crate::failure::{Failure, Outcome, Stop};
use crate::output::{Output, Report, SessionIntro, TurnView};

/// How long a turn that was told to stop may take to end; then it is left to the daemon, which stops it
/// when this client is gone.
const GRACE: Duration = Duration::from_secs(5);
/// How long the request to stop may take.
pub(super) const ASK_LIMIT: Duration = Duration::from_secs(1);

/// Runs the prompt.
pub(super) async fn run(chat: &Chat<'_>, text: String, output: &mut Output) -> Outcome<Exit> {
    let mut signals =
        Signals::take().map_err(|error| Failure::general(format!("cannot take signals: {error}")))?;
    let mut begun = None;
    let mut view = view_of(chat);
    let report = match follow(chat, text, output, &mut signals, &mut view, &mut begun).await {
        Ok(report) => report,
        Err(Stop::Failure(failure)) => {
            let session = begun.map(|intro: SessionIntro| intro.session_id);
            tell_programs(
                chat.flags,
                format_of(chat),
                output,
                &Report::failed(session, failure.message.clone()),
            )?;
            return Err(Stop::Failure(failure));
        }
        Err(stop) => return Err(stop),
    };
    finish(chat, output, &mut view, &report)
}

fn format_of(chat: &Chat<'_>) -> OutputFormat {
    chat.flags.output_format.unwrap_or_default()
}

fn view_of(chat: &Chat<'_>) -> TurnView {
    match format_of(chat) {
        OutputFormat::Json => TurnView::Json,
        OutputFormat::StreamJson => TurnView::StreamJson,
        OutputFormat::Text if chat.flags.oneshot.is_some() || chat.flags.quiet => TurnView::Answer,
        OutputFormat::Text => TurnView::feed(),
    }
}

/// Everything up to the turn's end.
async fn follow(
    chat: &Chat<'_>,
    text: String,
    output: &mut Output,
    signals: &mut Signals,
    view: &mut TurnView,
    begun: &mut Option<SessionIntro>,
) -> Outcome<Report> {
    let deadline = chat.deadline;
    // Until the turn runs there is nothing to stop but this client itself.
    let (mut turn, pending) = tokio::select! {
        biased;
        cause = signals.next() => return Err(Failure::stopped(cause).into()),
        () = until(deadline) => return Err(Failure::stopped(StopCause::Timeout).into()),
        turn = begin(chat, text, output, view, begun) => turn?,
    };
    let (mut lines, mut questions) = (Lines::default(), Questions::new(chat.manner()));
    questions.pending(&pending, &mut lines, output)?;
    let mut stopped: Option<StopCause> = None;
    let mut give_up: Option<Instant> = None;
    loop {
        // The order matters: what the user asks for comes before what the daemon still sends.
        let cause = tokio::select! {
            biased;
            cause = signals.next() => cause,
            () = until(give_up) => return Ok(report(begun.as_ref(), None, stopped)),
            () = until(deadline), if stopped.is_none() => StopCause::Timeout,
            typed = lines.fresh(), if questions.are_open() => {
                questions.typed(typed, turn.watch(), &mut lines, output).await?;
                continue;
            }
            step = turn.next() => {
                let step = step?;
                questions.make_room(&step, output)?;
                view.step(output, turn.turn_id(), &step)?;
                if questions.will_show(&step) {
                    view.end_line(output)?;
                }
                questions.step(&step, &mut lines, output)?;
                if let TurnStep::Ended(end) = step {
                    return Ok(report(begun.as_ref(), Some(end.result), stopped));
                }
                continue;
            }
        };
        // Who asks a second time does not want to wait.
        if stopped.replace(cause).is_some() {
            return Ok(report(begun.as_ref(), None, Some(cause)));
        }
        give_up = Some(Instant::now() + GRACE);
        questions.refuse_all(turn.watch(), output).await?;
        // When this fails the daemon is lost, or slow; the loop above copes with both.
        let _ = timeout(ASK_LIMIT, turn.interrupt()).await;
    }
}

fn report(
    begun: Option<&SessionIntro>,
    result: Option<v1::TurnResult>,
    stopped: Option<StopCause>,
) -> Report {
    Report { session_id: begun.map(|intro| intro.session_id.clone()), result, stopped, error: None }
}

/// Connects, opens the session and sends the prompt.
async fn begin(
    chat: &Chat<'_>,
    text: String,
    output: &mut Output,
    view: &mut TurnView,
    begun: &mut Option<SessionIntro>,
) -> Outcome<(TurnRun, Vec<v1::PendingPrompt>)> {
    let Opened { watch, intro, pending } = session::open(chat, output).await?;
    view.begin(output, &intro)?;
    *begun = Some(intro);
    let turn = NewTurn { options: turn_options(chat), ..NewTurn::new(text) };
    let turn = TurnRun::submit(watch, turn).await?;
    if let Some(position) = turn.position().filter(|_| view.is_feed()) {
        output.note(&format!("another turn of this session runs; waiting at place {position}"));
    }
    Ok((turn, pending))
}

fn turn_options(chat: &Chat<'_>) -> v1::TurnOptions {
    v1::TurnOptions {
        max_turns: chat.choices.max_turns,
        yolo: chat.choices.yolo,
        busy_mode: Some("queue".into()),
        // The daemon keeps the limit too, should this client be stopped or lost.
        deadline_s: chat
            .deadline
            .map(|at| at.saturating_duration_since(Instant::now()).as_secs_f64().max(0.001)),
        model_once: None,
        one_shot: true,
    }
}

/// Shows the end and what to do next.
fn finish(chat: &Chat<'_>, output: &mut Output, view: &mut TurnView, report: &Report) -> Outcome<Exit> {
    // Written before a reader of stdout can be gone; the answer is shown whatever became of it.
    let usage_file = super::write_usage_file(chat.flags, report);
    view.end(output, report)?;
    let program = chat.around.program();
    if let Some(reason) = report.reason() {
        output.note(&format!("{program}: {reason}"));
    }
    if let Some(id) = report.session_id.as_deref().filter(|_| chat.flags.oneshot.is_none()) {
        if view.is_feed() {
            output.note(&format!("session_id: {id}"));
            output.note(&format!("resume: {}", resume_command(chat, id)));
        } else if format_of(chat) == OutputFormat::Text {
            output.note(&format!("session_id: {id}"));
        }
    }
    usage_file?;
    Ok(report.exit())
}

/// The command that goes on with a session.
pub(super) fn resume_command(chat: &Chat<'_>, session_id: &str) -> String {
    let program = chat.around.program();
    let profile = if chat.home.is_named() { format!(" -p {}", chat.home.profile()) } else { String::new() };
    format!("{program}{profile} -r {session_id}")
}

/// Pending for ever without a time.
async fn until(at: Option<Instant>) {
    match at {
        Some(at) => sleep_until(at.into()).await,
        None => std::future::pending().await,
    }
}
