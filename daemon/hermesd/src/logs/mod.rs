//! The daemon's logs: `logs/agent.log` has everything, `logs/errors.log` warnings and worse (spec 70 §1).
//!
//! Lines go to the files as they happen, through the profile's redactor. What people and models say is
//! never logged; that is a rule for the callers, and the redactor only the second net.

mod filter;
mod line;
mod rotating;

use std::io;
use std::path::Path;
use std::sync::{Arc, OnceLock};

use hermes_core::Clock;
use hermes_runtime::Redactor;
use tokio::sync::watch;
use tracing::level_filters::LevelFilter;
use tracing_subscriber::layer::SubscriberExt as _;
use tracing_subscriber::{Layer as _, Registry};

pub(crate) use filter::{FilterError, LogLevel};

use filter::filter;
use line::LineFormat;
use rotating::{Bound, Rotating, SharedWriter};

/// The log of everything.
pub(crate) const AGENT_LOG: &str = "agent.log";
/// Warnings and errors only.
pub(crate) const ERRORS_LOG: &str = "errors.log";

/// What the logs need to be opened.
#[derive(Debug)]
pub(crate) struct LogInput<'a> {
    pub folder: &'a Path,
    /// A level, or levels by crate (`info,hermes_engine=debug`).
    pub levels: &'a str,
    pub max_size_mb: u32,
    pub backup_count: u32,
    /// Show the lines on standard error too.
    pub to_stderr: bool,
    pub clock: Arc<dyn Clock>,
}

/// The open logs.
#[derive(Debug, Clone)]
pub(crate) struct Logs {
    redactor: Arc<OnceLock<Redactor>>,
    written: watch::Receiver<u64>,
}

/// Why logging could not start.
#[derive(Debug, thiserror::Error)]
pub(crate) enum LogError {
    #[error("cannot open the log {path}")]
    Open { path: String, source: io::Error },
    #[error(transparent)]
    Filter(#[from] FilterError),
    #[error("logging was started twice")]
    Twice,
}

impl Logs {
    /// Opens the files and takes over the process's events.
    pub(crate) fn start(input: &LogInput<'_>) -> Result<Self, LogError> {
        let redactor = Arc::new(OnceLock::new());
        let (grew, written) = watch::channel(0);
        let agent = open(input, AGENT_LOG)?.watched(grew);
        let errors = open(input, ERRORS_LOG)?;
        let stderr = input.to_stderr.then(|| layer(io::stderr, &input.clock));
        let subscriber = Registry::default()
            .with(filter(input.levels)?)
            .with(layer(SharedWriter::new(agent, Arc::clone(&redactor)), &input.clock))
            .with(
                layer(SharedWriter::new(errors, Arc::clone(&redactor)), &input.clock)
                    .with_filter(LevelFilter::WARN),
            )
            .with(stderr);
        tracing::subscriber::set_global_default(subscriber).map_err(|_| LogError::Twice)?;
        Ok(Self { redactor, written })
    }

    /// From now on every line passes the redactor. Only the first call counts.
    pub(crate) fn redact_with(&self, redactor: Redactor) {
        let _ = self.redactor.set(redactor);
    }

    /// Changes whenever `agent.log` grew.
    pub(crate) fn written(&self) -> watch::Receiver<u64> {
        self.written.clone()
    }
}

fn open(input: &LogInput<'_>, name: &str) -> Result<Rotating, LogError> {
    let path = input.folder.join(name);
    let shown = path.display().to_string();
    let bound = Bound { max_bytes: u64::from(input.max_size_mb) * 1024 * 1024, backups: input.backup_count };
    Rotating::open(path, bound).map_err(|source| LogError::Open { path: shown, source })
}

fn layer<S, W>(writer: W, clock: &Arc<dyn Clock>) -> impl tracing_subscriber::Layer<S> + use<S, W>
where
    S: tracing::Subscriber + for<'a> tracing_subscriber::registry::LookupSpan<'a>,
    W: for<'w> tracing_subscriber::fmt::MakeWriter<'w> + Send + Sync + 'static,
{
    tracing_subscriber::fmt::layer()
        .with_ansi(false)
        .event_format(LineFormat::new(Arc::clone(clock)))
        .with_writer(writer)
}
