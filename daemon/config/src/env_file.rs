//! The profile's `.env`: secrets, and nothing else (spec 80 §9.5). Values never appear in `Debug` or in messages.

use std::fmt;
use std::fs;
use std::io;
use std::os::unix::fs::PermissionsExt as _;
use std::path::{Path, PathBuf};

use indexmap::IndexMap;

use crate::diagnostic::{Diagnostic, DiagnosticKind, Origin};
use crate::mask::{MASK, is_secret_key};
use crate::read::{ReadFault, Trust, read_text};

/// The names and values of a `.env` file.
#[derive(Clone, Default)]
pub struct EnvFile {
    path: PathBuf,
    entries: IndexMap<String, Entry>,
    warnings: Vec<Diagnostic>,
}

#[derive(Clone)]
struct Entry {
    value: String,
    line: u32,
}

/// A `.env` that exists and cannot be used.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum EnvFileError {
    /// The file system said no.
    #[error("cannot read {}", path.display())]
    Unreadable {
        /// The file.
        path: PathBuf,
        /// What the file system said.
        source: io::Error,
    },
    /// The file is not text.
    #[error("{}:{line}: {reason}", path.display())]
    NotText {
        /// The file.
        path: PathBuf,
        /// The first line at fault, from 1.
        line: u32,
        /// What is wrong there.
        reason: String,
    },
}

impl EnvFileError {
    /// What the user can do now.
    pub fn hint(&self) -> String {
        match self {
            Self::Unreadable { path, .. } => format!(
                "make {} readable for your user (mode 0600); it holds the keys of your model providers",
                path.display()
            ),
            Self::NotText { path, .. } => {
                format!("save {} as UTF-8 lines of the form NAME=value", path.display())
            }
        }
    }
}

impl EnvFile {
    /// Reads the file at `path`. A missing file is an empty one; a line that cannot be used is a warning.
    ///
    /// # Errors
    /// When the file exists but cannot be read, or is not UTF-8.
    pub fn load(path: &Path) -> Result<Self, EnvFileError> {
        let text = match read_text(path, Trust::Found) {
            Ok(text) => text,
            Err(ReadFault::Missing) => String::new(),
            Err(ReadFault::Io(source)) => {
                return Err(EnvFileError::Unreadable { path: path.to_owned(), source });
            }
            Err(ReadFault::NotText { line, reason }) => {
                return Err(EnvFileError::NotText { path: path.to_owned(), line, reason });
            }
        };
        let mut file = Self { path: path.to_owned(), ..Self::default() };
        let mode = fs::metadata(path).map_or(0, |found| found.permissions().mode());
        if mode & 0o077 != 0 {
            let message = format!(
                "has mode {:03o}, so other users may read your secrets; run `chmod 600 {}`",
                mode & 0o777,
                path.display()
            );
            file.warn(0, message);
        }
        file.read(&text);
        Ok(file)
    }

    /// Reads a text, for callers that have no file.
    pub fn parse(text: &str) -> Self {
        let mut file = Self { path: PathBuf::from(".env"), ..Self::default() };
        file.read(text);
        file
    }

    /// The value of a name; an empty one counts as unset.
    pub fn get(&self, name: &str) -> Option<&str> {
        self.entries.get(name).map(|entry| entry.value.as_str())
    }

    /// All names and values, in the file's order.
    pub fn iter(&self) -> impl Iterator<Item = (&str, &str)> {
        self.entries.iter().map(|(name, entry)| (name.as_str(), entry.value.as_str()))
    }

    /// Whether the file sets nothing.
    pub fn is_empty(&self) -> bool {
        self.entries.is_empty()
    }

    /// The line on which a name is set, from 1.
    pub fn line(&self, name: &str) -> Option<u32> {
        self.entries.get(name).map(|entry| entry.line)
    }

    /// Where the file is, or would be.
    pub fn path(&self) -> &Path {
        &self.path
    }

    /// What is wrong with the file.
    pub fn warnings(&self) -> &[Diagnostic] {
        &self.warnings
    }

    fn warn(&mut self, line: u32, message: impl Into<String>) {
        let origin = Origin::File(self.path.clone(), line);
        self.warnings.push(Diagnostic::new(DiagnosticKind::EnvFile, origin, message));
    }

    fn read(&mut self, text: &str) {
        let mut rest = text.strip_prefix('\u{feff}').unwrap_or(text);
        let mut line = 1;
        while !rest.is_empty() {
            let (assignment, after) = next_assignment(rest);
            let consumed = rest.len() - after.len();
            match assignment {
                Ok(None) => {}
                Ok(Some((name, value))) => self.add(name, value, line),
                Err(reason) => self.warn(line, reason),
            }
            let newlines = rest.bytes().take(consumed).filter(|byte| *byte == b'\n').count();
            line = line.saturating_add(u32::try_from(newlines).unwrap_or(u32::MAX));
            rest = after;
        }
    }

