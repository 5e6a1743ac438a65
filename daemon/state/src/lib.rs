//! state.db: everything of a profile that must survive, behind typed operations.
//!
//! This crate owns the one file: its tables and migrations, the thread that writes, the
//! connections that read, the full-text index, and the adoption of databases that the original
//! made. SQL never leaves it. It must not know who asks, what a turn does or what a prompt says:
//! it stores rows, in order, and refuses those of a turn that lost its place.
//!
//! Start with [`Db`]: [`Db::open`] gives it, [`Db::begin_turn`] and [`Db::write_turn`] are what a
//! conversation is made of.
//!
//! ```
//! # use std::sync::Arc;
//! # use hermes_core::{Message, SystemClock, Clock as _, SessionId, TurnId};
//! # use hermes_state::{BeginTurn, Db, NewSession, OpenOptions};
//! # fn main() -> Result<(), Box<dyn std::error::Error>> {
//! # let home = tempfile::tempdir()?;
//! let clock = Arc::new(SystemClock);
//! let (db, report) = Db::open(&home.path().join("state.db"), clock.clone(), &OpenOptions::default())?;
//! assert_eq!(report.read_only, None);
//! # let runtime = tokio::runtime::Builder::new_current_thread().build()?;
//! # runtime.block_on(async {
//! let session_id = SessionId::mint("20260102_030405");
//! db.create_session(NewSession {
//!     id: session_id.clone(),
//!     source: "cli".into(),
//! #   platform: None, user_id: None, model: "m".into(), provider: "p".into(), base_url: String::new(),
//! #   system_prompt: "You are Hermes.".into(), tool_names: vec![], tool_schemas: "[]".into(), parent: None,
//! #   cwd: None, git_branch: None, git_repo_root: None, title: None, profile_name: "default".into(),
//! #   model_config: None,
//!     started_at: clock.now(),
//!     // …
//! })
//! .await?;
//! let begun = db
//!     .begin_turn(BeginTurn {
//!         turn_id: TurnId::mint(),
//!         session_id: session_id.clone(),
//!         principal: "owner".into(),
//!         client_message_id: None,
//!         user: Message::user("hello", clock.now()),
//!         started_at: clock.now(),
//!         queued_input: None,
//!     })
//!     .await?;
//! assert_eq!(db.load_messages(&session_id).await?[0].id, Some(begun.message_id));
//! db.close().await;
//! # Ok::<_, Box<dyn std::error::Error>>(())
//! # })
//! # }
//! ```

mod adopt;
mod backup;
mod busy;
mod column;
mod connect;
mod db;
mod error;
mod foreign;
mod inputs;
mod lineage;
mod list;
mod open;
mod policy;
mod prompts;
mod readers;
mod resolve;
mod rows;
mod schema;
mod search;
mod sessions;
mod settings;
mod titles;
mod transcript;
mod turns;
mod upkeep;
mod usage;
mod writer;

pub use busy::Patience;
pub use db::{Counts, Db};
pub use error::{BeginTurnError, OpenError, ResolveError, SessionRef, StateError, TitleError};
pub use inputs::InputRow;
pub use list::{ListFilter, SessionSummary};
pub use open::{OpenOptions, OpenReport};
pub use policy::{AcceptedPolicy, StandingApproval};
pub use search::SearchHit;
pub use sessions::{NewSession, StoredSession};
pub use settings::{StateSettings, Synchronous};
pub use titles::TitleSource;
pub use turns::{BeginTurn, BegunTurn, FinishTurn, TurnKey, TurnRecord, TurnWrite};
pub use usage::UsageDelta;
