//! Tells people what they wait for.

pub mod notifier;
pub mod runner_watch;
pub mod task;
