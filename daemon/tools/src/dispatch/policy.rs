//! Stage 9: the policy judges every effect of the call; what it wants asked is asked, and no answer is a no.

use std::sync::Arc;

use hermes_runtime::Verdict;
use serde_json::Value;

use super::fit::Fitted;
use super::pre_hook::Gate;
use super::refusal::Refusal;
use crate::ports::{AskAnswer, AskRequest};
use crate::services::ToolCx;
use crate::tool::{OwnedEffect, Tool};

/// Under this rule a hook's question is kept.
const HOOK_RULE: &str = "hook";

/// A call that may run, with what it will touch.
#[derive(Debug)]
pub(super) struct Judged {
    pub(super) tool: Arc<dyn Tool>,
    pub(super) arguments: Value,
    pub(super) effects: Vec<OwnedEffect>,
}

pub(super) async fn run(fitted: Fitted, gate: Gate, cx: &ToolCx) -> Result<Judged, Refusal> {
    let Fitted { tool, arguments } = fitted;
    // A call whose effects cannot be named is not judged, so it does not run.
    let effects = tool
        .effect(&arguments, &cx.workspace)
        .map_err(|problem| Refusal::wrong("invalid_arguments", format!("{}: {problem}", tool.name())))?;
    if let Gate::AskAPerson { reason } = gate {
        let subject = effects.first().map_or_else(|| tool.preview(&arguments), OwnedEffect::subject);
        ask(&*tool, subject, HOOK_RULE, reason, cx).await?;
    }
    for effect in &effects {
        match cx.judge(effect) {
            Verdict::Allow => {}
            Verdict::Deny { rule, reason } => {
                tracing::info!(rule, "policy refuses the call");
                return Err(blocked(&*tool, &reason));
            }
            Verdict::Ask { rule, description } => {
                ask(&*tool, effect.subject(), rule, description, cx).await?;
            }
        }
    }
    Ok(Judged { tool, arguments, effects })
}

async fn ask(
    tool: &dyn Tool,
    subject: String,
    rule: &'static str,
    description: String,
    cx: &ToolCx,
) -> Result<(), Refusal> {
    let redact = |text: &str| cx.services.redactor.redact(text).into_owned();
    let request = AskRequest {
        session_id: cx.session_id.clone(),
        turn_id: cx.turn_id.clone(),
        call_id: cx.call_id.clone(),
        principal: cx.principal.clone(),
        tool: tool.name().to_owned(),
        subject: redact(&subject),
        rule,
        description: redact(&description),
    };
    let answer = tokio::select! {
        biased;
        () = cx.cancel.cancelled() => return super::run::not_cancelled_yet(&cx.cancel),
        answer = cx.services.ask.ask(request, &cx.cancel) => answer,
    };
    let refusal = match answer {
        AskAnswer::Allow => return Ok(()),
        AskAnswer::Deny { reason: Some(reason) } => format!("the user refused: {reason}"),
        AskAnswer::Deny { reason: None } => "the user refused. Do not try it another way".to_owned(),
        AskAnswer::Nobody => format!("needs approval ({description}), and there is nobody who could give it"),
    };
    tracing::info!(rule, "the call was not approved");
    Err(blocked(tool, &refusal))
}

fn blocked(tool: &dyn Tool, reason: &str) -> Refusal {
    Refusal { content: tool.blocked(reason), ..Refusal::blocked("policy_block", "") }
}
