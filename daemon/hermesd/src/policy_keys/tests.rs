//! The keeper over a real home: what the file says, what holds, and who may change it.

use std::sync::Arc;

use hermes_core::SystemClock;
use hermes_runtime::{ApprovalMode, ApprovalScope, Finding, SessionKey};
use hermes_server::{PolicyDesk as _, PolicyError};
use hermes_state::OpenOptions;
use pretty_assertions::assert_eq;
use serde_json::json;

use super::*;

struct Place {
    folder: tempfile::TempDir,
    home: Home,
}

impl Place {
    fn with(yaml: &str) -> Self {
        let folder = tempfile::tempdir().unwrap();
        let place = Self { home: Home::at(folder.path().to_path_buf()), folder };
        place.write(yaml);
        place
    }

    fn write(&self, yaml: &str) {
        std::fs::write(self.home.config_yaml(), yaml).unwrap();
    }

    fn read(&self) -> String {
        std::fs::read_to_string(self.home.config_yaml()).unwrap()
    }

    fn db(&self) -> Db {
        Db::open(&self.folder.path().join("state.db"), Arc::new(SystemClock), &OpenOptions::default())
            .unwrap()
            .0
    }

    async fn start(&self, lost: bool) -> (PolicyKeys, Settings) {
        let file = hermes_config::load(&LoadInput::new(&self.home)).unwrap().settings;
        let notices = Notices::new(Arc::new(SystemClock));
        let input = PolicyKeysInput { home: &self.home, db: &self.db(), file: &file, lost, notices };
        PolicyKeys::open(input).await.unwrap()
    }
}

fn mode(keys: &PolicyKeys) -> ApprovalMode {
    keys.live().borrow().approvals.mode
}

fn waiting(keys: &PolicyKeys) -> Vec<String> {
    keys.waiting().into_iter().map(|edit| edit.key).collect()
}

const OFF: &str = "# mine\napprovals:\n  mode: off # for now\n";

#[tokio::test]
async fn the_first_start_accepts_the_file_and_the_next_one_does_not() {
    let place = Place::with(OFF);
    let (keys, settings) = place.start(false).await;
    assert_eq!((mode(&keys), settings.get("approvals.mode")), (ApprovalMode::Off, Some(&json!("off"))));
    place.write("approvals: {mode: 'off', cron_mode: approve}\n");
    let (keys, settings) = place.start(false).await;
    assert_eq!(settings.get("approvals.cron_mode"), Some(&json!("deny")));
    assert_eq!((mode(&keys), waiting(&keys)), (ApprovalMode::Off, vec!["approvals.cron_mode".to_owned()]));
}

#[tokio::test]
async fn a_lost_database_accepts_nothing() {
    let place = Place::with(OFF);
    let (keys, _) = place.start(true).await;
    assert_eq!((mode(&keys), waiting(&keys)), (ApprovalMode::Manual, vec!["approvals.mode".to_owned()]));
}

#[tokio::test]
async fn edits_of_the_running_file_narrow_at_once_and_widen_never() {
    let place = Place::with("agent: {max_turns: 4}\n");
    let (keys, _) = place.start(false).await;
    place.write(&format!("{OFF}  deny: ['git push *']\n"));
    keys.look().await;
    let now = keys.live().borrow().clone();
    assert_eq!((now.approvals.mode, now.approvals.deny.len()), (ApprovalMode::Manual, 1));
    let [edit] = keys.waiting().try_into().unwrap();
    let warning = edit.warning();
    assert!(warning.contains("`approvals.mode`") && warning.contains("approvals accept"), "{warning}");
    // The way back is free.
    place.write("approvals: {deny: ['git push *']}\n");
    keys.look().await;
    assert_eq!(waiting(&keys), [""; 0]);
    // A broken file changes nothing.
    place.write("approvals: [\n");
    keys.look().await;
    assert_eq!(keys.live().borrow().approvals.deny.len(), 1);
}

