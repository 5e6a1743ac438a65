//! `clarify`: a question of the model to the user (spec 40 §6.5).

use std::sync::Arc;
use std::time::Duration;

use async_trait::async_trait;
use hermes_config::Settings;
use hermes_core::{Json, ToolSchema, ToolStatus};
use hermes_tools::{
    OwnedEffect, Question, QuestionAnswer, Tool, ToolCx, ToolOutput, ToolSettings, ToolTraits, Workspace,
};
use schemars::JsonSchema;
use serde::Deserialize;
use serde_json::{Value, json};
use tokio::sync::watch;

use crate::settings::AgentSettings;

/// Answers that are offered at most; a client adds the free one.
const MAX_CHOICES: usize = 4;
/// Characters of a question in a preview.
const PREVIEW_CHARS: usize = 120;
/// Surfaces on which somebody sits in front of the question; all others are chats.
const LOCAL: [&str; 6] = ["cli", "tui", "desktop", "acp", "api_server", "subagent"];

/// Section `clarify`.
#[derive(Debug, Clone, PartialEq, Eq, Deserialize, JsonSchema)]
#[serde(default)]
pub struct ClarifySettings {
    /// Seconds that a question of the agent waits on local surfaces; `agent.clarify_timeout` holds in chats.
    #[schemars(range(min = 1))]
    pub timeout: u64,
}

impl Default for ClarifySettings {
    fn default() -> Self {
        Self { timeout: 120 }
    }
}

/// The tool.
#[derive(Debug)]
pub(super) struct Clarify {
    settings: watch::Receiver<Arc<Settings>>,
}

impl Clarify {
    pub(super) fn new(settings: watch::Receiver<Arc<Settings>>) -> Self {
        Self { settings }
    }

    fn timeout(&self, platform: &str) -> Duration {
        let settings = self.settings.borrow();
        let seconds = if LOCAL.contains(&platform) {
            settings.section::<ClarifySettings>("clarify").timeout
        } else {
            settings.section::<AgentSettings>("agent").clarify_timeout
        };
        Duration::from_secs(seconds.max(1))
    }
}

#[async_trait]
impl Tool for Clarify {
    fn name(&self) -> &'static str {
        "clarify"
    }

    fn toolset(&self) -> &'static str {
        "clarify"
    }

    fn schema(&self, _: &ToolSettings) -> ToolSchema {
        ToolSchema {
            name: self.name().to_owned(),
            description: "Ask the user one question and wait for the answer. Only for what you cannot find out or \
                          decide yourself: a choice that changes the result, or something that only they know."
                .to_owned(),
            parameters: Json::from(json!({
                "type": "object",
                "properties": {
                    "question": { "type": "string" },
                    "choices": {
                        "type": "array",
                        "items": { "type": ["string", "object"] },
                        "description": "Up to 4 answers to choose from; the user may always answer freely. Leave out \
                                        for an open question",
                    },
                },
                "required": ["question"],
            })),
        }
    }

    fn traits(&self) -> ToolTraits {
        ToolTraits { read_only: true, ..ToolTraits::default() }
    }

    fn preview(&self, arguments: &Value) -> String {
        let question = arguments.get("question").and_then(Value::as_str).unwrap_or_default();
        question.chars().take(PREVIEW_CHARS).collect()
    }

    fn effect(&self, arguments: &Value, _: &Workspace) -> Result<Vec<OwnedEffect>, String> {
        let question = arguments.get("question").and_then(Value::as_str).unwrap_or_default();
        if question.trim().is_empty() { Err("`question` is empty".to_owned()) } else { Ok(Vec::new()) }
    }

    async fn run(&self, cx: &ToolCx, arguments: Value) -> ToolOutput {
        let question =
            arguments.get("question").and_then(Value::as_str).unwrap_or_default().trim().to_owned();
        let choices = choices(arguments.get("choices"));
        let timeout = self.timeout(&cx.platform);
        let asked = Question {
            session_id: cx.session_id.clone(),
            turn_id: cx.turn_id.clone(),
            call_id: cx.call_id.clone(),
            question: cx.services.redactor.redact(&question).into_owned(),
            choices: choices.iter().map(|choice| cx.services.redactor.redact(choice).into_owned()).collect(),
            timeout,
            alone: cx.services.policy.settings().approvals.wait(),
        };
        let answer = cx.while_asking(cx.services.ask.question(asked, &cx.cancel)).await;
        let output = ToolOutput::looked(json!({ "question": question, "choices_offered": choices }));
        if cx.cancel.is_cancelled() {
            let output =
                output.with("user_response", Value::Null).with("error", "stopped before an answer came");
            return ToolOutput { status: ToolStatus::Cancelled, ..output };
        }
        match answer {
            QuestionAnswer::Answered(answer) if answer.trim().is_empty() => output
                .with("user_response", Value::Null)
                .with("note", "The user gave no answer. Choose a sensible default, name it, and go on.")
                .summed_up("no answer"),
            QuestionAnswer::Answered(answer) => output.with("user_response", answer).summed_up("answered"),
            QuestionAnswer::TimedOut => output
                .with("user_response", Value::Null)
                .with("timed_out", true)
                .with(
                    "note",
                    format!(
                        "No answer came within {} s; that is no choice. Choose a sensible default that can be undone, \
                         name it, and go on; or say what you wait for and end.",
                        timeout.as_secs()
                    ),
                )
                .summed_up("no answer"),
            QuestionAnswer::Nobody => output
                .with("user_response", Value::Null)
                .with("note", "Nobody is there who could answer. Choose a sensible default, name it, and go on.")
                .summed_up("nobody to ask"),
        }
    }
}

/// The answers to offer: texts, or what an object calls them.
fn choices(given: Option<&Value>) -> Vec<String> {
    let mut choices: Vec<String> = Vec::new();
    for choice in given.and_then(Value::as_array).into_iter().flatten() {
        let text = match choice {
            Value::Object(fields) => ["label", "description", "text", "title"]
                .into_iter()
                .filter_map(|name| fields.get(name).and_then(Value::as_str))
                .find(|text| !text.trim().is_empty())
                .unwrap_or_default()
                .to_owned(),
            Value::String(text) => text.clone(),
            Value::Number(number) => number.to_string(),
            Value::Null | Value::Bool(_) | Value::Array(_) => continue,
        };
        let text = text.trim().to_owned();
        if !text.is_empty() && !choices.contains(&text) && choices.len() < MAX_CHOICES {
            choices.push(text);
        }
    }
    choices
}

#[cfg(test)]
mod tests {
    use pretty_assertions::assert_eq;

    use super::*;

    #[test]
    fn choices_are_texts_or_what_objects_call_them() {
        let given = json!([
            "  one ",
            { "label": "", "description": "two" },
            { "value": "dropped" },
            { "title": "three", "text": "text comes first" },
            ["dropped"],
            "one",
            4,
            "five is too many",
        ]);
        assert_eq!(choices(Some(&given)), ["one", "two", "text comes first", "4"]);
        assert_eq!(choices(Some(&json!([]))), Vec::<String>::new());
        assert_eq!(choices(None), Vec::<String>::new());
    }
}
