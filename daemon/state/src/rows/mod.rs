//! How messages become rows of `messages` and rows become messages again.

mod content;
mod message;
mod tool_calls;

pub(crate) use content::{decode as decode_content, preview};
pub(crate) use message::{COLUMNS, insert, read};
