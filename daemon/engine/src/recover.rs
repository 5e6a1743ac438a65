//! After a daemon that ended in the middle of turns: every open call gets a result that says what
//! is known of its effect, the transcript gets its closing row, the turn its end (spec 10 §20).
//! Nothing is executed again.

use std::sync::Arc;

use hermes_context::{Closing, closing_rows};
use hermes_core::{EventPayload, ExitReason, InterruptCause, NoticeLevel, SessionId, TurnId, TurnState};
use hermes_state::{Db, FinishTurn, StateError, TurnKey, TurnRecord};
use tracing::{info, warn};

use crate::api::{EngineError, RecoveryReport};
use crate::shared::EngineDeps;
use crate::stream::SessionStream;

/// Closes every turn that has no end.
pub(crate) async fn close_all(deps: &EngineDeps) -> Result<RecoveryReport, EngineError> {
    let mut report = RecoveryReport::default();
    for record in deps.db.unfinished_turns().await? {
        match close_turn(deps, &record, InterruptCause::Restart).await {
            Ok(()) => {
                info!(session = %record.session_id, turn = %record.turn_id, "closed a turn that was cut off");
                report.closed.push((record.session_id, record.turn_id));
            }
            // One damaged session must not keep the others from being served.
            Err(error) => warn!(session = %record.session_id, turn = %record.turn_id, %error,
                "a turn that was cut off could not be closed"),
        }
    }
    Ok(report)
}

/// Closes one turn.
pub(crate) async fn close_turn(
    deps: &EngineDeps,
    record: &TurnRecord,
    cause: InterruptCause,
) -> Result<(), StateError> {
    if record.state != TurnState::Running {
        return Ok(());
    }
    let rows = deps.db.load_messages(&record.session_id).await?.into_iter().map(Arc::new).collect::<Vec<_>>();
    let now = deps.clock.now();
    let finish = FinishTurn {
        state: TurnState::Interrupted,
        exit_reason: ExitReason::Interrupted { cause }.to_string(),
        rows: closing_rows(&rows, &Closing::Interrupted(cause), now),
        ended_at: now,
    };
    let key = TurnKey {
        session_id: record.session_id.clone(),
        turn_id: record.turn_id.clone(),
        generation: record.generation,
    };
    deps.db.finish_turn(&key, finish).await.map(drop)
}

/// Tells watchers that a turn died by a fault of ours.
pub(crate) fn announce_fault(stream: &SessionStream, turn_id: &TurnId) {
    let text = "The turn stopped because of an internal fault; what was done so far is kept. Look at \
                logs/errors.log, and send the message again."
        .to_owned();
    stream.emit(
        Some(turn_id),
        EventPayload::NotificationShow {
            text: text.clone(),
            level: NoticeLevel::Error,
            key: None,
            ttl_ms: None,
        },
    );
    stream.emit(Some(turn_id), EventPayload::Error { message: text, code: None });
}

/// What a user who comes back to a session should know of how its last turn ended.
pub(crate) async fn notice(db: &Db, session_id: &SessionId) -> Result<Option<String>, EngineError> {
    let Some(last) = db.last_turn(session_id).await? else { return Ok(None) };
    let cut_off = ExitReason::Interrupted { cause: InterruptCause::Restart }.to_string();
    Ok((last.exit_reason.as_deref() == Some(cut_off.as_str())).then(|| {
        "The last turn was cut off when the daemon ended. What it had done is in the history; calls without a \
         result are marked there."
            .to_owned()
    }))
}
