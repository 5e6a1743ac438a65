//! Guidance that depends on the model's family (spec 20 §2.1, S9 to S11). It stands together in the prompt, directly
//! before the profile's block, so that it can be changed without a rebuild.

use crate::prompts::{self, fill};
use crate::settings::GuidanceSettings;

/// Families that announce instead of acting.
const ANNOUNCING: [&str; 8] = ["gpt", "codex", "gemini", "gemma", "grok", "glm", "qwen", "deepseek"];
/// Families that need to be told to persist and to verify.
const UNSTEADY: [&str; 6] = ["gpt", "codex", "grok", "deepseek", "kimi", "qwen"];
/// Families with an addendum to the first block.
const GEMINI: [&str; 2] = ["gemini", "gemma"];
/// The provider whose API reports a wrong model name.
const MISREPORTING_PROVIDER: &str = "alibaba";

/// The blocks for `model`, in their order.
pub(super) fn render(
    settings: &GuidanceSettings,
    tool_names: &[String],
    model: &str,
    provider: &str,
) -> Vec<String> {
    let mut blocks = Vec::new();
    if !tool_names.is_empty() {
        if settings.tool_use_enforcement.applies(model, &ANNOUNCING) {
            let gemini = GEMINI.iter().any(|family| model.to_lowercase().contains(family));
            let terminal = tool_names.iter().any(|name| name == "terminal");
            blocks.push(act(gemini, gemini && terminal));
        }
        if settings.execution_guidance.applies(model, &UNSTEADY) {
            blocks.push(prompts::DISCIPLINE.to_owned());
        }
    }
    if provider.trim().eq_ignore_ascii_case(MISREPORTING_PROVIDER) {
        blocks.push(self_identity(model));
    }
    blocks
}

/// Every block that [`render`] may have made for `model`, in the order of the prompt.
pub(super) fn every_variant(model: &str) -> [String; 5] {
    [
        act(false, false),
        act(true, false),
        act(true, true),
        prompts::DISCIPLINE.to_owned(),
        self_identity(model),
    ]
}

/// How the block after these begins.
pub(super) fn next_block_opening() -> &'static str {
    prompts::PROFILE.split('{').next().unwrap_or(prompts::PROFILE)
}

fn act(gemini: bool, terminal: bool) -> String {
    let parts = [
        Some(prompts::ACT),
        gemini.then_some(prompts::ACT_GEMINI),
        terminal.then_some(prompts::ACT_GEMINI_TERMINAL),
    ];
    parts.into_iter().flatten().collect::<Vec<_>>().join(" ")
}

fn self_identity(model: &str) -> String {
    fill(prompts::SELF_IDENTITY, &[("model", model.trim())])
}
