//! Requests share transactions and stay apart all the same.

use std::path::Path;

use proptest::prelude::*;
use tokio::sync::oneshot::Receiver;

use super::*;
use crate::open::in_transaction;

type Answer = Receiver<Result<usize, StateError>>;

struct Bench {
    folder: tempfile::TempDir,
    core: WriterCore,
}

impl Bench {
    fn new() -> Self {
        Self::with_patience(Patience::default())
    }

    fn with_patience(patience: Patience) -> Self {
        let folder = tempfile::tempdir().expect("a folder for the test");
        let conn = other(folder.path());
        crate::connect::prepare_writer(&conn, Synchronous::Normal).expect("pragmas");
        in_transaction(&conn, |conn| crate::schema::migrate(conn, 0)).expect("migrations");
        conn.execute_batch(
            "CREATE TABLE t (x TEXT UNIQUE);
             CREATE TABLE late (x INTEGER REFERENCES messages (id) DEFERRABLE INITIALLY DEFERRED);",
        )
        .expect("tables");
        let core = WriterCore::new(conn, patience, None).expect("no thread is started");
        Self { folder, core }
    }

    /// Runs the jobs as one group; what is left when a group breaks off makes the next, as in the channel.
    fn run(&mut self, jobs: Vec<Box<dyn Job>>) {
        let mut jobs = jobs.into_iter();
        while let Some(first) = jobs.next() {
            self.core.process(first, &mut || jobs.next());
        }
        assert!(self.core.conn.is_autocommit(), "no transaction stays open");
    }

    fn rows(&self) -> Vec<String> {
        let mut statement = self.core.conn.prepare("SELECT x FROM t ORDER BY rowid").expect("a query");
        let rows = statement.query_map([], |row| row.get(0)).expect("rows");
        rows.collect::<rusqlite::Result<_>>().expect("text")
    }
}

/// A connection beside the writer's.
fn other(folder: &Path) -> Connection {
    let path = folder.join("state.db");
    if !path.exists() {
        std::fs::write(&path, "").expect("an empty file");
    }
    crate::connect::file(&path).expect("a database")
}

fn job(
    work: impl FnMut(&Connection) -> Result<usize, Fault<StateError>> + Send + 'static,
) -> (Box<dyn Job>, Answer) {
    let (reply, answer) = oneshot::channel();
    let request = Request { kind: Kind::Transcript, queued: Instant::now(), work, outcome: None, reply };
    (Box::new(request), answer)
}

fn insert(text: impl Into<String>) -> (Box<dyn Job>, Answer) {
    let text = text.into();
    job(move |conn| Ok(conn.execute("INSERT INTO t VALUES (?1)", [&text])?))
}

fn refused() -> Fault<StateError> {
    Fault::Refused(StateError::Closed)
}

#[test]
fn a_group_is_one_transaction_and_each_request_is_whole() {
    let mut bench = Bench::new();
    let beside = other(bench.folder.path());
    let (first, first_answer) = insert("first");
    let (says_no, no_answer) = job(|conn| {
        conn.execute("INSERT INTO t VALUES ('refused')", [])?;
        Err(refused())
    });
    let (fails, failed_answer) = job(|conn| {
        conn.execute("INSERT INTO t VALUES ('failed')", [])?;
        Ok(conn.execute("INSERT INTO t VALUES ('first')", [])?)
    });
    let (last, last_answer) = job(move |conn| {
        // Nobody else sees anything of the group yet.
        let unseen = !beside.prepare("SELECT 1 FROM t")?.exists([])?;
        conn.execute("INSERT INTO t VALUES ('last')", [])?;
        Ok(usize::from(unseen))
    });
    bench.run(vec![first, says_no, fails, last]);
    assert_eq!(bench.rows(), ["first", "last"]);
    assert_eq!(first_answer.blocking_recv().unwrap().unwrap(), 1);
    assert!(matches!(no_answer.blocking_recv().unwrap(), Err(StateError::Closed)));
    assert!(matches!(failed_answer.blocking_recv().unwrap(), Err(StateError::Sqlite(_))));
    assert_eq!(last_answer.blocking_recv().unwrap().unwrap(), 1);
}

