//! Shows the tenant.

use std::sync::Arc;

use freehold_protocol::api::TenantView;
use freehold_protocol::{AccountId, TenantName};

use crate::AppError;
use crate::ports::RootKey;

/// The use case that shows the tenant, with its port and the settings of the tenant.
#[derive(Clone)]
pub struct ShowTenant {
    pub tenant: TenantName,
    /// The tenant's own account.
    pub account: AccountId,
    /// The region of the tenant's queues.
    pub region: String,
    pub reports_queue_url: String,
    pub root: Arc<dyn RootKey>,
}

impl ShowTenant {
    /// Returns the tenant, its reports queue and its root key.
    ///
    /// # Errors
    /// The port's errors.
    pub async fn show_tenant(&self) -> Result<TenantView, AppError> {
        Ok(TenantView {
            tenant: self.tenant.clone(),
            account: self.account.clone(),
            region: self.region.clone(),
            reports_queue_url: self.reports_queue_url.clone(),
            tenant_key: self.root.public_key().await?,
        })
    }
}
