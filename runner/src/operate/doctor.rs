//! `doctor`: reports what works, what is blocked, and how to fix it. It receives no order. It creates the runner's key
//! if the state directory has none, and changes nothing else.

use std::path::Path;
use std::sync::Arc;

use aws_config::SdkConfig;
use aws_sdk_sts::error::ProvideErrorMetadata as _;
use freehold_protocol::order::Mode;

use crate::aws;
use crate::config::{Config, Role, SandboxKind};
use crate::identity::denial::{AwsAccount, StackState, Standing};
use crate::identity::mode::Switch;
use crate::keys::runner_key::Identity;
use crate::kinds::terraform_module::executable;
use crate::operate::checks;
use crate::sandbox::{self, Pinned, Wall, cgroup};

/// The result of one check.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Finding {
    /// The name of the checked thing.
    pub what: String,
    pub state: State,
}

/// The state of a checked thing.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum State {
    Works(String),
    /// The checked thing is switched off, absent or limited, and the runner works without it.
    Off(String),
    /// The checked thing does not work; the text also explains how to fix it.
    Blocked(String),
}

impl Finding {
    /// Returns the finding about `what`: it works when `result` is `Ok`, otherwise it is blocked.
    pub fn new(what: impl Into<String>, result: Result<String, String>) -> Self {
        let state = match result {
            Ok(detail) => State::Works(detail),
            Err(problem) => State::Blocked(problem),
        };
        Self { what: what.into(), state }
    }

    /// Returns whether the checked thing needs no action.
    pub const fn is_well(&self) -> bool {
        matches!(self.state, State::Works(_) | State::Off(_))
    }
}

/// Checks everything that the runner of `config` needs. `programs` checks the programs
/// that its kinds of job start.
pub async fn examine(config: &Config, programs: impl Future<Output = Vec<Finding>>) -> Vec<Finding> {
    let sdk = aws::sdk_config(&config.region, None).await;
    let queues = aws::sdk_config(config.queue_region(), None).await;
    let mut findings = vec![Finding::new("state directory", state_dir(&config.state_dir))];
    let standing = Standing::new(config, Arc::new(AwsAccount::new(&sdk)));
    let role = standing.role().await;
    let is_right = role.is_ok();
    findings.push(Finding::new("AWS credentials", role));
    if !is_right {
        return findings;
    }
    if let Some(off) = standing.switched_off().await {
        findings.push(Finding { what: "kill switch".into(), state: State::Off(off) });
        return findings;
    }
    findings.push(Finding::new("orders queue", checks::orders(&queues, &config.orders_queue_url).await));
    findings.push(Finding::new("reports queue", checks::reports(&queues, &config.reports_queue_url).await));
    if config.role == Role::Install {
        findings.extend(modes(config, &sdk, &standing).await);
    }
    findings.push(Finding::new("container registry", checks::registry(&sdk).await));
    // The bucket of a build runner is not checked: its role may read single objects only, so S3 returns the same error
    // for a missing object and for a forbidden one.
    if let Some(bucket) = config.bucket.as_ref().filter(|_| config.role == Role::Install) {
        findings.push(Finding::new("bucket", checks::bucket(&sdk, bucket).await));
    }
    findings.extend(programs.await);
    findings.extend(sandbox::pinned(config).into_iter().map(|Pinned { name, state }| {
        let state = state.map(|program| format!("{program} has the digest that the config names"));
        Finding::new(format!("program {name}"), state)
    }));
    findings.extend(sandbox(config).await);
    findings
}

/// Returns the findings as lines for people.
pub fn text(findings: &[Finding]) -> String {
    let width = findings.iter().map(|finding| finding.what.len()).max().unwrap_or(0);
    let mut text = String::new();
    for Finding { what, state } in findings {
        let (word, detail) = match state {
            State::Works(detail) => ("ok     ", detail),
            State::Off(detail) => ("off    ", detail),
            State::Blocked(detail) => ("BLOCKED", detail),
        };
        text.push_str(&format!("{word}  {what:width$}  {detail}\n"));
    }
    text
}

/// Returns the findings as JSON.
pub fn json(findings: &[Finding]) -> String {
    let all: Vec<serde_json::Value> = findings
        .iter()
        .map(|Finding { what, state }| {
            let (word, detail) = match state {
                State::Works(detail) => ("ok", detail),
                State::Off(detail) => ("off", detail),
                State::Blocked(detail) => ("blocked", detail),
            };
            serde_json::json!({ "what": what, "state": word, "detail": detail })
        })
        .collect();
    format!("{:#}\n", serde_json::Value::from(all))
}

