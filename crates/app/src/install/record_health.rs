//! The row of a component's health, which the last check of it writes.

use freehold_domain::health::LastHealth;
use freehold_domain::job::Job;
use freehold_protocol::{ComponentName, Timestamp};

use crate::AppError;
use crate::ports::{Expect, Store, Write};
use crate::table::{self, HealthRecord, Stored, load, put};

/// Returns the write of the health that `job` found, unless a later workflow has checked the component since.
pub(crate) async fn record_health(
    store: &dyn Store,
    job: &Job,
    component: &ComponentName,
    now: Timestamp,
) -> Result<Option<Write>, AppError> {
    let known: Option<Stored<HealthRecord>> = load(store, &table::health_key(&job.install, component)).await?;
    let before = known.as_ref().map(|known| &known.value.health);
    let Some(health) = LastHealth::after(before, component, job, now) else { return Ok(None) };
    let expect = known.as_ref().map_or(Expect::Absent, |known| Expect::Rev(known.rev));
    put(&HealthRecord { install: job.install.clone(), health }, expect).map(Some)
}
