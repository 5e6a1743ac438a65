//! Program texts on the command line and on the input of interpreters.

use super::super::CommandFacts;
use super::super::code::{Language, is_harmless};
use super::super::expand::Arg;
use super::super::inner::{FOREIGN_SHELLS, invocation, is_shell, is_stdin, opens_descriptor};
use super::super::report::Report;
use super::super::scope::UNKNOWN;
use super::super::simple::{Simple, Stdin};
use super::shape_exact;

/// Where an interpreter takes a program text from.
struct Interpreter {
    language: Language,
    /// Short options followed by a text; they end a bundle.
    shorts: &'static str,
    longs: &'static [&'static str],
    /// Other short options with a value.
    values: &'static str,
}

const PYTHON: Interpreter =
    Interpreter { language: Language::Python, shorts: "c", longs: &[], values: "mWXQ" };
const NODE: Interpreter =
    Interpreter { language: Language::JavaScript, shorts: "ep", longs: &["eval", "print"], values: "rC" };
const PERL: Interpreter = Interpreter { language: Language::Perl, shorts: "eE", longs: &[], values: "IMm" };
const RUBY: Interpreter = Interpreter { language: Language::Ruby, shorts: "e", longs: &[], values: "rICEF" };
const PHP: Interpreter =
    Interpreter { language: Language::Php, shorts: "rBRE", longs: &["run", "process-code"], values: "cdzfF" };
const OTHER: Interpreter = Interpreter {
    language: Language::Other,
    shorts: "eE",
    longs: &["eval", "execute", "print", "evaluate"],
    values: "l",
};

fn table(program: &str) -> Option<&'static Interpreter> {
    let name = program.trim_end_matches(|c: char| {
        c.is_ascii_digit() || matches!(c, '.' | '-' | 't' | 'w') && program.starts_with("python")
    });
    let name = if name.is_empty() { program } else { name };
    Some(match name {
        "python" | "pytho" | "pypy" | "ipython" | "micropython" | "jython" | "py" => &PYTHON,
        "node" | "nodejs" | "bun" | "deno" | "tsx" | "ts-node" | "qjs" => &NODE,
        "perl" => &PERL,
        "ruby" | "jruby" | "irb" => &RUBY,
        "php" | "hhvm" => &PHP,
        "lua" | "luajit" | "Rscript" | "R" | "julia" | "osascript" | "elixir" | "groovy" | "scala"
        | "ghc" | "clojure" | "racket" | "guile" | "sbcl" | "erl" | "octave" | "tclsh" | "expect"
        | "wish" | "swift" | "raku" | "emacs" => &OTHER,
        _ => return None,
    })
}

/// The language of an interpreter.
pub(super) fn interpreter(program: &str) -> Option<Language> {
    table(program).map(|interpreter| interpreter.language)
}

/// Program texts in the arguments, and whether a file or a module is run instead of the input.
fn texts(simple: &Simple, interpreter: &Interpreter) -> (Vec<Arg>, bool) {
    let mut found = Vec::new();
    let mut args = simple.args.iter();
    while let Some(arg) = args.next() {
        let text = arg.text.as_str();
        if let Some(long) = text.strip_prefix("--") {
            let (name, inline) =
                long.split_once('=').map_or((long, None), |(name, inline)| (name, Some(inline)));
            if interpreter.longs.contains(&name) {
                found.extend(inline.map_or_else(
                    || args.next().cloned(),
                    |inline| Some(Arg { text: inline.to_owned(), ..arg.clone() }),
                ));
            }
            continue;
        }
        let Some(bundle) = text.strip_prefix('-').filter(|bundle| !bundle.is_empty()) else {
            // `deno eval`, `bun run`.
            if text == "eval" && interpreter.language == Language::JavaScript {
                found.extend(args.next().cloned());
                continue;
            }
            return (found, text != "-" && !is_stdin(text));
        };
        let letters: Vec<char> = bundle.chars().collect();
        for (at, letter) in letters.iter().enumerate() {
            // `perl -i.bak`, `perl -0777`, `perl -F:`: the rest of the word belongs to the option.
            if interpreter.language == Language::Perl
                && matches!(letter, 'i' | 'F' | 'l' | '0' | 'x' | 'C' | 'd' | 'D')
                && *letter != 'l'
            {
                if *letter == 'i' && letters.get(at + 1).is_none_or(|next| *next != '.') {
                    continue;
                }
                if *letter == '0' {
                    continue;
                }
                break;
            }
            let inline: String = letters.get(at + 1..).unwrap_or_default().iter().collect();
            if interpreter.shorts.contains(*letter) {
                // `node -pe text`: the second letter takes it.
                if inline.chars().all(|c| interpreter.shorts.contains(c)) && !inline.is_empty() {
                    continue;
                }
                found.extend(if inline.is_empty() {
                    args.next().cloned()
                } else {
                    Some(Arg { text: inline, ..arg.clone() })
                });
                break;
            }
            if interpreter.values.contains(*letter) {
                let value = if inline.is_empty() {
                    args.next().map(|arg| arg.text.clone()).unwrap_or_default()
                } else {
                    inline
                };
                if *letter == 'm' && interpreter.language == Language::Python {
                    if matches!(value.as_str(), "timeit" | "code" | "pdb") {
                        found.extend(args.next_back().cloned());
                    }
                    return (found, true);
                }
                break;
            }
        }
        // What follows a text of python belongs to its program.
        if !found.is_empty() && interpreter.language == Language::Python {
            return (found, true);
        }
    }
    let has_text = !found.is_empty();
    (found, has_text)
}

