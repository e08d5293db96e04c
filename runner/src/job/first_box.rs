//! A box that was made in advance for the first program of a job. Its type is hidden here, because `sandbox` depends on
//! jobs, and a job must not depend on `sandbox`.

use std::any::Any;
use std::fmt;
use std::sync::{Arc, Mutex, PoisonError};

/// The box for the first program of a job, or empty. Clones share it.
#[derive(Clone, Default)]
pub struct FirstBox(Arc<Mutex<Option<Box<dyn Any + Send>>>>);

impl FirstBox {
    /// Holds `made` until a program takes it.
    pub fn new(made: impl Any + Send) -> Self {
        Self(Arc::new(Mutex::new(Some(Box::new(made)))))
    }

    /// Takes the box. Returns `None` when it was never made or is already taken.
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
