//! Token counts as `chat_completions` servers report them (spec 30 §20).

use hermes_core::Usage;
use serde_json::Value;

/// Maps a `usage` object; `None` when it counts nothing.
pub(crate) fn usage(value: &Value) -> Option<Usage> {
    let prompt = count(value.get("prompt_tokens"));
    let output = count(value.get("completion_tokens"));
    let prompt_details = value.get("prompt_tokens_details");
    let detail = |name: &str| prompt_details.and_then(|details| count(details.get(name)));
    let cache_read = detail("cached_tokens")
        .or_else(|| count(value.get("cache_read_input_tokens")))
        .or_else(|| count(value.get("prompt_cache_hit_tokens")))
        .unwrap_or(0);
    let cache_write =
        detail("cache_write_tokens").or_else(|| count(value.get("cache_creation_input_tokens"))).unwrap_or(0);
    let reasoning = value
        .get("completion_tokens_details")
        .and_then(|details| count(details.get("reasoning_tokens")))
        .unwrap_or(0);
    if prompt.is_none() && output.is_none() {
        return None;
    }
    Some(Usage {
        input: prompt.unwrap_or(0).saturating_sub(cache_read).saturating_sub(cache_write),
        output: output.unwrap_or(0),
        cache_read,
        cache_write,
        reasoning,
    })
}

/// The cost in US dollars that an aggregator reports with its counts.
pub(crate) fn cost_usd(value: &Value) -> Option<f64> {
    value.get("cost").and_then(Value::as_f64).filter(|cost| cost.is_finite() && *cost >= 0.0)
}

/// Some servers count in floating point.
fn count(value: Option<&Value>) -> Option<u64> {
    let value = value?;
    value.as_u64().or_else(|| {
        let float = value.as_f64().filter(|float| (0.0..9e15).contains(float))?;
        #[expect(clippy::cast_possible_truncation, clippy::cast_sign_loss, reason = "checked to be in range")]
        Some(float as u64)
    })
}

#[cfg(test)]
mod tests {
    use pretty_assertions::assert_eq;
    use serde_json::json;

    use super::*;

    #[test]
    fn cached_tokens_are_taken_out_of_the_input_in_every_dialect() {
        let expect = |input, output, cache_read, cache_write, reasoning| {
            Some(Usage { input, output, cache_read, cache_write, reasoning })
        };
        let cases = [
            (json!({"prompt_tokens": 100, "completion_tokens": 7}), expect(100, 7, 0, 0, 0)),
            (
                json!({"prompt_tokens": 100, "completion_tokens": 7,
                       "prompt_tokens_details": {"cached_tokens": 60, "cache_write_tokens": 10},
                       "completion_tokens_details": {"reasoning_tokens": 5}}),
                expect(30, 7, 60, 10, 5),
            ),
            (
                json!({"prompt_tokens": 100, "completion_tokens": 7, "cache_read_input_tokens": 40, "cache_creation_input_tokens": 20}),
                expect(40, 7, 40, 20, 0),
            ),
            (
                json!({"prompt_tokens": 100, "completion_tokens": 1, "prompt_cache_hit_tokens": 90}),
                expect(10, 1, 90, 0, 0),
            ),
            (
                json!({"prompt_tokens": 10, "completion_tokens": 1, "prompt_tokens_details": {"cached_tokens": 90}}),
                expect(0, 1, 90, 0, 0),
            ),
            (
                json!({"prompt_tokens": 10.0, "completion_tokens": null, "prompt_tokens_details": null}),
                expect(10, 0, 0, 0, 0),
            ),
            (json!({"total_tokens": 5}), None),
            (json!({"prompt_tokens": -1, "completion_tokens": "x"}), None),
        ];
        for (value, expected) in cases {
            assert_eq!(usage(&value), expected, "{value}");
        }
        assert_eq!(cost_usd(&json!({"cost": 0.25})), Some(0.25));
        assert_eq!(cost_usd(&json!({"cost": "n/a"})), None);
    }
}
