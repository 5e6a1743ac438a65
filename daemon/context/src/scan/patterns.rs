//! The pattern table of the injection scan.
//!
//! A pattern runs on the bytes of folded text (see [`super::fold`]) and knows ASCII only, which keeps its automaton
//! small. `{f}` stands for at most eight filler words of one sentence, so
//! that "ignore all of the very old and previous instructions" is found, and the search stays bounded.

use std::sync::OnceLock;

use regex::bytes::{Regex, RegexBuilder};

use super::{Finding, ScanScope, line_at};

struct Pattern {
    id: &'static str,
    scope: ScanScope,
    /// The pattern is tried only if one of these occurs.
    keys: &'static [&'static str],
    regex: &'static str,
}

/// At most eight words without an end of a sentence, each followed by white space.
const FILLER: &str = r"(?:[^\s.;:!?]+\s+){0,8}?";

const fn pattern(
    id: &'static str,
    scope: ScanScope,
    keys: &'static [&'static str],
    regex: &'static str,
) -> Pattern {
    Pattern { id, scope, keys, regex }
}

use ScanScope::{All, Context, Strict};

static PATTERNS: [Pattern; 32] = [
    // Classic injection.
    pattern(
        "ignore_instructions",
        All,
        &["ignore", "forget"],
        r"\b(?:ignore|forget)\s+(?:{f}(?:previous|prior|above|earlier|preceding|foregoing)\s+{f}|(?:all|any|every|your)\s+(?:of\s+)?(?:(?:the|your|these|those|existing)\s+)?)(?:instructions?|prompts?|directives?|guidelines?|rules?|orders?)\b",
    ),
    pattern(
        "prompt_override",
        All,
        &["override"],
        r"\bsystem\s+prompt\s+override\b|\boverride\s+{f}system\s+prompt\b|\boverride\s+{f}(?:your|previous|prior)\s+{f}(?:instructions?|rules?|guidelines?)\b",
    ),
    pattern(
        "disregard_rules",
        All,
        &["disregard"],
        r"\bdisregard\s+{f}(?:your|all|any|every|previous|prior|above|earlier)\s+{f}(?:instructions?|rules?|guidelines?|directives?|policies)\b",
    ),
    pattern(
        "no_restrictions",
        All,
        &["restriction", "limits", "limitations", "no rules"],
        r"\bact\s+{f}(?:as\s+(?:if|though)\s+)?you\s+{f}(?:have|had)\s+no\s+{f}(?:restrictions?|limits|limitations|rules)\b|\b(?:act|operate|behave)\s+{f}without\s+{f}(?:restrictions?|limits|limitations)\b",
    ),
    pattern(
        "html_comment",
        All,
        &["<!--"],
        r"<!--(?:[^-]|-[^-]|--[^>]){0,600}?\b(?:(?:ignore|override|disregard|bypass|forget)\b(?:[^-]|-[^-]|--[^>]){0,200}?\b(?:instructions?|rules?|prompts?|previous|prior|above|guidelines?)|(?:system|secret|hidden)\s+(?:prompts?|instructions?|messages?|directives?))\b",
    ),
    pattern(
        "hidden_html",
        All,
        &["display", "visibility", "font-size", "opacity"],
        r"<\s*(?:div|span|p)\b[^>]{0,200}?style\s*=[^>]{0,200}?(?:display\s*:\s*none|visibility\s*:\s*hidden|font-size\s*:\s*0|opacity\s*:\s*0(?:[^.\d]|$))",
    ),
    pattern(
        "translate_execute",
        All,
        &["translate"],
        r"\btranslate\s+{f}(?:into|to)\s+{f}and\s+{f}(?:execute|run|eval|evaluate)\b",
    ),
    pattern(
        "hide_from_user",
        All,
        &["user", "human", "owner"],
        r"\b(?:do\s+not|don't|never|without)\s+{f}(?:tell(?:ing)?|inform(?:ing)?|alert(?:ing)?|let(?:ting)?)\s+the\s+(?:user|human|owner)\b|\b(?:hide|conceal|keep)\s+{f}(?:this|it|that|these|them)\s+{f}from\s+the\s+(?:user|human|owner)\b",
    ),
    // Secret exfiltration.
    pattern(
        "exfil_secret",
        All,
        &["curl", "wget"],
        r"\b(?:curl|wget)\b[^\n]{0,300}?\$\(?\{?\w{0,40}(?:key|token|secret|password|passwd|credential|api)",
    ),
    pattern(
        "read_secret_file",
        All,
        &["cat "],
        r#"\bcat\s+[^\n]{0,200}?(?:\.env(?:\.(?:local|production|prod))?(?:$|[\s"'`;|&>)])|\bcredentials\b|\.netrc\b|\.pgpass\b|\.npmrc\b|\.pypirc\b)"#,
    ),
    // Role hijack.
    pattern(
        "role_hijack",
        Context,
        &["you are", "you're"],
        r"\b(?:you\s+are\s+now|you're\s+now|now\s+you\s+are|from\s+now\s+on\s+you\s+are)\s+(?:an?|the|in\s+\S+\s+mode|called|named|dan|my|acting|free|no\s+longer|un\w+)\b",
    ),
    pattern(
        "pretend",
        Context,
        &["pretend"],
        r"\bpretend\s+(?:that\s+)?(?:you\s+are|you're|you\s+have)\b|(?m:^|[.!?:]\s+)(?:please\s+)?pretend\s+to\s+be\b",
    ),
    pattern(
        "leak_prompt",
        Context,
        &["system prompt", "initial prompt", "initial instructions", "hidden instructions"],
        r"\b(?:output|print|reveal|show|repeat|leak|dump|disclose)\s+{f}(?:your|the)\s+{f}(?:system\s+prompt|initial\s+prompt|(?:initial|hidden)\s+instructions)\b",
    ),
    pattern(
        "no_filters",
        Context,
        &["without"],
        r"\b(?:answer|respond|reply|speak)\s+{f}without\s+{f}(?:filters?|filtering|restrictions?|censorship|limitations)\b",
    ),
    pattern(
        "fake_update",
        Context,
        &["you have been", "instructions", "guidelines", "rules"],
        r"\byou\s+have\s+been\s+{f}(?:updated|upgraded|patched|reprogrammed)\b|\byour\s+{f}(?:guidelines|instructions|rules)\s+(?:have\s+been|were|are\s+now)\s+{f}(?:updated|upgraded|replaced|changed)\b",
    ),
    pattern(
        "rename_self",
        Context,
        &["your new name", "your name is now", "call yourself", "rename yourself", "now called"],
        r"\byour\s+new\s+name\s+is\b|\byour\s+name\s+is\s+now\b|\b(?:call|rename)\s+yourself\b|\byou\s+are\s+now\s+called\b",
    ),
    // Promptware and command-and-control.
    pattern(
        "c2_register_node",
        Context,
        &["register"],
        r"\bregister\s+(?:yourself|itself|this\s+(?:agent|machine|host|session))\b|\bregister\s+{f}as\s+an?\s+{f}(?:node|agent|peer|implant|bot)\b",
    ),
    pattern(
        "c2_heartbeat",
        Context,
        &["heartbeat", "beacon"],
        r"\b(?:send|post|emit)\s+{f}(?:heartbeats?|beacons?)\s+{f}to\b|\b(?:heartbeat|beacon)\s+(?:back\s+)?to\s+(?:https?:|the\s+|this\s+|our\s+)",
    ),
    pattern(
        "c2_tasking",
        Context,
        &["tasking", "commands from", "orders from"],
        r"\b(?:pull|fetch|get|poll|retrieve|await|check)\s+{f}taskings?\b|\b(?:pull|fetch|poll|retrieve|await)\s+{f}(?:commands|orders)\s+from\s+{f}(?:server|c2|operator|controller)\b",
    ),
    pattern(
        "c2_connect_network",
        Context,
        &["connect"],
        r"\b(?:you\s+(?:must|should|need\s+to|have\s+to)|always|immediately|now|yourself)\s+{f}connect\s+{f}to\s+the\s+{f}network\b",
    ),
    pattern(
        "c2_forced_action",
        Context,
        &["you must"],
        r"\byou\s+must\s+(?:(?:now|first|immediately)\s+)?(?:register|report|beacon|check\s+in)\s+(?:(?:yourself|back|in)\s+)?(?:with|to|at)\b",
    ),
    pattern(
        "one_liners_only",
        Context,
        &["one-liner", "one liner"],
        r"\bonly\s+(?:use\s+|run\s+|write\s+)?one[-\s]liners?\b|\bone[-\s]liners?\s+only\b",
    ),
    pattern(
        "never_write_disk",
        Context,
        &["disk"],
        r"\b(?:never|do\s+not|don't)\s+(?:write|save|drop|store)\s+{f}(?:to|on)\s+(?:the\s+)?disk\b",
    ),
    pattern(
        "unset_agent_env",
        Context,
        &["unset"],
        r"\bunset\s+(?:-v\s+)?[^\n]{0,80}?(?:hermes|claude|codex|anthropic|openai|cursor|agent)_?\w*",
    ),
    pattern(
        "red_team_framework",
        Context,
        &["cobalt", "sliver", "metasploit", "meterpreter", "mythic", "havoc", "ratel", "poshc2", "covenant"],
        r"\b(?:cobalt\s*strike|metasploit|meterpreter|brute\s*ratel|poshc2|(?:sliver|mythic|havoc|covenant)\s+(?:c2|implant|beacon|agent|grunt|server))\b",
    ),
    pattern(
        "c2_terms",
        Context,
        &["c2", "command"],
        r"\bc2\s+(?:servers?|channels?|beacons?|nodes?|infrastructure|frameworks?|endpoints?)\b|\bcommand(?:-and-|\s+and\s+|\s*&\s*)control\s+(?:servers?|channels?|infrastructure|nodes?|endpoints?)\b",
    ),
    // Send-out.
    pattern(
        "send_to_url",
        Strict,
        &["http:", "https:"],
        r"\b(?:send|post|upload|transmit|forward|exfiltrate)\s+{f}(?:to|at)\s+\S{0,3}https?://",
    ),
    pattern(
        "share_conversation",
        Strict,
        &["conversation", "context", "chat history"],
        r"\b(?:share|send|forward|upload|post|transmit|include|output)\s+{f}(?:conversation|chat\s+history|(?:full|entire|whole|complete)\s+context)\b",
    ),
    // Persistence.
    pattern(
        "ssh_access",
        Strict,
        &["authorized_keys", ".ssh"],
        r"\bauthorized_keys\b|(?:~|\$home|\$\{home\})/\.ssh\b",
    ),
    pattern(
        "product_env",
        Strict,
        &[".env"],
        r"\.hermes/(?:profiles/[^/\s]+/)?\.env\b|\$\{?hermes_home\}?/\.env\b",
    ),
    pattern(
        "edit_agent_files",
        Strict,
        &[
            "agents.md",
            "claude.md",
            ".cursorrules",
            "hermes.md",
            "soul.md",
            ".hermes/config",
            "hermes config",
        ],
        r"\b(?:edit|modify|write|append|add|update|change|overwrite|replace|insert)\b[^\n]{0,80}?(?:agents\.md|claude\.md|\.cursorrules|hermes\.md|soul\.md|\.hermes/(?:profiles/[^/\s]+/)?config\.yaml|hermes\s+config)",
    ),
    // Hard-coded secret.
    pattern(
        "hardcoded_secret",
        Strict,
        &["key", "token", "secret", "passw"],
        r#"(?:api[_-]?key|access[_-]?key|token|secret|password|passwd)\w{0,10}["']?\s*[:=]\s*["']?[a-z0-9+/_\-.]{20,}"#,
    ),
];

