//! From the arguments as typed to what is meant: what clap leaves open is decided here (spec 80 §2).

use std::ffi::{OsStr, OsString};

use clap::Parser as _;
use clap::error::ErrorKind;

use crate::args::{COMMANDS, ChatFlags, Command, CommandLine, GlobalFlags};

/// What to do.
#[derive(Debug, Clone)]
pub(crate) struct Invocation {
    pub(crate) global: GlobalFlags,
    pub(crate) action: Action,
}

#[derive(Debug, Clone)]
pub(crate) enum Action {
    ShowVersion,
    Chat(Box<ChatFlags>),
    Command(Command),
}

/// An answer that needs no work: help, or a usage error.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum Answer {
    Help(String),
    Usage(String),
}

/// Reads the command line; `argv` begins with the program's name.
pub(crate) fn parse(argv: Vec<OsString>) -> Result<Invocation, Answer> {
    let line = CommandLine::try_parse_from(complete_continue(argv)).map_err(|error| answer(&error))?;
    let CommandLine { global, chat, command } = line;
    let action = match command {
        _ if chat.version => Action::ShowVersion,
        None => Action::Chat(Box::new(chat)),
        Some(Command::Chat(later)) => Action::Chat(Box::new(chat.then(*later))),
        Some(command) if chat == ChatFlags::default() => Action::Command(command),
        Some(_) => {
            let text = "a chat's flags (such as -m, -q or -r) stand only without a command, or with `chat`";
            return Err(Answer::Usage(format!("error: {text}\n")));
        }
    };
    match action {
        Action::Chat(flags) if flags.version => Ok(Invocation { global, action: Action::ShowVersion }),
        Action::Chat(flags) => {
            check(&flags).map_err(|text| Answer::Usage(format!("error: {text}\n")))?;
            Ok(Invocation { global, action: Action::Chat(flags) })
        }
        action => Ok(Invocation { global, action }),
    }
}

/// Flags that contradict each other, also across the word `chat`, where clap does not look.
fn check(flags: &ChatFlags) -> Result<(), String> {
    let prompts = [
        ("-z", flags.oneshot.is_some()),
        ("-q", flags.query.is_some()),
        ("--query-file", flags.query_file.is_some()),
    ];
    let mut given = prompts.iter().filter(|(_, given)| *given).map(|(name, _)| name);
    if let (Some(one), Some(other)) = (given.next(), given.next()) {
        return Err(format!("{one} and {other} both give a prompt: use one of them"));
    }
    if flags.resume.is_some() && flags.continue_last.is_some() {
        return Err("-r and -c both choose a session: use one of them".into());
    }
    Ok(())
}

/// `-c` takes an optional title. A command's word right after it is the command: `-c chat` goes on with
/// the last session; a session that is titled like a command is named by `-c=chat`.
fn complete_continue(argv: Vec<OsString>) -> Vec<OsString> {
    let mut line: Vec<OsString> = Vec::with_capacity(argv.len());
    let mut words = argv.into_iter().peekable();
    while let Some(word) = words.next() {
        let passthrough = word == "--";
        let is_continue = word == "-c" || word == "--continue";
        let command_next =
            words.peek().and_then(|next| next.to_str()).is_some_and(|next| COMMANDS.contains(&next));
        line.push(if is_continue && command_next { OsStr::new("--continue=").to_owned() } else { word });
        if passthrough {
            break;
        }
    }
    line.extend(words);
    line
}

fn answer(error: &clap::Error) -> Answer {
    // Without styles: this text may go to a pipe or to a dumb terminal.
    let text = error.render().to_string();
    match error.kind() {
        ErrorKind::DisplayHelp => Answer::Help(text),
        // `sessions` and `daemon` alone are questions, not mistakes.
        ErrorKind::DisplayHelpOnMissingArgumentOrSubcommand => Answer::Help(text),
        ErrorKind::InvalidSubcommand => {
            let hint = "to send a prompt, use -q \"…\" or -z \"…\"";
            Answer::Usage(format!("{}\n\n  tip: {hint}\n", text.trim_end()))
        }
        _ => Answer::Usage(text),
    }
}

#[cfg(test)]
mod tests;
