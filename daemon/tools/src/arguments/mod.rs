//! Arguments of a live call: read without guessing, fitted to the schema, checked (spec 40 §3.1).
//!
//! Nothing here ever closes or trims a bracket: a cut string must not become a command. Repair for
//! the outgoing copy of history is another matter and lives with the history.

mod coerce;
mod lenient;
mod parse;
pub(crate) mod read;
mod schema_type;
mod validate;

pub(crate) use coerce::coerce;
pub use parse::{ArgumentError, parse_arguments};
pub(crate) use validate::validate;
