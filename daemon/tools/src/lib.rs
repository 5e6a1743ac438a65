//! Tools: what one is, which ones a session has, the one way in which a call reaches one, and the tools
//! that work on this machine's files and shell.
//!
//! This crate knows a session only by what a call brings with it ([`ToolCx`]). It must not know turns,
//! models, prompts, the database or any transport. What it needs of rooms above it are the small traits
//! [`Ask`], [`Wake`] and [`Hooks`]; what it judges with is the policy of `hermes-runtime`.
//!
//! Start with [`Tool`], then [`Registry::open_session`], then [`Dispatcher::call`].

mod arguments;
mod dispatch;
mod files;
mod names;
mod output;
mod ports;
mod process;
mod programs;
mod registry;
mod services;
mod settings;
mod terminal;
#[cfg(test)]
mod testing;
mod tool;
mod workspace;

pub use arguments::{ArgumentError, parse_arguments};
pub use dispatch::{
    Begun, CallCx, CallResult, Dispatcher, GuardrailSettings, GuardrailStop, HardStopAfter, LoopCaps,
    Patience, ResultLimits, Segment, StopReason, StopSignal, TurnGuard, WarnAfter, Worked,
};
pub use files::file_tools;
pub use names::repair_name;
pub use output::ToolOutput;
pub use ports::{
    ApproveAnswer, ApproveRequest, Ask, HookCall, HookDecision, HookOutcome, Hooks, NoHooks, NobodyCanAnswer,
    NobodyWakes, ProcessNotice, Question, QuestionAnswer, SudoRequest, Wake,
};
pub use process::{ProcessNotices, process_tools};
pub use registry::{RegisterError, Registry, RestoreError, SessionTools, ToolsetChoice};
pub use services::{ChildFacts, ToolCx, ToolServices};
pub use settings::{
    AgentToolSettings, FileReadMaxChars, PlatformToolsets, ToolOutputSettings, ToolSettings, ToolTimeouts,
    ToolsetSettings,
};
pub use terminal::{sudo::SUDO_PASSWORD, terminal_tools};
pub use tool::{Concurrency, OwnedEffect, ResultCap, Tool, ToolTraits};
pub use workspace::{FileLedger, PathError, ResolvedPath, Workspace, WorkspaceInput};
