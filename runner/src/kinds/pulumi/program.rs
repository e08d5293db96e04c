//! Runs `pulumi` on the program, in the job's box.

use std::collections::BTreeMap;
use std::path::PathBuf;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use freehold_egress::AccountHosts;
use freehold_protocol::order::RunPulumi;
use serde::de::DeserializeOwned;
use serde_json::Value;

use super::diagnosis::Diagnosis;
use super::files::PROGRAM;
use super::stack;
use super::steps::{Exported, Steps};
use crate::identity::job_aws::JobAws;
use crate::job::Job;
use crate::job::bucket::JobBucket;
use crate::job::failure::Failure;
use crate::kinds::plan_file::PlanFile;
use crate::kinds::program_version::version_line;
use crate::kinds::result::succeeded;
use crate::kinds::terraform_module::default_tags;
use crate::sandbox::{self, Interrupt, Output, Printed, Program, Service};
use crate::state_objects;

/// The number of lines of Pulumi's errors in a message.
const ERROR_LINES: usize = 6;

/// The Pulumi program for one job.
pub(super) struct Pulumi<'a> {
    job: &'a Job,
    executable: PathBuf,
    environment: BTreeMap<String, String>,
    services: Vec<Service>,
    account_hosts: Option<Arc<dyn AccountHosts>>,
    wanted_version: &'a str,
    stack: String,
    /// Whether a run of the program may have ended without the removal of its lock.
    abrupt: AtomicBool,
}

impl<'a> Pulumi<'a> {
    /// Finds the program `pulumi` and prepares its environment variables.
    pub(super) fn find(job: &'a Job, work: &'a RunPulumi, aws: &JobAws, bucket: &JobBucket) -> Result<Self, Failure> {
        let executable = sandbox::find_program_of(job, &["pulumi"]).ok_or_else(|| {
            let none = "there is no `pulumi` on this runner's `PATH`; install Pulumi, the language of the program, and its \
                        plugins, or name a tool image that has them";
            Failure::new(sandbox::lacks_program(job, &["pulumi"], none))
        })?;
        let mut environment = sandbox::base_environment(job);
        environment.extend(stack::own_variables(job, work)?);
        environment.extend(aws.environment());
        let region = &job.config.region;
        let state = format!("{}/{}", bucket.bucket(), state_objects::pulumi(&work.component).trim_end_matches('/'));
        let fixed = [
            ("PULUMI_BACKEND_URL", format!("s3://{state}?region={region}&awssdk=v2")),
            ("PULUMI_HOME", sandbox::inside(job, ".pulumi-home")),
            ("PULUMI_SKIP_UPDATE_CHECK", "true".to_owned()),
            ("PULUMI_DISABLE_TELEMETRY", "true".to_owned()),
            // The bucket keeps the old versions of the state, so copies of it are not needed. Older versions of Pulumi
            // know only the second name of the variable.
            ("PULUMI_DIY_BACKEND_DISABLE_CHECKPOINT_BACKUPS", "true".to_owned()),
            ("PULUMI_DISABLE_CHECKPOINT_BACKUPS", "true".to_owned()),
        ];
        environment.extend(fixed.map(|(name, value)| (name.to_owned(), value)));
        // The AWS provider is built on Terraform's.
        environment.extend(default_tags(&job.order));
        Ok(Self {
            job,
            executable,
            environment,
            services: aws.services(),
            account_hosts: aws.account_hosts(),
            wanted_version: &work.pulumi_version,
            stack: stack::name(job),
            abrupt: AtomicBool::new(false),
        })
    }

