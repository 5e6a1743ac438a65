//! Expansion: from words as written to the arguments that a program gets.

use super::globs;
use super::scope::{MAYBE, PARENT, Scope, UNKNOWN, Variable};
use super::syntax::{Parameter, Piece, Word};
use super::walk::Walker;

/// Words that one pair of braces may become; more are not a person's.
const MAX_WORDS: usize = 512;
/// Characters of one value; doubling would fill the memory.
const MAX_VALUE: usize = 100_000;

/// One argument, as far as it is known before the run.
#[expect(
    clippy::struct_excessive_bools,
    reason = "independent facts about one text, not the states of a machine"
)]
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(super) struct Arg {
    /// Parts that are not known are [`UNKNOWN`], the parent's process id is [`PARENT`].
    pub(super) text: String,
    /// A pattern that the shell replaces by file names.
    pub(super) glob: bool,
    /// May become several arguments, or none.
    pub(super) splits: bool,
    /// The text may be another.
    pub(super) unsure: bool,
    /// `<(…)` or `>(…)`: a pipe.
    pub(super) process: bool,
}

impl Arg {
    pub(super) fn known(text: &str) -> Self {
        Self { text: text.to_owned(), ..Self::default() }
    }

    /// The text, when nothing about it is open.
    pub(super) fn literal(&self) -> Option<&str> {
        self.is_certain().then_some(self.text.as_str())
    }

    pub(super) fn is_certain(&self) -> bool {
        !self.glob && !self.unsure && !self.process && !self.has_unknown()
    }

    pub(super) fn has_unknown(&self) -> bool {
        self.text.contains([UNKNOWN, PARENT])
    }

    /// Nothing at all is known of it.
    pub(super) fn is_blank(&self) -> bool {
        !self.text.is_empty() && self.text.chars().all(|c| c == UNKNOWN)
    }

    /// For people: what is not known is an ellipsis.
    pub(super) fn shown(&self) -> String {
        self.text.replace(UNKNOWN, "…").replace(PARENT, "$PPID")
    }
}

/// A piece after substitution and before splitting.
#[derive(Debug, Clone)]
enum Unit {
    Bare(char),
    /// Quoted: stays one piece.
    Fixed(String),
    /// A value that is split.
    Value(String),
    /// `"$@"`: several words.
    Fields(Vec<String>),
    Pattern,
    Process,
}

