//! The replacement of the runner's own program by order: the programs on the disk, and the trial of a new one.

pub mod programs;
pub(crate) mod trial;
