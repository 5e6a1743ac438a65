//! The contract of Hermes: the generated messages and services of `hermes.v1`.
//!
//! The same structs travel as protobuf over gRPC and as JSON elsewhere: they derive serde with the
//! wire names of the contract. This crate knows no daemon crate and nothing of how a turn runs.

/// Generated from `proto/hermes/v1/*.proto`.
pub mod v1 {
    tonic::include_proto!("hermes.v1");
}

mod embedded_json;

/// Version of the contract. Raised when a client and a daemon of different versions could not
/// understand each other.
pub const PROTOCOL: u32 = 1;

/// Largest message on every transport (contract §1).
pub const MAX_MESSAGE_BYTES: usize = 16 * 1024 * 1024;
