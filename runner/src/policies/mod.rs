//! The policies that guard a job: the vendor's, which the signed order carries, the customer's own, which are in the
//! install's bucket, and the built-in ones of every install. All of them are evaluated, and the strictest one decides.

mod customers;
mod guard;
mod results;

use std::sync::Arc;

use freehold_policy::input::About;
use freehold_policy::{Answer, Evaluator, LIMITS, PolicyError, PolicyText, built_in};
use freehold_protocol::app_version::PolicyEngine;
use freehold_protocol::order::{Mode, Order, Work};
use freehold_protocol::policy::{OrderPolicy, PolicyOrigin, PolicyResult};
use freehold_protocol::{AccountId, Arn};
use serde_json::Value;

use crate::config::Config;
use crate::job::Job;
use crate::sandbox::own_program;
use guard::{Guard, Text};
use results::{Asked, result};

/// Evaluates all policies that guard the job on these documents. Returns their results twice: as the vendor may see
/// them, and in full. Built-in policies without a message are left out.
///
/// # Errors
/// The reason why the customer's policies cannot be read.
pub(crate) async fn ask(job: &Job, documents: Vec<Value>) -> Result<(Vec<PolicyResult>, Value), String> {
    let mut guards: Vec<Guard> = job.order.policies.iter().filter_map(vendors).collect();
    guards.extend(customers::read(&job.config).await?);
    guards.extend(built_in::ALL.iter().map(|one| of_install(&job.config, one)));
    let documents = Arc::new(documents);
    let (texts, asked) = (guards.clone(), documents.clone());
    let answers = tokio::task::spawn_blocking(move || answers(&texts, &asked)).await;
    let answers = answers.map_err(|error| format!("cannot evaluate policies: {error}"))?;
    let log = job.log.clone();
    let redact = move |text: &str| log.redacted(text);
    let asked = Asked { documents: &documents, redact: &redact };
    let mut results = Vec::new();
    let mut full = Vec::new();
    for (guard, answer) in guards.iter().zip(answers) {
        let (seen, whole) = result(guard, answer, &asked);
        // A built-in policy is part of the result only when it has a message.
        if guard.origin != PolicyOrigin::BuiltIn || seen.stops() || !seen.warn.is_empty() {
            results.push(seen);
            full.push(whole);
        }
    }
    Ok((results, Value::Array(full)))
}

/// Returns the facts about a job that the documents for its policies contain.
pub(crate) fn about(job: &Job) -> About {
    let (order, config) = (&job.order, &job.config);
    About {
        tenant: order.tenant.to_string(),
        install: order.install.to_string(),
        account: account(config).unwrap_or_default().to_owned(),
        region: config.region.clone(),
        component: order.work.component().map(ToString::to_string).unwrap_or_default(),
        kind: order.work.made_by().kind().to_owned(),
        mode: mode(order).to_owned(),
        is_removal: matches!(order.work, Work::Remove(_)),
        maintenance_creates: config.policies.maintenance_creates,
        maintenance_components: config.policies.maintenance_components.iter().cloned().collect(),
    }
}

/// Returns the mode whose limits apply to the order. If the order names a role of the app, the mode of the order is not
/// used, because the switch of that mode was not checked.
fn mode(order: &Order) -> &'static str {
    match &order.role {
        Some(role) if !role.is_break_glass() => Mode::Maintenance.as_str(),
        Some(_) | None => order.mode.as_str(),
    }
}

/// Returns the account of the install: that of its roles, or else the end of the name of its bucket.
fn account(config: &Config) -> Option<&str> {
    let arns = config.modes.all().chain(config.roles.values().map(String::as_str)).chain(config.boundary.as_deref());
    let is_account = |text: &&str| AccountId::SHAPE.accepts(text);
    let of_arns = arns.filter_map(Arn::parse).map(|arn| arn.account).find(is_account);
    of_arns.or_else(|| config.bucket.as_deref()?.rsplit("--").next().filter(is_account))
}

