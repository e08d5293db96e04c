//! The fault injector: makes chosen calls fail, before or after their effect.

use std::sync::Mutex;

use super::lock::lock;
use crate::ports::PortError;

/// The point at which a call fails: before its effect, or after it, so that only the answer is lost.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Fault {
    Before,
    AnswerLost,
}

/// The function that decides, from a call's name, whether and how the call fails.
type Decide = Box<dyn FnMut(&'static str) -> Option<Fault> + Send>;

/// Injects faults into calls. A call succeeds when no function is set or when the function returns `None`.
#[derive(Default)]
pub struct Faults(Mutex<Option<Decide>>);

impl std::fmt::Debug for Faults {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str("Faults")
    }
}

impl Faults {
    /// Sets `decide` as the function for all later calls.
    pub fn set(&self, decide: impl FnMut(&'static str) -> Option<Fault> + Send + 'static) {
        *lock(&self.0) = Some(Box::new(decide));
    }

    fn next(&self, what: &'static str) -> Option<Fault> {
        lock(&self.0).as_mut().and_then(|decide| decide(what))
    }

    /// Performs `effect` unless the call must fail before it. Doubles of ports outside this module use it too.
    ///
    /// # Errors
    /// Transient when the call must fail.
    pub fn run<T>(&self, what: &'static str, effect: impl FnOnce() -> T) -> Result<T, PortError> {
        let lost = || PortError::Transient { what: what.to_owned(), reason: "injected".to_owned() };
        match self.next(what) {
            None => Ok(effect()),
            Some(Fault::Before) => Err(lost()),
            Some(Fault::AnswerLost) => {
                effect();
                Err(lost())
            }
        }
    }
}
