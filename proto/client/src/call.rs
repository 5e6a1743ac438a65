//! A connection to a daemon, its calls, and why a call can fail.

use std::path::{Path, PathBuf};
use std::sync::Arc;

use hermes_proto::v1::{
    self, control_client, policy_client, prompts_client, sessions_client, tools_client, turns_client,
};
use hermes_proto::{MAX_MESSAGE_BYTES, PROTOCOL};
use tonic::transport::Channel;
use tonic::{Code, Response, Status, Streaming};

/// Room that the frame around a text may need; a text above the rest cannot be sent.
const FRAME_BYTES: usize = 64 * 1024;

/// Metadata of an error's trailers in which the daemon says what the user can do.
const HINT_KEY: &str = "hermes-hint-bin";

/// What kind of refusal a call met; the text is in the error.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum CallErrorKind {
    /// A value of the request is not acceptable: the caller's mistake.
    Invalid,
    NotFound,
    /// The connection's scope does not allow it.
    Denied,
    /// The daemon cannot do this as things stand (no model, read-only database, a reference that matches
    /// several sessions, …).
    Refused,
    /// A queue is full or a limit is reached.
    Busy,
    /// The message is larger than a transport carries.
    TooLarge,
    /// The daemon does not know this call: it is older than this client.
    Unknown,
    /// The daemon is on its way out.
    ShuttingDown,
    /// The connection broke, or the daemon ended: the call may or may not have been taken.
    Lost,
    Internal,
}

/// A call that did not succeed.
#[derive(Debug, Clone, thiserror::Error)]
#[error("cannot {doing}: {message}")]
pub struct CallError {
    doing: &'static str,
    kind: CallErrorKind,
    message: String,
    hint: Option<String>,
}

impl CallError {
    /// What a caller can do about it depends on this alone.
    pub fn kind(&self) -> CallErrorKind {
        self.kind
    }

    /// The daemon's own words, without what was tried.
    pub fn message(&self) -> &str {
        &self.message
    }

    /// What the user can do now.
    pub fn hint(&self) -> Option<&str> {
        let general = match self.kind {
            CallErrorKind::Unknown => Some("restart the daemon: hermes-cli daemon restart"),
            CallErrorKind::Lost | CallErrorKind::ShuttingDown => {
                Some("send it again; the next call starts the daemon anew")
            }
            CallErrorKind::Internal => Some("the details are in the log: hermes-cli logs errors"),
            _ => None,
        };
        self.hint.as_deref().or(general)
    }

    /// Whether the same call may succeed over a new connection. A call that changes something must
    /// carry an id that makes it safe to repeat.
    pub fn is_lost(&self) -> bool {
        matches!(self.kind, CallErrorKind::Lost | CallErrorKind::ShuttingDown)
    }

    pub(crate) fn from_status(doing: &'static str, status: &Status) -> Self {
        let hint = status
            .metadata()
            .get_bin(HINT_KEY)
            .and_then(|value| value.to_bytes().ok())
            .and_then(|bytes| String::from_utf8(bytes.to_vec()).ok())
            .filter(|hint| !hint.is_empty());
        let kind = kind_of(status);
        let message = match kind {
            CallErrorKind::Lost => "the connection to the daemon broke".to_owned(),
            _ if status.message().is_empty() => status.code().description().to_owned(),
            _ => without_hint(status.message(), hint.as_deref()).to_owned(),
        };
        Self { doing, kind, message, hint }
    }

    pub(crate) fn too_large(doing: &'static str, bytes: usize) -> Self {
        let limit = MAX_MESSAGE_BYTES;
        Self {
            doing,
            kind: CallErrorKind::TooLarge,
            message: format!("the text has {bytes} bytes, and a message may have {limit} (16 MiB)"),
            hint: Some("save it to a file and name the file in the prompt".into()),
        }
    }

    pub(crate) fn lost(doing: &'static str, message: impl Into<String>) -> Self {
        Self { doing, kind: CallErrorKind::Lost, message: message.into(), hint: None }
    }
}

