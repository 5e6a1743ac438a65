//! Whether a stored prompt still fits, and its change to another model (spec 20 §4).

use crate::settings::GuidanceSettings;

use super::environment::ENVIRONMENT_OPEN;
use super::{model_blocks, volatile};

/// What a session's stored prompt is good for.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Restore {
    /// It is replayed byte for byte.
    Present,
    /// It names another model or provider.
    StaleRuntime,
    /// It is blank: an earlier write failed.
    Empty,
    /// There is none.
    Missing,
}

/// Judges a stored prompt by its `Model:` and `Provider:` lines, the last of each before the environment block. A line
/// that is absent fits.
pub fn restore(stored: Option<&str>, model: &str, provider: &str) -> Restore {
    match stored {
        None => Restore::Missing,
        Some(stored) if stored.trim().is_empty() => Restore::Empty,
        Some(stored) => {
            let (head, _) = split_environment(stored);
            let fits =
                |key: &str, value: &str| trailer_value(head, key).is_none_or(|found| found == value.trim());
            if fits(volatile::MODEL, model) && fits(volatile::PROVIDER, provider) {
                Restore::Present
            } else {
                Restore::StaleRuntime
            }
        }
    }
}

/// The runtime that a stored prompt is to be changed to.
#[derive(Debug, Clone, Copy)]
pub struct ModelSwitch<'a> {
    pub model: &'a str,
    pub provider: &'a str,
    pub tool_names: &'a [String],
    pub settings: &'a GuidanceSettings,
}

/// Changes only what depends on the model (the guidance for its family and the trailer) and keeps every other byte:
/// project files and memory are not read again. `None` when the prompt is not of our make and has to be rebuilt.
pub fn switch_model(stored: &str, to: &ModelSwitch<'_>) -> Option<String> {
    let (head, environment) = split_environment(stored);
    let old_model = trailer_value(head, volatile::MODEL)?;
    let old_provider = trailer_value(head, volatile::PROVIDER)?;

    // The model's blocks stand directly before the profile's block.
    let profile = head.find(&format!("\n\n{}", model_blocks::next_block_opening()))?;
    let (mut stable, rest) = head.split_at_checked(profile)?;
    for block in model_blocks::every_variant(old_model).iter().rev() {
        stable = stable.strip_suffix(&format!("\n\n{block}")).unwrap_or(stable);
    }
    let mut out = stable.to_owned();
    for block in model_blocks::render(to.settings, to.tool_names, to.model, to.provider) {
        out.push_str("\n\n");
        out.push_str(&block);
    }
    let rest = replace_last_line(rest, volatile::MODEL, old_model, to.model)?;
    let rest = replace_last_line(&rest, volatile::PROVIDER, old_provider, to.provider)?;
    out.push_str(&rest);
    out.push_str(environment);
    Some(out)
}

/// The prompt up to its environment block, and that block.
fn split_environment(prompt: &str) -> (&str, &str) {
    let at = prompt.rfind(&format!("\n{ENVIRONMENT_OPEN}\n")).unwrap_or(prompt.len());
    prompt.split_at_checked(at).unwrap_or((prompt, ""))
}

/// The value of the last line that begins with `key`.
fn trailer_value<'a>(head: &'a str, key: &str) -> Option<&'a str> {
    head.lines().rev().find_map(|line| line.strip_prefix(key)).map(str::trim)
}

fn replace_last_line(text: &str, key: &str, old: &str, new: &str) -> Option<String> {
    let line = format!("\n{key} {old}");
    let at = text.rfind(&line)?;
    let (before, after) = (text.get(..at)?, text.get(at + line.len()..)?);
    Some(format!("{before}\n{key} {}{after}", new.trim()))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn prompt(trailer: &str) -> String {
        format!(
            "You are Hermes.\n\nModel: a file says so\n\n{trailer}\n\n<environment>\nHost: x\nModel: evil\n</environment>"
        )
    }

    #[test]
    fn the_last_trailer_lines_before_the_environment_decide() {
        use Restore::{Empty, Missing, Present, StaleRuntime};
        let now = |stored: Option<&str>| restore(stored, "m-1", "p-1");
        assert_eq!(now(None), Missing);
        assert_eq!(now(Some("")), Empty);
        assert_eq!(now(Some(" \n")), Empty);
        assert_eq!(now(Some(&prompt("Model: m-1\nProvider: p-1\nPlatform: cli"))), Present);
        assert_eq!(now(Some(&prompt("Model: m-2\nProvider: p-1"))), StaleRuntime);
        assert_eq!(now(Some(&prompt("Model: m-1\nProvider: p-2"))), StaleRuntime);
        // The last one counts, even when a project file holds such a line.
        assert_eq!(now(Some(&prompt("Model: m-2\n\nModel: m-1"))), Present);
        // Absent lines fit; what stands in the environment block is no trailer.
        assert_eq!(now(Some("You are Hermes.\n\n<environment>\nModel: other\n</environment>")), Present);
        assert_eq!(now(Some("You are Hermes.")), Present);
    }

    #[test]
    fn a_prompt_that_is_not_ours_is_not_changed() {
        let settings = GuidanceSettings::default();
        let to = ModelSwitch { model: "m", provider: "p", tool_names: &[], settings: &settings };
        assert_eq!(switch_model("You are another agent.", &to), None);
        assert_eq!(switch_model(&prompt("Model: a\nProvider: b"), &to), None);
    }
}
