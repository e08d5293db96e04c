//! `doctor`: reports what works and what is blocked, with the way out. Takes no order and changes nothing.

use std::path::Path;

use aws_config::SdkConfig;
use freehold_protocol::order::Mode;

use crate::aws;
use crate::config::{Config, Role, SandboxKind};
use crate::identity::enrol;
use crate::identity::runner_key::Identity;
use crate::operate::checks;

/// The result of one check.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Finding {
    /// What was checked.
    pub what: String,
    pub state: State,
}

/// The state of a checked thing.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum State {
    Works(String),
    /// Switched off by the customer.
    Off(String),
    /// Broken, with the way out.
    Blocked(String),
}

impl Finding {
    /// Returns what was found about `what`.
    pub fn new(what: impl Into<String>, result: Result<String, String>) -> Self {
        let state = match result {
            Ok(detail) => State::Works(detail),
            Err(problem) => State::Blocked(problem),
        };
        Self { what: what.into(), state }
    }

    /// Returns whether it needs no action.
    pub const fn is_well(&self) -> bool {
        matches!(self.state, State::Works(_) | State::Off(_))
    }
}

/// Checks everything that the runner of `config` needs; `program` checks what its kinds of job start.
pub async fn examine(config: &Config, program: impl Future<Output = Finding>) -> Vec<Finding> {
    let sdk = aws::sdk_config(&config.region, None).await;
    let queues = aws::sdk_config(config.queue_region(), None).await;
    let mut findings = vec![Finding::new("state directory", state_dir(&config.state_dir))];
    let caller = caller(&sdk).await;
    let known = caller.is_ok();
    findings.push(Finding::new("AWS credentials", caller));
    if !known {
        return findings;
    }
    findings.push(Finding::new("orders queue", checks::orders(&queues, &config.orders_queue_url).await));
    findings.push(Finding::new("reports queue", checks::reports(&queues, &config.reports_queue_url).await));
    let secrets = aws_sdk_secretsmanager::Client::new(&sdk);
    let secret = enrol::read_secret(&config.enrolment, &secrets).await;
    findings.push(Finding::new("enrolment secret", secret.map(|_| "readable".into()).map_err(|e| e.to_string())));
    if config.role == Role::Install {
        findings.extend(modes(config, &sdk).await);
    }
    findings.push(Finding::new("container registry", checks::registry(&sdk).await));
    if let Some(bucket) = &config.bucket {
        findings.push(Finding::new("bucket", checks::bucket(&sdk, bucket).await));
    }
    findings.push(program.await);
    findings.push(sandbox(config).await);
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

fn state_dir(path: &Path) -> Result<String, String> {
    let identity = Identity::load_or_make(path).map_err(|error| aws::explain(&error))?;
    Ok(format!("{} (runner key {})", path.display(), identity.id()))
}

async fn caller(sdk: &SdkConfig) -> Result<String, String> {
    let answer = aws_sdk_sts::Client::new(sdk).get_caller_identity().send().await;
    let answer = answer.map_err(|error| {
        format!("{}; give the machine an instance profile, or set AWS_PROFILE", aws::explain(&error))
    })?;
    Ok(answer.arn.unwrap_or_default())
}

async fn modes(config: &Config, sdk: &SdkConfig) -> Vec<Finding> {
    let sts = aws_sdk_sts::Client::new(sdk);
    let mut findings = Vec::new();
    for mode in [Mode::Provision, Mode::Maintenance, Mode::Deprovision, Mode::BreakGlass] {
        let what = format!("mode {}", mode.as_str());
        let Some(role) = config.modes.role(mode) else {
            let detail = "switched off: jobs of this mode end as blocked".to_owned();
            findings.push(Finding { what, state: State::Off(detail) });
            continue;
        };
        let answer = sts.assume_role().role_arn(role).role_session_name("freehold-doctor").send().await;
        let result = answer.map(|_| role.to_owned()).map_err(|error| {
            format!("cannot assume `{role}`: {}; if you switched it off, this is as it should be", aws::explain(&error))
        });
        findings.push(Finding::new(what, result));
    }
    findings
}

/// Looks for the Terraform of an install runner.
pub async fn terraform(config: &Config) -> Finding {
    let terraform = checks::terraform(config.terraform.as_deref());
    Finding::new("terraform", terraform.map(|path| path.display().to_string()))
}

async fn sandbox(config: &Config) -> Finding {
    match config.sandbox {
        SandboxKind::Bubblewrap => Finding::new("sandbox", checks::bubblewrap().await),
        SandboxKind::None => {
            let detail = "none: jobs see the whole machine; set `sandbox = \"bubblewrap\"` outside of tests".to_owned();
            Finding { what: "sandbox".into(), state: State::Off(detail) }
        }
    }
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
}
