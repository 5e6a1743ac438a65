//! Notices of background processes: each becomes one turn of its session, and wakes nobody who is busy.

use std::sync::{Mutex, PoisonError, Weak};

use async_trait::async_trait;
use hermes_core::{SessionId, TurnId, TurnOptions};
use hermes_state::StateError;
use hermes_tools::{ProcessNotice, Wake};
use tracing::warn;

use crate::api::SubmitInput;
use crate::session::{Command, Waiting};
use crate::shared::Shared;

/// Notices that are kept while the engine is not there yet.
const MAX_EARLY: usize = 256;

/// The port through which processes reach the engine: built before it, and bound when it is there.
///
/// A notice of a session that lives waits behind what runs there, and begins a turn when nothing
/// does. One of a session that nobody has open is kept until somebody opens it.
#[derive(Debug)]
pub struct WakeRelay {
    target: Mutex<Target>,
}

#[derive(Debug)]
enum Target {
    /// The engine is not built yet.
    Early(Vec<ProcessNotice>),
    Engine(Weak<Shared>),
}

impl Default for WakeRelay {
    fn default() -> Self {
        Self { target: Mutex::new(Target::Early(Vec::new())) }
    }
}

impl WakeRelay {
    /// Sends notices to the engine from now on, first those that came before it.
    pub(crate) fn bind(&self, shared: &std::sync::Arc<Shared>) {
        let weak = std::sync::Arc::downgrade(shared);
        let mut target = self.target.lock().unwrap_or_else(PoisonError::into_inner);
        let before = std::mem::replace(&mut *target, Target::Engine(weak));
        drop(target);
        if let Target::Early(notices) = before
            && !notices.is_empty()
        {
            let engine = std::sync::Arc::clone(shared);
            shared.deps.tasks.spawn("early-notices", async move {
                for notice in notices {
                    deliver(&engine, notice).await;
                }
            });
        }
    }
}

#[async_trait]
impl Wake for WakeRelay {
    async fn notice(&self, notice: ProcessNotice) -> bool {
        let engine = {
            let mut target = self.target.lock().unwrap_or_else(PoisonError::into_inner);
            match &mut *target {
                Target::Engine(engine) => engine.upgrade(),
                Target::Early(early) => {
                    if early.len() < MAX_EARLY {
                        early.push(notice);
                    }
                    // Not durable yet; the same notice may come again.
                    return false;
                }
            }
        };
        match engine {
            Some(engine) => deliver(&engine, notice).await,
            None => false,
        }
    }
}

/// Makes the notice durable, once, and lets a session that lives know. `false` when it could not be kept.
async fn deliver(shared: &Shared, notice: ProcessNotice) -> bool {
    // A session may be unloaded between finding it and asking it.
    for _ in 0..3 {
        let live = shared.live().get(&notice.session_id).cloned();
        if let Some(handle) = live {
            let waiting = Box::new(waiting(&notice));
            match handle.ask(|reply| Command::Notice { waiting, reply }).await {
                Some(kept) => return kept,
                None => continue,
            }
        }
        let _nobody_loads_it_now = shared.loading.lock().await;
        if shared.live().contains_key(&notice.session_id) {
            continue;
        }
        return match keep(shared, &notice.session_id, &waiting(&notice)).await {
            Ok(_) => true,
            Err(error) => {
                warn!(session = %notice.session_id, notice = notice.id, %error, "a process's notice could not be kept");
                false
            }
        };
    }
    false
}

/// Writes the notice into the session's queue; `false` when it was there, or had its turn.
pub(crate) async fn keep(
    shared: &Shared,
    session: &SessionId,
    waiting: &Waiting,
) -> Result<bool, StateError> {
    let db = &shared.deps.db;
    if let Some(id) = &waiting.input.client_message_id
        && db.turn_of_client_message(session, id).await?.is_some()
    {
        return Ok(false);
    }
    db.push_input(waiting.to_row(shared.deps.clock.now())).await
}

fn waiting(notice: &ProcessNotice) -> Waiting {
    Waiting {
        turn_id: TurnId::mint(),
        is_notice: true,
        input: SubmitInput {
            session_id: notice.session_id.clone(),
            text: notice.text.clone(),
            principal: notice.principal.clone(),
            client_message_id: Some(notice.id.clone()),
            options: TurnOptions::default(),
        },
    }
}
