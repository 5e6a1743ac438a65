//! Databases of the original are adopted: copied first, then extended, searched and continued.

mod kit;

use std::fs;

use hermes_core::{Content, CostStatus, Instant, MessageId, Part, Role, TurnState};
use hermes_state::{ListFilter, OpenError};
use kit::*;
use pretty_assertions::assert_eq;

/// The tables of version 30, with the original's own extras: columns, triggers and indexes that we
/// do not have, and its full-text layout.
const VERSION_30: &str = "
    PRAGMA journal_mode = WAL;
    CREATE TABLE schema_version (version INTEGER NOT NULL);
    INSERT INTO schema_version VALUES (30);
    CREATE TABLE system_prompts (hash TEXT PRIMARY KEY, prompt TEXT NOT NULL);
    CREATE TABLE sessions (
        id TEXT PRIMARY KEY, source TEXT NOT NULL, created_source TEXT, user_id TEXT, session_key TEXT,
        chat_id TEXT, chat_type TEXT, thread_id TEXT, display_name TEXT, origin_json TEXT,
        expiry_finalized INTEGER DEFAULT 0, model TEXT, model_config TEXT, system_prompt TEXT,
        system_prompt_hash TEXT, parent_session_id TEXT, started_at REAL NOT NULL, ended_at REAL,
        end_reason TEXT, message_count INTEGER DEFAULT 0, tool_call_count INTEGER DEFAULT 0,
        input_tokens INTEGER DEFAULT 0, output_tokens INTEGER DEFAULT 0, cache_read_tokens INTEGER DEFAULT 0,
        cache_write_tokens INTEGER DEFAULT 0, reasoning_tokens INTEGER DEFAULT 0, cwd TEXT, git_branch TEXT,
        git_repo_root TEXT, git_metadata_generation INTEGER NOT NULL DEFAULT 0, billing_provider TEXT,
        billing_base_url TEXT, billing_mode TEXT, estimated_cost_usd REAL, actual_cost_usd REAL, cost_status TEXT,
        cost_source TEXT, pricing_version TEXT, title TEXT, title_source TEXT, last_activity_at REAL,
        last_activity_description TEXT, api_call_count INTEGER DEFAULT 0, handoff_state TEXT,
        handoff_platform TEXT, handoff_error TEXT, compression_failure_cooldown_until REAL,
        compression_failure_error TEXT, compression_fallback_streak INTEGER NOT NULL DEFAULT 0,
        compression_ineffective_count INTEGER NOT NULL DEFAULT 0, profile_name TEXT, transport_profile TEXT,
        rewind_count INTEGER NOT NULL DEFAULT 0, archived INTEGER NOT NULL DEFAULT 0,
        pinned INTEGER NOT NULL DEFAULT 0, hidden INTEGER NOT NULL DEFAULT 0, last_read_at REAL, tool_names TEXT,
        FOREIGN KEY (parent_session_id) REFERENCES sessions(id),
        FOREIGN KEY (system_prompt_hash) REFERENCES system_prompts(hash));
    CREATE TABLE messages (
        id INTEGER PRIMARY KEY AUTOINCREMENT, session_id TEXT NOT NULL REFERENCES sessions(id),
        role TEXT NOT NULL, content TEXT, tool_call_id TEXT, tool_calls TEXT, tool_name TEXT,
        effect_disposition TEXT, timestamp REAL NOT NULL, token_count INTEGER, finish_reason TEXT,
        reasoning TEXT, reasoning_content TEXT, reasoning_details TEXT, codex_reasoning_items TEXT,
        codex_message_items TEXT, platform_message_id TEXT, observed INTEGER DEFAULT 0,
        _compressed_summary INTEGER NOT NULL DEFAULT 0, active INTEGER NOT NULL DEFAULT 1,
        compacted INTEGER NOT NULL DEFAULT 0, api_content TEXT, display_kind TEXT, display_metadata TEXT,
        display_identity BLOB, display_order INTEGER);
    CREATE TABLE session_model_usage (
        session_id TEXT NOT NULL REFERENCES sessions(id) ON DELETE CASCADE, model TEXT NOT NULL,
        billing_provider TEXT NOT NULL DEFAULT '', billing_base_url TEXT NOT NULL DEFAULT '',
        billing_mode TEXT NOT NULL DEFAULT '', task TEXT NOT NULL DEFAULT '',
        api_call_count INTEGER NOT NULL DEFAULT 0, input_tokens INTEGER NOT NULL DEFAULT 0,
        output_tokens INTEGER NOT NULL DEFAULT 0, cache_read_tokens INTEGER NOT NULL DEFAULT 0,
        cache_write_tokens INTEGER NOT NULL DEFAULT 0, reasoning_tokens INTEGER NOT NULL DEFAULT 0,
        estimated_cost_usd REAL NOT NULL DEFAULT 0, actual_cost_usd REAL NOT NULL DEFAULT 0, cost_status TEXT,
        cost_source TEXT, first_seen REAL, last_seen REAL,
        PRIMARY KEY (session_id, model, billing_provider, billing_base_url, billing_mode, task));
    CREATE TABLE state_meta (key TEXT PRIMARY KEY, value TEXT);
    CREATE TABLE gateway_routing (scope TEXT NOT NULL DEFAULT '', session_key TEXT NOT NULL,
        entry_json TEXT NOT NULL, updated_at REAL NOT NULL, PRIMARY KEY (scope, session_key));
    CREATE TABLE conversation_generations (source TEXT NOT NULL, session_key TEXT NOT NULL,
        generation INTEGER NOT NULL DEFAULT 0, PRIMARY KEY (source, session_key));
    CREATE TABLE compression_locks (session_id TEXT PRIMARY KEY, holder TEXT NOT NULL,
        acquired_at REAL NOT NULL, expires_at REAL NOT NULL);
    CREATE TABLE session_turn_leases (conversation_id TEXT PRIMARY KEY, holder TEXT NOT NULL,
        acquired_at REAL NOT NULL, expires_at REAL NOT NULL);
    CREATE TABLE delivery_obligations (obligation_id TEXT PRIMARY KEY, session_key TEXT NOT NULL,
        platform TEXT NOT NULL, chat_id TEXT NOT NULL, thread_id TEXT, content TEXT NOT NULL, state TEXT NOT NULL,
        attempts INTEGER NOT NULL DEFAULT 0, created_at REAL NOT NULL, updated_at REAL NOT NULL,
        owner_pid INTEGER, owner_started_at INTEGER, last_error TEXT);
    CREATE TABLE media (id INTEGER PRIMARY KEY, odd TEXT);
    CREATE INDEX idx_messages_session ON messages(session_id, timestamp);
    CREATE INDEX idx_messages_display_page ON messages(session_id, display_order, active DESC, id DESC);
    CREATE UNIQUE INDEX idx_sessions_title_unique ON sessions(title) WHERE title IS NOT NULL;
    CREATE TRIGGER messages_display_order_insert AFTER INSERT ON messages WHEN new.display_order IS NULL BEGIN
        UPDATE messages SET display_order = new.id WHERE id = new.id; END;
    CREATE VIEW messages_fts_src AS SELECT id, content, tool_name, tool_calls FROM messages;
    CREATE VIRTUAL TABLE messages_fts USING fts5 (content, tool_name, tool_calls,
        content='messages_fts_src', content_rowid='id');
    CREATE VIRTUAL TABLE messages_fts_trigram USING fts5 (content, tokenize='trigram');
    CREATE TRIGGER messages_fts_insert AFTER INSERT ON messages BEGIN
        INSERT INTO messages_fts(rowid, content, tool_name, tool_calls)
        VALUES (new.id, new.content, new.tool_name, new.tool_calls); END;
    CREATE TRIGGER messages_fts_trigram_insert AFTER INSERT ON messages BEGIN
        INSERT INTO messages_fts_trigram(rowid, content) VALUES (new.id, new.content); END;
