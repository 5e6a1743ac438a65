//! Settings as a tree in which every value knows where it came from.

use std::path::Path;
use std::sync::Arc;

use indexmap::IndexMap;
use serde_json::Value;

use crate::diagnostic::Origin;

/// Where a node came from. Paths are shared, since thousands of nodes may stand in one file.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum Source {
    Default,
    Flag,
    Env(Arc<str>),
    /// A line of `.env` whose name is mapped to a key, as a variable's is.
    EnvFile(Arc<Path>, u32),
    File(Arc<Path>, u32),
    Project(Arc<Path>, u32),
}

impl Source {
    /// The same file, on another line. Sources without lines stay as they are.
    pub(crate) fn on_line(&self, line: u32) -> Self {
        match self {
            Self::File(path, _) => Self::File(path.clone(), line),
            Self::Project(path, _) => Self::Project(path.clone(), line),
            Self::Default | Self::Flag | Self::Env(_) | Self::EnvFile(..) => self.clone(),
        }
    }

    pub(crate) fn is_project(&self) -> bool {
        matches!(self, Self::Project(..))
    }

    /// Whether values are given as bare text (a variable or a flag) and get their type from the schema.
    pub(crate) fn is_text(&self) -> bool {
        self.is_mapped() || matches!(self, Self::Flag)
    }

    /// Whether the key comes from our own table of variables, not from the user.
    pub(crate) fn is_mapped(&self) -> bool {
        matches!(self, Self::Env(_) | Self::EnvFile(..))
    }

    pub(crate) fn origin(&self) -> Origin {
        match self {
            Self::Default => Origin::Default,
            Self::Flag => Origin::Flag,
            Self::Env(name) => Origin::Env(name.to_string()),
            Self::File(path, line) | Self::EnvFile(path, line) => Origin::File(path.to_path_buf(), *line),
            Self::Project(path, line) => Origin::Project(path.to_path_buf(), *line),
        }
    }
}

pub(crate) type Entries = IndexMap<String, Node>;

#[derive(Debug, Clone)]
pub(crate) enum Tree {
    /// Null, a boolean, a number or a text.
    Scalar(Value),
    List(Vec<Node>),
    Map(Entries),
}

#[derive(Debug, Clone)]
pub(crate) struct Node {
    pub(crate) tree: Tree,
    pub(crate) source: Source,
    /// What the user wrote, where that is not the value: the exact text of an unquoted scalar (`3.10` is a
    /// number, but a key that wants text wants `3.10`).
    pub(crate) written: Option<Box<str>>,
    /// The text before `${VAR}` was filled in: shown in place of the value, which may be a secret.
    pub(crate) template: Option<Box<str>>,
}

impl Node {
    pub(crate) fn new(tree: Tree, source: Source) -> Self {
        Self { tree, source, written: None, template: None }
    }

    pub(crate) fn map(source: Source) -> Self {
        Self::new(Tree::Map(Entries::new()), source)
    }

    pub(crate) fn text(text: &str, source: Source) -> Self {
        Self::new(Tree::Scalar(Value::from(text)), source)
    }

    pub(crate) fn from_value(value: &Value, source: &Source) -> Self {
        let tree = match value {
            Value::Array(items) => {
                Tree::List(items.iter().map(|item| Self::from_value(item, source)).collect())
            }
            Value::Object(entries) => Tree::Map(
                entries.iter().map(|(key, value)| (key.clone(), Self::from_value(value, source))).collect(),
            ),
            scalar => Tree::Scalar(scalar.clone()),
        };
        Self::new(tree, source.clone())
    }

    pub(crate) fn to_value(&self) -> Value {
        match &self.tree {
            Tree::Scalar(value) => value.clone(),
            Tree::List(items) => Value::Array(items.iter().map(Self::to_value).collect()),
            Tree::Map(entries) => {
                Value::Object(entries.iter().map(|(key, node)| (key.clone(), node.to_value())).collect())
            }
        }
    }

