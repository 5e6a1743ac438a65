//! The effective settings: one value per key, with the layer it came from.

use std::fmt;
use std::sync::Arc;

use serde::de::DeserializeOwned;
use serde_json::Value;

use crate::diagnostic::Origin;
use crate::mask;
use crate::schema::Schema;
use crate::tree::{Node, Source, Tree};

/// Checked, merged settings. Cheap to clone; `Debug` masks secrets.
#[derive(Clone)]
pub struct Settings(Arc<Merged>);

struct Merged {
    tree: Node,
    value: Value,
}

/// One leaf of the settings, as `config show` lists it.
#[derive(Debug, Clone, PartialEq)]
pub struct Entry {
    /// The dotted key.
    pub key: String,
    /// The value, masked when it looks like a secret.
    pub value: Value,
    /// The layer that set it.
    pub origin: Origin,
}

/// One step of a path into the settings.
enum Step<'k> {
    Key(&'k str),
    Index(usize),
}

impl Settings {
    pub(crate) fn new(tree: Node) -> Self {
        let value = tree.to_value();
        Self(Arc::new(Merged { tree, value }))
    }

    /// The built-in defaults alone: what holds when nothing is configured, or when nothing that is can be read.
    pub fn defaults() -> Self {
        Self::new(Schema::embedded().defaults())
    }

    /// These settings with some keys at other values; `None` takes a key out. Paths are whole: one name a level.
    #[must_use]
    pub fn overridden<'v>(
        &self,
        changes: impl IntoIterator<Item = (&'v [&'v str], Option<&'v Value>)>,
    ) -> Self {
        let mut tree = self.0.tree.clone();
        for (path, value) in changes {
            let source = tree.at(path).map_or(Source::Default, |node| node.source.clone());
            match value {
                Some(value) => {
                    tree.put(path, Node::from_value(value, &source));
                }
                None => {
                    tree.take(path);
                }
            }
        }
        Self::new(tree)
    }

    /// A section as the type that acts on it; `path` is dotted, and empty for the root.
    ///
    /// What does not fit the schema was dropped at load, so this fails only where the type is stricter than its
    /// schema: then the whole section is at its defaults, and a warning is logged.
    pub fn section<T: DeserializeOwned + Default>(&self, path: &str) -> T {
        let Some(value) = self.get(path) else {
            return T::default();
        };
        T::deserialize(value).unwrap_or_else(|error| {
            tracing::warn!(section = path, %error, "a section does not fit its type; its defaults hold");
            T::default()
        })
    }

    /// The effective value of a dotted key (`agent.max_turns`, `toolsets.0`, `toolsets[0]`, empty for everything).
    /// A key that itself holds dots (`models.gpt-4.1.context_length`) is found too.
    pub fn get(&self, dotted: &str) -> Option<&Value> {
        let (_, steps) = self.find(dotted)?;
        steps.iter().try_fold(&self.0.value, |value, step| match step {
            Step::Key(key) => value.get(*key),
            Step::Index(index) => value.get(*index),
        })
    }

    /// The layer that set a key; of a map, the highest one that set any part of it.
    pub fn origin(&self, dotted: &str) -> Option<Origin> {
        Some(self.find(dotted)?.0.source.origin())
    }

    /// All effective values, with secrets as they are. To show them, use [`Settings::masked`].
    pub fn to_value(&self) -> Value {
        self.0.value.clone()
    }

    /// All effective values, with secrets masked and `${VAR}` templates in place of what filled them.
    pub fn masked(&self) -> Value {
        mask::masked(&self.0.tree, false)
    }

    /// The effective value of a dotted key, masked likewise.
    pub fn masked_at(&self, dotted: &str) -> Option<Value> {
        let (node, steps) = self.find(dotted)?;
        let secret = node.as_map().is_none()
            && steps.iter().any(|step| matches!(step, Step::Key(key) if mask::is_secret_key(key)));
        Some(mask::masked(node, secret))
    }

    /// Every leaf with its masked value and its origin, in the order of the sections.
    pub fn entries(&self) -> Vec<Entry> {
        let mut entries = Vec::new();
        list(&self.0.tree, String::new(), false, &mut entries);
        entries
    }

    fn find<'k>(&self, dotted: &'k str) -> Option<(&Node, Vec<Step<'k>>)> {
        let mut steps = Vec::new();
        let node = descend(&self.0.tree, dotted, &mut steps)?;
        Some((node, steps))
    }
}