#[tokio::test]
async fn what_is_accepted_is_what_was_shown() {
    let place = Place::with("");
    let (keys, _) = place.start(false).await;
    place.write(OFF);
    keys.look().await;
    let shown = keys.waiting();
    // Changed between the look and the word.
    place.write("approvals: {mode: smart}\n");
    let refused = keys.accept(shown.clone()).await.unwrap_err();
    assert!(matches!(&refused, PolicyError::Changed { key } if key == "approvals.mode"), "{refused}");
    place.write(OFF);
    assert_eq!(keys.accept(shown).await.unwrap(), ["approvals.mode"]);
    assert_eq!((mode(&keys), waiting(&keys)), (ApprovalMode::Off, Vec::new()));
    let (keys, _) = place.start(false).await;
    assert_eq!(mode(&keys), ApprovalMode::Off, "also after a restart");
}

#[tokio::test]
async fn a_written_key_is_accepted_and_the_file_keeps_its_words() {
    let place = Place::with("# mine\napprovals:\n  mode: manual # always\nagent: {max_turns: 4}\n");
    let (keys, _) = place.start(false).await;
    let written = keys.set_config("approvals.mode".into(), Some(json!("off"))).await.unwrap();
    assert_eq!((written.applied, written.note.as_str()), (true, ""));
    assert_eq!(place.read(), "# mine\napprovals:\n  mode: \"off\" # always\nagent: {max_turns: 4}\n");
    assert_eq!((mode(&keys), waiting(&keys)), (ApprovalMode::Off, Vec::new()));

    let written = keys.set_config("agent.max_turns".into(), Some(json!(9))).await.unwrap();
    assert!(!written.applied && written.note.contains("daemon restart"), "{written:?}");
    keys.set_config("approvals.mode".into(), None).await.unwrap();
    assert_eq!(
        (place.read().as_str(), mode(&keys)),
        ("# mine\nagent: {max_turns: 9}\n", ApprovalMode::Manual)
    );

    for (key, value, words) in [
        ("approvals.modes", json!("off"), "did you mean `approvals.mode`"),
        ("approvals.mode", json!("never"), "accepted: one of"),
        ("agent.max_turns.x", json!(1), "single value"),
    ] {
        let refused = keys.set_config(key.into(), Some(value)).await.unwrap_err();
        assert!(
            matches!(refused, PolicyError::Invalid(_)) && refused.to_string().contains(words),
            "{refused}"
        );
    }
    assert_eq!(place.read(), "# mine\nagent: {max_turns: 9}\n", "nothing was written");
}

#[tokio::test]
async fn a_written_key_does_not_carry_others_along() {
    let place = Place::with("");
    let (keys, _) = place.start(false).await;
    place.write("approvals: {mode: 'off'}\ncommand_allowlist: ['evil *']\n");
    keys.set_config("approvals.timeout".into(), Some(json!(9))).await.unwrap();
    assert_eq!(waiting(&keys), ["approvals.mode", "command_allowlist"]);
    let refused = keys.set_config("command_allowlist[0]".into(), Some(json!("ls"))).await.unwrap_err();
    assert!(refused.to_string().contains("`command_allowlist` waits"), "{refused}");
    keys.set_config("command_allowlist".into(), Some(json!(["ls"]))).await.unwrap();
    assert_eq!(waiting(&keys), ["approvals.mode"]);
    assert_eq!(keys.live().borrow().allowlist.0, ["ls"]);
}

#[tokio::test]
async fn standing_approvals_outlive_the_daemon() {
    let place = Place::with("");
    let session = SessionKey::new("s");
    let finding = Finding { rule: "delete", description: String::new(), shape: "rm -r x".into() };
    {
        let approvals = standing_approvals(&place.db()).await.unwrap();
        let findings = std::slice::from_ref(&finding);
        approvals.grant(&session, findings, ApprovalScope::Always, hermes_core::Instant(5.0)).await.unwrap();
    }
    let approvals = standing_approvals(&place.db()).await.unwrap();
    assert!(approvals.covers(&SessionKey::new("other"), &finding));
    let [entry] = approvals.list().try_into().unwrap();
    assert!(approvals.revoke(&entry.id).await.unwrap());
    assert!(standing_approvals(&place.db()).await.unwrap().list().is_empty());
}