impl Walker<'_> {
    /// The arguments that a word becomes.
    pub(super) fn expand(&mut self, word: &Word, scope: &mut Scope) -> Vec<Arg> {
        // Most words are plain.
        if let [Piece::Bare(text)] = word.pieces.as_slice()
            && !text.contains(['{', '~', '*', '?', '[', UNKNOWN])
        {
            return vec![Arg::known(text)];
        }
        let units = self.units(&word.pieces, scope);
        let mut args = Vec::new();
        for units in braces(units) {
            self.fields(units, scope, &mut args);
        }
        args
    }

    /// The one text that a word becomes where nothing is split: assignments, redirects, `case`.
    pub(super) fn expand_one(&mut self, word: &Word, scope: &mut Scope) -> Arg {
        let units = self.units(&word.pieces, scope);
        let mut arg = Arg::default();
        let (mut text, units) = self.without_tilde(units);
        for unit in units {
            match unit {
                Unit::Bare(c) => {
                    arg.glob |= matches!(c, '*' | '?' | '[');
                    text.push(c);
                }
                Unit::Fixed(value) | Unit::Value(value) => text.push_str(&value),
                Unit::Fields(values) => text.push_str(&values.join(" ")),
                Unit::Pattern => {
                    arg.glob = true;
                    text.push('*');
                }
                Unit::Process => arg.process = true,
            }
        }
        finish(&mut arg, text);
        arg
    }

    /// Runs what is expanded in pieces of which only that matters.
    pub(super) fn run_expansions(&mut self, pieces: &[Piece], scope: &mut Scope) {
        let _ = self.units(pieces, scope);
    }

    /// Text of pieces that are not split, markers included.
    fn text_of(&mut self, pieces: &[Piece], scope: &mut Scope) -> String {
        let mut text = String::new();
        for unit in self.units(pieces, scope) {
            match unit {
                Unit::Bare(c) => text.push(c),
                Unit::Fixed(value) | Unit::Value(value) => text.push_str(&value),
                Unit::Fields(values) => text.push_str(&values.join(" ")),
                Unit::Pattern | Unit::Process => text.push(UNKNOWN),
            }
        }
        text
    }

    fn units(&mut self, pieces: &[Piece], scope: &mut Scope) -> Vec<Unit> {
        let mut units = Vec::new();
        for piece in pieces {
            match piece {
                Piece::Bare(text) => units.extend(text.chars().map(Unit::Bare)),
                Piece::Quoted(text) => units.push(Unit::Fixed(text.clone())),
                Piece::Parameter { parameter, quoted } => {
                    units.push(match self.parameter(parameter, scope) {
                        Variable::Many(values) if parameter.name == "*" || is_star(parameter) => {
                            let joined = match scope.separators() {
                                Some(separators) => values.join(separators.get(..1).unwrap_or_default()),
                                None => UNKNOWN.to_string(),
                            };
                            if *quoted { Unit::Fixed(joined) } else { Unit::Value(joined) }
                        }
                        Variable::Many(values) => Unit::Fields(values),
                        Variable::One(mut value) => {
                            if value.len() > MAX_VALUE {
                                value = UNKNOWN.to_string();
                            }
                            if *quoted { Unit::Fixed(value) } else { Unit::Value(value) }
                        }
                    });
                }
                Piece::Command { script, quoted } => {
                    let mut inner = scope.clone();
                    let output = self.substituted(script, &mut inner);
                    let value = output
                        .map_or_else(|| UNKNOWN.to_string(), |text| text.trim_end_matches('\n').to_owned());
                    units.push(if *quoted { Unit::Fixed(value) } else { Unit::Value(value) });
                }
                Piece::Arithmetic(inner) => {
                    self.run_expansions(inner, scope);
                    self.arithmetic(inner, scope);
                    units.push(Unit::Fixed(UNKNOWN.to_string()));
                }
                Piece::Process { script, reads } => {
                    let mut inner = scope.clone();
                    self.process_substitution(script, *reads, &mut inner);
                    units.push(Unit::Process);
                }
                Piece::Pattern(inner) => {
                    self.run_expansions(inner, scope);
                    units.push(Unit::Pattern);
                }
            }
        }
        units
    }

    /// The home in place of a leading `~`; empty when none leads.
    fn tilde(&self, units: &[Unit]) -> String {
        if !matches!(units.first(), Some(Unit::Bare('~'))) {
            return String::new();
        }
        let letters = units.iter().skip(1).map_while(|unit| match unit {
            Unit::Bare(c) if !matches!(c, '/' | ':') => Some(*c),
            _ => None,
        });
        let user: String = letters.collect();
        match user.as_str() {
            "" => self.home(),
            "root" => "/root".to_owned(),
            user if self.facts.user_home.file_name().is_some_and(|name| name == user) => self.home(),
            // `~+` is the working directory, `~name` somebody's home.
            _ => UNKNOWN.to_string(),
        }
    }

    /// The home that a leading tilde means, and what follows it.
    fn without_tilde(&self, mut units: Vec<Unit>) -> (String, Vec<Unit>) {
        let home = self.tilde(&units);
        if !home.is_empty() {
            // The name behind the tilde belongs to it.
            let rest =
                units.iter().position(|unit| !matches!(unit, Unit::Bare(c) if !matches!(c, '/' | ':')));
            units.drain(..rest.unwrap_or(units.len()));
        }
        (home, units)
    }

    /// Splits one word into fields.
    fn fields(&self, units: Vec<Unit>, scope: &Scope, args: &mut Vec<Arg>) {
        let mut current: Option<(Arg, String)> = None;
        let (home, units) = self.without_tilde(units);
        if !home.is_empty() {
            current = Some((Arg::default(), home));
        }
        for unit in units {
            match unit {
                Unit::Bare(c) => {
                    let (arg, text) = current.get_or_insert_default();
                    arg.glob |= matches!(c, '*' | '?' | '[');
                    text.push(c);
                }
                Unit::Fixed(value) => current.get_or_insert_default().1.push_str(&value),
                Unit::Pattern => {
                    let (arg, text) = current.get_or_insert_default();
                    arg.glob = true;
                    text.push('*');
                }
                Unit::Process => current.get_or_insert_default().0.process = true,
                Unit::Fields(values) => {
                    for (index, value) in values.iter().enumerate() {
                        if index > 0 {
                            flush(&mut current, args);
                        }
                        current.get_or_insert_default().1.push_str(value);
                    }
                }
                Unit::Value(value) => {
                    let open = value.contains([UNKNOWN, MAYBE]);
                    let Some(separators) = scope.separators() else {
                        let (arg, text) = current.get_or_insert_default();
                        arg.splits = true;
                        text.push(UNKNOWN);
                        continue;
                    };
                    let mut rest = value.as_str();
                    while !rest.is_empty() {
                        let end = rest.find(|c| separators.contains(c)).unwrap_or(rest.len());
                        let (part, behind) = rest.split_at_checked(end).unwrap_or((rest, ""));
                        if !part.is_empty() {
                            let (arg, text) = current.get_or_insert_default();
                            arg.glob |= part.contains(['*', '?', '[']);
                            arg.splits |= open;
                            text.push_str(part);
                        }
                        let next = behind.trim_start_matches(|c| separators.contains(c));
                        if next.len() < behind.len() {
                            flush(&mut current, args);
                        }
                        rest = next;
                    }
                }
            }
        }
        flush(&mut current, args);
    }

    fn parameter(&mut self, parameter: &Parameter, scope: &mut Scope) -> Variable {
        if let Some(index) = &parameter.index {
            self.run_expansions(index, scope);
        }
        let operand_text = |walker: &mut Self, scope: &mut Scope| walker.text_of(&parameter.operand, scope);
        let unknown = || Variable::One(UNKNOWN.to_string());
        let base = self.base(parameter, scope);
        if parameter.length {
            return unknown();
        }
        let operand = operand_text(self, scope);
        if parameter.operator == "@" && operand == "P" {
            // The value is expanded once more, and what it substitutes runs.
            let what =
                format!("expands the value of {} as a prompt, which runs what it contains", parameter.name);
            self.report.ask("syntax.prompt", what, format!("${{{}@P}}", parameter.name));
        }
        let value = match base {
            None if matches!(parameter.operator.as_str(), ":-" | "-" | ":=" | "=") => {
                let value = Variable::One(format!("{MAYBE}{operand}"));
                if parameter.operator.ends_with('=') {
                    scope.set(&parameter.name, value.clone());
                }
                return value;
            }
            None if matches!(parameter.operator.as_str(), ":+" | "+") => {
                return Variable::One(format!("{MAYBE}{operand}"));
            }
            None => return unknown(),
            Some(Variable::Many(values)) if parameter.operator.is_empty() => return Variable::Many(values),
            Some(Variable::Many(values)) if parameter.operator == ":" => {
                let slice = parameter.index.is_some().then(|| slice(&values, &operand)).flatten();
                return slice.map_or_else(unknown, Variable::Many);
            }
            Some(Variable::Many(values)) => {
                // Each element on its own.
                let changed: Option<Vec<String>> = values
                    .iter()
                    .map(|value| match changed(value, &parameter.operator, operand.clone()) {
                        Variable::One(text) if !text.contains([UNKNOWN, MAYBE]) => Some(text),
                        _ => None,
                    })
                    .collect();
                return changed.map_or_else(unknown, Variable::Many);
            }
            Some(Variable::One(value)) => value,
        };
        changed(&value, &parameter.operator, operand)
    }

    /// The value before the operator; `None` for a variable that this text does not set.
    fn base(&mut self, parameter: &Parameter, scope: &mut Scope) -> Option<Variable> {
        let one = |text: &str| Some(Variable::One(text.to_owned()));
        let mut name = parameter.name.clone();
        if parameter.indirect {
            match scope.get(&name) {
                Some(Variable::One(other)) if !other.contains([UNKNOWN, MAYBE]) => name.clone_from(other),
                _ => return one(&UNKNOWN.to_string()),
            }
        }
        match name.as_str() {
            "@" | "*" => scope.positional.clone().map(Variable::Many),
            "PPID" => one(&PARENT.to_string()),
            // The job that was started last.
            "!" => one("%%"),
            "0" => scope.get("0").cloned().or_else(|| one("bash")),
            "#" | "?" | "$" | "-" | "RANDOM" | "SECONDS" | "LINENO" | "BASHPID" | "EPOCHSECONDS" => {
                one(&UNKNOWN.to_string())
            }
            digits if digits.chars().all(|c| c.is_ascii_digit()) => {
                let position: usize = digits.parse().ok()?;
                let values = scope.positional.as_ref()?;
                one(values.get(position.checked_sub(1)?).map_or("", String::as_str))
            }
            name => {
                let value = scope.get(name).cloned().or_else(|| match name {
                    "HOME" => Some(Variable::One(self.home())),
                    "USER" | "LOGNAME" => {
                        let name = self.facts.user_home.file_name()?;
                        Some(Variable::One(name.to_string_lossy().into_owned()))
                    }
                    "PWD" => scope.cwd.clone().map(Variable::One),
                    "IFS" => Some(Variable::One(" \t\n".to_owned())),
                    "HERMES_HOME" => Some(Variable::One(self.hermes_home())),
                    _ => None,
                })?;
                let Some(index) = &parameter.index else {
                    return Some(match value {
                        Variable::Many(values) => {
                            Variable::One(values.into_iter().next().unwrap_or_default())
                        }
                        one @ Variable::One(_) => one,
                    });
                };
                let index = match index.as_slice() {
                    [Piece::Bare(text)] => text.clone(),
                    _ => return one(&UNKNOWN.to_string()),
                };
                let values = match value {
                    Variable::Many(values) => values,
                    Variable::One(value) if value.contains([UNKNOWN, MAYBE]) => {
                        return one(&UNKNOWN.to_string());
                    }
                    Variable::One(value) => vec![value],
                };
                if matches!(index.as_str(), "@" | "*") {
                    return Some(Variable::Many(values));
                }
                match index.parse::<usize>() {
                    Ok(position) => one(values.get(position).map_or("", String::as_str)),
                    Err(_) => one(&UNKNOWN.to_string()),
                }
            }
        }
    }
}

