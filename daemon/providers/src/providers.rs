//! The parts that all calls of a process share, and which of them a route needs.

use std::sync::Arc;

use async_trait::async_trait;
use hermes_core::Clock;
use hermes_runtime::Redactor;
use tokio_util::sync::CancellationToken;

use crate::chat::ChatCompletions;
use crate::failure::{CallError, FailureClass};
use crate::http::Http;
use crate::local::{self, LocalServer};
use crate::mode::ApiMode;
use crate::offline::Offline;
use crate::provider::{CallRequest, ModelResponse, Provider, StreamSink};
use crate::route::Route;
use crate::watch::NOTICE_EVERY;

/// What calls need from outside.
#[derive(Debug, Clone)]
pub struct HttpSettings {
    /// Masks secrets in error texts.
    pub redactor: Redactor,
    /// Reads dates in `Retry-After`, and tells the time offline.
    pub clock: Arc<dyn Clock>,
}

/// The providers of one process, with their HTTP client. Cheap to make: the client is built at the
/// first call, and its TLS roots are loaded only when a call leaves this machine.
#[derive(Debug)]
pub struct Providers {
    http: Arc<Http>,
    redactor: Redactor,
    chat: Arc<dyn Provider>,
    offline: Arc<dyn Provider>,
    /// Takes every call, whatever its route.
    only: Option<Arc<dyn Provider>>,
}

impl Providers {
    /// Opens no connection and builds no client yet: the first call does.
    pub fn new(settings: HttpSettings) -> Self {
        let HttpSettings { redactor, clock } = settings;
        let http = Arc::new(Http::default());
        let chat =
            ChatCompletions::new(Arc::clone(&http), redactor.clone(), Arc::clone(&clock), NOTICE_EVERY);
        let offline = Offline::new(redactor.clone(), clock);
        Self { http, redactor, chat: Arc::new(chat), offline: Arc::new(offline), only: None }
    }

    /// Hands every call to `provider`: for tests that need no socket.
    #[must_use]
    pub fn with_only(self, provider: Arc<dyn Provider>) -> Self {
        Self { only: Some(provider), ..self }
    }

    /// The provider that speaks the route's API mode.
    pub fn provider_for(&self, route: &Route) -> Arc<dyn Provider> {
        if let Some(only) = &self.only {
            return Arc::clone(only);
        }
        match route.api_mode {
            ApiMode::ChatCompletions => Arc::clone(&self.chat),
            ApiMode::Offline => Arc::clone(&self.offline),
            ApiMode::AnthropicMessages | ApiMode::CodexResponses => {
                Arc::new(Unsupported { redactor: self.redactor.clone() })
            }
        }
    }

    /// Model servers on this machine, by their usual ports. Takes milliseconds when there is none,
    /// and at most a few seconds.
    pub async fn find_local_servers(&self) -> Vec<LocalServer> {
        let Ok(root) = reqwest::Url::parse("http://127.0.0.1") else { return Vec::new() };
        match self.http.client_for(&root) {
            Ok(client) => local::find(client, local::USUAL_PORTS).await,
            Err(error) => {
                tracing::debug!(%error, "cannot look for local model servers");
                Vec::new()
            }
        }
    }
}

/// Answers for modes that resolution refuses; a route made by hand may still name one.
#[derive(Debug)]
struct Unsupported {
    redactor: Redactor,
}

#[async_trait]
impl Provider for Unsupported {
    async fn call(
        &self,
        request: CallRequest<'_>,
        _sink: &mut dyn StreamSink,
        _cancel: &CancellationToken,
    ) -> Result<ModelResponse, CallError> {
        let route = request.route;
        let message = format!("this version does not support API mode `{}` yet", route.api_mode);
        Err(CallError::new(FailureClass::Config, &message, route, &self.redactor))
    }
}
