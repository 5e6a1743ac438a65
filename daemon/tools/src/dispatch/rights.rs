//! Stage 4: what the principal behind the input may do (design §11, point 2).

use hermes_core::Principal;

use super::authority::Known;
use super::refusal::Refusal;

/// Every principal has today the tools that its session was opened with: a webhook's session has no file
/// and no terminal tools, a job's none that asks a person. Rights of single people to tools, paths and
/// commands are judged here, before anything looks at the arguments.
#[expect(clippy::unnecessary_wraps, reason = "a stage; it refuses once principals have rights of their own")]
pub(super) fn run(principal: &Principal, _known: &Known) -> Result<(), Refusal> {
    match principal {
        Principal::Owner
        | Principal::Person { .. }
        | Principal::Cron { .. }
        | Principal::Webhook { .. }
        | Principal::Child { .. }
        | Principal::Remote { .. } => Ok(()),
    }
}
