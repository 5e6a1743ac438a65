//! Texts that many sessions share, stored once under the hash of their bytes.

use rusqlite::Connection;

/// Stores a system prompt and gives its hash.
pub(crate) fn store_prompt(conn: &Connection, prompt: &str) -> rusqlite::Result<String> {
    store(conn, "INSERT OR IGNORE INTO system_prompts (hash, prompt) VALUES (?1, ?2)", prompt)
}

/// Stores a list of tool schemas, byte for byte, and gives its hash.
pub(crate) fn store_schemas(conn: &Connection, schemas: &str) -> rusqlite::Result<String> {
    store(conn, "INSERT OR IGNORE INTO tool_schema_sets (hash, schemas) VALUES (?1, ?2)", schemas)
}

fn store(conn: &Connection, sql: &str, text: &str) -> rusqlite::Result<String> {
    let hash = blake3::hash(text.as_bytes()).to_hex().to_string();
    conn.prepare_cached(sql)?.execute([hash.as_str(), text])?;
    Ok(hash)
}
