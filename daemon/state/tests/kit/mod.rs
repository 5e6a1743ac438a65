//! What the tests of this crate share: a home, a clock that is set by hand, and short builders.

#![allow(
    dead_code,
    clippy::unwrap_used,
    clippy::allow_attributes,
    reason = "test code; what of it is dead differs between the binaries that share it"
)]

use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex};

use hermes_core::{
    Clock, Instant, Json, Message, MessageId, SessionId, ToolCall, ToolCallId, TurnId, TurnState,
};
use hermes_state::{
    BeginTurn, Db, FinishTurn, NewSession, OpenOptions, OpenReport, Patience, TurnKey, TurnWrite,
};

/// A clock that a test moves.
#[derive(Debug)]
pub(crate) struct HandClock(Mutex<f64>);

impl HandClock {
    pub(crate) fn set(&self, seconds: f64) {
        *self.0.lock().unwrap() = seconds;
    }
}

impl Clock for HandClock {
    fn now(&self) -> Instant {
        Instant(*self.0.lock().unwrap())
    }
}

/// A folder with a database.
pub(crate) struct Home {
    folder: tempfile::TempDir,
    pub(crate) clock: Arc<HandClock>,
}

impl Home {
    pub(crate) fn new() -> Self {
        Self { folder: tempfile::tempdir().unwrap(), clock: Arc::new(HandClock(Mutex::new(1_000.0))) }
    }

    pub(crate) fn path(&self) -> PathBuf {
        self.folder.path().join("state.db")
    }

    pub(crate) fn folder(&self) -> &Path {
        self.folder.path()
    }

    pub(crate) fn open(&self) -> (Db, OpenReport) {
        self.try_open(&OpenOptions::default()).unwrap()
    }

    pub(crate) fn db(&self) -> Db {
        self.open().0
    }

    pub(crate) fn try_open(
        &self,
        options: &OpenOptions,
    ) -> Result<(Db, OpenReport), hermes_state::OpenError> {
        Db::open(&self.path(), self.clock.clone(), options)
    }

    /// A connection beside ours, as another program would have.
    pub(crate) fn raw(&self) -> rusqlite::Connection {
        raw(&self.path())
    }
}

pub(crate) fn raw(path: &Path) -> rusqlite::Connection {
    rusqlite::Connection::open_with_flags(path, rusqlite::OpenFlags::default()).unwrap()
}

/// Options that do not wait for locks.
pub(crate) fn impatient() -> OpenOptions {
    let none = std::time::Duration::ZERO;
    OpenOptions {
        patience: Patience { open: none, transcript: none, routine: none },
        ..OpenOptions::default()
    }
}

pub(crate) fn id(text: &str) -> SessionId {
    SessionId::parse(text).unwrap()
}

pub(crate) fn new_session(name: &str) -> NewSession {
    NewSession {
        id: id(name),
        source: "cli".into(),
        platform: Some("cli".into()),
        user_id: None,
        model: "model-a".into(),
        provider: "provider-a".into(),
        base_url: "http://a/v1".into(),
        system_prompt: "You are Hermes.\n".into(),
        tool_names: vec!["read_file".into(), "terminal".into()],
        tool_schemas: "[{\"b\": 1,  \"a\":2}]".into(),
        parent: None,
        cwd: Some("/work/project".into()),
        git_branch: Some("main".into()),
        git_repo_root: None,
        title: None,
        started_at: Instant(900.0),
        profile_name: "default".into(),
        model_config: Some(Json::parse("{\"k\": 1.0}").unwrap()),
    }
}

pub(crate) async fn session(db: &Db, name: &str) -> SessionId {
    db.create_session(new_session(name)).await.unwrap();
    id(name)
}

pub(crate) fn begin(session: &SessionId, text: &str) -> BeginTurn {
    BeginTurn {
        turn_id: TurnId::mint(),
        session_id: session.clone(),
        principal: "owner".into(),
        client_message_id: None,
        user: Message::user(text, Instant(1_000.0)),
        started_at: Instant(1_000.0),
        queued_input: None,
    }
}

/// Begins a turn and gives its key and the user's row.
pub(crate) async fn turn(db: &Db, session: &SessionId, text: &str) -> (TurnKey, MessageId) {
    let turn = begin(session, text);
    let turn_id = turn.turn_id.clone();
    let begun = db.begin_turn(turn).await.unwrap();
    (TurnKey { session_id: session.clone(), turn_id, generation: begun.generation }, begun.message_id)
}

pub(crate) fn rows(messages: impl IntoIterator<Item = Message>) -> TurnWrite {
    TurnWrite { rows: messages.into_iter().collect(), usage: None }
}

pub(crate) fn finish(state: TurnState, reason: &str) -> FinishTurn {
    FinishTurn { state, exit_reason: reason.into(), rows: Vec::new(), ended_at: Instant(1_001.0) }
}

/// A whole turn: question and answer.
pub(crate) async fn exchange(db: &Db, session: &SessionId, question: &str, answer: &str) {
    let (key, _) = turn(db, session, question).await;
    db.write_turn(&key, rows([assistant(answer)])).await.unwrap();
    db.finish_turn(&key, finish(TurnState::Completed, "text_response(finish_reason=stop)")).await.unwrap();
}

pub(crate) fn assistant(text: &str) -> Message {
    Message::assistant(text, Instant(1_000.5))
}

pub(crate) fn call(call_id: &str, name: &str, arguments: &str) -> ToolCall {
    ToolCall {
        id: ToolCallId::new(call_id),
        name: name.into(),
        arguments: arguments.into(),
        provider_data: None,
    }
}

/// One value of the database, asked for beside ours.
pub(crate) fn ask<T: rusqlite::types::FromSql>(home: &Home, sql: &str) -> T {
    home.raw().query_row(sql, [], |row| row.get(0)).unwrap()
}
