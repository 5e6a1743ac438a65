-- What people have allowed the agent: standing approvals, and the policy keys as they were last accepted
-- (contract §7). No tool can write this file.

-- Approvals that hold for all sessions. Those of one session live in memory.
CREATE TABLE IF NOT EXISTS approvals (
    id TEXT PRIMARY KEY,
    rule TEXT NOT NULL,
    shape TEXT NOT NULL,
    granted_at REAL NOT NULL,
    UNIQUE (rule, shape)
) STRICT;

-- `value` is JSON; NULL: accepted as absent. An edit of config.yaml that is wider than this waits.
CREATE TABLE IF NOT EXISTS policy_accepted (
    key TEXT PRIMARY KEY,
    value TEXT,
    accepted_at REAL NOT NULL
) STRICT;
