//! Tells people what they wait for, and keeps the subscriptions of those who are told.

pub mod add_subscription;
pub mod list_subscriptions;
pub mod notifier;
pub mod remove_subscription;
pub mod runner_watch;
pub mod task;
pub mod test_subscriptions;
