//! The responder that runs when no model is configured (design §8).
//!
//! It is no language model and says so in every answer. It understands a handful of requests,
//! drives the session's real tools through ordinary tool calls, and reports what they gave. The
//! same history always gets the same answer, so it also serves as the demo and the smoke test.

mod facts;
mod intent;
mod reply;

use std::sync::Arc;

use async_trait::async_trait;
use hermes_core::{Clock, FinishReason, Message, Role, ToolCall, ToolCallId, Usage};
use hermes_runtime::Redactor;
use serde_json::Value;
use sha2::{Digest as _, Sha256};
use tokio_util::sync::CancellationToken;

pub use facts::OfflineFacts;

use crate::catalog::OFFLINE;
use crate::failure::{CallError, FailureClass};
use crate::offline::intent::understand;
use crate::offline::reply::Outcome;
use crate::provider::{CallRequest, ModelResponse, Provider, StreamDelta, StreamSink};

/// Answers without a model.
#[derive(Debug)]
pub(crate) struct Offline {
    redactor: Redactor,
    clock: Arc<dyn Clock>,
}

impl Offline {
    pub(crate) fn new(redactor: Redactor, clock: Arc<dyn Clock>) -> Self {
        Self { redactor, clock }
    }
}

#[async_trait]
impl Provider for Offline {
    async fn call(
        &self,
        request: CallRequest<'_>,
        sink: &mut dyn StreamSink,
        cancel: &CancellationToken,
    ) -> Result<ModelResponse, CallError> {
        if cancel.is_cancelled() {
            let message = "the call was cancelled";
            return Err(CallError::new(FailureClass::Cancelled, message, request.route, &self.redactor));
        }
        let (asked, results) = current_exchange(request.messages);
        let intent = understand(&asked);
        let next = match (intent.tool_call(), results.last()) {
            (Some((tool, arguments)), None) if request.tools.has(tool) => Next::Call { tool, arguments },
            (Some((tool, _)), None) => Next::Say(reply::without_tool(&intent, tool)),
            (Some(_), Some(result)) => Next::Say(reply::report(&intent, &Outcome::read(&result.text()))),
            (None, _) => Next::Say(reply::in_words(&intent, request.tools, request.facts, self.clock.now())),
        };
        Ok(match next {
            Next::Call { tool, arguments } => {
                sink.delta(StreamDelta::ToolGenerating { name: tool });
                let arguments = arguments.to_string();
                let id = call_id(tool, &arguments, request.messages.len());
                response(None, vec![ToolCall { id, name: tool.to_owned(), arguments, provider_data: None }])
            }
            Next::Say(text) => {
                let text = format!("{}\n\n{}", text.trim_end(), reply::footer(request.facts));
                // By lines, as a stream: whoever watches the demo sees what a model's stream looks like.
                for line in text.split_inclusive('\n') {
                    sink.delta(StreamDelta::Text(line));
                }
                response(Some(text), Vec::new())
            }
        })
    }
}

enum Next {
    Call { tool: &'static str, arguments: Value },
    Say(String),
}

/// What the user asked last, and the tool results that came since.
fn current_exchange(messages: &[Arc<Message>]) -> (String, Vec<&Message>) {
    let last_user = messages.iter().rposition(|message| message.role == Role::User);
    let asked = last_user.and_then(|at| messages.get(at)).map(|message| message.text().into_owned());
    let since = messages.get(last_user.map_or(0, |at| at + 1)..).unwrap_or_default();
    let results = since.iter().map(AsRef::as_ref).filter(|message| message.role == Role::Tool).collect();
    (asked.unwrap_or_default(), results)
}

/// Deterministic, and different for the same call later in the session.
fn call_id(tool: &str, arguments: &str, position: usize) -> ToolCallId {
    let digest = Sha256::digest(format!("{OFFLINE}:{tool}:{arguments}:{position}"));
    let hex: Vec<String> = digest.iter().take(6).map(|byte| format!("{byte:02x}")).collect();
    ToolCallId::new(format!("call_{}", hex.concat()))
}

fn response(content: Option<String>, tool_calls: Vec<ToolCall>) -> ModelResponse {
    let finish_reason = if tool_calls.is_empty() { FinishReason::Stop } else { FinishReason::ToolCalls };
    ModelResponse {
        content,
        tool_calls,
        finish_reason,
        // No model, so no tokens: that is known, and nothing is to be estimated.
        usage: Some(Usage::default()),
        model: OFFLINE.to_owned(),
        provider_cost_usd: Some(0.0),
        ..ModelResponse::default()
    }
}

#[cfg(test)]
mod tests;