/// A daemon's message ends with its hint, for clients that show nothing else.
fn without_hint<'a>(message: &'a str, hint: Option<&str>) -> &'a str {
    let shorter = hint.and_then(|hint| message.strip_suffix(hint)?.strip_suffix("; "));
    shorter.unwrap_or(message)
}

fn kind_of(status: &Status) -> CallErrorKind {
    use std::error::Error as _;
    match status.code() {
        // tonic reports both of its own size checks this way, with a source or without.
        Code::OutOfRange => CallErrorKind::TooLarge,
        // What the daemon answered has no source; what the transport met has one.
        _ if status.source().is_some() => CallErrorKind::Lost,
        Code::InvalidArgument => CallErrorKind::Invalid,
        Code::NotFound => CallErrorKind::NotFound,
        Code::PermissionDenied | Code::Unauthenticated => CallErrorKind::Denied,
        Code::FailedPrecondition | Code::AlreadyExists => CallErrorKind::Refused,
        Code::ResourceExhausted => CallErrorKind::Busy,
        Code::Unimplemented => CallErrorKind::Unknown,
        Code::Unavailable => CallErrorKind::ShuttingDown,
        Code::Cancelled => CallErrorKind::Lost,
        // A transport that ends between two frames leaves no source; its texts are tonic's own.
        Code::Unknown => CallErrorKind::Lost,
        _ => CallErrorKind::Internal,
    }
}

/// A connection on which hello was said. A cheap clone; all clones share the connection.
#[derive(Debug, Clone)]
pub struct Client {
    channel: Channel,
    hello: Arc<v1::HelloResponse>,
    socket: Arc<Path>,
}

impl Client {
    pub(crate) fn new(channel: Channel, hello: v1::HelloResponse, socket: PathBuf) -> Self {
        Self { channel, hello: Arc::new(hello), socket: socket.into() }
    }

    /// How the daemon introduced itself.
    pub fn hello(&self) -> &v1::HelloResponse {
        &self.hello
    }

    /// The socket that this connection goes through.
    pub fn socket(&self) -> &Path {
        &self.socket
    }

    /// How the daemon is.
    pub async fn status(&self) -> Result<v1::StatusResponse, CallError> {
        answer("ask the daemon's status", control(&self.channel).status(v1::StatusRequest {}).await)
    }

    /// Asks the daemon to end; it answers before it does.
    pub async fn shutdown(&self, request: v1::ShutdownRequest) -> Result<v1::ShutdownResponse, CallError> {
        answer("stop the daemon", control(&self.channel).shutdown(request).await)
    }

    /// Begins a session. It has no row until its first input.
    pub async fn create_session(
        &self,
        request: v1::CreateSessionRequest,
    ) -> Result<v1::SessionDetail, CallError> {
        answer("begin a session", self.sessions().create(request).await)
    }

    /// Finds a session by id, beginning of an id, title or `latest`, and loads it.
    pub async fn open_session(
        &self,
        request: v1::OpenSessionRequest,
    ) -> Result<v1::SessionDetail, CallError> {
        answer("open the session", self.sessions().open(request).await)
    }

    /// The sessions that are stored, newest first.
    pub async fn list_sessions(
        &self,
        request: v1::ListSessionsRequest,
    ) -> Result<v1::ListSessionsResponse, CallError> {
        answer("list sessions", self.sessions().list(request).await)
    }

    /// One session, with its rows when they are asked for.
    pub async fn get_session(
        &self,
        request: v1::GetSessionRequest,
    ) -> Result<v1::GetSessionResponse, CallError> {
        answer("read the session", self.sessions().get(request).await)
    }

    /// Words in all messages.
    pub async fn search(&self, request: v1::SearchRequest) -> Result<v1::SearchResponse, CallError> {
        answer("search the sessions", self.sessions().search(request).await)
    }

