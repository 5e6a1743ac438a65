//! Opening: new files, crashes, files of others, and everything that can be wrong with one.

mod kit;

use std::fs;
use std::os::unix::fs::PermissionsExt as _;
use std::sync::Arc;

use hermes_core::SystemClock;
use hermes_state::{Counts, Db, ListFilter, OpenError, OpenOptions, StateError, Synchronous};
use kit::*;
use pretty_assertions::assert_eq;

/// The newest schema of this build.
const LATEST: i64 = 1008;

#[tokio::test]
async fn a_new_file_is_private_and_empty() {
    let home = Home::new();
    let (db, report) = home.open();
    assert_eq!(report, hermes_state::OpenReport::default());
    assert_eq!(db.counts().await.unwrap(), Counts::default());
    assert_eq!(db.read_only(), None);
    for file in ["state.db", "state.db-wal", "state.db-shm"] {
        let mode = fs::metadata(home.folder().join(file)).unwrap().permissions().mode();
        assert_eq!(mode & 0o777, 0o600, "{file}");
    }
    assert_eq!(ask::<i64>(&home, "SELECT version FROM schema_version"), LATEST);
    assert_eq!(ask::<String>(&home, "PRAGMA journal_mode"), "wal");
}

#[tokio::test]
async fn an_empty_file_is_a_new_one() {
    let home = Home::new();
    fs::write(home.path(), "").unwrap();
    let (db, report) = home.open();
    assert_eq!((report.backup, report.adopted_from), (None, None));
    session(&db, "one").await;
}

#[tokio::test]
async fn closing_leaves_one_file_and_no_doubt() {
    let home = Home::new();
    let db = home.db();
    session(&db, "one").await;
    db.close().await;
    db.close().await;
    assert!(!home.folder().join("state.db-wal").exists());
    assert!(matches!(db.load_session(&id("one")).await, Err(StateError::Closed)));
    assert!(matches!(db.create_session(new_session("two")).await, Err(StateError::Closed)));
    let (db, report) = home.open();
    assert!(!report.unclean_end);
    assert_eq!(db.counts().await.unwrap().sessions, 1);
}

#[tokio::test]
async fn what_was_answered_survives_the_death_of_the_process() {
    let home = Home::new();
    let db = home.db();
    let session = session(&db, "one").await;
    for at in 0..120 {
        exchange(&db, &session, &format!("question {at}"), &format!("answer {at}")).await;
        // The files as a killed process would leave them, at a moment chosen by nobody.
        if at % 40 == 39 {
            let dead = Home::new();
            for file in ["state.db", "state.db-wal"] {
                fs::copy(home.folder().join(file), dead.folder().join(file)).unwrap();
            }
            let (db, report) = dead.open();
            assert!(report.unclean_end);
            assert_eq!(db.check(false).await.unwrap(), Vec::<String>::new());
            let texts: Vec<String> =
                db.load_messages(&session).await.unwrap().iter().map(|row| row.text().into_owned()).collect();
            let expected: Vec<String> =
                (0..=at).flat_map(|at| [format!("question {at}"), format!("answer {at}")]).collect();
            assert_eq!(texts, expected);
        }
    }
}

#[tokio::test]
async fn a_database_that_was_dropped_without_a_close_goes_on() {
    let home = Home::new();
    {
        let db = home.db();
        let session = session(&db, "one").await;
        turn(&db, &session, "asked").await;
    }
    let db = home.db();
    let unfinished = db.unfinished_turns().await.unwrap();
    assert_eq!(unfinished.len(), 1);
    db.finish_turn(&unfinished[0].key(), finish(hermes_core::TurnState::Interrupted, "restart"))
        .await
        .unwrap();
    assert_eq!(db.load_messages(&id("one")).await.unwrap().len(), 1);
}

#[tokio::test]
async fn full_synchronisation_can_be_chosen() {
    let home = Home::new();
    let options = OpenOptions { synchronous: Synchronous::Full, ..OpenOptions::default() };
    let (db, _) = home.try_open(&options).unwrap();
    session(&db, "one").await;
}

fn refusal(home: &Home) -> OpenError {
    home.try_open(&impatient()).map(|_| ()).expect_err("the file must be refused")
}

