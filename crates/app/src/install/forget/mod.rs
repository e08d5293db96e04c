//! What the tenant keeps about an install that is being forgotten: its workflows with their jobs, and the rest of its
//! rows.

mod rows;

pub(super) use rows::{remove_remaining, remove_workflows};
