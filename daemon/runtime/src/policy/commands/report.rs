//! What was found, while it is being found.

use crate::policy::Finding;

use super::scope::{PARENT, UNKNOWN};
use super::simple::Simple;

/// Characters of a shape; a longer one cannot be approved for more than once.
const MAX_SHAPE: usize = 8_000;

/// What a rule says of a whole command.
#[derive(Debug, Default)]
pub(super) struct Report {
    pub(super) blocked: Option<(&'static str, String)>,
    pub(super) findings: Vec<Finding>,
    /// Some finding rests on what only the run will know: nothing wider than once makes sense.
    pub(super) vague: bool,
    pub(super) simples: Vec<Simple>,
    /// What belongs to every shape of the command that is being judged: what it is fed, links, the environment.
    pub(super) context: String,
}

impl Report {
    /// A person must agree. `what` goes on a sentence that begins with the command.
    pub(super) fn ask(&mut self, rule: &'static str, what: impl Into<String>, shape: impl Into<String>) {
        let shape: String = shape.into() + &self.context;
        self.vague |= shape.contains([UNKNOWN, PARENT]) || shape.chars().count() > MAX_SHAPE;
        let clean = |text: String| text.replace(UNKNOWN, "…").replace(PARENT, "$PPID");
        let finding = Finding { rule, description: clean(what.into()), shape: clean(shape) };
        if !self.findings.contains(&finding) {
            self.findings.push(finding);
        }
    }

    /// Nobody can allow it. The first reason counts.
    pub(super) fn block(&mut self, rule: &'static str, what: &str) {
        if self.blocked.is_none() {
            let reason = format!(
                "this command {what}. It can never run through the agent, whatever is approved or configured; do not \
                 try it again or in another form. If it is really wanted, the user can run it in a terminal"
            );
            self.blocked = Some((rule, reason));
        }
    }

    /// The text cannot be judged, so it does not run. It may run when it is written so that we can read it.
    pub(super) fn unreadable(&mut self, rule: &'static str, what: &str) {
        if self.blocked.is_none() {
            self.blocked = Some((
                rule,
                format!(
                    "this command {what}, so it cannot be judged and does not run; write it in a simpler form, in \
                     several calls or as a script file"
                ),
            ));
        }
    }
}
