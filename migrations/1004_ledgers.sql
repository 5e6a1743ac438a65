-- Ledgers: money that calls may cost, and what tools did (design §11).

-- A reservation is written before a call and settled on its usage. No reference to `sessions`:
-- a deleted conversation was paid for all the same.
CREATE TABLE IF NOT EXISTS spend (
    id TEXT PRIMARY KEY,
    state TEXT NOT NULL DEFAULT 'reserved',
    turn_id TEXT,
    session_id TEXT,
    job TEXT,
    principal TEXT NOT NULL,
    task TEXT NOT NULL DEFAULT '',
    model TEXT NOT NULL,
    provider TEXT NOT NULL DEFAULT '',
    reserved_usd REAL NOT NULL,
    settled_usd REAL,
    cost_status TEXT,
    day TEXT NOT NULL,
    reserved_at REAL NOT NULL,
    settled_at REAL
) STRICT;

CREATE INDEX IF NOT EXISTS idx_spend_open ON spend (reserved_at) WHERE state = 'reserved';
CREATE INDEX IF NOT EXISTS idx_spend_day ON spend (day);
CREATE INDEX IF NOT EXISTS idx_spend_session ON spend (session_id) WHERE session_id IS NOT NULL;
CREATE INDEX IF NOT EXISTS idx_spend_job ON spend (job, day) WHERE job IS NOT NULL;

-- `hash` covers the row and `previous_hash`, so that a removed or edited receipt shows.
CREATE TABLE IF NOT EXISTS receipts (
    seq INTEGER PRIMARY KEY AUTOINCREMENT,
    id TEXT NOT NULL UNIQUE,
    session_id TEXT NOT NULL,
    turn_id TEXT NOT NULL,
    call_id TEXT NOT NULL,
    principal TEXT NOT NULL,
    tool TEXT NOT NULL,
    effect TEXT NOT NULL,
    rule TEXT,
    outcome TEXT NOT NULL,
    created_at REAL NOT NULL,
    previous_hash TEXT NOT NULL,
    hash TEXT NOT NULL
) STRICT;

CREATE INDEX IF NOT EXISTS idx_receipts_turn ON receipts (session_id, turn_id);
