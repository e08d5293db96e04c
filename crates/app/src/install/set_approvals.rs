//! Sets whether plans of an install wait until somebody at the vendor approves them.

use std::sync::Arc;

use freehold_domain::install::Install;
use freehold_protocol::InstallId;
use freehold_protocol::api::SetApprovalsRequest;

use crate::AppError;
use crate::ports::{Expect, Store};
use crate::table::{self, Decided, put};

/// The use case that sets the approval option of an install, with its port.
#[derive(Clone)]
pub struct SetApprovals {
    pub store: Arc<dyn Store>,
}

impl SetApprovals {
    /// Sets the option. The option applies to orders that are made from now on. A plan that already waits keeps waiting
    /// for the same approvals.
    ///
    /// # Errors
    /// NotFound, or the store's errors.
    pub async fn set(&self, id: &InstallId, request: &SetApprovalsRequest) -> Result<Install, AppError> {
        table::change(&*self.store, ("install", id), || async {
            let stored = table::install(&*self.store, id).await?;
            stored.value.check_kept()?;
            stored.value.require_app()?;
            if stored.value.approval_option == request.approval_option {
                return Ok(Decided::Keep(stored.value));
            }
            let changed = Install { approval_option: request.approval_option, ..stored.value };
            Ok(Decided::Commit(vec![put(&changed, Expect::Rev(stored.rev))?], changed))
        })
        .await
    }
}
