//! Making or finding the session of a chat, and what the user should know of it.

use std::path::Path;
use std::time::{Duration, Instant};

use hermes_client::{CallError, CallErrorKind, Client, History, SessionWatch, WatchOptions};
use hermes_proto::v1;
use tokio::time::sleep;

use super::Chat;
use crate::failure::{Failure, Outcome};
use crate::output::{Output, SessionIntro};

/// The reference that means the newest session.
const LATEST: &str = "latest";
/// How long a daemon that is on its way out is waited for, and how often it is asked meanwhile.
const LEAVING_LIMIT: Duration = Duration::from_secs(45);
const LEAVING_LOOK: Duration = Duration::from_millis(200);
/// The source tag of this surface.
const SURFACE: &str = "cli";

/// An open session that is being watched.
#[derive(Debug)]
pub(super) struct Opened {
    pub(super) watch: SessionWatch,
    pub(super) intro: SessionIntro,
    /// Questions that were up already.
    pub(super) pending: Vec<v1::PendingPrompt>,
}

/// Connects, creates the session or opens the one that the flags name, and attaches to it.
pub(super) async fn open(chat: &Chat<'_>, output: &mut Output) -> Outcome<Opened> {
    let give_up = Instant::now() + LEAVING_LIMIT;
    let (client, detail, resumed) = loop {
        let client = chat.connector.ensure().await?;
        match ask(chat, &client).await {
            Ok((detail, resumed)) => break (client, detail, resumed),
            // The daemon was about to leave: the next one takes the same request.
            Err(error) if error.is_lost() && Instant::now() < give_up => sleep(LEAVING_LOOK).await,
            Err(error) if error.kind() == CallErrorKind::NotFound && goes_on_with_latest(chat) => {
                let failure = Failure::general("there is no session to go on with");
                return Err(failure.hint("begin one with -q \"…\"").into());
            }
            Err(error) => return Err(error.into()),
        }
    };
    if chat.verbose {
        let (hello, socket) = (client.hello(), client.socket().display());
        output.note(&format!("daemon {} (process {}) at {socket}", hello.version, hello.pid));
    }
    let info = detail.info.unwrap_or_default();
    let intro = SessionIntro {
        session_id: detail.summary.unwrap_or_default().id,
        model: info.model,
        provider: info.provider,
        cwd: info.cwd,
        resumed,
    };
    tell(chat, output, &intro, &detail.warnings);

    // A new session has no history; that of an old one is the daemon's business.
    let history = if resumed { History::Skip } else { History::All };
    let watch_options = WatchOptions { history, can_answer: chat.can_answer() };
    let (watch, attachment) =
        SessionWatch::attach(&chat.connector, client, &intro.session_id, watch_options).await?;
    Ok(Opened { watch, intro, pending: attachment.attached.pending_prompts })
}

/// Asks for the session; the second value says whether it is an old one.
async fn ask(chat: &Chat<'_>, client: &Client) -> Result<(v1::SessionDetail, bool), CallError> {
    let options = chat.choices.session_options(chat.flags, chat.around);
    let Some((reference, source)) = reference(chat) else {
        let request = v1::CreateSessionRequest { options: Some(options), title: None };
        return Ok((client.create_session(request).await?, false));
    };
    // The directory belongs to the session, unless the user asks to stay in this one.
    let cwd = options.cwd.filter(|_| chat.flags.no_restore_cwd);
    let options = Some(v1::SessionOptions { cwd, ..options });
    Ok((client.open_session(v1::OpenSessionRequest { reference, source, options }).await?, true))
}

fn goes_on_with_latest(chat: &Chat<'_>) -> bool {
    reference(chat).is_some_and(|(reference, _)| reference == LATEST)
}

/// Which session the flags name, and whose newest one is preferred.
fn reference(chat: &Chat<'_>) -> Option<(String, Option<String>)> {
    if let Some(reference) = &chat.flags.resume {
        return Some((reference.clone(), None));
    }
    match chat.flags.continue_last.as_deref()? {
        "" => {
            let source = chat.flags.source.clone().unwrap_or_else(|| SURFACE.to_owned());
            Some((LATEST.to_owned(), Some(source)))
        }
        title => Some((title.to_owned(), None)),
    }
}

/// Tells people what they should know; `-z` promises an empty stderr on success.
fn tell(chat: &Chat<'_>, output: &mut Output, intro: &SessionIntro, warnings: &[String]) {
    let silent = chat.flags.oneshot.is_some();
    // Toolsets that do not exist are the caller's own mistake, and are always named.
    if !silent || chat.flags.toolsets.is_some() {
        for warning in warnings {
            output.note(&format!("warning: {warning}"));
        }
    }
    if silent {
        return;
    }
    for note in &chat.choices.notes {
        output.note(&format!("warning: {note}"));
    }
    if let Some(note) = directory_note(intro, chat.around.cwd.as_deref(), chat.flags.no_restore_cwd) {
        output.note(&note);
    }
    if chat.verbose {
        output.note(&format!("session {} with {} ({})", intro.session_id, intro.model, intro.provider));
    }
}

/// The directory belongs to the session: a client that comes from another one is told.
fn directory_note(intro: &SessionIntro, here: Option<&Path>, stay: bool) -> Option<String> {
    let theirs = Path::new(intro.cwd.as_deref()?);
    if !intro.resumed || Some(theirs) == here {
        return None;
    }
    let theirs = theirs.display();
    Some(if stay {
        format!("this session stays in its own directory {theirs}; begin a new one to work here")
    } else if Path::new(intro.cwd.as_deref()?).is_dir() {
        format!("this session works in {theirs}, not in the current directory")
    } else {
        format!("warning: the directory of this session is gone: {theirs}")
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn resumed_in(cwd: &str) -> SessionIntro {
        SessionIntro { cwd: Some(cwd.into()), resumed: true, ..SessionIntro::default() }
    }

    #[test]
    fn a_client_from_another_directory_is_told() {
        let here = tempfile::tempdir().unwrap();
        let there = tempfile::tempdir().unwrap();
        let intro = resumed_in(there.path().to_str().unwrap());
        let note = |stay| directory_note(&intro, Some(here.path()), stay).unwrap();
        assert!(note(false).starts_with("this session works in"), "{}", note(false));
        assert!(note(true).contains("stays in its own directory"), "{}", note(true));
        assert_eq!(directory_note(&intro, Some(there.path()), false), None);
        let new = SessionIntro { resumed: false, ..intro };
        assert_eq!(directory_note(&new, Some(here.path()), false), None);
    }

    #[test]
    fn a_directory_that_is_gone_is_a_warning() {
        let note = directory_note(&resumed_in("/no/such/folder"), Some(Path::new("/")), false).unwrap();
        assert!(note.starts_with("warning: the directory of this session is gone"), "{note}");
    }
}