#[test]
fn what_is_no_database_is_left_alone() {
    for content in ["this is a text file\n".repeat(200), "xy".into(), "\0".repeat(4096)] {
        let home = Home::new();
        fs::write(home.path(), &content).unwrap();
        let error = refusal(&home);
        assert!(matches!(error, OpenError::NotADatabase { .. }), "{error}");
        assert!(error.to_string().contains("move the file away"), "{error}");
        assert_eq!(fs::read_to_string(home.path()).unwrap(), content);
    }
}

#[tokio::test]
async fn a_broken_header_is_told() {
    let home = Home::new();
    let db = home.db();
    session(&db, "one").await;
    db.close().await;
    let mut bytes = fs::read(home.path()).unwrap();
    bytes[..16].copy_from_slice(b"SQLite formax 3\0");
    fs::write(home.path(), &bytes).unwrap();
    assert!(matches!(refusal(&home), OpenError::NotADatabase { .. }));
}

#[tokio::test]
async fn damaged_pages_are_told() {
    let home = Home::new();
    let db = home.db();
    session(&db, "one").await;
    db.close().await;
    // Every page but the first: tables and schema point into nothing.
    let mut bytes = fs::read(home.path()).unwrap();
    bytes[4096..].fill(0xAA);
    fs::write(home.path(), &bytes).unwrap();
    let error = refusal(&home);
    assert!(matches!(error, OpenError::Corrupt { .. }), "{error:?}");
    assert!(error.to_string().contains("put a backup in its place"), "{error}");
}

#[test]
fn another_programs_database_is_left_alone() {
    let home = Home::new();
    home.raw()
        .execute_batch("CREATE TABLE sessions (cookie TEXT); INSERT INTO sessions VALUES ('x')")
        .unwrap();
    let error = refusal(&home);
    assert!(matches!(error, OpenError::NotHermes { .. }), "{error}");
    assert_eq!(ask::<String>(&home, "SELECT group_concat(name) FROM sqlite_master"), "sessions");
}

#[tokio::test]
async fn a_lock_of_another_process_is_told() {
    let home = Home::new();
    home.db().close().await;
    let other = home.raw();
    other.execute_batch("BEGIN EXCLUSIVE").unwrap();
    let error = refusal(&home);
    assert!(matches!(error, OpenError::Locked { .. }), "{error:?}");
    assert!(error.to_string().contains("stop what holds it"), "{error}");
    other.execute_batch("ROLLBACK").unwrap();
    home.open();
}

#[tokio::test]
async fn a_write_under_anothers_lock_ends_with_an_explanation() {
    let home = Home::new();
    let (db, _) = home.try_open(&impatient()).unwrap();
    session(&db, "one").await;
    let other = home.raw();
    other.execute_batch("BEGIN IMMEDIATE").unwrap();
    let error = db.create_session(new_session("two")).await.unwrap_err();
    assert!(matches!(error, StateError::Busy { .. }) && error.is_transient(), "{error:?}");
    // Readers are not in anyone's way.
    assert_eq!(db.counts().await.unwrap().sessions, 1);
    other.execute_batch("ROLLBACK").unwrap();
    db.create_session(new_session("two")).await.unwrap();
}

#[test]
fn a_folder_that_cannot_be_written_is_told() {
    let open =
        |path: &str| Db::open(path.as_ref(), Arc::new(SystemClock), &impatient()).map(|_| ()).unwrap_err();
    // Root may write anywhere but here.
    let error = open("/proc/state.db");
    assert!(matches!(error, OpenError::NotCreated { .. }), "{error:?}");
    assert!(error.to_string().contains("HERMES_HOME"), "{error}");
    let home = Home::new();
    let error = open(home.path().join("no/such/state.db").to_str().unwrap());
    assert!(matches!(error, OpenError::NotCreated { .. }), "{error:?}");
    fs::create_dir(home.path()).unwrap();
    let error = refusal(&home);
    assert!(matches!(error, OpenError::NotWritable { .. }), "{error:?}");
}

