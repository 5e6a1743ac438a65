//! The named toolsets, as data (spec 40 §2.1–2.2). A name without a registered tool contributes nothing.

/// How a toolset takes part when nobody named it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Standing {
    /// Part of the bundles that hold its tools.
    On,
    /// Only when it is named, or through `all`.
    Off,
    /// Only when it is named itself: not even `all` means it.
    OptIn,
    /// Stands for other sets; it cannot be switched by itself.
    Composite,
    /// A composite for a kind of workspace: disabling it takes only what is not core.
    Posture,
}

/// One named set.
#[derive(Debug)]
pub(crate) struct Toolset {
    pub(crate) name: &'static str,
    /// One line for set-up screens and lists.
    pub(crate) description: &'static str,
    pub(crate) tools: &'static [&'static str],
    pub(crate) includes: &'static [&'static str],
    pub(crate) standing: Standing,
}

const fn set(
    name: &'static str,
    standing: Standing,
    description: &'static str,
    tools: &'static [&'static str],
) -> Toolset {
    Toolset { name, description, tools, includes: &[], standing }
}

use Standing::{Composite, Off, On, OptIn, Posture};

/// All sets of the built-in tools. Plugins and MCP servers bring sets of their own.
pub(crate) static TOOLSETS: &[Toolset] = &[
    set(
        "browser",
        On,
        "drive a web browser",
        &[
            "browser_navigate",
            "browser_snapshot",
            "browser_click",
            "browser_type",
            "browser_scroll",
            "browser_back",
            "browser_press",
            "browser_get_images",
            "browser_vision",
            "browser_console",
            "browser_cdp",
            "browser_dialog",
        ],
    ),
    set("clarify", On, "ask the user a question", &["clarify"]),
    set("code_execution", On, "run code that calls tools", &["execute_code"]),
    set("computer_use", On, "see and use the desktop", &["computer_use"]),
    set("cronjob", On, "schedule jobs", &["cronjob"]),
    set("delegation", On, "hand work to sub-agents", &["delegate_task"]),
    set("discord", Off, "act on Discord", &["discord"]),
    set("discord_admin", Off, "administer a Discord server", &["discord_admin"]),
    set("feishu_doc", On, "read Feishu documents", &["feishu_doc_read"]),
    set(
        "feishu_drive",
        On,
        "comments in Feishu Drive",
        &[
            "feishu_drive_list_comments",
            "feishu_drive_list_comment_replies",
            "feishu_drive_reply_comment",
            "feishu_drive_add_comment",
        ],
    ),
    set(
        "file",
        On,
        "read, write, patch and search files",
        &["read_file", "write_file", "patch", "search_files"],
    ),
    set(
        "homeassistant",
        Off,
        "control Home Assistant",
        &["ha_list_entities", "ha_get_state", "ha_list_services", "ha_call_service"],
    ),
    set("image_gen", On, "make images", &["image_generate"]),
    set(
        "kanban",
        OptIn,
        "work on the board",
        &[
            "kanban_show",
            "kanban_list",
            "kanban_complete",
            "kanban_block",
            "kanban_heartbeat",
            "kanban_comment",
            "kanban_create",
            "kanban_link",
            "kanban_unblock",
            "kanban_attach",
            "kanban_attach_url",
            "kanban_attachments",
        ],
    ),
    set("memory", On, "keep lasting notes", &["memory"]),
    set("messaging", Off, "send messages to other chats", &["send_message"]),
    set("moa", Off, "ask several models and merge their answers", &["mixture_of_agents"]),
    set(
        "project",
        Off,
        "switch projects in the console",
        &["project_list", "project_create", "project_switch"],
    ),
    set(
        "rl",
        Off,
        "reinforcement-learning runs",
        &[
            "rl_list_environments",
            "rl_select_environment",
            "rl_get_current_config",
            "rl_edit_config",
            "rl_start_training",
            "rl_check_status",
            "rl_stop_training",
            "rl_get_results",
            "rl_list_runs",
            "rl_test_inference",
        ],
    ),
    set("search", On, "search the web only", &["web_search"]),
    set("session_search", On, "search past sessions", &["session_search"]),
    set(
        "skills",
        On,
        "read and keep skills",
        &["skills_categories", "skills_list", "skill_view", "skill_manage"],
    ),
    set("spotify", Off, "control Spotify", &[]),
    set("terminal", On, "run commands and processes", &["terminal", "process"]),
    set("todo", On, "keep a task list", &["todo"]),
    set("tts", On, "speak text", &["text_to_speech"]),
    set("video", Off, "look at videos", &["video_analyze"]),
    set("video_gen", Off, "make videos", &["video_generate", "xai_video_edit", "xai_video_extend"]),
    set("vision", On, "look at images", &["vision_analyze"]),
    set("web", On, "search and read the web", &["web_search", "web_extract"]),
    set("x_search", Off, "search X", &["x_search"]),
    set(
        "yuanbao",
        On,
        "act on Yuanbao",
        &[
            "yb_query_group_info",
            "yb_query_group_members",
            "yb_send_dm",
            "yb_search_sticker",
            "yb_send_sticker",
        ],
    ),
    Toolset {
        name: "debugging",
        description: "terminal, web and files",
        tools: &["terminal", "process"],
        includes: &["web", "file"],
        standing: Composite,
    },
    Toolset {
        name: "safe",
        description: "no terminal, no writing",
        tools: &[],
        includes: &["web", "vision", "image_gen"],
        standing: Composite,
    },
    Toolset {
        name: "coding",
        description: "what a code workspace needs",
        tools: &[],
        includes: &[
            "web",
            "terminal",
            "file",
            "vision",
            "skills",
            "browser",
            "todo",
            "memory",
            "session_search",
            "clarify",
            "code_execution",
            "delegation",
        ],
        standing: Posture,
    },
];

