//! Older layouts of `config.yaml` that are read as the present one (spec 80 §8.4), and short forms that are part
//! of it. The file itself is never rewritten here.

use serde_json::Value;

use crate::diagnostic::{Diagnostic, DiagnosticKind, Severity};
use crate::tree::{Entries, Node, Tree};

/// A key that moved: where it stood, and where it stands.
const MOVED: [(&[&str], &[&str]); 7] = [
    (&["model", "model"], &["model", "default"]),
    (&["model", "api_base"], &["model", "base_url"]),
    (&["provider"], &["model", "provider"]),
    (&["base_url"], &["model", "base_url"]),
    (&["max_turns"], &["agent", "max_turns"]),
    (&["terminal", "env_type"], &["terminal", "backend"]),
    (&["mcp_discovery_timeout"], &["mcp", "session_open_wait"]),
];

/// Other names for the keys of one provider. These are not old; they are how other programs call the same thing.
const PROVIDER_ALIASES: [(&str, &str); 5] = [
    ("url", "base_url"),
    ("api", "base_url"),
    ("api_base", "base_url"),
    ("transport", "api_mode"),
    ("model", "default_model"),
];

/// Brings `root` into the present layout.
pub(crate) fn modernise(root: &mut Node, report: &mut Vec<Diagnostic>) {
    model_as_text(root);
    for (from, to) in MOVED {
        let is_scalar = root.at(from).is_some_and(|node| matches!(node.tree, Tree::Scalar(_)));
        if is_scalar && let Some(node) = root.take(from) {
            relocate(root, node, &from.join("."), to, report);
        }
    }
    named_list_to_map(root, &["custom_providers"], &["providers"], report);
    named_list_to_map(root, &["mcp", "servers"], &["mcp_servers"], report);
    fallback_model(root, report);
    provider_aliases(root);
}

/// `model: gpt-5` is short for `model: {default: gpt-5}`.
fn model_as_text(root: &mut Node) {
    let Some(model) = root.as_map_mut().and_then(|entries| entries.get_mut("model")) else {
        return;
    };
    match &model.tree {
        Tree::Scalar(Value::String(text)) if text.is_empty() => model.tree = Tree::Map(Entries::new()),
        Tree::Scalar(Value::String(_) | Value::Number(_)) => {
            let source = model.source.clone();
            let default = std::mem::replace(model, Node::map(source));
            model.put(&["default"], default);
        }
        Tree::Scalar(_) | Tree::List(_) | Tree::Map(_) => {}
    }
}

/// Puts `node` at its present place, unless the user has set that too.
fn relocate(root: &mut Node, node: Node, old: &str, to: &[&str], report: &mut Vec<Diagnostic>) {
    let new = to.join(".");
    let origin = node.source.origin();
    let mut note = |message: String, severity| {
        let finding = Diagnostic::new(DiagnosticKind::OldLayout, origin.clone(), message);
        report.push(finding.key(old).severity(severity));
    };
    // An empty value in the old place means nothing.
    if matches!(&node.tree, Tree::Scalar(Value::Null))
        || matches!(&node.tree, Tree::Scalar(Value::String(text)) if text.is_empty())
    {
        return;
    }
    let taken = root.at(to).is_some_and(|found| !found.is_null());
    if taken {
        note(format!("is ignored, because its newer form `{new}` is set too"), Severity::Warning);
    } else if root.put(to, node) {
        note(format!("is an older form; write it as `{new}`"), Severity::Info);
    } else {
        note(format!("is ignored, because `{new}` has no place under what is set there"), Severity::Warning);
    }
}

/// Turns a list of maps with a `name` each into entries of a map.
fn named_list_to_map(root: &mut Node, from: &[&str], to: &[&str], report: &mut Vec<Diagnostic>) {
    let is_named = |item: &Node| item.at(&["name"]).is_some_and(|name| name.to_value().is_string());
    let convertible = root.at(from).and_then(Node::as_list).is_some_and(|items| items.iter().all(is_named));
    if !convertible {
        return;
    }
    let Some(Node { tree: Tree::List(items), source, .. }) = root.take(from) else {
        return;
    };
    for mut item in items {
        let name = item.take(&["name"]).map(|name| name.to_value());
        if let Some(Value::String(name)) = name {
            let path: Vec<&str> = to.iter().copied().chain([name.as_str()]).collect();
            if root.at(&path).is_none() {
                root.put(&path, item);
            }
        }
    }
    let message = format!("is an older form; write its items as `{}.NAME`", to.join("."));
    let finding = Diagnostic::new(DiagnosticKind::OldLayout, source.origin(), message);
    report.push(finding.key(from.join(".")).severity(Severity::Info));
}

