//! Fills `${VAR}` and `${VAR:-default}` in from the profile's `.env`, and from nowhere else (spec 80 §8.3).

use crate::diagnostic::{Diagnostic, DiagnosticKind};
use crate::env_file::EnvFile;
use crate::tree::{Node, Tree};

/// What the names in a template are looked up in.
pub(crate) struct Scope<'a> {
    pub(crate) env_file: &'a EnvFile,
    /// The caller's environment: only asked whether a name exists there, so that the message can say so.
    pub(crate) environment: &'a [(String, String)],
}

/// One piece of a text with templates in it.
#[derive(Debug, PartialEq, Eq)]
enum Piece<'a> {
    Literal(&'a str),
    Variable { whole: &'a str, name: &'a str, default: Option<&'a str> },
}

/// Fills in every text below `node`. A name without a value stays as it is written, and is reported.
pub(crate) fn expand(node: &mut Node, path: &str, scope: &Scope<'_>, report: &mut Vec<Diagnostic>) {
    match &mut node.tree {
        Tree::Map(entries) => {
            for (key, child) in entries {
                let path = if path.is_empty() { key.clone() } else { format!("{path}.{key}") };
                expand(child, &path, scope, report);
            }
        }
        Tree::List(items) => {
            for (index, item) in items.iter_mut().enumerate() {
                expand(item, &format!("{path}[{index}]"), scope, report);
            }
        }
        Tree::Scalar(serde_json::Value::String(text)) if text.contains("${") => {
            let mut filled = String::with_capacity(text.len());
            let mut changed = false;
            for piece in pieces(text) {
                match piece {
                    Piece::Literal(literal) => filled.push_str(literal),
                    Piece::Variable { whole, name, default } => {
                        if let Some(value) = scope.env_file.get(name).or(default) {
                            changed = true;
                            filled.push_str(value);
                            continue;
                        }
                        filled.push_str(whole);
                        let message = format!("refers to `{whole}`, {}", missing(name, scope));
                        let origin = node.source.origin();
                        report.push(Diagnostic::new(DiagnosticKind::Unresolved, origin, message).key(path));
                    }
                }
            }
            if changed {
                node.template = Some(std::mem::replace(text, filled).into());
                node.written = None;
            }
        }
        Tree::Scalar(_) => {}
    }
}

fn missing(name: &str, scope: &Scope<'_>) -> String {
    let file = scope.env_file.path().display();
    if scope.environment.iter().any(|(known, _)| known == name) {
        format!("which is set in the environment only; secrets are read from {file} alone, so store it there")
    } else {
        format!("which {file} does not set; it stays as it is written")
    }
}

/// Finds the templates of a text. What is no well-formed template is literal.
fn pieces(text: &str) -> Vec<Piece<'_>> {
    let mut found = Vec::new();
    let mut rest = text;
    // The literal part may hold a `${` that opens nothing; it grows until a real template follows.
    let mut scanned = 0;
    while let Some(at) = rest.get(scanned..).and_then(|tail| tail.find("${")).map(|at| at + scanned) {
        let (before, from) = rest.split_at(at);
        match template(from) {
            Some((piece, after)) => {
                if !before.is_empty() {
                    found.push(Piece::Literal(before));
                }
                found.push(piece);
                (rest, scanned) = (after, 0);
            }
            None => scanned = at + 2,
        }
    }
    if !rest.is_empty() {
        found.push(Piece::Literal(rest));
    }
    found
}

fn template(text: &str) -> Option<(Piece<'_>, &str)> {
    let (inside, after) = text.strip_prefix("${")?.split_once('}')?;
    let (name, default) = match inside.split_once(":-") {
        Some((name, default)) => (name, Some(default)),
        None => (inside, None),
    };
    let mut chars = name.chars();
    let legal = chars.next().is_some_and(|c| c.is_ascii_alphabetic() || c == '_')
        && chars.all(|c| c.is_ascii_alphanumeric() || c == '_');
    let whole = text.get(..text.len() - after.len())?;
    legal.then_some((Piece::Variable { whole, name, default }, after))
}

#[cfg(test)]
mod tests {
    use pretty_assertions::assert_eq;
    use proptest::prelude::*;
    use serde_json::json;

    use super::*;
    use crate::tree::Source;

    fn filled(text: &str) -> (String, usize) {
        let env_file = EnvFile::parse("KEY=sk-1\nEMPTY=\nNEXT=${KEY}\n");
        let environment = [("PATH".to_owned(), "/bin".to_owned())];
        let mut node = Node::text(text, Source::Flag);
        let mut report = Vec::new();
        let scope = Scope { env_file: &env_file, environment: &environment };
        expand(&mut node, "k", &scope, &mut report);
        (node.to_value().as_str().unwrap().to_owned(), report.len())
    }

    #[test]
    fn names_are_filled_in_from_the_file_only() {
        for (text, expected, unresolved) in [
            ("${KEY}", "sk-1", 0),
            ("a${KEY}b${KEY}", "ask-1bsk-1", 0),
            ("${NONE:-x}${NONE:-}", "x", 0),
            ("${EMPTY:-x}", "x", 0),
            ("${NEXT}", "${KEY}", 0),
            ("${NONE} ${PATH}", "${NONE} ${PATH}", 2),
            ("$KEY ${} ${1A} ${a b} ${KEY", "$KEY ${} ${1A} ${a b} ${KEY", 0),
            ("${${KEY}", "${sk-1", 0),
            ("é${KEY}é", "ésk-1é", 0),
        ] {
            assert_eq!(filled(text), (expected.to_owned(), unresolved), "{text}");
        }
    }

    #[test]
    fn a_name_that_only_the_environment_has_is_called_so() {
        let env_file = EnvFile::parse("");
        let environment = [("KEY".to_owned(), "sk-2".to_owned())];
        let mut node = Node::from_value(&json!({"a": {"b": ["${KEY}"]}}), &Source::Flag);
        let mut report = Vec::new();
        expand(&mut node, "", &Scope { env_file: &env_file, environment: &environment }, &mut report);
        assert_eq!(report.len(), 1);
        assert_eq!(report[0].key.as_deref(), Some("a.b[0]"));
        assert!(report[0].message.contains("in the environment only"), "{}", report[0]);
        assert!(!report[0].to_string().contains("sk-2"));
    }

    proptest! {
        #[test]
        fn pieces_lose_no_character(text in "[a${}:\\-Aé]{0,40}") {
            let joined: String = pieces(&text)
                .iter()
                .map(|piece| match piece { Piece::Literal(literal) => *literal, Piece::Variable { whole, .. } => *whole })
                .collect();
            prop_assert_eq!(joined, text);
        }
    }
}
