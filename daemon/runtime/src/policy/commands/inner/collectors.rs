//! Programs that fill a command with what they find: `xargs`, `parallel`, `find`, `fd`; and those of git.

use super::super::expand::Arg;
use super::super::scope::UNKNOWN;
use super::super::simple::{Options, Simple, Stdin};
use super::{Folder, Inner, command, join, options_until_operand, text};

/// The words of the input, when it is known.
fn input_words(simple: &Simple) -> Option<Vec<Arg>> {
    match &simple.stdin {
        Stdin::Text(text) if !text.contains(UNKNOWN) => Some(
            text.split([' ', '\t', '\n', '\0']).filter(|word| !word.is_empty()).map(Arg::known).collect(),
        ),
        _ => None,
    }
}

fn open_word() -> Arg {
    Arg { text: UNKNOWN.to_string(), splits: true, ..Arg::default() }
}

pub(super) fn xargs(simple: &Simple) -> Vec<Inner> {
    const LONGS: [&str; 6] =
        ["arg-file", "delimiter", "max-args", "max-procs", "max-chars", "process-slot-var"];
    let words = options_until_operand(&simple.args, "IEdLnPsa", &LONGS);
    if words.is_empty() {
        return Vec::new();
    }
    let options = Options::read(&simple.args, "IEdLnPsa", &LONGS);
    let replaced = options
        .values
        .iter()
        .find(|(name, _)| name == "I" || (name.len() > 2 && "replace".starts_with(name.as_str())))
        .map(|(_, mark)| mark.text.clone())
        .or_else(|| options.has("i", "replace").then(|| "{}".to_owned()));
    let given = (!options.has("a", "arg-file")).then_some(&simple.stdin);
    // Another delimiter leaves blanks within words.
    let input = match (given, options.has("0d", "null") || options.has_long("delimiter")) {
        (Some(_), false) => input_words(simple),
        (Some(Stdin::Text(text)), true) if !text.contains(UNKNOWN) => {
            let newline = options.value(&["d", "delimiter"]).is_some_and(|arg| arg.text == "\\n");
            let whole = || vec![Arg::known(text.trim_end_matches('\n'))];
            Some(if newline { text.lines().map(Arg::known).collect() } else { whole() })
        }
        _ => None,
    };
    let mut words = words;
    match replaced.filter(|mark| !mark.is_empty()) {
        Some(mark) => {
            let value = match input.as_deref() {
                Some([one]) => one.text.clone(),
                Some(many) => many.iter().map(|arg| arg.text.as_str()).collect::<Vec<_>>().join(" "),
                None => UNKNOWN.to_string(),
            };
            for word in &mut words {
                word.text = word.text.replace(&mark, &value);
            }
        }
        None => {
            if let Some(input) = input {
                words.extend(input);
            } else {
                words.extend(searched(simple));
                words.push(open_word());
            }
        }
    }
    vec![Inner::Command { words, stdin: Some(Stdin::Inherited), folder: Folder::Same }]
}

/// What `find` hands to `xargs`, as far as its arguments say.
fn searched(simple: &Simple) -> Option<Arg> {
    let before = simple.fed_by.trim_end_matches(" | ").rsplit(" | ").next()?;
    let words: Vec<&str> = before.strip_prefix("find ")?.split(' ').collect();
    let start = words.first().filter(|word| !word.starts_with('-'))?;
    let name =
        words.iter().zip(words.iter().skip(1)).find(|(test, _)| matches!(**test, "-name" | "-iname"))?.1;
    let text = format!("{}/{UNKNOWN}/{name}", start.trim_end_matches('/'));
    Some(Arg { text, glob: name.contains(['*', '?', '[']), splits: true, ..Arg::default() })
}

pub(super) fn parallel(simple: &Simple) -> Vec<Inner> {
    let words = options_until_operand(
        &simple.args,
        "jaNnIPSL",
        &["jobs", "arg-file", "colsep", "delay", "timeout", "joblog"],
    );
    let split = words.iter().position(|word| word.text.starts_with(":::")).unwrap_or(words.len());
    let (template, behind) = words.split_at_checked(split).unwrap_or((&words, &[]));
    let values: Vec<Arg> = behind.iter().filter(|word| !word.text.starts_with(":::")).cloned().collect();
    let known = (!values.is_empty()).then_some(values).or_else(|| input_words(simple));
    if template.is_empty() {
        // The values are whole commands.
        return match known {
            Some(values) => values.iter().map(|value| text(&value.text, false)).collect(),
            None => vec![text(&UNKNOWN.to_string(), false)],
        };
    }
    let line = join(template);
    let values: Vec<String> = match known {
        Some(values) => values.into_iter().map(|value| value.text).take(32).collect(),
        None => vec![UNKNOWN.to_string()],
    };
    let has_mark = line.contains("{}");
    values
        .iter()
        .map(|value| {
            text(&if has_mark { line.replace("{}", value) } else { format!("{line} {value}") }, false)
        })
        .collect()
}

