-- Who may speak to the agent, remote tokens, and files that messages point to (contract §6–7).

-- `id` is the principal's text form (`person:telegram:42`); `rights` is JSON.
CREATE TABLE IF NOT EXISTS principals (
    id TEXT PRIMARY KEY,
    kind TEXT NOT NULL,
    display_name TEXT,
    rights TEXT NOT NULL DEFAULT '{}',
    created_at REAL NOT NULL,
    last_seen_at REAL,
    revoked_at REAL
) STRICT;

-- Only the hash of a token is kept.
CREATE TABLE IF NOT EXISTS tokens (
    id TEXT PRIMARY KEY,
    hash TEXT NOT NULL UNIQUE,
    scope TEXT NOT NULL,
    label TEXT,
    created_at REAL NOT NULL,
    expires_at REAL,
    last_used_at REAL,
    revoked_at REAL
) STRICT;

CREATE TABLE IF NOT EXISTS media (
    hash TEXT PRIMARY KEY,
    type TEXT NOT NULL,
    path TEXT NOT NULL,
    size_bytes INTEGER NOT NULL,
    created_at REAL NOT NULL,
    last_used_at REAL
) STRICT;
