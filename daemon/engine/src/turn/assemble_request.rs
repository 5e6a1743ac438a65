//! Puts the request together: the frozen prompt and tools, and the transcript as it stands.
//!
//! Nothing is copied and nothing is changed: rows were made legal when the session was loaded, and
//! every row appended since is legal by construction. So what was sent before stays, byte for byte.

use hermes_context::estimate_tokens;

use crate::session::SessionFacts;
use crate::turn::Turn;

/// A request that nobody has checked yet.
#[derive(Debug)]
pub(crate) struct Draft {
    /// A rough size; never decides anything that the provider's own count could decide.
    pub(crate) estimated_tokens: u64,
    pub(crate) output_cap: Option<u32>,
}

pub(crate) fn run(turn: &Turn, facts: &SessionFacts) -> Draft {
    Draft {
        estimated_tokens: estimate_tokens(
            &facts.system_prompt,
            facts.tool_list.json().len(),
            turn.history.wire(),
        ),
        output_cap: turn.output_cap,
    }
}
