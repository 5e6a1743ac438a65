//! How much of a result the model gets: layers 2 and 3 of spec 10 §12. Layer 1 is in the tools.

use std::path::PathBuf;

use hermes_core::ToolCall;
use serde_json::Value;

use super::{CallCx, spill};
use crate::files::first_chars;
use crate::services::ToolServices;
use crate::tool::ResultCap;

/// Characters of a result, and of all results of one assistant message, that reach the model.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct ResultLimits {
    pub per_result: usize,
    pub per_batch: usize,
}

impl ResultLimits {
    const MIN_RESULT: usize = 8_000;
    const MAX_RESULT: usize = 100_000;
    const MIN_BATCH: usize = 16_000;
    const MAX_BATCH: usize = 200_000;

    /// Limits for a model with that many tokens of context: 15 % and 30 % of it, at four characters a
    /// token, within bounds. An unknown window counts as large.
    pub fn for_window(tokens: Option<u64>) -> Self {
        let chars =
            tokens.and_then(|tokens| usize::try_from(tokens).ok()).unwrap_or(usize::MAX).saturating_mul(4);
        Self {
            per_result: (chars / 20 * 3).clamp(Self::MIN_RESULT, Self::MAX_RESULT),
            per_batch: (chars / 10 * 3).clamp(Self::MIN_BATCH, Self::MAX_BATCH),
        }
    }
}

impl Default for ResultLimits {
    fn default() -> Self {
        Self::for_window(None)
    }
}

/// Shorter results are never spilled for the batch's sake: the block would hardly be shorter.
const WORTH_SPILLING: usize = 3_000;

/// Characters of a spilled text that are shown (spec 10 §12).
const PREVIEW_CHARS: usize = 1_500;

/// Share of the result that one text must have to be spilled by itself, in readable lines.
const DOMINANT_PERCENT: usize = 50;

/// A result as it goes to the model.
#[derive(Debug)]
pub(super) struct Sized {
    pub(super) text: String,
    pub(super) chars: usize,
    pub(super) spilled: bool,
    /// Where the full text was saved.
    pub(super) file: Option<PathBuf>,
}

impl Sized {
    fn new(text: String, spilled: bool) -> Self {
        Self { chars: text.chars().count(), text, spilled, file: None }
    }
}

pub(super) async fn run(
    content: &Value,
    cap: ResultCap,
    tool: &str,
    call: &ToolCall,
    cx: &CallCx,
    services: &ToolServices,
) -> Sized {
    let whole = Sized::new(content.to_string(), false);
    let limit = threshold(cap, tool, cx, services);
    let too_long = limit.is_some_and(|limit| whole.chars > limit);
    let batch_full = whole.chars > WORTH_SPILLING && cx.batch_used + whole.chars > cx.limits.per_batch;
    if !too_long && !batch_full {
        return whole;
    }
    let spilled = Spilled::of(content, whole.text);
    let saved = spill::save(services, &cx.session_id, &call.id, spilled.text.clone()).await;
    let place = match &saved {
        Ok(path) => {
            let search =
                if cx.tools.allows("search_files") { ", or search it with search_files" } else { "" };
            let read = if cx.tools.allows("read_file") {
                format!(" Read parts of it with read_file (offset, limit){search}.")
            } else {
                String::new()
            };
            format!("The full text is in {}.{read}", path.display())
        }
        Err(error) => {
            tracing::warn!(%error, "long tool result could not be saved");
            format!("The rest is lost: it could not be saved ({error}).")
        }
    };
    Sized { file: saved.ok(), ..Sized::new(spilled.block(tool, whole.chars, &place), true) }
}

/// Characters from which on the result is spilled; `None` = never for its own length.
fn threshold(cap: ResultCap, tool: &str, cx: &CallCx, services: &ToolServices) -> Option<usize> {
    let overridden = services.settings.borrow().output.overrides.get(tool).copied();
    match (cap, overridden) {
        (ResultCap::Unlimited, _) => None,
        (_, Some(chars)) => Some(chars),
        (ResultCap::Chars(chars), None) => Some(chars.min(cx.limits.per_result)),
        (ResultCap::Default, None) => Some(cx.limits.per_result),
    }
}

