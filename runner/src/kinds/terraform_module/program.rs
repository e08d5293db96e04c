//! Runs `terraform` or `tofu` on the module, in the job's box.

use std::collections::BTreeMap;
use std::path::PathBuf;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use freehold_egress::AccountHosts;
use freehold_protocol::contract::Terms;
use freehold_protocol::order::{ApplyTerraform, Order, Work};
use freehold_protocol::terraform::{
    REFUSED_VARIABLE_HELP, REGISTRIES, REGISTRY_FILES, is_refused_variable, refused_variable,
};
use serde::Deserialize;
use serde::de::DeserializeOwned;
use serde_json::{Value, json};

use crate::identity::job_aws::JobAws;
use crate::identity::stack_outputs;
use crate::job::Job;
use crate::job::failure::{Failure, until_stopped};
use crate::kinds::plan_file::PlanFile;
use crate::kinds::program_version::version_line;
use crate::kinds::result::succeeded;
use crate::kinds::templates::Templates;
use crate::kinds::terraform_module::executable;
use crate::kinds::terraform_module::fetched_providers::{self, FetchedProviders};
use crate::kinds::terraform_module::files::MODULE;
use crate::kinds::terraform_module::providers::Providers;
use crate::sandbox::{self, Interrupt, Output, Printed, Program, Service};

/// The message of `init -lockfile=readonly` when a provider is not in the lock file. OpenTofu has the same message.
const NOT_LOCKED: &str = "Provider dependency changes detected";
const LOCK_IT: &str = "the module needs a provider that its `.terraform.lock.hcl` does not pin; run `terraform providers lock \
                       -platform=linux_amd64 -platform=linux_arm64` in the module, and keep the file that it writes";

/// Where Terraform gets the providers of a module.
#[derive(Debug)]
pub(super) enum ModuleProviders {
    /// They came with the module, and Terraform does not fetch any.
    Packed(Providers),
    /// Terraform fetches them from their registries, unless this machine has them.
    Fetched(FetchedProviders),
}

/// The Terraform program for one job.
pub(super) struct Terraform<'a> {
    job: &'a Job,
    executable: PathBuf,
    environment: BTreeMap<String, String>,
    /// The environment variables that the config gives the module.
    own: BTreeMap<String, String>,
    /// The providers of the module, once it is fetched.
    providers: Option<ModuleProviders>,
    services: Vec<Service>,
    account_hosts: Option<Arc<dyn AccountHosts>>,
    wanted_version: &'a str,
    /// Whether a run of the program may have ended without the removal of its lock.
    abrupt: AtomicBool,
}

impl<'a> Terraform<'a> {
    /// Finds the program `terraform` or `tofu` and prepares its environment variables.
    pub(super) fn find(job: &'a Job, work: &'a ApplyTerraform, aws: &JobAws) -> Result<Self, Failure> {
        let executable = executable::find_of(job).map_err(Failure::new)?;
        let mut environment = sandbox::base_environment(job);
        if let Some(image) = job.image.get() {
            drop_settings(&mut environment, image.environment());
        }
        if matches!(job.order.work.made_by(), Work::Sandbox(_)) {
            environment.extend(stack_outputs::sandbox_variables(&job.order, &job.config));
        }
        let own = Templates::of(job).map("environment variable", &work.env_vars)?;
        if let Some(name) = own.keys().find(|name| is_refused_variable(name)) {
            let what = refused_variable(name);
            return Err(Failure::new(format!("component `{}`: {what}; {REFUSED_VARIABLE_HELP}", work.component)));
        }
        environment.extend(own.clone().into_iter().filter(|(name, _)| is_kept(name)));
        environment.extend(aws.environment());
        let fixed = [
            ("TF_IN_AUTOMATION", "1".to_owned()),
            ("TF_INPUT", "0".to_owned()),
            ("CHECKPOINT_DISABLE", "1".to_owned()),
            ("TF_PLUGIN_CACHE_DIR", fetched_providers::cache(job)),
        ];
        environment.extend(fixed.map(|(name, value)| (name.to_owned(), value)));
        environment.extend(default_tags(&job.order));
        Ok(Self {
            job,
            executable,
            environment,
            own,
            providers: None,
            services: aws.services(),
            account_hosts: aws.account_hosts(),
            wanted_version: &work.terraform_version,
            abrupt: AtomicBool::new(false),
        })
    }

    /// Lets Terraform use `providers`. Packed providers are then the only ones that it can use.
    pub(super) fn take_providers(&mut self, providers: ModuleProviders) {
        if let ModuleProviders::Packed(packed) = &providers {
            self.environment.remove("TF_PLUGIN_CACHE_DIR");
            self.environment.insert("TF_CLI_CONFIG_FILE".to_owned(), packed.cli_config());
        }
        self.providers = Some(providers);
    }

