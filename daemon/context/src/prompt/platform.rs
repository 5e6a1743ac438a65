//! What the model is told about the surface that shows its answers (spec 20 §5).

use std::collections::BTreeMap;

use crate::settings::HintOverride;

/// What a platform's hint can depend on.
#[derive(Debug, Clone, Copy)]
pub(super) struct HintFacts<'a> {
    pub(super) tool_names: &'a [String],
    pub(super) telegram_rich: bool,
    pub(super) desktop_pane: bool,
}

/// Condition of one sentence.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum When {
    Always,
    /// The model has this tool.
    Tool(&'static str),
    TelegramRich,
    DesktopPane,
}

struct Hint {
    platforms: &'static [&'static str],
    sentences: &'static [(When, &'static str)],
}

use When::{Always, DesktopPane, TelegramRich, Tool};

const FILES: &str = "To send a file, put `MEDIA:/absolute/path` on a line of its own.";
const LOCAL_CRON: (When, &str) =
    (Tool("cronjob"), "Output of scheduled jobs stays on this machine, so promise no delivery here.");

/// The built-in table. A platform without an entry gets no hint.
static HINTS: &[Hint] = &[
    Hint {
        platforms: &["cli"],
        sentences: &[
            (
                Always,
                "Your answers appear as plain text in a terminal: little Markdown, no tables, no `MEDIA:` tags. Name files by their absolute path.",
            ),
            LOCAL_CRON,
        ],
    },
    Hint {
        platforms: &["tui"],
        sentences: &[
            (
                Always,
                "Your answers appear in a terminal that renders simple Markdown. Name files by their absolute path.",
            ),
            LOCAL_CRON,
            (
                DesktopPane,
                "This terminal is a pane of the desktop app, where the user can send a selection to the composer.",
            ),
        ],
    },
    Hint {
        platforms: &["desktop"],
        sentences: &[(Always, "Full Markdown is rendered, with tables and math."), (Always, FILES)],
    },
    Hint {
        platforms: &["webui"],
        sentences: &[
            (Always, "Full Markdown is rendered, with tables and math."),
            (Always, FILES),
            (Always, "Do not embed local files as `![](/path)`."),
        ],
    },
    Hint {
        platforms: &["telegram"],
        sentences: &[
            (
                Always,
                "You write in a Telegram chat. Markdown is converted for you; prefer short lists to tables.",
            ),
            (Always, FILES),
            (TelegramRich, "Headings, tables and nested lists are rendered too."),
        ],
    },
    Hint {
        platforms: &["whatsapp", "signal"],
        sentences: &[
            (
                Always,
                "You write in a phone chat. Simple Markdown is converted for you; no tables, no headings.",
            ),
            (Always, FILES),
        ],
    },
    Hint {
        platforms: &["whatsapp_cloud"],
        sentences: &[
            (
                Always,
                "You write in a phone chat. Simple Markdown is converted for you; no tables, no headings.",
            ),
            (Always, FILES),
            (
                Always,
                "A reply is possible only within 24 hours of the user's last message; later it fails with error 131047.",
            ),
        ],
    },
    Hint {
        platforms: &["discord"],
        sentences: &[
            (
                Always,
                "You write in a Discord channel: its Markdown, no tables, about 2,000 characters a message.",
            ),
            (Always, FILES),
        ],
    },
    Hint {
        platforms: &["slack"],
        sentences: &[
            (
                Always,
                "You write in Slack. Markdown is converted for you; no tables, no headings below the first.",
            ),
            (Always, FILES),
        ],
    },
    Hint {
        platforms: &["mattermost"],
        sentences: &[
            (Always, "You write in Mattermost, which renders Markdown with tables."),
            (Always, FILES),
        ],
    },
    Hint {
        platforms: &["feishu"],
        sentences: &[
            (Always, "You write in Feishu. Simple Markdown is rendered; no tables."),
            (Always, FILES),
        ],
    },
    Hint {
        platforms: &["matrix"],
        sentences: &[
            (
                Always,
                "You write in a Matrix room. Markdown is rendered, but no tables, spoilers, strike-through or checkboxes; give links a name.",
            ),
            (Always, FILES),
        ],
    },
    Hint {
        platforms: &["email"],
        sentences: &[
            (
                Always,
                "Your answer is sent as a plain-text mail under the same subject. No greeting and no sign-off unless they are asked for.",
            ),
            (Always, FILES),
        ],
    },
    Hint {
        platforms: &["sms"],
        sentences: &[(
            Always,
            "Your answer is sent as a text message: plain text, at most about 1,600 characters.",
        )],
    },
    Hint {
        platforms: &["bluebubbles"],
        sentences: &[(Always, "You write in iMessage: plain text without Markdown."), (Always, FILES)],
    },
    Hint {
        platforms: &["weixin", "qqbot"],
        sentences: &[(Always, "You write in a phone chat. Compact Markdown; no tables."), (Always, FILES)],
    },
    Hint {
        platforms: &["wecom"],
        sentences: &[
            (Always, "You write in WeCom. Compact Markdown; no tables."),
            (Always, FILES),
            (Always, "Images up to 10 MB, files up to 20 MB, voice as AMR."),
        ],
    },
    Hint {
        platforms: &["yuanbao"],
        sentences: &[
            (Always, "You write in Yuanbao. Compact Markdown; no tables."),
            (Always, FILES),
            (Always, "Files up to 50 MB."),
            (Tool("yb_send_sticker"), "For a sticker use the sticker tools; do not draw one."),
        ],
    },
    Hint {
        platforms: &["api_server"],
        sentences: &[(
            Always,
            "Your answer goes to a program whose display is not known: plain, conversational text with little markup.",
        )],
    },
    Hint {
        platforms: &["cron"],
        sentences: &[(
            Always,
            "This is a scheduled run and no user is present: nobody can answer a question, so decide and finish. Your last answer is delivered as it stands.",
        )],
    },
];

