//! What a run came to, as programs read it (spec 80 §4.2).

use hermes_proto::v1::{TurnResult, Usage};
use serde_json::{Value, json};

use crate::exit::{self, Exit, StopCause};

/// The end of a single prompt's run.
#[derive(Debug, Clone, PartialEq, Default)]
pub(crate) struct Report {
    /// Absent when no session came about.
    pub(crate) session_id: Option<String>,
    /// Absent when the run ended before its turn did.
    pub(crate) result: Option<TurnResult>,
    /// This client stopped the run.
    pub(crate) stopped: Option<StopCause>,
    /// What this client itself met.
    pub(crate) error: Option<String>,
}

impl Report {
    /// A run that ended in an error of this client, not of the turn.
    pub(crate) fn failed(session_id: Option<String>, error: impl Into<String>) -> Self {
        Self { session_id, error: Some(error.into()), ..Self::default() }
    }

    pub(crate) fn exit(&self) -> Exit {
        match (self.stopped, &self.result) {
            (Some(cause), _) => cause.exit(),
            (None, Some(result)) => exit::of_turn(result),
            (None, None) => Exit::Failure,
        }
    }

    /// The answer, when there is one.
    pub(crate) fn answer(&self) -> Option<&str> {
        self.result
            .as_ref()
            .filter(|result| !exit::is_empty(result))
            .and_then(|result| result.text.as_deref())
    }

    /// Why the run did not succeed, in one sentence.
    pub(crate) fn reason(&self) -> Option<String> {
        if let Some(error) = &self.error {
            return Some(error.clone());
        }
        if let Some(cause) = self.stopped {
            return Some(cause.describe().to_owned());
        }
        self.result.as_ref().and_then(exit::reason)
    }

    /// The object of `--output-format json`.
    pub(crate) fn to_json(&self) -> Value {
        let result = self.result.clone().unwrap_or_default();
        let known = self.result.is_some();
        json!({
            "session_id": self.session_id,
            "final_response": self.answer(),
            "model": named(&result.model),
            "provider": named(&result.provider),
            "completed": result.completed,
            "failed": result.failed || !known,
            "partial": result.partial,
            "interrupted": result.interrupted || self.stopped.is_some(),
            "turn_exit_reason": named(&result.turn_exit_reason),
            "api_calls": result.api_calls,
            "tool_calls": result.tool_calls,
            "usage": usage(&result.usage.unwrap_or_default()),
            "error": self.reason(),
        })
    }

    /// The last line of `--output-format stream-json`.
    pub(crate) fn to_stream_json(&self) -> Value {
        let mut line = json!({"type": "result"});
        if let (Value::Object(line), Value::Object(report)) = (&mut line, self.to_json()) {
            line.extend(report);
        }
        line
    }

    /// The content of `--usage-file`.
    pub(crate) fn to_usage_json(&self) -> Value {
        let result = self.result.clone().unwrap_or_default();
        let mut file = usage(&result.usage.clone().unwrap_or_default());
        let rest = json!({
            "model": named(&result.model),
            "provider": named(&result.provider),
            "session_id": self.session_id,
            "completed": result.completed,
            "failed": result.failed || self.result.is_none(),
            "partial": result.partial,
            "interrupted": result.interrupted || self.stopped.is_some(),
            "turn_exit_reason": named(&result.turn_exit_reason),
            "service_tier": Value::Null,
            "failure": self.reason().map(|message| json!({"reason": result.failure_reason, "message": message})),
        });
        if let (Value::Object(file), Value::Object(rest)) = (&mut file, rest) {
            file.extend(rest);
        }
        file
    }
}

/// A name, or null where it is not known.
fn named(text: &str) -> Option<&str> {
    (!text.is_empty()).then_some(text)
}

fn usage(usage: &Usage) -> Value {
    let status = named(&usage.cost_status).unwrap_or("unknown");
    json!({
        "input_tokens": usage.input_tokens,
        "output_tokens": usage.output_tokens,
        "cache_read_tokens": usage.cache_read_tokens,
        "cache_write_tokens": usage.cache_write_tokens,
        "reasoning_tokens": usage.reasoning_tokens,
        "total_tokens": usage.total_tokens,
        "estimated_cost_usd": usage.estimated_cost_usd,
        "cost_status": status,
        "cost_source": usage.cost_source,
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn answered() -> Report {
        let result = TurnResult {
            text: Some("hi".into()),
            completed: true,
            model: "fake".into(),
            provider: "custom".into(),
            turn_exit_reason: "text_response(finish_reason=stop)".into(),
            api_calls: 2,
            tool_calls: 1,
            usage: Some(Usage {
                input_tokens: 10,
                output_tokens: 2,
                cache_read_tokens: 5,
                total_tokens: 17,
                ..Default::default()
            }),
            ..Default::default()
        };
        Report {
            session_id: Some("20260101_000000_00000000".into()),
            result: Some(result),
            ..Default::default()
        }
    }

    #[test]
    fn the_object_of_a_run() {
        insta::assert_json_snapshot!(answered().to_json());
    }

    #[test]
    fn the_last_line_of_a_stream_is_the_same_object_with_its_type() {
        let line = answered().to_stream_json();
        assert_eq!(line.get("type"), Some(&json!("result")));
        assert_eq!(line.get("final_response"), Some(&json!("hi")));
    }

    #[test]
    fn the_usage_file_of_a_run_that_never_began() {
        insta::assert_json_snapshot!(Report::failed(None, "no daemon").to_usage_json());
    }

    #[test]
    fn what_this_client_stopped_counts_as_interrupted() {
        let stopped = Report { stopped: Some(StopCause::Timeout), ..answered() };
        assert_eq!(stopped.exit(), Exit::Timeout);
        let json = stopped.to_json();
        assert_eq!(json.get("interrupted"), Some(&json!(true)));
        assert_eq!(json.get("error"), Some(&json!("the time limit (--timeout) was reached")));
    }

    #[test]
    fn a_run_without_a_turn_is_a_failure() {
        assert_eq!(Report::failed(None, "x").exit(), Exit::Failure);
    }
}
