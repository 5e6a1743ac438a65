-- Turns and the inputs that wait for theirs (contract §6).

-- `generation` is the fence: raised in the transaction that writes the user row, and checked by
-- every later write of the turn. At most one turn of a session is `running`.
CREATE TABLE IF NOT EXISTS turns (
    id TEXT PRIMARY KEY,
    session_id TEXT NOT NULL REFERENCES sessions (id) ON DELETE CASCADE,
    generation INTEGER NOT NULL,
    principal TEXT NOT NULL,
    client_message_id TEXT,
    user_message_id INTEGER,
    state TEXT NOT NULL CHECK (state IN ('running', 'completed', 'failed', 'interrupted')),
    exit_reason TEXT,
    started_at REAL NOT NULL,
    ended_at REAL,
    UNIQUE (session_id, generation),
    UNIQUE (session_id, client_message_id)
) STRICT;

CREATE INDEX IF NOT EXISTS idx_turns_running ON turns (session_id) WHERE state = 'running';

-- The durable queue. `seq` is the order in which inputs get their turns.
CREATE TABLE IF NOT EXISTS inputs (
    seq INTEGER PRIMARY KEY AUTOINCREMENT,
    id TEXT NOT NULL UNIQUE,
    session_id TEXT NOT NULL REFERENCES sessions (id) ON DELETE CASCADE,
    principal TEXT NOT NULL,
    mode TEXT NOT NULL,
    text TEXT NOT NULL,
    options TEXT NOT NULL,
    client_message_id TEXT,
    created_at REAL NOT NULL,
    UNIQUE (session_id, client_message_id)
) STRICT;

CREATE INDEX IF NOT EXISTS idx_inputs_session ON inputs (session_id, seq);
