//! The connections that only read: a few, opened when they are first needed.

use std::path::PathBuf;
use std::sync::{Arc, Mutex, PoisonError};

use rusqlite::{Connection, TransactionBehavior};
use tokio::sync::Semaphore;

use crate::connect;
use crate::error::StateError;

/// Reads at the same time; more wait.
const READERS: u32 = 4;
/// Connections that are kept open between reads.
const KEPT: usize = 2;

/// A cheap clone of the pool.
#[derive(Debug, Clone)]
pub(crate) struct Readers {
    shared: Arc<Shared>,
    permits: Arc<Semaphore>,
    inline: bool,
}

#[derive(Debug)]
struct Shared {
    path: PathBuf,
    shim: Option<String>,
    /// Locked only to take one out or put one back.
    idle: Mutex<Vec<Connection>>,
}

impl Readers {
    /// A pool over `path`. `shim` is run on every new connection; `inline` reads in the calling task.
    pub(crate) fn new(path: PathBuf, shim: Option<String>, inline: bool) -> Self {
        let shared = Arc::new(Shared { path, shim, idle: Mutex::default() });
        Self { shared, permits: Arc::new(Semaphore::new(READERS as usize)), inline }
    }

    /// Runs `work` on a connection, in one read transaction, so that all it sees is of one moment.
    pub(crate) async fn read<T, E, F>(&self, work: F) -> Result<T, E>
    where
        T: Send + 'static,
        E: From<StateError> + Send + 'static,
        F: FnOnce(&Connection) -> Result<T, E> + Send + 'static,
    {
        let permit = self.permits.clone().acquire_owned().await.map_err(|_| StateError::Closed)?;
        let shared = Arc::clone(&self.shared);
        let run = move || {
            let outcome = shared.with_connection(work);
            drop(permit);
            outcome
        };
        if self.inline {
            return run();
        }
        tokio::task::spawn_blocking(run).await.unwrap_or_else(|_| Err(E::from(StateError::Closed)))
    }

    /// Waits for reads that run, then closes all connections. Later reads fail.
    pub(crate) async fn close(&self) {
        let all = self.permits.acquire_many(READERS).await;
        self.permits.close();
        self.shared.lock().clear();
        drop(all);
    }
}

impl Shared {
    fn with_connection<T, E: From<StateError>>(
        &self,
        work: impl FnOnce(&Connection) -> Result<T, E>,
    ) -> Result<T, E> {
        let idle = self.lock().pop();
        let mut conn = match idle {
            Some(conn) => conn,
            None => connect::reader(&self.path, self.shim.as_deref()).map_err(StateError::from)?,
        };
        let outcome = {
            let transaction =
                conn.transaction_with_behavior(TransactionBehavior::Deferred).map_err(StateError::from)?;
            // Nothing was written, so the rollback on drop is the end of the snapshot and no more.
            work(&transaction)
        };
        let mut idle = self.lock();
        if idle.len() < KEPT {
            idle.push(conn);
        }
        outcome
    }

    fn lock(&self) -> std::sync::MutexGuard<'_, Vec<Connection>> {
        self.idle.lock().unwrap_or_else(PoisonError::into_inner)
    }
}