    fn add(&mut self, name: &str, value: String, line: u32) {
        if value.is_empty() {
            return;
        }
        if value == MASK {
            let message =
                format!("{name} is the placeholder `{MASK}` and is ignored; put the real value there");
            return self.warn(line, message);
        }
        // A key with a typographic quote or a pasted space fails later, in an HTTP header, with no word about why.
        // A PEM key, which has lines, is for signing and goes into no header.
        let is_pem = value.starts_with("-----BEGIN");
        let odd = value.chars().position(|c| !c.is_ascii() || c.is_ascii_control());
        if let Some(at) = odd.filter(|_| is_header_secret(name) && !is_pem) {
            let message = format!(
                "{name} holds a character at position {} that no key has, and is ignored; paste it again",
                at + 1
            );
            return self.warn(line, message);
        }
        if let Some(earlier) = self.entries.get(name) {
            let message = format!("{name} is set twice; this line wins over line {}", earlier.line);
            self.warn(line, message);
        }
        self.entries.insert(name.to_owned(), Entry { value, line });
    }
}

/// Secrets that travel in HTTP headers; a password may well be any text.
fn is_header_secret(name: &str) -> bool {
    is_secret_key(name) && (name.ends_with("_KEY") || name.ends_with("_TOKEN"))
}

/// What one assignment or line holds, and the text after it.
type Parsed<'a> = (Result<Option<(&'a str, String)>, String>, &'a str);

/// Reads one line, or the lines of one quoted value (a PEM key has many).
fn next_assignment(text: &str) -> Parsed<'_> {
    let (line, after) = text.split_once('\n').unwrap_or((text, ""));
    let trimmed = line.trim();
    if trimmed.is_empty() || trimmed.starts_with('#') {
        return (Ok(None), after);
    }
    let Some((left, _)) = line.split_once('=') else {
        return (Err("the line is not of the form NAME=value, and is ignored".to_owned()), after);
    };
    let left_trimmed = left.trim();
    let name = left_trimmed
        .strip_prefix("export")
        .filter(|rest| rest.starts_with(char::is_whitespace))
        .unwrap_or(left_trimmed)
        .trim();
    if !is_name(name) {
        return (Err("what stands before the `=` is no name, and the line is ignored".to_owned()), after);
    }
    let Some(value) = text.strip_prefix(left).and_then(|rest| rest.strip_prefix('=')) else {
        return (Ok(None), after);
    };
    let value = value.trim_start_matches([' ', '\t']);
    let Some(quote @ ('"' | '\'')) = value.chars().next() else {
        let line = value.split_once('\n').map_or(value, |(line, _)| line);
        return (Ok(Some((name, unquoted(line).to_owned()))), after);
    };
    // On a fault, reading goes on after this one line: a quote that was forgotten must not swallow the next names.
    let Some((value, rest)) = quoted(value, quote) else {
        return (Err(format!("the closing quote of {name} is missing, and the line is ignored")), after);
    };
    let (tail, after_value) = rest.split_once('\n').unwrap_or((rest, ""));
    let tail = tail.trim();
    if tail.is_empty() || tail.starts_with('#') {
        (Ok(Some((name, value))), after_value)
    } else {
        (Err(format!("text follows the closing quote of {name}, and the line is ignored")), after)
    }
}

fn is_name(name: &str) -> bool {
    let mut chars = name.chars();
    chars.next().is_some_and(|c| c.is_ascii_alphabetic() || c == '_')
        && chars.all(|c| c.is_ascii_alphanumeric() || matches!(c, '_' | '.' | '-'))
}

/// An unquoted value ends at a `#` after white space.
fn unquoted(line: &str) -> &str {
    let mut before_is_space = true;
    for (at, c) in line.char_indices() {
        if c == '#' && before_is_space {
            return line.get(..at).unwrap_or(line).trim();
        }
        before_is_space = c.is_whitespace();
    }
    line.trim()
}

/// Reads a quoted value and returns it with the text after the closing quote. Double quotes know escapes; in
/// single quotes all is literal but `\\` and `\'`.
fn quoted(text: &str, quote: char) -> Option<(String, &str)> {
    let mut value = String::new();
    let mut chars = text.char_indices().skip(1);
    while let Some((at, c)) = chars.next() {
        if c == quote {
            return Some((value, text.get(at + c.len_utf8()..)?));
        }
        if c != '\\' {
            value.push(c);
            continue;
        }
        let (_, escaped) = chars.next()?;
        match (quote, escaped) {
            (_, '\\') => value.push('\\'),
            (_, escaped) if escaped == quote => value.push(quote),
            ('"', 'n') => value.push('\n'),
            ('"', 'r') => value.push('\r'),
            ('"', 't') => value.push('\t'),
            ('"', '$') => value.push('$'),
            (_, other) => value.extend(['\\', other]),
        }
    }
    None
}

impl fmt::Debug for EnvFile {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("EnvFile")
            .field("path", &self.path)
            .field("names", &self.entries.keys().collect::<Vec<_>>())
            .finish_non_exhaustive()
    }
}

#[cfg(test)]
#[path = "env_file_tests.rs"]
mod tests;