fn vendors(policy: &OrderPolicy) -> Option<Guard> {
    let text = match policy.engine {
        // Kyverno evaluates these policies in a cluster.
        PolicyEngine::Kyverno => return None,
        PolicyEngine::Opa => {
            policy.text().map_or_else(|error| Text::Unreadable(freehold_aws_errors::chain(&error)), Text::Known)
        }
    };
    Some(Guard { name: policy.name.clone(), origin: PolicyOrigin::Vendor, text, is_loosened: false })
}

fn of_install(config: &Config, policy: &built_in::BuiltIn) -> Guard {
    Guard {
        name: policy.name.to_owned(),
        origin: PolicyOrigin::BuiltIn,
        text: Text::Known(policy.policy().text),
        is_loosened: policy.can_be_loosened && config.policies.loosened.contains(policy.name),
    }
}

/// Evaluates the policies whose text is known, and returns an answer for each. If a policy has to be stopped, its
/// answer states this, and the policies after it are evaluated in a new process.
fn answers(guards: &[Guard], documents: &[Value]) -> Vec<Answer> {
    let program = match own_program() {
        Ok(program) => program,
        Err(error) => {
            return guards.iter().map(|_| Answer::Failed(format!("cannot evaluate policies: {error}"))).collect();
        }
    };
    let evaluator = Evaluator::new(program, LIMITS);
    let together: Vec<PolicyText> = guards.iter().filter_map(policy).collect();
    let mut known = match evaluator.ask(together.clone(), documents.to_vec()) {
        Ok(answers) => answers,
        Err(PolicyError::NotStarted(reason)) => vec![Answer::Failed(reason); together.len()],
        Err(_) => together.into_iter().map(|one| alone(&evaluator, one, documents)).collect(),
    }
    .into_iter();
    let lost = || Answer::Failed("the policy was not evaluated; this is a mistake in the runner".to_owned());
    let answer = |guard: &Guard| match &guard.text {
        Text::Known(_) => known.next().unwrap_or_else(lost),
        Text::Unreadable(why) => Answer::Failed(why.clone()),
    };
    guards.iter().map(answer).collect()
}

fn policy(guard: &Guard) -> Option<PolicyText> {
    match &guard.text {
        Text::Known(text) => Some(PolicyText { file: guard.name.clone(), text: text.clone() }),
        Text::Unreadable(_) => None,
    }
}

fn alone(evaluator: &Evaluator, policy: PolicyText, documents: &[Value]) -> Answer {
    match evaluator.ask(vec![policy], documents.to_vec()) {
        Ok(mut answers) => answers.pop().unwrap_or(Answer::Failed("the policy gave no answer".to_owned())),
        Err(error) => Answer::Failed(error.to_string()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::config::Role;

    #[test]
    fn the_account_of_an_install_is_that_of_its_roles_or_its_bucket() {
        let mut config = crate::testing::config("/state", Role::Install);
        assert_eq!(account(&config), None);

        config.bucket = Some("fh-acme--globex-prod--222222222222".into());
        assert_eq!(account(&config), Some("222222222222"));

        config.boundary = Some("arn:aws:iam::333333333333:policy/x".into());
        assert_eq!(account(&config), Some("333333333333"));
    }

    #[test]
    fn a_role_of_the_app_has_the_limits_of_maintenance_whatever_mode_is_beside_it() {
        let under = |role: Option<&str>| {
            let role = role.map(|role| role.parse().unwrap());
            mode(&Order { role, mode: Mode::Provision, ..crate::testing::order(1, 1) })
        };

        assert_eq!([under(None), under(Some("custom-support"))], ["provision", "maintenance"]);
    }

    #[test]
    fn a_customer_loosens_what_can_be_loosened() {
        let mut config = crate::testing::config("/state", Role::Install);
        config.policies.loosened = ["no-strangers".to_owned(), "maintenance-limits".to_owned()].into();

        let loosened: Vec<_> = built_in::ALL.iter().filter(|one| of_install(&config, one).is_loosened).collect();

        assert_eq!(loosened.iter().map(|one| one.name).collect::<Vec<_>>(), ["no-strangers"]);
    }
}
