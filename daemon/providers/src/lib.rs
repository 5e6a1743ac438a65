//! Speaks to models: resolves a route, sends a request, reads the answer, classifies what went wrong.
//!
//! This crate must not know where messages come from or go to: no session, no database, no tool
//! that runs, no event. It takes a history and gives an answer.
//!
//! Start with [`resolve`], which makes a [`Route`] out of settings, and [`Provider::call`], which
//! makes one attempt at one [`CallRequest`]. Whether a failed attempt is repeated is decided by
//! [`retry::next`], a pure function; waiting is the caller's part.

mod arguments;
mod catalog;
mod chat;
mod failure;
mod http;
mod local;
mod mode;
mod offline;
mod prefix;
mod provider;
mod providers;
mod resolve;
pub mod retry;
mod route;
mod settings;
mod sse;
mod think;
mod watch;

pub use catalog::key_variables;
pub use failure::{CallError, FailureClass, RouteFacts};
pub use local::LocalServer;
pub use mode::ApiMode;
pub use offline::OfflineFacts;
pub use prefix::PrefixCache;
pub use provider::{
    CallRequest, InterruptedStream, ModelResponse, NoSink, Provider, StreamDelta, StreamSink, ToolList,
};
pub use providers::{HttpSettings, Providers};
pub use resolve::{ResolveError, RouteChoice, resolve};
pub use route::{CallTimeouts, Route, StaleLimit};
pub use settings::{
    ModelEntry, ModelSettings, ProviderEntry, ProvidersSettings, RetrySettings, RouteSettings,
};
