//! `undo`: puts files back as they were before a turn of the agent (spec 40 §5.10).
//!
//! What will change and what stays is shown first; then a person says yes, or `--yes` was given.

use std::path::{Path, PathBuf};

use hermes_client::Client;
use hermes_core::{Clock as _, Instant, SystemClock};
use hermes_proto::v1;

use super::{Desk, ask};
use crate::args::UndoFlags;
use crate::exit::Exit;
use crate::failure::{Failure, Outcome};
use crate::output::{Column, Output, ago, render_table};

pub(super) async fn run(desk: &Desk<'_>, flags: &UndoFlags, output: &mut Output) -> Outcome<Exit> {
    crate::profile::prepare(desk.home)?;
    let client = desk.connector.ensure().await?;
    let session_id = session(&client, &flags.session).await?;
    if flags.list {
        return list(&client, session_id, output).await;
    }
    let file = flags.file.as_deref().map(|file| absolute(desk, file)).transpose()?;
    let request =
        v1::RestoreSnapshotRequest { session_id, id: flags.id.clone(), file, all: flags.all, dry_run: true };
    let plan = client.restore_snapshot(request.clone()).await?;
    let snapshot = plan.snapshot.clone().unwrap_or_default();
    if flags.diff {
        return diff(&client, &request, &snapshot, output).await;
    }
    for line in head(&snapshot, SystemClock.now()) {
        output.line(&line)?;
    }
    for line in plan_lines(&plan) {
        output.line(&line)?;
    }
    if plan.restored.is_empty() && plan.removed.is_empty() {
        return nothing_to_do(desk, &plan, output);
    }
    if flags.dry_run {
        return Ok(Exit::Success);
    }
    if !flags.yes && !ask::confirm(desk, "Undo this?", output)? {
        output.note("nothing was changed");
        return Ok(Exit::Failure);
    }
    // The snapshot that was shown, whatever has become the newest meanwhile.
    let shown = snapshot.id.clone();
    let request = v1::RestoreSnapshotRequest { id: Some(snapshot.id), dry_run: false, ..request };
    let done = client.restore_snapshot(request).await?;
    // What was shown as kept is not told twice; what changed its fate between is.
    for kept in done.kept.iter().filter(|kept| !plan.kept.contains(kept)) {
        output.note(&format!("kept {}: {}", kept.path, kept.reason));
    }
    output.line(&summary(&done))?;
    if let Some(id) = &done.undone_by {
        let profile =
            if desk.home.is_named() { format!(" -p {}", desk.home.profile()) } else { String::new() };
        let session =
            if flags.session == "latest" { String::new() } else { format!(" --session {}", flags.session) };
        let undo = format!("{}{profile} undo{session}", desk.around.program());
        output.dim_line(&format!("take it back: {undo} {id}"))?;
        if !done.kept.is_empty() {
            output.dim_line(&format!("what was kept too: {undo} {shown} --all"))?;
        }
    }
    let failed = done.kept.iter().any(|kept| !plan.kept.contains(kept));
    Ok(if failed { Exit::Failure } else { Exit::Success })
}

/// The id of the session that is meant.
async fn session(client: &Client, reference: &str) -> Outcome<String> {
    let request = v1::GetSessionRequest { reference: reference.to_owned(), ..Default::default() };
    Ok(client.get_session(request).await?.summary.unwrap_or_default().id)
}

/// Snapshots know files by their real paths; what does not exist any more is named as it was.
fn absolute(desk: &Desk<'_>, file: &Path) -> Outcome<String> {
    let joined = desk.around.cwd.clone().unwrap_or_default().join(file);
    let text = real(&joined).into_os_string().into_string();
    text.map_err(|_| Failure::usage(format!("{} is not a UTF-8 path", file.display())).into())
}

/// Follows the links of the part that exists.
fn real(path: &Path) -> PathBuf {
    path.ancestors()
        .find_map(|part| {
            let rest = path.strip_prefix(part).ok()?;
            let real = part.canonicalize().ok()?;
            Some(if rest.as_os_str().is_empty() { real } else { real.join(rest) })
        })
        .unwrap_or_else(|| path.to_owned())
}

async fn list(client: &Client, session_id: String, output: &mut Output) -> Outcome<Exit> {
    let snapshots = client.list_snapshots(v1::ListSnapshotsRequest { session_id, limit: 0 }).await?.snapshots;
    if snapshots.is_empty() {
        output.note("no tool of this session has changed a file, or its snapshots are gone");
        return Ok(Exit::Success);
    }
    for line in table(&snapshots, SystemClock.now(), output.style().columns) {
        output.line(&line)?;
    }
    Ok(Exit::Success)
}

async fn diff(
    client: &Client,
    request: &v1::RestoreSnapshotRequest,
    snapshot: &v1::Snapshot,
    output: &mut Output,
) -> Outcome<Exit> {
    let wanted = v1::DiffSnapshotRequest {
        session_id: request.session_id.clone(),
        id: snapshot.id.clone(),
        file: request.file.clone(),
    };
    let diff = client.diff_snapshot(wanted).await?;
    if diff.diff.is_empty() {
        output.note("nothing differs from what was before the turn");
    }
    for line in diff.diff.lines() {
        match line.chars().next() {
            Some('+') => output.painted_line(line, "32")?,
            Some('-') => output.painted_line(line, "31")?,
            _ => output.line(line)?,
        }
    }
    if diff.truncated {
        output.note("there is more; look at one file with --file PATH");
    }
    Ok(Exit::Success)
}

