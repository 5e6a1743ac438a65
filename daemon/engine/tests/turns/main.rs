//! The engine as its callers see it: real rows, a scripted model and scripted tools, all in this process.

#![expect(clippy::unwrap_used, reason = "a test fails by panicking, in its helpers too")]

mod batches;
mod kit;
mod notices;
