//! `health`: checks a deployed component until it is healthy or its time limit has passed. It changes nothing. The only
//! programs that it starts are the app's own probes ([`commands`]).
//!
//! The questions of one check are asked at the same time ([`questions`]). A redelivery starts again from the first
//! check.

mod commands;
mod objects;
mod probes;
mod questions;
mod watch;

use std::time::{Duration, Instant};

use freehold_protocol::order::health::{Asks, CheckHealth, Health, HealthState, MAX_PROBES, MAX_REASON_CHARS, OUTPUT};
use freehold_protocol::report::{Block, Outcome};
use futures_util::future::BoxFuture;

use crate::job::Job;
use crate::job::failure::{Failure, until_stopped};
use crate::kinds::cloudformation_stack;
use crate::kinds::result::Done;
use crate::kubernetes::part_with_cluster;
use commands::Commands;
use questions::Question;
use watch::{Verdict, Watch};

/// The longest time between two checks.
const LONGEST: Duration = Duration::from_secs(5);
/// The time limit of one check without commands. After it, the reason names each question without an answer. The time
/// limit of each command is added, because commands run one after another.
const LIMIT: Duration = Duration::from_secs(30);
/// The number of characters that are reserved for stating how many reasons do not fit.
const MORE: usize = 20;
/// The shortest time between two checks.
const SHORTEST: Duration = Duration::from_millis(100);

/// Checks the component until it has been healthy for as long as the order requires, or until its time limit has
/// passed.
pub(super) async fn run(job: &Job, work: &CheckHealth) -> Result<Done, Failure> {
    let commands = Commands::of(job, work).await?;
    let found = check(job, work, &commands).await;
    commands.finish().await;
    let found = found?;
    let found = Health::new(found.state, &job.log.redacted(&found.reason));
    let value = serde_json::to_value(&found);
    let value = value.map_err(|error| Failure::because("could not write the health as JSON", &error))?;
    Ok(Done { outputs: [(OUTPUT.to_owned(), value)].into(), ..Done::default() })
}

async fn check(job: &Job, work: &CheckHealth, commands: &Commands) -> Result<Health, Failure> {
    let seconds = |secs: u32| Duration::from_secs(u64::from(secs));
    let (started, mut last_line) = (Instant::now(), String::new());
    let mut watch = Watch::new(seconds(work.hold_secs), seconds(work.limit_secs));
    loop {
        let seen = until_stopped(job, look(job, work, commands)).await?;
        let line = line(&seen);
        if line != last_line {
            job.log.line(&line);
            last_line = line;
        }
        let at = started.elapsed();
        match watch.on(at, seen.state == HealthState::Healthy) {
            Verdict::Passed => return Ok(seen),
            Verdict::GivenUp => return Ok(given_up(work, seen, watch.healthy_for(at))),
            Verdict::Again(wait) => {
                let pause = async {
                    tokio::time::sleep(wait.clamp(SHORTEST, LONGEST)).await;
                    Ok(())
                };
                until_stopped(job, pause).await?;
            }
        }
    }
}

/// Returns the outcome of a gate. The gate does not succeed when the component is unhealthy or its health is unknown.
/// Any other outcome is returned unchanged.
pub(super) fn gated(work: &CheckHealth, outcome: Outcome) -> Outcome {
    let Outcome::Succeeded { outputs, .. } = &outcome else { return outcome };
    let found = outputs.get(OUTPUT).cloned().and_then(|value| serde_json::from_value::<Health>(value).ok());
    let Some(Health { state, reason }) = found.filter(|_| work.gate) else { return outcome };
    let (component, limit) = (&work.component, work.limit_secs);
    match state {
        HealthState::Healthy => outcome,
        HealthState::Unhealthy => Outcome::Blocked {
            block: Block::Unhealthy,
            reason: format!("component `{component}` is not healthy after {limit} s: {reason}"),
        },
        HealthState::Unknown => Outcome::Failed {
            reason: format!("the health of component `{component}` is not known after {limit} s: {reason}"),
            partial: false,
        },
    }
}

/// Returns the health of a component whose time limit has passed. The component may be healthy by then, but not for
/// long enough.
fn given_up(work: &CheckHealth, seen: Health, healthy_for: Option<Duration>) -> Health {
    let Some(time) = healthy_for else { return seen };
    let reason =
        format!("it has been healthy for only {} s, and has to stay healthy for {} s", time.as_secs(), work.hold_secs);
    Health::new(HealthState::Unhealthy, &reason)
}

fn line(seen: &Health) -> String {
    let colon = if seen.reason.is_empty() { "" } else { ": " };
    format!("{}{colon}{}", seen.state.as_str(), seen.reason)
}

/// Asks all questions once. Returns the worst answer, with the reasons of all answers that are equally bad.
async fn look(job: &Job, work: &CheckHealth, commands: &Commands) -> Result<Health, Failure> {
    let mut asked = Vec::new();
    if let Some(kind) = of_kind(job, work) {
        asked.push(kind);
    }
    // The commands run one after another, so they come last: the addresses must not wait for them.
    let (by_address, by_command): (Vec<_>, Vec<_>) =
        work.probes.iter().take(MAX_PROBES).partition(|probe| probe.command().is_none());
    let of_commands = by_command.iter().fold(LIMIT, |limit, _| limit + commands::TIME);
    let by_address = by_address.into_iter().map(|probe| (probe, LIMIT));
    for (probe, limit) in by_address.chain(by_command.into_iter().map(|probe| (probe, of_commands))) {
        asked.push(Question::of(probes::name(probe), limit, probes::ask(job, probe, commands)));
    }
    Ok(worst(&questions::ask(asked).await?))
}

