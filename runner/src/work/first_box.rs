//! The box that waits for the first program of a job. `sandbox` alone looks inside, because it depends on jobs, and a job
//! must not depend on what runs it.

use std::any::Any;
use std::fmt;
use std::sync::{Arc, Mutex, PoisonError};

/// At most one box, which the first program of a job takes.
#[derive(Clone, Default)]
pub struct FirstBox(Arc<Mutex<Option<Box<dyn Any + Send>>>>);

impl FirstBox {
    /// Keeps `made` until a program takes it.
    pub fn new(made: impl Any + Send) -> Self {
        Self(Arc::new(Mutex::new(Some(Box::new(made)))))
    }

    /// Takes the box; there is none for the second program.
    pub fn take<T: Any>(&self) -> Option<T> {
        let made = self.0.lock().unwrap_or_else(PoisonError::into_inner).take()?;
        made.downcast().ok().map(|made| *made)
    }
}

impl fmt::Debug for FirstBox {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("FirstBox")
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_box_is_taken_once_by_all_copies_together() {
        let first = FirstBox::new(7_u8);
        let copy = first.clone();

        assert_eq!((copy.take::<u8>(), first.take::<u8>()), (Some(7), None));
    }
}