fn is_star(parameter: &Parameter) -> bool {
    matches!(parameter.index.as_deref(), Some([Piece::Bare(text)]) if text == "*")
}

fn flush(current: &mut Option<(Arg, String)>, args: &mut Vec<Arg>) {
    if let Some((mut arg, text)) = current.take() {
        finish(&mut arg, text);
        args.push(arg);
    }
}

fn finish(arg: &mut Arg, text: String) {
    // A bracket that is never closed is itself.
    arg.glob &= text.contains(['*', '?', ']']);
    arg.unsure = text.contains(MAYBE);
    arg.text = if arg.unsure { text.replace(MAYBE, "") } else { text };
    if arg.process {
        arg.text.push_str("/dev/fd/process");
    }
}

/// A value after an operator such as `%` or `:-`.
fn changed(value: &str, operator: &str, operand: String) -> Variable {
    let open = value.contains([UNKNOWN, MAYBE]);
    let result = match operator {
        "" | ":?" | "?" => Some(value.to_owned()),
        ":-" | ":=" if value.is_empty() => Some(operand),
        ":-" | "-" | ":=" | "=" => {
            Some(if open && !operand.is_empty() { format!("{MAYBE}{value}") } else { value.to_owned() })
        }
        ":+" | "+" => Some(if value.is_empty() { String::new() } else { operand }),
        ":" => substring(value, &operand),
        "%" | "%%" | "#" | "##" => Some(globs::trim(value, &operand, operator)),
        "/" | "//" | "/#" | "/%" => replaced(value, &operand, operator),
        "^^" if operand.is_empty() => Some(value.to_uppercase()),
        ",," if operand.is_empty() => Some(value.to_lowercase()),
        "^" | "," if operand.is_empty() => {
            let mut chars = value.chars();
            let first = chars
                .next()
                .map(|c| if operator == "^" { c.to_ascii_uppercase() } else { c.to_ascii_lowercase() });
            Some(first.into_iter().chain(chars).collect())
        }
        _ => None,
    };
    match result {
        Some(text) if !open || text.contains([UNKNOWN, MAYBE]) => Variable::One(text),
        _ => Variable::One(UNKNOWN.to_string()),
    }
}

