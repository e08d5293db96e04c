//! The counted work of each install: its workflows and jobs in a period, which the tenant's API lists.

use freehold_client::calls;
use freehold_protocol::api::{InstallView, WorkflowView};
use freehold_protocol::{AppName, InstallId};

use super::period::Period;
use crate::api::Api;
use crate::error::Result;

/// An amount of work.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub(crate) struct Work {
    /// Workflows that began in the period.
    pub(crate) workflows: u64,
    /// Dispatches of their jobs, with retries.
    pub(crate) jobs: u64,
}

/// The work of one install.
#[derive(Debug, Clone)]
pub(super) struct InstallWork {
    pub(super) install: InstallId,
    pub(super) app: Option<AppName>,
    /// Whether a runner has announced itself, which polls also when it has no work.
    pub(super) has_runner: bool,
    pub(super) work: Work,
}

impl Work {
    fn of(workflows: &[WorkflowView], period: &Period) -> Self {
        let counted = workflows.iter().filter(|one| period.contains(one.created_at));
        counted.fold(Self::default(), |sum, one| Self {
            workflows: sum.workflows.saturating_add(1),
            jobs: sum.jobs.saturating_add(one.jobs.unwrap_or_default().into()),
        })
    }

    /// Returns the sum of two amounts.
    pub(super) const fn plus(self, other: Self) -> Self {
        Self { workflows: self.workflows.saturating_add(other.workflows), jobs: self.jobs.saturating_add(other.jobs) }
    }

    /// Returns the weight with which shared costs are split: each workflow counts one, and each job one.
    pub(super) const fn weight(self) -> u64 {
        self.workflows.saturating_add(self.jobs)
    }
}

/// Counts the work of all installs in a period.
pub(super) async fn count(api: &Api, period: &Period) -> Result<Vec<InstallWork>> {
    let installs: Vec<InstallView> = api.list(calls::list_installs()).await?;
    let mut counted = Vec::with_capacity(installs.len());
    for view in installs {
        // The newest workflow comes first.
        let is_wanted = |one: &WorkflowView| one.created_at >= period.starts_at;
        let work = Work::of(&api.list_while(calls::list_workflows(&view.install), is_wanted).await?, period);
        counted.push(InstallWork { has_runner: view.runner.is_some(), app: view.app, install: view.install, work });
    }
    Ok(counted)
}