/// Returns the question for the kind of the component; `None` if there is none. If asking fails, the health is unknown.
fn of_kind<'a>(job: &'a Job, work: &'a CheckHealth) -> Option<Question<'a>> {
    let (name, asks): (_, BoxFuture<'a, Result<Health, Failure>>) = match &work.asks {
        Asks::Nothing => return None,
        Asks::Objects { cluster } => {
            let name = format!("the objects in the cluster of {}", part_with_cluster(cluster));
            (name, Box::pin(objects::of_manifest(job, &work.component, cluster)))
        }
        Asks::Release { cluster, release, namespace, storage_driver } => {
            let name = format!("the objects of the release in the cluster of {}", part_with_cluster(cluster));
            (name, Box::pin(objects::of_release(job, cluster, [release, namespace, storage_driver])))
        }
        Asks::Stack { stack_name } => ("the stack".to_owned(), Box::pin(cloudformation_stack::health(job, stack_name))),
    };
    let answer = async {
        match asks.await {
            Err(Failure::Failed { reason, .. }) => Ok(Health::new(HealthState::Unknown, &job.log.redacted(&reason))),
            answered => answered,
        }
    };
    Some(Question::of(name, LIMIT, answer))
}

fn worst(found: &[Health]) -> Health {
    let Some(state) = found.iter().map(|one| one.state).max() else {
        return Health::new(
            HealthState::Unknown,
            "components of this type have no health check of their own, and this one has no probe",
        );
    };
    let reasons: Vec<&str> = found
        .iter()
        .filter(|one| one.state == state)
        .map(|one| one.reason.as_str())
        .filter(|one| !one.is_empty())
        .collect();
    Health::new(state, &joined(&reasons))
}

/// Returns one text with the reasons that fit into it, and the number of the others.
fn joined(reasons: &[&str]) -> String {
    let mut text = String::new();
    for (at, reason) in reasons.iter().enumerate() {
        let separator = if at == 0 { "" } else { "; " };
        let length = text.chars().count() + separator.len() + reason.chars().count();
        if at > 0 && length + MORE > MAX_REASON_CHARS {
            let more = reasons.len() - at;
            text.push_str(&format!("; and {more} more"));
            break;
        }
        text.push_str(separator);
        text.push_str(reason);
    }
    text
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeMap;

    use super::*;

    fn work(gate: bool) -> CheckHealth {
        let component = "web".parse().unwrap();
        CheckHealth { component, asks: Asks::Nothing, probes: Vec::new(), hold_secs: 30, limit_secs: 60, gate }
    }

    fn outcome(state: HealthState, reason: &str) -> Outcome {
        let value = serde_json::to_value(Health::new(state, reason)).unwrap();
        let outputs = BTreeMap::from([(OUTPUT.to_owned(), value)]);
        Outcome::Succeeded { outputs, sensitive: BTreeMap::new(), artifact: None }
    }

    #[test]
    fn the_worst_answer_counts_with_the_reasons_of_its_kind() {
        let good = Health::new(HealthState::Healthy, "");
        let bad = |why| Health::new(HealthState::Unhealthy, why);
        let unknown = Health::new(HealthState::Unknown, "silent");

        assert_eq!(worst(&[good.clone(), bad("a"), unknown.clone(), bad("b")]), bad("a; b"));
        assert_eq!(worst(&[good.clone(), unknown.clone()]), unknown);
        assert_eq!(worst(std::slice::from_ref(&good)), good);
        assert_eq!(worst(&[]).state, HealthState::Unknown);
    }

    #[test]
    fn reasons_that_do_not_fit_are_counted() {
        let bad: Vec<Health> =
            (0..20).map(|at| Health::new(HealthState::Unhealthy, &format!("probe `{at:064}`: no answer"))).collect();

        let found = worst(&bad);

        assert!(found.reason.chars().count() <= MAX_REASON_CHARS, "{}", found.reason);
        assert!(found.reason.ends_with(": no answer; and 15 more"), "{}", found.reason);
    }

    #[test]
    fn only_a_gate_fails_and_only_without_health() {
        let sick = outcome(HealthState::Unhealthy, "0 of 1 are ready");

        assert_eq!(gated(&work(false), sick.clone()), sick);
        let well = outcome(HealthState::Healthy, "");
        assert_eq!(gated(&work(true), well.clone()), well);
        assert_eq!(
            gated(&work(true), sick),
            Outcome::Blocked {
                block: Block::Unhealthy,
                reason: "component `web` is not healthy after 60 s: 0 of 1 are ready".to_owned()
            }
        );
        let silent = gated(&work(true), outcome(HealthState::Unknown, "the cluster is silent"));
        assert!(matches!(silent, Outcome::Failed { partial: false, .. }), "{silent:?}");
    }

    #[test]
    fn health_at_the_last_moment_is_not_enough() {
        let seen = Health::new(HealthState::Healthy, "");

        let found = given_up(&work(true), seen, Some(Duration::from_secs(7)));

        assert_eq!(found.reason, "it has been healthy for only 7 s, and has to stay healthy for 30 s");
        assert_eq!(found.state, HealthState::Unhealthy);
    }
}
