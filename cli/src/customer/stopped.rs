//! `freehold customer stopped`: asks AWS whether the vendor can do nothing at this moment. The stack's parameters alone
//! do not prove it.

use aws_sdk_iam::Client;
use aws_sdk_iam::error::ProvideErrorMetadata as _;
use aws_sdk_iam::types::{ContextEntry, ContextKeyTypeEnum, PolicyEvaluationDecisionType};
use clap::Args;
use freehold_protocol::{Arn, InstallId, names};
use percent_encoding::percent_decode_str;
use serde::Serialize;
use serde_json::Value;

use super::answer::Answer;
use super::own_install::OwnInstall;
use super::question::Question;
use crate::context::Context;
use crate::error::{Error, Result, ResultExt};
use crate::output::{Part, Table, plural};

/// The end of the names of the stack's outputs with the ARNs of roles.
const ROLE_ARN: &str = "RoleArn";

/// For customers: check that neither the runner nor any mode can do anything now.
#[derive(Debug, Args)]
#[command(after_help = Question::IsStopped.help("\
Example:
  freehold customer stopped globex --tenant acme

Exit code 1 when the runner or a mode can still do something."))]
pub(crate) struct Stopped {
    /// Name of the install.
    install: InstallId,
}

/// One check: whether the runner or a mode can do something.
#[derive(Debug, PartialEq, Eq, Serialize)]
struct Check {
    /// The checked operation, such as to receive orders.
    what: String,
    /// Whether nobody can perform the operation at this moment.
    stopped: bool,
    /// The state that AWS reported.
    found: String,
}

/// The result of all checks, as `--json` prints it.
#[derive(Debug, Serialize)]
struct State {
    question: &'static str,
    stopped: bool,
    looked_up: Vec<Check>,
    rests_on: &'static str,
}

impl Stopped {
    pub(crate) async fn run(&self, context: &Context) -> Result<()> {
        answer(&OwnInstall::find(context, &self.install).await?).await?.print(context.out)
    }
}

/// Asks AWS whether the runner and each mode can do something at this moment.
pub(super) async fn answer(own: &OwnInstall) -> Result<Answer> {
    let stack = own.stack().await?;
    let runner = stack.output("RunnerRoleArn")?.to_owned();
    let queue = queue_arn(stack.output("OrdersQueueUrl")?, (&runner, &crate::aws::region(&own.config)));
    let modes: Vec<(String, String)> = stack
        .outputs
        .iter()
        .filter(|(name, _)| name.ends_with(ROLE_ARN) && *name != "RunnerRoleArn")
        .map(|(name, arn)| (name.trim_end_matches(ROLE_ARN).to_owned(), arn.clone()))
        .collect();
    let iam = Client::new(&own.config);
    let mut looked_up = vec![simulate(&iam, &runner, ("receive an order", "sqs:ReceiveMessage"), &queue).await?];
    for (name, arn) in &modes {
        let what = format!("assume the role of {name}");
        let trust = trust(&iam, arn).await?;
        let taken = simulate(&iam, &runner, (&what, "sts:AssumeRole"), arn).await?;
        looked_up.push(if admits(&trust, &runner) { taken } else { not_admitted(taken) });
        looked_up.push(sessions(&iam, name, arn).await?);
        looked_up.push(others(name, &trust, &runner));
    }
    looked_up.push(machines(own).await?);
    let open = looked_up.iter().filter(|look| !look.stopped).count();
    let state = State {
        question: Question::IsStopped.text(),
        stopped: open == 0,
        looked_up,
        rests_on: Question::IsStopped.rests_on(),
    };
    let verdict = match open {
        0 => Ok(()),
        count => {
            Err(Error::failed(format!("install `{}` is not stopped: {} failed", own.install, plural(count, "check")))
                .or(format!("run `freehold customer pause {}`, then check again", own.install)))
        }
    };
    Ok(Answer::new(&state, parts(&state))?.with_verdict(verdict))
}

