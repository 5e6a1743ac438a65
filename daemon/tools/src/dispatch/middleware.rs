//! Stage 6: request middleware may rewrite the arguments; what it makes is checked like what a model wrote.

use super::authority::Known;
use super::fit::{self, Fitted};
use super::parse;
use super::refusal::Refusal;
use crate::ports::{HookCall, Hooks};
use crate::registry::SessionTools;

pub(super) async fn run(
    fitted: Fitted,
    hooks: &dyn Hooks,
    call: HookCall<'_>,
    tools: &SessionTools,
) -> Result<Fitted, Refusal> {
    let Some(arguments) = hooks.rewrite(call, &fitted.arguments).await else { return Ok(fitted) };
    if !arguments.is_object() {
        return Err(Refusal::wrong(
            "invalid_arguments",
            format!("middleware made {} of the arguments, not an object", parse::kind(&arguments)),
        ));
    }
    fit::run(Known { tool: fitted.tool, arguments }, tools)
}
