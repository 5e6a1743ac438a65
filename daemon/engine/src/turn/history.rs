//! The live transcript of a session, as the model sees it.

use std::sync::Arc;

use hermes_core::Message;

/// Rows that are durable, and behind them ephemeral ones that only the next calls of this turn
/// see (fragments, nudges, prefill). Ephemeral rows leave when a durable one arrives.
#[derive(Debug, Default)]
pub(crate) struct History {
    messages: Vec<Arc<Message>>,
    durable: usize,
}

impl History {
    /// Takes over repaired rows.
    pub(crate) fn new(messages: Vec<Arc<Message>>) -> Self {
        Self { durable: messages.len(), messages }
    }

    /// Appends a row that is in the database.
    pub(crate) fn push_durable(&mut self, message: Message) {
        self.drop_ephemeral();
        self.messages.push(Arc::new(message));
        self.durable = self.messages.len();
    }

    /// Appends a row for the next calls of this turn only.
    pub(crate) fn push_ephemeral(&mut self, message: Message) {
        self.messages.push(Arc::new(message));
    }

    pub(crate) fn drop_ephemeral(&mut self) {
        self.messages.truncate(self.durable);
    }

    /// All rows that the next call carries.
    pub(crate) fn wire(&self) -> &[Arc<Message>] {
        &self.messages
    }

    /// The durable rows.
    pub(crate) fn durable(&self) -> &[Arc<Message>] {
        self.messages.get(..self.durable).unwrap_or_default()
    }

    /// Replaces the durable rows by a repaired copy of them.
    pub(crate) fn replace(&mut self, messages: Vec<Arc<Message>>) {
        *self = Self::new(messages);
    }

    pub(crate) fn into_durable(mut self) -> Vec<Arc<Message>> {
        self.drop_ephemeral();
        self.messages
    }
}

#[cfg(test)]
mod tests {
    use hermes_core::Instant;

    use super::*;

    #[test]
    fn a_durable_row_takes_the_place_of_ephemeral_ones() {
        let at = Instant(1.0);
        let mut history = History::new(vec![Arc::new(Message::user("q", at))]);
        history.push_ephemeral(Message::assistant("frag", at));
        history.push_ephemeral(Message::user("go on", at));
        assert_eq!(history.wire().len(), 3);
        history.push_durable(Message::assistant("fragment and rest", at));
        let texts: Vec<String> = history.into_durable().iter().map(|m| m.text().into_owned()).collect();
        assert_eq!(texts, ["q", "fragment and rest"]);
    }
}
