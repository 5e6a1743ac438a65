//! The environment of child processes: built from nothing, so that no secret gets in by accident (spec 40 §10.2).

use std::collections::BTreeMap;
use std::ffi::{OsStr, OsString};
use std::path::{Path, PathBuf};

use hermes_core::ClientEnv;

use crate::secret::SecretScope;

/// The mark in the environment of every process that a tool starts; its value is the session. A client that
/// carries it, or descends from a process that does, is the agent itself (contract §7).
pub const TOOL_MARK: &str = "HERMES_TOOL_CHILD";

/// Folders that every PATH ends with.
const STANDARD_PATH: [&str; 6] =
    ["/usr/local/sbin", "/usr/local/bin", "/usr/sbin", "/usr/bin", "/sbin", "/bin"];

/// Credentials of model providers, tools and sandboxes, and where providers are reached: never passed on.
const BLOCKED: &[&str] = &[
    "ALIBABA_CODING_PLAN_API_KEY",
    "ANTHROPIC_API_KEY",
    "ANTHROPIC_AUTH_TOKEN",
    "ANTHROPIC_BASE_URL",
    "ANTHROPIC_TOKEN",
    "API_SERVER_KEY",
    "ARCEEAI_API_KEY",
    "AWS_BEARER_TOKEN_BEDROCK",
    "AZURE_FOUNDRY_API_KEY",
    "AZURE_FOUNDRY_BASE_URL",
    "AZURE_OPENAI_API_KEY",
    "BRAVE_SEARCH_API_KEY",
    "BROWSERBASE_API_KEY",
    "BROWSERBASE_PROJECT_ID",
    "BROWSER_USE_API_KEY",
    "BRV_API_KEY",
    "BWS_ACCESS_TOKEN",
    "CLAUDE_CODE_OAUTH_TOKEN",
    "COPILOT_API_BASE_URL",
    "COPILOT_GITHUB_TOKEN",
    "DASHSCOPE_API_KEY",
    "DAYTONA_API_KEY",
    "DEEPINFRA_API_KEY",
    "DEEPSEEK_API_KEY",
    "DEEPSEEK_BASE_URL",
    "ELEVENLABS_API_KEY",
    "EXA_API_KEY",
    "FAL_KEY",
    "FIRECRAWL_API_KEY",
    "FIRECRAWL_API_URL",
    "FIREWORKS_API_KEY",
    "GEMINI_API_KEY",
    "GEMINI_BASE_URL",
    "GH_TOKEN",
    "GITHUB_APP_PRIVATE_KEY",
    "GITHUB_TOKEN",
    "GLM_API_KEY",
    "GLM_BASE_URL",
    "GMI_API_KEY",
    "GOOGLE_API_KEY",
    "GOOGLE_APPLICATION_CREDENTIALS",
    "GROQ_API_KEY",
    "HASS_TOKEN",
    "HF_TOKEN",
    "HINDSIGHT_API_KEY",
    "HINDSIGHT_LLM_API_KEY",
    "HONCHO_API_KEY",
    "KILOCODE_API_KEY",
    "KIMI_API_KEY",
    "KIMI_BASE_URL",
    "KIMI_CN_API_KEY",
    "KIMI_CODING_API_KEY",
    "LM_API_KEY",
    "LM_BASE_URL",
    "MEM0_API_KEY",
    "MINIMAX_API_KEY",
    "MINIMAX_CN_API_KEY",
    "MISTRAL_API_KEY",
    "MODAL_TOKEN_ID",
    "MODAL_TOKEN_SECRET",
    "NOTION_TOKEN",
    "NOUS_API_KEY",
    "NOVITA_API_KEY",
    "NVIDIA_API_KEY",
    "OLLAMA_API_KEY",
    "OPENAI_API_KEY",
    "OPENAI_BASE_URL",
    "OPENCODE_GO_API_KEY",
    "OPENCODE_ZEN_API_KEY",
    "OPENROUTER_API_KEY",
    "OPENROUTER_BASE_URL",
    "OP_SERVICE_ACCOUNT_TOKEN",
    "PARALLEL_API_KEY",
    "PERPLEXITY_API_KEY",
    "REPLICATE_API_TOKEN",
    "RETAINDB_API_KEY",
    "RETAINDB_BASE_URL",
    "STEPFUN_API_KEY",
    "SUDO_PASSWORD",
    "SUPERMEMORY_API_KEY",
    "TAVILY_API_KEY",
    "TINKER_API_KEY",
    "TOKENHUB_API_KEY",
    "UPSTAGE_API_KEY",
    "VERCEL_OIDC_TOKEN",
    "VERCEL_TOKEN",
    "WANDB_API_KEY",
    "XAI_API_KEY",
    "XAI_BASE_URL",
    "XIAOMI_API_KEY",
    "ZAI_API_KEY",
    "Z_AI_API_KEY",
    // Messaging.
    "BLUEBUBBLES_PASSWORD",
    "DINGTALK_CLIENT_SECRET",
    "DISCORD_BOT_TOKEN",
    "EMAIL_PASSWORD",
    "FEISHU_APP_SECRET",
    "LINE_CHANNEL_ACCESS_TOKEN",
    "LINE_CHANNEL_SECRET",
    "MATRIX_ACCESS_TOKEN",
    "MATRIX_PASSWORD",
    "MATTERMOST_TOKEN",
    "QQ_CLIENT_SECRET",
    "SLACK_APP_TOKEN",
    "SLACK_BOT_TOKEN",
    "SLACK_SIGNING_SECRET",
    "SMTP_PASSWORD",
    "TEAMS_CLIENT_SECRET",
    "TELEGRAM_BOT_TOKEN",
    "TELEGRAM_WEBHOOK_SECRET",
    "TWILIO_AUTH_TOKEN",
    "WECOM_SECRET",
    "WEIXIN_TOKEN",
    "WHATSAPP_CLOUD_ACCESS_TOKEN",
    "WHATSAPP_CLOUD_APP_SECRET",
    "WHATSAPP_CLOUD_VERIFY_TOKEN",
    "YUANBAO_APP_SECRET",
];

