//! Which tool names a session may have, before availability is asked (spec 40 §2.3).

use std::collections::BTreeSet;

use super::toolsets::{self, Standing};
use crate::settings::ToolsetSettings;

/// Similarity from which an unknown toolset name is answered with "did you mean".
const NEAR: f64 = 0.7;

/// What decides a session's toolsets.
#[derive(Debug, Clone, Copy)]
pub struct ToolsetChoice<'a> {
    /// The session's own list (`--toolsets`): exact, and empty means no tools.
    pub explicit: Option<&'a [String]>,
    /// The surface: `cli`, `telegram`, `cron`, …
    pub platform: &'a str,
    pub settings: &'a ToolsetSettings,
}

/// Tool names and what the user should know about how they came about.
#[derive(Debug, PartialEq, Eq, Default)]
pub(crate) struct Resolved {
    pub(crate) tools: BTreeSet<String>,
    pub(crate) warnings: Vec<String>,
}

/// Resolves `choice`. `registered` gives the tools that are registered under a toolset's name.
pub(crate) fn resolve(choice: &ToolsetChoice<'_>, registered: &dyn Fn(&str) -> Vec<String>) -> Resolved {
    let configured = choice.settings.platform_toolsets.get(choice.platform).map(Vec::as_slice);
    let mut out = Resolved::default();
    match choice.explicit.or(configured) {
        Some(names) => take_list(names, registered, &mut out),
        None => {
            for name in on_by_default(toolsets::platform_default(choice.platform)) {
                take_set(name, registered, &mut out.tools);
            }
        }
    }
    // Last, so that subtraction always wins.
    if choice.platform == "cron" {
        for name in toolsets::NEVER_IN_CRON {
            subtract(name, registered, &mut out);
        }
    }
    for name in &choice.settings.disabled {
        subtract(name, registered, &mut out);
    }
    out
}

