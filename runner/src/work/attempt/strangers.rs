//! Fails a job after which a role of the app trusts a principal outside the customer's account.

use std::time::Duration;

use aws_credential_types::provider::SharedCredentialsProvider;
use freehold_protocol::audit::AuditEvent;
use freehold_protocol::order::Work;
use freehold_protocol::report::Outcome;
use tracing::error;

use crate::aws;
use crate::identity::trusts;
use crate::record::log::JobLog;
use crate::work::agent::Agent;
use crate::work::in_flight::HeldOrder;

/// The maximum number of roles in a record. A role's trust has up to 4,096 characters, and a record up to 1 MiB.
const RECORDED: usize = 100;
/// The time limit for listing the roles.
const DEADLINE: Duration = Duration::from_secs(60);

/// Returns `outcome`, or a failure when the job may have created roles and one of the app's roles trusts a principal
/// outside the account.
pub(super) async fn check(
    agent: &Agent,
    held: &HeldOrder,
    log: &JobLog,
    credentials: SharedCredentialsProvider,
    outcome: Outcome,
) -> Outcome {
    // Nothing was changed: the plan waits for its approval.
    if matches!(outcome, Outcome::NeedsApproval { .. }) {
        return outcome;
    }
    let Some(app_roles) = agent.app_roles.as_ref().filter(|_| may_make_roles(&held.order.work)) else {
        return outcome;
    };
    let listed = tokio::time::timeout(DEADLINE, app_roles.list(credentials)).await;
    let roles = match listed.unwrap_or_else(|_| Err("IAM did not answer in time".to_owned())) {
        Ok(roles) => trusts::strangers(&roles, &agent.config.region),
        Err(reason) => return unread(log, outcome, &reason),
    };
    if roles.is_empty() {
        return outcome;
    }
    let who = roles.iter().map(|(role, strangers)| format!("role `{role}` trusts `{}`", strangers.join("`, `")));
    let who = who.collect::<Vec<_>>().join(", ");
    error!(job.id = %held.order.job, "Somebody outside of this account may assume roles of the app: {who}");
    log.line(&format!("[freehold: {who}]"));
    let more = roles.len().saturating_sub(RECORDED).try_into().unwrap_or(u64::MAX);
    let roles = roles.into_iter().take(RECORDED).collect();
    let record = AuditEvent::Strangers { job: held.order.job.clone(), fence: held.fence, roles, more };
    // The bucket gets the record before that of the job's end.
    if let Err(error) = agent.audit.conclude(record) {
        error!("{}", aws::explain(&error));
    }
    let reason = format!(
        "somebody outside of the customer's account may assume roles of the app: {who}; delete these roles, or let \
         them trust this account and its services only{}",
        own_outcome(&outcome)
    );
    Outcome::Failed { reason, partial: true }
}

/// Returns whether `work` may create roles. A removal runs the same programs as its component, such as a module's
/// providers.
fn may_make_roles(work: &Work) -> bool {
    match work.made_by() {
        // A controller in the cluster may create roles with its own permissions because a chart, manifest or job asks
        // for it.
        Work::TerraformModule(_)
        | Work::Sandbox(_)
        | Work::Pulumi(_)
        | Work::PulumiSandbox(_)
        | Work::CloudformationStack(_)
        | Work::HelmChart(_)
        | Work::KubernetesManifest(_)
        | Work::KubernetesJob(_)
        | Work::Action(_) => true,
        Work::ContainerImage(_)
        | Work::CopySecrets(_)
        | Work::Remove(_)
        | Work::Build(_)
        | Work::Preflight(_)
        | Work::Leftovers(_)
        | Work::Health(_)
        | Work::Upgrade(_) => false,
    }
}

/// Fails a job whose roles cannot be checked. Otherwise a job could avoid the check by causing IAM to throttle.
fn unread(log: &JobLog, outcome: Outcome, reason: &str) -> Outcome {
    log.line(&format!("[freehold: cannot list the roles of the app: {reason}]"));
    let Outcome::Succeeded { .. } = outcome else { return outcome };
    let reason = format!(
        "the work is done, but the runner could not check whom the app's roles trust: {reason}; start the deploy or the \
         action again, which repeats the check"
    );
    Outcome::Failed { reason, partial: true }
}

/// Returns the job's own outcome, as the end of a sentence.
fn own_outcome(outcome: &Outcome) -> String {
    match outcome {
        Outcome::Succeeded { .. } => "; the work itself is done".to_owned(),
        Outcome::Cancelled => "; the job was cancelled".to_owned(),
        Outcome::NeedsApproval { .. } => "; nothing was changed".to_owned(),
        Outcome::Failed { reason, .. } | Outcome::Blocked { reason, .. } | Outcome::Interrupted { reason } => {
            format!("; before that: {reason}")
        }
    }
}
