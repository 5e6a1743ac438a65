//! Core ⇄ contract, one file per direction and subject.
//!
//! `read_*` takes a wire message apart and checks every field, so that nothing below meets a
//! half-filled message; `write_*` builds what goes out. Plain functions: both types are foreign here.

pub(crate) mod read_control;
pub(crate) mod read_options;
pub(crate) mod read_policy;
pub(crate) mod read_prompts;
pub(crate) mod read_sessions;
pub(crate) mod read_tools;
pub(crate) mod read_turns;
pub(crate) mod write_events;
pub(crate) mod write_rows;
pub(crate) mod write_sessions;
pub(crate) mod write_tools;
pub(crate) mod write_turns;

pub(crate) mod field;