/// The default of every interactive or chat surface.
const CORE: &[&str] = &[
    "web",
    "terminal",
    "file",
    "vision",
    "image_gen",
    "skills",
    "browser",
    "tts",
    "todo",
    "memory",
    "session_search",
    "clarify",
    "code_execution",
    "delegation",
    "cronjob",
    "homeassistant",
    "kanban",
    "computer_use",
];

/// What a platform's bundle is, told as its difference from the core list.
#[derive(Debug)]
struct Bundle {
    platform: &'static str,
    plus: &'static [&'static str],
    minus: &'static [&'static str],
}

/// Platforms whose bundle is not just the core list.
static BUNDLES: &[Bundle] = &[
    Bundle { platform: "discord", plus: &["discord", "discord_admin"], minus: &[] },
    Bundle { platform: "feishu", plus: &["feishu_doc", "feishu_drive"], minus: &[] },
    Bundle { platform: "yuanbao", plus: &["yuanbao"], minus: &[] },
    Bundle {
        platform: "acp",
        plus: &[],
        minus: &["clarify", "cronjob", "image_gen", "tts", "computer_use", "homeassistant", "kanban"],
    },
    Bundle { platform: "api-server", plus: &[], minus: &["clarify", "tts", "computer_use", "kanban"] },
    Bundle {
        platform: "gateway",
        plus: &["discord", "discord_admin", "feishu_doc", "feishu_drive", "yuanbao"],
        minus: &[],
    },
];

/// Platforms whose bundle is exactly the core list.
const PLAIN_PLATFORMS: &[&str] = &[
    "cli",
    "cron",
    "telegram",
    "whatsapp",
    "slack",
    "signal",
    "bluebubbles",
    "homeassistant",
    "email",
    "sms",
    "mattermost",
    "matrix",
    "dingtalk",
    "weixin",
    "qqbot",
    "wecom",
    "wecom-callback",
];

/// Untrusted input must not reach files or a shell.
const WEBHOOK: &[&str] = &["web", "vision", "clarify"];

/// Sets that a scheduled session never has: nobody is there to answer, and a job must not breed jobs.
pub(crate) const NEVER_IN_CRON: &[&str] = &["cronjob", "messaging", "clarify"];

const BUNDLE_PREFIX: &str = "hermes-";

