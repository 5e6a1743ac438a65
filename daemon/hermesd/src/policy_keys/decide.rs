//! One decision over all policy keys: what holds, what waits, and what is accepted from now on.

use std::collections::BTreeMap;

use hermes_config::Settings;
use hermes_server::WaitingEdit;
use serde_json::Value;

use super::compare::{accepted_form, default_form, in_force, shown};
use super::table::{keys, path, value, wider};

/// Accepted values by key, in their accepted form.
pub(super) type Accepted = BTreeMap<String, Option<Value>>;

/// What comes of a file's settings under what was accepted.
#[derive(Debug, Clone)]
pub(super) struct Decision {
    /// The file's settings, with accepted values where the file is wider.
    pub(super) settings: Settings,
    /// Lowered where the file is narrower.
    pub(super) accepted: Accepted,
    pub(super) waiting: Vec<WaitingEdit>,
}

/// Everything as it stands in the file.
pub(super) fn accept_all(file: &Settings) -> Accepted {
    keys(file, std::iter::empty())
        .into_iter()
        .map(|key| {
            let accepted = wider(&key).and_then(|wider| accepted_form(wider, value(file, &key)));
            (key, accepted)
        })
        .collect()
}

/// The built-in defaults of everything.
pub(super) fn accept_defaults(file: &Settings) -> Accepted {
    keys(file, std::iter::empty())
        .into_iter()
        .map(|key| {
            let accepted = wider(&key).and_then(|wider| default_form(&key, wider));
            (key, accepted)
        })
        .collect()
}

/// Holds the file against what was accepted. A key that nobody has decided about yet is at its default.
pub(super) fn decide(file: &Settings, accepted: &Accepted) -> Decision {
    let mut next = Accepted::new();
    let mut waiting = Vec::new();
    let mut changes: Vec<(String, Option<Value>)> = Vec::new();
    for key in keys(file, accepted.keys()) {
        let Some(direction) = wider(&key) else { continue };
        let before = match accepted.get(&key) {
            Some(known) => known.clone(),
            None => default_form(&key, direction),
        };
        let stated = value(file, &key);
        let holds = in_force(direction, before.as_ref(), stated);
        next.insert(key.clone(), accepted_form(direction, holds.as_ref()));
        if holds.as_ref() != stated {
            waiting.push(WaitingEdit {
                key: key.clone(),
                in_force: shown(&key, direction, holds.as_ref()),
                in_file: shown(&key, direction, stated),
            });
            changes.push((key, holds));
        }
    }
    let paths: Vec<(Vec<&str>, Option<&Value>)> =
        changes.iter().map(|(key, value)| (path(key), value.as_ref())).collect();
    let settings = file.overridden(paths.iter().map(|(path, value)| (path.as_slice(), *value)));
    Decision { settings, accepted: next, waiting }
}

/// Accepts what the file says of some keys.
pub(super) fn accept(file: &Settings, accepted: &Accepted, which: &[String]) -> Accepted {
    let mut next = accepted.clone();
    for key in which {
        if let Some(direction) = wider(key) {
            next.insert(key.clone(), accepted_form(direction, value(file, key)));
        }
    }
    next
}

/// The policy keys that a written key touches: itself, those below it, and the one that it is part of.
pub(super) fn touched(file: &Settings, accepted: &Accepted, written: &str) -> Vec<String> {
    let below = |upper: &str, lower: &str| {
        lower.strip_prefix(upper).is_some_and(|rest| rest.is_empty() || rest.starts_with(['.', '[']))
    };
    keys(file, accepted.keys()).into_iter().filter(|key| below(key, written) || below(written, key)).collect()
}

#[cfg(test)]
mod tests {
    use hermes_config::{Home, LoadInput, load};
    use pretty_assertions::assert_eq;
    use serde_json::json;

    use super::*;

    fn settings(yaml: &str) -> Settings {
        let folder = tempfile::tempdir().unwrap();
        std::fs::write(folder.path().join("config.yaml"), yaml).unwrap();
        load(&LoadInput::new(&Home::at(folder.path().to_path_buf()))).unwrap().settings
    }

