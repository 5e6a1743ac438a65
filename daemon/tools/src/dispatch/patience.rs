//! Time that stands still while a person is asked: nobody's slow answer uses up a tool's deadline (spec 10 §17).

use std::future::Future;
use std::sync::Arc;
use std::time::Duration;

use tokio::sync::watch;
use tokio::time::Instant;

/// Counts how many questions to a person are open. Cheap to clone; clones count together.
#[derive(Debug, Clone)]
pub struct Patience {
    asking: Arc<watch::Sender<u32>>,
    /// Waits along: a call's question also holds up the deadline of its batch.
    outer: Option<Arc<watch::Sender<u32>>>,
}

impl Default for Patience {
    fn default() -> Self {
        Self { asking: Arc::new(watch::Sender::new(0)), outer: None }
    }
}

impl Patience {
    /// The patience of one call within this batch.
    pub(crate) fn of_a_call(&self) -> Self {
        Self { asking: Arc::default(), outer: Some(Arc::clone(&self.asking)) }
    }

    /// Waits for a person's answer, with the time standing still.
    pub(crate) async fn while_asking<T>(&self, answer: impl Future<Output = T>) -> T {
        let _open = (Open::one(&self.asking), self.outer.as_ref().map(Open::one));
        answer.await
    }

    /// Ends when `limit` has passed in which nobody was asked anything; without one, never.
    pub async fn elapsed(&self, limit: Option<Duration>) -> Duration {
        let Some(limit) = limit else { return std::future::pending().await };
        let mut asking = self.asking.subscribe();
        let mut left = limit;
        loop {
            // The sender lives in `self`, so the channel is open.
            let _ = asking.wait_for(|open| *open == 0).await;
            let began = Instant::now();
            tokio::select! {
                () = tokio::time::sleep(left) => return limit,
                _ = asking.wait_for(|open| *open > 0) => left = left.saturating_sub(began.elapsed()),
            }
        }
    }
}

/// One open question.
struct Open(Arc<watch::Sender<u32>>);

impl Open {
    fn one(count: &Arc<watch::Sender<u32>>) -> Self {
        count.send_modify(|open| *open += 1);
        Self(Arc::clone(count))
    }
}

impl Drop for Open {
    fn drop(&mut self) {
        self.0.send_modify(|open| *open -= 1);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[tokio::test(start_paused = true)]
    async fn a_question_stops_the_clock_of_its_call_and_of_its_batch() {
        let batch = Patience::default();
        let call = batch.of_a_call();
        let limit = Some(Duration::from_secs(10));
        let began = Instant::now();
        let asking = async {
            tokio::time::sleep(Duration::from_secs(4)).await;
            call.while_asking(tokio::time::sleep(Duration::from_mins(10))).await;
        };
        tokio::join!(asking, call.elapsed(limit), batch.elapsed(limit), async {
            // Another call of the batch asks nobody.
            batch.of_a_call().elapsed(limit).await;
            assert_eq!(began.elapsed(), Duration::from_secs(10));
        });
        assert_eq!(began.elapsed(), Duration::from_secs(610));
    }
}
