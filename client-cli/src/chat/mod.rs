//! Chatting: one prompt and its answer, or a person at a terminal.

mod guests;
mod lines;
mod one_shot;
mod question;
mod questions;
mod repl;
mod session;
mod signals;

use std::time::{Duration, Instant};

use hermes_client::Connector;
use hermes_config::Home;

use crate::args::{ChatFlags, GlobalFlags, OutputFormat};
use crate::choices::{self, Choices};
use crate::exit::Exit;
use crate::failure::{Failure, Outcome, Stop};
use crate::output::{Output, Report, TurnView};
use crate::profile;
use crate::prompt::{self, Prompt};
use crate::surroundings::Surroundings;
use questions::Manner;

/// All that a chat needs to know; borrowed by its parts.
#[derive(Debug)]
pub(crate) struct Chat<'a> {
    pub(crate) flags: &'a ChatFlags,
    pub(crate) around: &'a Surroundings,
    pub(crate) home: &'a Home,
    pub(crate) connector: Connector,
    pub(crate) choices: Choices,
    /// When a single run must be over.
    pub(crate) deadline: Option<Instant>,
    pub(crate) verbose: bool,
}

/// Kinds of questions that a person at a terminal answers.
const ANSWERABLE: [&str; 3] = ["approval", "clarify", "sudo"];

impl Chat<'_> {
    /// What becomes of questions. Only a person at a terminal can answer: never a pipe, a program that reads JSON,
    /// or a script with `-z` (contract §7).
    fn manner(&self) -> Manner {
        let for_people = self.flags.output_format.unwrap_or_default() == OutputFormat::Text;
        match (self.flags.oneshot.is_some(), for_people) {
            (false, true) if self.around.stdin_is_terminal && self.around.stdout_is_terminal => Manner::Ask,
            (false, true) if !self.flags.quiet => Manner::Tell,
            _ => Manner::Ignore,
        }
    }

    /// What the daemon is told of it.
    fn can_answer(&self) -> Vec<String> {
        match self.manner() {
            Manner::Ask => ANSWERABLE.map(str::to_owned).to_vec(),
            Manner::Tell | Manner::Ignore => Vec::new(),
        }
    }
}

/// Runs a chat to its end.
pub(crate) fn run(
    global: &GlobalFlags,
    flags: &ChatFlags,
    around: &Surroundings,
    output: &mut Output,
) -> Outcome<Exit> {
    let deadline = flags.timeout.map(|seconds| Instant::now() + Duration::from_secs_f64(seconds));
    let format = flags.output_format.unwrap_or_default();
    let (prompt, home, choices) = match prepare(global, flags, around, deadline) {
        Ok(prepared) => prepared,
        Err(stop) => return Err(report_early(flags, format, output, stop)),
    };
    let connector = profile::connector(&home, around);
    let chat = Chat { flags, around, home: &home, connector, choices, deadline, verbose: global.verbose };
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build();
    let runtime = runtime.map_err(|error| Failure::general(format!("cannot start the runtime: {error}")))?;
    let ended = match prompt {
        Prompt::Text(text) => runtime.block_on(one_shot::run(&chat, text, output)),
        Prompt::Converse => runtime.block_on(repl::run(&chat, output)),
    };
    // A thread may still wait for a line that nobody types.
    runtime.shutdown_background();
    ended
}

/// All that can fail before the daemon is asked, in the order in which the user should hear of it.
fn prepare(
    global: &GlobalFlags,
    flags: &ChatFlags,
    around: &Surroundings,
    deadline: Option<Instant>,
) -> Outcome<(Prompt, Home, Choices)> {
    let home = profile::home(global, around)?;
    let prompt = prompt::find(flags, around.stdin_is_terminal, deadline)?;
    if prompt == Prompt::Converse && flags.output_format.unwrap_or_default() != OutputFormat::Text {
        let what = "--output-format json and stream-json print a single prompt's run";
        return Err(Failure::usage(what).hint("give the prompt with -q, -z or on stdin").into());
    }
    let loaded = choices::needs_settings(global, around)
        .then(|| profile::settings(&home, global, around))
        .transpose()?;
    let resumes = flags.resume.is_some() || flags.continue_last.is_some();
    let choices = choices::resolve(flags, global, around, loaded.as_ref(), resumes);
    profile::prepare(&home)?;
    Ok((prompt, home, choices))
}

/// Programs that read JSON get an object and a usage file also when a run did not even begin.
fn report_early(flags: &ChatFlags, format: OutputFormat, output: &mut Output, stop: Stop) -> Stop {
    let Stop::Failure(failure) = stop else { return stop };
    match tell_programs(flags, format, output, &Report::failed(None, failure.message.clone())) {
        Ok(()) => Stop::Failure(failure),
        Err(stop) => stop,
    }
}

/// Writes what programs read of a run that failed: the usage file, and the JSON forms' last object.
fn tell_programs(
    flags: &ChatFlags,
    format: OutputFormat,
    output: &mut Output,
    report: &Report,
) -> Outcome<()> {
    // The run's own failure is what the exit code tells.
    if let Err(Stop::Failure(failure)) = write_usage_file(flags, report) {
        output.note(&failure.message);
    }
    match format {
        OutputFormat::Text => Ok(()),
        OutputFormat::Json => Ok(TurnView::Json.end(output, report)?),
        OutputFormat::StreamJson => Ok(TurnView::StreamJson.end(output, report)?),
    }
}

fn write_usage_file(flags: &ChatFlags, report: &Report) -> Outcome<()> {
    let Some(path) = &flags.usage_file else { return Ok(()) };
    let text = format!("{:#}\n", report.to_usage_json());
    std::fs::write(path, text).map_err(|error| {
        Failure::general(format!("cannot write the usage file {}: {error}", path.display())).into()
    })
}