/// `${array[@]:1:2}`.
fn slice(values: &[String], operand: &str) -> Option<Vec<String>> {
    let mut parts = operand.splitn(2, ':').map(|part| part.trim().parse::<usize>());
    let start = parts.next()?.ok()?;
    let count = match parts.next() {
        None => usize::MAX,
        Some(count) => count.ok()?,
    };
    Some(values.iter().skip(start).take(count).cloned().collect())
}

fn substring(value: &str, operand: &str) -> Option<String> {
    let mut parts = operand.splitn(2, ':').map(|part| part.trim().parse::<usize>());
    let start = parts.next()?.ok()?;
    let count = match parts.next() {
        None => usize::MAX,
        Some(count) => count.ok()?,
    };
    Some(value.chars().skip(start).take(count).collect())
}

fn replaced(value: &str, operand: &str, operator: &str) -> Option<String> {
    let (from, to) = operand.split_once('/').unwrap_or((operand, ""));
    if from.is_empty() || from.contains(['*', '?', '[', UNKNOWN, MAYBE, '\\']) {
        return None;
    }
    Some(match operator {
        "//" => value.replace(from, to),
        "/#" => value.strip_prefix(from).map_or_else(|| value.to_owned(), |rest| format!("{to}{rest}")),
        "/%" => value.strip_suffix(from).map_or_else(|| value.to_owned(), |rest| format!("{rest}{to}")),
        _ => value.replacen(from, to, 1),
    })
}

