//! Where the prompt comes from: an argument, a file, stdin, or a person (spec 80 §4.1).

use std::io::Read as _;
use std::path::Path;
use std::time::{Duration, Instant};

use hermes_proto::MAX_MESSAGE_BYTES;

use crate::args::{ChatFlags, StdinMode};
use crate::failure::{Failure, Outcome};
use crate::stdin::{self, ReadLimits, StdinError};

/// How long a silent stdin is waited for when a prompt was given: it may be inherited and never end.
const SILENCE: Duration = Duration::from_millis(250);

/// The prompt as the flags give it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum Given {
    Nothing,
    /// `-`
    Dash,
    Text(String),
}

/// What to do with stdin.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Plan {
    /// A person types.
    Converse,
    Leave,
    /// Append what comes; with a limit for the first byte.
    Append(Option<Duration>),
    /// It is the prompt.
    Prompt,
}

/// What the prompt is, or that a person is there to type it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum Prompt {
    Text(String),
    Converse,
}

/// Finds the prompt. `deadline` is that of the whole run.
pub(crate) fn find(flags: &ChatFlags, stdin_is_terminal: bool, deadline: Option<Instant>) -> Outcome<Prompt> {
    let given = given(flags)?;
    let plan = plan(flags.stdin, &given, stdin_is_terminal)?;
    let was_given = matches!(given, Given::Text(_));
    let argument = match given {
        Given::Text(text) => text,
        Given::Nothing | Given::Dash => String::new(),
    };
    let text = match plan {
        Plan::Converse => return Ok(Prompt::Converse),
        Plan::Leave => argument,
        Plan::Append(first_byte) => {
            let read = stdin::read(ReadLimits { first_byte, deadline });
            append(argument, &read.map_err(failure)?)
        }
        Plan::Prompt => {
            let read = stdin::read(ReadLimits { first_byte: None, deadline });
            trimmed_end(read.map_err(failure)?)
        }
    };
    if text.trim().is_empty() {
        let what =
            if plan == Plan::Prompt && !was_given { "stdin holds no prompt" } else { "the prompt is empty" };
        return Err(Failure::usage(what)
            .hint("give one with -q \"…\", -z \"…\" or --query-file PATH")
            .into());
    }
    Ok(Prompt::Text(text))
}

fn given(flags: &ChatFlags) -> Outcome<Given> {
    let argument = flags.oneshot.as_deref().or(flags.query.as_deref());
    Ok(match (argument, flags.query_file.as_deref()) {
        (Some("-"), _) => Given::Dash,
        (Some(text), _) => Given::Text(text.to_owned()),
        (None, Some(path)) if path == Path::new("-") => Given::Dash,
        (None, Some(path)) => Given::Text(from_file(path)?),
        (None, None) => Given::Nothing,
    })
}

/// The table of spec 80 §4.1.
fn plan(mode: Option<StdinMode>, given: &Given, is_terminal: bool) -> Outcome<Plan> {
    let usage = |text: &str| Err(Failure::usage(text).into());
    match (mode, given, is_terminal) {
        (None | Some(StdinMode::Ignore), Given::Nothing, true) => Ok(Plan::Converse),
        (None, Given::Text(_), true) => Ok(Plan::Leave),
        (None, Given::Text(text), false) if text.trim().is_empty() => Ok(Plan::Prompt),
        (None, Given::Text(_), false) => Ok(Plan::Append(Some(SILENCE))),
        (None, Given::Dash, _) | (None, Given::Nothing, false) => Ok(Plan::Prompt),
        (Some(StdinMode::Ignore), Given::Text(_), _) => Ok(Plan::Leave),
        (Some(StdinMode::Ignore), Given::Dash, _) => {
            usage("the prompt `-` is on stdin, and --stdin ignore forbids it")
        }
        (Some(StdinMode::Ignore), Given::Nothing, false) => {
            usage("there is no prompt, and --stdin ignore forbids stdin")
        }
        (Some(StdinMode::Append), Given::Text(_), _) => Ok(Plan::Append(None)),
        (Some(StdinMode::Prompt), Given::Text(_), _) => {
            usage("--stdin prompt and a prompt on the command line: use one")
        }
        (Some(StdinMode::Append | StdinMode::Prompt), Given::Dash | Given::Nothing, _) => Ok(Plan::Prompt),
    }
}

fn from_file(path: &Path) -> Outcome<String> {
    let unreadable = |error: std::io::Error| {
        Failure::general(format!("cannot read the prompt file {}: {error}", path.display()))
    };
    // A pipe or a device has no length to look at first.
    let limit = MAX_MESSAGE_BYTES as u64;
    let mut bytes = Vec::new();
    let file = std::fs::File::open(path).map_err(unreadable)?;
    file.take(limit + 1).read_to_end(&mut bytes).map_err(unreadable)?;
    if bytes.len() as u64 > limit {
        let what = format!(
            "the prompt file {} has more than the {limit} bytes (16 MiB) that a message may have",
            path.display()
        );
        return Err(Failure::general(what)
            .hint("name the file in the prompt, so that it is read with a tool")
            .into());
    }
    String::from_utf8(bytes).map(trimmed_end).map_err(|error| {
        let at = error.utf8_error().valid_up_to();
        let what = format!("the prompt file {} is not UTF-8 text (byte {at})", path.display());
        Failure::general(what).hint("convert it, or name the file in the prompt").into()
    })
}

