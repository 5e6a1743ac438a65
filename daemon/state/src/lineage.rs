//! How sessions descend from one another, and what their ends mean (spec 70 §4).

use std::collections::HashSet;
use std::fmt::Write as _;

use rusqlite::{Connection, OptionalExtension as _};

/// Ends that divide conversations: never taken up again by routing.
pub(crate) const BOUNDARY_REASONS: [&str; 7] = [
    "session_reset",
    "session_switch",
    "idle",
    "daily",
    "suspended",
    "resume_pending_expired",
    "new_session",
];

/// Ends that clean-up wrote, not a person: a boundary may take their place.
pub(crate) const AUTOMATIC_REASONS: [&str; 8] = [
    "agent_close",
    "ws_orphan_reap",
    "superseded_by_resume",
    "startup_orphan_reap",
    "tui_shutdown",
    "ws_disconnect",
    "idle_timeout",
    "lru_evict",
];

/// Longest chain of compressions that is followed.
const HOPS: usize = 100;

/// A marker in a session's `model_config`. `{session}` is the table's alias, `{name}` the marker.
pub(crate) const MARKER: &str = "(CASE WHEN json_valid({session}.model_config) THEN json_extract({session}.model_config, '$.{name}') END)";

/// Whether the session `child` goes on with the conversation of `parent`, which compression ended.
///
/// A marker counts only when it names this parent: a continuation inherits its parent's
/// `model_config`, markers of earlier forks included.
fn continues(child: &str, parent: &str) -> String {
    let mut sql = format!("{child}.parent_session_id = {parent} AND COALESCE({child}.source, '') <> 'tool'");
    for name in ["_branched_from", "_delegate_from", "_reset_from"] {
        let marker = MARKER.replace("{session}", child).replace("{name}", name);
        let _ = write!(sql, " AND COALESCE({marker}, '') <> {parent}");
    }
    sql
}

/// Which sessions `s` a list shows: conversations of people and jobs, each by its tip.
pub(crate) fn listed() -> String {
    let delegated = MARKER.replace("{session}", "s").replace("{name}", "_delegate_from");
    let continuation = continues("child", "s.id");
    format!(
        "s.source NOT IN ('tool', 'subagent') AND COALESCE(s.hidden, 0) = 0 AND {delegated} IS NULL \
         AND NOT (COALESCE(s.end_reason, '') = 'compression' \
                  AND EXISTS (SELECT 1 FROM sessions AS child WHERE {continuation}))"
    )
}

/// The session in which the conversation of `id` goes on: itself, or the end of its chain of
/// compressions. Safe against cycles.
pub(crate) fn tip(conn: &Connection, id: &str) -> rusqlite::Result<String> {
    let mut ended = conn.prepare_cached("SELECT end_reason FROM sessions WHERE id = ?1")?;
    let mut next = conn.prepare_cached(&format!(
        "SELECT child.id FROM sessions AS child WHERE {}
         ORDER BY COALESCE(child.end_reason, '') = 'compression' DESC, child.ended_at IS NULL DESC,
                  COALESCE(child.last_activity_at, child.started_at) DESC, child.id DESC
         LIMIT 1",
        continues("child", "?1")
    ))?;
    let mut current = id.to_owned();
    let mut seen = HashSet::from([current.clone()]);
    for _ in 0..HOPS {
        let reason: Option<Option<String>> =
            ended.query_row([&current], |row| crate::column::text(row, 0)).optional()?;
        if reason.flatten().as_deref() != Some("compression") {
            break;
        }
        let child: Option<String> = next.query_row([&current], |row| row.get(0)).optional()?;
        match child {
            Some(child) if seen.insert(child.clone()) => current = child,
            _ => break,
        }
    }
    Ok(current)
}

/// Whether `ancestor` was ended by a compression of which `id` is a continuation, at any distance.
pub(crate) fn is_compression_ancestor(conn: &Connection, ancestor: &str, id: &str) -> rusqlite::Result<bool> {
    let mut parent = conn.prepare_cached(
        "SELECT parent.id FROM sessions AS child JOIN sessions AS parent ON parent.id = child.parent_session_id
         WHERE child.id = ?1 AND parent.end_reason = 'compression'",
    )?;
    let mut current = id.to_owned();
    for _ in 0..HOPS {
        match parent.query_row([&current], |row| row.get::<_, String>(0)).optional()? {
            Some(id) if id == ancestor => return Ok(true),
            Some(id) => current = id,
            None => return Ok(false),
        }
    }
    Ok(false)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::schema;

    fn chain(rows: &[(&str, Option<&str>, Option<&str>, &str)]) -> Connection {
        let conn = schema::reference().unwrap();
        for (at, (id, parent, end_reason, config)) in (0_i64..).zip(rows) {
            conn.execute(
                "INSERT INTO sessions (id, source, parent_session_id, started_at, ended_at, end_reason, model_config)
                 VALUES (?1, 'cli', ?2, ?3, ?4, ?5, ?6)",
                rusqlite::params![id, parent, at, end_reason.map(|_| at), end_reason, config],
            )
            .unwrap();
        }
        conn
    }

    #[test]
    fn the_tip_is_the_end_of_the_compressions() {
        let conn = chain(&[
            ("a", None, Some("compression"), ""),
            ("b", Some("a"), Some("compression"), "{\"_branched_from\": \"z\"}"),
            ("branch", Some("a"), None, "{\"_branched_from\": \"a\"}"),
            ("child", Some("b"), None, "{\"_delegate_from\": \"b\"}"),
            ("c", Some("b"), None, "not json"),
        ]);
        for (from, to) in [("a", "c"), ("b", "c"), ("c", "c"), ("branch", "branch"), ("unknown", "unknown")] {
            assert_eq!(tip(&conn, from).unwrap(), to);
        }
        assert!(is_compression_ancestor(&conn, "a", "c").unwrap());
        assert!(!is_compression_ancestor(&conn, "c", "a").unwrap());
    }

    #[test]
    fn a_cycle_ends() {
        let conn =
            chain(&[("a", None, Some("compression"), "{}"), ("b", Some("a"), Some("compression"), "{}")]);
        conn.execute("UPDATE sessions SET parent_session_id = 'b' WHERE id = 'a'", []).unwrap();
        assert_eq!(tip(&conn, "a").unwrap(), "b");
        assert!(!is_compression_ancestor(&conn, "x", "a").unwrap());
    }
}