";

const ROWS_30: &str = "
    INSERT INTO system_prompts VALUES ('abc', 'You are the original.');
    INSERT INTO sessions (id, source, model, system_prompt_hash, started_at, title, message_count, tool_call_count,
            api_call_count, input_tokens, output_tokens, tool_names, billing_provider, cost_status, last_activity_at)
        VALUES ('20250101_120000_abcdef', 'cli', 'claude', 'abc', 100, 'Weather in Oslo', 5, 1, 3, 1000, 50,
            '[\"read_file\"]', 'anthropic', 'included', 90);
    INSERT INTO sessions (id, source, model, system_prompt, started_at) VALUES
        ('inline', 'telegram', 'gpt', 'An inline prompt', 50);
    INSERT INTO messages (session_id, role, content, timestamp, api_content, _compressed_summary, active, compacted) VALUES
        ('20250101_120000_abcdef', 'user', 'how is the weather in Oslo', 101, NULL, 0, 0, 1),
        ('20250101_120000_abcdef', 'user', '[CONTEXT COMPACTION] earlier', 102, NULL, 1, 1, 0),
        ('20250101_120000_abcdef', 'user', char(0) || 'json:[{\"type\": \"text\", \"text\": \"see picture\"}, {\"type\": \"image_url\", \"image_url\": {\"url\": \"data:x\"}}]', 103, 'sent', 0, 1, 0);
    INSERT INTO messages (session_id, role, content, timestamp, tool_calls, reasoning_details, finish_reason) VALUES
        ('20250101_120000_abcdef', 'assistant', NULL, 104,
         '[{\"id\": \"call_1\", \"type\": \"function\", \"function\": {\"name\": \"read_file\", \"arguments\": \"{\\\"path\\\": \\\"zebra.txt\\\"}\"}}]',
         '[{\"type\": \"thinking\"}]', 'tool_calls');
    INSERT INTO messages (session_id, role, content, timestamp, tool_call_id, tool_name, effect_disposition) VALUES
        ('20250101_120000_abcdef', 'tool', '{\"content\": \"stripes\"}', 105, 'call_1', 'read_file', 'none');
    INSERT INTO session_model_usage (session_id, model, task, input_tokens) VALUES
        ('20250101_120000_abcdef', 'claude', '', 1000), ('20250101_120000_abcdef', 'small', 'compression', 7);
    INSERT INTO state_meta VALUES ('k', 'v');
    INSERT INTO delivery_obligations (obligation_id, session_key, platform, chat_id, content, state, created_at, updated_at)
        VALUES ('o1', 'agent:main:telegram:dm:1', 'telegram', '1', 'owed', 'pending', 1, 2),
               ('o2', 'agent:main:telegram:dm:1', 'telegram', '1', 'seen', 'delivered', 1, 2);
    INSERT INTO media VALUES (1, 'kept');