fn on_by_default(names: Vec<&'static str>) -> impl Iterator<Item = &'static str> {
    names.into_iter().filter(|name| {
        toolsets::find(name).is_some_and(|set| !matches!(set.standing, Standing::Off | Standing::OptIn))
    })
}

/// A list that somebody wrote: sets are meant exactly; a bundle in it stands for its sets.
fn take_list(names: &[String], registered: &dyn Fn(&str) -> Vec<String>, out: &mut Resolved) {
    let mut valid = 0_usize;
    for name in names {
        let name = name.trim();
        if matches!(name, "all" | "*") {
            let all = toolsets::TOOLSETS.iter().filter(|set| set.standing != Standing::OptIn);
            for set in all {
                take_set(set.name, registered, &mut out.tools);
            }
        } else if let Some(sets) = toolsets::bundle(name) {
            for set in on_by_default(sets) {
                take_set(set, registered, &mut out.tools);
            }
        } else if !take_set(name, registered, &mut out.tools) {
            out.warnings.push(unknown(name));
            continue;
        }
        valid += 1;
    }
    if valid == 0 && !names.is_empty() {
        out.warnings.push("none of the named toolsets exists: this session has no tools".to_owned());
    }
}

/// Adds a set's tools; `false` when nobody knows the name.
fn take_set(name: &str, registered: &dyn Fn(&str) -> Vec<String>, tools: &mut BTreeSet<String>) -> bool {
    let own = registered(name);
    let fixed = toolsets::find(name);
    let known = fixed.is_some() || !own.is_empty();
    tools.extend(fixed.into_iter().flat_map(toolsets::expand).map(str::to_owned));
    tools.extend(own);
    known
}

fn subtract(name: &str, registered: &dyn Fn(&str) -> Vec<String>, out: &mut Resolved) {
    let name = name.trim();
    let posture = toolsets::find(name).filter(|set| set.standing == Standing::Posture);
    let of_bundle = toolsets::bundle(name).or_else(|| posture.map(|set| set.includes.to_vec()));
    let Some(sets) = of_bundle else {
        let mut gone = BTreeSet::new();
        if !take_set(name, registered, &mut gone) {
            out.warnings.push(unknown(name));
        }
        out.tools.retain(|tool| !gone.contains(tool));
        return;
    };
    out.warnings.push(format!(
        "`{name}` stands for many toolsets: disabling it takes only what is not in the core list; \
         name single toolsets to disable those"
    ));
    for set in sets.into_iter().filter(|set| !toolsets::is_core(set)) {
        let mut gone = BTreeSet::new();
        take_set(set, registered, &mut gone);
        out.tools.retain(|tool| !gone.contains(tool));
    }
}

fn unknown(name: &str) -> String {
    let near = toolsets::known_names()
        .map(|known| (strsim::jaro_winkler(name, known), known))
        .filter(|(score, _)| *score >= NEAR)
        .max_by(|(a, _), (b, _)| a.total_cmp(b));
    match near {
        Some((_, near)) => format!("unknown toolset `{name}`; did you mean `{near}`?"),
        None => format!("unknown toolset `{name}`"),
    }
}

#[cfg(test)]
mod tests {
    use pretty_assertions::assert_eq;

    use super::*;

    fn nothing(_: &str) -> Vec<String> {
        Vec::new()
    }

    fn list(names: &[&str]) -> Vec<String> {
        names.iter().map(|name| (*name).to_owned()).collect()
    }

    fn resolved(explicit: Option<&[&str]>, platform: &str, settings: &ToolsetSettings) -> Resolved {
        let explicit = explicit.map(list);
        resolve(&ToolsetChoice { explicit: explicit.as_deref(), platform, settings }, &nothing)
    }

    fn names(resolved: &Resolved) -> Vec<&str> {
        resolved.tools.iter().map(String::as_str).collect()
    }

    #[test]
    fn an_explicit_list_is_exact_and_an_empty_one_means_no_tools() {
        let settings = ToolsetSettings::default();
        let todo = resolved(Some(&["todo", "clarify"]), "cli", &settings);
        assert_eq!(names(&todo), ["clarify", "todo"]);
        assert_eq!(resolved(Some(&[]), "cli", &settings), Resolved::default());
    }

    #[test]
    fn the_order_is_session_then_settings_then_bundle() {
        let settings = ToolsetSettings {
            platform_toolsets: [("cli".to_owned(), list(&["memory"]))].into(),
            ..ToolsetSettings::default()
        };
        assert_eq!(names(&resolved(Some(&["todo"]), "cli", &settings)), ["todo"]);
        assert_eq!(names(&resolved(None, "cli", &settings)), ["memory"]);
        assert!(resolved(None, "telegram", &settings).tools.contains("terminal"));
    }

    #[test]
    fn bundles_leave_out_what_is_off_unless_named() {
        let settings = ToolsetSettings::default();
        let bundle = resolved(Some(&["hermes-discord"]), "discord", &settings);
        assert!(bundle.tools.contains("terminal") && !bundle.tools.contains("discord"));
        let named = resolved(Some(&["hermes-discord", "discord"]), "discord", &settings);
        assert!(named.tools.contains("discord") && named.tools.contains("terminal"));
    }

    #[test]
    fn all_means_everything_but_what_is_opt_in() {
        let all = resolved(Some(&["*"]), "cli", &ToolsetSettings::default());
        assert!(all.tools.contains("ha_get_state") && all.tools.contains("send_message"));
        assert!(!all.tools.contains("kanban_show"));
        assert!(
            resolved(Some(&["kanban"]), "cli", &ToolsetSettings::default()).tools.contains("kanban_show")
        );
    }

    #[test]
    fn subtraction_always_wins() {
        let settings = ToolsetSettings { disabled: list(&["terminal"]), ..ToolsetSettings::default() };
        let out = resolved(Some(&["terminal", "file"]), "cli", &settings);
        assert_eq!(names(&out), ["patch", "read_file", "search_files", "write_file"]);
        let cron = resolved(Some(&["all"]), "cron", &ToolsetSettings::default());
        assert!(!cron.tools.contains("clarify") && !cron.tools.contains("cronjob"));
    }

    #[test]
    fn disabling_a_bundle_takes_only_what_is_not_core() {
        let settings = ToolsetSettings { disabled: list(&["hermes-yuanbao"]), ..ToolsetSettings::default() };
        let out = resolved(Some(&["file", "yuanbao"]), "cli", &settings);
        assert_eq!(names(&out), ["patch", "read_file", "search_files", "write_file"]);
        assert_eq!(out.warnings.len(), 1);
    }

    #[test]
    fn legacy_names_work_and_unknown_ones_warn() {
        let out = resolved(Some(&["file_tools", "filee"]), "cli", &ToolsetSettings::default());
        assert!(out.tools.contains("read_file"));
        assert_eq!(out.warnings, ["unknown toolset `filee`; did you mean `file`?"]);
        let none = resolved(Some(&["qqqq"]), "cli", &ToolsetSettings::default());
        assert_eq!(
            none.warnings,
            ["unknown toolset `qqqq`", "none of the named toolsets exists: this session has no tools"],
        );
    }

    #[test]
    fn registered_sets_count_as_names() {
        let registered = |name: &str| if name == "mcp-git" { list(&["mcp_git_log"]) } else { Vec::new() };
        let explicit = list(&["mcp-git"]);
        let settings = ToolsetSettings::default();
        let out = resolve(
            &ToolsetChoice { explicit: Some(&explicit), platform: "cli", settings: &settings },
            &registered,
        );
        assert_eq!(names(&out), ["mcp_git_log"]);
        assert!(out.warnings.is_empty());
    }
}
