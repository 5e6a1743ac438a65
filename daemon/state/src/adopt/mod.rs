//! Adopting a database of the original (versions up to 30): in place, after a copy, as one
//! transaction, so that a failure leaves the file as it was (spec 70 §2 "Versioning").
//!
//! First the shape: what the original's full-text search and triggers left is dropped, columns
//! that lack are added, keys that grew are rebuilt. Then the data steps, then our migrations, then
//! the full-text index from the messages.

mod reshape;
mod steps;

use std::path::Path;
use std::time::Duration;

use rusqlite::Connection;

use crate::busy;
use crate::error::OpenError;
use crate::open::in_transaction;
use crate::{schema, upkeep, writer};

/// Adopts the file, which says that it is of `version`. Returns warnings.
pub(crate) fn adopt(
    conn: &Connection,
    path: &Path,
    version: i64,
    backup: &Path,
    patience: Duration,
) -> Result<Vec<String>, OpenError> {
    tracing::info!(version, "adopting a database of the original");
    let outcome = pragmas(conn, false).and_then(|()| {
        let reference = schema::reference()?;
        busy::retry(patience, || in_transaction(conn, |conn| transform(conn, &reference, path, version)))
            .map_err(|(error, _)| error)
    });
    // Both must be as before, also after a failure.
    let restored = pragmas(conn, true);
    match outcome.and_then(|warnings| restored.map(|()| warnings)) {
        Ok(warnings) => {
            upkeep::checkpoint(conn, "TRUNCATE");
            Ok(warnings)
        }
        Err(error) => Err(OpenError::Adoption {
            path: path.to_owned(),
            version,
            backup: backup.to_owned(),
            detail: error.to_string(),
        }),
    }
}

fn transform(
    conn: &Connection,
    reference: &Connection,
    path: &Path,
    version: i64,
) -> rusqlite::Result<Vec<String>> {
    let mut warnings = reshape::reshape(conn, reference)?;
    steps::before_migrations(conn, path, version)?;
    schema::migrate(conn, 0)?;
    steps::after_migrations(conn)?;
    writer::rebuild_index(conn)?;
    warnings.retain(|warning| !warning.is_empty());
    Ok(warnings)
}

/// Tables are renamed and rebuilt, which foreign keys and SQLite's care for references between
/// tables would hinder. Neither can be changed inside a transaction.
fn pragmas(conn: &Connection, usual: bool) -> rusqlite::Result<()> {
    conn.pragma_update(None, "foreign_keys", usual)?;
    conn.pragma_update(None, "legacy_alter_table", !usual)
}
