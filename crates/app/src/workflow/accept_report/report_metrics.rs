//! Counts the reports that were accepted and refused, and measures how long the accepted ones waited. SQS delivers a
//! report at least once, and no row says whether an accepted report has come before, so these metrics count deliveries.

use freehold_domain::Install;
use freehold_protocol::{AppName, InstallId};

use crate::metrics::{self, About, Metric};

/// The install that sent a report, and its app.
#[derive(Debug, Default)]
pub(super) struct Source {
    app: Option<AppName>,
    install: Option<InstallId>,
    /// Whether the sender's role or a signature shows that the report is from this install.
    is_proven: bool,
}

impl Source {
    /// Returns the install that a report names. It exists, but the report may be from somebody else.
    pub(super) fn claimed(install: &Install, is_proven: bool) -> Self {
        Self { app: install.app().cloned(), install: Some(install.id.clone()), is_proven }
    }

    /// Notes that the signature of the report was verified with a key of the install.
    pub(super) const fn prove(&mut self) {
        self.is_proven = true;
    }

    /// Counts an accepted report, and records how long it waited, in milliseconds.
    pub(super) fn record_accepted(&self, delay: u64) {
        metrics::record(&[(Metric::ReportsAccepted, 1), (Metric::ReportDelay, delay)], self.about());
    }

    /// Counts a refused report. Without a proof the count has no app and no install, so that nobody counts against the
    /// app of somebody else.
    pub(super) fn count_refused(&self) {
        let about = if self.is_proven { self.about() } else { About::default() };
        metrics::count(Metric::ReportsRefused, about);
    }

    fn about(&self) -> About<'_> {
        About { app: self.app.as_ref(), install: self.install.as_ref(), ..About::default() }
    }
}
