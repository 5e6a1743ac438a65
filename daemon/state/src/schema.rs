//! The numbered migrations, and what version a file has (spec 70 §2 "Versioning").

use rusqlite::{Connection, OptionalExtension as _};

/// One file of `migrations/`. Once shipped it is never edited; a change is a new file.
pub(crate) struct Migration {
    pub(crate) version: i64,
    pub(crate) sql: &'static str,
}

/// All migrations, in order. A test holds the list against the folder.
pub(crate) const MIGRATIONS: [Migration; 9] = [
    Migration { version: 1000, sql: include_str!("../../../migrations/1000_conversations.sql") },
    Migration { version: 1001, sql: include_str!("../../../migrations/1001_routing.sql") },
    Migration { version: 1002, sql: include_str!("../../../migrations/1002_turns.sql") },
    Migration { version: 1003, sql: include_str!("../../../migrations/1003_deliveries.sql") },
    Migration { version: 1004, sql: include_str!("../../../migrations/1004_ledgers.sql") },
    Migration { version: 1005, sql: include_str!("../../../migrations/1005_automation.sql") },
    Migration { version: 1006, sql: include_str!("../../../migrations/1006_access.sql") },
    Migration { version: 1007, sql: include_str!("../../../migrations/1007_full_text.sql") },
    Migration { version: 1008, sql: include_str!("../../../migrations/1008_policy.sql") },
];

/// The version that this build writes.
pub(crate) const LATEST: i64 = 1008;
/// The first version whose daemons note which settings of policy were accepted.
pub(crate) const FIRST_WITH_POLICY: i64 = 1008;

/// The last version of the original that is adopted.
pub(crate) const LAST_ORIGINAL: i64 = 30;

/// What kind of database a file holds.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum Found {
    /// No table at all.
    Fresh,
    /// Ours, of this or an earlier version.
    Ours(i64),
    /// The original's, to be adopted. 0 when it does not say its version.
    Original(i64),
    /// A later original or a later Hermes: to be read, never written.
    Newer(i64),
    /// Another program's.
    Foreign(String),
}

/// Looks at the tables. Reads the header first of all, so a file that is no database shows here.
pub(crate) fn find(conn: &Connection) -> rusqlite::Result<Found> {
    let tables: Vec<String> = conn
        .prepare("SELECT name FROM sqlite_master WHERE type IN ('table', 'view') AND name NOT LIKE 'sqlite\\_%' ESCAPE '\\'")?
        .query_map([], |row| row.get(0))?
        .collect::<rusqlite::Result<_>>()?;
    if tables.is_empty() {
        return Ok(Found::Fresh);
    }
    let has = |name: &str| tables.iter().any(|table| table == name);
    let version = if has("schema_version") { stored_version(conn)? } else { None };
    for (table, needed) in [("sessions", &["id"][..]), ("messages", &["id", "session_id", "role"][..])] {
        let columns = columns_of(conn, table)?;
        let lacking = needed.iter().find(|name| !columns.iter().any(|column| column == *name));
        if let Some(column) = lacking.filter(|_| has(table)) {
            return Ok(Found::Foreign(format!("its table `{table}` has no column `{column}`")));
        }
    }
    Ok(match version {
        Some(version) if (1000..=LATEST).contains(&version) => Found::Ours(version),
        Some(version) if version > LAST_ORIGINAL => Found::Newer(version),
        Some(version) => Found::Original(version.max(0)),
        None if has("sessions") || has("messages") || has("state_meta") => Found::Original(0),
        None => Found::Foreign("it has tables, but none of ours".to_owned()),
    })
}

fn stored_version(conn: &Connection) -> rusqlite::Result<Option<i64>> {
    if !columns_of(conn, "schema_version")?.iter().any(|column| column == "version") {
        return Ok(None);
    }
    conn.query_row("SELECT max(CAST(version AS INTEGER)) FROM schema_version", [], |row| row.get(0))
        .optional()
        .map(Option::flatten)
}

/// The columns of a table or view, in order; empty when there is none of that name.
pub(crate) fn columns_of(conn: &Connection, table: &str) -> rusqlite::Result<Vec<String>> {
    conn.prepare("SELECT name FROM pragma_table_info(?1)")?.query_map([table], |row| row.get(0))?.collect()
}

/// A column, as SQLite describes it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Column {
    pub(crate) name: String,
    pub(crate) kind: String,
    pub(crate) not_null: bool,
    /// The default as an SQL expression.
    pub(crate) default: Option<String>,
    /// The place in the primary key, from 1; 0 outside it.
    pub(crate) key: i64,
}

