//! What the tenant keeps about an install that is being forgotten: its dead letters, its workflows with their jobs, and
//! the rest of its rows.

mod letters;
mod rows;

pub(super) use letters::remove_letters;
pub(super) use rows::{remove_remaining, remove_workflows};