/// Names of earlier versions.
const LEGACY: &[(&str, &str)] = &[
    ("web_tools", "web"),
    ("terminal_tools", "terminal"),
    ("vision_tools", "vision"),
    ("image_tools", "image_gen"),
    ("skills_tools", "skills"),
    ("browser_tools", "browser"),
    ("cronjob_tools", "cronjob"),
    ("file_tools", "file"),
    ("tts_tools", "tts"),
];

/// The static set of that name; legacy names are followed.
pub(crate) fn find(name: &str) -> Option<&'static Toolset> {
    let current = LEGACY.iter().find(|(old, _)| *old == name).map_or(name, |(_, new)| new);
    TOOLSETS.iter().find(|set| set.name == current)
}

/// Tools of a set with those of the sets that it includes, each once.
pub(crate) fn expand(set: &'static Toolset) -> Vec<&'static str> {
    let mut tools = Vec::new();
    let mut seen = Vec::new();
    let mut open = vec![set];
    while let Some(set) = open.pop() {
        // A cycle or a diamond is walked once.
        if seen.contains(&set.name) {
            continue;
        }
        seen.push(set.name);
        tools.extend(set.tools);
        open.extend(set.includes.iter().filter_map(|name| find(name)));
    }
    tools.sort_unstable();
    tools.dedup();
    tools
}

/// The sets of a bundle `hermes-<platform>`; `None` for another name.
pub(crate) fn bundle(name: &str) -> Option<Vec<&'static str>> {
    let platform = name.strip_prefix(BUNDLE_PREFIX)?;
    if platform == "webhook" {
        return Some(WEBHOOK.to_vec());
    }
    if PLAIN_PLATFORMS.contains(&platform) {
        return Some(CORE.to_vec());
    }
    let bundle = BUNDLES.iter().find(|bundle| bundle.platform == platform)?;
    let kept = CORE.iter().filter(|name| !bundle.minus.contains(name));
    Some(kept.chain(bundle.plus).copied().collect())
}

/// The sets that a surface has when nothing is configured: its own bundle, else the core list.
pub(crate) fn platform_default(platform: &str) -> Vec<&'static str> {
    bundle(&format!("{BUNDLE_PREFIX}{}", platform.replace('_', "-"))).unwrap_or_else(|| CORE.to_vec())
}

/// Whether the set is part of the core list.
pub(crate) fn is_core(name: &str) -> bool {
    CORE.contains(&name)
}

/// All names that a list of toolsets may hold, for "did you mean".
pub(crate) fn known_names() -> impl Iterator<Item = &'static str> {
    TOOLSETS.iter().map(|set| set.name)
}

#[cfg(test)]
mod tests {
    use pretty_assertions::assert_eq;

    use super::*;

    #[test]
    fn every_name_in_the_tables_is_a_set() {
        let bundled = BUNDLES.iter().flat_map(|bundle| bundle.plus.iter().chain(bundle.minus));
        let included = TOOLSETS.iter().flat_map(|set| set.includes);
        let legacy = LEGACY.iter().map(|(_, new)| new);
        for name in
            CORE.iter().chain(WEBHOOK).chain(NEVER_IN_CRON).chain(bundled).chain(included).chain(legacy)
        {
            assert!(find(name).is_some(), "{name}");
        }
    }

    #[test]
    fn set_names_are_unique() {
        let mut names: Vec<&str> = known_names().collect();
        let all = names.len();
        names.sort_unstable();
        names.dedup();
        assert_eq!(names.len(), all);
    }

    #[test]
    fn includes_are_followed_once() {
        let debugging = expand(find("debugging").unwrap());
        assert_eq!(
            debugging,
            [
                "patch",
                "process",
                "read_file",
                "search_files",
                "terminal",
                "web_extract",
                "web_search",
                "write_file"
            ],
        );
    }

    #[test]
    fn disabling_browser_leaves_web_search() {
        assert!(!expand(find("browser").unwrap()).contains(&"web_search"));
    }

    #[test]
    fn webhooks_reach_neither_files_nor_a_shell() {
        assert_eq!(bundle("hermes-webhook").unwrap(), ["web", "vision", "clarify"]);
    }

    #[test]
    fn surfaces_without_a_bundle_have_the_core_list() {
        assert_eq!(platform_default("tui"), CORE);
        assert!(!platform_default("api_server").contains(&"clarify"));
    }
}