/// Names that this crate or the client sets, so that nothing else may.
const OURS: [&str; 9] =
    ["HOME", "USER", "LOGNAME", "SHELL", "TERM", "TMPDIR", "HERMES_HOME", TOOL_MARK, "HERMES_TOOL_RUN"];

/// Credential names that are never passed to a child, whatever the settings say.
pub(crate) fn blocked_names() -> impl Iterator<Item = &'static str> {
    BLOCKED.iter().copied()
}

/// Whether a name is a credential of ours: one of the list, or a generated one.
pub fn is_blocked(name: &str) -> bool {
    let generated = |beginning: &str, endings: &[&str]| {
        name.strip_prefix(beginning).is_some_and(|rest| endings.iter().any(|ending| rest.ends_with(ending)))
    };
    BLOCKED.contains(&name)
        || generated("AUXILIARY_", &["_API_KEY", "_BASE_URL"])
        || generated("GATEWAY_RELAY_", &["SECRET", "KEY", "TOKEN"])
}

/// What the daemon's own environment may give to children: taken once at start, without credentials.
#[derive(Clone, Default)]
pub struct DaemonEnv(BTreeMap<OsString, OsString>);

impl DaemonEnv {
    /// Keeps the variables that a child could be given; names that hold credentials of ours go at once.
    pub fn new(vars: impl IntoIterator<Item = (OsString, OsString)>) -> Self {
        Self(vars.into_iter().filter(|(name, _)| !name.to_str().is_some_and(is_blocked)).collect())
    }

    fn get(&self, name: &str) -> Option<&OsStr> {
        self.0.get(OsStr::new(name)).map(OsString::as_os_str)
    }
}

/// Shows names only.
impl std::fmt::Debug for DaemonEnv {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_set().entries(self.0.keys()).finish()
    }
}