fn trimmed_end(mut text: String) -> String {
    text.truncate(text.trim_end().len());
    text
}

/// The prompt, and what was piped in as a block with clear edges.
fn append(prompt: String, piped: &str) -> String {
    if piped.trim().is_empty() {
        return prompt;
    }
    format!("{prompt}\n\n<stdin>\n{}\n</stdin>", piped.trim_end_matches('\n'))
}

fn failure(error: StdinError) -> Failure {
    let hint =
        "save it to a file and name the file in the prompt, or give a prompt of that size with --query-file";
    match error {
        StdinError::TooLong { limit } => {
            Failure::usage(format!("stdin holds more than {limit} bytes (1 MiB)")).hint(hint)
        }
        StdinError::Deadline => Failure::stopped(crate::exit::StopCause::Timeout),
        StdinError::Io(error) => Failure::general(format!("cannot read stdin: {error}")),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::failure::Stop;
    use pretty_assertions::assert_eq;

    #[test]
    fn the_table_of_stdin() {
        let text = || Given::Text("hi".into());
        let waits = Ok(Plan::Append(Some(SILENCE)));
        let table = [
            // mode, given, terminal -> plan; None means a usage error
            (None, text(), true, Ok(Plan::Leave)),
            (None, text(), false, waits),
            (None, Given::Text(String::new()), false, Ok(Plan::Prompt)),
            (None, Given::Dash, false, Ok(Plan::Prompt)),
            (None, Given::Dash, true, Ok(Plan::Prompt)),
            (None, Given::Nothing, false, Ok(Plan::Prompt)),
            (None, Given::Nothing, true, Ok(Plan::Converse)),
            (Some(StdinMode::Ignore), text(), false, Ok(Plan::Leave)),
            (Some(StdinMode::Ignore), Given::Dash, false, Err(())),
            (Some(StdinMode::Ignore), Given::Nothing, false, Err(())),
            (Some(StdinMode::Append), text(), false, Ok(Plan::Append(None))),
            (Some(StdinMode::Append), Given::Nothing, false, Ok(Plan::Prompt)),
            (Some(StdinMode::Prompt), Given::Nothing, false, Ok(Plan::Prompt)),
            (Some(StdinMode::Prompt), text(), false, Err(())),
        ];
        for (mode, given, terminal, expected) in table {
            let found = plan(mode, &given, terminal).map_err(|_| ());
            assert_eq!(found, expected, "{mode:?} {given:?} terminal {terminal}");
        }
    }

    #[test]
    fn piped_text_is_a_block_after_the_prompt() {
        assert_eq!(append("sum up".into(), "a\nb\n"), "sum up\n\n<stdin>\na\nb\n</stdin>");
        assert_eq!(append("sum up".into(), "\n"), "sum up");
    }

    #[test]
    fn a_prompt_file_of_megabytes_is_taken_and_one_beyond_the_limit_is_refused() {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("prompt");
        std::fs::write(&path, "x".repeat(5 * 1024 * 1024) + "\n").unwrap();
        let flags = ChatFlags { query_file: Some(path.clone()), ..ChatFlags::default() };
        let Prompt::Text(text) = find(&flags, true, None).unwrap() else { panic!() };
        assert_eq!(text.len(), 5 * 1024 * 1024);

        std::fs::File::create(&path).unwrap().set_len(MAX_MESSAGE_BYTES as u64 + 1).unwrap();
        let Err(Stop::Failure(failure)) = find(&flags, true, None) else { panic!() };
        assert!(failure.message.contains("16 MiB"), "{}", failure.message);

        let flags = ChatFlags { query_file: Some("/dev/zero".into()), ..ChatFlags::default() };
        assert!(matches!(find(&flags, true, None), Err(Stop::Failure(_))));
    }

    #[test]
    fn an_empty_prompt_is_a_usage_error() {
        let flags = ChatFlags { query: Some("  ".into()), ..ChatFlags::default() };
        let Err(Stop::Failure(failure)) = find(&flags, true, None) else { panic!() };
        assert_eq!((failure.exit.code(), failure.message.as_str()), (2, "the prompt is empty"));
    }

    #[test]
    fn a_prompt_file_that_is_not_text_is_refused_with_the_place() {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("prompt");
        std::fs::write(&path, b"ab\xffcd").unwrap();
        let flags = ChatFlags { query_file: Some(path), ..ChatFlags::default() };
        let Err(Stop::Failure(failure)) = find(&flags, true, None) else { panic!() };
        assert!(failure.message.contains("(byte 2)"), "{}", failure.message);
    }
}
