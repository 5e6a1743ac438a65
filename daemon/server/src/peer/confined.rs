//! What a client may do that the agent's own tools started: work in sessions that such clients created, one level
//! deep, with nobody to approve anything (contract §7). The agent cannot answer itself.

use std::collections::HashSet;
use std::sync::{Arc, Mutex, PoisonError};

use hermes_core::SessionId;
use tonic::Status;

use super::Grant;

/// The calls that a confined client may make at all; each looks at the session it is about. Everything else is
/// refused, whatever its scope.
const METHODS: [&str; 14] = [
    "/hermes.v1.Control/Hello",
    "/hermes.v1.Control/Status",
    "/hermes.v1.Control/Watch",
    "/hermes.v1.Sessions/Create",
    "/hermes.v1.Sessions/Open",
    "/hermes.v1.Sessions/List",
    "/hermes.v1.Sessions/Get",
    "/hermes.v1.Sessions/Search",
    "/hermes.v1.Sessions/Attach",
    "/hermes.v1.Turns/Submit",
    "/hermes.v1.Turns/Steer",
    "/hermes.v1.Turns/Interrupt",
    "/hermes.v1.Turns/Get",
    "/hermes.v1.Prompts/ListPending",
];

/// What the others would do, in words for a person or a model.
const WORDS: [(&str, &str); 8] = [
    ("/hermes.v1.Prompts/Answer", "answer questions that are put to the user"),
    ("/hermes.v1.Control/Shutdown", "stop or restart the daemon"),
    ("/hermes.v1.Control/Logs", "read the daemon's log"),
    ("/hermes.v1.Control/Config", "read the settings"),
    ("/hermes.v1.Policy/SetConfig", "change the settings"),
    ("/hermes.v1.Policy/", "see or change what the agent may do"),
    ("/hermes.v1.Tools/RestoreSnapshot", "take back changes of files"),
    ("options.yolo", "switch approvals off"),
];

/// The name of a session that is not known.
const UNKNOWN: &str = "unknown";

/// A confined connection.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Confinement {
    /// The sessions that its chain names, nearest ancestor first.
    sessions: Vec<String>,
}

impl Confinement {
    pub(crate) fn new(sessions: Vec<String>) -> Self {
        Self { sessions }
    }

    /// The session whose tool started it, as far as that can be trusted.
    pub(crate) fn of(&self) -> &str {
        self.sessions.last().map_or(UNKNOWN, String::as_str)
    }
}

/// Says no to a confined client. `what` is a method's path, or the words for what it would do.
pub(crate) fn refusal(what: &str) -> Status {
    let words = WORDS.iter().find(|(method, _)| what.starts_with(method)).map_or(what, |(_, words)| *words);
    Status::permission_denied(format!(
        "this client was started by the agent's own tools: it may not {words}. It works only in sessions that it \
         created, one level deep, without approvals. The user can do this from a terminal of their own."
    ))
}

/// Holds a method against what confined clients may call.
pub(crate) fn admit(grant: &Grant, path: &str) -> Result<(), Status> {
    match grant.confined {
        Some(_) if !METHODS.contains(&path) => Err(refusal(path)),
        _ => Ok(()),
    }
}

/// The sessions that confined clients created since the daemon started. A cheap clone.
#[derive(Debug, Clone, Default)]
pub(crate) struct ConfinedSessions(Arc<Mutex<HashSet<SessionId>>>);

impl ConfinedSessions {
    /// Whether a client may open a session. A confined one must say, by the marks in its chain, for which session
    /// it works, and that session must be a person's.
    pub(crate) fn may_create(&self, grant: &Grant) -> Result<(), Status> {
        let Some(confinement) = &grant.confined else { return Ok(()) };
        if confinement.sessions.is_empty() {
            return Err(refusal("start a session, since it hides which session it works for"));
        }
        let known = self.lock();
        if confinement.sessions.iter().any(|of| known.iter().any(|id| id.as_str() == of)) {
            return Err(refusal("start a session, since it works for one that the agent itself started"));
        }
        Ok(())
    }

    /// Notes what a client has created.
    pub(crate) fn created(&self, grant: &Grant, id: &SessionId) {
        if grant.confined.is_some() {
            self.lock().insert(id.clone());
        }
    }

    /// Whether a client may touch a session, in the words of the refusal.
    pub(crate) fn check(&self, grant: &Grant, id: &SessionId) -> Result<(), Status> {
        if self.shows(grant, id) {
            return Ok(());
        }
        Err(refusal(&format!("use session {id}, which is not its own")))
    }

