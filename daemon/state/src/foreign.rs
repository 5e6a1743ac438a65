//! Reading a database of a version that we do not know: temporary views over its tables make it
//! look like ours, so that no query needs to know. Nothing is written to the file.

use std::fmt::Write as _;

use rusqlite::Connection;

use crate::schema;

/// The SQL that gives a connection to such a file what its tables lack: a table that is missing is
/// an empty temporary one, a column that is missing reads as its default.
pub(crate) fn shim(conn: &Connection) -> rusqlite::Result<String> {
    let reference = schema::reference()?;
    let mut sql = String::new();
    for (table, definition) in schema::tables(&reference)? {
        let theirs = schema::columns_of(conn, &table)?;
        if theirs.is_empty() {
            if let Some(rest) = definition.strip_prefix("CREATE TABLE ") {
                let _ = writeln!(sql, "CREATE TEMP TABLE {rest};");
            }
            continue;
        }
        let lacking: Vec<String> = schema::details_of(&reference, &table)?
            .into_iter()
            .filter(|column| !theirs.contains(&column.name))
            .map(|column| format!(", {} AS \"{}\"", column.default.as_deref().unwrap_or("NULL"), column.name))
            .collect();
        if !lacking.is_empty() {
            let lacking = lacking.concat();
            let _ = writeln!(sql, "CREATE TEMP VIEW \"{table}\" AS SELECT *{lacking} FROM main.\"{table}\";");
        }
    }
    Ok(sql)
}

/// Whether the file's word index can be asked as ours is.
pub(crate) fn has_index(conn: &Connection) -> bool {
    let columns = schema::columns_of(conn, "messages_fts").unwrap_or_default();
    if !["content", "tool_name", "tool_calls"].iter().all(|name| columns.iter().any(|column| column == name))
    {
        return false;
    }
    // Asking tells whether tokenizer and module are there too.
    conn.prepare("SELECT rowid FROM messages_fts WHERE messages_fts MATCH '\"probe\"' LIMIT 1")
        .and_then(|mut statement| statement.exists([]))
        .is_ok()
}