/// What a terminal child's environment is built from.
#[derive(Debug, Clone, Copy)]
pub struct ChildEnvInput<'a> {
    /// The profile's home: a `hermes-cli` that a command starts talks to the same daemon.
    pub hermes_home: &'a Path,
    pub user_home: &'a Path,
    pub user: &'a str,
    /// The user's login shell.
    pub shell: Option<&'a Path>,
    pub temp_dir: &'a Path,
    /// Where our own binaries stand, for the end of PATH.
    pub bin_dir: Option<&'a Path>,
    /// Stands in where the client handed over no PATH, LANG or TZ (chats, jobs), and gives passed-through values.
    pub daemon: &'a DaemonEnv,
    /// Names that the user lets through (`terminal.env_passthrough`, and those that a loaded skill requires).
    pub passthrough: &'a [String],
    /// Gives passed-through values before `daemon` does.
    pub secrets: &'a SecretScope,
    pub session_id: &'a str,
}

/// Builds environments of children.
#[derive(Debug, Clone, Copy)]
pub struct ChildEnv;

impl ChildEnv {
    /// The whole environment of a terminal command, sorted by name: nothing is inherited.
    ///
    /// HOME, USER, LOGNAME, SHELL, TERM and TMPDIR; the client's variables; passed-through names, of which
    /// credentials of ours are refused with a log line; `HERMES_HOME`; the mark of the agent's children.
    pub fn terminal(client: &ClientEnv, input: &ChildEnvInput<'_>) -> Vec<(OsString, OsString)> {
        let mut env: BTreeMap<OsString, OsString> = BTreeMap::new();
        for name in ["LANG", "TZ"] {
            if let Some(value) = input.daemon.get(name) {
                env.insert(name.into(), value.into());
            }
        }
        for name in input.passthrough {
            if is_blocked(name) || OURS.contains(&name.as_str()) {
                tracing::warn!(name, "variable not passed through: it is reserved");
                continue;
            }
            let secret = input.secrets.get(name).map(|secret| OsString::from(secret.expose()));
            if let Some(value) = secret.or_else(|| input.daemon.get(name).map(OsStr::to_owned)) {
                env.insert(name.into(), value);
            }
        }
        for (name, value) in client.iter().filter(|(name, _)| !is_blocked(name)) {
            env.insert(name.into(), value.into());
        }
        let path = client.get("PATH").map(OsStr::new).or_else(|| input.daemon.get("PATH"));
        env.insert("PATH".into(), search_path(path, input.bin_dir));
        let shell = input.shell.unwrap_or(Path::new("/bin/sh"));
        let fixed: [(&str, &OsStr); 8] = [
            ("HOME", input.user_home.as_os_str()),
            ("USER", OsStr::new(input.user)),
            ("LOGNAME", OsStr::new(input.user)),
            ("SHELL", shell.as_os_str()),
            // Output goes to a pipe; nothing must think that it can move a cursor.
            ("TERM", OsStr::new("dumb")),
            ("TMPDIR", input.temp_dir.as_os_str()),
            ("HERMES_HOME", input.hermes_home.as_os_str()),
            (TOOL_MARK, OsStr::new(input.session_id)),
        ];
        for (name, value) in fixed {
            env.insert(name.into(), value.into());
        }
        env.into_iter().collect()
    }
}

/// The PATH as given, then the standard folders and our own that it lacks.
fn search_path(given: Option<&OsStr>, bin_dir: Option<&Path>) -> OsString {
    let mut folders: Vec<PathBuf> = given
        .map(|path| std::env::split_paths(path).filter(|folder| !folder.as_os_str().is_empty()).collect())
        .unwrap_or_default();
    for folder in STANDARD_PATH.iter().map(Path::new).chain(bin_dir) {
        if !folders.iter().any(|known| known == folder) {
            folders.push(folder.to_owned());
        }
    }
    // Only a folder with a colon in its name cannot be joined; ours then is the one to leave out.
    std::env::join_paths(&folders).unwrap_or_else(|_| given.unwrap_or_default().to_owned())
}

#[cfg(test)]
mod tests {
    use super::*;
    use pretty_assertions::assert_eq;