/// Whether an interpreter takes its program from its input.
pub(super) fn reads_program_from_stdin(simple: &Simple) -> bool {
    table(&simple.program).is_some_and(|interpreter| {
        let shows = simple.has_arg(&["--version", "-V", "-v", "--help", "-h"]);
        !shows && !texts(simple, interpreter).1
    })
}

pub(super) fn judge(simple: &Simple, facts: &CommandFacts<'_>, report: &mut Report) {
    shells(simple, report);
    let Some(interpreter) = table(&simple.program) else { return };
    let may_read = |path: &str| !path.starts_with('~') && !facts.secret(path, simple.cwd.as_deref(), false);
    let (texts, _) = texts(simple, interpreter);
    for text in &texts {
        if !is_harmless(interpreter.language, &text.text, &may_read) || !text.is_certain() && text.unsure {
            report.ask(
                "code.inline",
                format!("runs a program text with {}", simple.program),
                shape_exact(simple),
            );
        }
    }
    if let Stdin::Text(code) = &simple.stdin
        && reads_program_from_stdin(simple)
        && !is_harmless(interpreter.language, code, &may_read)
    {
        report.ask(
            "code.inline",
            format!("runs a program text with {}", simple.program),
            format!("{} {code}", shape_exact(simple)),
        );
    }
    let loads_text = interpreter.language == Language::Perl
        && simple.args.iter().any(|arg| {
            let module = arg.text.strip_prefix("-M").or_else(|| arg.text.strip_prefix("-m"));
            module.is_some_and(|module| {
                !module.chars().all(|c| c.is_alphanumeric() || matches!(c, ':' | ',' | '=' | '_' | '-'))
            })
        });
    if loads_text {
        report.ask("code.inline", "runs a program text with perl", shape_exact(simple));
    }
    let perl_lines = interpreter.language == Language::Perl
        && simple.args.iter().any(|arg| arg.text.starts_with('-') && arg.text.contains(['n', 'p']));
    if perl_lines
        && simple
            .args
            .iter()
            .any(|arg| !arg.text.starts_with('-') && arg.text.trim().ends_with('|') && !texts.contains(arg))
    {
        report.ask("code.inline", "makes perl run a command in place of a file", shape_exact(simple));
    }
    let preloads = interpreter.language == Language::JavaScript
        && simple.args.iter().any(|arg| {
            ["--require", "-r", "--import", "--loader", "--experimental-loader"]
                .iter()
                .any(|option| arg.text == *option || arg.text.starts_with(&format!("{option}=data:")))
                && simple.args.iter().any(|arg| {
                    arg.text.starts_with("data:")
                        || arg.text.contains("=data:")
                        || arg.text.starts_with("/tmp/")
                })
        });
    if preloads {
        report.ask("code.inline", "makes node load other code first", shape_exact(simple));
    }
}

