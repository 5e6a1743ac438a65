//! The `chat_completions` wire (spec 30 §3): what is sent, and how the answer is read.
//!
//! `request` writes the body, `call` drives the exchange, `assembly` turns what comes in into one
//! answer, with `tool_calls`, `reasoning` and `usage` for the parts that servers disagree on.

mod assembly;
mod call;
mod reasoning;
mod request;
#[cfg(test)]
mod tests;
mod tool_calls;
mod usage;

pub(crate) use call::ChatCompletions;
pub(crate) use request::{Form, tools_json};
