//! What background processes say by themselves, and who hears it.

use std::fmt;

use async_trait::async_trait;

use super::ProcessView;

/// What a process says by itself.
#[derive(Debug, Clone, PartialEq)]
pub struct ProcessWord {
    /// Unique for good: the process and the occasion.
    pub id: String,
    pub process: ProcessView,
    pub occasion: Occasion,
}

/// Why it speaks.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Occasion {
    /// It has ended; the end of its output.
    Ended { tail: String },
    /// Lines that it was watched for; so many more were held back since the last word.
    Matched { lines: Vec<String>, suppressed: u64 },
    /// It matched too often: it is no longer watched, and its end will be told.
    WatchEnded { suppressed: u64 },
    /// All processes together matched too often: there is silence for half a minute.
    Silenced,
}

/// Hears processes. Implemented above, where sessions are known.
#[async_trait]
pub trait ProcessListener: Send + Sync + fmt::Debug {
    /// Takes a word. `true`: it will reach the session, whatever comes. The end of a process is said again until
    /// then, and may be once more after a crash.
    async fn said(&self, word: ProcessWord) -> bool;
}

/// Hears nothing.
#[derive(Debug, Clone, Copy, Default)]
pub struct NobodyListens;

#[async_trait]
impl ProcessListener for NobodyListens {
    async fn said(&self, _: ProcessWord) -> bool {
        true
    }
}
