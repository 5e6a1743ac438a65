//! Reads a command's output while it runs, through the chain: marker, escape sequences, UTF-8, bounds.

use std::path::PathBuf;
use std::time::Duration;

use tokio::io::{AsyncRead, AsyncReadExt as _};
use tokio::time::{Instant, sleep_until};
use tokio_util::sync::CancellationToken;

use super::ansi::AnsiStripper;
use super::decode::Utf8Decoder;
use super::marker::{Marker, MarkerFilter};
use super::output::OutputBuffer;
use super::spill::SpillLog;

const READ_BYTES: usize = 64 * 1024;
/// After the shell's exit, output that children still write is waited for this long (spec 40 §6.1) …
const DRAIN: Duration = Duration::from_millis(300);
/// … and no longer than this when nothing comes: what the shell wrote is in the pipe already.
const DRAIN_IDLE: Duration = Duration::from_millis(100);

/// What was read.
#[derive(Debug)]
pub(super) struct Collected {
    pub(super) text: String,
    pub(super) omitted: u64,
    /// The directory that the shell was in when it ended, if it could say so.
    pub(super) cwd: Option<PathBuf>,
    pub(super) full_log: Option<PathBuf>,
}

/// The reader of one command's output.
#[derive(Debug)]
pub(super) struct Pump {
    filter: MarkerFilter,
    stripper: AnsiStripper,
    decoder: Utf8Decoder,
    output: OutputBuffer,
    spill: Option<SpillLog>,
    spill_path: Option<PathBuf>,
    unmarked: Vec<u8>,
    visible: Vec<u8>,
    text: String,
}

impl Pump {
    /// A reader that keeps `cap` characters; when there are more, all of them go to `spill_path`.
    pub(super) fn new(marker: &Marker, cap: usize, spill_path: Option<PathBuf>) -> Self {
        Self {
            filter: MarkerFilter::new(marker),
            stripper: AnsiStripper::default(),
            decoder: Utf8Decoder::default(),
            output: OutputBuffer::new(cap),
            spill: None,
            spill_path,
            unmarked: Vec::new(),
            visible: Vec::new(),
            text: String::new(),
        }
    }

    /// Reads until the pipe ends, or, once `exited` is cancelled, until the drain time is over: a child that
    /// lives on may hold the pipe for ever.
    pub(super) async fn run(
        mut self,
        mut pipe: impl AsyncRead + Unpin,
        exited: &CancellationToken,
    ) -> Collected {
        let mut buffer = vec![0; READ_BYTES];
        let mut drain: Option<Instant> = None;
        let mut until = Instant::now();
        loop {
            let read = tokio::select! {
                biased;
                () = exited.cancelled(), if drain.is_none() => {
                    let now = Instant::now();
                    drain = Some(now + DRAIN);
                    until = now + DRAIN_IDLE;
                    continue;
                }
                read = pipe.read(&mut buffer) => read,
                () = sleep_until(until), if drain.is_some() => break,
            };
            match read {
                Ok(0) | Err(_) => break,
                Ok(length) => self.take(buffer.get(..length).unwrap_or_default()).await,
            }
            if let Some(end) = drain {
                let now = Instant::now();
                if now >= end {
                    break;
                }
                until = end.min(now + DRAIN_IDLE);
            }
        }
        self.finish().await
    }

    async fn take(&mut self, bytes: &[u8]) {
        self.filter.filter(bytes, &mut self.unmarked);
        self.stripper.strip(&self.unmarked, &mut self.visible);
        self.decoder.decode(&self.visible, &mut self.text);
        self.unmarked.clear();
        self.visible.clear();
        self.keep().await;
    }

    /// Moves the decoded text to the output, and to the log from the moment the output overflows.
    async fn keep(&mut self) {
        if let Some(spill) = &mut self.spill {
            spill.write(&self.text).await;
        } else if !self.output.fits(&self.text)
            && let Some(path) = self.spill_path.take()
        {
            let mut spill = SpillLog::create(&path).await;
            if let Some((head, tail)) = self.output.whole() {
                spill.write(head).await;
                spill.write(tail).await;
            }
            spill.write(&self.text).await;
            self.spill = Some(spill);
        }
        self.output.push(&self.text);
        self.text.clear();
    }

    async fn finish(mut self) -> Collected {
        let cwd = self.filter.finish(&mut self.unmarked);
        self.stripper.strip(&self.unmarked, &mut self.visible);
        self.decoder.decode(&self.visible, &mut self.text);
        self.decoder.finish(&mut self.text);
        self.keep().await;
        let full_log = match self.spill {
            Some(spill) => spill.finish().await,
            None => None,
        };
        let (text, omitted) = self.output.finish();
        Collected { text, omitted, cwd, full_log }
    }
}
