//! `preflight`: looks for problems that would stop the later jobs, before they create anything. It changes nothing
//! itself.
//!
//! The checks run in parallel, each with a deadline. A finding is a failure when a later job would certainly fail. It
//! is a warning when a failure is only likely, or when the check could not run. The queues need no check: the order
//! came through one of them, and the report goes through the other.

mod account;
mod cluster;
mod finding;
mod machine;
mod network;
mod permissions;
mod simulation;

use std::collections::{BTreeMap, BTreeSet};
use std::time::Duration;

use aws_types::SdkConfig;
use freehold_protocol::preflight::{CheckInstall, FINDINGS, Finding, Verdict};
use serde_json::Value;

use crate::aws::timeouts;
use crate::job::Job;
use crate::job::failure::{Failure, until_stopped};
use crate::kinds::result::Done;
use crate::kinds::templates::Templates;
use finding::{Check, all_in_time, unchecked};

/// The time limit for one attempt of a call.
const ATTEMPT: Duration = Duration::from_secs(4);
/// The time limit for all attempts of a call together.
const OPERATION: Duration = Duration::from_secs(9);
/// The maximum number of failed checks in the job's reason. The log has all of them.
const NAMED: usize = 4;
/// The maximum length of a finding's detail in the job's reason, in characters.
const DETAIL: usize = 220;

pub(super) async fn run(job: &Job, work: &CheckInstall) -> Result<Done, Failure> {
    let findings = until_stopped(job, async { Ok(look(job, work).await) }).await?;
    for finding in &findings {
        job.log.line(&line(finding));
    }
    conclude(&findings)
}

async fn look(job: &Job, work: &CheckInstall) -> Vec<Finding> {
    let sdk = sdk_config(job).await;
    let (stacks, mut findings) = stack_names(job, work);
    let checks: [Check<'_>; 11] = [
        ("region", Box::pin(account::region(&sdk, &job.config.region))),
        ("install registry", Box::pin(network::registry(job))),
        ("state bucket", Box::pin(permissions::state_bucket(job, &sdk, work))),
        ("stacks", Box::pin(permissions::stacks(job, &sdk, &stacks))),
        ("permissions", Box::pin(simulation::simulate(job, &sdk, work, &stacks))),
        ("quotas of IAM", Box::pin(account::iam_quotas(&sdk, work))),
        ("quota of stacks", Box::pin(account::stack_quota(&sdk, &stacks))),
        ("clusters", Box::pin(cluster::access(job, work))),
        ("terraform", Box::pin(machine::terraform(job, work))),
        ("sandbox", Box::pin(machine::sandbox(job, work))),
        ("network", Box::pin(network::hosts(work))),
    ];
    for found in all_in_time(checks).await {
        findings.extend(found);
    }
    for tool in &work.tools {
        findings.push(machine::tool(job, tool).await);
    }
    findings.push(machine::disk(job, work));
    findings
}

/// Returns the SDK config for clients under the mode's role, with the time limits of preflight.
async fn sdk_config(job: &Job) -> SdkConfig {
    let sdk = crate::job::sdk_config(job).await;
    sdk.into_builder().timeout_config(timeouts(ATTEMPT, OPERATION)).build()
}

/// Returns the stack names that are known before the deploy, and a warning for each other stack.
fn stack_names(job: &Job, work: &CheckInstall) -> (BTreeSet<String>, Vec<Finding>) {
    let templates = Templates::of(job);
    let (mut names, mut unknown) = (BTreeSet::new(), Vec::new());
    for text in &work.stacks {
        match templates.text("stack name", text) {
            Ok(name) => drop(names.insert(name)),
            Err(_) => unknown.push(unchecked(
                &format!("stack {text}"),
                "the stack's name is known only after other components are deployed",
                "",
            )),
        }
    }
    (names, unknown)
}

fn line(finding: &Finding) -> String {
    let Finding { check, state, detail, fix } = finding;
    let fix = if fix.is_empty() { String::new() } else { format!("; {fix}") };
    format!("{}  {check}: {detail}{fix}", state.as_str())
}

fn conclude(findings: &[Finding]) -> Result<Done, Failure> {
    let failed: Vec<&Finding> = findings.iter().filter(|finding| finding.state == Verdict::Fail).collect();
    if failed.is_empty() {
        let value = serde_json::to_value(findings);
        let value = value.map_err(|error| Failure::because("could not write the findings as JSON", &error))?;
        let outputs: BTreeMap<String, Value> = [(FINDINGS.to_owned(), value)].into();
        return Ok(Done { outputs, ..Done::default() });
    }
    let mut named: Vec<String> = failed
        .iter()
        .take(NAMED)
        .map(|finding| {
            let detail: String = finding.detail.chars().take(DETAIL).collect();
            format!("`{}`: {detail}; fix: {}", finding.check, finding.fix)
        })
        .collect();
    if failed.len() > NAMED {
        named.push(format!("and {} more, which are in the log", failed.len() - NAMED));
    }
    Err(Failure::new(format!("{} of {} checks fail; {}", failed.len(), findings.len(), named.join("; "))))
}

#[cfg(test)]
mod tests {
    use freehold_protocol::limits::MAX_OUTPUTS_BYTES;

    use super::finding::{fail, pass, warn};
    use super::*;

    fn reason(findings: &[Finding]) -> String {
        match conclude(findings).unwrap_err() {
            Failure::Failed { reason, partial: false } => reason,
            other => panic!("{other:?}"),
        }
    }

    #[test]
    fn warnings_let_the_work_continue() {
        let findings = [pass("disk", "enough"), warn("permissions", "could not be checked", "allow it")];

        let done = conclude(&findings).unwrap();

        let kept: Vec<Finding> = serde_json::from_value(done.outputs[FINDINGS].clone()).unwrap();
        assert_eq!(kept, findings);
        assert_eq!(line(&findings[1]), "warn  permissions: could not be checked; allow it");
    }

    #[test]
    fn what_fails_is_named_with_its_fix_and_not_all_of_it() {
        let one = fail("state bucket", "AccessDenied: no", "allow `s3:ListBucket`");

        let few = reason(&[pass("disk", "enough"), one.clone()]);
        let many = reason(&vec![one; 7]);

        assert_eq!(few, "1 of 2 checks fail; `state bucket`: AccessDenied: no; fix: allow `s3:ListBucket`");
        assert!(
            many.starts_with("7 of 7 checks fail; ") && many.ends_with("and 3 more, which are in the log"),
            "{many}"
        );
    }

    #[test]
    fn the_most_that_can_be_found_can_be_reported() {
        let longest = || warn(&"c".repeat(150), "d".repeat(1000), "f".repeat(1000));
        let findings: Vec<Finding> = (0..75).map(|_| longest()).collect();

        let bytes = serde_json::to_vec(&findings).unwrap().len();

        assert!(bytes < MAX_OUTPUTS_BYTES, "{bytes}");
    }
}
