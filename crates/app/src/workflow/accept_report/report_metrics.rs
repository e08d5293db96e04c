//! Counts the reports that were accepted and refused, and measures how long the accepted ones waited. SQS delivers a
//! report at least once, and no row says whether an accepted report has come before, so these metrics count deliveries.

use freehold_domain::Install;
use freehold_protocol::{AppName, InstallId};

use crate::metrics::{self, About, Metric};

/// The install that a report names, if it exists, and its app.
#[derive(Debug, Default)]
pub(super) struct Source {
    app: Option<AppName>,
    install: Option<InstallId>,
}

impl From<&Install> for Source {
    fn from(install: &Install) -> Self {
        Self { app: install.app().cloned(), install: Some(install.id.clone()) }
    }
}

impl Source {
    /// Counts an accepted report, and records how long it waited, in milliseconds.
    pub(super) fn record_accepted(&self, delay: u64) {
        metrics::record(&[(Metric::ReportsAccepted, 1), (Metric::ReportDelay, delay)], self.about());
    }

    /// Counts a refused report.
    pub(super) fn count_refused(&self) {
        metrics::count(Metric::ReportsRefused, self.about());
    }

    fn about(&self) -> About<'_> {
        About { app: self.app.as_ref(), install: self.install.as_ref(), ..About::default() }
    }
}