fn state_dir(path: &Path) -> Result<String, String> {
    let identity = Identity::load_or_make(path).map_err(|error| aws::explain(&error))?;
    Ok(format!("{} (runner key {})", path.display(), identity.id()))
}

/// Tries to assume each role of the install. A role that the customer switched off needs no action.
async fn modes(config: &Config, sdk: &SdkConfig, standing: &Standing) -> Vec<Finding> {
    let sts = aws_sdk_sts::Client::new(sdk);
    let stack = standing.stack().await;
    let modes = [Mode::Provision, Mode::Maintenance, Mode::Deprovision].map(|mode| {
        let role = config.modes.role(mode).map(str::to_owned);
        (Switch::of_mode(mode), role)
    });
    let named = config.roles.iter().map(|(key, role)| (Switch::of_role(key), Some(role.clone())));
    let mut findings = Vec::new();
    for (switch, role) in modes.into_iter().chain(named) {
        let what = switch.what().replace('`', "");
        let Some(role) = role else {
            let detail = "this install has no role for this mode: jobs of the mode end as blocked".to_owned();
            findings.push(Finding { what, state: State::Off(detail) });
            continue;
        };
        let state = match sts.assume_role().role_arn(&role).role_session_name("freehold-doctor").send().await {
            Ok(_) => State::Works(role),
            Err(error) if aws::is_denied(error.code()) => refused(&switch, &role, &stack, &aws::explain(&error)),
            Err(error) => State::Blocked(format!("cannot assume `{role}`: {}", aws::explain(&error))),
        };
        findings.push(Finding { what, state });
    }
    findings
}

/// Returns the state of a role that the runner cannot assume.
fn refused(switch: &Switch, role: &str, stack: &StackState, why: &str) -> State {
    match stack {
        StackState::Launched(parameters) | StackState::Changing(parameters) => match switch.is_off(parameters) {
            Some(parameter) => State::Off(format!(
                "switched off by parameter `{parameter}` of the install stack: jobs that need this role end as blocked"
            )),
            None => State::Blocked(format!(
                "`{role}` refuses this runner although the role is switched on: {why}; check who may assume it"
            )),
        },
        StackState::Gone => {
            State::Blocked(format!("`{role}` was deleted with its install stack; launch the stack again"))
        }
        StackState::Unreadable(reason) => State::Blocked(format!(
            "`{role}` refuses this runner ({why}), and the install stack cannot be read ({reason}); if the role \
             is switched off, {}",
            switch.how_to_switch_on()
        )),
    }
}

/// Looks for the Terraform program of an install runner.
pub async fn terraform(config: &Config) -> Vec<Finding> {
    let terraform = executable::find(config.terraform.as_deref());
    vec![Finding::new("terraform", terraform.map(|path| path.display().to_string()))]
}

async fn sandbox(config: &Config) -> Vec<Finding> {
    if config.sandbox == SandboxKind::None {
        if let Err(reason) = sandbox::check_user(config.sandbox) {
            return vec![Finding::new("sandbox", Err(reason))];
        }
        let detail = "none: jobs see the whole machine; set `sandbox = \"bubblewrap\"` outside of tests".to_owned();
        return vec![Finding { what: "sandbox".into(), state: State::Off(detail) }];
    }
    let (is_other, user) = sandbox::user();
    let user = if is_other { State::Works(user) } else { State::Off(user) };
    let group = cgroup::delegated();
    let limits = match &group {
        Ok(group) => State::Works(format!("for all processes of a job together, by `{}`", group.display())),
        Err(reason) => {
            State::Off(format!("for each process only, not for the memory and processors of a whole job: {reason}"))
        }
    };
    let disk = group.map(|group| cgroup::disk(&group, &config.state_dir));
    let mut findings = match sandbox::walls(&config.limits).await {
        Ok(walls) => walls.into_iter().map(wall).collect(),
        Err(problem) => vec![Finding::new("sandbox", Err(problem))],
    };
    findings.push(Finding { what: "user of a job".into(), state: user });
    findings.push(Finding { what: "limits of a job".into(), state: limits });
    findings.extend(disk_of_a_job(config.limits.of_disk(), disk, cgroup::has_weights));
    findings
}

