//! The rough token estimate, for the time before a provider has reported real usage (spec 20 §14.2).

use std::sync::Arc;

use hermes_core::{Content, Message, Part};

/// Tokens that one image is priced at until its real price is learned.
pub const IMAGE_TOKENS: u64 = 1_500;

/// Characters that count as one token.
const CHARS_PER_TOKEN: u64 = 4;

/// Characters of a message's JSON around its fields: `{"role":"…","content":""},`.
const MESSAGE_OVERHEAD: u64 = 30;

/// Characters of a call's JSON around its fields.
const CALL_OVERHEAD: u64 = 70;

/// Estimates a whole request: system prompt, tool list (`tools_json_len` characters) and messages.
pub fn estimate_tokens(system: &str, tools_json_len: usize, messages: &[Arc<Message>]) -> u64 {
    let fixed = text_tokens(system) + (tools_json_len as u64).div_ceil(CHARS_PER_TOKEN);
    messages.iter().map(|message| message_tokens(message)).fold(fixed, u64::saturating_add)
}

/// Estimates plain text: a quarter of its characters, rounded up; 0 for none.
pub fn text_tokens(text: &str) -> u64 {
    char_count(text).div_ceil(CHARS_PER_TOKEN)
}

/// Estimates one message as it stands on the wire. Images have a flat price; opaque provider items count nothing.
pub fn message_tokens(message: &Message) -> u64 {
    let mut chars = MESSAGE_OVERHEAD + char_count(message.role.as_str());
    let mut images = 0;
    match (&message.api_content, &message.content) {
        (Some(text), Some(Content::Parts(parts))) => {
            chars += json_chars(text);
            images += parts.iter().filter(|part| matches!(part, Part::Image { .. })).count() as u64;
        }
        (Some(text), _) | (None, Some(Content::Text(text))) => chars += json_chars(text),
        (None, Some(Content::Parts(parts))) => {
            for part in parts {
                match part {
                    Part::Text(text) => chars += MESSAGE_OVERHEAD + json_chars(text),
                    Part::Image { .. } => images += 1,
                }
            }
        }
        (None, None) => {}
    }
    for call in &message.tool_calls {
        chars += CALL_OVERHEAD
            + char_count(call.id.as_str())
            + char_count(&call.name)
            + json_chars(&call.arguments);
    }
    if let Some(id) = &message.tool_call_id {
        chars += char_count(id.as_str()) + 18;
    }
    if let Some(text) = &message.reasoning_content {
        chars += json_chars(text) + 22;
    }
    chars.div_ceil(CHARS_PER_TOKEN) + images * IMAGE_TOKENS
}

fn char_count(text: &str) -> u64 {
    text.chars().count() as u64
}

/// Characters of `text` inside a JSON string, with its escapes.
fn json_chars(text: &str) -> u64 {
    let escapes = text
        .bytes()
        .map(|byte| match byte {
            b'"' | b'\\' | b'\n' | b'\r' | b'\t' => 1,
            0..0x20 => 5,
            _ => 0,
        })
        .sum::<u64>();
    char_count(text) + escapes
}

#[cfg(test)]
mod tests {
    use super::*;
    use hermes_core::{Instant, Json, ToolCall, ToolCallId};

    #[test]
    fn text_counts_a_quarter_rounded_up() {
        for (text, tokens) in [("", 0), ("a", 1), ("abcd", 1), ("abcde", 2), ("éééé", 1)] {
            assert_eq!(text_tokens(text), tokens, "{text:?}");
        }
    }

    #[test]
    fn images_have_a_flat_price_whatever_their_bytes() {
        let image = |bytes: usize| {
            let url = format!("data:image/png;base64,{}", "A".repeat(bytes));
            Message::user(Content::Parts(vec![Part::Image { url, detail: None }]), Instant(0.0))
        };
        assert_eq!(message_tokens(&image(10)), message_tokens(&image(1_000_000)));
        assert!(message_tokens(&image(10)) >= IMAGE_TOKENS);
    }

    #[test]
    fn calls_count_and_opaque_items_do_not() {
        let plain = Message::assistant("hi", Instant(0.0));
        let mut opaque = plain.clone();
        opaque.reasoning = Some("x".repeat(4_000));
        opaque.reasoning_details = Some(Json::parse(format!("[\"{}\"]", "x".repeat(4_000))).unwrap());
        assert_eq!(message_tokens(&plain), message_tokens(&opaque));
        let mut calling = plain.clone();
        calling.tool_calls.push(ToolCall {
            id: ToolCallId::new("call_1"),
            name: "terminal".into(),
            arguments: format!("{{\"command\":\"{}\"}}", "x".repeat(4_000)),
            provider_data: None,
        });
        assert!(message_tokens(&calling) > 1_000);
    }

    #[test]
    fn a_request_is_the_sum_of_its_parts() {
        let message = Arc::new(Message::user("hello", Instant(0.0)));
        let one = message_tokens(&message);
        assert_eq!(estimate_tokens("12345678", 9, &[Arc::clone(&message), message]), 2 + 3 + 2 * one);
    }
}
