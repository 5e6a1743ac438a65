//! Databases of the original: adopted after a copy, searched, continued; newer ones open read-only.

use hermes_tests::{ModelServer, Reply, TestHome};
use pretty_assertions::assert_eq;
use rusqlite::{Connection, params};

/// The tables of a version 30 database, as far as a conversation needs them (spec 70 §3).
const VERSION_30: &str = "
CREATE TABLE schema_version (version INTEGER NOT NULL);
CREATE TABLE system_prompts (hash TEXT PRIMARY KEY, prompt TEXT NOT NULL);
CREATE TABLE sessions (
    id TEXT PRIMARY KEY, source TEXT NOT NULL, created_source TEXT, user_id TEXT, session_key TEXT, chat_id TEXT,
    chat_type TEXT, thread_id TEXT, display_name TEXT, origin_json TEXT, expiry_finalized INTEGER DEFAULT 0,
    model TEXT, model_config TEXT, system_prompt TEXT, system_prompt_hash TEXT, tool_names TEXT,
    parent_session_id TEXT REFERENCES sessions(id), started_at REAL NOT NULL, ended_at REAL, end_reason TEXT,
    message_count INTEGER DEFAULT 0, tool_call_count INTEGER DEFAULT 0, api_call_count INTEGER DEFAULT 0,
    input_tokens INTEGER DEFAULT 0, output_tokens INTEGER DEFAULT 0, cache_read_tokens INTEGER DEFAULT 0,
    cache_write_tokens INTEGER DEFAULT 0, reasoning_tokens INTEGER DEFAULT 0, billing_provider TEXT,
    billing_base_url TEXT, billing_mode TEXT, estimated_cost_usd REAL, actual_cost_usd REAL, cost_status TEXT,
    cost_source TEXT, pricing_version TEXT, title TEXT, title_source TEXT, cwd TEXT, git_branch TEXT,
    git_repo_root TEXT, last_activity_at REAL, last_activity_description TEXT, handoff_state TEXT,
    handoff_platform TEXT, handoff_error TEXT, compression_failure_cooldown_until REAL,
    compression_failure_error TEXT, compression_fallback_streak INTEGER DEFAULT 0,
    compression_ineffective_count INTEGER DEFAULT 0, profile_name TEXT, transport_profile TEXT,
    rewind_count INTEGER DEFAULT 0, archived INTEGER DEFAULT 0, pinned INTEGER DEFAULT 0, hidden INTEGER DEFAULT 0,
    last_read_at REAL);
CREATE TABLE messages (
    id INTEGER PRIMARY KEY AUTOINCREMENT, session_id TEXT NOT NULL REFERENCES sessions(id), role TEXT NOT NULL,
    content TEXT, api_content TEXT, tool_call_id TEXT, tool_calls TEXT, tool_name TEXT, effect_disposition TEXT,
    timestamp REAL NOT NULL, token_count INTEGER, finish_reason TEXT, reasoning TEXT, reasoning_content TEXT,
    reasoning_details TEXT, codex_reasoning_items TEXT, codex_message_items TEXT, platform_message_id TEXT,
    observed INTEGER DEFAULT 0, active INTEGER NOT NULL DEFAULT 1, compacted INTEGER NOT NULL DEFAULT 0,
    display_kind TEXT, display_metadata TEXT);
CREATE TABLE session_model_usage (
    session_id TEXT NOT NULL REFERENCES sessions(id) ON DELETE CASCADE, model TEXT NOT NULL,
    billing_provider TEXT NOT NULL DEFAULT '', billing_base_url TEXT NOT NULL DEFAULT '',
    billing_mode TEXT NOT NULL DEFAULT '', task TEXT NOT NULL DEFAULT '', api_call_count INTEGER DEFAULT 0,
    input_tokens INTEGER DEFAULT 0, output_tokens INTEGER DEFAULT 0, cache_read_tokens INTEGER DEFAULT 0,
    cache_write_tokens INTEGER DEFAULT 0, reasoning_tokens INTEGER DEFAULT 0, estimated_cost_usd REAL,
    actual_cost_usd REAL, cost_status TEXT, cost_source TEXT, first_seen REAL, last_seen REAL,
    PRIMARY KEY (session_id, model, billing_provider, billing_base_url, billing_mode, task));
CREATE TABLE state_meta (key TEXT PRIMARY KEY, value TEXT);
";

/// The same years earlier: prompts stand in the session row, usage knows no task, much is missing.
const VERSION_21: &str = "
CREATE TABLE schema_version (version INTEGER NOT NULL);
CREATE TABLE sessions (
    id TEXT PRIMARY KEY, source TEXT NOT NULL, user_id TEXT, model TEXT, model_config TEXT, system_prompt TEXT,
    parent_session_id TEXT, started_at REAL NOT NULL, ended_at REAL, end_reason TEXT,
    message_count INTEGER DEFAULT 0, tool_call_count INTEGER DEFAULT 0, input_tokens INTEGER DEFAULT 0,
    output_tokens INTEGER DEFAULT 0, cache_read_tokens INTEGER DEFAULT 0, cache_write_tokens INTEGER DEFAULT 0,
    reasoning_tokens INTEGER DEFAULT 0, billing_provider TEXT, estimated_cost_usd REAL, title TEXT, cwd TEXT);
CREATE TABLE messages (
    id INTEGER PRIMARY KEY AUTOINCREMENT, session_id TEXT NOT NULL REFERENCES sessions(id), role TEXT NOT NULL,
    content TEXT, tool_call_id TEXT, tool_calls TEXT, tool_name TEXT, timestamp REAL NOT NULL, token_count INTEGER,
    finish_reason TEXT, reasoning TEXT, active INTEGER);
