//! The metrics: their names and units, and the event that records values. A function writes such an event as one line
//! from which CloudWatch takes the values.

use std::fmt;

use freehold_protocol::{AppName, InstallId, JobId, WorkflowId};

/// The target of the events that record values. No filter of the logs leaves them out.
pub const TARGET: &str = "freehold_metrics";

/// What is counted or measured.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Metric {
    WorkflowsStarted,
    WorkflowsSucceeded,
    WorkflowsFailed,
    WorkflowsCancelled,
    /// The time from the request of a deploy to its end.
    DeployDuration,
    JobsSucceeded,
    /// The jobs that failed, were blocked or were interrupted, and are not retried.
    JobsFailed,
    /// The jobs of whose end no report came in time.
    JobsLost,
    JobsCancelled,
    /// The ends of attempts after which the job was queued again.
    JobsRetried,
    /// The time from the start of a job to its reported end.
    JobDuration,
    /// The time from the order of a job to its start.
    RunnerWait,
    /// The plans that began to wait for an approval.
    ApprovalsAwaited,
    ReportsAccepted,
    ReportsRefused,
    /// The reports that ended a job after it was lost.
    ReportsLate,
    /// The time for which an accepted report waited in its queue.
    ReportDelay,
    /// The drift checks of a part that found differences.
    DriftFound,
    /// The components that became unhealthy, or healthy again.
    HealthChanged,
    /// The runners that became silent, paused or cut off.
    RunnersAway,
}

/// The unit of a metric, by CloudWatch's name.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Unit {
    Count,
    Milliseconds,
}

/// What a value is about. Every name is one that the tenant gave or that Freehold derived.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct About<'a> {
    pub app: Option<&'a AppName>,
    pub install: Option<&'a InstallId>,
    pub workflow: Option<&'a WorkflowId>,
    pub job: Option<&'a JobId>,
}

impl Metric {
    /// All metrics, in the order of their page.
    pub const ALL: [Self; 20] = [
        Self::WorkflowsStarted,
        Self::WorkflowsSucceeded,
        Self::WorkflowsFailed,
        Self::WorkflowsCancelled,
        Self::DeployDuration,
        Self::JobsSucceeded,
        Self::JobsFailed,
        Self::JobsLost,
        Self::JobsCancelled,
        Self::JobsRetried,
        Self::JobDuration,
        Self::RunnerWait,
        Self::ApprovalsAwaited,
        Self::ReportsAccepted,
        Self::ReportsRefused,
        Self::ReportsLate,
        Self::ReportDelay,
        Self::DriftFound,
        Self::HealthChanged,
        Self::RunnersAway,
    ];

    /// Returns the name in CloudWatch.
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::WorkflowsStarted => "WorkflowsStarted",
            Self::WorkflowsSucceeded => "WorkflowsSucceeded",
            Self::WorkflowsFailed => "WorkflowsFailed",
            Self::WorkflowsCancelled => "WorkflowsCancelled",
            Self::DeployDuration => "DeployDuration",
            Self::JobsSucceeded => "JobsSucceeded",
            Self::JobsFailed => "JobsFailed",
            Self::JobsLost => "JobsLost",
            Self::JobsCancelled => "JobsCancelled",
            Self::JobsRetried => "JobsRetried",
            Self::JobDuration => "JobDuration",
            Self::RunnerWait => "RunnerWait",
            Self::ApprovalsAwaited => "ApprovalsAwaited",
            Self::ReportsAccepted => "ReportsAccepted",
            Self::ReportsRefused => "ReportsRefused",
            Self::ReportsLate => "ReportsLate",
            Self::ReportDelay => "ReportDelay",
            Self::DriftFound => "DriftFound",
            Self::HealthChanged => "HealthChanged",
            Self::RunnersAway => "RunnersAway",
        }
    }

    /// Returns the unit of the values.
    pub const fn unit(self) -> Unit {
        match self {
            Self::DeployDuration | Self::JobDuration | Self::RunnerWait | Self::ReportDelay => Unit::Milliseconds,
            Self::WorkflowsStarted
            | Self::WorkflowsSucceeded
            | Self::WorkflowsFailed
            | Self::WorkflowsCancelled
            | Self::JobsSucceeded
            | Self::JobsFailed
            | Self::JobsLost
            | Self::JobsCancelled
            | Self::JobsRetried
            | Self::ApprovalsAwaited
            | Self::ReportsAccepted
            | Self::ReportsRefused
            | Self::ReportsLate
            | Self::DriftFound
            | Self::HealthChanged
            | Self::RunnersAway => Unit::Count,
        }
    }
}

impl Unit {
    /// Returns the name in CloudWatch.
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::Count => "Count",
            Self::Milliseconds => "Milliseconds",
        }
    }
}

/// Values of metrics as the text of one field, such as `JobsSucceeded=1,JobDuration=5300`.
struct Values<'a>(&'a [(Metric, u64)]);

impl fmt::Display for Values<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        for (at, (metric, value)) in self.0.iter().enumerate() {
            let comma = if at == 0 { "" } else { "," };
            write!(f, "{comma}{}={value}", metric.as_str())?;
        }
        Ok(())
    }
}

/// Reads the values of [`record`] from the text of their field. A part that is not a value is left out.
pub fn parse_values(text: &str) -> Vec<(Metric, u64)> {
    let parse = |part: &str| {
        let (name, value) = part.split_once('=')?;
        let metric = Metric::ALL.into_iter().find(|metric| metric.as_str() == name)?;
        Some((metric, value.parse().ok()?))
    };
    text.split(',').filter_map(parse).collect()
}

/// Records values of one event. Call this function after the commit that decided the event, and only if this call has
/// made the commit: a repeated call then records nothing. A value is lost if the function ends between the two.
pub fn record(values: &[(Metric, u64)], about: About<'_>) {
    if values.is_empty() {
        return;
    }
    let values = Values(values).to_string();
    tracing::info!(
        target: TARGET,
        values = values.as_str(),
        app = about.app.map(AppName::as_str),
        install = about.install.map(InstallId::as_str),
        workflow = about.workflow.map(WorkflowId::as_str),
        job = about.job.map(JobId::as_str),
    );
}

/// Counts one event, as [`record`] does.
pub fn count(metric: Metric, about: About<'_>) {
    record(&[(metric, 1)], about);
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn values_are_read_as_they_were_written_and_other_texts_are_left_out() {
        let values = Metric::ALL.map(|metric| (metric, 7));

        assert_eq!(parse_values(&Values(&values).to_string()), values);
        assert_eq!(parse_values("JobsLost=2,JobsLost,JobsFound=1,JobsFailed=x"), [(Metric::JobsLost, 2)]);
    }
}
