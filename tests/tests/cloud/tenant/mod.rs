//! Tenants: access to them, what they refuse, how much they bear, whom they notify, and their end.

mod destroy;
mod flood;
mod iam;
mod notifications;
mod refusals;
