//! `Sessions`: making, finding, reading, watching.

use std::collections::VecDeque;

use hermes_engine::Watch;
use hermes_proto::v1 as wire;
use hermes_proto::v1::attach_frame::Frame;
use hermes_proto::v1::sessions_server::Sessions;
use hermes_state::ListFilter;
use tokio_util::sync::CancellationToken;
use tonic::{Request, Response, Status};

use super::{Answers, SessionsService, ended, grant};
use crate::convert::{read_sessions, write_events, write_rows, write_sessions};
use crate::{error, limit};

/// Rows read at once for one answer; more are asked for with `after_message_id`.
const ROWS_AT_ONCE: u32 = 2_000;

#[tonic::async_trait]
impl Sessions for SessionsService {
    async fn create(
        &self,
        request: Request<wire::CreateSessionRequest>,
    ) -> Result<Response<wire::SessionDetail>, Status> {
        let grant = grant(&request)?.clone();
        self.0.confined.may_create(&grant)?;
        let input = read_sessions::create(request.into_inner(), grant.principal.clone())?;
        let mut detail = self.0.deps.engine.create(input).await.map_err(|error| error::engine(&error))?;
        self.0.confined.created(&grant, &detail.summary.id);
        detail.warnings.extend(self.0.waiting_edits());
        Ok(Response::new(write_sessions::detail(detail)))
    }

    async fn open(
        &self,
        request: Request<wire::OpenSessionRequest>,
    ) -> Result<Response<wire::SessionDetail>, Status> {
        let grant = grant(&request)?.clone();
        let input = read_sessions::open(request.into_inner())?;
        self.0.confined.check_reference(&grant, &input.reference)?;
        let mut detail = self.0.deps.engine.open(input).await.map_err(|error| error::engine(&error))?;
        detail.warnings.extend(self.0.waiting_edits());
        Ok(Response::new(write_sessions::detail(detail)))
    }

    async fn list(
        &self,
        request: Request<wire::ListSessionsRequest>,
    ) -> Result<Response<wire::ListSessionsResponse>, Status> {
        let grant = grant(&request)?.clone();
        let filter: ListFilter = read_sessions::list(request.into_inner())?;
        let sessions = self.0.deps.engine.list(filter).await.map_err(|error| error::engine(&error))?;
        let sessions = sessions
            .into_iter()
            .filter(|(session, _)| self.0.confined.shows(&grant, &session.id))
            .map(|(session, running)| write_sessions::summary(session, running))
            .collect();
        limit::reply(wire::ListSessionsResponse { sessions }, "ask for fewer sessions at once")
    }

    async fn get(
        &self,
        request: Request<wire::GetSessionRequest>,
    ) -> Result<Response<wire::GetSessionResponse>, Status> {
        let grant = grant(&request)?.clone();
        let asked = read_sessions::get(request.into_inner(), ROWS_AT_ONCE)?;
        self.0.confined.check_reference(&grant, &asked.reference)?;
        let deps = &self.0.deps;
        let (summary, running, _) =
            deps.engine.get(&asked.reference, false).await.map_err(|error| error::engine(&error))?;
        let (rows, more_rows) = match asked.rows {
            Some(page) => {
                // One row more than asked for tells whether there are more.
                let read = deps.db.display_rows(&summary.id, page.after, page.limit.saturating_add(1)).await;
                write_rows::page(read.map_err(|error| error::storage(&error))?, page.limit)
            }
            None => (Vec::new(), false),
        };
        let summary = Some(write_sessions::summary(summary, running));
        Ok(Response::new(wire::GetSessionResponse { summary, rows, more_rows }))
    }

    async fn search(
        &self,
        request: Request<wire::SearchRequest>,
    ) -> Result<Response<wire::SearchResponse>, Status> {
        let grant = grant(&request)?.clone();
        let (query, most) = read_sessions::search(request.into_inner())?;
        let hits = self.0.deps.engine.search(&query, most).await.map_err(|error| error::engine(&error))?;
        let hits = hits
            .into_iter()
            .filter(|hit| self.0.confined.shows(&grant, &hit.session_id))
            .map(write_sessions::hit)
            .collect();
        limit::reply(wire::SearchResponse { hits }, "ask for fewer hits")
    }

    type AttachStream = Answers<wire::AttachFrame>;

    async fn attach(
        &self,
        request: Request<wire::AttachRequest>,
    ) -> Result<Response<Self::AttachStream>, Status> {
        let grant = grant(&request)?.clone();
        let mut input = read_sessions::attach(request.into_inner(), &grant)?;
        self.0.confined.check(&grant, &input.session_id)?;
        if self.0.confined.holds(&input.session_id) {
            // Nobody approves anything in a session that the agent itself started.
            input.can_answer.clear();
        }
        let (attached, watch) =
            self.0.deps.engine.attach(input).await.map_err(|error| error::engine(&error))?;
        let opening = write_sessions::attached(attached);
        Ok(Response::new(Box::pin(frames(opening, watch, self.0.stop.clone()))))
    }
}

/// The opening frames, then events as they come. Dropping the stream drops the watch, which detaches the
/// client. At the daemon's end what waits is still sent, then a word to connect again.
fn frames(
    opening: VecDeque<wire::AttachFrame>,
    watch: Watch,
    stop: CancellationToken,
) -> impl futures_util::Stream<Item = Result<wire::AttachFrame, Status>> {
    let state = Some((opening, watch, stop));
    futures_util::stream::unfold(state, |state| async move {
        let (mut opening, mut watch, stop) = state?;
        if let Some(frame) = opening.pop_front() {
            return Some((Ok(frame), Some((opening, watch, stop))));
        }
        tokio::select! {
            biased;
            event = watch.next() => {
                // Too slow even for the events that must arrive: the client attaches again and learns of its gap.
                let event = event?;
                let frame = write_sessions::frame(Frame::Event(write_events::event(&event)));
                Some((Ok(frame), Some((opening, watch, stop))))
            }
            () = stop.cancelled() => Some((Err(ended()), None)),
        }
    })
}
