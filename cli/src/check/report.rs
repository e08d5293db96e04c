//! `freehold check report`: reports the result of a required check.

use clap::{Args, ValueEnum};
use freehold_client::calls;
use freehold_protocol::api::{CheckResult, CheckView, ReportCheckRequest};
use freehold_protocol::{CheckName, ComponentName, InstallId, JobId};

use super::text::results;
use crate::api::Api;
use crate::error::Result;
use crate::output::Output;

/// Report the result of a required check of a component, such as a load test. `required_checks` in the component's
/// `[health]` lists the names of its checks. A deploy whose gate waits for the check continues within about a minute.
/// If a check is reported several times, the last result counts.
#[derive(Debug, Args)]
#[command(after_help = "\
Examples:
  freehold check report globex web load-test passed
  freehold check report globex web load-test failed --reason too-slow --url https://ci.example.com/runs/7

The result is about the last deploy of the component. With `--deploy`, the report is refused if the component was
deployed again after the deploy that was checked: `freehold install show globex` shows the job of each component's last
deploy. When a check that failed passes now, report the new result, and then retry the job of the gate with `freehold
job retry`.")]
pub(crate) struct Report {
    /// Name of the install.
    install: InstallId,
    /// The component that was checked.
    component: ComponentName,
    /// Name of the check.
    check: CheckName,
    /// The result.
    result: Word,
    /// The reason for the result, in one line.
    #[arg(long, alias = "why", value_name = "TEXT")]
    reason: Option<String>,
    /// The address of the details, such as a run in your CI.
    #[arg(long)]
    url: Option<String>,
    /// The job of the deploy that was checked.
    #[arg(long, value_name = "JOB")]
    deploy: Option<JobId>,
}

/// The result of a check, as an argument.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
enum Word {
    Passed,
    Failed,
}

impl Word {
    const fn result(self) -> CheckResult {
        match self {
            Self::Passed => CheckResult::Passed,
            Self::Failed => CheckResult::Failed,
        }
    }
}

impl Report {
    pub(super) async fn run(self, api: &Api, out: Output) -> Result<()> {
        let Self { install, component, check, result, reason, url, deploy } = self;
        let request = ReportCheckRequest { result: result.result(), reason, url, deploy };
        let view: CheckView = api.send(calls::report_check(&install, &component, &check, &request)).await?;
        out.show(&view, |view| {
            let of = view.deploy.as_ref().map(|job| format!(" for the deploy by {job}")).unwrap_or_default();
            format!(
                "reported for `{component}` in `{install}`{of}: {}\n`freehold install show {install}` shows which \
                 checks are missing",
                results(std::slice::from_ref(view))
            )
        })
    }
}
