//! Stage 10: what a call is about to change is kept, so that it can be undone (spec 40 §5.10).

use std::path::Path;

use super::policy::Judged;
use crate::services::ToolCx;
use crate::tool::OwnedEffect;

/// Tells the checkpoints which directories the call will write in. Never stops the call.
pub(super) async fn run(judged: &Judged, cx: &ToolCx) {
    let directories = written_directories(&judged.effects);
    if !directories.is_empty() {
        cx.services.checkpoints.keep(&cx.turn_id, &directories).await;
    }
}

fn written_directories(effects: &[OwnedEffect]) -> Vec<&Path> {
    let mut directories: Vec<&Path> = effects
        .iter()
        .filter_map(|effect| match effect {
            OwnedEffect::Write { path } | OwnedEffect::CrossProfileWrite { path } => path.parent(),
            OwnedEffect::Read { .. } | OwnedEffect::Command { .. } => None,
        })
        .collect();
    directories.sort_unstable();
    directories.dedup();
    directories
}