/// Asks IAM whether its current policies let the runner do something.
async fn simulate(iam: &Client, runner: &str, (what, action): (&str, &str), resource: &str) -> Result<Check> {
    let now = jiff::Timestamp::now().strftime("%Y-%m-%dT%H:%M:%SZ").to_string();
    let entry = |key: &str, value: &str, kind| {
        ContextEntry::builder().context_key_name(key).context_key_values(value).context_key_type(kind).build()
    };
    let asked = iam
        .simulate_principal_policy()
        .policy_source_arn(runner)
        .action_names(action)
        .resource_arns(resource)
        .context_entries(entry("aws:TokenIssueTime", &now, ContextKeyTypeEnum::Date))
        .context_entries(entry("aws:PrincipalArn", runner, ContextKeyTypeEnum::String));
    let answer = match asked.send().await {
        Ok(answer) => answer,
        Err(error) if error.code() == Some("NoSuchEntity") => {
            let (what, found) = (format!("the runner: {what}"), "the role does not exist".to_owned());
            return Ok(Check { what, stopped: true, found });
        }
        Err(error) => return Err(error).doing(format!("ask IAM about `{runner}`")),
    };
    let decision = answer.evaluation_results().first().map(|result| result.eval_decision().clone());
    let stopped = !matches!(decision, None | Some(PolicyEvaluationDecisionType::Allowed));
    let found = decision.map_or_else(|| "no answer".to_owned(), |decision| decision.as_str().to_owned());
    Ok(Check { what: format!("the runner: {what} (`{action}`)"), stopped, found })
}

/// Checks whether a policy of the role denies everything, also in live sessions.
async fn sessions(iam: &Client, name: &str, arn: &str) -> Result<Check> {
    let role = names::name_of_arn(arn);
    let what = format!("live sessions of {name}");
    let mut attached = iam.list_attached_role_policies().role_name(role).into_paginator().send();
    while let Some(page) = attached.next().await {
        let page = match page {
            Ok(page) => page,
            Err(error) if error.code() == Some("NoSuchEntity") => {
                return Ok(Check { what, stopped: true, found: "the role does not exist".to_owned() });
            }
            Err(error) => return Err(error).doing(format!("list the policies of role `{role}`")),
        };
        for policy in page.attached_policies() {
            let policy_arn = policy.policy_arn().unwrap_or_default();
            let about = || format!("read policy `{policy_arn}`");
            let found = iam.get_policy().policy_arn(policy_arn).send().await.doing(about())?;
            let version = found.policy().and_then(|policy| policy.default_version_id()).unwrap_or_default().to_owned();
            let read = iam.get_policy_version().policy_arn(policy_arn).version_id(version).send().await;
            let read = read.doing(about())?;
            let document = read.policy_version().and_then(|version| version.document()).unwrap_or_default();
            let document = percent_decode_str(document).decode_utf8_lossy();
            if denies_all(&serde_json::from_str(&document).unwrap_or_default(), arn) {
                let found = format!("policy `{}` denies everything", policy.policy_name().unwrap_or_default());
                return Ok(Check { what, stopped: true, found });
            }
        }
    }
    Ok(Check { what, stopped: false, found: "no policy denies live sessions everything".to_owned() })
}

/// Returns the trust policy of a role, or a policy that trusts nobody if the role does not exist.
async fn trust(iam: &Client, arn: &str) -> Result<Value> {
    let role = names::name_of_arn(arn);
    let found = match iam.get_role().role_name(role).send().await {
        Ok(found) => found,
        Err(error) if error.code() == Some("NoSuchEntity") => return Ok(Value::Null),
        Err(error) => return Err(error).doing(format!("read role `{role}`")),
    };
    let document = found.role().and_then(|role| role.assume_role_policy_document()).unwrap_or_default();
    Ok(serde_json::from_str(&percent_decode_str(document).decode_utf8_lossy()).unwrap_or_default())
}

/// Checks that no principal except the runner may assume a role.
fn others(name: &str, trust: &Value, runner: &str) -> Check {
    let what = format!("another principal than the runner: assume the role of {name}");
    let others = trusted(trust, runner);
    if others.is_empty() {
        return Check { what, stopped: true, found: "the role trusts nobody else".to_owned() };
    }
    Check { what, stopped: false, found: format!("the role trusts {}", others.join(", ")) }
}

