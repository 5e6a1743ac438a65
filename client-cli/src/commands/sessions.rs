//! `sessions list` and `sessions show`.

use hermes_client::Client;
use hermes_core::{Clock as _, Instant, SystemClock};
use hermes_proto::v1;
use serde_json::json;

use super::Desk;
use crate::args::SessionsCommand;
use crate::exit::Exit;
use crate::failure::{Failure, Outcome};
use crate::output::{Column, Output, ago, render_table};

/// Most sessions that the daemon gives at once.
const PAGE: u32 = 500;
/// Longest title in the table, in characters.
const TITLE_CHARS: usize = 60;
/// Longest tool result that `show` prints for people, in lines.
const RESULT_LINES: usize = 12;

pub(super) async fn run(desk: &Desk<'_>, command: SessionsCommand, output: &mut Output) -> Outcome<Exit> {
    crate::profile::prepare(desk.home)?;
    let client = desk.connector.ensure().await?;
    match command {
        SessionsCommand::List { json, source, limit, workspace } => {
            let workspace = workspace.map(|dir| absolute(desk, &dir)).transpose()?;
            let sessions = list(&client, source, limit, workspace).await?;
            if json {
                output.line(&serde_json::to_value(&sessions).unwrap_or_default().to_string())?;
            } else if sessions.is_empty() {
                output.note("no sessions");
            } else {
                for line in table(&sessions, SystemClock.now(), output.style().columns) {
                    output.line(&line)?;
                }
            }
        }
        SessionsCommand::Show { reference, json } => {
            let (session, rows) = get(&client, reference).await?;
            if json {
                output.line(&json!({"session": session, "rows": rows}).to_string())?;
            } else {
                show(&session, &rows, output)?;
            }
        }
    }
    Ok(Exit::Success)
}

/// Sessions know their directory by its real path.
fn absolute(desk: &Desk<'_>, dir: &std::path::Path) -> Outcome<String> {
    let joined = desk.around.cwd.clone().unwrap_or_default().join(dir);
    let real = joined.canonicalize().unwrap_or(joined);
    let text = real.to_str().map(str::to_owned);
    text.ok_or_else(|| Failure::usage(format!("{} is not a UTF-8 path", dir.display())).into())
}

async fn list(
    client: &Client,
    source: Option<String>,
    limit: u32,
    workspace: Option<String>,
) -> Outcome<Vec<v1::SessionSummary>> {
    let mut sessions: Vec<v1::SessionSummary> = Vec::new();
    loop {
        let have = u32::try_from(sessions.len()).unwrap_or(u32::MAX);
        let wanted = limit.saturating_sub(have).min(PAGE);
        if wanted == 0 {
            return Ok(sessions);
        }
        let request = v1::ListSessionsRequest {
            source: source.clone(),
            limit: wanted,
            offset: have,
            workspace: workspace.clone(),
            text: None,
            include_archived: false,
        };
        let page = client.list_sessions(request).await?.sessions;
        let last = page.len() < wanted as usize;
        sessions.extend(page);
        if last {
            return Ok(sessions);
        }
    }
}

async fn get(client: &Client, reference: String) -> Outcome<(v1::SessionSummary, Vec<v1::Row>)> {
    let mut rows: Vec<v1::Row> = Vec::new();
    let mut reference = reference;
    loop {
        let request = v1::GetSessionRequest {
            reference: reference.clone(),
            with_rows: true,
            after_message_id: rows.last().map_or(0, |row| row.id),
            limit: 0,
        };
        let part = client.get_session(request).await?;
        let summary = part.summary.unwrap_or_default();
        let more = part.more_rows && !part.rows.is_empty();
        rows.extend(part.rows);
        if !more {
            return Ok((summary, rows));
        }
        // `latest` may be another one by now.
        reference.clone_from(&summary.id);
    }
}