    pub(crate) async fn attach(
        &self,
        request: v1::AttachRequest,
    ) -> Result<Streaming<v1::AttachFrame>, CallError> {
        answer("watch the session", self.sessions().attach(request).await)
    }

    /// Sends one input. With a `client_message_id` it may be sent again, also over another connection:
    /// there will be one turn.
    pub async fn submit(&self, request: v1::SubmitRequest) -> Result<v1::SubmitResponse, CallError> {
        const DOING: &str = "send the prompt";
        if request.text.len() > MAX_MESSAGE_BYTES - FRAME_BYTES {
            return Err(CallError::too_large(DOING, request.text.len()));
        }
        answer(DOING, self.turns().submit(request).await)
    }

    /// Gives a text to the turn that runs.
    pub async fn steer(&self, request: v1::SteerRequest) -> Result<v1::SteerResponse, CallError> {
        answer("steer the turn", self.turns().steer(request).await)
    }

    /// Stops the turn that runs.
    pub async fn interrupt(&self, request: v1::InterruptRequest) -> Result<v1::InterruptResponse, CallError> {
        answer("interrupt the turn", self.turns().interrupt(request).await)
    }

    /// How a turn stands, and its result when it has ended.
    pub async fn turn(&self, request: v1::GetTurnRequest) -> Result<v1::GetTurnResponse, CallError> {
        answer("read the turn", self.turns().get(request).await)
    }

    /// Answers a question of the agent. `expired` means that somebody else did, or that it is over.
    pub async fn answer_prompt(&self, request: v1::AnswerRequest) -> Result<v1::AnswerResponse, CallError> {
        let mut prompts = prompts_client::PromptsClient::new(self.channel.clone());
        answer("answer the question", prompts.answer(request).await)
    }

    /// What people have allowed for more than once.
    pub async fn list_approvals(&self) -> Result<v1::ListApprovalsResponse, CallError> {
        answer("list approvals", self.policy().list_approvals(v1::ListApprovalsRequest {}).await)
    }

    /// Takes an approval back.
    pub async fn revoke_approval(&self, id: String) -> Result<v1::RevokeApprovalResponse, CallError> {
        answer("revoke the approval", self.policy().revoke_approval(v1::RevokeApprovalRequest { id }).await)
    }

    /// Edits of the settings that are not in force until they are accepted.
    pub async fn list_waiting_edits(&self) -> Result<v1::ListWaitingEditsResponse, CallError> {
        let request = v1::ListWaitingEditsRequest {};
        answer("list waiting edits", self.policy().list_waiting_edits(request).await)
    }

    /// Puts waiting edits into force, as they were shown.
    pub async fn accept_edits(
        &self,
        request: v1::AcceptEditsRequest,
    ) -> Result<v1::AcceptEditsResponse, CallError> {
        answer("accept the edits", self.policy().accept_edits(request).await)
    }

    /// Writes one key of the profile's settings.
    pub async fn set_config(
        &self,
        request: v1::SetConfigRequest,
    ) -> Result<v1::SetConfigResponse, CallError> {
        answer("write the setting", self.policy().set_config(request).await)
    }

    /// What can be undone in a session, newest first.
    pub async fn list_snapshots(
        &self,
        request: v1::ListSnapshotsRequest,
    ) -> Result<v1::ListSnapshotsResponse, CallError> {
        answer("list snapshots", self.tools().list_snapshots(request).await)
    }

    /// What a restore would change.
    pub async fn diff_snapshot(
        &self,
        request: v1::DiffSnapshotRequest,
    ) -> Result<v1::DiffSnapshotResponse, CallError> {
        answer("compare with the snapshot", self.tools().diff_snapshot(request).await)
    }

    /// Puts files back as they were before a turn.
    pub async fn restore_snapshot(
        &self,
        request: v1::RestoreSnapshotRequest,
    ) -> Result<v1::RestoreSnapshotResponse, CallError> {
        answer("undo", self.tools().restore_snapshot(request).await)
    }