    pub(super) const fn job(&self) -> &'a Job {
        self.job
    }

    /// Logs the version of the program.
    pub(super) async fn check_version(&self) -> Result<(), Failure> {
        let printed = self.capture_output("version", vec!["version".to_owned()]).await?;
        let text = printed.text().await.map_err(|error| unreadable("version", &error))?;
        let (found, wanted) = (text.trim().trim_start_matches('v'), self.wanted_version.trim_start_matches('v'));
        self.job.log.line(&version_line("pulumi", found, wanted));
        Ok(())
    }

    /// Selects the stack and creates it if it does not exist.
    pub(super) async fn select_stack(&self) -> Result<(), Failure> {
        let provider = format!("--secrets-provider={}", stack::secrets_provider(self.job));
        let mut arguments = ["stack", "select", "--create"].map(String::from).to_vec();
        arguments.extend([provider, self.stack.clone()]);
        self.run("stack select", arguments).await
    }

    /// Previews an update, and saves the plan in the file `plan` of the program's directory. With `--json`, Pulumi
    /// prints all messages into its document, also those about a failure, and writes nothing of them to standard error.
    /// With `sames`, the document also has the steps of unchanged resources.
    pub(super) async fn preview(&self, plan: &str, sames: bool) -> Result<Steps, Failure> {
        let mut arguments = self.on_stack(&["preview", "--json"]);
        arguments.push(format!("--save-plan={plan}"));
        if sames {
            arguments.push("--show-sames".to_owned());
        }
        let printed = Printed::new(self.job).map_err(|error| unreadable("preview", &error))?;
        match self.start("preview", arguments, Output::Kept(printed.clone()), Vec::new()).await {
            Ok(()) => printed.json().await.map_err(|error| unreadable("preview", &error)),
            Err(Failure::Failed { reason, partial }) => {
                // A preview that was killed has printed no document.
                let found: Diagnosis = printed.json().await.unwrap_or_default();
                let diagnosis = found.redacted(|text| self.job.log.redacted(text));
                diagnosis.errors().for_each(|error| self.job.log.line(&format!("error: {error}")));
                Err(Failure::Failed { reason: format!("{reason}{}", diagnosis.summary()), partial })
            }
            Err(other @ (Failure::Stopped { .. } | Failure::Waits(_) | Failure::NotApproved { .. })) => Err(other),
        }
    }

    /// Updates the stack. Pulumi refuses changes that the plan does not have.
    pub(super) async fn up(&self, plan: &PlanFile) -> Result<(), Failure> {
        let mut arguments = self.on_stack(&["up", "--yes", "--skip-preview", "--suppress-outputs"]);
        arguments.push(format!("--plan={}", plan.path().display()));
        self.start("up", arguments, Output::log(), vec![plan.directory().to_owned()]).await
    }

    pub(super) async fn destroy(&self) -> Result<(), Failure> {
        self.run("destroy", self.on_stack(&["destroy", "--yes", "--skip-preview", "--suppress-outputs"])).await
    }

    /// Returns the resources in the state. Secrets in it stay encrypted.
    pub(super) async fn export(&self) -> Result<Exported, Failure> {
        self.capture("stack export", self.on_stack(&["stack", "export"])).await
    }

    /// Returns the outputs of the stack, with `[secret]` in place of secrets.
    pub(super) async fn outputs(&self) -> Result<BTreeMap<String, Value>, Failure> {
        self.capture("stack output", self.on_stack(&["stack", "output", "--json"])).await
    }

    /// Returns the outputs of the stack with the values of secrets.
    pub(super) async fn outputs_with_secrets(&self) -> Result<BTreeMap<String, Value>, Failure> {
        self.capture("stack output", self.on_stack(&["stack", "output", "--json", "--show-secrets"])).await
    }

    fn on_stack(&self, words: &[&str]) -> Vec<String> {
        words.iter().map(|word| (*word).to_owned()).chain([format!("--stack={}", self.stack)]).collect()
    }

    async fn run(&self, name: &str, arguments: Vec<String>) -> Result<(), Failure> {
        self.start(name, arguments, Output::log(), Vec::new()).await
    }

    async fn capture<T: DeserializeOwned + Send + 'static>(
        &self,
        name: &str,
        arguments: Vec<String>,
    ) -> Result<T, Failure> {
        self.capture_output(name, arguments).await?.json().await.map_err(|error| unreadable(name, &error))
    }

    async fn capture_output(&self, name: &str, arguments: Vec<String>) -> Result<Printed, Failure> {
        let printed = Printed::new(self.job).map_err(|error| unreadable(name, &error))?;
        self.start(name, arguments, Output::Kept(printed.clone()), Vec::new()).await?;
        Ok(printed)
    }

    async fn start(
        &self,
        name: &str,
        mut arguments: Vec<String>,
        output: Output,
        readable: Vec<PathBuf>,
    ) -> Result<(), Failure> {
        arguments.extend(["--non-interactive", "--color=never"].map(str::to_owned));
        let program = Program {
            directory: PROGRAM,
            output,
            interrupt: Interrupt::Interrupt,
            readable,
            services: self.services.clone(),
            account_hosts: self.account_hosts.clone(),
            ..Program::new(&self.executable, arguments, self.environment.clone())
        };
        let ended = sandbox::run(self.job, program).await?;
        self.abrupt.fetch_or(ended.is_abrupt(), Ordering::Relaxed);
        succeeded(ended, &format!("pulumi {name}"), errors)
    }

    /// Returns whether a run of the program was killed or crashed, so that it may have left its lock.
    pub(super) fn ended_abruptly(&self) -> bool {
        self.abrupt.load(Ordering::Relaxed)
    }
}

fn unreadable(name: &str, error: &dyn std::error::Error) -> Failure {
    Failure::because(&format!("could not read what `pulumi {name}` printed"), error)
}

/// Returns the first error in Pulumi's output with the lines below it.
fn errors(words: &str) -> String {
    let lines = words.lines().map(str::trim).skip_while(|line| !line.starts_with("error: "));
    let lines: Vec<&str> = lines.filter(|line| !line.is_empty()).take(ERROR_LINES).collect();
    if lines.is_empty() { String::new() } else { format!(": {}", lines.join(" ").trim_start_matches("error: ")) }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_first_error_is_taken_out_of_the_output() {
        let words = "Updating (globex):\n\nDiagnostics:\n  aws:ec2:Vpc (main):\n    error: creating VPC: denied\n      status 403\n";

        assert_eq!(errors(words), ": creating VPC: denied status 403");
        assert_eq!(errors("killed"), "");
    }
}
