//! Stage 5: the arguments are fitted to the schema that the model was shown, and checked (spec 40 §3.1).

use std::sync::Arc;

use serde_json::Value;

use super::authority::Known;
use super::refusal::Refusal;
use crate::arguments::{coerce, validate};
use crate::registry::SessionTools;
use crate::tool::Tool;

/// A call whose arguments are what the tool expects.
#[derive(Debug)]
pub(super) struct Fitted {
    pub(super) tool: Arc<dyn Tool>,
    pub(super) arguments: Value,
}

pub(super) fn run(known: Known, tools: &SessionTools) -> Result<Fitted, Refusal> {
    let Known { tool, mut arguments } = known;
    // A deferred tool is in the list without a schema: it checks its arguments itself.
    if let Some(schema) = tools.parameters(tool.name()) {
        coerce(&mut arguments, schema);
        validate(&arguments, schema)
            .map_err(|problem| Refusal::wrong("invalid_arguments", format!("{}: {problem}", tool.name())))?;
    }
    Ok(Fitted { tool, arguments })
}
