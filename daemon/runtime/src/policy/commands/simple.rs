//! One command as its program will get it, and how its options are read.

use super::expand::Arg;
use super::scope::UNKNOWN;
use super::syntax::Operator;

/// A program with its arguments.
#[derive(Debug, Clone, Default)]
pub(super) struct Simple {
    /// Without its folder; may contain [`UNKNOWN`]. Empty when only redirects or assignments stand there.
    pub(super) program: String,
    /// The program as it is called.
    pub(super) called: Arg,
    pub(super) args: Vec<Arg>,
    pub(super) assigns: Vec<(String, Arg)>,
    pub(super) redirects: Vec<Redirection>,
    pub(super) stdin: Stdin,
    /// Absolute; `None` when not known.
    pub(super) cwd: Option<String>,
    /// Ended by `&`.
    pub(super) background: bool,
    /// Inside `( … )`.
    pub(super) subshell: bool,
    /// Put in the background by a subshell.
    pub(super) orphaned: bool,
    /// What the text hands over by the environment, as `NAME=value`.
    pub(super) environment: Vec<String>,
    /// The commands whose output it reads.
    pub(super) fed_by: String,
    /// The programs that start this one, outermost first.
    pub(super) via: Vec<String>,
}

/// A redirect with its target.
#[derive(Debug, Clone)]
pub(super) struct Redirection {
    /// The number before the sign.
    pub(super) descriptor: Option<u32>,
    pub(super) operator: Operator,
    pub(super) target: Arg,
}

/// What a command reads.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(super) enum Stdin {
    #[default]
    Inherited,
    /// A heredoc, a here-string, or the known output of what stands before the pipe; parts may be [`UNKNOWN`].
    Text(String),
    /// The output of these programs.
    Pipe(Vec<String>),
    File(Arg),
}

impl Simple {
    /// The same surroundings with another program.
    pub(super) fn running(&self, args: &[Arg]) -> Self {
        let mut inner = Self {
            stdin: self.stdin.clone(),
            cwd: self.cwd.clone(),
            background: self.background,
            subshell: self.subshell,
            orphaned: self.orphaned,
            environment: self.environment.clone(),
            fed_by: self.fed_by.clone(),
            via: self.via.clone(),
            ..Self::default()
        };
        inner.environment.extend(self.assigns.iter().map(|(name, value)| format!("{name}={}", value.text)));
        if self.is(&["env", "sudo", "doas"]) {
            let words =
                self.args.iter().take_while(|arg| arg.text.starts_with('-') || arg.text.contains('='));
            inner.environment.extend(words.filter(|arg| arg.text.contains('=')).map(|arg| arg.text.clone()));
        }
        inner.via.push(self.program.clone());
        inner.set_words(args);
        inner
    }

    pub(super) fn set_words(&mut self, words: &[Arg]) {
        let Some((called, args)) = words.split_first() else { return };
        let name = called.text.trim_end_matches('/').rsplit('/').next().unwrap_or_default();
        let name = name.strip_suffix(".exe").unwrap_or(name);
        self.program = if cfg!(target_os = "macos") { name.to_lowercase() } else { name.to_owned() };
        self.called = called.clone();
        self.args = args.to_vec();
    }

    pub(super) fn is(&self, programs: &[&str]) -> bool {
        programs.contains(&self.program.as_str())
    }

    /// The text of an argument; empty when there is none.
    pub(super) fn arg(&self, at: usize) -> &str {
        self.args.get(at).map_or("", |arg| arg.text.as_str())
    }

    /// Whether an argument is exactly one of these.
    pub(super) fn has_arg(&self, wanted: &[&str]) -> bool {
        self.args.iter().any(|arg| wanted.contains(&arg.text.as_str()))
    }

    pub(super) fn options(&self, short_values: &str, long_values: &[&str]) -> Options {
        Options::read(&self.args, short_values, long_values)
    }

    /// The whole command, for globs and people.
    pub(super) fn line(&self) -> String {
        let mut line = self.called.shown();
        for arg in &self.args {
            line.push(' ');
            line.push_str(&arg.shown());
        }
        line
    }

    /// The whole command with its markers.
    pub(super) fn raw_line(&self) -> String {
        let mut line = self.called.text.clone();
        for arg in &self.args {
            line.push(' ');
            line.push_str(&arg.text);
        }
        line
    }

