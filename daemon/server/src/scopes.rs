//! Who may call what: one static table from method to scope (contract §7).
//!
//! A method that is not listed is refused, so a new rpc is unreachable until someone decides here.

use hermes_core::Scope;

/// The lowest scope that may call each method. Some methods ask for more by what they carry:
/// `yolo` and answers to approvals need `approve` (see `service`).
const METHODS: &[(&str, Scope)] = &[
    ("/hermes.v1.Control/Hello", Scope::Read),
    ("/hermes.v1.Control/Status", Scope::Read),
    ("/hermes.v1.Control/Watch", Scope::Read),
    // The daemon's log tells of every session, and settings of every secret's place.
    ("/hermes.v1.Control/Logs", Scope::Admin),
    ("/hermes.v1.Control/ConfigGet", Scope::Admin),
    ("/hermes.v1.Control/ConfigShow", Scope::Admin),
    ("/hermes.v1.Control/Shutdown", Scope::Admin),
    ("/hermes.v1.Sessions/Create", Scope::Chat),
    ("/hermes.v1.Sessions/Open", Scope::Chat),
    ("/hermes.v1.Sessions/List", Scope::Read),
    ("/hermes.v1.Sessions/Get", Scope::Read),
    ("/hermes.v1.Sessions/Search", Scope::Read),
    ("/hermes.v1.Sessions/Attach", Scope::Read),
    ("/hermes.v1.Turns/Submit", Scope::Chat),
    ("/hermes.v1.Turns/Steer", Scope::Chat),
    ("/hermes.v1.Turns/Interrupt", Scope::Chat),
    ("/hermes.v1.Turns/Get", Scope::Read),
    ("/hermes.v1.Prompts/Answer", Scope::Chat),
    ("/hermes.v1.Prompts/ListPending", Scope::Read),
    // What the agent may do is the owner's alone.
    ("/hermes.v1.Policy/ListApprovals", Scope::Admin),
    ("/hermes.v1.Policy/RevokeApproval", Scope::Admin),
    ("/hermes.v1.Policy/ListWaitingEdits", Scope::Admin),
    ("/hermes.v1.Policy/AcceptEdits", Scope::Admin),
    ("/hermes.v1.Policy/SetConfig", Scope::Admin),
    ("/hermes.v1.Tools/ListSnapshots", Scope::Read),
    ("/hermes.v1.Tools/DiffSnapshot", Scope::Read),
    ("/hermes.v1.Tools/RestoreSnapshot", Scope::Approve),
    ("/hermes.v1.Tools/ListProcesses", Scope::Read),
];

/// The scope that a method needs, by its path (`/hermes.v1.Service/Method`); `None` for a method
/// that is not in the table.
pub fn scope_of(path: &str) -> Option<Scope> {
    METHODS.iter().find(|(listed, _)| *listed == path).map(|(_, scope)| *scope)
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;
    use std::path::Path;

    use super::*;

    /// The paths of all rpcs in the contract's own files.
    fn contract() -> BTreeSet<String> {
        let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../proto/proto");
        let files: Vec<_> = std::fs::read_dir(root.join("hermes/v1"))
            .unwrap()
            .map(|entry| entry.unwrap().path())
            .filter(|path| path.extension().is_some_and(|ext| ext == "proto"))
            .collect();
        let descriptors = protox::compile(files, [root]).unwrap();
        descriptors
            .file
            .iter()
            .flat_map(|file| {
                file.service.iter().flat_map(move |service| {
                    service
                        .method
                        .iter()
                        .map(move |rpc| format!("/{}.{}/{}", file.package(), service.name(), rpc.name()))
                })
            })
            .collect()
    }

    #[test]
    fn every_rpc_of_the_contract_has_a_scope_and_nothing_else_is_listed() {
        let listed: BTreeSet<String> = METHODS.iter().map(|(path, _)| (*path).to_owned()).collect();
        assert_eq!(listed.len(), METHODS.len(), "a method is listed twice");
        assert_eq!(listed, contract());
    }

    #[test]
    fn a_method_outside_the_table_has_no_scope() {
        assert_eq!(scope_of("/hermes.v1.Sessions/Delete"), None);
        assert_eq!(scope_of("/hermes.v1.Control/Hello/"), None);
        assert_eq!(scope_of("/"), None);
    }

    #[test]
    fn what_ends_the_daemon_needs_admin() {
        assert_eq!(scope_of("/hermes.v1.Control/Shutdown"), Some(Scope::Admin));
    }
}