fn nothing_to_do(desk: &Desk<'_>, plan: &v1::RestoreSnapshotResponse, output: &mut Output) -> Outcome<Exit> {
    if plan.kept.is_empty() {
        output.note("everything is as it was before this turn already");
        return Ok(Exit::Success);
    }
    let program = desk.around.program();
    let hint = format!("--all overwrites edits too; other snapshots: {program} undo --list");
    Err(Failure::general("nothing can be put back").hint(hint).into())
}

fn head(snapshot: &v1::Snapshot, now: Instant) -> [String; 1] {
    [format!("snapshot {} · {} · {}", snapshot.id, ago(snapshot.created_at, now), snapshot.reason)]
}

/// One line per file: what happens to it.
fn plan_lines(plan: &v1::RestoreSnapshotResponse) -> Vec<String> {
    let restored = plan.restored.iter().map(|path| format!("  restore  {}", one_line(path)));
    let removed =
        plan.removed.iter().map(|path| format!("  remove   {} (the agent made it)", one_line(path)));
    let kept = plan.kept.iter().map(|kept| format!("  keep     {}: {}", one_line(&kept.path), kept.reason));
    restored.chain(removed).chain(kept).collect()
}

/// A name with a line feed stays one line.
fn one_line(path: &str) -> String {
    path.chars().map(|c| if c == '\n' || c == '\t' { '\u{fffd}' } else { c }).collect()
}

fn summary(done: &v1::RestoreSnapshotResponse) -> String {
    let parts =
        [(done.restored.len(), "restored"), (done.removed.len(), "removed"), (done.kept.len(), "kept")];
    let parts: Vec<String> =
        parts.iter().filter(|(count, _)| *count > 0).map(|(count, what)| format!("{count} {what}")).collect();
    if parts.is_empty() { "nothing was changed".into() } else { parts.join(", ") }
}

fn table(snapshots: &[v1::Snapshot], now: Instant, columns: Option<usize>) -> Vec<String> {
    const COLUMNS: [Column; 6] = [
        Column { title: "ID", flexible: false, expendable: 0 },
        Column { title: "FIRST CHANGE", flexible: true, expendable: 0 },
        Column { title: "FILES", flexible: false, expendable: 2 },
        Column { title: "LINES", flexible: false, expendable: 3 },
        Column { title: "WHEN", flexible: false, expendable: 1 },
        Column { title: "STATE", flexible: false, expendable: 4 },
    ];
    let rows: Vec<Vec<String>> = snapshots
        .iter()
        .map(|snapshot| {
            let sum = |count: fn(&v1::SnapshotFile) -> u32| -> u64 {
                snapshot.files.iter().map(|file| u64::from(count(file))).sum()
            };
            let edited = snapshot.files.iter().filter(|file| file.edited_since).count();
            let state = match (snapshot.restored, edited) {
                (true, _) => "undone".into(),
                (false, 0) => String::new(),
                (false, edited) => format!("{edited} edited since"),
            };
            vec![
                snapshot.id.clone(),
                snapshot.reason.clone(),
                snapshot.files.len().to_string(),
                format!("+{} -{}", sum(|file| file.added_lines), sum(|file| file.removed_lines)),
                ago(snapshot.created_at, now),
                state,
            ]
        })
        .collect();
    render_table(&COLUMNS, &rows, columns)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn snapshot(id: &str, restored: bool) -> v1::Snapshot {
        let file = |path: &str, edited_since: bool| v1::SnapshotFile {
            path: path.into(),
            change: "changed".into(),
            added_lines: 3,
            removed_lines: 1,
            edited_since,
            not_kept: false,
        };
        v1::Snapshot {
            id: id.into(),
            created_at: 1_000.0,
            reason: "patch src/main.rs".into(),
            files: vec![file("/w/src/main.rs", false), file("/w/README.md", !restored)],
            restored,
            ..Default::default()
        }
    }

    #[test]
    fn the_list_fits_into_forty_columns() {
        let snapshots = [snapshot("0a1b2c3d4e5f6071", false), snapshot("1122334455667788", true)];
        let text = [None, Some(80), Some(40)]
            .map(|columns| table(&snapshots, Instant(4_700.0), columns).join("\n"))
            .join("\n\n");
        insta::assert_snapshot!(text);
    }

    #[test]
    fn the_plan_names_every_file_and_what_happens_to_it() {
        let plan = v1::RestoreSnapshotResponse {
            restored: vec!["/w/a".into(), "/w/odd\nname".into()],
            removed: vec!["/w/made".into()],
            kept: vec![v1::KeptFile { path: "/w/mine".into(), reason: "was edited since".into() }],
            ..Default::default()
        };
        let lines: Vec<String> = head(&snapshot("0a1b2c3d4e5f6071", false), Instant(4_700.0))
            .into_iter()
            .chain(plan_lines(&plan))
            .collect();
        insta::assert_snapshot!(format!("{}\n{}", lines.join("\n"), summary(&plan)));
        assert_eq!(summary(&v1::RestoreSnapshotResponse::default()), "nothing was changed");
    }

    #[test]
    fn a_file_that_is_gone_is_named_by_where_it_was() {
        let dir = tempfile::tempdir().unwrap();
        let base = dir.path().canonicalize().unwrap();
        std::fs::create_dir(base.join("real")).unwrap();
        std::os::unix::fs::symlink("real", base.join("link")).unwrap();
        assert_eq!(real(&base.join("link/gone/x")), base.join("real/gone/x"));
    }
}
