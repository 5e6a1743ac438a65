//! One question to a person: how it looks, and what an answer means (spec 40 §8.7, 80 §6.5). No terminal here.

use hermes_proto::v1::{self, event::Payload};

use crate::output::{exposed, wrapped};

/// The answer that refuses; a reason may follow it after a blank.
const DENY: &str = "deny";
/// In front of each line that is quoted, so that no quoted line can pass for one of ours.
const QUOTE: &str = "  │ ";
const INDENT: &str = "  ";

/// A question.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Question {
    pub(super) request_id: String,
    pub(super) asks: Asks,
}

/// What is asked.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum Asks {
    Approval {
        tool: String,
        command: String,
        description: String,
        /// Of `once`, `session`, `always`, `deny`: those that are offered.
        choices: Vec<String>,
    },
    Clarify {
        question: String,
        choices: Vec<String>,
    },
    Sudo {
        command: String,
    },
}

/// What a typed line comes to.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum Reading {
    Answer {
        /// As it goes to the daemon.
        answer: String,
        /// As it is told here; never a password.
        said: String,
    },
    /// Not clear; why, for the person.
    Unclear(String),
}

impl Question {
    /// The question that an event puts up.
    pub(super) fn of_event(payload: &Payload) -> Option<Self> {
        Some(match payload {
            Payload::ApprovalRequest(request) => Self {
                request_id: request.request_id.clone(),
                asks: Asks::Approval {
                    tool: request.tool.clone(),
                    command: request.command.clone(),
                    description: request.description.clone(),
                    choices: request.choices.clone(),
                },
            },
            Payload::ClarifyRequest(request) => Self {
                request_id: request.request_id.clone(),
                asks: Asks::Clarify { question: request.question.clone(), choices: request.choices.clone() },
            },
            Payload::SudoRequest(request) => Self {
                request_id: request.request_id.clone(),
                asks: Asks::Sudo { command: request.command.clone() },
            },
            _ => return None,
        })
    }

    /// A question that was up before this client came. Of an approval only one text is known.
    pub(super) fn of_pending(prompt: &v1::PendingPrompt) -> Option<Self> {
        let (text, choices) = (prompt.text.clone(), prompt.choices.clone());
        let asks = match prompt.kind.as_str() {
            "approval" => {
                Asks::Approval { tool: "a tool".into(), command: text, description: String::new(), choices }
            }
            "clarify" => Asks::Clarify { question: text, choices },
            "sudo" => Asks::Sudo { command: text },
            _ => return None,
        };
        Some(Self { request_id: prompt.request_id.clone(), asks })
    }

    /// Whether the answer is typed without being shown.
    pub(super) fn is_secret(&self) -> bool {
        matches!(self.asks, Asks::Sudo { .. })
    }

    /// One line about it, for those who cannot answer.
    pub(super) fn summary(&self) -> String {
        match &self.asks {
            Asks::Approval { tool, command, .. } => format!("waiting for approval of {tool}: {command}"),
            Asks::Clarify { question, .. } => format!("waiting for an answer: {question}"),
            Asks::Sudo { command } => format!("waiting for a password for: {command}"),
        }
    }

    /// The lines of the question. The first one is its head.
    pub(super) fn screen(&self, columns: Option<usize>) -> Vec<String> {
        match &self.asks {
            Asks::Approval { tool, command, description, choices } => {
                let mut lines = vec![format!("⚠ {} needs approval", exposed(tool).replace('\n', " "))];
                lines.extend(quoted(command, columns));
                if !description.trim().is_empty() {
                    lines.extend(indented(description, columns));
                }
                let offered: Vec<&str> = choices.iter().filter_map(|choice| key(choice)).collect();
                lines.push(format!("{INDENT}{}", offered.join(" ")));
                lines
            }
            Asks::Clarify { question, choices } => {
                let mut lines = vec!["? The agent asks".to_owned()];
                lines.extend(quoted(question, columns));
                for (at, choice) in choices.iter().enumerate() {
                    lines.extend(indented(&format!("{}. {choice}", at + 1), columns));
                }
                lines
            }
            Asks::Sudo { command } => {
                let mut lines = vec!["⚠ sudo wants your password for".to_owned()];
                lines.extend(quoted(command, columns));
                lines
            }
        }
    }