";

fn original(sql: &[&str]) -> Home {
    let home = Home::new();
    let raw = home.raw();
    for sql in sql {
        raw.execute_batch(sql).expect("the test's own SQL runs");
    }
    home
}

#[tokio::test]
async fn version_30_is_adopted_after_a_copy_searched_and_continued() {
    let home = original(&[VERSION_30, ROWS_30]);
    let (db, report) = home.open();
    assert_eq!((report.adopted_from, report.read_only), (Some(30), None));
    assert_eq!(
        report.warnings,
        ["the database had a table `media` of its own, which is now called `original_media`"]
    );

    // The copy is the database as it was.
    let copy = report.backup.unwrap();
    assert_eq!(copy.file_name().unwrap().to_str().unwrap(), "state.db.v30-backup-19700101_001640");
    let copied = raw(&copy);
    let version: i64 = copied.query_row("SELECT version FROM schema_version", [], |row| row.get(0)).unwrap();
    let count: i64 = copied.query_row("SELECT count(*) FROM messages", [], |row| row.get(0)).unwrap();
    assert_eq!((version, count), (30, 5));

    let session = db.resolve_session("Weather in Oslo").await.unwrap();
    let stored = db.load_session(&session).await.unwrap().unwrap();
    assert_eq!(stored.system_prompt.as_deref(), Some("You are the original."));
    assert_eq!((stored.tool_names, stored.tool_schemas), (Some(vec!["read_file".into()]), None));
    assert_eq!((stored.message_count, stored.tool_call_count, stored.api_call_count), (5, 1, 3));
    assert_eq!((stored.usage.input, stored.cost_status), (1000, CostStatus::Included));
    assert_eq!((stored.model.as_deref(), stored.provider.as_deref()), (Some("claude"), Some("anthropic")));
    assert_eq!(stored.last_activity, Instant(105.0));
    let inline = db.load_session(&id("inline")).await.unwrap().unwrap();
    assert_eq!(inline.system_prompt.as_deref(), Some("An inline prompt"));
    assert_eq!(ask::<i64>(&home, "SELECT count(*) FROM sessions WHERE system_prompt IS NOT NULL"), 0);

    let messages = db.load_messages(&session).await.unwrap();
    assert_eq!(messages.len(), 4);
    assert_eq!(
        messages[1].content,
        Some(Content::Parts(vec![
            Part::Text("see picture".into()),
            Part::Image { url: "data:x".into(), detail: None }
        ]))
    );
    assert_eq!(messages[1].api_content.as_deref(), Some("sent"));
    assert_eq!(messages[2].tool_calls, [call("call_1", "read_file", "{\"path\": \"zebra.txt\"}")]);
    assert_eq!((messages[3].role, messages[3].tool_name.as_deref()), (Role::Tool, Some("read_file")));
    assert_eq!(db.display_rows(&session, MessageId(0), 10).await.unwrap().len(), 5);

    let listed = db.list_sessions(ListFilter::default()).await.unwrap();
    assert_eq!(
        listed.iter().map(|line| line.id.as_str()).collect::<Vec<_>>(),
        ["20250101_120000_abcdef", "inline"]
    );
    assert_eq!(listed[0].preview, "how is the weather in Oslo");
    assert_eq!(db.search("oslo weather", 5).await.unwrap().len(), 1);
    assert_eq!(db.search("zebra", 5).await.unwrap().len(), 1);

    exchange(&db, &session, "and tomorrow", "sunny intervals").await;
    assert_eq!(db.search("sunny", 5).await.unwrap().len(), 1);
    assert_eq!(db.load_session(&session).await.unwrap().unwrap().message_count, 7);
    assert_eq!(db.check(false).await.unwrap(), Vec::<String>::new());
    home.raw()
        .execute_batch("INSERT INTO messages_fts (messages_fts, rank) VALUES ('integrity-check', 1)")
        .unwrap();

    let strings = |sql: &str| -> String { ask(&home, sql) };
    assert_eq!(strings("SELECT value FROM state_meta WHERE key = 'k'"), "v");
    assert_eq!(strings("SELECT odd FROM original_media"), "kept");
    assert_eq!(
        strings("SELECT group_concat(obligation_id || content || state) FROM outbox"),
        "o1owedpending"
    );
    assert_eq!(
        strings(
            "SELECT group_concat(name) FROM (SELECT name FROM sqlite_master WHERE type = 'trigger' ORDER BY name)"
        ),
        "messages_fts_delete,messages_fts_insert,messages_fts_update"
    );
    assert_eq!(
        ask::<i64>(
            &home,
            "SELECT count(*) FROM sqlite_master WHERE name LIKE '%display%' OR name LIKE '%trigram%'"
        ),
        0
    );
    assert_eq!(ask::<i64>(&home, "SELECT count(*) FROM session_model_usage"), 2);

    db.close().await;
    let (_, report) = home.open();
    assert_eq!((report.adopted_from, report.backup), (None, None));
}

