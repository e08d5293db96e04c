//! The reason why a private source could not be read, as the services outside of the box saw it.

use std::sync::{Arc, Mutex, PoisonError};

/// The first reason that a service noted. Clones share it.
#[derive(Debug, Clone, Default)]
pub(crate) struct Obstacle(Arc<Mutex<Option<String>>>);

impl Obstacle {
    /// Notes `reason`, unless there is an earlier one: later reasons are often consequences of the first.
    pub(crate) fn note(&self, reason: &str) {
        self.0.lock().unwrap_or_else(PoisonError::into_inner).get_or_insert_with(|| reason.to_owned());
    }

    /// Returns the first reason.
    pub(crate) fn first(&self) -> Option<String> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner).clone()
    }
}
