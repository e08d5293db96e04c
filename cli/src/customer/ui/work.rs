//! The change that a person started on a page. It continues while the browser loads other pages, and there is at most
//! one at a time.

use std::cell::RefCell;
use std::rc::Rc;

use super::super::answer::Answer;
use super::action::Action;
use super::source::Source;
use crate::error::{Error, Result};

/// The state of the newest change.
#[derive(Debug, Default)]
pub(super) enum State {
    #[default]
    Idle,
    Running(Action),
    Ended(Action, Result<Answer>),
}

/// The newest change that a person started.
#[derive(Debug, Default)]
pub(super) struct Work(RefCell<State>);

impl Work {
    /// Starts a change on the current thread's `LocalSet`, unless one is running.
    pub(super) fn start(self: &Rc<Self>, action: Action, source: &Rc<Source>) -> Result<()> {
        if self.is_running() {
            return Err(
                Error::conflict("another change has not ended yet").or("wait for its end, then send the form again")
            );
        }
        *self.0.borrow_mut() = State::Running(action.clone());
        let (work, source) = (Rc::clone(self), Rc::clone(source));
        tokio::task::spawn_local(async move {
            let result = action.perform(&source.own).await;
            *work.0.borrow_mut() = State::Ended(action, result);
        });
        Ok(())
    }

    /// Returns whether a change is running.
    pub(super) fn is_running(&self) -> bool {
        matches!(*self.0.borrow(), State::Running(_))
    }

    /// Returns what `of` makes of the state.
    pub(super) fn with_state<T>(&self, of: impl FnOnce(&State) -> T) -> T {
        of(&self.0.borrow())
    }
}