pub(super) fn find(simple: &Simple) -> Vec<Inner> {
    let start =
        simple.args.iter().find(|arg| !arg.text.starts_with('-')).map_or(".", |arg| arg.text.as_str());
    // Without a test the first thing that is found is the start itself.
    const ALL: [&str; 12] = [
        "-exec",
        "-execdir",
        "-ok",
        "-okdir",
        "-print",
        "-print0",
        "-depth",
        "-maxdepth",
        "-mindepth",
        "-delete",
        "-xdev",
        "-mount",
    ];
    let options =
        simple.args.iter().take_while(|arg| !arg.text.starts_with("-exec") && !arg.text.starts_with("-ok"));
    let tests = options
        .into_iter()
        .any(|arg| (arg.text.starts_with('-') || arg.text == "!") && !ALL.contains(&arg.text.as_str()));
    let named = simple
        .args
        .iter()
        .zip(simple.args.iter().skip(1))
        .find(|(test, _)| matches!(test.text.as_str(), "-name" | "-iname"))
        .map_or_else(|| UNKNOWN.to_string(), |(_, name)| name.text.clone());
    let mut found = vec![format!("{}/{UNKNOWN}/{named}", start.trim_end_matches('/'))];
    found.extend((!tests).then(|| start.to_owned()));
    let mut inner = Vec::new();
    let mut args = simple.args.iter();
    while let Some(arg) = args.next() {
        if matches!(arg.text.as_str(), "-exec" | "-execdir" | "-ok" | "-okdir") {
            let words: Vec<&Arg> =
                args.by_ref().take_while(|word| !matches!(word.text.as_str(), ";" | "+")).collect();
            let folder = if arg.text.ends_with("dir") { Folder::Unknown } else { Folder::Same };
            for found in found.iter().filter(|_| !words.is_empty()) {
                let words = words
                    .iter()
                    .map(|word| Arg {
                        text: word.text.replace("{}", found),
                        glob: word.glob || (word.text.contains("{}") && found.contains(['*', '?', '['])),
                        ..(*word).clone()
                    })
                    .collect();
                inner.push(Inner::Command { words, stdin: None, folder: folder.clone() });
            }
        }
    }
    inner
}

pub(super) fn fd(simple: &Simple) -> Vec<Inner> {
    let at = simple
        .args
        .iter()
        .position(|arg| matches!(arg.text.as_str(), "-x" | "-X" | "--exec" | "--exec-batch"));
    let Some(words) = at.and_then(|at| simple.args.get(at + 1..)) else { return Vec::new() };
    let mut words: Vec<Arg> = words
        .iter()
        .map(|word| Arg { text: word.text.replace("{}", &UNKNOWN.to_string()), ..word.clone() })
        .collect();
    words.push(open_word());
    command(words)
}

/// Commands that git runs for us: `bisect run`, `submodule foreach`, `rebase --exec`.
pub(super) fn git(simple: &Simple) -> Vec<Inner> {
    let rest = options_until_operand(&simple.args, "Cc", &["git-dir", "work-tree", "namespace"]);
    let sub = |at: usize| rest.get(at).map_or("", |arg: &Arg| arg.text.as_str());
    match (sub(0), sub(1)) {
        ("bisect", "run") => command(rest.get(2..).unwrap_or_default().to_vec()),
        ("submodule", "foreach") => {
            let words = options_until_operand(rest.get(2..).unwrap_or_default(), "", &[]);
            if words.is_empty() { Vec::new() } else { vec![text(&join(&words), false)] }
        }
        ("rebase", _) => {
            let options =
                Options::read(rest.get(1..).unwrap_or_default(), "xsXC", &["exec", "onto", "strategy"]);
            options
                .values
                .iter()
                .filter(|(name, _)| matches!(name.as_str(), "x" | "exec"))
                .map(|(_, value)| text(&value.text, false))
                .collect()
        }
        _ => Vec::new(),
    }
}
