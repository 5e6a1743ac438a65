//! Who is family: whether a process was started by the agent's own tools (contract §7).
//!
//! Tools run as the same user as the clients, so a user id says nothing. Five traces are followed, because each
//! can be shaken off alone: the chain of parents (kept whole while the daemon lives, which is a child subreaper),
//! the mark in the start environment, a limit that all descendants inherit, the service unit, and a record of what an
//! earlier daemon's tools left running. What cannot be read counts as family.
//!
//! [`judge`] decides, purely over a [`ProcSource`]; [`Family`] holds the facts of a running daemon and keeps them
//! fresh.

mod brand;
mod chain;
mod family;
mod record;
mod source;

pub use brand::brand;
pub use chain::{Kinship, Reason, Standing, judge, started_inside};
pub use family::{Family, FamilyInput};
pub use record::StrayRecord;
pub use source::{LinuxProc, ProcSource, ProcessId, Stat};

#[cfg(test)]
mod tests;