    pub(crate) fn is_null(&self) -> bool {
        matches!(self.tree, Tree::Scalar(Value::Null))
    }

    pub(crate) fn as_map(&self) -> Option<&Entries> {
        match &self.tree {
            Tree::Map(entries) => Some(entries),
            Tree::Scalar(_) | Tree::List(_) => None,
        }
    }

    pub(crate) fn as_map_mut(&mut self) -> Option<&mut Entries> {
        match &mut self.tree {
            Tree::Map(entries) => Some(entries),
            Tree::Scalar(_) | Tree::List(_) => None,
        }
    }

    pub(crate) fn as_list(&self) -> Option<&[Self]> {
        match &self.tree {
            Tree::List(items) => Some(items),
            Tree::Scalar(_) | Tree::Map(_) => None,
        }
    }

    /// The node at a path of keys.
    pub(crate) fn at(&self, path: &[&str]) -> Option<&Self> {
        path.iter().try_fold(self, |node, key| node.as_map()?.get(*key))
    }

    /// Takes the node at a path of keys out of the tree.
    pub(crate) fn take(&mut self, path: &[&str]) -> Option<Self> {
        let (last, above) = path.split_last()?;
        let parent = above.iter().try_fold(self, |node, key| node.as_map_mut()?.get_mut(*key))?;
        parent.as_map_mut()?.shift_remove(*last)
    }

    /// Puts a node at a path of keys, making the maps above it. Returns false when a value that is no map
    /// stands in the way.
    pub(crate) fn put(&mut self, path: &[&str], node: Self) -> bool {
        let Some((last, above)) = path.split_last() else {
            return false;
        };
        let mut current = self;
        for key in above {
            let Some(entries) = current.as_map_mut() else {
                return false;
            };
            current = entries.entry((*key).to_owned()).or_insert_with(|| Self::map(node.source.clone()));
        }
        let Some(entries) = current.as_map_mut() else {
            return false;
        };
        entries.insert((*last).to_owned(), node);
        true
    }

    /// Lays `upper` over this node: maps merge key by key, everything else is replaced.
    pub(crate) fn overlay(&mut self, upper: Self) {
        match (&mut self.tree, upper.tree) {
            (Tree::Map(below), Tree::Map(above)) => {
                for (key, node) in above {
                    match below.get_mut(&key) {
                        Some(found) => found.overlay(node),
                        None => {
                            below.insert(key, node);
                        }
                    }
                }
                self.source = upper.source;
            }
            (_, tree) => *self = Self { tree, ..upper },
        }
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn node(value: &Value, source: &Source) -> Node {
        Node::from_value(value, source)
    }

    #[test]
    fn maps_merge_deeply_and_all_else_is_replaced() {
        let mut below = node(&json!({"a": {"x": 1, "y": [1, 2]}, "b": 1, "c": {"d": 1}}), &Source::Default);
        below.overlay(node(&json!({"a": {"y": [3]}, "b": {"z": 2}, "c": 5, "e": null}), &Source::Flag));
        let merged = json!({"a": {"x": 1, "y": [3]}, "b": {"z": 2}, "c": 5, "e": null});
        assert_eq!(below.to_value(), merged);
        assert_eq!(below.at(&["a", "x"]).unwrap().source, Source::Default);
        assert_eq!(below.at(&["a", "y"]).unwrap().source, Source::Flag);
    }

    #[test]
    fn paths_are_put_and_taken() {
        let mut tree = Node::map(Source::Flag);
        assert!(tree.put(&["a", "b"], node(&json!(1), &Source::Flag)));
        assert!(!tree.put(&["a", "b", "c"], node(&json!(2), &Source::Flag)), "no way through a scalar");
        assert_eq!(tree.take(&["a", "b"]).unwrap().to_value(), json!(1));
        assert!(tree.take(&["a", "b"]).is_none());
    }
}
