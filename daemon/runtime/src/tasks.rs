//! Tasks: named, tracked and cancellable. This is the one place that hands work to tokio.

use std::future::Future;
use std::sync::Arc;
use std::time::Duration;

use tokio::task::JoinHandle;
use tokio_util::sync::CancellationToken;
use tokio_util::task::TaskTracker;
use tokio_util::task::task_tracker::TaskTrackerToken;
use tracing::Instrument as _;

/// A group of tasks that is stopped and waited for together. Cheap to clone; clones share the group.
///
/// Groups form a tree: stopping a group stops its children, waiting for a group waits for their tasks too.
#[derive(Debug, Clone)]
pub struct Tasks(Arc<Group>);

#[derive(Debug)]
struct Group {
    tracker: TaskTracker,
    token: CancellationToken,
    parent: Option<Tasks>,
}

impl Default for Tasks {
    fn default() -> Self {
        Self::new()
    }
}

impl Tasks {
    /// A new root group.
    pub fn new() -> Self {
        Self::with(CancellationToken::new(), None)
    }

    fn with(token: CancellationToken, parent: Option<Self>) -> Self {
        Self(Arc::new(Group { tracker: TaskTracker::new(), token, parent }))
    }

    /// A group inside this one: it can be stopped and waited for alone, and ends with its parent.
    #[must_use]
    pub fn child(&self) -> Self {
        Self::with(self.0.token.child_token(), Some(self.clone()))
    }

    /// Starts a task. It runs until it ends by itself: a task that loops must watch
    /// [`stopping`](Self::stopping). A panic inside is logged with the task's name.
    ///
    /// Dropping the handle detaches the task; the group still tracks it.
    #[expect(clippy::disallowed_methods, reason = "this is the wrapper that all other code uses")]
    pub fn spawn<F>(&self, name: &'static str, future: F) -> JoinHandle<F::Output>
    where
        F: Future + Send + 'static,
        F::Output: Send + 'static,
    {
        let registration = self.registration(name);
        let span = tracing::info_span!("task", name);
        tokio::task::spawn(
            async move {
                let _registration = registration;
                future.await
            }
            .instrument(span),
        )
    }

    /// Runs blocking work on a thread of its own. It cannot be aborted; long work must check
    /// [`stopping`](Self::stopping) by itself.
    pub fn spawn_blocking<F, T>(&self, name: &'static str, work: F) -> JoinHandle<T>
    where
        F: FnOnce() -> T + Send + 'static,
        T: Send + 'static,
    {
        let registration = self.registration(name);
        let span = tracing::info_span!("task", name);
        tokio::task::spawn_blocking(move || {
            let _registration = registration;
            span.in_scope(work)
        })
    }

    /// Is cancelled when the group, or one above it, is stopped. Hand out child tokens of it for parts
    /// that can be cancelled alone.
    pub fn stopping(&self) -> CancellationToken {
        self.0.token.clone()
    }

    /// Asks all tasks of the group and of its children to end.
    pub fn stop(&self) {
        self.0.token.cancel();
    }

    /// How many tasks run, in this group and below it.
    pub fn running(&self) -> usize {
        self.0.tracker.len()
    }

    /// Waits until no task of the group or of its children runs, at most for `limit`. Says whether all
    /// had ended. Cancel-safe; it stops nothing by itself.
    pub async fn wait(&self, limit: Duration) -> bool {
        // A tracker reports "empty" only while it is closed; closing does not refuse later tasks.
        self.0.tracker.close();
        tokio::time::timeout(limit, self.0.tracker.wait()).await.is_ok()
    }

    fn registration(&self, name: &'static str) -> Registration {
        let mut tokens = vec![self.0.tracker.token()];
        let mut group = &self.0.parent;
        while let Some(parent) = group {
            tokens.push(parent.0.tracker.token());
            group = &parent.0.parent;
        }
        Registration { name, _tokens: tokens }
    }
}

/// Keeps a task counted in its group and in all groups above, and reports its panic.
struct Registration {
    name: &'static str,
    _tokens: Vec<TaskTrackerToken>,
}

impl Drop for Registration {
    fn drop(&mut self) {
        if std::thread::panicking() {
            tracing::error!(task = self.name, "task panicked");
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[tokio::test(start_paused = true)]
    async fn stopping_the_parent_stops_the_child_and_waiting_sees_both() {
        let root = Tasks::new();
        let child = root.child();
        let stopping = child.stopping();
        let handle = child.spawn("looper", async move { stopping.cancelled().await });
        assert_eq!((root.running(), child.running()), (1, 1));
        assert!(!root.wait(Duration::from_secs(1)).await);
        root.stop();
        assert!(root.wait(Duration::from_secs(1)).await);
        handle.await.unwrap();
        assert_eq!((root.running(), child.running()), (0, 0));
    }

    #[tokio::test]
    async fn stopping_a_child_leaves_the_parent_running() {
        let root = Tasks::new();
        let child = root.child();
        child.stop();
        assert!(child.stopping().is_cancelled());
        assert!(!root.stopping().is_cancelled());
    }

    #[tokio::test]
    async fn a_panicking_task_is_no_longer_counted() {
        let tasks = Tasks::new();
        let handle = tasks.spawn("broken", async { panic!("on purpose") });
        assert!(handle.await.is_err());
        assert!(tasks.wait(Duration::from_secs(1)).await);
    }

    #[tokio::test]
    async fn blocking_work_gives_its_result() {
        let tasks = Tasks::new();
        assert_eq!(tasks.spawn_blocking("sum", || 1 + 1).await.unwrap(), 2);
    }
}