    pub(super) const fn job(&self) -> &'a Job {
        self.job
    }

    /// Logs the version of the program. The version in the config is not enforced: only `required_version` in the
    /// module makes Terraform refuse to run.
    pub(super) async fn check_version(&self) -> Result<(), Failure> {
        #[derive(Deserialize)]
        struct Version {
            terraform_version: String,
        }
        let found: Version = self.capture("version", ["version", "-json"].map(String::from).to_vec()).await?;
        self.job.log.line(&version_line("terraform", &found.terraform_version, self.wanted_version));
        Ok(())
    }

    /// Runs `init`, which installs modules and the providers that the lock file pins. The providers came with the
    /// module, or Terraform fetches them from the registries that the contract names.
    pub(super) async fn init(&self) -> Result<(), Failure> {
        let arguments = ["init", "-input=false", "-no-color", "-lockfile=readonly"].map(String::from).to_vec();
        let ended = self.start("init", arguments, Output::log()).await;
        ended.map_err(|failure| match failure {
            Failure::Failed { reason, .. } if reason.contains(NOT_LOCKED) => Failure::new(LOCK_IT),
            other => other,
        })?;
        if let Some(ModuleProviders::Fetched(fetched)) = &self.providers {
            let keep = async {
                fetched.keep(self.job).await;
                Ok(())
            };
            until_stopped(self.job, keep).await?;
        }
        Ok(())
    }

    /// Runs a subcommand and writes its output to the log.
    pub(super) async fn run(&self, name: &str, arguments: Vec<String>) -> Result<(), Failure> {
        self.start(name, arguments, Output::log()).await
    }

    /// Runs a subcommand whose output has values of resources. Only its errors come into the log.
    pub(super) async fn run_unlogged(&self, name: &str, arguments: Vec<String>) -> Result<(), Failure> {
        let unkept = |error| Failure::because(&format!("could not store what `terraform {name}` prints"), &error);
        let printed = Printed::new(self.job).map_err(unkept)?;
        self.start(name, arguments, Output::Kept(printed)).await
    }

    /// Runs `apply` of the plan.
    pub(super) async fn apply(&self, mut arguments: Vec<String>, plan: &PlanFile) -> Result<(), Failure> {
        arguments.push(plan.path().display().to_string());
        let shown = vec![plan.directory().to_owned()];
        self.start_with("apply", arguments, Output::log(), shown).await
    }

    /// Runs a subcommand and returns the document that it prints. The document may contain secrets, so its file has no
    /// name.
    pub(super) async fn capture<T: DeserializeOwned + Send + 'static>(
        &self,
        name: &str,
        arguments: Vec<String>,
    ) -> Result<T, Failure> {
        self.capture_with(name, arguments, Vec::new()).await
    }

    /// Runs a subcommand about a plan, as [`Self::capture`] does.
    pub(super) async fn capture_of<T: DeserializeOwned + Send + 'static>(
        &self,
        name: &str,
        arguments: Vec<String>,
        plan: &PlanFile,
    ) -> Result<T, Failure> {
        self.capture_with(name, arguments, vec![plan.directory().to_owned()]).await
    }

    async fn capture_with<T: DeserializeOwned + Send + 'static>(
        &self,
        name: &str,
        arguments: Vec<String>,
        shown: Vec<PathBuf>,
    ) -> Result<T, Failure> {
        let unreadable = |error| Failure::because(&format!("could not read what `terraform {name}` printed"), &error);
        let printed = Printed::new(self.job).map_err(unreadable)?;
        self.start_with(name, arguments, Output::Kept(printed.clone()), shown).await?;
        printed.json().await.map_err(unreadable)
    }

    /// Returns the module's own environment variables and the version of the program, which a plan depends on.
    pub(super) fn settings(&self) -> Value {
        json!({ "environment": self.own, "version": self.wanted_version })
    }

    /// Returns the directories of providers outside of the workspace.
    fn readable(&self) -> Vec<PathBuf> {
        match &self.providers {
            Some(ModuleProviders::Packed(packed)) => packed.directories(),
            Some(ModuleProviders::Fetched(fetched)) => fetched.directories(),
            None => Vec::new(),
        }
    }

    /// Returns whether Terraform may fetch providers: the module came without them, and the contract names a registry.
    fn fetches(&self) -> bool {
        let terms = self.job.order.terms.as_ref().and_then(|terms| terms.asked().ok().flatten());
        let named = |terms: &Terms| terms.hosts.iter().any(|host| REGISTRIES.contains(&host.as_str()));
        matches!(self.providers, Some(ModuleProviders::Fetched(_))) && terms.is_some_and(|terms| named(&terms))
    }

    async fn start(&self, name: &str, arguments: Vec<String>, output: Output) -> Result<(), Failure> {
        self.start_with(name, arguments, output, Vec::new()).await
    }

    async fn start_with(
        &self,
        name: &str,
        arguments: Vec<String>,
        output: Output,
        shown: Vec<PathBuf>,
    ) -> Result<(), Failure> {
        let program = Program {
            directory: MODULE,
            output,
            interrupt: Interrupt::Interrupt,
            readable: self.readable().into_iter().chain(shown).collect(),
            services: self.services.clone(),
            account_hosts: self.account_hosts.clone(),
            hosts: if name == "init" && self.fetches() { registries() } else { Vec::new() },
            ..Program::new(&self.executable, arguments, self.environment.clone())
        };
        let ended = sandbox::run(self.job, program).await?;
        self.abrupt.fetch_or(ended.is_abrupt(), Ordering::Relaxed);
        succeeded(ended, &format!("terraform {name}"), first_error)
    }

    /// Returns whether a run of the program was killed or crashed, so that it may have left its lock.
    pub(super) fn ended_abruptly(&self) -> bool {
        self.abrupt.load(Ordering::Relaxed)
    }
}

