//! A person at a terminal: read a line, run a turn, show it, again. Leaving only detaches from the
//! session; a turn that still runs goes on (contract §10).

use std::time::{Duration, Instant};

use hermes_client::{CallErrorKind, NewTurn, SessionWatch, TurnRun, TurnStep, WatchError};
use hermes_proto::v1;
use tokio::time::timeout;

use super::guests::Guests;
use super::lines::{Lines, Typed};
use super::questions::Questions;
use super::session::{self, Opened};
use super::signals::Signals;
use super::{Chat, one_shot};
use crate::exit::{self, Exit, StopCause};
use crate::failure::{Failure, Outcome};
use crate::output::{Output, TurnView};

/// A second Ctrl+C within this time leaves, even while a turn runs (spec 80 §6.2).
const TWICE: Duration = Duration::from_secs(2);

/// What a person gave.
enum Line {
    Text(String),
    /// Ctrl+D, or a terminal that is gone.
    End,
    Stopped(StopCause),
}

/// The person at the terminal: what they type, what stops them, what they are asked.
#[derive(Debug)]
struct Person {
    signals: Signals,
    lines: Lines,
    questions: Questions,
    guests: Guests,
}

/// How a turn was left.
enum Turn {
    Ended(Box<SessionWatch>),
    Left(StopCause),
    /// The daemon does not know the session any more: it ended before the session had its first row.
    Gone {
        text: String,
    },
}

/// Converses until the person leaves.
pub(super) async fn run(chat: &Chat<'_>, output: &mut Output) -> Outcome<Exit> {
    let signals =
        Signals::take().map_err(|error| Failure::general(format!("cannot take signals: {error}")))?;
    let Opened { mut watch, mut intro, pending } = session::open(chat, output).await?;
    banner(chat, output, &intro.model, &intro.provider)?;
    let mut person = Person {
        signals,
        lines: Lines::default(),
        questions: Questions::new(chat.manner()),
        guests: Guests::default(),
    };
    person.questions.pending(&pending, &mut person.lines, output)?;
    let exit = loop {
        let text = match next_line(&mut person, &mut watch, output).await? {
            Line::Text(text) => text,
            Line::End => {
                output.line("")?;
                break Exit::Success;
            }
            Line::Stopped(cause) => {
                output.line("")?;
                break cause.exit();
            }
        };
        match text.trim() {
            "" => continue,
            "/exit" | "/quit" => break Exit::Success,
            command if command.starts_with('/') => {
                output.note(&format!("no command {command} here; /exit leaves"));
                continue;
            }
            _ => {}
        }
        let mut left = turn(chat, watch, text, &mut person, output).await?;
        if let Turn::Gone { text } = left {
            let again = session::open(chat, output).await?;
            intro = again.intro;
            left = turn(chat, again.watch, text, &mut person, output).await?;
        }
        match left {
            Turn::Ended(again) => watch = *again,
            Turn::Left(cause) => break cause.exit(),
            Turn::Gone { .. } => return Err(Failure::general("the daemon keeps losing the session").into()),
        }
    };
    output.note(&format!("session_id: {}", intro.session_id));
    output.note(&format!("resume: {}", one_shot::resume_command(chat, &intro.session_id)));
    Ok(exit)
}

fn banner(chat: &Chat<'_>, output: &mut Output, model: &str, provider: &str) -> Outcome<()> {
    output.dim_line(&format!("Hermes {} · {model} ({provider})", env!("CARGO_PKG_VERSION")))?;
    if chat.home.is_named() {
        output.dim_line(&format!("profile {}", chat.home.profile()))?;
    }
    if chat.choices.yolo {
        output.painted_line("YOLO: nothing asks before it acts", "31")?;
    }
    output.dim_line("Enter sends, Ctrl+C stops a turn, Ctrl+D leaves")?;
    Ok(())
}