/// Returns the result for a role that does not trust the runner. The runner's own policies do not matter then.
fn not_admitted(look: Check) -> Check {
    if look.stopped {
        return look;
    }
    Check { stopped: true, found: "the role does not trust the runner".to_owned(), ..look }
}

/// Checks for machines in the stack's Auto Scaling group.
async fn machines(own: &OwnInstall) -> Result<Check> {
    let group = names::install_part(&own.tenant, &own.install, "runner");
    let client = aws_sdk_autoscaling::Client::new(&own.config);
    let found = client.describe_auto_scaling_groups().auto_scaling_group_names(&group).send().await;
    let found = found.doing(format!("look up the group `{group}`"))?;
    let what = "machines of the stack".to_owned();
    let Some(group) = found.auto_scaling_groups().first() else {
        let found = "the stack has no Auto Scaling group: if you run the runner elsewhere, stop it there".to_owned();
        return Ok(Check { what, stopped: true, found });
    };
    let (count, wanted) = (group.instances().len(), group.desired_capacity().unwrap_or_default());
    let found = format!("{}, desired capacity {wanted}", plural(count, "machine"));
    Ok(Check { what, stopped: count == 0 && wanted == 0, found })
}

/// Returns whether a statement denies this role everything, with no condition except the role's name.
fn denies_all(document: &Value, role: &str) -> bool {
    statements(document).iter().any(|statement| {
        let is = |key: &str, value: &str| texts(statement.get(key)) == [value];
        let of_role = match statement.get("Condition").and_then(Value::as_object) {
            None => true,
            Some(condition) => condition.iter().all(|(operator, keys)| {
                let arns = keys.get("aws:PrincipalArn");
                operator == "ArnEquals"
                    && keys.as_object().is_some_and(|keys| keys.len() == 1)
                    && texts(arns).contains(&role)
            }),
        };
        is("Effect", "Deny") && is("Action", "*") && is("Resource", "*") && of_role
    })
}

/// Returns the principals apart from the runner that a trust policy allows to assume the role.
fn trusted(document: &Value, runner: &str) -> Vec<String> {
    let allowing = statements(document);
    let allowing = allowing
        .iter()
        .filter(|statement| texts(statement.get("Effect")) == ["Allow"] && !is_of_runner(statement, runner));
    let principals = allowing.flat_map(|statement| match statement.get("Principal") {
        Some(Value::Object(kinds)) => kinds.values().flat_map(|value| texts(Some(value))).collect(),
        // A statement without `Principal` has `NotPrincipal`, and trusts everybody except the principals that it lists there.
        None => vec!["everybody except those in `NotPrincipal`"],
        other => texts(other),
    });
    principals.filter(|principal| *principal != runner).map(str::to_owned).collect()
}

/// Returns whether a trust policy allows the runner to assume the role.
fn admits(document: &Value, runner: &str) -> bool {
    statements(document).iter().any(|statement| {
        let named = statement.pointer("/Principal/AWS");
        texts(statement.get("Effect")) == ["Allow"]
            && (is_of_runner(statement, runner) || texts(named).contains(&runner))
    })
}

/// Returns whether a statement is only about the runner. The stack's own trust policies name the account, with the
/// condition that the principal is the runner.
fn is_of_runner(statement: &Value, runner: &str) -> bool {
    let named = statement.pointer("/Condition/ArnEquals").and_then(|keys| keys.get("aws:PrincipalArn"));
    texts(named) == [runner]
}

fn statements(document: &Value) -> Vec<Value> {
    match document.get("Statement") {
        Some(Value::Array(all)) => all.clone(),
        Some(one) => vec![one.clone()],
        None => Vec::new(),
    }
}

/// Returns the texts of a value that is a text or a list of texts.
fn texts(value: Option<&Value>) -> Vec<&str> {
    match value {
        Some(Value::String(text)) => vec![text],
        Some(Value::Array(all)) => all.iter().filter_map(Value::as_str).collect(),
        _ => Vec::new(),
    }
}

