//! Shells: the text of `-c`, the script, or the input.

use super::super::expand::Arg;
use super::super::places::absolute;
use super::super::simple::{Simple, Stdin};
use super::super::syntax;
use super::{Inner, command, options_until_operand, text};

/// Shells whose grammar is close enough to bash's for our reading.
pub(in super::super) const SHELLS: [&str; 10] =
    ["sh", "bash", "dash", "zsh", "ksh", "mksh", "ash", "rbash", "ksh93", "yash"];
/// Shells of another grammar.
pub(in super::super) const FOREIGN_SHELLS: [&str; 9] =
    ["fish", "csh", "tcsh", "nu", "xonsh", "elvish", "pwsh", "powershell", "cmd"];

/// The number of the descriptor that a path such as `/dev/fd/3` opens.
pub(in super::super) fn opens_descriptor(path: &str) -> Option<String> {
    let path = absolute(path, None)?;
    let parts: Vec<&str> = path.split('/').skip(1).collect();
    match parts.as_slice() {
        ["dev", "stdin"] => Some("0".to_owned()),
        ["dev", "fd", number] | ["proc", _, "fd", number] | ["proc", _, "task", _, "fd", number] => {
            Some((*number).to_owned())
        }
        _ => None,
    }
}

/// Whether a path is the input under another name.
pub(in super::super) fn is_stdin(path: &str) -> bool {
    opens_descriptor(path).is_some_and(|number| number == "0")
}

pub(in super::super) fn is_shell(program: &str) -> bool {
    SHELLS.contains(&program)
        || program
            .strip_prefix("bash")
            .is_some_and(|rest| rest.chars().all(|c| c.is_ascii_digit() || matches!(c, '-' | '.')))
}

/// The script that a shell loads, or the program itself when it is called by a path.
pub(in super::super) fn script(simple: &Simple) -> Option<String> {
    if is_shell(&simple.program) {
        let called = invocation(simple);
        return match (&called.text, called.operands.first(), &simple.stdin) {
            (None, Some(script), _) => Some(script.text.clone()),
            (None, None, Stdin::File(file)) => Some(file.text.clone()),
            _ => None,
        };
    }
    match simple.program.as_str() {
        "source" | "." => simple.args.first().map(|arg| arg.text.clone()),
        _ => simple.called.text.contains('/').then(|| simple.called.text.clone()),
    }
}

pub(super) fn shell(simple: &Simple) -> Vec<Inner> {
    let Invocation { text: given, operands, reads_stdin } = invocation(simple);
    let foreign = FOREIGN_SHELLS.contains(&simple.program.as_str());
    let mut found = Vec::new();
    if let Some(code) = given {
        if !foreign || syntax::read(&code.text).is_ok() {
            let open = operands.iter().any(|arg| arg.splits);
            let positional = (!open).then(|| operands.iter().map(|arg| arg.text.clone()).collect());
            found.push(Inner::Text { text: code.text, here: false, positional });
        }
    } else if reads_stdin
        && let Stdin::Text(code) = &simple.stdin
        && (!foreign || syntax::read(code).is_ok())
    {
        found.push(text(code, false));
    }
    found
}

/// How a shell is called.
pub(in super::super) struct Invocation {
    /// The text of `-c`.
    pub(in super::super) text: Option<Arg>,
    /// The script and its arguments, or what stands behind the text.
    pub(in super::super) operands: Vec<Arg>,
    pub(in super::super) reads_stdin: bool,
}

/// Reads a shell's own arguments.
pub(in super::super) fn invocation(simple: &Simple) -> Invocation {
    let mut has_text = false;
    let mut from_stdin = false;
    let mut rest = simple.args.as_slice();
    while let Some((first, behind)) = rest.split_first() {
        let text = first.text.as_str();
        let mut takes = 0;
        if text == "--" || text == "-" {
            rest = behind;
            break;
        }
        if let Some(long) = text.strip_prefix("--") {
            let lower = long.to_lowercase();
            takes = usize::from(matches!(long, "rcfile" | "init-file"));
            has_text |= lower == "command" || lower.starts_with("command=");
            if let Some((_, inline)) = long.split_once('=')
                && lower.starts_with("command=")
            {
                return Invocation {
                    text: Some(Arg { text: inline.to_owned(), ..first.clone() }),
                    operands: behind.to_vec(),
                    reads_stdin: false,
                };
            }
        } else if let Some(bundle) = text.strip_prefix('-').or_else(|| text.strip_prefix('+')) {
            let lower = bundle.to_lowercase();
            let windows = matches!(simple.program.as_str(), "pwsh" | "powershell");
            if windows {
                has_text |=
                    "command".starts_with(lower.as_str()) || "encodedcommand".starts_with(lower.as_str());
            } else {
                has_text |= bundle.contains('c');
                from_stdin |= bundle.contains('s');
                takes = usize::from(bundle.ends_with(['o', 'O']));
            }
        } else if simple.program == "cmd" && text.starts_with('/') {
            has_text |= matches!(text, "/c" | "/k" | "/C" | "/K");
        } else {
            break;
        }
        rest = behind.get(takes..).unwrap_or_default();
        if has_text && matches!(simple.program.as_str(), "cmd" | "pwsh" | "powershell") {
            break;
        }
    }
    if has_text && let Some((text, operands)) = rest.split_first() {
        return Invocation { text: Some(text.clone()), operands: operands.to_vec(), reads_stdin: false };
    }
    let reads_stdin = from_stdin || rest.first().is_none_or(|arg| is_stdin(&arg.text));
    Invocation { text: None, operands: rest.to_vec(), reads_stdin }
}

pub(super) fn with_c(simple: &Simple) -> Vec<Inner> {
    let mut args = simple.args.iter();
    while let Some(arg) = args.next() {
        let text_of = |inline: &str| text(inline, false);
        let (name, value) =
            arg.text.split_once('=').map_or((arg.text.as_str(), None), |(name, value)| (name, Some(value)));
        let is_long = name.len() > 3 && "--command".starts_with(name);
        let bundle = arg.text.strip_prefix('-').filter(|bundle| !bundle.starts_with('-'));
        let short = bundle
            .and_then(|bundle| bundle.split_once('c'))
            .filter(|(before, _)| before.len() < 4 && before.chars().all(|c| c.is_ascii_alphabetic()));
        if let Some(inline) =
            value.filter(|_| is_long).or(short.map(|(_, inline)| inline)).filter(|inline| !inline.is_empty())
        {
            return vec![text_of(inline)];
        }
        if is_long || short.is_some() {
            return args.next().map(|code| vec![text_of(&code.text)]).unwrap_or_default();
        }
    }
    match simple.program.as_str() {
        // `sg group command`, `runuser -u user -- command`.
        "sg" => simple.args.get(1).map(|arg| vec![text(&arg.text, false)]).unwrap_or_default(),
        "runuser" => command(options_until_operand(&simple.args, "ugGs", &["user", "group", "shell"])),
        _ => Vec::new(),
    }
}