/// Version 21: no prompts by hash, no frozen tools, no `task` in the usage key, no sidecar and
/// display columns, `active` that may be NULL, inline full text with a trigger for every update, an
/// old routing key, duplicate titles, untagged sub-agents and usage that was never split.
const VERSION_21: &str = "
    CREATE TABLE schema_version (version INTEGER NOT NULL);
    INSERT INTO schema_version VALUES (21);
    CREATE TABLE sessions (
        id TEXT PRIMARY KEY, source TEXT NOT NULL, user_id TEXT, session_key TEXT, model TEXT, model_config TEXT,
        system_prompt TEXT, parent_session_id TEXT, started_at REAL NOT NULL, ended_at REAL, end_reason TEXT,
        message_count INTEGER DEFAULT 0, tool_call_count INTEGER DEFAULT 0, input_tokens INTEGER DEFAULT 0,
        output_tokens INTEGER DEFAULT 0, cache_read_tokens INTEGER DEFAULT 0, cache_write_tokens INTEGER DEFAULT 0,
        reasoning_tokens INTEGER DEFAULT 0, billing_provider TEXT, billing_base_url TEXT, billing_mode TEXT,
        estimated_cost_usd REAL, actual_cost_usd REAL, cost_status TEXT, title TEXT,
        FOREIGN KEY (parent_session_id) REFERENCES sessions(id));
    CREATE TABLE messages (
        id INTEGER PRIMARY KEY AUTOINCREMENT, session_id TEXT NOT NULL REFERENCES sessions(id), role TEXT NOT NULL,
        content TEXT, tool_call_id TEXT, tool_calls TEXT, tool_name TEXT, timestamp REAL NOT NULL,
        token_count INTEGER, finish_reason TEXT, reasoning TEXT, active INTEGER);
    CREATE TABLE session_model_usage (
        session_id TEXT NOT NULL REFERENCES sessions(id) ON DELETE CASCADE, model TEXT NOT NULL,
        billing_provider TEXT NOT NULL DEFAULT '', billing_base_url TEXT NOT NULL DEFAULT '',
        billing_mode TEXT NOT NULL DEFAULT '', api_call_count INTEGER NOT NULL DEFAULT 0,
        input_tokens INTEGER NOT NULL DEFAULT 0, output_tokens INTEGER NOT NULL DEFAULT 0,
        cache_read_tokens INTEGER NOT NULL DEFAULT 0, cache_write_tokens INTEGER NOT NULL DEFAULT 0,
        reasoning_tokens INTEGER NOT NULL DEFAULT 0, estimated_cost_usd REAL NOT NULL DEFAULT 0,
        actual_cost_usd REAL NOT NULL DEFAULT 0, cost_status TEXT, cost_source TEXT, first_seen REAL, last_seen REAL,
        PRIMARY KEY (session_id, model, billing_provider, billing_base_url, billing_mode));
    CREATE TABLE state_meta (key TEXT PRIMARY KEY, value TEXT);
    CREATE TABLE gateway_routing (session_key TEXT PRIMARY KEY, entry_json TEXT NOT NULL, updated_at REAL NOT NULL);
    CREATE VIRTUAL TABLE messages_fts USING fts5 (content);
    CREATE TRIGGER messages_fts_insert AFTER INSERT ON messages BEGIN
        INSERT INTO messages_fts(rowid, content) VALUES (new.id, COALESCE(new.content, '')); END;
    CREATE TRIGGER messages_fts_update AFTER UPDATE ON messages BEGIN
        DELETE FROM messages_fts WHERE rowid = old.id;
        INSERT INTO messages_fts(rowid, content) VALUES (new.id, COALESCE(new.content, '')); END;
