//! The daemon of one profile: it takes the profile's lock, puts the parts together, serves, and ends
//! without losing a turn.
//!
//! This is the only crate that may name all others. It decides nothing about turns, prompts, tools or
//! rows: it owns the process (lock, signals, logs, readiness, drain) and the wiring.
//!
//! Start with [`run`]: its steps are the daemon's life, in order.

mod args;
mod clean_start;
mod detach;
mod failure;
mod lock;
mod logs;
mod notify;
mod own_kin;
mod policy_keys;
mod private_file;
mod process;
mod run;
mod runtime_files;
#[cfg(test)]
mod schema;
mod settings;
mod settings_files;
#[cfg(test)]
mod settings_page;
mod stop;
mod wiring;

pub use args::{CommandLine, RunArgs, Surroundings};
pub use clean_start::{close_to_others, start_clean};
pub use failure::{EXIT_CONFIG, EXIT_FAILURE, EXIT_INSIDE, EXIT_RESTART};
pub use run::run;
