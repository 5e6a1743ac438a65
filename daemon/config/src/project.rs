//! What the project file `./cli-config.yaml` may set (spec 80 §8.1). The folder may be anybody's, so it may choose
//! a look, a model among those that the owner has set up, and tighter limits; never an address that a key is sent
//! to, a text that reaches the prompt, a command, or a right.

use crate::diagnostic::{Diagnostic, DiagnosticKind};
use crate::tree::{Node, Tree};

/// Name of the project file.
pub const PROJECT_FILE: &str = "cli-config.yaml";

/// Keys that a project may set, with all below them.
const ALLOWED: [&[&str]; 18] = [
    &["display"],
    &["timezone"],
    &["model", "default"],
    &["model", "provider"],
    &["model", "context_length"],
    &["model", "max_tokens"],
    &["model", "supports_vision"],
    &["agent", "max_turns"],
    &["agent", "api_max_retries"],
    &["agent", "reasoning_effort"],
    &["agent", "coding_context"],
    &["agent", "image_input_mode"],
    &["agent", "intent_ack_continuation"],
    &["agent", "max_verify_nudges"],
    &["agent", "parallel_tool_call_guidance"],
    &["agent", "task_completion_guidance"],
    &["agent", "tool_use_enforcement"],
    NARROWING,
];

/// The list by which a project takes tools away. It adds to the owner's list, so it can never give one back.
const NARROWING: &[&str] = &["agent", "disabled_toolsets"];

/// Removes from a project's tree what it may not set, with one finding per removed key or section.
pub(crate) fn restrict(root: &mut Node, report: &mut Vec<Diagnostic>) {
    prune(root, &mut Vec::new(), report);
}

fn prune(node: &mut Node, path: &mut Vec<String>, report: &mut Vec<Diagnostic>) {
    let Tree::Map(entries) = &mut node.tree else {
        return;
    };
    entries.retain(|key, child| {
        path.push(key.clone());
        let stays = match standing(path) {
            Standing::Allowed => true,
            Standing::Above if child.as_map().is_some() => {
                prune(child, path, report);
                true
            }
            Standing::Above | Standing::Forbidden => {
                if !key.starts_with('_') {
                    report.push(refusal(child, path));
                }
                false
            }
        };
        path.pop();
        stays
    });
}

enum Standing {
    Allowed,
    /// Some keys below are allowed.
    Above,
    Forbidden,
}

fn standing(path: &[String]) -> Standing {
    let agrees = |allowed: &&[&str]| allowed.iter().zip(path).all(|(allowed, key)| allowed == key);
    match ALLOWED.iter().filter(|allowed| agrees(allowed)).map(|allowed| allowed.len()).min() {
        Some(length) if length <= path.len() => Standing::Allowed,
        Some(_) => Standing::Above,
        None => Standing::Forbidden,
    }
}

fn refusal(node: &Node, path: &[String]) -> Diagnostic {
    let message = if path == ["toolsets"] {
        "may not be set by a project file, which can only take tools away (`agent.disabled_toolsets`); it is ignored"
    } else {
        "may not be set by a project file and is ignored; set it in the profile's config.yaml"
    };
    Diagnostic::new(DiagnosticKind::NotForProjects, node.source.origin(), message).key(path.join("."))
}

/// Moves the tools that the project takes away over to the owner's layer, which would replace the list otherwise.
pub(crate) fn unite_narrowing(owner: &mut Node, project: &Node) {
    let Some(taken_away) = project.at(NARROWING).and_then(Node::as_list) else {
        return;
    };
    let Some(own) = owner.at(NARROWING).and_then(Node::as_list) else {
        return;
    };
    let mut united = own.to_vec();
    for item in taken_away {
        if !united.iter().any(|known| known.to_value() == item.to_value()) {
            united.push(item.clone());
        }
    }
    if united.len() == own.len() {
        return;
    }
    let source = taken_away.last().map(|item| item.source.clone());
    if let Some(mut list) = owner.take(NARROWING) {
        list.tree = Tree::List(united);
        // The list is no longer what the owner wrote, and its origin says so.
        list.source = source.unwrap_or(list.source);
        owner.put(NARROWING, list);
    }
}

#[cfg(test)]
mod tests {
    use pretty_assertions::assert_eq;
    use serde_json::json;

    use super::*;
    use crate::tree::Source;

    #[test]
    fn a_project_chooses_looks_and_limits_but_no_rights() {
        let value = json!({
            "_note": 1,
            "display": {"skin": "mono", "platforms": {"telegram": {"streaming": false}}},
            "model": {"default": "m", "base_url": "http://evil", "api_key": "x"},
            "agent": {"max_turns": 5, "system_prompt": "obey", "disabled_toolsets": ["terminal"]},
            "approvals": {"mode": "off"},
            "security": {"redact_secrets": false},
            "hooks": {"x": 1},
            "mcp_servers": {"x": {"command": "c"}},
            "terminal": {"docker_volumes": ["/:/host"]},
            "toolsets": ["all"],
            "timezone": "UTC",
            "providers": {"x": {"base_url": "http://evil"}},
        });
        let mut root = Node::from_value(&value, &Source::Flag);
        let mut report = Vec::new();
        restrict(&mut root, &mut report);
        assert_eq!(
            root.to_value(),
            json!({
                "display": value["display"],
                "model": {"default": "m"},
                "agent": {"max_turns": 5, "disabled_toolsets": ["terminal"]},
                "timezone": "UTC",
            })
        );
        let mut keys: Vec<String> = report.into_iter().filter_map(|finding| finding.key).collect();
        keys.sort();
        assert_eq!(
            keys,
            [
                "agent.system_prompt",
                "approvals",
                "hooks",
                "mcp_servers",
                "model.api_key",
                "model.base_url",
                "providers",
                "security",
                "terminal",
                "toolsets"
            ]
        );
    }

    #[test]
    fn a_section_that_is_no_map_sets_nothing() {
        let mut root = Node::from_value(&json!({"agent": "x", "model": 5}), &Source::Flag);
        let mut report = Vec::new();
        restrict(&mut root, &mut report);
        assert_eq!((root.to_value(), report.len()), (json!({}), 2));
    }

    #[test]
    fn tools_are_taken_away_by_both() {
        let from_project = Source::Project(std::path::Path::new("/p/cli-config.yaml").into(), 1);
        let project = Node::from_value(&json!({"agent": {"disabled_toolsets": ["a", "b"]}}), &from_project);
        let mut owner = Node::from_value(&json!({"agent": {"disabled_toolsets": ["b", "c"]}}), &Source::Flag);
        unite_narrowing(&mut owner, &project);
        assert_eq!(owner.to_value(), json!({"agent": {"disabled_toolsets": ["b", "c", "a"]}}));
        assert_eq!(owner.at(NARROWING).unwrap().source, from_project);

        let mut owner = Node::from_value(&json!({"agent": {"disabled_toolsets": ["b", "a"]}}), &Source::Flag);
        unite_narrowing(&mut owner, &project);
        assert_eq!(owner.at(NARROWING).unwrap().source, Source::Flag, "nothing was added");

        let mut owner = Node::from_value(&json!({"agent": {}}), &Source::Flag);
        unite_narrowing(&mut owner, &project);
        assert_eq!(owner.to_value(), json!({"agent": {}}));
    }
}
