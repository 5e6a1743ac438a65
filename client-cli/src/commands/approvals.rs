//! `approvals list|revoke|accept`: what the agent may do unasked, and edits of the settings that would let it do
//! more (contract §7).

use hermes_core::{Clock as _, Instant, SystemClock};
use hermes_proto::v1;

use super::{Desk, ask};
use crate::args::ApprovalsCommand;
use crate::exit::Exit;
use crate::failure::{Failure, Outcome};
use crate::output::{Column, Output, ago, render_table};

pub(super) async fn run(desk: &Desk<'_>, command: ApprovalsCommand, output: &mut Output) -> Outcome<Exit> {
    crate::profile::prepare(desk.home)?;
    let client = desk.connector.ensure().await?;
    match command {
        ApprovalsCommand::List { json } => {
            let approvals = client.list_approvals().await?.approvals;
            if json {
                output.line(&serde_json::to_value(&approvals).unwrap_or_default().to_string())?;
            } else if approvals.is_empty() {
                output.note("nothing is allowed for more than once");
            } else {
                for line in table(&approvals, SystemClock.now(), output.style().columns) {
                    output.line(&line)?;
                }
            }
            Ok(Exit::Success)
        }
        ApprovalsCommand::Revoke { id } => {
            if !client.revoke_approval(id.clone()).await?.revoked {
                let failure = Failure::general(format!("there is no approval `{id}`"));
                return Err(failure.hint("see what there is: hermes-cli approvals list").into());
            }
            output.line(&format!("revoked {id}: the agent asks again"))?;
            Ok(Exit::Success)
        }
        ApprovalsCommand::Accept { yes } => {
            let edits = client.list_waiting_edits().await?.edits;
            if edits.is_empty() {
                output.note("no edit of config.yaml waits to be accepted");
                return Ok(Exit::Success);
            }
            output.line("These edits of config.yaml would let the agent do more, and are not in force:")?;
            for edit in &edits {
                for line in edit_lines(edit) {
                    output.line(&line)?;
                }
            }
            if !yes && !ask::confirm(desk, "Put them into force?", output)? {
                output.note("nothing was changed");
                return Ok(Exit::Failure);
            }
            // As they were shown: the daemon refuses what has changed since.
            let accepted = client.accept_edits(v1::AcceptEditsRequest { edits }).await?.accepted;
            output.line(&format!("in force now: {}", accepted.join(", ")))?;
            Ok(Exit::Success)
        }
    }
}

fn table(approvals: &[v1::StandingApproval], now: Instant, columns: Option<usize>) -> Vec<String> {
    const COLUMNS: [Column; 5] = [
        Column { title: "ID", flexible: false, expendable: 0 },
        Column { title: "WHAT", flexible: true, expendable: 0 },
        Column { title: "RULE", flexible: false, expendable: 2 },
        Column { title: "HOLDS", flexible: false, expendable: 1 },
        Column { title: "SINCE", flexible: false, expendable: 3 },
    ];
    let rows: Vec<Vec<String>> = approvals
        .iter()
        .map(|approval| {
            let holds = match &approval.session_id {
                Some(session) => format!("in {session}"),
                None => "always".into(),
            };
            vec![
                approval.id.clone(),
                approval.shape.clone(),
                approval.rule.clone(),
                holds,
                ago(approval.granted_at, now),
            ]
        })
        .collect();
    render_table(&COLUMNS, &rows, columns)
}

fn edit_lines(edit: &v1::WaitingEdit) -> [String; 3] {
    let shown = |value: &Option<v1::Json>| match value {
        Some(json) => json.raw.clone(),
        None => "(not set)".into(),
    };
    [
        format!("  {}", edit.key),
        format!("    in force  {}", shown(&edit.in_force)),
        format!("    in file   {}", shown(&edit.in_file)),
    ]
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_list_fits_into_forty_columns() {
        let standing = |id: &str, shape: &str, session: Option<&str>| v1::StandingApproval {
            id: id.into(),
            rule: "delete.recursive".into(),
            shape: shape.into(),
            session_id: session.map(str::to_owned),
            granted_at: 1_000.0,
        };
        let approvals = [
            standing("a1b2c3", "rm -rf ./build", None),
            standing("d4e5f6", "git push --force origin main\u{1b}[2J", Some("20260101_120000_0a1b2c3d")),
        ];
        let text = [None, Some(80), Some(40)]
            .map(|columns| table(&approvals, Instant(8_200.0), columns).join("\n"))
            .join("\n\n");
        insta::assert_snapshot!(text);
    }

    #[test]
    fn a_waiting_edit_shows_both_values() {
        let edit = v1::WaitingEdit {
            key: "approvals.mode".into(),
            in_force: Some(v1::Json { raw: "\"manual\"".into() }),
            in_file: Some(v1::Json { raw: "\"off\"".into() }),
        };
        insta::assert_snapshot!(edit_lines(&edit).join("\n"));
    }
}
