//! The client library of Hermes: from "a profile" to "a typed stream of a session's events".
//!
//! It finds the daemon of a profile, starts it on demand, connects over the profile's Unix socket, says
//! hello, and follows sessions and turns across lost connections and daemon restarts. It knows the wire
//! contract and nothing else of this house: no settings, no database, no terminal. Where a profile's
//! files lie is told by the caller in a [`Place`].
//!
//! Start with [`Connector`] (how to get a [`Client`]), [`SessionWatch`] (one session's events) and
//! [`TurnRun`] (one input, followed to its one result).
//!
//! ```no_run
//! # async fn example(place: hermes_client::Place) -> Result<(), Box<dyn std::error::Error>> {
//! use hermes_client::{Connector, Identity, Launch, NewTurn, SessionWatch, TurnRun, TurnStep, WatchOptions};
//! use hermes_proto::v1;
//!
//! let identity = Identity { client: "example".into(), version: "1.0.0".into() };
//! let connector = Connector::new(place, identity, Launch::default());
//! let client = connector.ensure().await?;
//! let session = client.create_session(v1::CreateSessionRequest::default()).await?;
//! let id = session.summary.unwrap_or_default().id;
//! let (watch, _) = SessionWatch::attach(&connector, client, &id, WatchOptions::default()).await?;
//! let mut turn = TurnRun::submit(watch, NewTurn::new("What is in this folder?")).await?;
//! loop {
//!     if let TurnStep::Ended(end) = turn.next().await? {
//!         assert_eq!(end.result.status, "complete");
//!         break;
//!     }
//! }
//! # Ok(())
//! # }
//! ```

mod place;

mod call;
mod connect;
mod launch;

mod turn;
mod watch;

pub use call::{CallError, CallErrorKind, Client};
pub use connect::{ConnectError, Connector, Identity};
pub use launch::{Launch, StartError, StartMode};
pub use place::{DaemonFile, Place};
pub use turn::{NewTurn, TurnEnd, TurnRun, TurnStep};
pub use watch::{Attachment, History, SessionWatch, WatchError, WatchItem, WatchOptions};