/// The hint for `platform` after the profile's overrides; `None` when there is nothing to say.
pub(super) fn hint(
    platform: &str,
    facts: &HintFacts<'_>,
    overrides: &BTreeMap<String, HintOverride>,
) -> Option<String> {
    let builtin = HINTS.iter().find(|hint| hint.platforms.contains(&platform)).map(|hint| {
        let sentences: Vec<&str> =
            hint.sentences.iter().filter(|(when, _)| facts.hold(*when)).map(|(_, text)| *text).collect();
        sentences.join(" ")
    });
    let change =
        overrides.iter().find(|(name, _)| name.trim().to_lowercase() == platform).map(|(_, change)| change);
    let (replace, append) = match change {
        None => (None, None),
        Some(HintOverride::Append(text)) => (None, Some(text.as_str())),
        Some(HintOverride::Parts { append, replace }) => (replace.as_deref(), append.as_deref()),
    };
    let base = replace.map(str::to_owned).or(builtin);
    let parts: Vec<&str> = [base.as_deref(), append].into_iter().flatten().map(str::trim).collect();
    let parts: Vec<&str> = parts.into_iter().filter(|part| !part.is_empty()).collect();
    (!parts.is_empty()).then(|| parts.join("\n\n"))
}

impl HintFacts<'_> {
    fn hold(&self, when: When) -> bool {
        match when {
            Always => true,
            Tool(name) => self.tool_names.iter().any(|tool| tool == name),
            TelegramRich => self.telegram_rich,
            DesktopPane => self.desktop_pane,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn all_facts(tool_names: &[String]) -> HintFacts<'_> {
        HintFacts { tool_names, telegram_rich: true, desktop_pane: true }
    }

    #[test]
    fn every_hint_is_as_reviewed() {
        let tools = ["cronjob".to_owned(), "yb_send_sticker".to_owned()];
        let all: Vec<String> = HINTS
            .iter()
            .flat_map(|hint| hint.platforms)
            .map(|name| format!("== {name}\n{}", hint(name, &all_facts(&tools), &BTreeMap::new()).unwrap()))
            .collect();
        insta::assert_snapshot!(all.join("\n"));
    }

    #[test]
    fn a_sentence_about_an_absent_tool_is_left_out() {
        let facts = HintFacts { tool_names: &[], telegram_rich: false, desktop_pane: false };
        for hint_entry in HINTS {
            for name in hint_entry.platforms {
                let text = hint(name, &facts, &BTreeMap::new()).unwrap();
                assert!(!text.contains("cheduled jobs") && !text.contains("sticker"), "{name}");
                assert!(!text.contains("composer") && !text.contains("nested"), "{name}");
            }
        }
    }

    #[test]
    fn overrides_replace_then_append() {
        let facts = HintFacts { tool_names: &[], telegram_rich: false, desktop_pane: false };
        let check = |json: &str, wanted: Option<&str>| {
            let overrides: BTreeMap<String, HintOverride> = serde_json::from_str(json).unwrap();
            assert_eq!(hint("sms", &facts, &overrides).as_deref(), wanted, "{json}");
        };
        let builtin = hint("sms", &facts, &BTreeMap::new()).unwrap();
        check(r#"{"cli":"x"}"#, Some(&builtin));
        check(r#"{"sms":"x"}"#, Some(&format!("{builtin}\n\nx")));
        check(r#"{"SMS ":{"append":" x "}}"#, Some(&format!("{builtin}\n\nx")));
        check(r#"{"sms":{"replace":"y"}}"#, Some("y"));
        check(r#"{"sms":{"replace":"y","append":"x"}}"#, Some("y\n\nx"));
        check(r#"{"sms":{"replace":""}}"#, None);
        check(r#"{"sms":{}}"#, Some(&builtin));
        let unknown: BTreeMap<String, HintOverride> = serde_json::from_str(r#"{"pager":"beep"}"#).unwrap();
        assert_eq!(hint("pager", &facts, &unknown).as_deref(), Some("beep"));
        assert_eq!(hint("pager", &facts, &BTreeMap::new()), None);
    }
}
