//! The rows that the tenant keeps about an install that is being forgotten: its workflows with their jobs, and the
//! rest.

mod rows;

pub(super) use rows::{remove_remaining, remove_workflows};
