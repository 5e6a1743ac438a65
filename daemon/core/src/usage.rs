//! Token counts and cost, as the provider reports them (spec 30 §20).

use std::ops::AddAssign;

/// Tokens of one or more model calls. The prompt's total is `input + cache_read + cache_write`.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Usage {
    /// Uncached input.
    pub input: u64,
    pub output: u64,
    pub cache_read: u64,
    pub cache_write: u64,
    /// Part of `output`.
    pub reasoning: u64,
}

impl Usage {
    /// All tokens of the prompt, cached or not.
    pub fn prompt_total(&self) -> u64 {
        self.input + self.cache_read + self.cache_write
    }

    /// Prompt and output together.
    pub fn total(&self) -> u64 {
        self.prompt_total() + self.output
    }
}

impl AddAssign for Usage {
    fn add_assign(&mut self, other: Self) {
        self.input += other.input;
        self.output += other.output;
        self.cache_read += other.cache_read;
        self.cache_write += other.cache_write;
        self.reasoning += other.reasoning;
    }
}

/// Where a cost figure comes from.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum CostStatus {
    Actual,
    Estimated,
    Included,
    #[default]
    Unknown,
}

impl CostStatus {
    /// The name used in the database and on the wire.
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Actual => "actual",
            Self::Estimated => "estimated",
            Self::Included => "included",
            Self::Unknown => "unknown",
        }
    }

    /// Reads the name back.
    pub fn parse(name: &str) -> Option<Self> {
        [Self::Actual, Self::Estimated, Self::Included, Self::Unknown]
            .into_iter()
            .find(|status| status.as_str() == name)
    }
}
