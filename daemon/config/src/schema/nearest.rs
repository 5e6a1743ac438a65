//! Finds the key that was probably meant.

use super::{Schema, View};

/// Deepest place that is searched for a key of the same name.
const MAX_DEPTH: usize = 6;

/// The known name that is nearest to `unknown`, if one is near enough: a third of its letters may differ.
pub(super) fn name<'n>(unknown: &str, known: &[&'n str]) -> Option<&'n str> {
    let lower = unknown.to_lowercase();
    let allowed = (unknown.chars().count() / 3).max(1);
    let distance = |name: &str| strsim::damerau_levenshtein(&lower, name);
    known.iter().copied().filter(|name| distance(name) <= allowed).min_by_key(|name| distance(name))
}

impl Schema {
    /// The dotted place of a key of exactly this name, when it stands in one place only: a key that was put
    /// into the wrong section.
    pub(super) fn same_name_elsewhere(&self, unknown: &str) -> Option<String> {
        let mut found = Vec::new();
        search(&self.view(), "", unknown, 0, &mut found);
        match found.as_slice() {
            [_] => found.pop(),
            _ => None,
        }
    }
}

fn search(view: &View<'_>, path: &str, unknown: &str, depth: usize, found: &mut Vec<String>) {
    for name in view.property_names() {
        let here = if path.is_empty() { name.to_owned() } else { format!("{path}.{name}") };
        if name == unknown {
            found.push(here.clone());
        }
        if depth < MAX_DEPTH
            && let Some(property) = view.property(name)
        {
            search(&property, &here, unknown, depth + 1, found);
        }
    }
}