";

const ROWS_21: &str = "
    INSERT INTO sessions (id, source, model, system_prompt, started_at, title, message_count, input_tokens, output_tokens)
        VALUES ('old', 'cli', 'claude', 'Prompt of old', 10, 'Same title', 2, 70, 7),
               ('new', 'cli', 'claude', 'Prompt of new', 20, 'Same title', 1, 0, 0),
               ('shares', 'cli', 'claude', 'Prompt of new', 15, NULL, NULL, NULL, NULL);
    INSERT INTO sessions (id, source, parent_session_id, started_at, model_config) VALUES
        ('branch', 'cli', 'old', 30, '{\"_branched_from\": \"old\"}'), ('helper', 'cli', 'old', 31, 'not json');
    INSERT INTO sessions (id, source, parent_session_id, started_at, end_reason) VALUES
        ('before', 'telegram', NULL, 40, 'compression'), ('after', 'telegram', 'before', 41, NULL);
    INSERT INTO messages (session_id, role, content, timestamp, active) VALUES
        ('old', 'user', 'find the walrus', 11, NULL), ('old', 'assistant', 'found it', 12, 1), ('new', 'user', 'hi', 21, 1);
    INSERT INTO messages (session_id, role, tool_calls, timestamp, active) VALUES ('old', 'assistant',
        '[{\"id\": \"c\", \"function\": {\"name\": \"terminal\", \"arguments\": \"{\\\"command\\\": \\\"narwhal\\\"}\"}}]', 13, 1);
    INSERT INTO session_model_usage (session_id, model, input_tokens) VALUES ('new', 'claude', 3);
    INSERT INTO gateway_routing VALUES ('agent:main:telegram:dm:1', '{}', 5);
";