CREATE TABLE session_model_usage (
    session_id TEXT NOT NULL, model TEXT NOT NULL, billing_provider TEXT NOT NULL DEFAULT '',
    billing_base_url TEXT NOT NULL DEFAULT '', billing_mode TEXT NOT NULL DEFAULT '',
    api_call_count INTEGER DEFAULT 0, input_tokens INTEGER DEFAULT 0, output_tokens INTEGER DEFAULT 0,
    PRIMARY KEY (session_id, model, billing_provider, billing_base_url, billing_mode));
CREATE TABLE state_meta (key TEXT PRIMARY KEY, value TEXT);
";

const OLD_ID: &str = "20250102_030405_abc123";

/// A home with a database of `version` that holds one conversation about pears.
fn home_of(server: &ModelServer, version: i64, tables: &str) -> TestHome {
    let home = TestHome::with_config(&server.config());
    let database = open(&home);
    database.execute_batch(tables).unwrap();
    database.execute("INSERT INTO schema_version VALUES (?1)", [version]).unwrap();
    database
        .execute(
            "INSERT INTO sessions (id, source, model, billing_provider, system_prompt, started_at, message_count,
             title, cwd) VALUES (?1, 'cli', 'old-model', 'custom', 'You are the old one.', 1735787045.0, 2,
             'About pears', ?2)",
            params![OLD_ID, home.work().display().to_string()],
        )
        .unwrap();
    let active = if tables == VERSION_21 { None } else { Some(1) };
    for (role, content) in
        [("user", "are pears ripe in autumn?"), ("assistant", "Most pears ripen in autumn.")]
    {
        database
            .execute(
                "INSERT INTO messages (session_id, role, content, timestamp, active) VALUES (?1, ?2, ?3, 1735787046.0, ?4)",
                params![OLD_ID, role, content, active],
            )
            .unwrap();
    }
    home
}

#[expect(
    clippy::disallowed_methods,
    reason = "the test builds a database as the original would have left it"
)]
fn open(home: &TestHome) -> Connection {
    Connection::open(home.database()).unwrap()
}

fn adopts(version: i64, tables: &str) {
    let server = ModelServer::start(|request| Reply::text(format!("answer to {}", request.last_user())));
    let home = home_of(&server, version, tables);
    let list = home.cli(["sessions", "list", "--json"]).success().json().to_string();
    assert!(list.contains(OLD_ID) && list.contains("About pears"), "{list}");

    let copies: Vec<String> = std::fs::read_dir(home.dir())
        .unwrap()
        .chain(std::fs::read_dir(home.dir().join("backups")).into_iter().flatten())
        .filter_map(|entry| Some(entry.ok()?.file_name().to_string_lossy().into_owned()))
        .filter(|name| name.contains("state.db") && (name.contains("backup") || name.contains("adopt")))
        .collect();
    assert!(!copies.is_empty(), "no copy was made before the adoption");

    let output = home.cli(["-r", "About pears", "-z", "and apples?"]).success();
    assert_eq!(output.stdout, "answer to and apples?\n");
    let body = server.requests().last().unwrap().body.to_string();
    assert!(body.contains("are pears ripe") && body.contains("Most pears ripen"), "the history is sent");
    server.assert_clean();

    home.kill_daemon("TERM");
    let database = open(&home);
    let integrity: String = database.query_row("PRAGMA integrity_check", [], |row| row.get(0)).unwrap();
    assert_eq!(integrity, "ok");
    let found: i64 = database
        .query_row("SELECT count(*) FROM messages_fts WHERE messages_fts MATCH 'autumn'", [], |row| {
            row.get(0)
        })
        .unwrap();
    assert_eq!(found, 2, "old rows are in the full-text index");
    let version: i64 =
        database.query_row("SELECT version FROM schema_version", [], |row| row.get(0)).unwrap();
    assert!(version >= 1000);
    let frozen: i64 = database
        .query_row(
            "SELECT count(*) FROM sessions WHERE id = ?1 AND tool_schemas_hash IS NOT NULL AND tool_names IS NOT NULL",
            [OLD_ID],
            |row| row.get(0),
        )
        .unwrap();
    assert_eq!(frozen, 1, "the tools that were chosen for the old session are kept");
}

#[test]
fn a_version_30_database_is_adopted_searched_and_continued() {
    adopts(30, VERSION_30);
}

#[test]
fn a_version_21_database_is_adopted_searched_and_continued() {
    adopts(21, VERSION_21);
}

#[test]
fn a_newer_database_opens_read_only_and_says_so() {
    let server = ModelServer::start(|_| Reply::text("never"));
    let home = home_of(&server, 31, VERSION_30);
    let list = home.cli(["sessions", "list", "--json"]).success().json().to_string();
    assert!(list.contains("About pears"), "{list}");
    let refused = home.cli(["-z", "hello"]);
    assert!(matches!(refused.code, Some(1 | 2)), "{refused:?}");
    assert!(refused.stderr.contains("read") && refused.stderr.contains("31"), "{}", refused.stderr);
    assert!(server.requests().is_empty(), "nothing is sent that cannot be kept");
    home.kill_daemon("TERM");
    let version: i64 =
        open(&home).query_row("SELECT version FROM schema_version", [], |row| row.get(0)).unwrap();
    assert_eq!(version, 31);
}