fn shells(simple: &Simple, report: &mut Report) {
    let foreign = FOREIGN_SHELLS.contains(&simple.program.as_str());
    if foreign || is_shell(&simple.program) {
        let called = invocation(simple);
        let text = called.text.as_ref().map(|arg| arg.text.as_str()).or(match &simple.stdin {
            Stdin::Text(text) if called.reads_stdin => Some(text.as_str()),
            _ => None,
        });
        if let Some(text) = text {
            if text.contains(UNKNOWN) || called.text.as_ref().is_some_and(|arg| arg.unsure || arg.splits) {
                report.ask(
                    "code.unknown",
                    "runs a text that is not known before the run",
                    shape_exact(simple),
                );
            } else if (foreign || matches!(simple.program.as_str(), "zsh" | "ksh" | "mksh" | "yash"))
                && !is_plain(text)
            {
                report.ask(
                    "code.inline",
                    format!("runs a text in {}, whose grammar is not known here", simple.program),
                    shape_exact(simple),
                );
            }
        } else if called.operands.first().is_some_and(|script| {
            script.is_blank() || script.splits || (script.has_unknown() && collected(simple))
        }) {
            report.ask("code.unknown", "runs a script that is not known before the run", shape_exact(simple));
        }
        let hides = simple.args.iter().any(|arg| {
            matches!(arg.text.as_str(), "--rcfile" | "--init-file")
                || arg.text.to_lowercase().starts_with("-enc")
                || arg.text.to_lowercase().starts_with("-file")
        });
        if hides {
            report.ask(
                "code.inline",
                "makes a shell load a file or a hidden text first",
                shape_exact(simple),
            );
        }
    }
    // A descriptor that something else has opened: `bash <&3`, `. /dev/fd/3`, `python3 /proc/self/fd/3`.
    let loads = is_shell(&simple.program) || simple.is(&["source", "."]) || table(&simple.program).is_some();
    let operand = simple.args.iter().find(|arg| !arg.text.starts_with(['-', '+']));
    let script = match (&simple.stdin, operand) {
        (_, Some(arg)) => Some(arg.text.as_str()),
        (Stdin::File(file), None) => Some(file.text.as_str()),
        _ => None,
    };
    if loads
        && !simple.args.iter().any(|arg| arg.process)
        && script.and_then(opens_descriptor).is_some_and(|number| number != "0")
    {
        report.ask(
            "code.unknown",
            "runs a text that another command left in a descriptor",
            shape_exact(simple),
        );
    }
    // Editors and filters run what their script says, and it comes from the input.
    let scripted =
        simple.is(&["awk", "gawk", "mawk", "nawk", "sed", "gsed", "vim", "vi", "nvim", "ex", "gdb", "bc"]);
    let from_input = simple.args.iter().zip(simple.args.iter().skip(1)).any(|(option, file)| {
        matches!(option.text.as_str(), "-f" | "--file" | "-S" | "-s" | "-x" | "--source")
            && names_input(&file.text)
    }) || simple.args.iter().any(|arg| {
        ["-f", "--file=", "-S"].iter().any(|option| arg.text.strip_prefix(option).is_some_and(names_input))
    });
    if scripted && from_input {
        report.ask("code.inline", "runs a script from its input", shape_exact(simple));
    }
    if simple.is(&["capsh"]) {
        report.ask("code.unknown", "starts a shell with other rights", shape_exact(simple));
    }
    let carries_text = simple.is(&["ssh", "su", "watch", "script", "runuser", "flock"]);
    if carries_text
        && simple.args.iter().skip(1).any(|arg| arg.text.contains(UNKNOWN) && arg.text.contains(' '))
    {
        report.ask("code.unknown", "runs a text that is not known before the run", shape_exact(simple));
    }
}

/// Whether a file's name means the input.
fn names_input(file: &str) -> bool {
    file == "-" || is_stdin(file)
}

/// Whether another program chose the arguments.
fn collected(simple: &Simple) -> bool {
    simple
        .via
        .last()
        .is_some_and(|outer| matches!(outer.as_str(), "find" | "xargs" | "fd" | "fdfind" | "parallel"))
}

/// Words without any sign: all shells read them alike.
fn is_plain(text: &str) -> bool {
    text.chars().all(|c| {
        c.is_ascii_alphanumeric() || matches!(c, ' ' | '-' | '_' | '.' | '/' | ':' | ',' | '@' | '+')
    })
}
