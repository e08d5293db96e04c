//! Fails a job after which a role of the app trusts a principal outside the customer's account.

use std::collections::{BTreeMap, BTreeSet};
use std::time::Duration;

use aws_credential_types::provider::SharedCredentialsProvider;
use freehold_protocol::IamRoleName;
use freehold_protocol::audit::AuditEvent;
use freehold_protocol::limits::MAX_ROLES_TRUSTING_STRANGERS;
use freehold_protocol::order::Work;
use freehold_protocol::report::Outcome;
use tracing::{error, warn};

use crate::aws;
use crate::identity::trusts;
use crate::record::log::JobLog;
use crate::work::agent::Agent;
use crate::work::in_flight::HeldOrder;
use crate::work::supervise::Ended;

/// The maximum number of roles in a record. A role's trust has up to 4,096 characters, and a record up to 1 MiB.
const RECORDED: usize = 100;
/// The time limit for listing the roles.
const DEADLINE: Duration = Duration::from_secs(60);

/// The app's roles that trust a principal outside of the account, by their ARN, each with these principals.
type Trusting = BTreeMap<String, Vec<String>>;

/// Checks the trust policies before the job changes something, because an earlier attempt may have ended with its
/// machine. Records what it finds, and fails no job: this job may be the one that removes the trust, and the check
/// after the job decides.
pub(super) async fn look_before(agent: &Agent, held: &HeldOrder, log: &JobLog, credentials: SharedCredentialsProvider) {
    match find(agent, held, credentials).await {
        Ok(None) => {}
        Ok(Some(roles)) if roles.is_empty() => {}
        Ok(Some(roles)) => drop(record(agent, held, log, roles)),
        Err(reason) => {
            warn!(job.id = %held.order.job, "Cannot check the trust policies of the app's roles before a job: {reason}")
        }
    }
}

/// Returns how the job ended, or a failure when the job may have created roles and one of the app's roles trusts a
/// principal outside the account. An attempt that leaves its job to another attempt is checked too. So is an attempt
/// whose plan waits for an approval: the vendor's code made the plan with the job's permissions. Also returns the roles
/// that trust such a principal, if they could be checked.
pub(super) async fn check(
    agent: &Agent,
    held: &HeldOrder,
    log: &JobLog,
    credentials: SharedCredentialsProvider,
    ended: Ended,
) -> (Ended, Option<BTreeSet<IamRoleName>>) {
    let roles = match find(agent, held, credentials).await {
        Ok(None) => return (ended, None),
        Ok(Some(roles)) => roles,
        Err(reason) => return (unread(log, ended, &reason), None),
    };
    let names = role_names(&roles);
    if roles.is_empty() {
        return (ended, Some(names));
    }
    let who = record(agent, held, log, roles);
    let Ended::Finished(outcome) = ended else { return (ended, Some(names)) };
    let reason = format!(
        "somebody outside of the customer's account may assume roles of the app: {who}; delete these roles, or let \
         them trust this account and its services only{}",
        own_outcome(&outcome)
    );
    (Ended::Finished(Outcome::Failed { reason, partial: true }), Some(names))
}

/// Returns the names of the roles in IAM, which the report of the attempt's end contains.
fn role_names(roles: &Trusting) -> BTreeSet<IamRoleName> {
    // The last part of a role's ARN is its name, which always has the form of a name in IAM.
    let names = roles.keys().filter_map(|arn| arn.rsplit('/').next()?.parse().ok());
    names.take(MAX_ROLES_TRUSTING_STRANGERS).collect()
}

/// Returns the roles of the app that trust a principal outside of the account; `None` for a job that can make no role.
async fn find(
    agent: &Agent,
    held: &HeldOrder,
    credentials: SharedCredentialsProvider,
) -> Result<Option<Trusting>, String> {
    let Some(app_roles) = agent.app_roles.as_ref().filter(|_| may_make_roles(&held.order.work)) else {
        return Ok(None);
    };
    let region = &agent.config.region;
    let looked = async {
        let roles = app_roles.list(credentials.clone()).await?;
        let foreign = app_roles.foreign(credentials, trusts::issuers(&roles, region)).await?;
        Ok(Some(trusts::strangers(&roles, region, &foreign)))
    };
    tokio::time::timeout(DEADLINE, looked).await.unwrap_or_else(|_| Err("AWS did not answer in time".to_owned()))
}

/// Writes strangers into the runner's log, the job's log and the audit log. Returns a sentence about them.
fn record(agent: &Agent, held: &HeldOrder, log: &JobLog, roles: Trusting) -> String {
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
    who
}

/// Returns whether `work` may create roles. A removal runs the same programs as its component, such as a module's
/// providers. So does a drift check, but with read-only permissions.
fn may_make_roles(work: &Work) -> bool {
    if matches!(work, Work::DetectDrift(_)) {
        return false;
    }
    match work.made_by() {
        // A controller in the cluster may create roles with its own permissions because a chart, manifest or job
        // requests them.
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
        | Work::DetectDrift(_)
        | Work::Build(_)
        | Work::Preflight(_)
        | Work::Leftovers(_)
        | Work::Health(_)
        | Work::Upgrade(_) => false,
    }
}

/// Fails a job whose roles cannot be checked. Otherwise a job could avoid the check by causing IAM to throttle.
fn unread(log: &JobLog, ended: Ended, reason: &str) -> Ended {
    log.line(&format!("[freehold: cannot list the roles of the app: {reason}]"));
    let Ended::Finished(outcome @ (Outcome::Succeeded { .. } | Outcome::NeedsApproval { .. })) = ended else {
        return ended;
    };
    let done = if matches!(outcome, Outcome::Succeeded { .. }) { "the work is done" } else { "the plan is made" };
    let reason = format!(
        "{done}, but the runner could not check whom the app's roles trust: {reason}; start the deploy or the action \
         again, which repeats the check"
    );
    Ended::Finished(Outcome::Failed { reason, partial: true })
}

/// Returns the job's own outcome, as the end of a sentence.
fn own_outcome(outcome: &Outcome) -> String {
    match outcome {
        Outcome::Succeeded { .. } => "; the work itself is done".to_owned(),
        Outcome::Cancelled => "; the job was cancelled".to_owned(),
        Outcome::NeedsApproval { .. } => "; the plan itself was not applied".to_owned(),
        Outcome::Failed { reason, .. } | Outcome::Blocked { reason, .. } | Outcome::Interrupted { reason } => {
            format!("; before that: {reason}")
        }
    }
}
