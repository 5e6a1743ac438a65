//! The turn engine: sessions as actors, turns as a chain of phases, events as one ordered stream.
//!
//! One accepted input becomes one turn with exactly one terminal result. The engine decides
//! *what happens next*; it knows no transport, no SQL and no provider's wire format. Those belong
//! to `hermes-server`, `hermes-state` and `hermes-providers`.
//!
//! Start with [`Engine`]; a session is an actor in `session`, a turn is the loop in `turn`.

mod api;
mod broker;
mod budget;
mod engine;
mod recover;
mod session;
mod settings;
mod shared;
mod stream;
mod title;
mod tools;
mod turn;
mod wake;

pub use api::{
    AttachInput, Attached, CreateInput, EngineError, EngineStatus, Inflight, InterruptInput, OpenInput,
    PendingPrompt, RecoveryReport, SessionChanged, SessionDetail, SharedEvent, SubmitInput, SubmitStatus,
    Submitted, TurnSnapshot,
};
pub use broker::PromptBroker;
pub use engine::Engine;
pub use settings::{AgentSettings, BusyInputMode, BusySettings, MaxTurns, Unlimited};
pub use shared::{EngineDeps, LocalTime};
pub use stream::Watch;
pub use tools::{ClarifySettings, ConversationTools, TodoLists, tools};
pub use wake::WakeRelay;