/// What goes to the file, and what stays.
struct Spilled {
    text: String,
    /// The name of the field that `text` is, when it is one.
    field: Option<String>,
    /// The result without that field.
    rest: Option<String>,
}

impl Spilled {
    /// A text that makes up most of the result goes to the file as it is, so that it can be read by lines;
    /// otherwise the whole JSON does.
    fn of(content: &Value, json: String) -> Self {
        let dominant = content.as_object().and_then(|fields| {
            let (name, text) = fields
                .iter()
                .filter_map(|(name, field)| Some((name, field.as_str()?)))
                .max_by_key(|(_, text)| text.len())?;
            (text.len() * 100 >= json.len() * DOMINANT_PERCENT).then(|| (name.clone(), text.to_owned()))
        });
        let Some((name, text)) = dominant else { return Self { text: json, field: None, rest: None } };
        let mut rest = content.clone();
        if let Value::Object(fields) = &mut rest {
            fields.shift_remove(&name);
        }
        Self { text, field: Some(name), rest: Some(rest.to_string()) }
    }

    fn block(&self, tool: &str, chars: usize, place: &str) -> String {
        use std::fmt::Write as _;
        let mut out = format!("<persisted-output>\nThe result of {tool} has {chars} characters. {place}\n");
        if let Some(rest) = self.rest.as_deref().filter(|rest| *rest != "{}") {
            let (rest, cut) = first_chars(rest, PREVIEW_CHARS);
            let _ = writeln!(out, "Other fields: {rest}{}", if cut { "…" } else { "" });
        }
        let shown = preview(&self.text);
        let of = self.field.as_deref().map_or_else(String::new, |field| format!(" of `{field}`"));
        let _ = write!(out, "First {} characters{of}:\n{shown}\n</persisted-output>", shown.chars().count());
        out
    }
}

/// The beginning, up to the last line end in its second half.
fn preview(text: &str) -> &str {
    let (shown, cut) = first_chars(text, PREVIEW_CHARS);
    if !cut {
        return shown;
    }
    match shown.rfind('\n') {
        Some(end) if end >= shown.len() / 2 => shown.get(..end).unwrap_or(shown),
        _ => shown,
    }
}

#[cfg(test)]
mod tests {
    use pretty_assertions::assert_eq;
    use serde_json::json;

    use super::*;

    #[test]
    fn limits_shrink_with_the_window() {
        for (window, want) in [
            (None, (100_000, 200_000)),
            (Some(1_000_000), (100_000, 200_000)),
            (Some(128_000), (76_800, 153_600)),
            (Some(8_000), (8_000, 16_000)),
            (Some(0), (8_000, 16_000)),
        ] {
            let limits = ResultLimits::for_window(window);
            assert_eq!((limits.per_result, limits.per_batch), want, "{window:?}");
        }
    }

    #[test]
    fn a_preview_ends_at_a_line() {
        let text = format!("{}\n{}", "a".repeat(1000), "b".repeat(1000));
        assert_eq!(preview(&text), "a".repeat(1000));
        assert_eq!(preview(&"é".repeat(2000)), "é".repeat(1500));
        assert_eq!(preview("short"), "short");
    }

    #[test]
    fn the_longest_text_is_spilled_as_it_is() {
        let content = json!({ "output": "line 1\nline 2\n".repeat(10), "exit_code": 0 });
        let spilled = Spilled::of(&content, content.to_string());
        assert!(spilled.text.starts_with("line 1\nline 2\n"));
        assert_eq!(spilled.rest.as_deref(), Some("{\"exit_code\":0}"));
        let list = json!({ "items": ["a", "b"] });
        assert_eq!(Spilled::of(&list, list.to_string()).text, "{\"items\":[\"a\",\"b\"]}");
    }
}