/// Replaces `{a,b}` and `{1..3}` by their alternatives.
fn braces(units: Vec<Unit>) -> Vec<Vec<Unit>> {
    let mut done = Vec::new();
    let mut open = vec![units];
    while let Some(units) = open.pop() {
        let room = done.len() + open.len() < MAX_WORDS;
        match room.then(|| first_braces(&units)).flatten() {
            None => done.push(units),
            Some((start, end, parts)) => {
                for part in parts.into_iter().rev() {
                    let mut word: Vec<Unit> = units.get(..start).unwrap_or_default().to_vec();
                    word.extend(part);
                    word.extend_from_slice(units.get(end..).unwrap_or_default());
                    open.push(word);
                }
            }
        }
    }
    done
}

/// The first pair of braces that means alternatives: where it begins, where it ends, and what they are.
fn first_braces(units: &[Unit]) -> Option<(usize, usize, Vec<Vec<Unit>>)> {
    let starts =
        units.iter().enumerate().filter(|(_, unit)| matches!(unit, Unit::Bare('{'))).map(|(at, _)| at);
    for start in starts {
        let mut depth = 0_usize;
        let mut parts: Vec<Vec<Unit>> = vec![Vec::new()];
        let mut end = None;
        for (at, unit) in units.iter().enumerate().skip(start) {
            match unit {
                Unit::Bare('{') => depth += 1,
                Unit::Bare('}') => depth -= 1,
                _ => {}
            }
            if depth == 0 {
                end = Some(at + 1);
                break;
            }
            match unit {
                Unit::Bare(',') if depth == 1 => parts.push(Vec::new()),
                unit if at > start => parts.last_mut()?.push(unit.clone()),
                _ => {}
            }
        }
        let Some(end) = end else { continue };
        if parts.len() > 1 {
            return Some((start, end, parts));
        }
        if let Some(range) = range(parts.first()?) {
            return Some((start, end, range));
        }
    }
    None
}

/// `1..9` and `a..z`.
fn range(units: &[Unit]) -> Option<Vec<Vec<Unit>>> {
    let text: String = units.iter().map(|unit| if let Unit::Bare(c) = unit { *c } else { ' ' }).collect();
    let (from, to) = text.split_once("..")?;
    let (to, _step) = to.split_once("..").unwrap_or((to, ""));
    let words: Vec<String> = if let (Ok(from), Ok(to)) = (from.parse::<i64>(), to.parse::<i64>()) {
        let (low, high) = (from.min(to), from.max(to));
        (low..=high).take(64).map(|number| number.to_string()).collect()
    } else {
        let (mut from, mut to) = (from.chars(), to.chars());
        let (Some(low), None, Some(high), None) = (from.next(), from.next(), to.next(), to.next()) else {
            return None;
        };
        (low.min(high)..=low.max(high)).take(64).map(String::from).collect()
    };
    Some(words.into_iter().map(|word| word.chars().map(Unit::Bare).collect()).collect())
}
