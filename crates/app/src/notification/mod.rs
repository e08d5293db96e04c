//! Sends notifications to people, and keeps their subscriptions.

pub mod add_subscription;
pub mod list_subscriptions;
pub mod notifier;
pub mod remove_subscription;
pub mod runner_watch;
pub mod task;
pub mod test_subscriptions;
