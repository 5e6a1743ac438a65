//! Core → contract: the result of a turn, its usage, and what is known of a turn.

use hermes_core::{CostStatus, TurnOutcome, TurnResult, Usage};
use hermes_engine::{Submitted, TurnSnapshot};
use hermes_proto::v1 as wire;

pub(crate) fn submitted(submitted: &Submitted) -> wire::SubmitResponse {
    wire::SubmitResponse {
        turn_id: submitted.turn_id.to_string(),
        status: submitted.status.as_str().to_owned(),
        position: submitted.position,
    }
}

pub(crate) fn snapshot(turn: TurnSnapshot) -> wire::GetTurnResponse {
    wire::GetTurnResponse {
        turn_id: turn.turn_id.to_string(),
        state: turn.state.as_str().to_owned(),
        exit_reason: turn.exit_reason,
        result: turn.result.map(|turn| result(&turn, None)),
    }
}

/// The one terminal result; `warning` is what the event that carries it adds.
pub(crate) fn result(turn: &TurnResult, warning: Option<&str>) -> wire::TurnResult {
    let cause = match turn.outcome {
        TurnOutcome::Interrupted(cause) => Some(cause.as_str().to_owned()),
        TurnOutcome::Completed | TurnOutcome::Partial | TurnOutcome::Failed => None,
    };
    wire::TurnResult {
        session_id: turn.session_id.to_string(),
        turn_id: turn.turn_id.to_string(),
        status: turn.status().as_str().to_owned(),
        turn_exit_reason: turn.exit_reason.to_string(),
        text: turn.final_response.clone(),
        reasoning: turn.last_reasoning.clone(),
        message_id: turn.message_id.map(|id| id.0),
        completed: turn.outcome == TurnOutcome::Completed,
        failed: turn.outcome == TurnOutcome::Failed,
        partial: turn.outcome == TurnOutcome::Partial,
        interrupted: cause.is_some(),
        interrupt_cause: cause,
        error: turn.error.clone(),
        failure_reason: turn.failure_reason.clone(),
        warning: warning.map(str::to_owned),
        response_previewed: turn.response_previewed,
        api_calls: turn.api_calls,
        tool_calls: turn.tool_calls,
        model: turn.model.clone(),
        provider: turn.provider.clone(),
        base_url: turn.base_url.clone(),
        usage: Some(usage(&turn.usage, turn.estimated_cost_usd, turn.cost_status)),
        last_prompt_tokens: turn.last_prompt_tokens,
        started_at: turn.started_at.unix_seconds(),
        duration_s: turn.duration_s,
        model_s: turn.model_s,
        tools_s: turn.tools_s,
        cleanup_errors: turn.cleanup_errors.clone(),
        guardrail: turn.guardrail.as_ref().map(|json| wire::Json { raw: json.as_str().to_owned() }),
    }
}

pub(crate) fn usage(usage: &Usage, estimated_cost_usd: Option<f64>, status: CostStatus) -> wire::Usage {
    wire::Usage {
        input_tokens: usage.input,
        output_tokens: usage.output,
        cache_read_tokens: usage.cache_read,
        cache_write_tokens: usage.cache_write,
        reasoning_tokens: usage.reasoning,
        total_tokens: usage.total(),
        estimated_cost_usd,
        cost_status: status.as_str().to_owned(),
        cost_source: None,
    }
}

#[cfg(test)]
mod tests {
    use hermes_core::{ExitReason, Instant, InterruptCause, SessionId, TurnId};

    use super::*;

    pub(crate) fn ended(outcome: TurnOutcome, exit_reason: ExitReason) -> TurnResult {
        TurnResult {
            session_id: SessionId::parse("s").unwrap(),
            turn_id: TurnId::mint(),
            exit_reason,
            final_response: Some("done".into()),
            last_reasoning: None,
            message_id: None,
            outcome,
            error: None,
            failure_reason: None,
            response_previewed: false,
            api_calls: 2,
            tool_calls: 1,
            model: "m".into(),
            provider: "p".into(),
            base_url: String::new(),
            usage: Usage { input: 5, output: 7, cache_read: 11, cache_write: 0, reasoning: 3 },
            last_prompt_tokens: 16,
            estimated_cost_usd: None,
            cost_status: CostStatus::Unknown,
            started_at: Instant(1.0),
            duration_s: 0.5,
            model_s: 0.3,
            tools_s: 0.1,
            cleanup_errors: Vec::new(),
            guardrail: None,
        }
    }

    #[test]
    fn exactly_one_of_the_four_outcomes_is_set() {
        let outcomes = [
            TurnOutcome::Completed,
            TurnOutcome::Partial,
            TurnOutcome::Failed,
            TurnOutcome::Interrupted(InterruptCause::Deadline),
        ];
        for outcome in outcomes {
            let wire = result(&ended(outcome, ExitReason::BudgetExhausted), None);
            let set = [wire.completed, wire.partial, wire.failed, wire.interrupted];
            assert_eq!(set.iter().filter(|set| **set).count(), 1, "{outcome:?}");
            assert_eq!(wire.interrupted, wire.interrupt_cause.is_some());
        }
    }

    #[test]
    fn totals_count_cached_tokens() {
        let wire = result(&ended(TurnOutcome::Completed, ExitReason::BudgetExhausted), Some("careful"));
        assert_eq!(wire.usage.unwrap().total_tokens, 23);
        assert_eq!(wire.warning.as_deref(), Some("careful"));
    }
}