/// Returns the finding about a job's use of the disk. `group` is the disk that a delegated group can limit, or the
/// reason why there is no such disk or group. There is no finding without a group and without a limit in the config,
/// because the finding about the limits of a job then says that nothing limits a whole job.
fn disk_of_a_job(
    limit: Option<String>,
    group: Result<Result<String, String>, String>,
    has_weights: impl Fn(&str) -> bool,
) -> Option<Finding> {
    let state = match (limit, group) {
        (None, Err(_)) => return None,
        (Some(limit), Ok(Ok(disk))) => State::Works(format!("{limit}, of disk {disk}")),
        (Some(limit), Ok(Err(reason)) | Err(reason)) => {
            State::Off(format!("the config limits it to {limit}, which does not apply: {reason}"))
        }
        (None, Ok(Ok(disk))) if has_weights(&disk) => State::Works(format!("the runner has priority on disk {disk}")),
        (None, Ok(Ok(disk))) => State::Off(format!(
            "not limited, and the runner has no priority: nothing divides the use of disk {disk} by weights (BFQ, \
             `io.cost.qos`); set `limits.disk_mib_per_sec` or `limits.disk_ops_per_sec`"
        )),
        (None, Ok(Err(reason))) => State::Off(format!("not limited, and the runner has no priority: {reason}")),
    };
    Some(Finding { what: "disk of a job".into(), state })
}

/// Returns the finding of one check that the box isolates a job from the machine.
fn wall(Wall { name, stands, answer }: Wall) -> Finding {
    let state = if stands {
        State::Works(format!("refused: {answer}"))
    } else {
        State::Blocked(format!("{answer}; the box does not protect the machine here: report it, and start no job"))
    };
    Finding { what: format!("wall: {name}"), state }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_report_lines_up_and_shouts_what_is_blocked() {
        let findings = [
            Finding::new("bucket", Ok("fh-bucket".into())),
            Finding { what: "mode deprovision".into(), state: State::Off("switched off".into()) },
            Finding::new("sandbox", Err("install it".into())),
        ];

        let lines = "ok       bucket            fh-bucket\n\
                     off      mode deprovision  switched off\n\
                     BLOCKED  sandbox           install it\n";
        assert_eq!(text(&findings), lines);
        assert!(findings[1].is_well() && !findings[2].is_well());
    }

    #[test]
    fn a_limit_of_the_disk_is_said_with_what_holds_it_or_why_nothing_does() {
        let state_of = |limit: Option<&str>, group, has_weights| {
            let finding = disk_of_a_job(limit.map(str::to_owned), group, |_| has_weights);
            finding.map(|finding| text(&[finding]).replace("disk of a job  ", ""))
        };
        let on_disk = || Ok(Ok("259:0".to_owned()));
        let (elsewhere, none) = (|| Ok(Err("it is in memory".to_owned())), || Err("no cgroup v2".to_owned()));

        assert_eq!(state_of(Some("2 MiB"), on_disk(), false).unwrap(), "ok       2 MiB, of disk 259:0\n");
        for (group, why) in [(elsewhere(), "it is in memory"), (none(), "no cgroup v2")] {
            let line = format!("off      the config limits it to 2 MiB, which does not apply: {why}\n");
            assert_eq!(state_of(Some("2 MiB"), group, true).unwrap(), line);
        }
        assert_eq!(state_of(None, on_disk(), true).unwrap(), "ok       the runner has priority on disk 259:0\n");
        for (group, why) in [(on_disk(), "nothing divides the use of disk 259:0"), (elsewhere(), "it is in")] {
            let line = state_of(None, group, false).unwrap();
            assert!(
                line.starts_with(&format!("off      not limited, and the runner has no priority: {why}")),
                "{line}"
            );
        }
        assert_eq!(state_of(None, none(), false), None);
    }

    #[test]
    fn a_mode_that_the_customer_has_off_is_off_and_one_that_refuses_without_reason_is_blocked() {
        let switch = Switch::of_mode(Mode::Deprovision);
        let stack = |value: &str| StackState::Launched([("EnableDeprovision".to_owned(), value.to_owned())].into());

        let by_the_customer = refused(&switch, "arn", &stack("false"), "no");
        let without_reason = refused(&switch, "arn", &stack("true"), "no");

        assert!(matches!(by_the_customer, State::Off(text) if text.contains("`EnableDeprovision`")));
        assert!(matches!(without_reason, State::Blocked(text) if text.contains("although the role is switched on")));
    }
}