    /// Background processes of one session, or of all.
    pub async fn list_processes(
        &self,
        request: v1::ListProcessesRequest,
    ) -> Result<v1::ListProcessesResponse, CallError> {
        answer("list background processes", self.tools().list_processes(request).await)
    }

    fn policy(&self) -> policy_client::PolicyClient<Channel> {
        policy_client::PolicyClient::new(self.channel.clone())
            .max_decoding_message_size(MAX_MESSAGE_BYTES)
            .max_encoding_message_size(MAX_MESSAGE_BYTES)
    }

    fn tools(&self) -> tools_client::ToolsClient<Channel> {
        tools_client::ToolsClient::new(self.channel.clone())
            .max_decoding_message_size(MAX_MESSAGE_BYTES)
            .max_encoding_message_size(MAX_MESSAGE_BYTES)
    }

    fn sessions(&self) -> sessions_client::SessionsClient<Channel> {
        sessions_client::SessionsClient::new(self.channel.clone())
            .max_decoding_message_size(MAX_MESSAGE_BYTES)
            .max_encoding_message_size(MAX_MESSAGE_BYTES)
    }

    fn turns(&self) -> turns_client::TurnsClient<Channel> {
        turns_client::TurnsClient::new(self.channel.clone())
            .max_decoding_message_size(MAX_MESSAGE_BYTES)
            .max_encoding_message_size(MAX_MESSAGE_BYTES)
    }
}

/// The first call on a connection.
pub(crate) async fn hello(
    channel: &Channel,
    client: String,
    version: String,
) -> Result<v1::HelloResponse, CallError> {
    let request = v1::HelloRequest { protocol: PROTOCOL, client, version };
    answer("greet the daemon", control(channel).hello(request).await)
}

fn control(channel: &Channel) -> control_client::ControlClient<Channel> {
    control_client::ControlClient::new(channel.clone()).max_decoding_message_size(MAX_MESSAGE_BYTES)
}

fn answer<T>(doing: &'static str, result: Result<Response<T>, Status>) -> Result<T, CallError> {
    result.map(Response::into_inner).map_err(|status| CallError::from_status(doing, &status))
}

#[cfg(test)]
mod tests {
    use super::*;
    use tonic::metadata::MetadataValue;

    #[test]
    fn what_the_daemon_answers_keeps_its_words_and_its_hint() {
        let mut status = Status::not_found("no session `abc`; try `sessions list`");
        status
            .metadata_mut()
            .insert_bin(HINT_KEY, MetadataValue::from_bytes("try `sessions list`".as_bytes()));
        let error = CallError::from_status("open the session", &status);
        assert_eq!(error.kind(), CallErrorKind::NotFound);
        assert_eq!(error.to_string(), "cannot open the session: no session `abc`");
        assert_eq!(error.hint(), Some("try `sessions list`"));
        assert!(!error.is_lost());
    }

    #[test]
    fn what_the_transport_meets_is_a_lost_connection() {
        let broken = std::io::Error::from(std::io::ErrorKind::BrokenPipe);
        let error = CallError::from_status("send the prompt", &Status::from_error(Box::new(broken)));
        assert_eq!(error.kind(), CallErrorKind::Lost);
        assert!(error.is_lost());
    }

    #[test]
    fn codes_map_to_kinds() {
        let table = [
            (Code::InvalidArgument, CallErrorKind::Invalid),
            (Code::NotFound, CallErrorKind::NotFound),
            (Code::PermissionDenied, CallErrorKind::Denied),
            (Code::FailedPrecondition, CallErrorKind::Refused),
            (Code::ResourceExhausted, CallErrorKind::Busy),
            (Code::Unavailable, CallErrorKind::ShuttingDown),
            (Code::OutOfRange, CallErrorKind::TooLarge),
            (Code::Unimplemented, CallErrorKind::Unknown),
            (Code::Internal, CallErrorKind::Internal),
        ];
        for (code, kind) in table {
            assert_eq!(kind_of(&Status::new(code, "x")), kind, "{code:?}");
        }
    }
}