    fn build(
        client: &[(&str, &str)],
        daemon: &[(&str, &str)],
        pass: &[&str],
        secrets: &SecretScope,
    ) -> Vec<(String, String)> {
        let client = ClientEnv::filter(client.iter().map(|(n, v)| ((*n).to_owned(), (*v).to_owned())));
        let daemon = DaemonEnv::new(daemon.iter().map(|(n, v)| (n.into(), v.into())));
        let passthrough: Vec<String> = pass.iter().map(|name| (*name).to_owned()).collect();
        let input = ChildEnvInput {
            hermes_home: Path::new("/home/u/.hermes"),
            user_home: Path::new("/home/u"),
            user: "u",
            shell: None,
            temp_dir: Path::new("/tmp"),
            bin_dir: Some(Path::new("/opt/hermes/bin")),
            daemon: &daemon,
            passthrough: &passthrough,
            secrets,
            session_id: "s1",
        };
        ChildEnv::terminal(&client, &input)
            .into_iter()
            .map(|(name, value)| (name.into_string().unwrap(), value.into_string().unwrap()))
            .collect()
    }

    fn value<'a>(env: &'a [(String, String)], name: &str) -> Option<&'a str> {
        env.iter().find(|(known, _)| known == name).map(|(_, value)| value.as_str())
    }

    #[test]
    fn nothing_is_inherited() {
        let env = build(
            &[],
            &[("PATH", "/usr/bin"), ("EDITOR", "vi"), ("OPENAI_API_KEY", "sk-x")],
            &[],
            &SecretScope::empty(),
        );
        let names: Vec<&str> = env.iter().map(|(name, _)| name.as_str()).collect();
        assert_eq!(
            names,
            [
                "HERMES_HOME",
                "HERMES_TOOL_CHILD",
                "HOME",
                "LOGNAME",
                "PATH",
                "SHELL",
                "TERM",
                "TMPDIR",
                "USER"
            ]
        );
    }

    #[test]
    fn the_client_speaks_before_the_daemon() {
        let env = build(
            &[("PATH", "/c"), ("LANG", "de_DE.UTF-8")],
            &[("PATH", "/d"), ("LANG", "C"), ("TZ", "UTC")],
            &[],
            &SecretScope::empty(),
        );
        assert!(value(&env, "PATH").unwrap().starts_with("/c:"));
        assert_eq!((value(&env, "LANG"), value(&env, "TZ")), (Some("de_DE.UTF-8"), Some("UTC")));
    }

    #[test]
    fn path_ends_with_the_standard_folders_and_ours() {
        let env = build(&[("PATH", "/x::/usr/bin")], &[], &[], &SecretScope::empty());
        assert_eq!(
            value(&env, "PATH"),
            Some("/x:/usr/bin:/usr/local/sbin:/usr/local/bin:/usr/sbin:/sbin:/bin:/opt/hermes/bin")
        );
    }

    #[test]
    fn only_named_variables_pass_and_never_a_credential_of_ours() {
        let secrets =
            SecretScope::from_pairs([("MY_TOKEN", "t"), ("OPENAI_API_KEY", "sk-x"), ("UNNAMED", "u")]);
        let pass =
            ["MY_TOKEN", "OPENAI_API_KEY", "AUXILIARY_VISION_API_KEY", "GOPATH", "HERMES_HOME", "MISSING"];
        let daemon = [("GOPATH", "/go"), ("AUXILIARY_VISION_API_KEY", "a"), ("MY_TOKEN", "not this one")];
        let env = build(&[], &daemon, &pass, &secrets);
        assert_eq!((value(&env, "MY_TOKEN"), value(&env, "GOPATH")), (Some("t"), Some("/go")));
        for name in ["OPENAI_API_KEY", "AUXILIARY_VISION_API_KEY", "UNNAMED", "MISSING"] {
            assert_eq!(value(&env, name), None, "{name}");
        }
        assert_eq!(value(&env, "HERMES_HOME"), Some("/home/u/.hermes"));
    }

    #[test]
    fn generated_credential_names_are_blocked() {
        for name in [
            "AUXILIARY_TITLE_API_KEY",
            "AUXILIARY_TITLE_BASE_URL",
            "GATEWAY_RELAY_X_SECRET",
            "GATEWAY_RELAY_TOKEN",
        ] {
            assert!(is_blocked(name), "{name}");
        }
        assert!(!is_blocked("MY_API_KEY") && !is_blocked("AUXILIARY_MODEL"));
    }
}
