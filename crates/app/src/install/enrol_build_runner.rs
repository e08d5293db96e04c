//! Registers the tenant's build runner. The build runner belongs to a reserved install, which runs no app.

use std::sync::Arc;

use freehold_domain::install::{Install, Serves};
use freehold_protocol::AccountId;

use crate::AppError;
use crate::ports::{Clock, Expect, Store};
use crate::table::{self, Decided, Stored, install_key, load, put};

/// The use case that registers the build runner, with its ports and the settings of the tenant.
#[derive(Clone)]
pub struct EnrolBuildRunner {
    pub account: AccountId,
    pub region: String,
    /// The URL of the build runner's orders queue, which the tenant stack creates.
    pub build_queue_url: String,
    pub store: Arc<dyn Store>,
    pub clock: Arc<dyn Clock>,
}

impl EnrolBuildRunner {
    /// Registers the tenant's own build runner. Its role in the tenant's account proves that it is the build runner.
    ///
    /// # Errors
    /// The store's errors.
    pub async fn enrol(&self) -> Result<(), AppError> {
        let id = table::reserved_install()?;
        let enrolled = table::change(&*self.store, ("install", &id), || async {
            let known: Option<Stored<Install>> = load(&*self.store, &install_key(&id)).await?;
            let mut install = match &known {
                Some(known) => known.value.clone(),
                None => {
                    let (account, region) = (self.account.clone(), self.region.clone());
                    Install::new(id.clone(), Serves::Builds, account, region, self.clock.now())
                }
            };
            install.orders_queue_url = Some(self.build_queue_url.clone());
            if known.as_ref().is_some_and(|known| known.value == install) {
                return Ok(Decided::Keep(()));
            }
            let expect = known.map_or(Expect::Absent, |known| Expect::Rev(known.rev));
            Ok(Decided::Commit(vec![put(&install, expect)?], ()))
        });
        enrolled.await
    }
}
