//! Who stands at the other end of a connection, and what that lets them do.
//!
//! What a connection may do is data ([`Access`]), decided once when it is accepted and looked up by every call.
//! The daemon's own user has scope `admin`, every other user is refused. A process that the agent's own tools
//! started runs as that user too: it is [confined](confined).

mod confined;
mod stream;

use std::io;

use hermes_core::{Principal, Scope};
use hermes_runtime::kin::{Kinship, Standing};

pub(crate) use confined::{ConfinedSessions, Confinement, admit as admit_confined, refusal};
pub(crate) use stream::PeerStream;

/// A peer as the kernel names it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Credentials {
    pub(crate) uid: u32,
    /// Absent when the kernel does not say, or does not see it.
    pub(crate) pid: Option<i32>,
}

/// What a connection may do.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum Access {
    Granted(Grant),
    /// Every call is answered by this reason.
    Refused(String),
}

/// The rights of a connection.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Grant {
    pub(crate) scope: Scope,
    pub(crate) principal: Principal,
    /// Started by the agent's own tools.
    pub(crate) confined: Option<Confinement>,
}

impl Grant {
    /// Whoever starts the daemon.
    pub(crate) fn owner() -> Self {
        Self { scope: Scope::Admin, principal: Principal::Owner, confined: None }
    }

    /// A process of the agent.
    fn child(kinship: Kinship) -> Self {
        let confinement = Confinement::new(kinship.sessions);
        let of = confinement.of().to_owned();
        Self { scope: Scope::Chat, principal: Principal::Child { of }, confined: Some(confinement) }
    }
}

/// Decides what a local peer may do. `own_uid` is the daemon's user; `standing` says how a process of that user
/// stands to the agent.
pub(crate) fn judge(
    peer: Result<Credentials, io::Error>,
    own_uid: u32,
    standing: impl FnOnce(Option<i32>) -> Standing,
) -> Access {
    match peer {
        Ok(peer) if peer.uid == own_uid => Access::Granted(match standing(peer.pid) {
            Standing::Outside => Grant::owner(),
            Standing::Kin(kinship) => {
                tracing::info!(pid = peer.pid, reason = ?kinship.reason, "a client of the agent's own is confined");
                Grant::child(kinship)
            }
        }),
        Ok(peer) => Access::Refused(format!(
            "this daemon serves user {own_uid}, and you are user {}; run the client as the daemon's user, \
             or use a profile of your own",
            peer.uid
        )),
        Err(error) => Access::Refused(format!("the system does not say who you are: {error}")),
    }
}

#[cfg(test)]
mod tests {
    use hermes_runtime::kin::Reason;

    use super::*;

    fn peer(uid: u32) -> Credentials {
        Credentials { uid, pid: Some(7) }
    }

    #[test]
    fn the_daemons_own_user_is_its_owner() {
        let access = judge(Ok(peer(1000)), 1000, |_| Standing::Outside);
        assert_eq!(access, Access::Granted(Grant::owner()));
    }

    #[test]
    fn another_user_is_refused_even_root() {
        for uid in [0, 1001] {
            let Access::Refused(reason) = judge(Ok(peer(uid)), 1000, |_| Standing::Outside) else {
                panic!("{uid} was let in")
            };
            assert!(reason.contains("user 1000") && reason.contains(&format!("user {uid}")), "{reason}");
        }
    }

    #[test]
    fn a_peer_that_the_system_does_not_name_is_refused() {
        assert!(matches!(
            judge(Err(io::Error::other("no")), 1000, |_| Standing::Outside),
            Access::Refused(_)
        ));
    }

    #[test]
    fn a_child_of_the_agent_has_chat_in_the_name_of_its_session() {
        let kin = |sessions: &[&str]| {
            let sessions = sessions.iter().map(|text| (*text).to_owned()).collect();
            Standing::Kin(Kinship { reason: Reason::Marked, sessions })
        };
        for (sessions, of) in [(&["forged", "s1"][..], "s1"), (&[], "unknown")] {
            let Access::Granted(grant) = judge(Ok(peer(1000)), 1000, |pid| {
                assert_eq!(pid, Some(7));
                kin(sessions)
            }) else {
                panic!("refused")
            };
            assert_eq!((grant.scope, grant.principal), (Scope::Chat, Principal::Child { of: of.into() }));
            assert!(grant.confined.is_some());
        }
    }
}
