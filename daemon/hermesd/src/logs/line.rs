//! The form of a log line: local time, level, where, the spans with their ids, the message, its fields.

use std::fmt;
use std::sync::Arc;

use hermes_core::Clock;
use jiff::tz::TimeZone;
use tracing::{Event, Subscriber};
use tracing_subscriber::fmt::format::Writer;
use tracing_subscriber::fmt::{FmtContext, FormatEvent, FormatFields, FormattedFields};
use tracing_subscriber::registry::LookupSpan;

/// Writes one event as one line.
#[derive(Debug)]
pub(super) struct LineFormat {
    clock: Arc<dyn Clock>,
    zone: TimeZone,
}

impl LineFormat {
    pub(super) fn new(clock: Arc<dyn Clock>) -> Self {
        Self { clock, zone: TimeZone::system() }
    }

    fn time(&self) -> jiff::ZonedDateTime {
        #[expect(clippy::cast_possible_truncation, reason = "milliseconds since 1970 fit an i64")]
        let millis = (self.clock.now().unix_seconds() * 1e3) as i64;
        jiff::Timestamp::from_millisecond(millis).unwrap_or_default().to_zoned_datetime(self.zone.clone())
    }
}

impl<S, N> FormatEvent<S, N> for LineFormat
where
    S: Subscriber + for<'a> LookupSpan<'a>,
    N: for<'a> FormatFields<'a> + 'static,
{
    fn format_event(
        &self,
        context: &FmtContext<'_, S, N>,
        mut writer: Writer<'_>,
        event: &Event<'_>,
    ) -> fmt::Result {
        let meta = event.metadata();
        let time = self.time();
        write!(
            writer,
            "{} {:<5} {}",
            time.strftime("%Y-%m-%dT%H:%M:%S%.3f%:z"),
            meta.level(),
            meta.target()
        )?;
        for span in context.event_scope().into_iter().flat_map(tracing_subscriber::registry::Scope::from_root)
        {
            write!(writer, " {}", span.name())?;
            let extensions = span.extensions();
            if let Some(fields) = extensions.get::<FormattedFields<N>>().filter(|fields| !fields.is_empty()) {
                write!(writer, "{{{fields}}}")?;
            }
        }
        writer.write_str(": ")?;
        context.field_format().format_fields(writer.by_ref(), event)?;
        writeln!(writer)
    }
}