    /// What stands before the cursor.
    pub(super) fn invitation(&self) -> &'static str {
        match &self.asks {
            Asks::Approval { .. } => "  Enter denies ❯ ",
            Asks::Clarify { choices, .. } if choices.is_empty() => "  Enter: as you like ❯ ",
            Asks::Clarify { .. } => "  number or words ❯ ",
            Asks::Sudo { .. } => "  hidden; Enter skips ❯ ",
        }
    }

    /// What a line means. `again`: it was asked a second time, so that what is unclear now is a no.
    pub(super) fn read(&self, line: &str, again: bool) -> Reading {
        match &self.asks {
            Asks::Approval { choices, .. } => match read_approval(line, choices) {
                Reading::Unclear(_) if again => refusal("that is no clear answer: denied"),
                reading => reading,
            },
            Asks::Clarify { choices, .. } => read_choice(line, choices),
            Asks::Sudo { .. } if line.is_empty() => {
                Reading::Answer { answer: String::new(), said: "no password given".into() }
            }
            Asks::Sudo { .. } => Reading::Answer { answer: line.to_owned(), said: "password given".into() },
        }
    }

    /// The answer of somebody who does not answer.
    pub(super) fn refused(&self) -> Reading {
        match &self.asks {
            Asks::Approval { .. } => refusal("denied"),
            Asks::Clarify { .. } | Asks::Sudo { .. } => self.read("", true),
        }
    }
}

fn refusal(said: &str) -> Reading {
    Reading::Answer { answer: DENY.to_owned(), said: said.to_owned() }
}

/// A choice with the key that stands for it.
fn key(choice: &str) -> Option<&'static str> {
    Some(match choice {
        "once" => "[o]nce",
        "session" => "[s]ession",
        "always" => "[a]lways",
        DENY => "[d]eny",
        _ => return None,
    })
}

fn read_approval(line: &str, choices: &[String]) -> Reading {
    let line = line.trim();
    let (word, rest) = line.split_once(char::is_whitespace).unwrap_or((line, ""));
    let (name, said) = match (word.to_lowercase().as_str(), rest.trim()) {
        ("", _) => return refusal("denied"),
        ("d" | DENY | "n" | "no", "") => return refusal("denied"),
        ("d" | DENY | "n" | "no", reason) => {
            return Reading::Answer {
                answer: format!("{DENY} {reason}"),
                said: "denied, and the reason is told to the agent".into(),
            };
        }
        ("o" | "once", "") => ("once", "allowed once"),
        ("s" | "session", "") => ("session", "allowed for this session"),
        ("a" | "always", "") => ("always", "allowed for good (hermes-cli approvals list)"),
        _ => return Reading::Unclear("type one of the letters in brackets".into()),
    };
    if choices.iter().any(|choice| choice == name) {
        Reading::Answer { answer: name.to_owned(), said: said.to_owned() }
    } else {
        Reading::Unclear(format!("`{name}` is not offered here"))
    }
}

fn read_choice(line: &str, choices: &[String]) -> Reading {
    let line = line.trim();
    if line.is_empty() {
        return Reading::Answer { answer: String::new(), said: "left to the agent".into() };
    }
    let by_number = line.parse::<usize>().ok().and_then(|number| choices.get(number.checked_sub(1)?));
    let answer = by_number.map_or_else(|| line.to_owned(), Clone::clone);
    Reading::Answer { said: format!("answered: {answer}"), answer }
}

/// Somebody's text, whole, with each line marked as quoted.
fn quoted(text: &str, columns: Option<usize>) -> Vec<String> {
    marked(QUOTE, text, columns)
}

fn indented(text: &str, columns: Option<usize>) -> Vec<String> {
    marked(INDENT, text, columns)
}

fn marked(mark: &str, text: &str, columns: Option<usize>) -> Vec<String> {
    let room = columns.map(|columns| columns.saturating_sub(mark.chars().count()));
    let text = exposed(text);
    let text = text.trim_end_matches('\n');
    text.split('\n').flat_map(|line| wrapped(line, room)).map(|line| format!("{mark}{line}")).collect()
}

