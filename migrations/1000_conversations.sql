-- Conversations: sessions, their messages, and what their model calls cost (spec 70 §3).
--
-- Every statement says IF NOT EXISTS, because a database of the original already has most of
-- these tables. Adoption adds the columns that such a file lacks before this runs.

-- One row: the number of the last migration that ran.
CREATE TABLE IF NOT EXISTS schema_version (
    version INTEGER NOT NULL
);

-- Prompts and tool schemas are frozen per session but shared by many: stored once, by hash.
CREATE TABLE IF NOT EXISTS system_prompts (
    hash TEXT PRIMARY KEY,
    prompt TEXT NOT NULL
);

CREATE TABLE IF NOT EXISTS tool_schema_sets (
    hash TEXT PRIMARY KEY,
    schemas TEXT NOT NULL
);

CREATE TABLE IF NOT EXISTS sessions (
    id TEXT PRIMARY KEY,
    source TEXT NOT NULL,
    created_source TEXT,
    platform TEXT,
    user_id TEXT,
    session_key TEXT,
    chat_id TEXT,
    chat_type TEXT,
    thread_id TEXT,
    display_name TEXT,
    origin_json TEXT,
    expiry_finalized INTEGER DEFAULT 0,
    model TEXT,
    model_config TEXT,
    -- Only in rows that the original wrote before it stored prompts by hash.
    system_prompt TEXT,
    system_prompt_hash TEXT REFERENCES system_prompts (hash),
    tool_names TEXT,
    tool_schemas_hash TEXT REFERENCES tool_schema_sets (hash),
    parent_session_id TEXT REFERENCES sessions (id),
    started_at REAL NOT NULL,
    ended_at REAL,
    end_reason TEXT,
    message_count INTEGER DEFAULT 0,
    tool_call_count INTEGER DEFAULT 0,
    api_call_count INTEGER DEFAULT 0,
    input_tokens INTEGER DEFAULT 0,
    output_tokens INTEGER DEFAULT 0,
    cache_read_tokens INTEGER DEFAULT 0,
    cache_write_tokens INTEGER DEFAULT 0,
    reasoning_tokens INTEGER DEFAULT 0,
    billing_provider TEXT,
    billing_base_url TEXT,
    billing_mode TEXT,
    estimated_cost_usd REAL,
    actual_cost_usd REAL,
    cost_status TEXT,
    cost_source TEXT,
    pricing_version TEXT,
    title TEXT,
    title_source TEXT,
    cwd TEXT,
    git_branch TEXT,
    git_repo_root TEXT,
    last_activity_at REAL,
    last_activity_description TEXT,
    handoff_state TEXT,
    handoff_platform TEXT,
    handoff_error TEXT,
    compression_failure_cooldown_until REAL,
    compression_failure_error TEXT,
    compression_fallback_streak INTEGER NOT NULL DEFAULT 0,
    compression_ineffective_count INTEGER NOT NULL DEFAULT 0,
    profile_name TEXT,
    transport_profile TEXT,
    rewind_count INTEGER NOT NULL DEFAULT 0,
    archived INTEGER NOT NULL DEFAULT 0,
    pinned INTEGER NOT NULL DEFAULT 0,
    hidden INTEGER NOT NULL DEFAULT 0,
    last_read_at REAL
);

-- `id` is the order of truth; clocks step back. Rows are appended and never edited.
CREATE TABLE IF NOT EXISTS messages (
    id INTEGER PRIMARY KEY AUTOINCREMENT,
    session_id TEXT NOT NULL REFERENCES sessions (id),
    role TEXT NOT NULL,
    content TEXT,
    api_content TEXT,
    tool_call_id TEXT,
    tool_calls TEXT,
    tool_name TEXT,
    effect_disposition TEXT,
    timestamp REAL NOT NULL,
    token_count INTEGER,
    finish_reason TEXT,
    reasoning TEXT,
    reasoning_content TEXT,
    reasoning_details TEXT,
    codex_reasoning_items TEXT,
    codex_message_items TEXT,
    platform_message_id TEXT,
    observed INTEGER DEFAULT 0,
    active INTEGER NOT NULL DEFAULT 1,
    compacted INTEGER NOT NULL DEFAULT 0,
    -- The row is a compaction summary. The name is the original's.
    _compressed_summary INTEGER NOT NULL DEFAULT 0,
    display_kind TEXT,
    display_metadata TEXT
);

-- `task` is '' for the main loop, else the auxiliary task (`compression`, `title_generation`, …).
CREATE TABLE IF NOT EXISTS session_model_usage (
    session_id TEXT NOT NULL REFERENCES sessions (id) ON DELETE CASCADE,
    model TEXT NOT NULL,
    billing_provider TEXT NOT NULL DEFAULT '',
    billing_base_url TEXT NOT NULL DEFAULT '',
    billing_mode TEXT NOT NULL DEFAULT '',
    task TEXT NOT NULL DEFAULT '',
    api_call_count INTEGER NOT NULL DEFAULT 0,
    input_tokens INTEGER NOT NULL DEFAULT 0,
    output_tokens INTEGER NOT NULL DEFAULT 0,
    cache_read_tokens INTEGER NOT NULL DEFAULT 0,
    cache_write_tokens INTEGER NOT NULL DEFAULT 0,
    reasoning_tokens INTEGER NOT NULL DEFAULT 0,
    estimated_cost_usd REAL NOT NULL DEFAULT 0,
    actual_cost_usd REAL NOT NULL DEFAULT 0,
    cost_status TEXT,
    cost_source TEXT,
    first_seen REAL,
    last_seen REAL,
    PRIMARY KEY (session_id, model, billing_provider, billing_base_url, billing_mode, task)
);

-- (source, id) also answers every question about source alone.
CREATE INDEX IF NOT EXISTS idx_sessions_source_id ON sessions (source, id);
CREATE INDEX IF NOT EXISTS idx_sessions_parent ON sessions (parent_session_id);
CREATE INDEX IF NOT EXISTS idx_sessions_started ON sessions (started_at DESC);
CREATE INDEX IF NOT EXISTS idx_sessions_activity ON sessions (COALESCE(last_activity_at, started_at) DESC);
CREATE INDEX IF NOT EXISTS idx_sessions_session_key ON sessions (session_key, started_at DESC);
CREATE INDEX IF NOT EXISTS idx_sessions_gateway_peer
    ON sessions (source, user_id, chat_id, chat_type, thread_id, started_at DESC)
    WHERE chat_id IS NOT NULL OR user_id IS NOT NULL;
CREATE INDEX IF NOT EXISTS idx_sessions_handoff_state
    ON sessions (handoff_state, started_at) WHERE handoff_state IS NOT NULL;
CREATE UNIQUE INDEX IF NOT EXISTS idx_sessions_title_unique ON sessions (title) WHERE title IS NOT NULL;

CREATE INDEX IF NOT EXISTS idx_messages_session_id ON messages (session_id, id);
CREATE INDEX IF NOT EXISTS idx_messages_session ON messages (session_id, timestamp);
CREATE INDEX IF NOT EXISTS idx_messages_session_active ON messages (session_id, active, timestamp);
CREATE INDEX IF NOT EXISTS idx_messages_assistant_calls_by_session
    ON messages (session_id) WHERE role = 'assistant' AND tool_calls IS NOT NULL;
CREATE INDEX IF NOT EXISTS idx_messages_platform_msg_id
    ON messages (session_id, platform_message_id) WHERE platform_message_id IS NOT NULL;

CREATE INDEX IF NOT EXISTS idx_session_model_usage_model ON session_model_usage (model);
