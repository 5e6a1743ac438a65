//! Stage 10: what a call is about to change is kept, so that it can be undone (spec 40 §5.10).

use std::path::{Path, PathBuf};

use super::policy::Judged;
use crate::services::ToolCx;
use crate::tool::OwnedEffect;
use crate::workspace::real_path;

/// Tells the checkpoints which directories the call will write in. Never stops the call.
pub(super) async fn run(judged: &Judged, cx: &ToolCx) {
    let directories = written_directories(&judged.effects);
    if !directories.is_empty() {
        let borrowed: Vec<&Path> = directories.iter().map(PathBuf::as_path).collect();
        cx.services.checkpoints.keep(&cx.turn_id, &borrowed).await;
    }
}

fn written_directories(effects: &[OwnedEffect]) -> Vec<PathBuf> {
    let mut directories: Vec<PathBuf> = effects
        .iter()
        .filter_map(|effect| match effect {
            OwnedEffect::Write { path } | OwnedEffect::CrossProfileWrite { path } => {
                real_path(path).ok()?.parent().map(Path::to_owned)
            }
            OwnedEffect::Read { .. } | OwnedEffect::Command { .. } => None,
        })
        .collect();
    directories.sort_unstable();
    directories.dedup();
    directories
}
