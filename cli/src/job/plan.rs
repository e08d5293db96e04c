//! `freehold job approve` and `freehold job reject`: approves or rejects the plan for whose approval a job waits. Shows
//! such plans.

use clap::Args;
use freehold_client::calls;
use freehold_protocol::api::{ApproveJobRequest, JobView, PlanView, RejectJobRequest};
use freehold_protocol::approval::{ChangeKind, OrderApproval, PlanSummary, Side};
use freehold_protocol::{Digest, InstallId, JobId};

use crate::context::Context;
use crate::error::Result;
use crate::output::time;

/// The maximum number of changes that are printed; `--json` prints all known changes.
const SHOWN: usize = 40;

/// For vendors: approve the plan that a job waits for.
#[derive(Debug, Args)]
#[command(after_help = "\
Example:
  freehold job approve job_0123456789abcdef0123 --plan sha256:0123456789abcdef0123456789abcdef0123456789abcdef0123456789abcdef

Look at the plan first: `freehold job show JOB` prints its changes and its digest. The approval counts for exactly this
plan: the runner applies these bytes or nothing. If the state or the values have changed meanwhile, the runner makes a
new plan, and the job waits again. Exit code 4 when the job waits for the approval of another plan, or does not wait for
an approval.")]
pub(crate) struct Approve {
    /// Id of the job.
    job: JobId,
    /// The digest of the plan, as `freehold job show` prints it.
    #[arg(long, value_name = "DIGEST")]
    plan: Digest,
}

/// For vendors: reject the plan that a job waits for; the job ends.
#[derive(Debug, Args)]
#[command(after_help = "\
Example:
  freehold job reject job_0123456789abcdef0123 --plan sha256:0123456789abcdef0123456789abcdef0123456789abcdef0123456789abcdef --reason \"it replaces the database\"

The job ends as `blocked`, without having changed anything.")]
pub(crate) struct Reject {
    /// Id of the job.
    job: JobId,
    /// The digest of the plan, as `freehold job show` prints it.
    #[arg(long, value_name = "DIGEST")]
    plan: Digest,
    /// The reason, in one line; the job shows it.
    #[arg(long, value_name = "REASON")]
    reason: String,
}

impl Approve {
    pub(super) async fn run(&self, context: &Context) -> Result<()> {
        let body = ApproveJobRequest { plan: self.plan.clone() };
        let view: JobView = context.api().await?.send(calls::approve_job(&self.job, &body)).await?;
        context.out.show(&view, |view| {
            let waits = view.plan.as_ref().map(|plan| plan.waits_for.clone()).unwrap_or_default();
            match waits.first() {
                None => format!(
                    "plan {} of `{}` is approved; the job continues within about a minute: `freehold job show {}`",
                    self.plan, self.job, self.job
                ),
                Some(_) => format!(
                    "plan {} of `{}` is approved by the vendor; it still waits for the customer, who runs `{}`",
                    self.plan,
                    self.job,
                    customers_command(&view.install, &self.plan)
                ),
            }
        })
    }
}

impl Reject {
    pub(super) async fn run(&self, context: &Context) -> Result<()> {
        let body = RejectJobRequest { plan: self.plan.clone(), reason: self.reason.clone() };
        let view: JobView = context.api().await?.send(calls::reject_job(&self.job, &body)).await?;
        context.out.show(&view, |_| format!("plan {} of `{}` is rejected; the job ended", self.plan, self.job))
    }
}

/// Returns who has to approve a plan, since when it waits, its changes, and the commands that approve it.
pub(crate) fn waiting(view: &PlanView, job: &JobId, install: &InstallId) -> String {
    let proposed = &view.proposed;
    let whom: Vec<&str> = view.waits_for.iter().map(|side| side.as_str()).collect();
    let mut lines = vec![format!(
        "plan {} waits for the approval of the {} since {}, at most until {}",
        proposed.plan,
        if whom.is_empty() { "control plane".to_owned() } else { whom.join(" and the ") },
        time(view.since),
        time(proposed.until)
    )];
    lines.extend(proposed.instead.as_ref().map(|why| format!("another plan was approved and is not applied: {why}")));
    lines.extend(view.approved_by_vendor.as_ref().map(|by| format!("approved for the vendor by {by}")));
    lines.extend(view.approved_by_customer.as_ref().map(|by| format!("approved for the customer by {by}")));
    lines.extend(changes(&proposed.summary));
    for side in &view.waits_for {
        lines.push(match side {
            Side::Vendor => format!("approve: freehold job approve {job} --plan {}", proposed.plan),
            Side::Customer => format!("the customer approves: {}", customers_command(install, &proposed.plan)),
        });
    }
    lines.join("\n")
}

/// Returns the lines about the changes of a plan.
pub(crate) fn changes(summary: &PlanSummary) -> Vec<String> {
    let mut lines = vec![summary.to_string()];
    for one in summary.changes.iter().take(SHOWN) {
        let sign = match one.change {
            ChangeKind::Create => "+",
            ChangeKind::Update => "~",
            ChangeKind::Replace => "-/+",
            ChangeKind::Delete => "-",
            ChangeKind::Run => ">",
        };
        lines.push(format!("  {sign} {}", one.address));
    }
    let more = usize::try_from(summary.count()).unwrap_or(usize::MAX).saturating_sub(summary.changes.len().min(SHOWN));
    lines.extend((more > 0).then(|| format!("  and {more} more")));
    lines
}

/// Returns who approved the plan that a job's order applies.
pub(super) fn approved(approval: &OrderApproval) -> String {
    let by = approval.by.as_ref().map_or_else(|| "the customer".to_owned(), ToString::to_string);
    format!("applies plan {}, approved by {by} at {}", approval.plan, time(approval.at))
}

fn customers_command(install: &InstallId, plan: &Digest) -> String {
    format!("freehold customer approve {install} --plan {plan} --tenant TENANT")
}
