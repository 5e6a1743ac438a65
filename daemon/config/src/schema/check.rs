//! Checks one layer against the schema. A value that does not fit is reported and dropped, so that the layer
//! below, or the default, holds; everything beside it stays in force (spec 80 §8.3).

use super::nearest;
use super::scalar::{Bend, Misfit, fit, has_length};
use super::{Additional, Schema, View};
use crate::diagnostic::{Diagnostic, DiagnosticKind, Severity};
use crate::mask;
use crate::tree::{Entries, Node, Tree};

impl Schema {
    /// Checks `root`, drops what does not fit, and bends what is plainly meant.
    pub(crate) fn check(&self, root: &mut Node, report: &mut Vec<Diagnostic>) {
        let mut check = Check { schema: self, report, bend: Bend::Yes };
        if !check.node(root, &self.view(), "") {
            *root = Node::map(root.source.clone());
        }
    }
}

struct Check<'c> {
    schema: &'c Schema,
    report: &'c mut Vec<Diagnostic>,
    bend: Bend,
}

impl Check<'_> {
    /// Returns whether the node stays.
    fn node(&mut self, node: &mut Node, view: &View<'_>, path: &str) -> bool {
        if node.is_null() {
            // `section:` without a value is an absent section; so is a key that knows no null.
            return view.allows_null() && !view.takes_map() && !view.takes_list();
        }
        if view.is_open() {
            return true;
        }
        self.list_from_text(node, view);
        if let Tree::Scalar(_) = node.tree
            && view.choices().is_some()
        {
            return self.scalar(node, view, path);
        }
        let alternatives = view.alternatives();
        match alternatives.as_slice() {
            [] => {}
            [only] => return self.node(node, only, path),
            several => return self.any_of(node, view, several, path),
        }
        match &mut node.tree {
            Tree::Map(_) if view.takes_map() => self.map(node, view, path),
            Tree::List(_) if view.takes_list() => self.list(node, view, path),
            Tree::Scalar(_) if !view.types().is_empty() => self.scalar(node, view, path),
            Tree::Map(_) | Tree::List(_) | Tree::Scalar(_) => {
                self.refuse(Misfit::Type, node, view, path);
                false
            }
        }
    }

    /// `--toolsets a,b` and `X=a,b` have no other way to say a list.
    fn list_from_text(&self, node: &mut Node, view: &View<'_>) {
        if !view.takes_list() || !node.source.is_text() || self.bend == Bend::No {
            return;
        }
        let Tree::Scalar(serde_json::Value::String(text)) = &node.tree else {
            return;
        };
        let items = text.split(',').map(str::trim).filter(|item| !item.is_empty());
        node.tree = Tree::List(items.map(|item| Node::text(item, node.source.clone())).collect());
    }

    /// Takes the first alternative that fits as it is, else the first that fits when bent.
    fn any_of(&mut self, node: &mut Node, view: &View<'_>, alternatives: &[View<'_>], path: &str) -> bool {
        for bend in [Bend::No, Bend::Yes] {
            for alternative in alternatives {
                let mut trial = node.clone();
                let mut report = Vec::new();
                let mut check = Check { schema: self.schema, report: &mut report, bend };
                let fits = check.node(&mut trial, alternative, path);
                if fits && !report.iter().any(|finding| finding.kind.is_invalid_value()) {
                    *node = trial;
                    self.report.append(&mut report);
                    return true;
                }
            }
        }
        // None fits whole. Of one that at least has the right shape, the good parts stay.
        let shaped = alternatives.iter().find(|alternative| match node.tree {
            Tree::Map(_) => alternative.takes_map(),
            Tree::List(_) => alternative.takes_list(),
            Tree::Scalar(_) => false,
        });
        if let Some(alternative) = shaped {
            return self.node(node, alternative, path);
        }
        let word = matches!(node.tree, Tree::Scalar(serde_json::Value::String(_)))
            && alternatives.iter().any(|alternative| alternative.choices().is_some());
        self.refuse(if word { Misfit::Word } else { Misfit::Type }, node, view, path);
        false
    }

    fn scalar(&mut self, node: &mut Node, view: &View<'_>, path: &str) -> bool {
        match fit(node, view, self.bend) {
            Ok(()) => true,
            Err(misfit) => {
                self.refuse(misfit, node, view, path);
                false
            }
        }
    }

    fn list(&mut self, node: &mut Node, view: &View<'_>, path: &str) -> bool {
        let Tree::List(items) = &mut node.tree else {
            return true;
        };
        if let Some(schema) = view.items() {
            // One bad item must not take the others with it: the list may be one of things to deny.
            let mut index = 0;
            items.retain_mut(|item| {
                let here = format!("{path}[{index}]");
                index += 1;
                self.node(item, &schema, &here)
            });
        }
        if has_length(items.len(), view, ["minItems", "maxItems"]) {
            return true;
        }
        self.refuse(Misfit::Range, node, view, path);
        false
    }

    fn map(&mut self, node: &mut Node, view: &View<'_>, path: &str) -> bool {
        let Tree::Map(entries) = &mut node.tree else {
            return true;
        };
        let kept = std::mem::take(entries);
        let mut checked = Entries::with_capacity(kept.len());
        for (key, mut child) in kept {
            let (key, known) = known_key(key, &checked, view);
            let here = join(path, &key);
            let stays = match (known, view.additional()) {
                (Some(schema), _) => self.node(&mut child, &schema, &here),
                (None, Additional::Of(schema)) => self.node(&mut child, &schema, &here),
                (None, Additional::Any) => !child.is_null(),
                (None, Additional::Nothing) => {
                    self.unknown(&key, &child, view, path, &here);
                    !child.is_null()
                }
            };
            if stays {
                checked.insert(key, child);
            }
        }
        let missing = view.required().into_iter().find(|name| !checked.contains_key(*name));
        if let Some(missing) = missing {
            let message = format!("lacks its key `{missing}` and is ignored");
            let finding = Diagnostic::new(DiagnosticKind::MissingKey, node.source.origin(), message);
            self.push(finding.key(path), node);
            return false;
        }
        node.tree = Tree::Map(checked);
        true
    }

    fn unknown(&mut self, key: &str, child: &Node, view: &View<'_>, path: &str, here: &str) {
        // `_config_version` and notes of other programs; and names that come from our own table of variables.
        if (path.is_empty() && key.starts_with('_')) || child.source.is_mapped() {
            return;
        }
        let message = "is no key that is known, and has no effect";
        let mut finding =
            Diagnostic::new(DiagnosticKind::UnknownKey, child.source.origin(), message).key(here);
        finding.suggestion = nearest::name(key, &view.property_names())
            .map(|name| join(path, name))
            .or_else(|| self.schema.same_name_elsewhere(key));
        self.push(finding, child);
    }

    fn refuse(&mut self, misfit: Misfit, node: &Node, view: &View<'_>, path: &str) {
        let (kind, severity) = match misfit {
            Misfit::Type => (DiagnosticKind::WrongType, Severity::Warning),
            Misfit::Range => (DiagnosticKind::OutOfRange, Severity::Warning),
            Misfit::Word => (DiagnosticKind::UnknownValue, Severity::Error),
        };
        // A word that nobody knows is no default in disguise: it has to be corrected.
        let consequence = match (severity, view.default_value()) {
            (Severity::Error, _) => String::new(),
            (_, Some(default)) if !mask::is_secret_key(path) => format!(" and ignored (default: {default})"),
            _ => " and ignored".to_owned(),
        };
        let message = format!("is {}, which is not accepted{consequence}", mask::shown(path, node));
        let mut finding = Diagnostic::new(kind, node.source.origin(), message).key(path).severity(severity);
        finding.accepted = Some(view.accepted());
        self.push(finding, node);
    }

    fn push(&mut self, mut finding: Diagnostic, node: &Node) {
        // A folder that the user happens to stand in must not keep the program from starting.
        if node.source.is_project() {
            finding.severity = finding.severity.min(Severity::Warning);
        }
        self.report.push(finding);
    }
}

/// The key as the schema spells it: `baseUrl` is `base_url` where only the latter is known.
fn known_key<'s>(key: String, taken: &Entries, view: &View<'s>) -> (String, Option<View<'s>>) {
    if let Some(schema) = view.property(&key) {
        return (key, Some(schema));
    }
    let snake = snake_case(&key);
    match view.property(&snake) {
        Some(schema) if snake != key && !taken.contains_key(&snake) => (snake, Some(schema)),
        _ => (key, None),
    }
}

fn join(path: &str, key: &str) -> String {
    if path.is_empty() { key.to_owned() } else { format!("{path}.{key}") }
}

fn snake_case(key: &str) -> String {
    let mut snake = String::with_capacity(key.len() + 4);
    let mut after_lower = false;
    for c in key.chars() {
        if c.is_uppercase() && after_lower {
            snake.push('_');
        }
        after_lower = c.is_lowercase() || c.is_ascii_digit();
        if c == '-' { snake.push('_') } else { snake.extend(c.to_lowercase()) }
    }
    snake
}
