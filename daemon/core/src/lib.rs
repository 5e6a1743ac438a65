//! The vocabulary of Hermes: what a message, a tool call, a turn, an event and a principal are.
//!
//! Every other crate speaks in these types. This crate knows none of them: it does no I/O, has no
//! async code, no database, no wire format and no settings. Domain types do not derive serde;
//! each edge (database row, provider wire, client contract) converts in one place of its own.
//!
//! Start with [`Message`], [`Event`] and [`TurnResult`].

mod clock;
mod event;
mod id;
mod json;
mod message;
mod options;
mod principal;
mod tool;
mod turn;
mod usage;

pub use clock::{Clock, Instant, SystemClock};
pub use event::{Event, EventPayload, MessageComplete, NoticeLevel, QueuedInput, SessionInfo, ToolComplete};
pub use id::{Epoch, InvalidId, MessageId, PromptId, SessionId, ToolCallId, TurnId, utc_stamp};
pub use json::{InvalidJson, Json};
pub use message::{Content, DisplayKind, FinishReason, Message, Part, Role, scrub_surrogates};
pub use options::{BusyMode, ClientEnv, SessionOptions, TurnOptions};
pub use principal::{Principal, Scope};
pub use tool::{EffectDisposition, ToolCall, ToolSchema, ToolStatus};
pub use turn::{ExitReason, InterruptCause, TurnOutcome, TurnResult, TurnState, TurnStatus};
pub use usage::{CostStatus, Usage};