/// `fallback_model` was one map or a list; now it is the list `fallback_providers`.
fn fallback_model(root: &mut Node, report: &mut Vec<Diagnostic>) {
    let Some(mut node) = root.take(&["fallback_model"]) else {
        return;
    };
    match &node.tree {
        Tree::Map(entries) if entries.is_empty() => return,
        Tree::Map(_) => {
            let source = node.source.clone();
            node = Node::new(Tree::List(vec![node]), source);
        }
        Tree::List(items) if items.is_empty() => return,
        Tree::List(_) | Tree::Scalar(_) => {}
    }
    relocate(root, node, "fallback_model", &["fallback_providers"], report);
}

fn provider_aliases(root: &mut Node) {
    let providers =
        root.as_map_mut().and_then(|entries| entries.get_mut("providers")).and_then(Node::as_map_mut);
    for provider in providers.into_iter().flat_map(Entries::values_mut) {
        for (alias, name) in PROVIDER_ALIASES {
            if provider.at(&[name]).is_none()
                && let Some(node) = provider.take(&[alias])
            {
                provider.put(&[name], node);
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use pretty_assertions::assert_eq;
    use serde_json::json;

    use super::*;
    use crate::tree::Source;

    fn modern(value: &Value) -> (Value, Vec<String>) {
        let mut root = Node::from_value(value, &Source::Flag);
        let mut report = Vec::new();
        modernise(&mut root, &mut report);
        (root.to_value(), report.into_iter().filter_map(|finding| finding.key).collect())
    }

    #[test]
    fn old_layouts_read_as_the_present_one() {
        for (old, new, named) in [
            (json!({"model": "m"}), json!({"model": {"default": "m"}}), vec![]),
            (json!({"model": ""}), json!({"model": {}}), vec![]),
            (json!({"model": {"model": "m"}}), json!({"model": {"default": "m"}}), vec!["model.model"]),
            (
                json!({"model": "m", "provider": "custom", "base_url": "http://h"}),
                json!({"model": {"default": "m", "provider": "custom", "base_url": "http://h"}}),
                vec!["provider", "base_url"],
            ),
            (json!({"max_turns": 5}), json!({"agent": {"max_turns": 5}}), vec!["max_turns"]),
            (
                json!({"terminal": {"env_type": "docker"}}),
                json!({"terminal": {"backend": "docker"}}),
                vec!["terminal.env_type"],
            ),
            (
                json!({"custom_providers": [{"name": "x", "url": "u"}]}),
                json!({"providers": {"x": {"base_url": "u"}}}),
                vec!["custom_providers"],
            ),
            (
                json!({"fallback_model": {"model": "m"}}),
                json!({"fallback_providers": [{"model": "m"}]}),
                vec!["fallback_model"],
            ),
            (
                json!({"mcp": {"servers": [{"name": "s", "command": "c"}]}}),
                json!({"mcp": {}, "mcp_servers": {"s": {"command": "c"}}}),
                vec!["mcp.servers"],
            ),
        ] {
            let (found, keys) = modern(&old);
            assert_eq!((&found, keys.iter().map(String::as_str).collect::<Vec<_>>()), (&new, named), "{old}");
        }
    }

    #[test]
    fn the_present_layout_is_left_alone_and_wins() {
        let present =
            json!({"model": {"default": "m", "provider": "p"}, "agent": {"max_turns": 9}, "providers": {}});
        assert_eq!(modern(&present), (present.clone(), vec![]));
        let both = json!({"max_turns": 5, "agent": {"max_turns": 9}});
        assert_eq!(modern(&both), (json!({"agent": {"max_turns": 9}}), vec!["max_turns".to_owned()]));
        assert_eq!(modern(&json!({"provider": ""})).0, json!({}));
    }

    #[test]
    fn provider_aliases_take_no_present_key_away() {
        let (found, _) =
            modern(&json!({"providers": {"x": {"base_url": "u", "api": "v", "model": "m"}, "y": 5}}));
        assert_eq!(found["providers"]["x"], json!({"base_url": "u", "api": "v", "default_model": "m"}));
    }
}
