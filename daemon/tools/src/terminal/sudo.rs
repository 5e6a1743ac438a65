//! `sudo` without a terminal: where its password comes from, and how it gets there (spec 40 §6.1).
//!
//! The password is the first line of the command's input, never a part of its text, its environment or a process list. The
//! shell reads it before the command begins, and each real `sudo` word becomes a function that hands it a line of its
//! own in front of whatever it reads: so pipes into `sudo` and loops around it work, and no unread line is left that a
//! program behind it would take for its own input.

use std::time::Duration;

use hermes_runtime::{CommandSpec, Secret};

use super::lexer::simple_commands;
use crate::ports::SudoRequest;
use crate::programs;
use crate::services::ToolCx;

/// The secret under which the user leaves the password that `sudo` wants.
pub const SUDO_PASSWORD: &str = "SUDO_PASSWORD";

/// How long the look whether `sudo` wants a password may take.
const PROBE: Duration = Duration::from_secs(5);

/// One line, so that line numbers in messages stay. `-k` makes `sudo` read its line every time. What hands on the input is
/// ended with `sudo`, so that it takes nothing from what comes after. Where the shell has no process substitution, the
/// command behind `sudo` has no input.
const PRELUDE: &str = concat!(
    r#"IFS= read -r _hermes_sudo_line; if [ -n "${BASH_VERSION-}${ZSH_VERSION-}" ]; then eval '"#,
    r#"_hermes_sudo() { local b="${!-}" s; "#,
    r#"exec 19< <(printf "%s\n" "$_hermes_sudo_line"; exec cat); command sudo -k -S -p "" "$@" <&19 19<&-; s=$?; exec 19<&-; "#,
    r#"[ "${!-}" = "$b" ] || kill "${!-}" 2>/dev/null; return $s; }"#,
    r#"'; else _hermes_sudo() { printf '%s\n' "$_hermes_sudo_line" | command sudo -k -S -p '' "$@"; }; fi; "#,
);

/// Texts by which `sudo` says that a password was wrong, and that it has none.
const REJECTED: [&str; 3] =
    ["Sorry, try again", "incorrect password attempt", "incorrect authentication attempt"];
const WANTED: [&str; 4] =
    ["a password is required", "a terminal is required", "no tty present", "no password was provided"];

/// What to tell the model when `sudo` had no password.
pub(crate) const HINT: &str = "sudo needs a password and nobody gave one: the user can set SUDO_PASSWORD in the \
                               profile's .env, or run the command themselves";

/// How a command is run.
#[derive(Debug)]
pub(super) struct Prepared {
    pub(super) command: String,
    /// The command's input: one line.
    pub(super) input: Option<Secret>,
    /// To be masked in the output.
    pub(super) password: Option<Secret>,
    /// The session remembered it.
    cached: bool,
    /// It uses `sudo`.
    sudo: bool,
}

/// What the output says about the password.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub(super) struct Verdict {
    pub(super) rejected: bool,
    pub(super) cache_cleared: bool,
    /// None was there, and one was wanted.
    pub(super) wanted: bool,
}

/// Readies a command: with the password when it uses `sudo` and there is one, unchanged otherwise.
pub(super) async fn prepare(cx: &ToolCx, command: &str) -> Prepared {
    let places = places(command);
    let unchanged =
        |sudo| Prepared { command: command.to_owned(), input: None, password: None, cached: false, sudo };
    if places.is_empty() {
        return unchanged(false);
    }
    let Some(prelude) = prelude(cx) else { return unchanged(true) };
    let Some((password, cached)) = password(cx, command).await else { return unchanged(true) };
    Prepared {
        command: rewritten(command, &places, &prelude),
        input: Some(Secret::from(format!("{}\n", password.expose()))),
        password: Some(password),
        cached,
        sudo: true,
    }
}

/// [`PRELUDE`] with the `sudo` that gets the password: the one of the user's own PATH, whatever the session has made of
/// that, and none that the agent can have written.
fn prelude(cx: &ToolCx) -> Option<String> {
    let environment = cx.services.child_env.environment(&cx.workspace, &cx.settings.terminal.env_passthrough);
    let sudo = programs::find("sudo", &environment)?;
    let is_plain = |c: char| c.is_ascii_alphanumeric() || matches!(c, '/' | '.' | '_' | '-');
    let path = sudo.to_str().filter(|path| path.chars().all(is_plain))?;
    (!programs::is_the_agents(&sudo, &cx.workspace)).then(|| PRELUDE.replace("command sudo", path))
}

/// The password, and whether it is the session's own.
async fn password(cx: &ToolCx, command: &str) -> Option<(Secret, bool)> {
    let usable = |secret: &Secret| !secret.is_empty() && !secret.expose().contains(['\n', '\0']);
    if let Some(configured) = cx.services.child_env.secrets.get(SUDO_PASSWORD).filter(usable) {
        return Some((configured, false));
    }
    if let Some(cached) = cx.workspace.sudo_password() {
        return Some((cached, true));
    }
    if !wants_password(cx).await {
        return None;
    }
    let request = SudoRequest {
        session_id: cx.session_id.clone(),
        turn_id: cx.turn_id.clone(),
        call_id: cx.call_id.clone(),
        command: cx.services.redactor.redact(command).into_owned(),
    };
    let given = cx.while_asking(cx.services.ask.sudo_password(request, &cx.cancel)).await.filter(usable)?;
    cx.workspace.set_sudo_password(Some(given.clone()));
    Some((given, true))
}

