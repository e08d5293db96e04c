//! Webhooks: programs outside of AWS that start something in the tenant by a signed call.

pub mod add_webhook;
pub mod call_webhook;
pub mod list_webhooks;
pub mod remove_webhook;
mod row;

pub(crate) use row::leaving;