#[tokio::test]
async fn version_21_gets_what_its_data_steps_would_have_added() {
    let home = original(&[VERSION_21, ROWS_21]);
    let (db, report) = home.open();
    assert_eq!((report.adopted_from, report.warnings), (Some(21), vec![]));
    assert!(report.backup.unwrap().exists());

    for (name, prompt) in [("old", "Prompt of old"), ("new", "Prompt of new"), ("shares", "Prompt of new")] {
        let stored = db.load_session(&id(name)).await.unwrap().unwrap();
        assert_eq!(stored.system_prompt.as_deref(), Some(prompt));
        assert_eq!((stored.tool_names, stored.tool_schemas), (None, None));
    }
    assert_eq!(ask::<i64>(&home, "SELECT count(*) FROM system_prompts"), 2);

    // NULL `active` hid a row.
    let messages = db.load_messages(&id("old")).await.unwrap();
    assert_eq!(messages.len(), 3);
    assert_eq!(messages[2].tool_calls[0].name, "terminal");
    // Tool calls were not in the old index.
    assert_eq!(db.search("narwhal", 5).await.unwrap().len(), 1);
    assert_eq!(db.search("walrus", 5).await.unwrap().len(), 1);

    // The newest of one title keeps it.
    assert_eq!(db.resolve_session("Same title").await.unwrap(), id("new"));
    assert_eq!(db.load_session(&id("old")).await.unwrap().unwrap().title, None);

    // Usage: seeded where there was none, kept where there was, and the key takes tasks now.
    let usage: String = ask(
        &home,
        "SELECT group_concat(session_id || '/' || task || '/' || input_tokens) FROM
         (SELECT * FROM session_model_usage ORDER BY session_id)",
    );
    assert_eq!(usage, "new//3,old//70");
    let delta =
        hermes_state::UsageDelta { model: "claude".into(), task: "vision".into(), ..Default::default() };
    db.record_usage(&id("old"), delta).await.unwrap();
    assert_eq!(ask::<i64>(&home, "SELECT count(*) FROM session_model_usage WHERE session_id = 'old'"), 2);
    assert_eq!(
        ask::<String>(&home, "SELECT scope || session_key FROM gateway_routing"),
        "agent:main:telegram:dm:1"
    );

    // What divided by compression is one conversation.
    assert_eq!(db.resolve_session("before").await.unwrap(), id("after"));
    let shown: Vec<String> = db
        .list_sessions(ListFilter::default())
        .await
        .unwrap()
        .iter()
        .map(|line| line.id.to_string())
        .collect();
    assert_eq!(shown, ["after", "helper", "branch", "new", "shares", "old"]);

    exchange(&db, &id("old"), "go on with the ocelot", "done").await;
    assert_eq!(db.search("ocelot", 5).await.unwrap().len(), 1);
    assert_eq!(db.load_messages(&id("old")).await.unwrap().len(), 5);
    assert_eq!(db.check(false).await.unwrap(), Vec::<String>::new());

    // A row that an old program hides again is healed at the next opening.
    db.close().await;
    home.raw().execute("UPDATE messages SET active = NULL WHERE content = 'found it'", []).unwrap();
    let db = home.db();
    assert_eq!(db.load_messages(&id("old")).await.unwrap().len(), 5);
    let plan: String = home
        .raw()
        .query_row("EXPLAIN QUERY PLAN SELECT 1 FROM messages WHERE active IS NULL", [], |row| row.get(3))
        .unwrap();
    assert!(plan.contains("idx_messages_active_null"), "{plan}");
}

#[tokio::test]
async fn versions_before_16_and_18_get_their_marks() {
    let home = original(&[VERSION_21, ROWS_21, "UPDATE schema_version SET version = 15"]);
    home.raw().execute("UPDATE sessions SET session_key = 'mine' WHERE id = 'new'", []).unwrap();
    fs::create_dir(home.folder().join("sessions")).unwrap();
    fs::write(
        home.folder().join("sessions/sessions.json"),
        r#"{"_meta": {}, "agent:main:telegram:dm:7": {"session_id": "after", "display_name": "Ann",
             "expiry_finalized": true, "origin": {"platform": "telegram", "chat_id": 7, "chat_type": "dm"}},
            "other": {"session_id": "new", "chat_type": "group"}, "broken": 5}"#,
    )
    .unwrap();
    let (db, report) = home.open();
    assert_eq!(report.adopted_from, Some(15));
    let tags: String = ask(
        &home,
        "SELECT group_concat(id || '=' || json_extract(model_config, '$._delegate_from')) FROM sessions
         WHERE json_valid(model_config) AND json_extract(model_config, '$._delegate_from') IS NOT NULL",
    );
    assert_eq!(tags, "helper=old");
    let facts: String = ask(
        &home,
        "SELECT session_key || '|' || chat_id || '|' || chat_type || '|' || display_name || '|' || expiry_finalized
             || '|' || json_extract(origin_json, '$.platform') FROM sessions WHERE id = 'after'",
    );
    assert_eq!(facts, "agent:main:telegram:dm:7|7|dm|Ann|1|telegram");
    assert_eq!(
        ask::<String>(&home, "SELECT session_key || chat_type FROM sessions WHERE id = 'new'"),
        "minegroup"
    );
    let shown = db.list_sessions(ListFilter::default()).await.unwrap();
    assert!(shown.iter().all(|line| line.id != id("helper")));
}

