//! What background processes say by themselves, in words for the model.

use std::fmt::Write as _;
use std::sync::Arc;

use async_trait::async_trait;
use hermes_core::SessionId;
use hermes_runtime::{Occasion, ProcessListener, ProcessView, ProcessWord, Redactor};

use crate::files::first_chars;
use crate::ports::{ProcessNotice, Wake};

/// Characters of a command in a notice.
const COMMAND_CHARS: usize = 200;

/// Gives the words of processes to the sessions that own them.
#[derive(Debug)]
pub struct ProcessNotices {
    wake: Arc<dyn Wake>,
    redactor: Redactor,
}

impl ProcessNotices {
    /// Speaks through `wake`, with secrets masked.
    pub fn new(wake: Arc<dyn Wake>, redactor: Redactor) -> Self {
        Self { wake, redactor }
    }
}

#[async_trait]
impl ProcessListener for ProcessNotices {
    async fn said(&self, word: ProcessWord) -> bool {
        let Ok(session_id) = SessionId::parse(word.process.session.as_str()) else {
            tracing::warn!(id = word.id, "notice of a process without a session");
            return true;
        };
        let text = self.redactor.redact(&words(&word.process, &word.occasion)).into_owned();
        let principal = word.process.principal;
        self.wake.notice(ProcessNotice { session_id, principal, id: word.id, text }).await
    }
}

fn words(process: &ProcessView, occasion: &Occasion) -> String {
    let id = &process.id;
    let (command, cut) = first_chars(process.command.trim(), COMMAND_CHARS);
    let command = format!("{command}{}", if cut { " …" } else { "" });
    let held = |suppressed: u64| match suppressed {
        0 => String::new(),
        lines => format!(" ({lines} more were held back)"),
    };
    match occasion {
        Occasion::Ended { tail } => {
            let end = match process.end.as_ref().and_then(|end| end.exit_code) {
                Some(code) => format!("has ended with exit code {code}"),
                None => "has ended; its exit code is not known, since the daemon was restarted".to_owned(),
            };
            let mut text = format!("[Background process {id} {end}: {command}]");
            if tail.trim().is_empty() {
                text.push_str("\nIt printed nothing.");
            } else {
                let _ = write!(text, "\nThe end of its output:\n{}", tail.trim_end());
            }
            text
        }
        Occasion::Matched { lines, suppressed } => {
            let lines = lines.join("\n");
            format!(
                "[Background process {id} printed what you watch for: {command}]{}\n{lines}",
                held(*suppressed)
            )
        }
        Occasion::WatchEnded { suppressed } => format!(
            "[Background process {id} is no longer watched: {command}]\nToo many lines match its patterns{}. You will be \
             told of its end; look at it with `process`.",
            held(*suppressed)
        ),
        Occasion::Silenced => {
            "[Background processes are silent for 30 s]\nToo many lines match the patterns that you \
                               watch for, over all processes. Look at them with `process`."
                .to_owned()
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use hermes_core::{Instant, Principal};
    use hermes_runtime::{EndReason, ProcessEnd, SessionKey};

    #[test]
    fn what_processes_say_is_short_and_names_them() {
        let process = ProcessView {
            id: "proc_0123456789ab".to_owned(),
            session: SessionKey::new("s1"),
            principal: Principal::Owner,
            command: "npm test".to_owned(),
            cwd: "/w".into(),
            pid: 7,
            started_at: Instant(0.0),
            pty: false,
            detached: false,
            notify_on_complete: true,
            watch_patterns: Vec::new(),
            watch_hits: 0,
            end: Some(ProcessEnd {
                at: Instant(1.0),
                exit_code: Some(2),
                reason: EndReason::Exited,
                source: None,
            }),
        };
        let lost = ProcessView { end: None, ..process.clone() };
        let said = [
            words(&process, &Occasion::Ended { tail: "1 failed\n".to_owned() }),
            words(&lost, &Occasion::Ended { tail: String::new() }),
            words(&process, &Occasion::Matched { lines: vec!["ready".to_owned()], suppressed: 3 }),
            words(&process, &Occasion::WatchEnded { suppressed: 40 }),
            words(&process, &Occasion::Silenced),
        ];
        insta::assert_snapshot!("notices", said.join("\n\n"));
    }
}