/// The columns of a table with all that SQLite knows of them.
pub(crate) fn details_of(conn: &Connection, table: &str) -> rusqlite::Result<Vec<Column>> {
    conn.prepare("SELECT name, type, \"notnull\", dflt_value, pk FROM pragma_table_info(?1)")?
        .query_map([table], |row| {
            Ok(Column {
                name: row.get(0)?,
                kind: row.get(1)?,
                not_null: row.get(2)?,
                default: row.get(3)?,
                key: row.get(4)?,
            })
        })?
        .collect()
}

/// The ordinary tables and their definitions, without those that serve the full-text index.
pub(crate) fn tables(conn: &Connection) -> rusqlite::Result<Vec<(String, String)>> {
    conn.prepare(
        "SELECT name, sql FROM sqlite_master WHERE type = 'table' AND sql LIKE 'CREATE TABLE %' \
         AND name NOT LIKE 'sqlite\\_%' ESCAPE '\\' AND name NOT LIKE 'messages\\_fts%' ESCAPE '\\' ORDER BY rowid",
    )?
    .query_map([], |row| Ok((row.get(0)?, row.get(1)?)))?
    .collect()
}

/// Runs the migrations after version `from` and records the newest. The caller holds the transaction.
pub(crate) fn migrate(conn: &Connection, from: i64) -> rusqlite::Result<()> {
    for migration in MIGRATIONS.iter().filter(|migration| migration.version > from) {
        conn.execute_batch(migration.sql)?;
    }
    conn.execute("DELETE FROM schema_version", [])?;
    conn.execute("INSERT INTO schema_version (version) VALUES (?1)", [LATEST])?;
    Ok(())
}

/// An empty database of our newest version in memory, to compare others with.
pub(crate) fn reference() -> rusqlite::Result<Connection> {
    let conn = Connection::open_in_memory()?;
    migrate(&conn, 0)?;
    Ok(conn)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_migration_file_is_embedded_in_order() {
        let folder = concat!(env!("CARGO_MANIFEST_DIR"), "/../../migrations");
        let mut files: Vec<String> = std::fs::read_dir(folder)
            .unwrap()
            .map(|entry| entry.unwrap().file_name().into_string().unwrap())
            .filter(|name| name.split('.').next_back() == Some("sql"))
            .collect();
        files.sort();
        let on_disk: Vec<(i64, String)> = files
            .iter()
            .map(|name| {
                let number = name.split('_').next().unwrap().parse().unwrap();
                (number, std::fs::read_to_string(format!("{folder}/{name}")).unwrap())
            })
            .collect();
        let embedded: Vec<(i64, String)> =
            MIGRATIONS.iter().map(|migration| (migration.version, migration.sql.to_owned())).collect();
        assert_eq!(embedded, on_disk);
        assert_eq!(MIGRATIONS.last().unwrap().version, LATEST);
    }

    #[test]
    fn versions_sort_into_ours_the_originals_and_newer_ones() {
        let file = |version: &str| {
            let conn = Connection::open_in_memory().unwrap();
            conn.execute_batch(&format!(
                "CREATE TABLE schema_version (version INTEGER); INSERT INTO schema_version VALUES ({version});
                 CREATE TABLE sessions (id TEXT); CREATE TABLE messages (id INTEGER, session_id TEXT, role TEXT);"
            ))
            .unwrap();
            find(&conn).unwrap()
        };
        assert_eq!(file("1"), Found::Original(1));
        assert_eq!(file("30"), Found::Original(30));
        assert_eq!(file("'30'"), Found::Original(30));
        assert_eq!(file("31"), Found::Newer(31));
        assert_eq!(file("999"), Found::Newer(999));
        assert_eq!(file("1000"), Found::Ours(1000));
        assert_eq!(file(&LATEST.to_string()), Found::Ours(LATEST));
        assert_eq!(file(&(LATEST + 1).to_string()), Found::Newer(LATEST + 1));
        assert_eq!(file("NULL"), Found::Original(0));
    }

    #[test]
    fn other_programs_files_are_told_apart() {
        let conn = Connection::open_in_memory().unwrap();
        assert_eq!(find(&conn).unwrap(), Found::Fresh);
        conn.execute_batch("CREATE TABLE sessions (cookie TEXT)").unwrap();
        assert_eq!(find(&conn).unwrap(), Found::Foreign("its table `sessions` has no column `id`".into()));
        let conn = Connection::open_in_memory().unwrap();
        conn.execute_batch("CREATE TABLE places (url TEXT)").unwrap();
        assert!(matches!(find(&conn).unwrap(), Found::Foreign(_)));
    }

    #[test]
    fn migrations_may_run_twice() {
        let conn = reference().unwrap();
        migrate(&conn, 0).unwrap();
        assert_eq!(find(&conn).unwrap(), Found::Ours(LATEST));
    }
}
