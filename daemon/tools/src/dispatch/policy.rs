//! Stage 9: the policy judges every effect of the call; what it wants asked is asked, and no answer is a no.

use std::sync::Arc;

use hermes_core::Principal;
use hermes_runtime::{Approval, ApprovalScope, ApprovalSettings, Finding, Unattended, Verdict};
use serde_json::Value;

use super::fit::Fitted;
use super::pre_hook::Gate;
use super::refusal::Refusal;
use super::stop::StopSignal;
use crate::ports::{ApproveAnswer, ApproveRequest};
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

pub(super) async fn run(
    fitted: Fitted,
    gate: Gate,
    cx: &ToolCx,
    stop: &StopSignal,
) -> Result<Judged, Refusal> {
    let Fitted { tool, arguments } = fitted;
    // A call whose effects cannot be named is not judged, so it does not run.
    let effects = tool
        .effect(&arguments, &cx.workspace)
        .map_err(|problem| Refusal::wrong("invalid_arguments", format!("{}: {problem}", tool.name())))?;
    if let Gate::AskAPerson { reason } = gate {
        let subject = effects.first().map_or_else(|| tool.preview(&arguments), OwnedEffect::subject);
        let shape = format!("{} {subject}", tool.name());
        let findings = vec![Finding { rule: HOOK_RULE, description: reason, shape }];
        ask(&*tool, subject, Approval { findings, widest: ApprovalScope::Once }, cx, stop).await?;
    }
    for effect in &effects {
        match cx.judge(effect) {
            Verdict::Allow => {}
            Verdict::Deny { rule, reason } => {
                tracing::info!(rule, "policy refuses the call");
                return Err(blocked(&*tool, &reason));
            }
            Verdict::Ask(approval) => ask(&*tool, effect.subject(), approval, cx, stop).await?,
        }
    }
    Ok(Judged { tool, arguments, effects })
}

async fn ask(
    tool: &dyn Tool,
    subject: String,
    approval: Approval,
    cx: &ToolCx,
    stop: &StopSignal,
) -> Result<(), Refusal> {
    let redact = |text: &str| cx.services.redactor.redact(text).into_owned();
    let settings = cx.services.policy.settings();
    let description = redact(&approval.description());
    let rules: Vec<&'static str> = approval.findings.iter().map(|finding| finding.rule).collect();
    let request = ApproveRequest {
        session_id: cx.session_id.clone(),
        turn_id: cx.turn_id.clone(),
        call_id: cx.call_id.clone(),
        principal: cx.principal.clone(),
        tool: tool.name().to_owned(),
        subject: redact(&subject),
        description: description.clone(),
        rules: rules.clone(),
        widest: approval.widest,
        timeout: settings.approvals.wait(),
    };
    let answer = tokio::select! {
        biased;
        () = cx.cancel.cancelled() => {
            super::run::not_stopped_yet(stop)?;
            // Whatever else ended the question: it was not answered.
            return Err(blocked(tool, "the question whether it may run was withdrawn, so it did not run"));
        }
        answer = cx.while_asking(cx.services.ask.approve(request, &cx.cancel)) => answer,
    };
    let refusal = match answer {
        ApproveAnswer::Allow(scope) => {
            remember(&approval, scope, cx).await;
            return Ok(());
        }
        ApproveAnswer::Nobody if unattended(&settings.approvals, &cx.principal) == Unattended::Approve => {
            tracing::warn!(?rules, principal = %cx.principal, "allowed by the settings: there is nobody to ask");
            return Ok(());
        }
        ApproveAnswer::Deny { reason: Some(reason) } => {
            format!(
                "the user refused: {reason}. Go by what they say; do not try to reach the same end in a way of your own"
            )
        }
        ApproveAnswer::Deny { reason: None } => {
            "the user refused. Do not retry, rephrase or reach the same end in another way".to_owned()
        }
        ApproveAnswer::TimedOut => format!(
            "timed out: this needs approval ({description}) and the user did not answer within {} s. Do not retry, \
             rephrase or reach the same end in another way; say what you need and wait for the user",
            settings.approvals.timeout
        ),
        ApproveAnswer::Nobody => format!(
            "needs approval ({description}), and there is nobody who could give it. Do without, or say what the user \
             should run or allow"
        ),
    };
    tracing::info!(?rules, "the call was not approved");
    Err(blocked(tool, &refusal))
}

/// What the settings say where nobody can be asked.
fn unattended(settings: &ApprovalSettings, principal: &Principal) -> Unattended {
    match principal {
        Principal::Cron { .. } => settings.cron_mode,
        _ => settings.headless_mode,
    }
}

/// Keeps the answer as far as it reaches, never further than what was offered.
async fn remember(approval: &Approval, scope: ApprovalScope, cx: &ToolCx) {
    let scope = scope.min(approval.widest);
    let approvals = cx.services.policy.approvals();
    let (session, now) = (cx.workspace.shell(), cx.services.clock.now());
    if let Err(error) = approvals.grant(session, &approval.findings, scope, now).await {
        tracing::warn!(error, "the approval holds for this session only: it could not be stored");
    }
}

fn blocked(tool: &dyn Tool, reason: &str) -> Refusal {
    Refusal { content: tool.blocked(reason), ..Refusal::blocked("policy_block", "") }
}
