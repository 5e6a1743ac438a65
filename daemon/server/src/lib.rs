//! The daemon's door: the services of the contract over the profile's Unix socket.
//!
//! This crate binds the socket, finds out who stands at the other end, holds every call against one
//! table of scopes, checks every wire field, and hands the call to the engine. It must not know how
//! a turn runs, how a prompt is built or where a row is stored; an endpoint is a few lines over a
//! service below. It is the only daemon crate that names tonic.
//!
//! Start with [`bind`], [`ServerDeps`] and [`serve`]; the scope table is in `scopes`, the checks of
//! wire fields are in `convert`.

mod clients;
mod convert;
mod deps;
mod error;
mod gate;
mod limit;
mod listen;
mod logs;
mod notices;
mod peer;
mod policy_desk;
mod scopes;
mod serve;
mod service;

pub use clients::Clients;
pub use deps::{DefaultModel, Identity, ServerDeps, SettingsFiles, ShutdownCommand, StorageReport};
pub use listen::{BindError, HoldsProfileLock, bind};
pub use logs::LogFeed;
pub use notices::Notices;
pub use policy_desk::{ConfigWritten, PolicyDesk, PolicyError, WaitingEdit};
pub use scopes::scope_of;
pub use serve::{ServeError, serve};