#[tokio::test]
async fn a_database_that_does_not_say_its_version_is_adopted() {
    for forget in ["DELETE FROM schema_version", "DROP TABLE schema_version"] {
        let home = original(&[VERSION_21, ROWS_21, forget]);
        let (db, report) = home.open();
        assert_eq!(report.adopted_from, Some(0));
        assert_eq!(db.counts().await.unwrap().messages, 4);
    }
}

#[tokio::test]
async fn many_rows_are_adopted_whole() {
    let home = original(&[
        VERSION_30,
        "INSERT INTO sessions (id, source, started_at) VALUES ('big', 'cli', 1);
         WITH RECURSIVE n(i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM n WHERE i < 3000)
         INSERT INTO messages (session_id, role, content, timestamp)
             SELECT 'big', 'user', 'row ' || i || ' of many', i FROM n;",
    ]);
    let db = home.db();
    assert_eq!(db.load_messages(&id("big")).await.unwrap().len(), 3000);
    assert_eq!(db.search("2999", 5).await.unwrap().len(), 1);
}

#[tokio::test]
async fn a_failed_adoption_changes_nothing() {
    // A view over a column of ours cannot be extended.
    let home = original(&[
        VERSION_30,
        ROWS_30,
        "DROP TABLE gateway_routing; CREATE VIEW gateway_routing AS SELECT 1 AS session_key;",
    ]);
    let error = home.try_open(&impatient()).map(|_| ()).unwrap_err();
    let OpenError::Adoption { version: 30, backup, .. } = &error else { panic!("{error:?}") };
    assert!(backup.exists());
    assert!(error.to_string().contains("nothing in it was changed"), "{error}");
    assert_eq!(ask::<i64>(&home, "SELECT version FROM schema_version"), 30);
    assert_eq!(
        ask::<i64>(&home, "SELECT count(*) FROM sqlite_master WHERE name = 'messages_fts_trigram'"),
        1
    );
    assert_eq!(
        ask::<i64>(&home, "SELECT count(*) FROM pragma_table_info('sessions') WHERE name = 'platform'"),
        0
    );
}

#[tokio::test]
async fn a_turn_of_an_adopted_session_starts_at_the_first_generation() {
    let home = original(&[VERSION_30, ROWS_30]);
    let db = home.db();
    let (key, _) = turn(&db, &id("inline"), "hello again").await;
    assert_eq!(key.generation, 1);
    db.finish_turn(&key, finish(TurnState::Completed, "done")).await.unwrap();
}

#[tokio::test]
async fn an_index_whose_module_we_lack_is_left_behind() {
    let home = original(&[
        VERSION_30,
        ROWS_30,
        "CREATE VIRTUAL TABLE messages_fts_cjk USING fts5 (content);
         CREATE TRIGGER messages_fts_cjk_insert AFTER INSERT ON messages BEGIN
             INSERT INTO messages_fts_cjk(rowid, content) VALUES (new.id, new.content); END;
         PRAGMA writable_schema = ON;
         UPDATE sqlite_master SET sql = replace(sql, 'fts5', 'lost5') WHERE name = 'messages_fts_cjk';
         PRAGMA writable_schema = OFF;",
    ]);
    let (db, report) = home.open();
    assert!(
        report.warnings.iter().any(|warning| warning.contains("messages_fts_cjk")),
        "{:?}",
        report.warnings
    );
    exchange(&db, &id("inline"), "does it still write", "yes").await;
    assert_eq!(db.search("still", 5).await.unwrap().len(), 1);
}