/// Returns the ARN of the queue with this URL, in the partition of the role. A URL that is not of AWS names no region;
/// then the ARN has the region of the install.
fn queue_arn(url: &str, (role, region): (&str, &str)) -> String {
    let mut parts = url.rsplit('/');
    let (name, account) = (parts.next().unwrap_or_default(), parts.next().unwrap_or_default());
    let host = parts.next().unwrap_or_default();
    let region = host.strip_prefix("sqs.").and_then(|rest| rest.split('.').next()).unwrap_or(region);
    let partition = Arn::parse(role).map_or("aws", |arn| arn.partition);
    format!("arn:{partition}:sqs:{region}:{account}:{name}")
}

fn parts(answer: &State) -> Vec<Part> {
    let mut table = Table::new(&["COULD WORK", "STOPPED", "AWS ANSWERS"]);
    for look in &answer.looked_up {
        table.row([look.what.clone(), if look.stopped { "yes" } else { "NO" }.to_owned(), look.found.clone()]);
    }
    let verdict = if answer.stopped { "the vendor can do nothing here at this moment" } else { "it is not stopped" };
    vec![Part::Table(table), Part::Text(verdict.to_owned())]
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    const ROLE: &str = "arn:aws:iam::222222222222:role/fh-acme--globex--provision";

    #[test]
    fn only_a_denial_of_everything_for_the_role_stops_its_sessions() {
        let deny = |action: &str, condition: Option<Value>| {
            let mut statement = json!({ "Effect": "Deny", "Action": action, "Resource": "*" });
            if let Some(condition) = condition {
                statement["Condition"] = condition;
            }
            json!({ "Statement": [statement] })
        };
        let named = |arn: &str| Some(json!({ "ArnEquals": { "aws:PrincipalArn": [arn] } }));
        let earlier = Some(json!({ "DateLessThan": { "aws:TokenIssueTime": "1970-01-01T00:00:00Z" } }));

        assert!(denies_all(&deny("*", None), ROLE) && denies_all(&deny("*", named(ROLE)), ROLE));
        assert!(!denies_all(&deny("s3:*", None), ROLE), "other actions work");
        assert!(!denies_all(&deny("*", named("arn:aws:iam::222222222222:role/other")), ROLE), "another role");
        assert!(!denies_all(&deny("*", earlier), ROLE), "sessions of today work");
        assert!(!denies_all(&json!({}), ROLE));
    }

    #[test]
    fn everybody_but_the_runner_is_a_stranger_in_a_trust() {
        let runner = "arn:aws:iam::222222222222:role/fh-acme--globex--runner";
        let trust = |principal: Value| {
            json!({ "Statement": [
                { "Effect": "Allow", "Principal": principal, "Action": "sts:AssumeRole" },
                { "Effect": "Deny", "Principal": "*", "Action": "sts:AssumeRole" },
            ]})
        };

        assert_eq!(trusted(&trust(json!({ "AWS": runner })), runner), Vec::<String>::new());
        let other = json!({ "AWS": [runner, "arn:aws:iam::111111111111:root"] });
        assert_eq!(trusted(&trust(other), runner), ["arn:aws:iam::111111111111:root"]);
        assert_eq!(trusted(&trust(json!("*")), runner), ["*"]);
        let mut own = trust(json!({ "AWS": "arn:aws:iam::222222222222:root" }));
        own["Statement"][0]["Condition"] = json!({ "ArnEquals": { "aws:PrincipalArn": runner } });
        assert_eq!(trusted(&own, runner), Vec::<String>::new());
        assert!(admits(&own, runner) && !admits(&trust(json!("*")), runner));
        own["Statement"][0]["Effect"] = json!("Deny");
        assert!(!admits(&own, runner) && !admits(&Value::Null, runner), "a role that is closed or gone");
    }

    #[test]
    fn the_queue_of_an_url_is_named_by_its_arn() {
        let url = "https://sqs.eu-west-1.amazonaws.com/111111111111/fh-acme--globex.fifo";

        assert_eq!(queue_arn(url, (ROLE, "us-east-1")), "arn:aws:sqs:eu-west-1:111111111111:fh-acme--globex.fifo");
    }
}