#[test]
fn a_full_disk_hits_only_the_request_that_needs_the_room() {
    let mut bench = Bench::new();
    let pages: i64 = bench.core.conn.query_row("PRAGMA page_count", [], |row| row.get(0)).unwrap();
    let _: i64 = bench
        .core
        .conn
        .query_row(&format!("PRAGMA max_page_count = {}", pages + 4), [], |row| row.get(0))
        .unwrap();
    let (small, small_answer) = insert("small");
    let (large, large_answer) = insert("x".repeat(200_000));
    let (next, next_answer) = insert("next");
    bench.run(vec![small, large, next]);
    assert_eq!(bench.rows(), ["small", "next"]);
    assert!(small_answer.blocking_recv().unwrap().is_ok());
    let error = large_answer.blocking_recv().unwrap().unwrap_err();
    assert!(matches!(error, StateError::Full), "{error:?}");
    assert!(error.to_string().contains("free some space"), "{error}");
    assert!(next_answer.blocking_recv().unwrap().is_ok());
}

#[test]
fn a_commit_that_fails_is_repeated_request_by_request() {
    let mut bench = Bench::new();
    let (good, good_answer) = insert("good");
    let (bad, bad_answer) = job(|conn| {
        conn.execute("INSERT INTO t VALUES ('bad')", [])?;
        Ok(conn.execute("INSERT INTO late VALUES (99)", [])?)
    });
    let (also, also_answer) = insert("also good");
    bench.run(vec![good, bad, also]);
    assert_eq!(bench.rows(), ["good", "also good"]);
    assert!(good_answer.blocking_recv().unwrap().is_ok());
    assert!(matches!(bad_answer.blocking_recv().unwrap(), Err(StateError::Sqlite(_))));
    assert!(also_answer.blocking_recv().unwrap().is_ok());
}

#[test]
fn a_request_that_undoes_the_whole_transaction_takes_nobody_along() {
    let mut bench = Bench::new();
    let (good, good_answer) = insert("good");
    let (bad, bad_answer) = job(|conn| Ok(conn.execute("INSERT OR ROLLBACK INTO t VALUES ('good')", [])?));
    bench.run(vec![good, bad]);
    assert_eq!(bench.rows(), ["good"]);
    assert!(good_answer.blocking_recv().unwrap().is_ok());
    assert!(bad_answer.blocking_recv().unwrap().is_err());
}

#[test]
fn requests_that_ran_out_of_patience_are_told_how_long() {
    let none = std::time::Duration::ZERO;
    let mut bench = Bench::with_patience(Patience { transcript: none, ..Patience::default() });
    let beside = other(bench.folder.path());
    beside.execute_batch("BEGIN IMMEDIATE").unwrap();
    let (blocked, answer) = insert("x");
    bench.run(vec![blocked]);
    let error = answer.blocking_recv().unwrap().unwrap_err();
    assert!(matches!(error, StateError::Busy { waited } if !waited.is_zero()), "{error:?}");
    beside.execute_batch("ROLLBACK").unwrap();
    let (free, answer) = insert("x");
    bench.run(vec![free]);
    assert!(answer.blocking_recv().unwrap().is_ok());
}

#[derive(Debug, Clone, Copy)]
enum Shape {
    Good,
    Refused,
    Failing,
    FailingAtCommit,
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(32))]

    #[test]
    fn a_group_does_what_its_requests_would_do_alone(
        shapes in proptest::collection::vec(
            prop_oneof![
                4 => Just(Shape::Good), 1 => Just(Shape::Refused), 1 => Just(Shape::Failing),
                1 => Just(Shape::FailingAtCommit),
            ],
            1..12,
        )
    ) {
        let mut bench = Bench::new();
        let (mut jobs, mut answers, mut expected) = (Vec::new(), Vec::new(), Vec::new());
        for (at, shape) in shapes.iter().copied().enumerate() {
            let text = format!("row {at}");
            if matches!(shape, Shape::Good) {
                expected.push(text.clone());
            }
            let (job, answer) = job(move |conn| {
                conn.execute("INSERT INTO t VALUES (?1)", [&text])?;
                match shape {
                    Shape::Good => Ok(at),
                    Shape::Refused => Err(refused()),
                    Shape::Failing => Ok(conn.execute("INSERT INTO t VALUES (?1)", [&text])?),
                    Shape::FailingAtCommit => Ok(conn.execute("INSERT INTO late VALUES (-1)", [])?),
                }
            });
            jobs.push(job);
            answers.push(answer);
        }
        bench.run(jobs);
        prop_assert_eq!(bench.rows(), expected);
        for (shape, answer) in shapes.iter().zip(answers) {
            prop_assert_eq!(answer.blocking_recv().unwrap().is_ok(), matches!(shape, Shape::Good));
        }
    }
}
