//! Checks the permissions of the mode's role that only a change could test. AWS evaluates the role's policies, its
//! boundary and the organization's policies in the call `iam:SimulatePrincipalPolicy`.

use std::collections::BTreeSet;

use aws_sdk_iam::error::SdkError;
use aws_sdk_iam::operation::simulate_principal_policy::SimulatePrincipalPolicyError;
use aws_sdk_iam::types::{EvaluationResult, PolicyEvaluationDecisionType};
use aws_types::SdkConfig;
use freehold_protocol::Arn;
use freehold_protocol::preflight::{CheckInstall, Finding, Permission, STACK_CHANGES};

use super::finding::{Answer, fail, pass, unchecked, warn, way_to};
use super::permissions::role;
use crate::job::Job;
use crate::kinds::templates::Templates;

const CHECK: &str = "permissions";
/// The maximum number of denied actions that a finding names.
const NAMED: usize = 4;
/// The maximum number of results in one response (IAM API, `SimulatePrincipalPolicy`, `MaxItems`).
const MAX_ITEMS: i32 = 1000;

/// Simulates two groups of actions. The jobs of this deploy need the actions of the first group, so a denial is a
/// failure. The app's policies allow the actions of the second group by name. The role's boundary or the organization's
/// policies may still deny them; this is a warning, because the app may not need them.
pub(super) async fn simulate(
    job: &Job,
    sdk: &SdkConfig,
    work: &CheckInstall,
    stacks: &BTreeSet<String>,
) -> Vec<Finding> {
    let Some(arn) = job.config.modes.role(job.order.mode).and_then(Arn::parse) else {
        return vec![unchecked(CHECK, "the runner's config names no role for this mode", "")];
    };
    let client = aws_sdk_iam::Client::new(sdk);
    let own = own_needs(&arn, job, work, stacks);
    let app = rendered(job, &work.permissions);
    let mut findings = Vec::new();
    for (needs, of_app) in [(own, false), (app, true)] {
        let mut decided = Vec::new();
        for need in &needs {
            match ask(&client, arn.text, need).await {
                Ok(more) => decided.extend(more),
                Err(error) => {
                    findings.push(no_answer(Answer::of(&Err::<(), _>(error)), job, &arn));
                    return findings;
                }
            }
        }
        if !decided.is_empty() {
            findings.push(judge(&decided, of_app, &role(job)));
        }
    }
    if work.permissions_left_out > 0 {
        let left_out = work.permissions_left_out;
        findings.push(pass(CHECK, format!("{left_out} more actions that the app's policies allow were not simulated")));
    }
    findings
}

fn no_answer(answer: Answer, job: &Job, arn: &Arn<'_>) -> Finding {
    let (text, fix) = match answer {
        Answer::Denied(text) => (
            text,
            format!(
                "allow `iam:SimulatePrincipalPolicy` on `{}` for {}, so that preflight can check the permissions",
                arn.text,
                role(job)
            ),
        ),
        Answer::Unreachable(text) => (text, way_to("AWS IAM")),
        Answer::Other { text, .. } => (text, String::new()),
        Answer::Allowed => (String::new(), String::new()),
    };
    unchecked(CHECK, text, fix)
}

/// The decision of AWS about one action on one resource.
#[derive(Debug, Clone, PartialEq, Eq)]
struct Decided {
    /// The action and the resource, such as `` `s3:PutObject` on `arn:aws:s3:::bucket/key` ``.
    what: String,
    denied: bool,
}

async fn ask(
    client: &aws_sdk_iam::Client,
    role: &str,
    need: &Permission,
) -> Result<Vec<Decided>, SdkError<SimulatePrincipalPolicyError>> {
    let request = client.simulate_principal_policy().policy_source_arn(role).max_items(MAX_ITEMS);
    let request = request.set_action_names(Some(need.actions.iter().cloned().collect()));
    let answer = request.set_resource_arns(Some(need.resources.iter().cloned().collect())).send().await?;
    Ok(answer.evaluation_results().iter().flat_map(decided).collect())
}

/// Returns the decisions of one result. It skips a denial for which AWS lacked the value of a condition, because the
/// runner does not know these values and the denial proves nothing.
fn decided(result: &EvaluationResult) -> Vec<Decided> {
    let action = result.eval_action_name();
    let decided = |resource: &str, decision: &PolicyEvaluationDecisionType, missing: &[String]| {
        let denied = *decision != PolicyEvaluationDecisionType::Allowed;
        let what = format!("`{action}` on `{resource}`");
        (!denied || missing.is_empty()).then_some(Decided { what, denied })
    };
    if result.resource_specific_results().is_empty() {
        let resource = result.eval_resource_name().unwrap_or("*");
        return decided(resource, result.eval_decision(), result.missing_context_values()).into_iter().collect();
    }
    let each = result.resource_specific_results().iter();
    each.filter_map(|one| decided(one.eval_resource_name(), one.eval_resource_decision(), one.missing_context_values()))
        .collect()
}

