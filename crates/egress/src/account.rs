//! Hosts of the customer's account that no rule can name, because they are created while the job runs.

use async_trait::async_trait;

use crate::address::Scope;

/// Finds hosts that belong to the customer's account, such as the endpoints of its clusters.
#[async_trait]
pub trait AccountHosts: std::fmt::Debug + Send + Sync + 'static {
    /// Returns the networks in which the host `name` may be, or `None` when it is not a host of the account. The proxy
    /// calls this function only for names that no rule permits, and only for a `CONNECT` to port 443.
    ///
    /// # Errors
    /// When the account cannot be queried; the text is for the job, and states how to fix the problem.
    async fn find(&self, name: &str) -> Result<Option<Scope>, String>;
}
