//! `Control`: who the daemon is, how it is, its logs and settings, and its end.

use std::collections::VecDeque;

use hermes_proto::PROTOCOL;
use hermes_proto::v1 as wire;
use hermes_proto::v1::control_server::Control;
use hermes_proto::v1::profile_event::Payload;
use tokio::sync::broadcast::error::RecvError;
use tonic::{Request, Response, Status};

use super::{Answers, ControlService, ended, grant};
use crate::convert::{read_control, write_sessions};
use crate::peer::Grant;
use crate::{error, limit};

/// What this daemon can do beyond the first version of the contract.
const CAPABILITIES: [&str; 2] = ["row_batches", "log_follow"];
/// Said to a client that the agent's own tools started.
const CONFINED: &str = "confined";

#[tonic::async_trait]
impl Control for ControlService {
    async fn hello(
        &self,
        request: Request<wire::HelloRequest>,
    ) -> Result<Response<wire::HelloResponse>, Status> {
        let Grant { scope, confined, .. } = grant(&request)?;
        let confined = confined.as_ref().map(|_| CONFINED.to_owned());
        let identity = &self.0.deps.identity;
        read_control::hello(request.get_ref(), identity.version)?;
        // A client that stays for one turn only must find what the files say now, and hear of what waits.
        self.0.deps.policy.look().await;
        Ok(Response::new(wire::HelloResponse {
            protocol: PROTOCOL,
            version: identity.version.into(),
            epoch: identity.epoch.to_string(),
            profile: identity.profile.clone(),
            capabilities: CAPABILITIES.map(str::to_owned).into_iter().chain(confined).collect(),
            scope: scope.as_str().into(),
            pid: identity.pid,
            on_demand: identity.on_demand,
            settings_changed: self.0.deps.settings_files.changed(),
        }))
    }

    async fn status(
        &self,
        _request: Request<wire::StatusRequest>,
    ) -> Result<Response<wire::StatusResponse>, Status> {
        let deps = &self.0.deps;
        let engine = deps.engine.status();
        let counts = deps.db.counts().await.map_err(|error| error::storage(&error))?;
        let (provider, model) = deps.model.current();
        Ok(Response::new(wire::StatusResponse {
            version: deps.identity.version.into(),
            epoch: deps.identity.epoch.to_string(),
            profile: deps.identity.profile.clone(),
            home: deps.identity.home.display().to_string(),
            pid: deps.identity.pid,
            started_at: deps.identity.started_at.unix_seconds(),
            live_sessions: engine.live_sessions,
            active_turns: engine.active_turns,
            clients: deps.clients.count(),
            state: if engine.draining { "draining" } else { "running" }.into(),
            model,
            provider,
            read_only_reason: deps.storage.read_only.clone(),
            warnings: deps.storage.warnings.iter().cloned().chain(self.0.waiting_edits()).collect(),
            session_count: counts.sessions,
            message_count: counts.messages,
            queued_inputs: engine.queued_inputs,
            on_demand: deps.identity.on_demand,
        }))
    }

    type WatchStream = Answers<wire::ProfileEvent>;

    async fn watch(
        &self,
        request: Request<wire::WatchRequest>,
    ) -> Result<Response<Self::WatchStream>, Status> {
        let shown = (self.0.confined.clone(), grant(&request)?.clone());
        let changes = self.0.deps.engine.changes();
        let notices = self.0.deps.notices.subscribe();
        let clock = self.0.deps.clock.clone();
        let stop = self.0.stop.clone();
        let state = Some((changes, notices, shown, clock, stop));
        let events = futures_util::stream::unfold(state, |state| async move {
            let (mut changes, mut notices, shown, clock, stop) = state?;
            let (confined, grant) = &shown;
            loop {
                let event = tokio::select! {
                    biased;
                    notice = notices.recv() => match notice {
                        Ok(notice) => wire::ProfileEvent {
                            time: notice.time.unix_seconds(),
                            payload: Some(Payload::Notice(notice.text.to_string())),
                        },
                        // Notices and changes are hints: a slow watcher goes on with the newest.
                        Err(RecvError::Lagged(_)) => continue,
                        Err(RecvError::Closed) => return None,
                    },
                    change = changes.recv() => match change {
                        Ok(change) if !confined.shows(grant, &change.summary.id) => continue,
                        Ok(change) => {
                            let summary = write_sessions::summary(change.summary, change.running);
                            wire::ProfileEvent {
                                time: clock.now().unix_seconds(),
                                payload: Some(Payload::SessionChanged(Box::new(summary))),
                            }
                        }
                        Err(RecvError::Lagged(_)) => continue,
                        Err(RecvError::Closed) => return None,
                    },
                    () = stop.cancelled() => return Some((Err(ended()), None)),
                };
                return Some((Ok(event), Some((changes, notices, shown, clock, stop))));
            }
        });
        Ok(Response::new(Box::pin(events)))
    }

    type LogsStream = Answers<wire::LogLine>;

    async fn logs(&self, request: Request<wire::LogsRequest>) -> Result<Response<Self::LogsStream>, Status> {
        let request = request.get_ref();
        let feed = &self.0.deps.logs;
        let failed = |path: &std::path::Path, error: &std::io::Error| {
            Status::internal(format!("cannot read {}: {error}", path.display()))
        };
        let (lines, follower) = feed.tail(request.limit).await.map_err(|error| failed(&feed.path, &error))?;
        let follower = request.follow.then_some(follower);
        let state = Some((VecDeque::from(lines), follower, feed.path.clone(), self.0.stop.clone()));
        let lines = futures_util::stream::unfold(state, move |state| async move {
            let (mut waiting, mut follower, path, stop) = state?;
            loop {
                if let Some(line) = waiting.pop_front() {
                    return Some((Ok(wire::LogLine { line }), Some((waiting, follower, path, stop))));
                }
                let more = tokio::select! {
                    more = follower.as_mut()?.next() => more,
                    () = stop.cancelled() => return Some((Err(ended()), None)),
                };
                match more {
                    Ok(more) => waiting = more?.into(),
                    Err(error) => return Some((Err(failed(&path, &error)), None)),
                }
            }
        });
        Ok(Response::new(Box::pin(lines)))
    }

    async fn config_get(
        &self,
        request: Request<wire::ConfigGetRequest>,
    ) -> Result<Response<wire::ConfigGetResponse>, Status> {
        let key = read_control::config_key(request.get_ref())?;
        let value = self.0.deps.settings.borrow().masked_at(&key).as_ref().map(error::json);
        limit::reply(wire::ConfigGetResponse { value }, "ask for a key below it")
    }

    async fn config_show(
        &self,
        _request: Request<wire::ConfigShowRequest>,
    ) -> Result<Response<wire::ConfigShowResponse>, Status> {
        let masked = self.0.deps.settings.borrow().masked();
        limit::reply(wire::ConfigShowResponse { value: Some(error::json(&masked)) }, "ask for one key")
    }

    async fn shutdown(
        &self,
        request: Request<wire::ShutdownRequest>,
    ) -> Result<Response<wire::ShutdownResponse>, Status> {
        let command = read_control::shutdown(request.get_ref())?;
        let deps = &self.0.deps;
        let active_turns = deps.engine.status().active_turns;
        // Full or closed means that the daemon is ending already.
        let _ = deps.shutdown.try_send(command);
        Ok(Response::new(wire::ShutdownResponse { active_turns }))
    }
}