    /// The same with the program's name in place of its path.
    pub(super) fn bare_line(&self) -> String {
        let mut line = self.program.replace(UNKNOWN, "…");
        for arg in &self.args {
            line.push(' ');
            line.push_str(&arg.shown());
        }
        line
    }
}

/// The option that `name` is the beginning of.
fn abbreviated<'a>(name: &str, longs: &[&'a str]) -> Option<&'a str> {
    longs.iter().copied().find(|long| name.len() > 1 && *long != name && long.starts_with(name))
}

/// Arguments, sorted into options and operands.
#[derive(Debug, Clone, Default)]
pub(super) struct Options {
    pub(super) shorts: Vec<char>,
    /// Without dashes.
    pub(super) longs: Vec<String>,
    /// Values by option name.
    pub(super) values: Vec<(String, Arg)>,
    pub(super) operands: Vec<Arg>,
    /// Some argument may turn out to be an option.
    pub(super) open: bool,
}

impl Options {
    /// Reads as `getopt_long` does: bundles, `--name=value`, `--`. `short_values` and `long_values` name the options
    /// that take a value.
    pub(super) fn read(args: &[Arg], short_values: &str, long_values: &[&str]) -> Self {
        let mut options = Self::default();
        let mut rest = args.iter();
        while let Some(arg) = rest.next() {
            let text = arg.text.as_str();
            if text == "--" {
                options.operands.extend(rest.cloned());
                break;
            }
            if arg.splits
                || text.starts_with(UNKNOWN)
                || text.strip_prefix('-').is_some_and(|t| t.contains(UNKNOWN))
            {
                options.open = true;
            }
            if let Some(long) = text.strip_prefix("--") {
                let (name, value) =
                    long.split_once('=').map_or((long, None), |(name, value)| (name, Some(value)));
                options.longs.push(name.to_owned());
                if let Some(value) = value {
                    options.values.push((name.to_owned(), Arg { text: value.to_owned(), ..arg.clone() }));
                    if let Some(whole) = abbreviated(name, long_values) {
                        options
                            .values
                            .push((whole.to_owned(), Arg { text: value.to_owned(), ..arg.clone() }));
                    }
                } else if long_values.contains(&name)
                    && let Some(value) = rest.next()
                {
                    options.values.push((name.to_owned(), value.clone()));
                } else if let Some(whole) = abbreviated(name, long_values)
                    && let Some(value) = rest.clone().next()
                {
                    // It may as well be another option without a value: what follows is an operand too.
                    options.values.push((whole.to_owned(), value.clone()));
                }
            } else if let Some(bundle) = text.strip_prefix('-').filter(|bundle| !bundle.is_empty()) {
                let mut chars = bundle.chars();
                while let Some(short) = chars.next() {
                    options.shorts.push(short);
                    if short_values.contains(short) {
                        let inline = chars.as_str();
                        let value = if inline.is_empty() {
                            rest.next().cloned()
                        } else {
                            Some(Arg { text: inline.to_owned(), ..arg.clone() })
                        };
                        options.values.extend(value.map(|value| (short.to_string(), value)));
                        break;
                    }
                }
            } else {
                options.operands.push(arg.clone());
            }
        }
        options
    }

    /// Whether an option was given: one of the letters, or the long name or a beginning of it.
    pub(super) fn has(&self, shorts: &str, long: &str) -> bool {
        self.shorts.iter().any(|short| shorts.contains(*short)) || self.has_long(long)
    }

    pub(super) fn has_long(&self, long: &str) -> bool {
        !long.is_empty()
            && self.longs.iter().any(|given| !given.is_empty() && long.starts_with(given.as_str()))
    }

    pub(super) fn value(&self, names: &[&str]) -> Option<&Arg> {
        self.values.iter().find(|(name, _)| names.contains(&name.as_str())).map(|(_, value)| value)
    }

    pub(super) fn operand(&self, at: usize) -> &str {
        self.operands.get(at).map_or("", |arg| arg.text.as_str())
    }

    /// Options in one order, for a shape.
    pub(super) fn sorted(&self) -> String {
        let mut names: Vec<String> = self.shorts.iter().map(|short| format!("-{short}")).collect();
        names.extend(self.longs.iter().map(|long| format!("--{long}")));
        names.sort();
        names.dedup();
        names.join(" ")
    }
}
