//! Core → contract: sessions as lists and openings show them, and the first answer to an attach.

use std::collections::VecDeque;

use hermes_engine::{Attached, Inflight, SessionDetail};
use hermes_proto::v1 as wire;
use hermes_proto::v1::attach_frame::Frame;
use hermes_state::{SearchHit, SessionSummary};

use super::{write_events, write_rows, write_turns};

pub(crate) fn detail(detail: SessionDetail) -> wire::SessionDetail {
    let running = detail.info.running;
    wire::SessionDetail {
        summary: Some(summary(detail.summary, running)),
        info: Some(write_events::session_info(&detail.info)),
        created: detail.created,
        warnings: detail.warnings,
    }
}

pub(crate) fn summary(session: SessionSummary, running: bool) -> wire::SessionSummary {
    wire::SessionSummary {
        id: session.id.to_string(),
        source: session.source,
        title: session.title,
        preview: session.preview,
        model: session.model,
        started_at: session.started_at.unix_seconds(),
        last_active: session.last_active.unix_seconds(),
        message_count: session.message_count,
        tool_call_count: session.tool_call_count,
        api_call_count: session.api_call_count,
        cwd: session.cwd,
        git_branch: session.git_branch,
        usage: Some(write_turns::usage(&session.usage, session.estimated_cost_usd, session.cost_status)),
        running,
        end_reason: session.end_reason,
        archived: session.archived,
    }
}

pub(crate) fn hit(hit: SearchHit) -> wire::SearchHit {
    wire::SearchHit {
        session_id: hit.session_id.to_string(),
        message_id: hit.message_id.0,
        role: hit.role.as_str().to_owned(),
        snippet: hit.snippet,
        timestamp: hit.timestamp.unix_seconds(),
        title: hit.title,
    }
}

/// The frames that open an attach: `attached`, then the rows that did not fit into it.
pub(crate) fn attached(attached: Attached) -> VecDeque<wire::AttachFrame> {
    let mut groups = VecDeque::from(write_rows::frames(attached.rows));
    let first = wire::Attached {
        epoch: attached.epoch.to_string(),
        first_seq: attached.first_seq,
        last_seq: attached.last_seq,
        gap: attached.gap,
        rows: groups.pop_front().unwrap_or_default(),
        inflight: attached.inflight.map(inflight),
        pending_prompts: attached.pending_prompts.into_iter().map(write_events::pending).collect(),
        queue: attached.queue.iter().map(write_events::queued).collect(),
        info: Some(write_events::session_info(&attached.info)),
        more_rows: !groups.is_empty(),
    };
    let mut frames = VecDeque::from([frame(Frame::Attached(first))]);
    while let Some(rows) = groups.pop_front() {
        let more_rows = !groups.is_empty();
        frames.push_back(frame(Frame::Rows(wire::RowBatch { rows, more_rows })));
    }
    frames
}

pub(crate) fn frame(frame: Frame) -> wire::AttachFrame {
    wire::AttachFrame { frame: Some(frame) }
}

fn inflight(inflight: Inflight) -> wire::Inflight {
    wire::Inflight {
        turn_id: inflight.turn_id.to_string(),
        user: inflight.user,
        assistant: inflight.assistant,
        streaming: inflight.streaming,
    }
}

#[cfg(test)]
mod tests {
    use hermes_core::{Epoch, Instant, Message, MessageId, SessionInfo};

    use super::*;

    fn with_rows(count: i64, text: &str) -> Attached {
        let rows = (1..=count)
            .map(|id| Message { id: Some(MessageId(id)), ..Message::user(text, Instant(1.0)) })
            .collect();
        Attached {
            epoch: Epoch::from_wire("e"),
            first_seq: 1,
            last_seq: 9,
            gap: true,
            rows,
            inflight: None,
            pending_prompts: Vec::new(),
            queue: Vec::new(),
            info: SessionInfo::default(),
        }
    }

    #[test]
    fn a_short_gap_is_one_frame() {
        let frames = attached(with_rows(3, "hi"));
        let [wire::AttachFrame { frame: Some(Frame::Attached(first)) }] = frames.as_slices().0 else {
            panic!("{frames:?}")
        };
        assert_eq!((first.rows.len(), first.more_rows), (3, false));
    }

    #[test]
    fn a_long_gap_goes_on_in_row_frames_up_to_the_last() {
        let frames = attached(with_rows(10, &"x".repeat(2_000_000)));
        let mut ids = Vec::new();
        let mut more = Vec::new();
        for frame in frames {
            match frame.frame.unwrap() {
                Frame::Attached(first) => {
                    ids.extend(first.rows.iter().map(|row| row.id));
                    more.push(first.more_rows);
                }
                Frame::Rows(batch) => {
                    ids.extend(batch.rows.iter().map(|row| row.id));
                    more.push(batch.more_rows);
                }
                Frame::Event(event) => panic!("{event:?}"),
            }
        }
        assert_eq!(ids, (1..=10).collect::<Vec<_>>());
        assert_eq!(more.iter().filter(|more| !**more).count(), 1);
        assert_eq!(more.last(), Some(&false));
    }
}
