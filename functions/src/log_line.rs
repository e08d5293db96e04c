//! The form of a log line: one JSON object that names the tenant, the app, the install, the workflow and the job at its
//! top, where the saved queries of the tenant stack look for them.

use std::fmt;

use freehold_app::subject;
use serde_json::{Map, Value};
use tracing::{Event, Subscriber};
use tracing_subscriber::fmt::format::{self, Format, Json, Writer};
use tracing_subscriber::fmt::{FmtContext, FormatEvent, FormatFields};
use tracing_subscriber::registry::LookupSpan;

/// The names at the top of a line, with the field of an event that has the same meaning. The field of the event counts
/// more than the span of the work.
const NAMES: [(&str, &str); 4] =
    [("app", "app.name"), ("install", "install.id"), ("workflow", "workflow.id"), ("job", "job.id")];

/// Formats the events of one tenant's function.
pub(crate) struct LogLine {
    tenant: String,
    inner: Format<Json, ()>,
}

impl LogLine {
    pub(crate) fn of(tenant: String) -> Self {
        // The span of the work is in the list of spans, so it is not written a second time as the current span.
        let inner = format::json().without_time().with_target(false).with_current_span(false);
        Self { tenant, inner }
    }

    /// Returns the object `line` with the names at its top.
    fn with_names(&self, mut line: Map<String, Value>) -> Map<String, Value> {
        let work = work_of(&mut line);
        let fields = line.get("fields").and_then(Value::as_object);
        let found = NAMES.map(|(name, field)| {
            let own = fields.and_then(|fields| fields.get(field)).or_else(|| work.get(name));
            own.map(|value| (name.to_owned(), value.clone()))
        });
        line.extend(found.into_iter().flatten());
        line.insert("tenant".to_owned(), Value::from(self.tenant.as_str()));
        line
    }
}

impl<S, N> FormatEvent<S, N> for LogLine
where
    S: Subscriber + for<'a> LookupSpan<'a>,
    N: for<'a> FormatFields<'a> + 'static,
{
    fn format_event(&self, ctx: &FmtContext<'_, S, N>, mut writer: Writer<'_>, event: &Event<'_>) -> fmt::Result {
        let mut text = String::new();
        self.inner.format_event(ctx, Writer::new(&mut text), event)?;
        let line = serde_json::from_str(&text).map_err(|_| fmt::Error)?;
        let named = serde_json::to_string(&self.with_names(line)).map_err(|_| fmt::Error)?;
        writeln!(writer, "{named}")
    }
}

/// Removes the spans of the work from the list of spans, and returns their fields. The innermost span counts.
fn work_of(line: &mut Map<String, Value>) -> Map<String, Value> {
    let Some(Value::Array(spans)) = line.remove("spans") else { return Map::new() };
    let is_work = |span: &Value| span.get("name").and_then(Value::as_str) == Some(subject::SPAN);
    let (work, others): (Vec<Value>, Vec<Value>) = spans.into_iter().partition(is_work);
    if !others.is_empty() {
        line.insert("spans".to_owned(), Value::Array(others));
    }
    let mut names = Map::new();
    for span in work {
        if let Value::Object(fields) = span {
            names.extend(fields);
        }
    }
    names
}

#[cfg(test)]
mod tests {
    use std::sync::{Arc, Mutex};

    use tracing_subscriber::filter::{LevelFilter, Targets};
    use tracing_subscriber::fmt::format::JsonFields;
    use tracing_subscriber::layer::{Layer as _, SubscriberExt as _};

    use super::*;

    /// Collects what is written.
    #[derive(Clone, Default)]
    struct Lines(Arc<Mutex<Vec<u8>>>);

    impl std::io::Write for Lines {
        fn write(&mut self, bytes: &[u8]) -> std::io::Result<usize> {
            self.0.lock().unwrap().extend_from_slice(bytes);
            Ok(bytes.len())
        }

        fn flush(&mut self) -> std::io::Result<()> {
            Ok(())
        }
    }

    /// Returns the lines that `work` logs at this level.
    fn lines_of(level: LevelFilter, work: impl FnOnce()) -> Vec<Value> {
        let lines = Lines::default();
        let writer = lines.clone();
        let logs = tracing_subscriber::fmt::layer()
            .fmt_fields(JsonFields::new())
            .event_format(LogLine::of("acme".into()))
            .with_writer(move || writer.clone())
            .with_filter(Targets::new().with_default(level));
        tracing::subscriber::with_default(tracing_subscriber::registry().with(logs), work);
        let written = String::from_utf8(lines.0.lock().unwrap().clone()).unwrap();
        written.lines().map(|line| serde_json::from_str(line).unwrap()).collect()
    }

    fn names(line: &Value) -> [&str; 5] {
        ["tenant", "app", "install", "workflow", "job"].map(|name| line[name].as_str().unwrap_or_default())
    }

    #[test]
    fn the_names_of_an_event_and_of_its_work_are_at_the_top() {
        let lines = lines_of(LevelFilter::INFO, || {
            let work = subject::span();
            let _entered = work.enter();
            work.record("app", "shop").record("install", "globex").record("job", "job_1");
            tracing::info!(job.id = %"job_2", workflow.id = %"wf_1", "Started");
        });

        assert_eq!(names(&lines[0]), ["acme", "shop", "globex", "wf_1", "job_2"]);
        assert_eq!(lines[0]["fields"]["message"], "Started");
        assert_eq!((lines[0]["level"].as_str(), lines[0].get("spans")), (Some("INFO"), None));
    }

    #[test]
    fn a_line_outside_of_work_names_the_tenant_and_keeps_other_spans_and_fields() {
        let lines = lines_of(LevelFilter::INFO, || {
            let _invoked = tracing::info_span!("invoke", requestId = "r-1").entered();
            tracing::info!(stuck_workflows = 2, "Swept");
        });

        assert_eq!(names(&lines[0]), ["acme", "", "", "", ""]);
        assert_eq!(lines[0]["spans"][0]["requestId"], "r-1");
        assert_eq!(lines[0]["fields"]["stuck_workflows"], 2);
    }

    #[test]
    fn a_filter_of_errors_alone_keeps_the_names() {
        let lines = lines_of(LevelFilter::ERROR, || {
            let _entered = subject::of_workflow(&"wf_00000000000000000001".parse().unwrap()).entered();
            tracing::warn!("It failed once");
            tracing::error!("It failed");
        });

        assert_eq!(lines.len(), 1);
        assert_eq!(names(&lines[0]), ["acme", "", "", "wf_00000000000000000001", ""]);
    }
}