#[tokio::test]
async fn a_file_of_a_newer_original_is_only_read() {
    let home = Home::new();
    home.raw()
        .execute_batch(
            "PRAGMA journal_mode = WAL;
             CREATE TABLE schema_version (version INTEGER NOT NULL); INSERT INTO schema_version VALUES (31);
             CREATE TABLE sessions (id TEXT PRIMARY KEY, source TEXT NOT NULL, started_at REAL NOT NULL,
                 title TEXT, message_count INTEGER, novelty TEXT);
             CREATE TABLE messages (id INTEGER PRIMARY KEY, session_id TEXT, role TEXT, content TEXT,
                 timestamp REAL, active INTEGER, compacted INTEGER);
             INSERT INTO sessions VALUES ('20260101_000000_abcdef', 'cli', 5, 'Old talk', 1, 'x');
             INSERT INTO messages VALUES (1, '20260101_000000_abcdef', 'user', 'what is new', 6, 1, 0);",
        )
        .unwrap();
    let before = fs::read(home.path()).unwrap();
    let (db, report) = home.open();
    let reason = report.read_only.unwrap();
    assert!(reason.contains("31") && reason.contains("Update Hermes"), "{reason}");
    assert_eq!((report.backup, report.adopted_from), (None, None));
    assert_eq!(db.read_only(), Some(reason.as_str()));

    let session = db.resolve_session("Old talk").await.unwrap();
    assert_eq!(session.as_str(), "20260101_000000_abcdef");
    assert_eq!(db.load_messages(&session).await.unwrap()[0].text(), "what is new");
    assert_eq!(db.list_sessions(ListFilter::default()).await.unwrap()[0].preview, "what is new");
    assert_eq!(db.load_session(&session).await.unwrap().unwrap().title.as_deref(), Some("Old talk"));
    assert_eq!(db.latest_session(None).await.unwrap(), Some(session.clone()));
    assert_eq!(db.search("new", 5).await.unwrap().len(), 1);
    assert_eq!(db.unfinished_turns().await.unwrap(), []);
    assert_eq!(db.list_inputs(&session).await.unwrap(), []);
    assert_eq!(db.sessions_with_inputs().await.unwrap(), []);

    let refused = db.create_session(new_session("new")).await.unwrap_err();
    assert!(matches!(&refused, StateError::ReadOnly { reason: why } if *why == reason));
    assert!(refused.to_string().contains("reading only"));
    assert!(db.begin_turn(begin(&session, "hi")).await.is_err());
    db.close().await;
    assert_eq!(fs::read(home.path()).unwrap(), before);
}

#[tokio::test]
async fn a_file_of_a_newer_hermes_is_only_read_with_its_index() {
    let home = Home::new();
    let db = home.db();
    let session = session(&db, "one").await;
    exchange(&db, &session, "where is the needle", "in the haystack").await;
    db.close().await;
    home.raw().execute("UPDATE schema_version SET version = ?1", [LATEST + 1]).unwrap();
    let (db, report) = home.open();
    assert!(report.read_only.unwrap().contains("a newer Hermes"));
    assert_eq!(db.search("needle", 5).await.unwrap()[0].snippet, "where is the >>>needle<<<");
    assert!(matches!(db.end_session(&session, "x").await, Err(StateError::ReadOnly { .. })));
}

#[tokio::test]
async fn a_damaged_index_is_built_anew_at_opening() {
    let home = Home::new();
    let db = home.db();
    let session = session(&db, "one").await;
    exchange(&db, &session, "where is the needle", "in the haystack").await;
    db.close().await;
    // The index's root record.
    home.raw().execute("UPDATE messages_fts_data SET block = x'FFFFFFFF' WHERE id = 10", []).unwrap();
    let (db, report) = home.open();
    let copy = report.backup.unwrap();
    assert!(copy.file_name().unwrap().to_str().unwrap().starts_with("state.db.malformed-backup-"));
    assert_eq!(report.warnings.len(), 1);
    assert_eq!(db.search("needle", 5).await.unwrap().len(), 1);
    exchange(&db, &session, "another", "row").await;
    assert_eq!(db.check(false).await.unwrap(), Vec::<String>::new());
}

#[tokio::test]
async fn a_damaged_index_does_not_stop_a_write() {
    let home = Home::new();
    let db = home.db();
    let session = session(&db, "one").await;
    exchange(&db, &session, "where is the needle", "in the haystack").await;
    home.raw().execute("UPDATE messages_fts_data SET block = x'FFFFFFFF' WHERE id = 10", []).unwrap();
    exchange(&db, &session, "another", "row").await;
    assert_eq!(db.load_messages(&session).await.unwrap().len(), 4);
    assert_eq!(db.search("needle OR another", 5).await.unwrap().len(), 2);
}
