//! End to end: the real `hermes-cli` and `hermesd` in temporary homes, against the scripted model server.

#![expect(clippy::unwrap_used, reason = "a test fails by panicking, in its helpers too")]

mod adoption;
mod attach;
mod background;
mod bad_input;
mod crash;
mod first_run;
mod hands;
mod inside;
mod matrix;
mod repl;
mod resume;
mod secrets;
mod settings;
mod turns;
mod undo;
