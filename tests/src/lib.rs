//! The test kit of Hermes: a scripted model server that checks every request it gets, temporary
//! homes for the real binaries, and the measurements of the bench.
//!
//! Nothing here needs the network, a key, or a shared home. It knows the surfaces that users touch
//! (binaries, the contract, files of a home) and nothing of the daemon's inside.

#![expect(
    clippy::panic,
    clippy::print_stderr,
    clippy::return_self_not_must_use,
    reason = "a test kit fails by panicking, tells why on stderr, and its checks pass values on"
)]

pub mod binaries;
pub mod client;
pub mod home;
pub mod model_server;

pub use binaries::{binary, is_installed};
pub use client::connector;
pub use home::{CliOutput, TestHome, wait_until};
pub use model_server::{ModelRequest, ModelServer, Reply};
