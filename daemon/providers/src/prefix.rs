//! The serialised beginning of a session's requests: written once, appended to ever after.
//!
//! Providers cache the prefix of a request by its bytes, so those bytes must not change: not
//! between two calls, and not when a history is loaded again after a restart. And the work of a
//! call must not grow with the length of the history (design §5): a message that was sent is known
//! by the identity of its `Arc`, and its bytes are kept.

use std::fmt;
use std::sync::Arc;

use hermes_core::Message;

use crate::chat::Form;

/// Bytes of the messages that were sent, for one session. Give each session its own; a change of
/// route, prompt or history is noticed, and what differs is written anew from there.
#[derive(Default)]
pub struct PrefixCache {
    /// What decides how a message is written.
    form: Option<Form>,
    system: String,
    /// The `messages` array without its closing bracket.
    bytes: Vec<u8>,
    /// Where the bytes of the system prompt end.
    system_end: usize,
    sent: Vec<Sent>,
    /// Messages that were written, over the cache's life.
    written: u64,
}

struct Sent {
    /// Held, so that its address cannot become another message's.
    message: Arc<Message>,
    /// Where its bytes end.
    end: usize,
}

impl PrefixCache {
    /// Bytes held for the next call.
    pub fn len_bytes(&self) -> usize {
        self.bytes.len()
    }

    /// How many messages were serialised so far, each repeat counted.
    pub fn messages_written(&self) -> u64 {
        self.written
    }

    /// Brings the bytes up to `messages` and returns the `messages` array without its closing bracket.
    pub(crate) fn update(&mut self, form: Form, system: &str, messages: &[Arc<Message>]) -> &[u8] {
        if self.form != Some(form) || self.system != system {
            self.sent.clear();
            self.bytes.clear();
            self.bytes.push(b'[');
            if !system.is_empty() {
                form.write_system(&mut self.bytes, system);
            }
            self.system_end = self.bytes.len();
            self.form = Some(form);
            system.clone_into(&mut self.system);
        }
        let known = self
            .sent
            .iter()
            .zip(messages)
            .take_while(|(sent, message)| Arc::ptr_eq(&sent.message, message))
            .count();
        self.sent.truncate(known);
        self.bytes.truncate(self.sent.last().map_or(self.system_end, |sent| sent.end));
        for message in messages.iter().skip(known) {
            let is_first = self.bytes.len() <= 1;
            if !is_first {
                self.bytes.push(b',');
            }
            form.write_message(&mut self.bytes, message, is_first);
            self.sent.push(Sent { message: Arc::clone(message), end: self.bytes.len() });
            self.written += 1;
        }
        &self.bytes
    }
}

impl fmt::Debug for PrefixCache {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("PrefixCache")
            .field("messages", &self.sent.len())
            .field("bytes", &self.bytes.len())
            .finish_non_exhaustive()
    }
}
