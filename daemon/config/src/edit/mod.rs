//! Writes one key of a settings file and leaves every other byte as it is: comments, order, quoting, line ends.
//!
//! The text is parsed into places ([`place`]), changed at one of them ([`change`]), parsed again, and held against
//! the tree that was wanted. A file that cannot be edited so is refused; it is never rewritten from its values.

mod change;
mod place;
mod render;

use std::path::Path;

use serde_json::Value;

use crate::diagnostic::DiagnosticKind;
use crate::schema::Schema;
use crate::tree::{Node, Source, Tree};
use crate::yaml;

/// Most names that a message lists.
const MOST_NAMES: usize = 30;

/// Why a key was not written.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum EditError {
    /// No such key, or a value that it does not take: the whole sentence, with the nearest key or what is accepted.
    #[error("{0}")]
    NotAccepted(String),
    /// The path leads through something that is no map, or to an item that is not there.
    #[error("`{key}` cannot be set: {reason}")]
    NoPlace { key: String, reason: String },
    /// The file is no YAML of our kind; no command rewrites it.
    #[error("line {line}, column {column} of the file: {reason}; correct it by hand first")]
    Broken { line: u32, column: u32, reason: String },
    /// The file is written in a way that this editor does not change safely.
    #[error("`{key}` cannot be changed without touching more of the file; edit it by hand")]
    Unsafe { key: String },
}

/// The text of a settings file with `key` set to `value`, or taken out. The value is checked against the schema.
///
/// `key` is a dotted path; numbers index items that a list has. A text that does not change is returned as it is.
///
/// # Errors
/// See [`EditError`]; the text is then not to be written.
pub fn edit_setting(text: &str, key: &str, value: Option<&Value>) -> Result<String, EditError> {
    edit_with(Schema::embedded(), text, key, value)
}

fn edit_with(schema: &Schema, text: &str, key: &str, value: Option<&Value>) -> Result<String, EditError> {
    let (mark, body) = match text.strip_prefix('\u{feff}') {
        Some(body) => ("\u{feff}", body),
        None => ("", text),
    };
    let before = parse(body)?;
    let steps = steps(&before, key)?;
    let mut wanted = wanted(&before, &steps, key, value)?;
    let mut fitted = None;
    if let Some(value) = value {
        // `no` for a switch is written as the switch takes it.
        fitted = check(schema, &wanted, key, value, &steps)?;
        if let Some(value) = &fitted {
            put(&mut wanted, &steps, Node::from_value(value, &from_file()));
        }
    }
    let value = fitted.as_ref().or(value);
    let changed =
        change::apply(body, &steps, value).ok_or_else(|| EditError::Unsafe { key: key.to_owned() })?;
    let after = parse(&changed).map_err(|_| EditError::Unsafe { key: key.to_owned() })?;
    if !same(&after, &wanted) {
        return Err(EditError::Unsafe { key: key.to_owned() });
    }
    Ok(format!("{mark}{changed}"))
}

/// What is edited is a file: text is not read as the lists that a flag would be.
fn from_file() -> Source {
    Source::File(Path::new("config.yaml").into(), 0)
}

fn parse(text: &str) -> Result<Node, EditError> {
    yaml::parse(text, &from_file()).map_err(|fault| EditError::Broken {
        line: fault.line,
        column: fault.column,
        reason: fault.reason,
    })
}

/// One step of a path into the file.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum Step {
    Key(String),
    Index(usize),
}

/// Splits a dotted key. A key of the file that itself holds dots is found; the shortest wins.
fn steps(root: &Node, key: &str) -> Result<Vec<Step>, EditError> {
    let no_place = |reason: &str| EditError::NoPlace { key: key.to_owned(), reason: reason.to_owned() };
    let spelled = key.replace('[', ".").replace(']', "");
    let mut parts: Vec<&str> = spelled.split('.').collect();
    parts.reverse();
    if parts.iter().any(|part| part.trim().is_empty()) {
        return Err(no_place("a part of the path is empty"));
    }
    let mut steps = Vec::new();
    let mut node = Some(root);
    while let Some(first) = parts.pop() {
        match node.map(|node| &node.tree) {
            Some(Tree::List(items)) => {
                let index = first.parse().ok().filter(|index| *index < items.len());
                let index: usize =
                    index.ok_or_else(|| no_place(&format!("the list has {} items", items.len())))?;
                node = items.get(index);
                steps.push(Step::Index(index));
            }
            Some(Tree::Map(entries)) => {
                let mut name = first.to_owned();
                let mut longer = parts.clone();
                while !entries.contains_key(&name)
                    && let Some(more) = longer.pop()
                {
                    name = format!("{name}.{more}");
                }
                if entries.contains_key(&name) {
                    parts = longer;
                } else {
                    first.clone_into(&mut name);
                }
                node = entries.get(&name);
                steps.push(Step::Key(name));
            }
            Some(Tree::Scalar(Value::Null)) | None => {
                node = None;
                steps.push(Step::Key(first.to_owned()));
            }
            Some(Tree::Scalar(_)) => return Err(no_place("what stands above it is a single value")),
        }
    }
    Ok(steps)
}

