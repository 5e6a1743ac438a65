//! The shape of an adopted file: its tables get our columns and keys.

use rusqlite::Connection;

use crate::schema::{self, Column};

/// Tables that the original has too. A table of any other name of ours is someone else's and is
/// put aside.
const SHARED: [&str; 10] = [
    "schema_version",
    "system_prompts",
    "sessions",
    "messages",
    "session_model_usage",
    "state_meta",
    "gateway_routing",
    "conversation_generations",
    "compression_locks",
    "async_delegations",
];

/// Tables whose rows are conversations: they are extended but never rebuilt.
const CORE: [&str; 2] = ["sessions", "messages"];

/// Brings the file's tables into the shape of `reference`. Returns warnings.
pub(super) fn reshape(conn: &Connection, reference: &Connection) -> rusqlite::Result<Vec<String>> {
    let mut warnings = drop_derived(conn)?;
    for (table, definition) in schema::tables(reference)? {
        let theirs = schema::details_of(conn, &table)?;
        if theirs.is_empty() {
            continue;
        }
        if !SHARED.contains(&table.as_str()) {
            let aside = format!("original_{table}");
            conn.execute_batch(&format!("ALTER TABLE \"{table}\" RENAME TO \"{aside}\""))?;
            warnings.push(format!(
                "the database had a table `{table}` of its own, which is now called `{aside}`"
            ));
            continue;
        }
        let ours = schema::details_of(reference, &table)?;
        add_columns(conn, &table, &ours, &theirs)?;
        if !CORE.contains(&table.as_str()) && key(&ours) != key(&theirs) {
            rebuild(conn, &table, &definition, &ours)?;
        }
    }
    drop_other_indexes(conn, reference)?;
    index_hidden_rows(conn)?;
    Ok(warnings)
}

/// Drops what is derived from the rows: triggers, and the full-text tables and views, which have
/// had several layouts and are built anew.
fn drop_derived(conn: &Connection) -> rusqlite::Result<Vec<String>> {
    let names = |sql: &str| -> rusqlite::Result<Vec<String>> {
        conn.prepare(sql)?.query_map([], |row| row.get(0))?.collect()
    };
    for trigger in names(
        "SELECT name FROM sqlite_master WHERE type = 'trigger' AND tbl_name IN ('sessions', 'messages')",
    )? {
        conn.execute_batch(&format!("DROP TRIGGER \"{trigger}\""))?;
    }
    for view in names("SELECT name FROM sqlite_master WHERE type = 'view' AND name LIKE 'messages%'")? {
        conn.execute_batch(&format!("DROP VIEW \"{view}\""))?;
    }
    let mut warnings = Vec::new();
    let indexes = names(
        "SELECT name FROM sqlite_master WHERE type = 'table' AND name LIKE 'messages%' \
         AND sql LIKE 'CREATE VIRTUAL TABLE%'",
    )?;
    for index in indexes {
        // One that an extension made cannot even be dropped without it. Without its
        // triggers it is only dead weight, unless it has the name of ours.
        match conn.execute_batch(&format!("DROP TABLE \"{index}\"")) {
            Ok(()) => {}
            Err(error) if index == "messages_fts" => return Err(error),
            Err(error) => warnings.push(format!(
                "the original's index `{index}` could not be removed ({error}) and still takes space"
            )),
        }
    }
    Ok(warnings)
}

fn add_columns(conn: &Connection, table: &str, ours: &[Column], theirs: &[Column]) -> rusqlite::Result<()> {
    for column in ours {
        if theirs.iter().any(|their| their.name.eq_ignore_ascii_case(&column.name)) {
            continue;
        }
        let (name, kind) = (&column.name, &column.kind);
        // A column can only be added as NOT NULL when it has a default.
        let rest = match &column.default {
            Some(default) if column.not_null => format!(" NOT NULL DEFAULT {default}"),
            Some(default) => format!(" DEFAULT {default}"),
            None => String::new(),
        };
        conn.execute_batch(&format!("ALTER TABLE \"{table}\" ADD COLUMN \"{name}\" {kind}{rest}"))?;
    }
    Ok(())
}

/// The primary key's columns, in order.
fn key(columns: &[Column]) -> Vec<&str> {
    let mut key: Vec<&Column> = columns.iter().filter(|column| column.key > 0).collect();
    key.sort_by_key(|column| column.key);
    key.into_iter().map(|column| column.name.as_str()).collect()
}

/// Makes the table anew with our key and copies its rows; of rows that now collide the later wins.
fn rebuild(conn: &Connection, table: &str, definition: &str, ours: &[Column]) -> rusqlite::Result<()> {
    let before = format!("{table}_before_adoption");
    let (mut names, mut values) = (Vec::new(), Vec::new());
    for column in ours {
        let name = &column.name;
        names.push(format!("\"{name}\""));
        values.push(match &column.default {
            Some(default) if column.not_null => format!("COALESCE(\"{name}\", {default})"),
            _ => format!("\"{name}\""),
        });
    }
    let (names, values) = (names.join(", "), values.join(", "));
    conn.execute_batch(&format!(
        "ALTER TABLE \"{table}\" RENAME TO \"{before}\";
         {definition};
         INSERT OR REPLACE INTO \"{table}\" ({names}) SELECT {values} FROM \"{before}\" ORDER BY rowid;
         DROP TABLE \"{before}\";"
    ))
}

/// Drops indexes of conversations that are not ours: each costs every insert, and some are over
/// columns that we do not fill. Those that we define alike stay.
fn drop_other_indexes(conn: &Connection, reference: &Connection) -> rusqlite::Result<()> {
    let indexes = |conn: &Connection| -> rusqlite::Result<Vec<(String, String)>> {
        conn.prepare(
            "SELECT name, sql FROM sqlite_master WHERE type = 'index' AND sql IS NOT NULL \
             AND tbl_name IN ('sessions', 'messages', 'session_model_usage')",
        )?
        .query_map([], |row| Ok((row.get(0)?, row.get(1)?)))?
        .collect()
    };
    let plain = |sql: &str| -> String {
        sql.chars().filter(|c| !c.is_whitespace() && *c != '"').flat_map(char::to_lowercase).collect()
    };
    let ours: Vec<(String, String)> =
        indexes(reference)?.into_iter().map(|(name, sql)| (name, plain(&sql))).collect();
    for (name, sql) in indexes(conn)? {
        if !ours.contains(&(name.clone(), plain(&sql))) {
            conn.execute_batch(&format!("DROP INDEX \"{name}\""))?;
        }
    }
    Ok(())
}

/// A column `active` that may be NULL gets an index over just those rows, so that every opening
/// can look for them at no cost.
fn index_hidden_rows(conn: &Connection) -> rusqlite::Result<()> {
    let columns = schema::details_of(conn, "messages")?;
    if columns.iter().any(|column| column.name == "active" && !column.not_null) {
        conn.execute_batch(
            "CREATE INDEX IF NOT EXISTS idx_messages_active_null ON messages (active) WHERE active IS NULL",
        )?;
    }
    Ok(())
}