/// Waits for a line of the chat, and answers what the session asks meanwhile: another client's turn, or one that a
/// background process began, may need this person too. Ctrl+C begins the line anew: the terminal has thrown away
/// what stood in it.
async fn next_line(person: &mut Person, watch: &mut SessionWatch, output: &mut Output) -> Outcome<Line> {
    let Person { signals, lines, questions, guests } = person;
    let mut connected = true;
    let mut invited = false;
    loop {
        if !invited && !questions.are_open() && !guests.is_shown() {
            output.text("❯ ")?;
            invited = true;
        }
        let asked = questions.are_open();
        tokio::select! {
            biased;
            cause = signals.next() => {
                if cause != StopCause::Interrupt {
                    return Ok(Line::Stopped(cause));
                }
                questions.refuse_all(watch, output).await?;
                output.line("")?;
                invited = false;
            }
            event = watch.next_here(), if connected => {
                if let Some(event) = event {
                    let interrupts = (questions.opens(&event) && !asked) || guests.begins(&event, None);
                    if interrupts && invited {
                        // The line that is being typed goes on after it.
                        output.line("")?;
                        invited = false;
                    }
                    if questions.opens(&event) {
                        guests.end_line(output)?;
                    }
                    guests.event(output, &event, None)?;
                    questions.event(&event, lines, output)?;
                } else {
                    // The next input connects again.
                    connected = false;
                    guests.leave();
                }
            }
            typed = lines.read(asked) => if asked {
                questions.typed(typed, watch, lines, output).await?;
            } else {
                return Ok(match typed {
                Typed::Line(text) => Line::Text(text),
                Typed::End => Line::End,
                });
            },
        }
    }
}

async fn turn(
    chat: &Chat<'_>,
    watch: SessionWatch,
    text: String,
    person: &mut Person,
    output: &mut Output,
) -> Outcome<Turn> {
    let Person { signals, lines, questions, guests } = person;
    let options = v1::TurnOptions {
        max_turns: chat.choices.max_turns,
        yolo: chat.choices.yolo,
        busy_mode: Some("queue".into()),
        ..v1::TurnOptions::default()
    };
    let mut turn = tokio::select! {
        cause = signals.next() => return Ok(Turn::Left(cause)),
        turn = TurnRun::submit(watch, NewTurn { options, ..NewTurn::new(text.clone()) }) => match turn {
            Err(WatchError::Call(error)) if error.kind() == CallErrorKind::NotFound => {
                return Ok(Turn::Gone { text });
            }
            turn => turn?,
        },
    };
    let mut view = TurnView::feed();
    let mut asked: Option<Instant> = None;
    loop {
        tokio::select! {
            biased;
            cause = signals.next() => {
                let twice = asked.is_some_and(|at| at.elapsed() < TWICE);
                if twice || cause != StopCause::Interrupt {
                    return Ok(Turn::Left(cause));
                }
                asked = Some(Instant::now());
                questions.refuse_all(turn.watch(), output).await?;
                // A daemon that is lost is found again by the next step; one that is slow must not keep
                // the second Ctrl+C from being heard.
                let _ = timeout(one_shot::ASK_LIMIT, turn.interrupt()).await;
            }
            typed = lines.fresh(), if questions.are_open() => {
                questions.typed(typed, turn.watch(), lines, output).await?;
            }
            step = turn.next() => {
                let step = step?;
                questions.make_room(&step, output)?;
                if let TurnStep::Event(event) = &step {
                    guests.event(output, event, Some(turn.turn_id()))?;
                }
                view.step(output, turn.turn_id(), &step)?;
                if questions.will_show(&step) {
                    view.end_line(output)?;
                }
                questions.step(&step, lines, output)?;
                if let TurnStep::Ended(end) = step {
                    let report = crate::output::Report {
                        result: Some(end.result),
                        ..crate::output::Report::default()
                    };
                    view.end(output, &report)?;
                    if let Some(reason) = report.result.as_ref().and_then(exit::reason) {
                        output.note(&reason);
                    }
                    return Ok(Turn::Ended(Box::new(turn.into_watch())));
                }
            }
        }
    }
}
