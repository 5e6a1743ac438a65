//! What is known at a point of a text: variables, functions, aliases, the working directory.

use std::collections::{BTreeMap, BTreeSet};
use std::rc::Rc;

use super::syntax::Command;

/// Stands in a text for something that only the run will know.
pub(super) const UNKNOWN: char = '\0';
/// Stands for the process that started the shell: the daemon.
pub(super) const PARENT: char = '\u{1}';
/// Stands before a value that may be another: a default, where the variable may be set.
pub(super) const MAYBE: char = '\u{2}';

/// What a variable holds.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum Variable {
    /// Parts that are not known are [`UNKNOWN`].
    One(String),
    Many(Vec<String>),
}

impl Variable {
    fn unknown() -> Self {
        Self::One(UNKNOWN.to_string())
    }
}

/// What is known at one point.
#[derive(Debug, Clone)]
pub(super) struct Scope {
    variables: BTreeMap<String, Variable>,
    /// Variables that change what is assigned to them (`declare -l`, `-n`): never known.
    odd: BTreeSet<String>,
    /// Names that the function which runs has for itself.
    pub(super) locals: BTreeSet<String>,
    /// What this text hands to the programs that it starts, as `NAME=value`.
    pub(super) exported: BTreeSet<String>,
    pub(super) functions: BTreeMap<String, Rc<Command>>,
    pub(super) aliases: BTreeMap<String, String>,
    /// Absolute; `None` after a `cd` to somewhere unknown.
    pub(super) cwd: Option<String>,
    /// `$1` …; `None` when not known.
    pub(super) positional: Option<Vec<String>>,
}

impl Scope {
    pub(super) fn new(cwd: &str, variables: BTreeMap<String, Variable>) -> Self {
        Self {
            variables,
            odd: BTreeSet::new(),
            exported: BTreeSet::new(),
            locals: BTreeSet::new(),
            functions: BTreeMap::new(),
            aliases: BTreeMap::new(),
            cwd: Some(cwd.to_owned()),
            positional: None,
        }
    }

    pub(super) fn get(&self, name: &str) -> Option<&Variable> {
        self.variables.get(name)
    }

    pub(super) fn set(&mut self, name: &str, value: Variable) {
        let value = if self.odd.contains(name) { Variable::unknown() } else { value };
        self.variables.insert(name.to_owned(), value);
    }

    /// From here on the variable's value is not known, whatever is assigned to it.
    pub(super) fn make_odd(&mut self, name: &str) {
        self.odd.insert(name.to_owned());
        self.variables.insert(name.to_owned(), Variable::unknown());
    }

    /// The characters at which unquoted values are split; `None` when not known.
    pub(super) fn separators(&self) -> Option<&str> {
        match self.variables.get("IFS") {
            None => Some(" \t\n"),
            Some(Variable::One(text)) if !text.contains([UNKNOWN, MAYBE]) => Some(text),
            Some(_) => None,
        }
    }

    /// Leaves a function that began with `before`: its own variables are gone, and what they hid is back.
    pub(super) fn leave(&mut self, before: &Self) {
        for name in std::mem::replace(&mut self.locals, before.locals.clone()) {
            match (before.variables.get(&name), self.variables.get(&name)) {
                (Some(old), Some(new)) if old == new => {}
                (None, None) => {}
                _ => {
                    self.variables.insert(name, Variable::unknown());
                }
            }
        }
    }

    /// What is known after a part that may or may not have run, `self` being the state before it.
    pub(super) fn merge(&mut self, after: Self) {
        for (name, value) in after.variables {
            match self.variables.get_mut(&name) {
                Some(before) if *before == value => {}
                Some(before) => *before = Variable::unknown(),
                None => {
                    self.variables.insert(name, Variable::unknown());
                }
            }
        }
        for (name, body) in after.functions {
            self.functions.insert(name, body);
        }
        self.aliases.extend(after.aliases);
        self.odd.extend(after.odd);
        self.exported.extend(after.exported);
        if self.cwd != after.cwd {
            self.cwd = None;
        }
        if self.positional != after.positional {
            self.positional = None;
        }
    }

    /// Whether a second run of a loop's body would know other things than the first.
    pub(super) fn same_values(&self, other: &Self) -> bool {
        self.variables == other.variables && self.cwd == other.cwd && self.positional == other.positional
    }
}