fn descend<'n, 'k>(node: &'n Node, rest: &'k str, steps: &mut Vec<Step<'k>>) -> Option<&'n Node> {
    if rest.is_empty() {
        return Some(node);
    }
    match &node.tree {
        Tree::Scalar(_) => None,
        Tree::List(items) => {
            let (index, rest) = match rest.strip_prefix('[') {
                Some(inside) => inside.split_once(']')?,
                None => rest.split_once('.').unwrap_or((rest, "")),
            };
            let index: usize = index.parse().ok()?;
            steps.push(Step::Index(index));
            descend(items.get(index)?, rest.strip_prefix('.').unwrap_or(rest), steps)
        }
        Tree::Map(entries) => {
            // The shortest key first; a longer one when that leads nowhere.
            let ends = rest.match_indices(['.', '[']).map(|(at, _)| at).chain([rest.len()]);
            for end in ends {
                let (key, tail) = rest.split_at_checked(end)?;
                let Some(child) = entries.get(key) else {
                    continue;
                };
                let before = steps.len();
                steps.push(Step::Key(key));
                let found = descend(child, tail.strip_prefix('.').unwrap_or(tail), steps);
                if found.is_some() {
                    return found;
                }
                steps.truncate(before);
            }
            None
        }
    }
}

fn list(node: &Node, path: String, secret: bool, entries: &mut Vec<Entry>) {
    match &node.tree {
        Tree::Map(children) if !children.is_empty() => {
            for (key, child) in children {
                let below = if path.is_empty() { key.clone() } else { format!("{path}.{key}") };
                let secret = mask::is_secret_key(key) && child.as_map().is_none();
                list(child, below, secret, entries);
            }
        }
        _ => {
            entries.push(Entry {
                key: path,
                value: mask::masked(node, secret),
                origin: node.source.origin(),
            });
        }
    }
}

impl fmt::Debug for Settings {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_tuple("Settings").field(&self.masked()).finish()
    }
}

#[cfg(test)]
mod tests {
    use pretty_assertions::assert_eq;
    use serde_json::json;

    use super::*;

    fn settings() -> Settings {
        Settings::new(Node::from_value(
            &json!({
                "agent": {"max_turns": 5},
                "toolsets": ["a", {"b": 1}],
                "providers": {"p": {"models": {"gpt-4.1": {"context_length": 7}, "gpt-4": {"x": 1}}, "api_key": "sk"}},
                "empty": {},
            }),
            &Source::Flag,
        ))
    }

    #[test]
    fn dotted_keys_reach_maps_lists_and_names_with_dots() {
        let settings = settings();
        for (key, expected) in [
            ("agent.max_turns", Some(json!(5))),
            ("toolsets.0", Some(json!("a"))),
            ("toolsets[1].b", Some(json!(1))),
            ("providers.p.models.gpt-4.1.context_length", Some(json!(7))),
            ("providers.p.models.gpt-4.x", Some(json!(1))),
            ("agent.max_turns.x", None),
            ("toolsets.9", None),
            ("toolsets.x", None),
            ("nothing", None),
            ("é.x", None),
        ] {
            assert_eq!(settings.get(key).cloned(), expected, "{key}");
        }
        assert_eq!(settings.get(""), Some(&settings.to_value()));
        assert_eq!(settings.origin("agent.max_turns"), Some(Origin::Flag));
    }

    #[test]
    fn a_section_that_does_not_fit_is_at_its_defaults() {
        #[derive(Debug, Default, PartialEq, serde::Deserialize)]
        #[serde(default)]
        struct Agent {
            max_turns: u32,
        }
        assert_eq!(settings().section::<Agent>("agent"), Agent { max_turns: 5 });
        assert_eq!(settings().section::<Agent>("toolsets"), Agent { max_turns: 0 });
        assert_eq!(settings().section::<Agent>("absent"), Agent::default());
    }

    #[test]
    fn nothing_that_is_shown_holds_a_secret() {
        let settings = settings();
        assert!(!format!("{settings:?}").contains("sk"));
        assert_eq!(settings.masked_at("providers.p.api_key"), Some(json!("***")));
        assert_eq!(settings.get("providers.p.api_key"), Some(&json!("sk")));
        let entries = settings.entries();
        let keys: Vec<&str> = entries.iter().map(|entry| entry.key.as_str()).collect();
        assert_eq!(
            keys,
            [
                "agent.max_turns",
                "toolsets",
                "providers.p.models.gpt-4.1.context_length",
                "providers.p.models.gpt-4.x",
                "providers.p.api_key",
                "empty"
            ]
        );
        assert_eq!(entries[4].value, json!("***"));
    }
}
