//! Which settings are policy, and which way each is wider.
//!
//! Contract §7 names them: `approvals.*`, `security.*`, allow-lists, hooks, MCP commands. Toolsets are none of
//! them: whichever tools a session offers, each of their effects is judged.

use std::collections::BTreeSet;

use hermes_config::Settings;
use serde_json::Value;

/// Which of two values lets the agent do more.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Wider {
    /// The later of these words.
    Later(&'static [&'static str]),
    /// `true`.
    WhenTrue,
    /// `false`.
    WhenFalse,
    /// A list that names more.
    More,
    /// A list that names less: of what is denied or masked.
    Fewer,
    /// Every other value: no order is known.
    Any,
    /// A map in which an entry is new or other than before. Accepted entries are kept by their hash, since they
    /// may hold secrets.
    Entries,
    /// None: it decides nothing about what may be done.
    Neither,
}

/// The words of `approvals.mode`, from the narrowest.
const MODES: &[&str] = &["manual", "smart", "off"];
/// The words of `approvals.cron_mode` and `headless_mode`.
const UNATTENDED: &[&str] = &["deny", "approve"];

/// Policy keys by name. What of a section of [`SECTIONS`] is not named here counts too.
const KEYS: &[(&str, Wider)] = &[
    ("approvals.mode", Wider::Later(MODES)),
    // Longer or shorter, silence is a no.
    ("approvals.timeout", Wider::Neither),
    ("approvals.cron_mode", Wider::Later(UNATTENDED)),
    ("approvals.headless_mode", Wider::Later(UNATTENDED)),
    ("approvals.deny", Wider::Fewer),
    ("command_allowlist", Wider::More),
    ("security.redact_secrets", Wider::WhenFalse),
    ("security.redact_prefixes", Wider::Fewer),
    ("security.allow_private_urls", Wider::WhenTrue),
    ("security.allow_lazy_installs", Wider::WhenTrue),
    // What commands see, run first, and run in.
    ("terminal.env_passthrough", Wider::More),
    ("terminal.shell_init_files", Wider::More),
    ("terminal.backend", Wider::Any),
    ("terminal.docker_volumes", Wider::More),
    ("terminal.docker_extra_args", Wider::Any),
    ("terminal.docker_forward_env", Wider::More),
    // Programs that the daemon itself runs. A hook may also be what forbids, so taking one out is no small change.
    ("hooks", Wider::Any),
    ("hooks_auto_accept", Wider::WhenTrue),
    ("mcp_servers", Wider::Entries),
    ("skills.inline_shell", Wider::WhenTrue),
    ("delegation.subagent_auto_approve", Wider::WhenTrue),
];

/// Sections of which every key is policy, also one that this version does not know.
const SECTIONS: [&str; 2] = ["approvals", "security"];

/// How a key is compared; `None` for a key that is no policy.
pub(super) fn wider(key: &str) -> Option<Wider> {
    let named = KEYS.iter().find(|(known, _)| *known == key).map(|(_, wider)| *wider);
    let in_section = || {
        let (section, _) = key.split_once('.')?;
        SECTIONS.contains(&section).then_some(Wider::Any)
    };
    named.or_else(in_section).filter(|wider| *wider != Wider::Neither)
}

/// All policy keys: those of the table, those that the settings add to a policy section, and `more`.
pub(super) fn keys<'k>(settings: &Settings, more: impl Iterator<Item = &'k String>) -> BTreeSet<String> {
    let of_sections = SECTIONS.iter().flat_map(|section| {
        let names = settings.get(section).and_then(Value::as_object);
        names.into_iter().flat_map(|names| names.keys()).map(move |name| format!("{section}.{name}"))
    });
    let named = KEYS.iter().map(|(key, _)| (*key).to_owned());
    named.chain(of_sections).chain(more.cloned()).filter(|key| wider(key).is_some()).collect()
}

/// The names of a policy key's path. A section's keys hold no dots of their own that count.
pub(super) fn path(key: &str) -> Vec<&str> {
    match key.split_once('.') {
        Some((section, name)) => vec![section, name],
        None => vec![key],
    }
}

/// The value of a policy key.
pub(super) fn value<'s>(settings: &'s Settings, key: &str) -> Option<&'s Value> {
    let mut value = settings.get("")?;
    for name in path(key) {
        value = value.get(name)?;
    }
    Some(value)
}
