//! The shell's grammar as data: what a text says, before anything is expanded.
//!
//! The reader is our own, because a verdict must rest on exactly what bash would read: heredocs, nested
//! substitutions and `case` patterns included. `tree-sitter-bash` reads the same text a second time
//! ([`second`]); a command that it sees and we do not is asked about.

mod commands;
mod compound;
mod cursor;
mod parameters;
mod second;
mod words;

use std::cell::OnceCell;
use std::rc::Rc;

pub(super) use second::disagrees;

/// Groups, substitutions and quotes inside one another; people write three.
const MAX_DEPTH: usize = 48;

/// Why a text cannot be read.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Unreadable {
    /// Something was opened and never closed.
    Open(&'static str),
    /// A token where bash allows none, or one that we do not know.
    Unexpected(char),
    /// Nested deeper than [`MAX_DEPTH`].
    Deep,
}

/// A sequence of commands.
#[derive(Debug, Clone, Default)]
pub(super) struct Script {
    pub(super) items: Vec<Item>,
}

/// Pipelines joined by `&&` and `||`, ended by `;`, `&` or a line's end.
#[derive(Debug, Clone)]
pub(super) struct Item {
    pub(super) chain: Vec<Pipeline>,
    pub(super) background: bool,
}

/// Commands joined by `|`.
#[derive(Debug, Clone)]
pub(super) struct Pipeline {
    pub(super) commands: Vec<Command>,
}

/// One command with its redirects.
#[derive(Debug, Clone)]
pub(super) struct Command {
    pub(super) kind: Kind,
    pub(super) redirects: Vec<Redirect>,
}

/// What kind of command.
#[derive(Debug, Clone)]
pub(super) enum Kind {
    Simple {
        assigns: Vec<Assign>,
        words: Vec<Word>,
    },
    Group {
        body: Script,
        subshell: bool,
    },
    If {
        arms: Vec<(Script, Script)>,
        otherwise: Option<Script>,
    },
    /// `while` and `until`.
    Loop {
        condition: Script,
        body: Script,
    },
    /// `for` and `select`; without `in` the positional parameters, which are not known.
    For {
        name: String,
        words: Option<Vec<Word>>,
        body: Script,
    },
    /// `for ((…))`.
    Count {
        arithmetic: Vec<Piece>,
        body: Script,
    },
    Case {
        subject: Word,
        arms: Vec<(Vec<Word>, Script)>,
    },
    Function {
        name: String,
        body: Rc<Command>,
    },
    /// `((…))` and `[[ … ]]`: only what is expanded in them matters.
    Test {
        words: Vec<Word>,
    },
    /// `coproc`: runs beside the shell.
    Beside(Box<Command>),
}

/// `name=value`, `name+=value`, `name[index]=value`, `name=(…)`.
#[derive(Debug, Clone)]
pub(super) struct Assign {
    pub(super) name: String,
    pub(super) append: bool,
    /// An element of an array.
    pub(super) element: bool,
    pub(super) value: Value,
}

/// The right side of an assignment.
#[derive(Debug, Clone)]
pub(super) enum Value {
    One(Word),
    Array(Vec<Word>),
}

/// Where a command reads or writes.
#[derive(Debug, Clone)]
pub(super) struct Redirect {
    /// The number before the sign.
    pub(super) descriptor: Option<u32>,
    pub(super) operator: Operator,
    pub(super) target: Target,
}

/// The direction of a redirect.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Operator {
    Read,
    Write,
    Append,
    ReadWrite,
    /// `>&` with a number or `-`.
    Duplicate,
    /// `<&` with a number or `-`.
    DuplicateRead,
    /// A heredoc or a here-string.
    Here,
}

/// What stands at the other end.
#[derive(Debug, Clone)]
pub(super) enum Target {
    Word(Word),
    /// Filled when the reader comes to the text below the line.
    Heredoc(Rc<OnceCell<Word>>),
}

/// A word as written.
#[derive(Debug, Clone, Default)]
pub(super) struct Word {
    pub(super) pieces: Vec<Piece>,
    pub(super) source: String,
}

/// A part of a word.
#[derive(Debug, Clone)]
pub(super) enum Piece {
    /// Unquoted: braces, tildes and patterns have their meaning.
    Bare(String),
    Quoted(String),
    Parameter {
        parameter: Box<Parameter>,
        quoted: bool,
    },
    /// `$(…)` and backticks.
    Command {
        script: Rc<Script>,
        quoted: bool,
    },
    /// A number that we do not compute; what is expanded in it.
    Arithmetic(Vec<Piece>),
    /// `<(…)` and `>(…)`.
    Process {
        script: Rc<Script>,
        reads: bool,
    },
    /// `@(…)` and the like: matches anything; what is expanded in it.
    Pattern(Vec<Piece>),
}

/// `$name`, `${name…}`.
#[derive(Debug, Clone, Default)]
pub(super) struct Parameter {
    pub(super) name: String,
    /// `${!name}`.
    pub(super) indirect: bool,
    /// `${#name}`.
    pub(super) length: bool,
    /// `[…]`.
    pub(super) index: Option<Vec<Piece>>,
    /// `:-`, `%`, `//` …; empty for none.
    pub(super) operator: String,
    /// What follows the operator.
    pub(super) operand: Vec<Piece>,
}

/// What a text says, and the source of each word that begins a command in it.
#[derive(Debug)]
pub(super) struct Reading {
    pub(super) script: Script,
    pub(super) heads: Vec<String>,
}

/// Reads a whole text.
pub(super) fn read(text: &str) -> Result<Reading, Unreadable> {
    let mut cursor = cursor::Cursor::new(text, 0);
    let script = cursor.script()?;
    match cursor.peek() {
        None => {
            cursor.close_heredocs();
            Ok(Reading { script, heads: cursor.into_heads() })
        }
        Some(other) => Err(Unreadable::Unexpected(other)),
    }
}