/// Returns the variables by which Terraform's AWS provider (from 5.62) sets the tags of `order` on each resource that it
/// makes. The boundary denies calls that change the code of a resource, or run commands on it, if the resource does not
/// have the tag of the owner.
pub(in crate::kinds) fn default_tags(order: &Order) -> impl Iterator<Item = (String, String)> {
    order.tags().into_iter().map(|(key, value)| (format!("TF_AWS_DEFAULT_TAGS_{key}"), value))
}

/// Returns whether Terraform gets the variable `name` if the app or the tool image sets it. `TF_CLI_ARGS` is dropped,
/// because its options would apply to every command, including the apply of the plan. `TF_DATA_DIR` is dropped, because
/// the build installed modules in Terraform's default data directory.
fn is_kept(name: &str) -> bool {
    !name.starts_with("TF_CLI_ARGS") && name != "TF_DATA_DIR"
}

/// Removes from `environment` what the tool image set although an app must not set it for Terraform. The places of the
/// image's own programs and libraries stay.
fn drop_settings(environment: &mut BTreeMap<String, String>, image: &BTreeMap<String, String>) {
    let is_place = |name: &str| matches!(name, "HOME" | "PATH") || name.starts_with("LD_");
    environment.retain(|name, value| {
        let is_of_image = image.get(name).is_some_and(|of_image| of_image == value);
        !is_of_image || is_place(name) || is_kept(name) && !is_refused_variable(name)
    });
}

/// Returns the hosts of the registries and of their downloads.
fn registries() -> Vec<String> {
    REGISTRIES.into_iter().chain(REGISTRY_FILES).map(str::to_owned).collect()
}

/// Returns the first error in Terraform's output, without the frame of line characters around it.
pub fn first_error(words: &str) -> String {
    let lines = words.lines().map(|line| line.trim_start_matches(['│', '╷', '╵', ' ']).trim());
    let mut from_error = lines.skip_while(|line| !line.starts_with("Error: ")).filter(|line| !line.is_empty());
    let Some(error) = from_error.next() else { return String::new() };
    let detail: Vec<&str> = from_error.take(6).collect();
    let error = error.trim_start_matches("Error: ");
    if detail.is_empty() { format!(": {error}") } else { format!(": {error}: {}", detail.join(" ")) }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_tool_image_sets_nothing_that_an_app_must_not_set() {
        let variables = |names: &[&str]| names.iter().map(|name| ((*name).to_owned(), "image".to_owned())).collect();
        let stays = ["HOME", "LD_LIBRARY_PATH", "LOCALE", "PATH"];
        let goes = ["AWS_CONFIG_FILE", "GIT_SSH_COMMAND", "TF_CLI_ARGS_apply", "TF_DATA_DIR", "TF_REATTACH_PROVIDERS"];
        let image: BTreeMap<String, String> = variables(&[stays.as_slice(), &goes, &["TF_CLI_CONFIG_FILE"]].concat());
        let mut environment = image.clone();
        environment.insert("TF_CLI_CONFIG_FILE".to_owned(), "of the machine".to_owned());

        drop_settings(&mut environment, &image);

        assert_eq!(environment.remove("TF_CLI_CONFIG_FILE").as_deref(), Some("of the machine"));
        assert_eq!(environment, variables(&stays));
    }

    #[test]
    fn each_tag_of_an_order_is_a_default_tag_of_the_provider() {
        let variables: BTreeMap<String, String> = default_tags(&crate::testing::order(1, 7)).collect();

        let expected = [
            ("TF_AWS_DEFAULT_TAGS_freehold:install", "globex-prod"),
            ("TF_AWS_DEFAULT_TAGS_freehold:owner", "acme--globex-prod"),
            ("TF_AWS_DEFAULT_TAGS_freehold:tenant", "acme"),
        ];
        assert_eq!(variables, BTreeMap::from(expected.map(|(name, value)| (name.to_owned(), value.to_owned()))));
    }

    #[test]
    fn the_first_error_is_taken_out_of_its_frame() {
        let words =
            "╷\n│ Error: Error acquiring the state lock\n│ \n│ Error message: operation error S3\n│ Lock Info:\n╵";

        assert_eq!(
            first_error(words),
            ": Error acquiring the state lock: Error message: operation error S3 Lock Info:"
        );
        assert_eq!(first_error("killed"), "");
    }
}
