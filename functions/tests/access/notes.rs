//! The log lines of decisions, in the thread that installs [`Notes`] as a layer.

use std::fmt::Debug;
use std::sync::{Arc, Mutex};

use tracing::field::{Field, Visit};
use tracing::{Event, Subscriber};
use tracing_subscriber::Layer;
use tracing_subscriber::layer::Context;

/// The fields of one log line.
#[derive(Debug, Default)]
pub(crate) struct Note {
    pub(crate) is_allowed: Option<bool>,
    pub(crate) action: String,
    pub(crate) principal: String,
    /// The names of the deciding policies.
    pub(crate) policies: Vec<String>,
}

impl Visit for Note {
    fn record_bool(&mut self, field: &Field, value: bool) {
        if field.name() == "is_allowed" {
            self.is_allowed = Some(value);
        }
    }

    fn record_str(&mut self, field: &Field, value: &str) {
        match field.name() {
            "action" => self.action = value.to_owned(),
            "principal" => self.principal = value.to_owned(),
            "policies" => self.policies = value.split(',').filter(|name| !name.is_empty()).map(str::to_owned).collect(),
            _ => {}
        }
    }

    fn record_debug(&mut self, _: &Field, _: &dyn Debug) {}
}

/// The decisions that were logged.
#[derive(Debug, Clone, Default)]
pub(crate) struct Notes(Arc<Mutex<Vec<Note>>>);

impl Notes {
    /// Returns the decisions since the last call.
    pub(crate) fn take(&self) -> Vec<Note> {
        std::mem::take(&mut *self.0.lock().unwrap())
    }
}

impl<S: Subscriber> Layer<S> for Notes {
    fn on_event(&self, event: &Event<'_>, _: Context<'_, S>) {
        let mut note = Note::default();
        event.record(&mut note);
        if note.is_allowed.is_some() {
            self.0.lock().unwrap().push(note);
        }
    }
}