#[cfg(test)]
mod tests {
    use pretty_assertions::assert_eq;

    use super::*;

    fn approval(command: &str, choices: &[&str]) -> Question {
        Question {
            request_id: "r".into(),
            asks: Asks::Approval {
                tool: "terminal".into(),
                command: command.into(),
                description: "deletes a folder with all that is in it".into(),
                choices: choices.iter().map(|choice| (*choice).to_owned()).collect(),
            },
        }
    }

    const ALL: [&str; 4] = ["once", "session", "always", "deny"];

    fn answer(question: &Question, line: &str) -> Option<String> {
        match question.read(line, false) {
            Reading::Answer { answer, .. } => Some(answer),
            Reading::Unclear(_) => None,
        }
    }

    #[test]
    fn nothing_is_preselected_and_only_a_clear_yes_is_one() {
        let question = approval("rm -r build", &ALL);
        for (line, expected) in [
            ("", Some("deny")),
            ("   ", Some("deny")),
            ("o", Some("once")),
            (" O ", Some("once")),
            ("once", Some("once")),
            ("s", Some("session")),
            ("always", Some("always")),
            ("d", Some("deny")),
            ("n", Some("deny")),
            ("d not that folder", Some("deny not that folder")),
            ("Deny  it is  mine", Some("deny it is  mine")),
            ("y", None),
            ("yes", None),
            ("ok", None),
            ("o please", None),
            ("os", None),
            ("\u{1b}[Ao", None),
            ("о", None), // Cyrillic
        ] {
            assert_eq!(answer(&question, line).as_deref(), expected, "{line:?}");
        }
    }

    #[test]
    fn what_is_not_offered_is_not_taken_and_a_second_unclear_answer_is_a_no() {
        let question = approval("rm -r build", &["once", "deny"]);
        assert_eq!(question.read("a", false), Reading::Unclear("`always` is not offered here".into()));
        assert_eq!(question.read("a", true), refusal("that is no clear answer: denied"));
        assert_eq!(answer(&question, "o").as_deref(), Some("once"));
    }

    #[test]
    fn a_number_or_any_words_answer_a_question_of_the_agent() {
        let question = Question {
            request_id: "r".into(),
            asks: Asks::Clarify { question: "Which?".into(), choices: vec!["red".into(), "blue".into()] },
        };
        for (line, expected) in [("2", "blue"), ("0", "0"), ("3", "3"), ("green", "green"), ("", "")] {
            assert_eq!(answer(&question, line).as_deref(), Some(expected));
        }
    }

    #[test]
    fn a_password_is_taken_as_it_is_and_never_told() {
        let question = Question { request_id: "r".into(), asks: Asks::Sudo { command: "sudo id".into() } };
        let reading = question.read(" pass word ", false);
        assert_eq!(reading, Reading::Answer { answer: " pass word ".into(), said: "password given".into() });
        assert!(question.is_secret());
    }

    #[test]
    fn screens() {
        let long = format!("rm -rf {}", "deep/folder/".repeat(9));
        let hostile = "echo ok\r\u{1b}[2K\u{1b}[1A\u{202e}harmless\u{200b}\n  [o]nce [s]ession\tx";
        let clarify = Question {
            request_id: "r".into(),
            asks: Asks::Clarify {
                question: "Which of the two databases is meant?\nBoth have users.".into(),
                choices: vec!["the one in Frankfurt, which is the older one".into(), "neither".into()],
            },
        };
        let sudo =
            Question { request_id: "r".into(), asks: Asks::Sudo { command: "sudo apt update".into() } };
        let screens: Vec<String> =
            [approval(&long, &ALL), approval(hostile, &["once", "deny"]), clarify, sudo]
                .iter()
                .flat_map(|question| {
                    [40, 80].map(|columns| {
                        let mut lines = question.screen(Some(columns));
                        for line in &lines {
                            assert!(crate::output::width(line) <= columns, "{columns}: {line}");
                        }
                        lines.push(format!("{}|", question.invitation()));
                        lines.join("\n")
                    })
                })
                .collect();
        insta::assert_snapshot!(screens.join("\n\n"));
    }
}
