//! Tests of the wire: bodies by snapshot, end states by table, exchanges against a socket.

mod body;
mod end_states;
mod exchange;
mod server;

use crate::provider::{StreamDelta, StreamSink};

/// What came in, as text: `text:…`, `think:…`, `tool:…`, `wait`.
#[derive(Debug, Default)]
pub(crate) struct Seen(pub(crate) Vec<String>);

impl StreamSink for Seen {
    fn delta(&mut self, delta: StreamDelta<'_>) {
        self.0.push(match delta {
            StreamDelta::Text(text) => format!("text:{text}"),
            StreamDelta::Reasoning(text) => format!("think:{text}"),
            StreamDelta::ToolGenerating { name } => format!("tool:{name}"),
            StreamDelta::Waiting { .. } => "wait".to_owned(),
        });
    }
}
