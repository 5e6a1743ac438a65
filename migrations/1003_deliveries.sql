-- What came in from chat platforms and what is owed to them (spec 70 §12, §16; contract §9).

-- One row per inbound platform event, so that one event makes exactly one turn.
CREATE TABLE IF NOT EXISTS inbox (
    platform TEXT NOT NULL,
    instance TEXT NOT NULL DEFAULT '',
    event_id TEXT NOT NULL,
    session_key TEXT,
    session_id TEXT,
    turn_id TEXT,
    event_json TEXT NOT NULL,
    state TEXT NOT NULL DEFAULT 'pending',
    error TEXT,
    received_at REAL NOT NULL,
    handled_at REAL,
    PRIMARY KEY (platform, instance, event_id)
) STRICT;

CREATE INDEX IF NOT EXISTS idx_inbox_state ON inbox (state, received_at);

-- One row per final reply, written before it is sent.
CREATE TABLE IF NOT EXISTS outbox (
    obligation_id TEXT PRIMARY KEY,
    session_key TEXT NOT NULL,
    inbound_id TEXT NOT NULL DEFAULT '',
    content_hash TEXT NOT NULL,
    session_id TEXT,
    turn_id TEXT,
    profile TEXT,
    platform TEXT NOT NULL,
    chat_id TEXT NOT NULL,
    thread_id TEXT,
    content TEXT NOT NULL,
    state TEXT NOT NULL DEFAULT 'pending',
    attempts INTEGER NOT NULL DEFAULT 0,
    not_before REAL,
    created_at REAL NOT NULL,
    updated_at REAL NOT NULL,
    owner_pid INTEGER,
    owner_started_at INTEGER,
    last_error TEXT,
    UNIQUE (session_key, inbound_id, content_hash)
) STRICT;

CREATE INDEX IF NOT EXISTS idx_outbox_state ON outbox (state, not_before);

-- The marks by which recovery sends only what lacks.
CREATE TABLE IF NOT EXISTS outbox_chunks (
    obligation_id TEXT NOT NULL REFERENCES outbox (obligation_id) ON DELETE CASCADE,
    chunk INTEGER NOT NULL,
    op TEXT NOT NULL DEFAULT 'send',
    content TEXT,
    state TEXT NOT NULL DEFAULT 'pending',
    nonce TEXT,
    platform_message_id TEXT,
    attempted_at REAL,
    delivered_at REAL,
    PRIMARY KEY (obligation_id, chunk)
) STRICT;