    fn names(decision: &Decision) -> Vec<&str> {
        decision.waiting.iter().map(|edit| edit.key.as_str()).collect()
    }

    #[test]
    fn a_wider_edit_waits_and_the_rest_of_the_file_holds() {
        let accepted = accept_all(&settings(""));
        let file = settings(
            "approvals: {mode: 'off', deny: [x], timeout: 5}\ncommand_allowlist: ['*']\nagent: {max_turns: 3}\n\
             security: {redact_secrets: false}\nhooks: {pre_tool_call: [{command: evil}]}\n\
             mcp_servers: {s: {command: evil}}\nterminal: {env_passthrough: [TOKEN]}\n",
        );
        let decision = decide(&file, &accepted);
        assert_eq!(
            names(&decision),
            [
                "approvals.mode",
                "command_allowlist",
                "hooks",
                "mcp_servers",
                "security.redact_secrets",
                "terminal.env_passthrough"
            ]
        );
        let get = |key: &str| decision.settings.get(key).cloned();
        assert_eq!(get("approvals.mode"), Some(json!("manual")));
        assert_eq!(get("approvals.deny"), Some(json!(["x"])), "a narrower list holds at once");
        assert_eq!((get("approvals.timeout"), get("agent.max_turns")), (Some(json!(5)), Some(json!(3))));
        assert_eq!(get("security.redact_secrets"), Some(json!(true)));
        assert_eq!((get("command_allowlist"), get("mcp_servers")), (Some(json!([])), Some(json!({}))));
        assert_eq!((get("hooks"), get("terminal.env_passthrough")), (None, Some(json!([]))));
        // The deny rule is part of the baseline now: taking it out again waits.
        let decision = decide(&settings(""), &decision.accepted);
        assert_eq!(names(&decision), ["approvals.deny"]);
        assert_eq!(decision.settings.get("approvals.deny"), Some(&json!(["x"])));
    }

    #[test]
    fn what_was_accepted_holds_until_the_file_says_otherwise() {
        let off = settings("approvals: {mode: 'off'}\n");
        let accepted = accept(&off, &accept_all(&settings("")), &["approvals.mode".to_owned()]);
        assert!(decide(&off, &accepted).waiting.is_empty());
        let back = decide(&settings(""), &accepted);
        assert!(back.waiting.is_empty());
        assert_eq!(names(&decide(&off, &back.accepted)), ["approvals.mode"], "narrowing is for good");
    }

    #[test]
    fn unknown_keys_of_policy_sections_wait_and_others_do_not() {
        let accepted = accept_all(&settings(""));
        let decision = decide(&settings("security: {new_hole: true}\nagent: {new: 1}\n"), &accepted);
        assert_eq!(names(&decision), ["security.new_hole"]);
        assert_eq!(decision.settings.get("security.new_hole"), None);
    }

    #[test]
    fn a_lost_baseline_is_the_defaults() {
        let file = settings("approvals: {mode: 'off'}\n");
        assert_eq!(names(&decide(&file, &accept_defaults(&file))), ["approvals.mode"]);
        assert!(decide(&file, &accept_all(&file)).waiting.is_empty());
    }

    #[test]
    fn a_written_key_touches_its_policy_keys() {
        let file = settings("");
        let touched = |key: &str| touched(&file, &Accepted::new(), key);
        assert_eq!(touched("approvals.mode"), ["approvals.mode"]);
        assert!(touched("approvals").contains(&"approvals.deny".to_owned()));
        assert_eq!(touched("mcp_servers.x.command"), ["mcp_servers"]);
        assert_eq!(touched("approvals.deny[0]"), ["approvals.deny"]);
        assert_eq!(touched("approvals.timeout"), [""; 0]);
        assert_eq!(touched("agent.max_turns"), [""; 0]);
        assert_eq!(touched("command_allowlistx"), [""; 0]);
    }
}
