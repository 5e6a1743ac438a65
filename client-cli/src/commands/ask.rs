//! A yes or no at the terminal, for commands that change something.

use std::io;

use super::Desk;
use crate::failure::{Failure, Outcome};
use crate::output::Output;

/// Asks; only a clear yes is one. Without a terminal nobody can be asked, and `--yes` is needed.
pub(super) fn confirm(desk: &Desk<'_>, question: &str, output: &mut Output) -> Outcome<bool> {
    if !(desk.around.stdin_is_terminal && desk.around.stdout_is_terminal) {
        let failure = Failure::usage("there is no terminal to ask at, and nothing was changed");
        return Err(failure.hint("give --yes to do it unasked").into());
    }
    output.text(&format!("{question} [y/N] "))?;
    let mut answer = String::new();
    // A terminal that is gone says no.
    let read = io::stdin().read_line(&mut answer).unwrap_or_default();
    if read == 0 {
        output.line("")?;
    }
    Ok(is_yes(&answer))
}

fn is_yes(answer: &str) -> bool {
    matches!(answer.trim().to_ascii_lowercase().as_str(), "y" | "yes")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_a_clear_yes_is_one() {
        for yes in ["y\n", "Yes\n", " Y "] {
            assert!(is_yes(yes), "{yes:?}");
        }
        for no in ["", "\n", "n\n", "yess", "ja", "o", "yes please"] {
            assert!(!is_yes(no), "{no:?}");
        }
    }
}
