//! What an answer or an error means. Pure: the decisions, without the deeds (spec 10 §7, §8).

use hermes_core::FinishReason;
use hermes_providers::{CallError, FailureClass, ModelResponse};

/// The verdict on a response.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Answer {
    Whole,
    /// The provider's content filter.
    Refused,
    /// Text that stopped at the length limit, or with the network.
    TruncatedText {
        network: bool,
    },
    /// A tool call that stopped half-way; it must not run.
    TruncatedCall,
    /// The stream broke and took a tool call with it.
    DroppedCall,
    /// All output went into thinking.
    OnlyThinking,
}

pub(super) fn answer(response: &ModelResponse) -> Answer {
    if response.finish_reason == FinishReason::ContentFilter {
        return Answer::Refused;
    }
    if let Some(cut) = &response.interrupted_stream {
        return if cut.dropped_calls.is_empty() {
            Answer::TruncatedText { network: true }
        } else {
            Answer::DroppedCall
        };
    }
    if response.truncated_call {
        return Answer::TruncatedCall;
    }
    if response.finish_reason != FinishReason::Length {
        return Answer::Whole;
    }
    let has_text = response.content.as_ref().is_some_and(|text| !text.trim().is_empty());
    if !response.tool_calls.is_empty() {
        Answer::TruncatedCall
    } else if has_text {
        Answer::TruncatedText { network: false }
    } else if response.reasoning.is_some() {
        Answer::OnlyThinking
    } else {
        // Nothing at all: the ladder for empty answers deals with it.
        Answer::Whole
    }
}

/// What to do about an error, before the general retry rule is asked.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum AfterError {
    /// Text was shown already: keep it and ask for the rest.
    ContinuePartial,
    /// Nothing was lost: the same call again, at once.
    RetryStream,
    DisableStreaming,
    RetryOrFail,
}

pub(super) fn error(error: &CallError, stream_retry_left: bool) -> AfterError {
    if error.class == FailureClass::StreamingUnsupported {
        return AfterError::DisableStreaming;
    }
    let broke_off = matches!(
        error.class,
        FailureClass::Connection
            | FailureClass::Timeout
            | FailureClass::Stale
            | FailureClass::MalformedStream
            | FailureClass::EmptyStream
    );
    if !broke_off {
        return AfterError::RetryOrFail;
    }
    if !error.streamed_text.is_empty() && !error.tool_in_flight {
        return AfterError::ContinuePartial;
    }
    // A connection that was never made is not a broken stream; it gets the slower, announced retries.
    let was_streaming = error.tool_in_flight || error.status.is_some();
    if was_streaming && stream_retry_left { AfterError::RetryStream } else { AfterError::RetryOrFail }
}

/// Joins the pieces of an answer; a newline only where two words would run together.
pub(crate) fn join_fragments(fragments: &[String]) -> String {
    let mut joined = String::new();
    for fragment in fragments {
        let glue = joined.chars().next_back().zip(fragment.chars().next());
        if glue.is_some_and(|(a, b)| a.is_alphanumeric() && b.is_uppercase()) {
            joined.push('\n');
        }
        joined.push_str(fragment);
    }
    joined
}

#[cfg(test)]
mod tests {
    use hermes_core::ToolCall;
    use hermes_providers::InterruptedStream;
    use pretty_assertions::assert_eq;

    use super::*;

    fn response(finish_reason: FinishReason, text: &str) -> ModelResponse {
        ModelResponse {
            content: (!text.is_empty()).then(|| text.to_owned()),
            finish_reason,
            ..ModelResponse::default()
        }
    }

    #[test]
    fn responses_are_judged() {
        let call = ToolCall {
            id: hermes_core::ToolCallId::new("c1"),
            name: "terminal".into(),
            arguments: "{\"command\":\"rm -rf /tmp/a".into(),
            provider_data: None,
        };
        let cut = |dropped: &[&str]| ModelResponse {
            interrupted_stream: Some(InterruptedStream {
                dropped_calls: dropped.iter().map(ToString::to_string).collect(),
            }),
            ..response(FinishReason::Length, "half")
        };
        let table = [
            (response(FinishReason::Stop, "hi"), Answer::Whole),
            (response(FinishReason::ContentFilter, "no"), Answer::Refused),
            (response(FinishReason::Length, "half"), Answer::TruncatedText { network: false }),
            (response(FinishReason::Length, ""), Answer::Whole),
            (
                ModelResponse { tool_calls: vec![call.clone()], ..response(FinishReason::Length, "half") },
                Answer::TruncatedCall,
            ),
            (
                ModelResponse {
                    tool_calls: vec![call],
                    truncated_call: true,
                    ..response(FinishReason::ToolCalls, "")
                },
                Answer::TruncatedCall,
            ),
            (
                ModelResponse { reasoning: Some("hm".into()), ..response(FinishReason::Length, "") },
                Answer::OnlyThinking,
            ),
            (cut(&[]), Answer::TruncatedText { network: true }),
            (cut(&["write_file"]), Answer::DroppedCall),
        ];
        for (response, expected) in table {
            assert_eq!(answer(&response), expected, "{response:?}");
        }
    }

    #[test]
    fn pieces_join_without_gluing_sentences() {
        let join =
            |parts: &[&str]| join_fragments(&parts.iter().map(ToString::to_string).collect::<Vec<_>>());
        assert_eq!(join(&["one two", " three"]), "one two three");
        assert_eq!(join(&["inter", "rupted"]), "interrupted");
        assert_eq!(join(&["the end", "Next"]), "the end\nNext");
    }
}