/// Finds the patterns of `scope` in folded text.
pub(super) fn find(folded: &str, scope: ScanScope) -> impl Iterator<Item = Finding> {
    static COMPILED: [OnceLock<Regex>; PATTERNS.len()] = [const { OnceLock::new() }; PATTERNS.len()];
    PATTERNS
        .iter()
        .zip(&COMPILED)
        .filter(move |(pattern, _)| {
            pattern.scope <= scope && pattern.keys.iter().any(|key| folded.contains(key))
        })
        .filter_map(move |(pattern, compiled)| {
            let regex = compiled.get_or_init(|| compile(pattern.regex));
            let hit = regex.find(folded.as_bytes())?;
            // A pattern may begin with white space; the line is that of the first word.
            let lead = hit.as_bytes().len() - hit.as_bytes().trim_ascii_start().len();
            Some(Finding { id: pattern.id.into(), line: line_at(folded, hit.start() + lead) })
        })
}

fn compile(pattern: &str) -> Regex {
    RegexBuilder::new(&pattern.replace("{f}", FILLER))
        .unicode(false)
        .build()
        .expect("every pattern of the table compiles; a test tries all")
}

/// Compiles every pattern and returns their names.
#[cfg(test)]
pub(super) fn compile_all() -> Vec<&'static str> {
    PATTERNS.iter().map(|pattern| (compile(pattern.regex), pattern.id).1).collect()
}
