//! Stage 10: what a call is about to change is kept, so that it can be undone (spec 40 §5.10). Never stops the call.

use hermes_runtime::{Keeping, SnapshotCall, Touch};

use super::one_line;
use super::policy::Judged;
use crate::services::ToolCx;
use crate::tool::OwnedEffect;

/// Keeps the files that the call will write, before it does.
pub(super) async fn before(judged: &Judged, cx: &ToolCx) -> Option<Keeping> {
    let touches: Vec<Touch> = judged.effects.iter().filter_map(touch).collect();
    if touches.is_empty() {
        return None;
    }
    let tool = &judged.tool;
    let preview = cx.services.redactor.redact(&tool.preview(&judged.arguments)).into_owned();
    let call = SnapshotCall {
        session: cx.session_id.clone(),
        turn: cx.turn_id.clone(),
        workspace: cx.workspace.root().to_owned(),
        reason: one_line(&format!("{} {preview}", tool.name())),
    };
    cx.services.snapshots.before(call, touches).await
}

/// Writes down how the call left them. At once, so that an edit by hand which comes later is told from it.
pub(super) async fn after(keeping: Option<Keeping>, cx: &ToolCx) {
    if let Some(keeping) = keeping {
        cx.services.snapshots.after(keeping).await;
    }
}

fn touch(effect: &OwnedEffect) -> Option<Touch> {
    match effect {
        OwnedEffect::Write { path } => Some(Touch::Write { path: path.clone(), cross_profile: false }),
        OwnedEffect::CrossProfileWrite { path } => {
            Some(Touch::Write { path: path.clone(), cross_profile: true })
        }
        OwnedEffect::Command { command, cwd } => {
            Some(Touch::Command { command: command.clone(), cwd: cwd.clone() })
        }
        OwnedEffect::Read { .. } => None,
    }
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;

    use hermes_core::{SessionId, SystemClock};
    use hermes_runtime::{
        PathPolicy, PathPolicyInput, Redactor, RestoreRequest, SecretScope, Snapshots, SnapshotsInput, Tasks,
    };
    use pretty_assertions::assert_eq;
    use serde_json::json;
    use tokio::sync::watch;

    use crate::testing::{Bench, call};

    fn snapshots(home: &std::path::Path) -> Snapshots {
        let (_, settings) = watch::channel(Arc::default());
        Snapshots::new(SnapshotsInput {
            dir: home.join("checkpoints"),
            user_home: home.to_owned(),
            settings,
            paths: PathPolicy::new(PathPolicyInput {
                home: home.to_owned(),
                root: home.to_owned(),
                user_home: home.to_owned(),
                safe_root: None,
                temp_dir: std::env::temp_dir(),
            }),
            redactor: Redactor::new(true, &SecretScope::from_pairs([("X", "hunter2-hunter2")])),
            clock: Arc::new(SystemClock),
            tasks: Tasks::new(),
        })
    }

    #[tokio::test]
    async fn what_the_file_tools_of_a_turn_change_can_be_undone() {
        let kept = tempfile::tempdir().unwrap();
        let snapshots = snapshots(kept.path());
        let bench = Bench::with(crate::file_tools(), |services| services.snapshots = snapshots.clone());
        bench.write("old.txt", "one\ntwo\n");
        let cx = bench.cx();
        for (tool, arguments) in [
            ("read_file", json!({ "path": "old.txt" })),
            ("write_file", json!({ "path": "new.txt", "content": "x\n" })),
            ("patch", json!({ "path": "old.txt", "old_string": "two", "new_string": "2" })),
            // Refused, so it leaves nothing.
            ("write_file", json!({ "path": "bad.json", "content": "{" })),
        ] {
            bench.dispatcher.call(cx.clone(), &call(tool, &arguments.to_string())).await;
        }
        assert_eq!(bench.read("old.txt"), "one\n2\n");

        let session = SessionId::parse("s1").unwrap();
        let listed = snapshots.list(&session, 0).await.unwrap();
        assert_eq!(listed.len(), 1);
        assert_eq!(listed[0].reason, "write_file new.txt (2 bytes)");
        assert_eq!(listed[0].turn.as_deref(), Some(cx.turn_id.as_str()));
        assert_eq!(listed[0].files.len(), 2);
        let undone = snapshots.restore(&session, RestoreRequest::default()).await.unwrap();
        assert_eq!((undone.restored.len(), undone.removed.len(), undone.kept.len()), (1, 1, 0));
        assert_eq!(bench.read("old.txt"), "one\ntwo\n");
        assert!(!bench.root.join("new.txt").exists());

        bench.dispatcher.forget_session(&session).await.unwrap();
        assert_eq!(snapshots.list(&session, 0).await.unwrap(), []);
    }
}
