//! The one extra call of a turn that ran out of iterations: no tools, a summary of what was found
//! (spec 10 §4). Tried twice; its text is not streamed.

use hermes_context::prompts;
use hermes_core::Message;
use hermes_providers::{CallRequest, PrefixCache, StreamDelta, StreamSink, ToolList};
use tracing::warn;

use crate::session::SessionFacts;
use crate::turn::{Turn, TurnCx};

const ATTEMPTS: u32 = 2;

pub(crate) async fn run(turn: &mut Turn, cx: &TurnCx<'_>, facts: &mut SessionFacts) -> Option<String> {
    let mut messages = turn.history.durable().to_vec();
    messages.push(std::sync::Arc::new(Message::user(prompts::SUMMARISE_PROGRESS, cx.now())));
    for _ in 0..ATTEMPTS {
        let provider = cx.shared.deps.providers.provider_for(&facts.route);
        let call = CallRequest {
            route: &facts.route,
            system: &facts.system_prompt,
            tools: &ToolList::default(),
            messages: &messages,
            max_output_tokens: None,
            stream: facts.streaming,
            // Its own, so that the session's prefix stays as it was sent.
            prefix: &mut PrefixCache::default(),
            facts: &cx.shared.deps.offline_facts,
        };
        turn.api_calls += 1;
        match provider.call(call, &mut Silent, cx.interrupt.token()).await {
            Ok(response) => {
                super::book(turn, facts, &response);
                if let Some(text) = response.content.filter(|text| !text.trim().is_empty()) {
                    return Some(text.trim().to_owned());
                }
            }
            Err(error) => warn!(class = ?error.class, message = %error.message, "summary call failed"),
        }
        if cx.interrupt.cause().is_some() {
            return None;
        }
    }
    None
}

struct Silent;

impl StreamSink for Silent {
    fn delta(&mut self, _delta: StreamDelta<'_>) {}
}