    /// The session that a reference names, where only the full id of an own one will do: a search by title or by
    /// the beginning of an id would tell of others.
    pub(crate) fn check_reference(&self, grant: &Grant, reference: &str) -> Result<(), Status> {
        if grant.confined.is_none() {
            return Ok(());
        }
        match SessionId::parse(reference.trim()) {
            Ok(id) => self.check(grant, &id),
            Err(_) => Err(refusal("look for sessions of others; give the full id of one that it created")),
        }
    }

    /// Whether a client may know of a session.
    pub(crate) fn shows(&self, grant: &Grant, id: &SessionId) -> bool {
        grant.confined.is_none() || self.holds(id)
    }

    /// Whether a confined client created the session: nobody answers questions there.
    pub(crate) fn holds(&self, id: &SessionId) -> bool {
        self.lock().contains(id)
    }

    fn lock(&self) -> std::sync::MutexGuard<'_, HashSet<SessionId>> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

#[cfg(test)]
mod tests {
    use hermes_core::{Principal, Scope};

    use super::*;
    use crate::scopes::scope_of;

    const MINE: &str = "20260101_000000_00000001";
    const OTHER: &str = "20260101_000000_00000002";

    fn id(text: &str) -> SessionId {
        SessionId::parse(text).unwrap()
    }

    fn child(sessions: &[&str]) -> Grant {
        let confinement = Confinement::new(sessions.iter().map(|text| (*text).to_owned()).collect());
        let principal = Principal::Child { of: confinement.of().to_owned() };
        Grant { scope: Scope::Chat, principal, confined: Some(confinement) }
    }

    #[test]
    fn only_calls_that_look_at_their_session_are_let_through() {
        for path in METHODS {
            assert!(scope_of(path).is_some_and(|scope| scope <= Scope::Chat), "{path}");
            assert!(admit(&child(&["s"]), path).is_ok());
        }
        for (path, words) in [
            ("/hermes.v1.Prompts/Answer", "may not answer questions"),
            ("/hermes.v1.Control/Shutdown", "may not stop or restart the daemon"),
            ("/hermes.v1.Policy/SetConfig", "may not change the settings"),
            ("/hermes.v1.Policy/ListApprovals", "may not see or change what the agent may do"),
            ("/hermes.v1.Tools/ListProcesses", "/hermes.v1.Tools/ListProcesses"),
        ] {
            let refused = admit(&child(&["s"]), path).unwrap_err();
            assert!(refused.message().contains(words), "{path}: {refused}");
            assert!(refused.message().starts_with("this client was started by the agent's own tools"));
            assert!(admit(&Grant::owner(), path).is_ok());
        }
    }

    #[test]
    fn a_child_touches_what_children_created_and_nothing_else() {
        let sessions = ConfinedSessions::default();
        let child = child(&[OTHER]);
        sessions.created(&child, &id(MINE));
        sessions.created(&Grant::owner(), &id(OTHER));
        assert!(sessions.check(&child, &id(MINE)).is_ok());
        assert!(sessions.check(&child, &id(OTHER)).unwrap_err().message().contains(OTHER));
        assert!(sessions.check(&Grant::owner(), &id(MINE)).is_ok());
        assert!(sessions.holds(&id(MINE)) && !sessions.holds(&id(OTHER)));
        for (reference, allowed) in
            [(MINE, true), (OTHER, false), ("latest", false), ("2026", false), ("a title", false)]
        {
            assert_eq!(sessions.check_reference(&child, reference).is_ok(), allowed, "{reference}");
            assert!(sessions.check_reference(&Grant::owner(), reference).is_ok());
        }
    }

    #[test]
    fn sessions_of_children_go_one_level_deep() {
        let sessions = ConfinedSessions::default();
        let first = child(&[OTHER]);
        assert!(sessions.may_create(&first).is_ok());
        sessions.created(&first, &id(MINE));
        assert!(sessions.may_create(&child(&[MINE])).is_err());
        assert!(sessions.may_create(&child(&["forged", MINE])).is_err());
        assert!(sessions.may_create(&child(&[MINE, OTHER])).is_err());
        assert!(sessions.may_create(&child(&[])).unwrap_err().message().contains("hides"));
        assert!(sessions.may_create(&Grant::owner()).is_ok());
    }
}