/// The tree that the file must hold afterwards.
fn wanted(before: &Node, steps: &[Step], key: &str, value: Option<&Value>) -> Result<Node, EditError> {
    let mut tree = before.clone();
    match value {
        Some(value) => put(&mut tree, steps, Node::from_value(value, &from_file())),
        None if steps.iter().any(|step| matches!(step, Step::Index(_))) => {
            return Err(EditError::NoPlace {
                key: key.to_owned(),
                reason: "an item cannot be taken out by its number; set the whole list".to_owned(),
            });
        }
        None => {
            let names: Vec<&str> = steps
                .iter()
                .filter_map(|step| match step {
                    Step::Key(name) => Some(name.as_str()),
                    Step::Index(_) => None,
                })
                .collect();
            let mut names = names.as_slice();
            tree.take(names);
            // A section that holds nothing any more goes too.
            while let Some((_, above)) = names.split_last()
                && !above.is_empty()
                && tree.at(above).and_then(Node::as_map).is_some_and(indexmap::IndexMap::is_empty)
            {
                tree.take(above);
                names = above;
            }
        }
    }
    Ok(tree)
}

fn put(tree: &mut Node, steps: &[Step], node: Node) {
    let Some((step, rest)) = steps.split_first() else {
        *tree = node;
        return;
    };
    match step {
        Step::Index(index) => {
            if let Tree::List(items) = &mut tree.tree
                && let Some(item) = items.get_mut(*index)
            {
                put(item, rest, node);
            }
        }
        Step::Key(name) => {
            if tree.is_null() {
                *tree = Node::map(from_file());
            }
            if let Some(entries) = tree.as_map_mut() {
                let child = entries.entry(name.clone()).or_insert_with(|| Node::map(from_file()));
                put(child, rest, node);
            }
        }
    }
}

/// Refuses what the schema does not know, with what it does know. Gives a single value as the schema takes it, where
/// that is another than was given.
fn check(
    schema: &Schema,
    wanted: &Node,
    key: &str,
    value: &Value,
    steps: &[Step],
) -> Result<Option<Value>, EditError> {
    let mut report = Vec::new();
    let mut checked = wanted.clone();
    schema.check(&mut checked, &mut report);
    let below = |found: &str| {
        found.strip_prefix(key).is_some_and(|rest| rest.is_empty() || rest.starts_with(['.', '[']))
            // An unknown section is reported at its own name.
            || key.strip_prefix(found).is_some_and(|rest| rest.starts_with('.'))
    };
    let fault = report.into_iter().find(|finding| {
        finding.key.as_deref().is_some_and(below)
            && (finding.kind.is_invalid_value() || finding.kind == DiagnosticKind::UnknownKey)
    });
    let Some(finding) = fault else {
        return Ok(single(&checked, steps).filter(|fitted| *fitted != value).cloned());
    };
    let named = finding.key.as_deref().unwrap_or(key);
    let what = match finding.kind {
        DiagnosticKind::UnknownKey => format!("`{named}` is no key that is known"),
        _ if crate::mask::is_secret_key(named) => format!("`{named}` does not take this value"),
        _ => format!("`{named}` does not take {value}"),
    };
    let accepted = finding.accepted.map(|accepted| format!("; accepted: {accepted}")).unwrap_or_default();
    let meant = match finding.suggestion {
        Some(meant) => format!("; did you mean `{meant}`?"),
        None if finding.kind == DiagnosticKind::UnknownKey => beside(schema, named),
        None => String::new(),
    };
    Err(EditError::NotAccepted(format!("{what}{accepted}{meant}")))
}

/// The single value that stands at a place.
fn single<'a>(node: &'a Node, steps: &[Step]) -> Option<&'a Value> {
    let Some((step, rest)) = steps.split_first() else {
        return if let Tree::Scalar(value) = &node.tree { Some(value) } else { None };
    };
    match (step, &node.tree) {
        (Step::Key(name), Tree::Map(entries)) => single(entries.get(name)?, rest),
        (Step::Index(index), Tree::List(items)) => single(items.get(*index)?, rest),
        _ => None,
    }
}

/// The keys that are known where an unknown one was to be put.
fn beside(schema: &Schema, key: &str) -> String {
    let above: Vec<&str> = key.split('.').collect();
    let above = above.split_last().map_or(&[][..], |(_, above)| above);
    let known = schema.find(above).map(|view| view.property_names()).unwrap_or_default();
    if known.is_empty() || known.len() > MOST_NAMES {
        return String::new();
    }
    format!("; known: {}", known.join(", "))
}

/// Whether two trees hold the same, down to how unquoted values are written.
fn same(a: &Node, b: &Node) -> bool {
    match (&a.tree, &b.tree) {
        (Tree::Scalar(x), Tree::Scalar(y)) => {
            let written = match (&a.written, &b.written) {
                (Some(x), Some(y)) => x == y,
                _ => true,
            };
            x == y && written
        }
        (Tree::List(x), Tree::List(y)) => x.len() == y.len() && x.iter().zip(y).all(|(x, y)| same(x, y)),
        (Tree::Map(x), Tree::Map(y)) => {
            x.len() == y.len() && x.iter().all(|(key, x)| y.get(key).is_some_and(|y| same(x, y)))
        }
        _ => false,
    }
}

#[cfg(test)]
mod tests;