fn judge(decided: &[Decided], of_app: bool, role: &str) -> Finding {
    let whose = if of_app { "the app's policies allow" } else { "jobs always need" };
    let denied: Vec<&str> = decided.iter().filter(|one| one.denied).map(|one| one.what.as_str()).collect();
    if denied.is_empty() {
        return pass(CHECK, format!("{role} may do all {} actions that {whose}", decided.len()));
    }
    let named = denied.iter().take(NAMED).copied().collect::<Vec<_>>().join(", ");
    let more = match denied.len().saturating_sub(NAMED) {
        0 => String::new(),
        more => format!(", and {more} more"),
    };
    let detail = format!("{role} may not do these actions, which {whose}: {named}{more}");
    let fix = "the role's policies, its boundary and the organization's policies must all allow these actions; launch the \
               current template of the install stack, which sets the first two";
    if of_app { warn(CHECK, detail, fix) } else { fail(CHECK, detail, fix) }
}

/// Returns the actions that jobs need under the mode's role and that preflight cannot test by calling them.
fn own_needs(arn: &Arn<'_>, job: &Job, work: &CheckInstall, stacks: &BTreeSet<String>) -> Vec<Permission> {
    let mut needs = Vec::new();
    let (partition, account, region) = (arn.partition, arn.account, &job.config.region);
    if let (Some(bucket), false) = (&job.config.bucket, work.terraform_versions.is_empty()) {
        let object = |path: &str| format!("arn:{partition}:s3:::{bucket}/{path}/freehold-preflight");
        needs.push(permission(&["s3:GetObject", "s3:PutObject", "s3:DeleteObject"], [object("terraform")]));
        needs.push(permission(&["s3:GetObject", "s3:PutObject"], [object("plans")]));
    }
    if !stacks.is_empty() {
        let stack = |name: &String| {
            let id = "00000000-0000-0000-0000-000000000000";
            format!("arn:{partition}:cloudformation:{region}:{account}:stack/{name}/{id}")
        };
        needs.push(permission(&STACK_CHANGES, stacks.iter().map(stack)));
    }
    needs
}

fn permission(actions: &[&str], resources: impl IntoIterator<Item = String>) -> Permission {
    Permission {
        actions: actions.iter().map(ToString::to_string).collect(),
        resources: resources.into_iter().collect(),
    }
}

/// Returns the permissions in the app's policies, with the templates rendered. It omits resources for which a value is
/// not known yet.
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

#[cfg(test)]
mod tests {
    use aws_sdk_iam::types::ResourceSpecificResult;
    use freehold_protocol::preflight::Verdict;

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
        let put = |denied: bool| Decided { what: "`s3:PutObject` on `arn:aws:s3:::b/x`".into(), denied };
        let allowed = result(PolicyEvaluationDecisionType::Allowed, None);
        let explicit = result(PolicyEvaluationDecisionType::ExplicitDeny, None);
        let unknown = result(PolicyEvaluationDecisionType::ImplicitDeny, Some(vec!["s3:prefix".into()]));

        assert_eq!(decided(&allowed), [put(false)]);
        assert_eq!(decided(&explicit), [put(true)]);
        assert_eq!(decided(&unknown), []);
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

        let found = decided(&both);

        let words: Vec<_> = found.iter().map(|one| (one.what.as_str(), one.denied)).collect();
        assert_eq!(words, [("`s3:PutObject` on `a`", false), ("`s3:PutObject` on `b`", true)]);
    }

    #[test]
    fn what_jobs_need_fails_and_what_an_app_asks_for_warns() {
        let decided: Vec<_> = (0..10).map(|at| Decided { what: format!("`s3:Get{at}`"), denied: at > 0 }).collect();

        let (own, app) = (judge(&decided, false, "role `r`"), judge(&decided, true, "role `r`"));

        assert_eq!((own.state, app.state), (Verdict::Fail, Verdict::Warn));
        assert!(own.detail.ends_with("`s3:Get4`, and 5 more"), "{}", own.detail);
        assert!(judge(&decided[..1], false, "role `r`").detail.contains("all 1 actions that jobs always need"));
    }
}
