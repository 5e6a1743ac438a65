//! `hermes-cli`, the command line of Hermes (installed also as `hermes`): single prompts for scripts, a
//! line-by-line chat, and the commands around sessions, settings and the daemon.
//!
//! It is a thin client: it finds or starts the profile's daemon, sends what it was asked, and shows what
//! comes back. It never opens the database and never runs a turn itself. Only `output` writes to the
//! terminal.

mod args;
mod chat;
mod choices;
mod commands;
mod exit;
mod failure;
mod log_line;
mod output;
mod parse;
mod profile;
mod prompt;
mod stdin;
mod surroundings;

use std::process::ExitCode;

use exit::Exit;
use failure::{Outcome, Stop};
use output::Output;
use parse::{Action, Answer, Invocation};
use surroundings::Surroundings;

fn main() -> ExitCode {
    let around = Surroundings::read();
    let parsed = parse::parse(around.argv.clone());
    let no_color = parsed.as_ref().is_ok_and(|invocation| invocation.global.no_color);
    let mut output = Output::of_process(&around, no_color);
    let ended = match parsed {
        Ok(invocation) => run(invocation, &around, &mut output),
        Err(answer) => tell(&answer, &mut output),
    };
    let exit = match ended {
        Ok(exit) => exit,
        // Whoever read our output has seen enough.
        Err(Stop::PipeClosed) => Exit::Success,
        Err(Stop::Failure(failure)) => {
            output.failure(around.program(), &failure);
            failure.exit
        }
    };
    ExitCode::from(exit.code())
}

fn run(invocation: Invocation, around: &Surroundings, output: &mut Output) -> Outcome<Exit> {
    let Invocation { global, action } = invocation;
    match action {
        Action::ShowVersion => commands::show_version(profile::home(&global, around), output),
        Action::Chat(flags) => chat::run(&global, &flags, around, output),
        Action::Command(command) => commands::run(&global, command, around, output),
    }
}

fn tell(answer: &Answer, output: &mut Output) -> Outcome<Exit> {
    match answer {
        Answer::Help(text) => {
            output.text(text)?;
            Ok(Exit::Success)
        }
        Answer::Usage(text) => {
            output.note(text.trim_end());
            Ok(Exit::Usage)
        }
    }
}
