-- Scheduled jobs and the slots in which they run (spec 50 §7).

-- `record` is the whole job as JSON, so that fields which we do not know are kept; the columns
-- are those by which jobs are found.
CREATE TABLE IF NOT EXISTS cron_jobs (
    id TEXT PRIMARY KEY,
    name TEXT NOT NULL,
    enabled INTEGER NOT NULL DEFAULT 1,
    state TEXT NOT NULL DEFAULT 'scheduled',
    next_run_at REAL,
    record TEXT NOT NULL,
    created_at REAL NOT NULL,
    updated_at REAL NOT NULL
) STRICT;

CREATE INDEX IF NOT EXISTS idx_cron_jobs_due ON cron_jobs (next_run_at) WHERE enabled = 1;

-- No reference to `cron_jobs`: the ledger of a deleted job stays readable.
CREATE TABLE IF NOT EXISTS cron_slots (
    id TEXT PRIMARY KEY,
    job_id TEXT NOT NULL,
    scheduled_at REAL NOT NULL,
    attempt INTEGER NOT NULL DEFAULT 1,
    state TEXT NOT NULL,
    reason TEXT,
    owner TEXT,
    lease_until REAL,
    session_id TEXT,
    turn_id TEXT,
    claimed_at REAL,
    started_at REAL,
    finished_at REAL,
    error TEXT,
    UNIQUE (job_id, scheduled_at, attempt)
) STRICT;

CREATE INDEX IF NOT EXISTS idx_cron_slots_state ON cron_slots (state, scheduled_at);
