//! `freehold-runner doctor`: what works, what is blocked, and the way out. Takes no order and changes nothing.

use std::path::Path;
use std::process::Stdio;

use aws_config::SdkConfig;
use freehold_protocol::order::Mode;

use crate::aws;
use crate::config::{Config, Role, SandboxKind};
use crate::identity::enrol;
use crate::identity::runner_key::Identity;
use crate::kinds::BUILDERS;
use crate::operate::checks;
use crate::sandbox::find_program;

/// What was found about one thing.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Finding {
    /// What was looked at.
    pub what: String,
    pub state: State,
}

/// How a thing is.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum State {
    Works(String),
    /// Off because the customer wants it so.
    Off(String),
    /// Broken, with the way out.
    Blocked(String),
}

impl Finding {
    fn new(what: impl Into<String>, result: Result<String, String>) -> Self {
        let state = match result {
            Ok(detail) => State::Works(detail),
            Err(problem) => State::Blocked(problem),
        };
        Self { what: what.into(), state }
    }

    /// Returns whether nothing needs to be done about it.
    pub const fn is_well(&self) -> bool {
        matches!(self.state, State::Works(_) | State::Off(_))
    }
}

/// Looks at everything that the runner of `config` needs.
pub async fn examine(config: &Config) -> Vec<Finding> {
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
    findings.extend(programs(config).await);
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

async fn programs(config: &Config) -> Vec<Finding> {
    let mut findings = Vec::new();
    if config.role == Role::Install {
        let terraform = checks::terraform(config.terraform.as_deref());
        findings.push(Finding::new("terraform", terraform.map(|path| path.display().to_string())));
    }
    if config.role == Role::Build {
        findings.push(image_builder().await);
    }
    findings.push(match config.sandbox {
        SandboxKind::Bubblewrap => Finding::new("sandbox", checks::bubblewrap().await),
        SandboxKind::None => {
            let detail = "none: jobs see the whole machine; set `sandbox = \"bubblewrap\"` outside of tests".to_owned();
            Finding { what: "sandbox".into(), state: State::Off(detail) }
        }
    });
    findings
}

/// Says which program makes images of Dockerfiles; none is fine as long as no component needs one.
async fn image_builder() -> Finding {
    let what = "image builder";
    let Some(path) = find_program(&BUILDERS) else {
        let detail = "neither `buildah` nor `buildctl` is on PATH: components of type `docker_build` cannot be built; \
                      install the package `buildah` if there are any";
        return Finding { what: what.into(), state: State::Off(detail.into()) };
    };
    let shown = path.display().to_string();
    if !path.ends_with("buildah") || rustix::process::geteuid().is_root() {
        return Finding::new(what, Ok(shown));
    }
    // Files of an image belong to many users, which a user that is not root has from `/etc/subuid` alone.
    let mut command = tokio::process::Command::new(&path);
    command.args(["unshare", "true"]).stdin(Stdio::null()).kill_on_drop(true);
    let output = tokio::time::timeout(checks::PROGRAM, command.output()).await;
    Finding::new(
        what,
        match output {
            Ok(Ok(output)) if output.status.success() => Ok(shown),
            Ok(Ok(output)) => Err(format!(
                "`buildah` cannot make a user namespace: {}; install the package `uidmap` and give this user ranges in \
                 `/etc/subuid` and `/etc/subgid`",
                String::from_utf8_lossy(&output.stderr).lines().last().unwrap_or_default()
            )),
            Ok(Err(error)) => Err(format!("`{shown}` does not start: {error}")),
            Err(_) => Err(format!("`buildah` did nothing for {} s", checks::PROGRAM.as_secs())),
        },
    )
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
