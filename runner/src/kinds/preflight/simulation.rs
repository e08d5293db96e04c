//! Whether the mode's role may do what cannot be tried without doing it: AWS is asked to judge its policies, boundary and
//! the organization's, as `iam:SimulatePrincipalPolicy` does.

use std::collections::BTreeSet;

use aws_sdk_iam::error::SdkError;
use aws_sdk_iam::operation::simulate_principal_policy::SimulatePrincipalPolicyError;
use aws_sdk_iam::types::{EvaluationResult, PolicyEvaluationDecisionType};
use aws_types::SdkConfig;
use freehold_protocol::preflight::{CheckInstall, Finding, Permission};

use super::super::templates::Templates;
use super::finding::{Answer, fail, pass, unchecked, warn, way_to};
use super::permissions::role;
use crate::job::Job;

const CHECK: &str = "permissions";
/// How many denied actions a finding names.
const NAMED: usize = 8;
/// The most results of one answer (IAM API, `SimulatePrincipalPolicy`, `MaxItems`).
const MAX_ITEMS: i32 = 1000;

/// Asks for what jobs do for certain, whose denial stops them, and for what the app's own policies allow by name, whose
/// denial by something above them may or may not matter.
pub(super) async fn simulate(
    job: &Job,
    sdk: &SdkConfig,
    work: &CheckInstall,
    stacks: &BTreeSet<String>,
) -> Vec<Finding> {
    let Some(arn) = job.config.modes.role(job.order.mode).and_then(Arn::of) else {
        return vec![unchecked(CHECK, "the runner's config names no role for this mode", "")];
    };
    let client = aws_sdk_iam::Client::new(sdk);
    let own = own_needs(&arn, job, work, stacks);
    let app = rendered(job, &work.permissions);
    let mut findings = Vec::new();
    for (needs, of_app) in [(own, false), (app, true)] {
        let mut denied = BTreeSet::new();
        let count: usize = needs.iter().map(|need| need.actions.len() * need.resources.len()).sum();
        for need in &needs {
            let answer = ask(&client, arn.text, need).await;
            match (answer, &mut findings) {
                (Ok(more), _) => denied.extend(more),
                (Err(error), findings) => {
                    findings.push(no_answer(Answer::of(&Err::<(), _>(error)), job, &arn));
                    return std::mem::take(findings);
                }
            }
        }
        if count > 0 {
            findings.push(judge(&denied, count, of_app, job));
        }
    }
    if work.permissions_left_out > 0 {
        let left_out = work.permissions_left_out;
        findings.push(pass(CHECK, format!("{left_out} actions of the app's policies cannot be asked for by name")));
    }
    findings
}

fn no_answer(answer: Answer, job: &Job, arn: &Arn<'_>) -> Finding {
    let (text, fix) = match answer {
        Answer::Denied(text) => {
            (text, format!("allow `iam:SimulatePrincipalPolicy` on `{}` for {} to have it done", arn.text, role(job)))
        }
        Answer::Unreachable(text) => (text, way_to("AWS IAM")),
        Answer::Other { text, .. } => (text, String::new()),
        Answer::Allowed => (String::new(), String::new()),
    };
    unchecked(CHECK, text, fix)
}

/// Returns the pairs that are denied, as `action on resource`.
async fn ask(
    client: &aws_sdk_iam::Client,
    role: &str,
    need: &Permission,
) -> Result<Vec<String>, SdkError<SimulatePrincipalPolicyError>> {
    let request = client.simulate_principal_policy().policy_source_arn(role).max_items(MAX_ITEMS);
    let request = request.set_action_names(Some(need.actions.iter().cloned().collect()));
    let answer = request.set_resource_arns(Some(need.resources.iter().cloned().collect())).send().await?;
    Ok(answer.evaluation_results().iter().flat_map(denied).collect())
}

/// What a condition asks for is not known here: a decision for want of it says nothing.
fn denied(result: &EvaluationResult) -> Vec<String> {
    let action = result.eval_action_name();
    let is_no = |decision: &PolicyEvaluationDecisionType| *decision != PolicyEvaluationDecisionType::Allowed;
    if !result.resource_specific_results().is_empty() {
        let each = result.resource_specific_results().iter();
        let no = each.filter(|one| is_no(one.eval_resource_decision()) && one.missing_context_values().is_empty());
        return no.map(|one| format!("`{action}` on `{}`", one.eval_resource_name())).collect();
    }
    if is_no(result.eval_decision()) && result.missing_context_values().is_empty() {
        return vec![format!("`{action}` on `{}`", result.eval_resource_name().unwrap_or("*"))];
    }
    Vec::new()
}

fn judge(denied: &BTreeSet<String>, count: usize, of_app: bool, job: &Job) -> Finding {
    let whose = if of_app { "the app's policies allow" } else { "jobs need for certain" };
    if denied.is_empty() {
        return pass(CHECK, format!("{} may do all {count} things that {whose}", role(job)));
    }
    let mut named: Vec<&str> = denied.iter().take(NAMED).map(String::as_str).collect();
    let more = format!("and {} more", denied.len().saturating_sub(NAMED));
    if denied.len() > NAMED {
        named.push(&more);
    }
    let detail = format!("{} may not do what {whose}: {}", role(job), named.join(", "));
    let fix = "allow it in the role's policies, its boundary and the organization's policies; the install stack of this \
               version does";
    if of_app { warn(CHECK, detail, fix) } else { fail(CHECK, detail, fix) }
}

