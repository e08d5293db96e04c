//! The protocol that is checked, and the bounds within which it is.

use crate::bounds::Bounds;
use crate::job::Control;

/// The protocol within bounds.
#[derive(Debug, Clone, Copy)]
pub struct Protocol {
    pub bounds: Bounds,
    pub control: Control,
}

impl Protocol {
    /// Returns the protocol within `bounds`.
    pub const fn new(bounds: Bounds) -> Self {
        Self { bounds, control: Control { max_dispatches: bounds.dispatches, seed: bounds.seed } }
    }
}
