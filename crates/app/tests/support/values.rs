//! Collects the values of metrics that use cases record.

use std::sync::{Arc, Mutex};

use freehold_app::metrics::{Metric, TARGET, parse_values};
use tracing::field::{Field, Visit};
use tracing::span::{Attributes, Id, Record};
use tracing::subscriber::DefaultGuard;
use tracing::{Event, Metadata, Subscriber};

/// One event that recorded values.
#[derive(Debug, Clone, Default, PartialEq)]
pub(crate) struct Recorded {
    pub(crate) values: Vec<(Metric, u64)>,
    pub(crate) app: Option<String>,
    pub(crate) install: Option<String>,
    pub(crate) workflow: Option<String>,
    pub(crate) job: Option<String>,
}

/// The values that this thread records while this exists.
pub(crate) struct Values {
    events: Arc<Mutex<Vec<Recorded>>>,
    _guard: DefaultGuard,
}

impl Values {
    pub(crate) fn collect() -> Self {
        let events = Arc::default();
        let guard = tracing::subscriber::set_default(Collector(Arc::clone(&events)));
        Self { events, _guard: guard }
    }

    /// Returns the events since the last call.
    pub(crate) fn take(&self) -> Vec<Recorded> {
        std::mem::take(&mut *self.events.lock().unwrap())
    }
}

/// Returns the sum of the values of a metric.
pub(crate) fn sum(events: &[Recorded], metric: Metric) -> u64 {
    values(events, metric).into_iter().sum()
}

/// Returns the values of a metric.
pub(crate) fn values(events: &[Recorded], metric: Metric) -> Vec<u64> {
    let all = events.iter().flat_map(|event| &event.values);
    all.filter(|(of, _)| *of == metric).map(|(_, value)| *value).collect()
}

struct Collector(Arc<Mutex<Vec<Recorded>>>);

impl Subscriber for Collector {
    fn enabled(&self, metadata: &Metadata<'_>) -> bool {
        metadata.target() == TARGET
    }

    fn new_span(&self, _: &Attributes<'_>) -> Id {
        Id::from_u64(1)
    }

    fn record(&self, _: &Id, _: &Record<'_>) {}

    fn record_follows_from(&self, _: &Id, _: &Id) {}

    fn event(&self, event: &Event<'_>) {
        let mut recorded = Recorded::default();
        event.record(&mut recorded);
        self.0.lock().unwrap().push(recorded);
    }

    fn enter(&self, _: &Id) {}

    fn exit(&self, _: &Id) {}
}

impl Visit for Recorded {
    fn record_str(&mut self, field: &Field, value: &str) {
        let name = Some(value.to_owned());
        match field.name() {
            "values" => self.values = parse_values(value),
            "app" => self.app = name,
            "install" => self.install = name,
            "workflow" => self.workflow = name,
            "job" => self.job = name,
            other => panic!("a value has no field `{other}`"),
        }
    }

    fn record_debug(&mut self, field: &Field, _: &dyn std::fmt::Debug) {
        panic!("field `{field}` of a value is not a text");
    }
}
