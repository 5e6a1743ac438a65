//! The text of a command as it is run in the background (spec 40 §6.1).

use super::lexer::{Before, Simple, simple_commands};

/// `command` without what would detach it from us: the process is in the background already.
///
/// A `&` at the very end goes, since with it the shell would end at once and nobody would watch what it started. Of
/// `A && B & C` only `B` is put aside, so that `A`, often a `cd`, holds for `C` as well.
pub(super) fn watched(command: &str) -> String {
    let commands = simple_commands(command);
    let chars: Vec<char> = command.chars().collect();
    let mut ends: Vec<(usize, usize)> = Vec::new();
    let mut begins: Vec<usize> = Vec::new();
    let mut dropped = None;
    for (at, simple) in commands.iter().enumerate().filter(|(_, simple)| simple.background) {
        let rest = chars.get(simple.end..).unwrap_or_default();
        if at + 1 == commands.len() && rest.iter().all(|c| c.is_whitespace()) {
            dropped = Some(simple.end - 1);
        } else if let Some(begin) = last_of_list(&commands, at) {
            begins.push(begin);
            ends.push((simple.end, usize::from(!matches!(next_visible(rest), None | Some('\n')))));
        }
    }
    let mut text = String::with_capacity(command.len() + 8);
    for (at, c) in chars.iter().enumerate() {
        if begins.contains(&at) {
            text.push_str("{ ");
        }
        if dropped != Some(at) {
            text.push(*c);
        }
        if let Some((_, more)) = ends.iter().find(|(end, _)| *end == at + 1) {
            text.push_str(if *more == 1 { " };" } else { " }" });
        }
    }
    if dropped.is_some() { text.trim_end().to_owned() } else { text }
}

/// Where the last pipeline of an and-or list begins that ends with the command at `end`; `None` when it stands alone, or
/// when any of it is more than plain commands.
fn last_of_list(commands: &[Simple], end: usize) -> Option<usize> {
    let list = commands.get(..=end)?;
    let pipeline = list.iter().rposition(|simple| simple.before != Before::Pipe)?;
    let first = list.get(pipeline)?;
    // What ends a compound command looks like a command of that name.
    let closing = |simple: &Simple| matches!(simple.program(), "done" | "fi" | "esac" | "}");
    if first.before != Before::AndOr || list.get(pipeline..)?.iter().any(closing) {
        return None;
    }
    Some(first.start)
}

fn next_visible(rest: &[char]) -> Option<char> {
    rest.iter().copied().find(|c| *c == '\n' || !c.is_whitespace())
}

#[cfg(test)]
mod tests {
    use super::*;
    use pretty_assertions::assert_eq;

    #[test]
    fn only_what_follows_the_list_is_put_aside() {
        for (command, expected) in [
            ("npm run dev", "npm run dev"),
            ("npm run dev &", "npm run dev"),
            ("cd app && npm run dev &\n", "cd app && npm run dev"),
            (
                "cd app && A=1 npm run dev & sleep 1; curl x",
                "cd app && { A=1 npm run dev & }; sleep 1; curl x",
            ),
            ("cd app && a | b &\nwait", "cd app && { a | b & }\nwait"),
            ("a || b & c & d", "a || { b & }; c & d"),
            ("a & b", "a & b"),
            ("(a && b) & c", "(a && b) & c"),
            ("a && while b; do c; done & d", "a && while b; do c; done & d"),
            ("echo 'a && b & c'", "echo 'a && b & c'"),
            ("a 2>&1 && b &> x", "a 2>&1 && b &> x"),
            ("ü && é & c", "ü && { é & }; c"),
        ] {
            assert_eq!(watched(command), expected, "{command}");
        }
    }
}