/// Whether `sudo` is there and does nothing without a password.
async fn wants_password(cx: &ToolCx) -> bool {
    let spec = CommandSpec {
        command:
            "command -v sudo >/dev/null 2>&1 || exit 0; command sudo -n true >/dev/null 2>&1 || echo wanted"
                .to_owned(),
        cwd: cx.workspace.cwd(),
        env: cx.services.child_env.environment(&cx.workspace, &cx.settings.terminal.env_passthrough),
        timeout: PROBE,
        output_cap_chars: 100,
        stdin: None,
        pty: false,
        session: cx.workspace.shell().clone(),
    };
    matches!(cx.services.backend.run(spec, &cx.cancel).await, Ok(output) if output.output.trim() == "wanted")
}

impl Prepared {
    /// Reads what `sudo` said. A remembered password that was wrong is forgotten.
    pub(super) fn judge(&self, cx: &ToolCx, output: &str, exit_code: i32) -> Verdict {
        let says = |texts: &[&str]| texts.iter().any(|text| output.contains(text));
        if !self.sudo || exit_code == 0 {
            return Verdict::default();
        }
        let rejected = self.password.is_some() && says(&REJECTED);
        let cache_cleared = rejected && self.cached;
        if cache_cleared {
            cx.workspace.set_sudo_password(None);
        }
        Verdict { rejected, cache_cleared, wanted: self.password.is_none() && says(&WANTED) }
    }
}

/// `text` without the password. A very short one cannot be told from other text.
pub(crate) fn mask(text: String, password: Option<&Secret>) -> String {
    match password.map(Secret::expose).filter(|password| password.len() >= 4) {
        Some(password) if text.contains(password) => text.replace(password, "[redacted]"),
        _ => text,
    }
}

/// Where `sudo` stands as the program of a simple command, in characters. One that gets its password in a way of its own
/// is left alone.
fn places(command: &str) -> Vec<std::ops::Range<usize>> {
    let chars: Vec<char> = command.chars().collect();
    simple_commands(command)
        .into_iter()
        .filter(|simple| {
            let written: String = chars.get(simple.first.clone()).unwrap_or_default().iter().collect();
            let own_way = |word: &str| {
                word == "--stdin"
                    || word == "--askpass"
                    || word == "--non-interactive"
                    || (word.starts_with('-') && !word.starts_with("--") && word.contains(['S', 'A', 'n']))
            };
            let options = simple.arguments().take_while(|word| word.starts_with('-'));
            matches!(written.as_str(), "sudo" | "/usr/bin/sudo" | "/bin/sudo")
                && simple.words.len() > 1
                && !options.into_iter().any(own_way)
        })
        .map(|simple| simple.first)
        .collect()
}

fn rewritten(command: &str, places: &[std::ops::Range<usize>], prelude: &str) -> String {
    let mut text = prelude.to_owned();
    for (at, c) in command.chars().enumerate() {
        match places.iter().find(|place| place.contains(&at)) {
            Some(place) if place.start == at => text.push_str("_hermes_sudo"),
            Some(_) => {}
            None => text.push(c),
        }
    }
    text
}

#[cfg(test)]
mod tests {
    use super::*;
    use pretty_assertions::assert_eq;

    #[test]
    fn only_a_real_sudo_word_is_rewritten() {
        let rewrite = |command: &str| rewritten(command, &places(command), "");
        for (command, expected) in [
            ("sudo apt update && sudo -u bob ls", "_hermes_sudo apt update && _hermes_sudo -u bob ls"),
            ("echo x | sudo tee /etc/x", "echo x | _hermes_sudo tee /etc/x"),
            ("A=1 /usr/bin/sudo x", "A=1 _hermes_sudo x"),
            ("for i in 1 2; do sudo x $i; done", "for i in 1 2; do _hermes_sudo x $i; done"),
            ("echo $(sudo id)", "echo $(_hermes_sudo id)"),
        ] {
            assert_eq!(rewrite(command), expected, "{command}");
        }
        for command in [
            "echo sudo x",
            "grep -r 'sudo x' .",
            "'sudo' x",
            "sudo",
            "sudo -n true",
            "sudo -S x",
            "sudo -kS x",
            "sudo --stdin x",
            "cat <<EOF\nsudo x\nEOF",
            "man sudo",
            "# sudo x",
        ] {
            assert!(places(command).is_empty(), "{command}");
        }
    }

    #[test]
    fn a_password_is_masked_wherever_it_shows() {
        let secret = Secret::from("hunter2");
        assert_eq!(mask("x hunter2 y".to_owned(), Some(&secret)), "x [redacted] y");
        assert_eq!(mask("a".to_owned(), Some(&Secret::from("a"))), "a");
    }
}