fn table(sessions: &[v1::SessionSummary], now: Instant, columns: Option<usize>) -> Vec<String> {
    const COLUMNS: [Column; 6] = [
        Column { title: "ID", flexible: false, expendable: 0 },
        Column { title: "TITLE", flexible: true, expendable: 0 },
        Column { title: "SOURCE", flexible: false, expendable: 3 },
        Column { title: "MODEL", flexible: false, expendable: 4 },
        Column { title: "MESSAGES", flexible: false, expendable: 2 },
        Column { title: "ACTIVE", flexible: false, expendable: 1 },
    ];
    let rows: Vec<Vec<String>> = sessions
        .iter()
        .map(|session| {
            let active = if session.running { "running".into() } else { ago(session.last_active, now) };
            vec![
                session.id.clone(),
                name(session),
                session.source.clone(),
                session.model.clone().unwrap_or_default(),
                session.message_count.to_string(),
                active,
            ]
        })
        .collect();
    render_table(&COLUMNS, &rows, columns)
}

/// The title, else how the session began.
fn name(session: &v1::SessionSummary) -> String {
    let text = session.title.as_deref().filter(|title| !title.is_empty()).unwrap_or(&session.preview);
    text.chars().take(TITLE_CHARS).collect()
}

fn show(session: &v1::SessionSummary, rows: &[v1::Row], output: &mut Output) -> Outcome<()> {
    let usage = session.usage.clone().unwrap_or_default();
    output.line(&format!("{}  {}", session.id, name(session)))?;
    let model = session.model.as_deref().unwrap_or("no model");
    let about = format!(
        "{} · {model} · {} messages · {} tokens · {}",
        session.source,
        session.message_count,
        usage.total_tokens,
        ago(session.last_active, SystemClock.now())
    );
    output.dim_line(&about)?;
    if let Some(cwd) = &session.cwd {
        output.dim_line(cwd)?;
    }
    for row in rows {
        output.line("")?;
        let head = match (row.role.as_str(), row.tool_name.as_deref()) {
            ("tool", Some(tool)) => format!("tool {tool}"),
            (role, _) => role.to_owned(),
        };
        output.dim_line(&format!("── {head}"))?;
        let limit = if row.role == "tool" { RESULT_LINES } else { usize::MAX };
        let mut lines = row.content.lines();
        for line in lines.by_ref().take(limit) {
            output.line(line)?;
        }
        match lines.count() {
            0 => {}
            more => output.dim_line(&format!("… {more} more lines"))?,
        }
        for call in &row.tool_calls {
            output.dim_line(&format!("→ {} {}", call.name, call.arguments))?;
        }
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::output::Style;
    use crate::output::testing::captured;

    fn session() -> v1::SessionSummary {
        v1::SessionSummary {
            id: "20260101_120000_0a1b2c3d".into(),
            source: "cli".into(),
            title: Some("Fix the build".into()),
            preview: "please fix the build".into(),
            model: Some("fake".into()),
            started_at: 1_000.0,
            last_active: 1_600.0,
            message_count: 4,
            tool_call_count: 1,
            api_call_count: 2,
            cwd: Some("/work".into()),
            usage: Some(v1::Usage {
                input_tokens: 10,
                output_tokens: 2,
                total_tokens: 12,
                ..Default::default()
            }),
            ..Default::default()
        }
    }

    #[test]
    fn the_list_fits_into_forty_columns() {
        let untitled = v1::SessionSummary { title: None, running: true, ..session() };
        let sessions = [session(), untitled];
        let now = Instant(5_200.0);
        let text =
            [None, Some(80), Some(40)].map(|columns| table(&sessions, now, columns).join("\n")).join("\n\n");
        insta::assert_snapshot!(text);
    }

    #[test]
    fn the_json_of_a_session_has_title_counts_and_tokens() {
        insta::assert_json_snapshot!(session());
    }

    #[test]
    fn a_transcript_shows_calls_and_shortens_results() {
        let call =
            v1::ToolCall { id: "c".into(), name: "read_file".into(), arguments: "{\"path\":\"a\"}".into() };
        let row = |role: &str, content: &str| v1::Row {
            role: role.into(),
            content: content.into(),
            ..Default::default()
        };
        let rows = [
            row("user", "what is in a?"),
            v1::Row { tool_calls: vec![call], ..row("assistant", "") },
            v1::Row { tool_name: Some("read_file".into()), ..row("tool", &"line\n".repeat(20)) },
            row("assistant", "Lines."),
        ];
        let (mut output, out, _) = captured(Style::default());
        // The age depends on the clock; a session of the future is always `now`.
        let session = v1::SessionSummary { last_active: 9e12, ..session() };
        show(&session, &rows, &mut output).unwrap();
        insta::assert_snapshot!(out.text());
    }
}