/// Returns what the kinds of jobs call under the mode's role beside what can be tried.
fn own_needs(arn: &Arn<'_>, job: &Job, work: &CheckInstall, stacks: &BTreeSet<String>) -> Vec<Permission> {
    let mut needs = Vec::new();
    let (partition, account, region) = (arn.partition, arn.account, &job.config.region);
    if let (Some(bucket), false) = (&job.config.bucket, work.terraform_versions.is_empty()) {
        let object = |path: &str| format!("arn:{partition}:s3:::{bucket}/{path}/freehold-preflight");
        needs.push(permission(&["s3:GetObject", "s3:PutObject", "s3:DeleteObject"], [object("terraform")]));
        needs.push(permission(&["s3:GetObject", "s3:PutObject"], [object("plans")]));
    }
    if !stacks.is_empty() {
        let actions = ["CreateChangeSet", "DescribeStackEvents", "ExecuteChangeSet"];
        let actions = actions.map(|action| format!("cloudformation:{action}"));
        let stack = |name: &String| {
            let id = "00000000-0000-0000-0000-000000000000";
            format!("arn:{partition}:cloudformation:{region}:{account}:stack/{name}/{id}")
        };
        let actions: Vec<&str> = actions.iter().map(String::as_str).collect();
        needs.push(permission(&actions, stacks.iter().map(stack)));
    }
    needs
}

fn permission(actions: &[&str], resources: impl IntoIterator<Item = String>) -> Permission {
    Permission {
        actions: actions.iter().map(ToString::to_string).collect(),
        resources: resources.into_iter().collect(),
    }
}

/// Returns what the app's policies allow with the install's values in it, but for what they are not known for yet.
fn rendered(job: &Job, permissions: &[Permission]) -> Vec<Permission> {
    let templates = Templates::of(job);
    let render = |permission: &Permission| {
        let resources = permission.resources.iter();
        let resources: BTreeSet<String> = resources
            .filter_map(|text| templates.text("policy", text).ok())
            .filter(|arn| !arn.contains("${"))
            .collect();
        Permission { actions: permission.actions.clone(), resources }
    };
    permissions.iter().map(render).filter(|permission| !permission.resources.is_empty()).collect()
}

/// The parts of a role's ARN.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
struct Arn<'a> {
    text: &'a str,
    partition: &'a str,
    account: &'a str,
}

impl<'a> Arn<'a> {
    fn of(text: &'a str) -> Option<Self> {
        let mut parts = text.split(':');
        let (_, partition) = (parts.next()?, parts.next()?);
        Some(Self { text, partition, account: parts.nth(2)? })
    }
}

#[cfg(test)]
mod tests {
    use aws_sdk_iam::types::ResourceSpecificResult;

    use super::*;

    fn result(decision: PolicyEvaluationDecisionType, missing: Option<Vec<String>>) -> EvaluationResult {
        EvaluationResult::builder()
            .eval_action_name("s3:PutObject")
            .eval_resource_name("arn:aws:s3:::b/x")
            .eval_decision(decision)
            .set_missing_context_values(missing)
            .build()
            .unwrap()
    }

    #[test]
    fn a_denial_counts_unless_it_is_for_want_of_a_value() {
        let allowed = result(PolicyEvaluationDecisionType::Allowed, None);
        let explicit = result(PolicyEvaluationDecisionType::ExplicitDeny, None);
        let unknown = result(PolicyEvaluationDecisionType::ImplicitDeny, Some(vec!["s3:prefix".into()]));

        assert_eq!(denied(&allowed), [""; 0]);
        assert_eq!(denied(&explicit), ["`s3:PutObject` on `arn:aws:s3:::b/x`"]);
        assert_eq!(denied(&unknown), [""; 0]);
    }

    #[test]
    fn each_resource_of_a_call_counts_by_itself() {
        let one = |name: &str, decision: PolicyEvaluationDecisionType| {
            ResourceSpecificResult::builder().eval_resource_name(name).eval_resource_decision(decision).build().unwrap()
        };
        let both = EvaluationResult::builder()
            .eval_action_name("s3:PutObject")
            .eval_decision(PolicyEvaluationDecisionType::ImplicitDeny)
            .resource_specific_results(one("a", PolicyEvaluationDecisionType::Allowed))
            .resource_specific_results(one("b", PolicyEvaluationDecisionType::ImplicitDeny))
            .build()
            .unwrap();

        assert_eq!(denied(&both), ["`s3:PutObject` on `b`"]);
    }

    #[test]
    fn an_arn_says_its_partition_and_account() {
        let arn = Arn::of("arn:aws-us-gov:iam::222222222222:role/fh-globex-provision").unwrap();

        assert_eq!((arn.partition, arn.account), ("aws-us-gov", "222222222222"));
        assert_eq!(Arn::of("fh-globex-provision"), None);
    }
}
