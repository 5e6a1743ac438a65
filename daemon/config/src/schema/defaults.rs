//! The built-in defaults as a tree: the lowest layer of the settings.

use super::{Schema, View};
use crate::tree::{Node, Source};

/// Deepest nesting of sections; a schema that contains itself ends here.
const MAX_DEPTH: usize = 12;

impl Schema {
    /// All defaults that the sections' structs give. A default that they do not write out (a private enum, say)
    /// is missing here and holds all the same when the section is read.
    pub(crate) fn defaults(&self) -> Node {
        collect(&self.view(), 0).unwrap_or_else(|| Node::map(Source::Default))
    }
}

fn collect(view: &View<'_>, depth: usize) -> Option<Node> {
    let own = view.default_value().map(|value| Node::from_value(value, &Source::Default));
    // An optional section that is absent by default has no defaults to show: its keys count only once it is there.
    let absent = own.is_none() && view.allows_null();
    if !view.has_named_keys() || absent || depth >= MAX_DEPTH {
        return own;
    }
    let mut node = own.unwrap_or_else(|| Node::map(Source::Default));
    let entries = node.as_map_mut()?;
    for name in view.property_names() {
        let Some(below) = view.property(name).and_then(|property| collect(&property, depth + 1)) else {
            continue;
        };
        match entries.get_mut(name) {
            None => {
                entries.insert(name.to_owned(), below);
            }
            Some(found) => {
                // The outer default knows better; the inner one only fills gaps.
                let mut filled = below;
                filled.overlay(found.clone());
                *found = filled;
            }
        }
    }
    if entries.is_empty() { None } else { Some(node) }
}
