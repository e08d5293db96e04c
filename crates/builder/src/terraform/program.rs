//! Runs `terraform` or `tofu` in the job's box, to fetch modules and choose providers. It runs no code of a module or
//! provider.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};

use freehold_protocol::terraform::{PLATFORMS, REGISTRIES, REGISTRY_FILES};
use freehold_runner::job::Job;
use freehold_runner::job::failure::Failure;
use freehold_runner::kinds::terraform_module::executable;
use freehold_runner::kinds::terraform_module::first_error;
use freehold_runner::sandbox::{self, Ended, Interrupt, Output, Printed, Program, Service};
use serde::Deserialize;

use super::modules;
use crate::private_source::git::GitAccess;

/// The directory in which Terraform unpacks packages to hash them. A box's own `/tmp` is too small.
const TEMPORARY: &str = "tmp";

/// `terraform` or `tofu` with its settings for one build.
pub(super) struct Terraform<'a> {
    job: &'a Job,
    executable: PathBuf,
    environment: BTreeMap<String, String>,
    /// The module's directory, relative to the workspace.
    directory: String,
    hosts: Vec<String>,
    services: Vec<Service>,
    access: GitAccess,
}

/// The reason why a command failed.
enum Wrong {
    /// The command ended with the exit code `code`; `words` is the end of its output.
    Ended {
        code: i32,
        words: String,
    },
    Other(Failure),
}

impl<'a> Terraform<'a> {
    /// Finds the program for the module in `directory` of the workspace, and the credentials of its private modules.
    pub(super) async fn find(job: &'a Job, directory: &Path) -> Result<Self, Failure> {
        let executable = executable::find(job.config.terraform.as_deref()).map_err(|why| {
            Failure::new(format!("{why}; the build runner needs it to choose the providers of the module"))
        })?;
        let absolute =
            |path: &Path| path.canonicalize().map_err(|error| Failure::because("could not read the source", &error));
        let (workspace, module) = (absolute(&job.workspace)?, absolute(directory)?);
        let module = module.strip_prefix(&workspace).map_err(|error| Failure::because("the source", &error))?;
        std::fs::create_dir_all(job.workspace.join(TEMPORARY))
            .map_err(|error| Failure::because("could not write into the workspace", &error))?;
        let access = GitAccess::to(job, modules::repositories(directory)).await?;
        let mirror = job.config.provider_mirror.as_deref().and_then(|url| sandbox::own_loopback(job, url));
        let hosts = REGISTRIES.into_iter().chain(REGISTRY_FILES).map(str::to_owned);
        Ok(Self {
            job,
            executable,
            environment: environment(job).into_iter().chain(access.environment()).collect(),
            directory: module.display().to_string(),
            hosts: hosts.chain(modules::hosts(directory)).collect(),
            services: mirror.into_iter().chain(access.services()).collect(),
            access,
        })
    }

    /// Returns the name of the program and its version.
    pub(super) async fn version(&self) -> Result<(&'static str, String), Failure> {
        #[derive(Deserialize)]
        struct Version {
            terraform_version: String,
        }
        let unread =
            |error: &dyn std::error::Error| Failure::because("could not read the output of `terraform version`", error);
        let printed = Printed::new(self.job).map_err(|error| unread(&error))?;
        self.run("version", &["-json"], Output::Kept(printed.clone())).await.map_err(|wrong| wrong.of("version"))?;
        let found: Version = printed.json().await.map_err(|error| unread(&error))?;
        Ok((if executable::is_tofu(&self.executable) { "tofu" } else { "terraform" }, found.terraform_version))
    }

    /// Fetches the modules that the module calls.
    pub(super) async fn get_modules(&self) -> Result<(), Failure> {
        let got = self.run("get", &["-no-color"], Output::log()).await;
        got.map_err(|wrong| match self.access.obstacle() {
            Some(obstacle) => Failure::new(format!("could not fetch the modules: {obstacle}")),
            None => wrong.of("get"),
        })
    }

    /// Completes the lock file: adds each missing provider in the newest version that the module permits, and the
    /// hashes for all platforms of runners. Returns the platforms for which every provider has a package.
    pub(super) async fn lock_providers(&self) -> Result<Vec<&'static str>, Failure> {
        let mut platforms = PLATFORMS.to_vec();
        loop {
            let mut options: Vec<String> = platforms.iter().map(|one| format!("-platform={one}")).collect();
            options.extend(self.job.config.provider_mirror.iter().map(|url| format!("-net-mirror={url}")));
            let options: Vec<&str> =
                ["lock", "-no-color"].into_iter().chain(options.iter().map(String::as_str)).collect();
            let Err(wrong) = self.run("providers", &options, Output::log()).await else { return Ok(platforms) };
            let Some(at) = wrong.lacks(&platforms).filter(|_| platforms.len() > 1) else {
                return Err(wrong.of("providers lock"));
            };
            let without = platforms.remove(at);
            self.job.log.line(&format!(
                "a provider has no package for {without}, so runners of that platform cannot apply the module"
            ));
        }
    }

    async fn run(&self, command: &str, options: &[&str], output: Output) -> Result<(), Wrong> {
        let program = Program {
            executable: &self.executable,
            arguments: std::iter::once(&command).chain(options).map(|word| (*word).to_owned()).collect(),
            environment: self.environment.clone(),
            directory: &self.directory,
            output,
            interrupt: Interrupt::Interrupt,
            writable: Vec::new(),
            readable: Vec::new(),
            services: self.services.clone(),
            hosts: self.hosts.clone(),
            inside_hosts: self.job.config.provider_mirror.iter().cloned().collect(),
            account_hosts: None,
        };
        match sandbox::run(self.job, program).await {
            Ok(Ended::Code { code: 0, .. }) => Ok(()),
            Ok(Ended::Code { code, last_words }) => Err(Wrong::Ended { code, words: last_words }),
            Ok(Ended::Stopped(reason)) => Err(Wrong::Other(Failure::stopped(reason))),
            Err(error) => Err(Wrong::Other(error.into())),
        }
    }
}

impl Wrong {
    fn of(self, command: &str) -> Failure {
        match self {
            Self::Ended { code, words } => {
                Failure::new(format!("`terraform {command}` ended with exit code {code}{}", first_error(&words)))
            }
            Self::Other(failure) => failure,
        }
    }

    /// Returns the index of the first of `platforms` for which a provider has no package.
    fn lacks(&self, platforms: &[&str]) -> Option<usize> {
        let Self::Ended { words, .. } = self else { return None };
        // Terraform may break a line at any space.
        let words = words.split_whitespace().filter(|word| *word != "│").collect::<Vec<_>>().join(" ");
        // The message about a mirror is: "does not have a package of ADDRESS VERSION for PLATFORM."
        let of_mirror = |platform: &str| {
            let mut packages = words.split("does not have a package of ").skip(1);
            packages.any(|rest| rest.split(' ').nth(3).is_some_and(|word| word.trim_end_matches('.') == platform))
        };
        platforms
            .iter()
            .position(|platform| words.contains(&format!("is not available for {platform}")) || of_mirror(platform))
    }
}

/// Returns the environment variables of the program. It does not call AWS, so it gets no AWS variables.
fn environment(job: &Job) -> BTreeMap<String, String> {
    let mut environment = sandbox::base_environment(job);
    environment.retain(|name, _| !name.starts_with("AWS_"));
    let fixed = [
        ("TF_IN_AUTOMATION", "1".to_owned()),
        ("TF_INPUT", "0".to_owned()),
        ("CHECKPOINT_DISABLE", "1".to_owned()),
        ("GIT_TERMINAL_PROMPT", "0".to_owned()),
        ("GIT_CONFIG_NOSYSTEM", "1".to_owned()),
        ("TMPDIR", sandbox::inside(job, TEMPORARY)),
    ];
    environment.extend(fixed.map(|(name, value)| (name.to_owned(), value)));
    environment
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_platform_without_a_package_is_known_from_the_words_of_terraform() {
        let words = "│ Error: Could not retrieve providers for locking\n│ \n│ Terraform failed to fetch the requested providers for \
                     linux_arm64 in order to\n│ calculate their checksums: some providers could not be installed:\n│ - \
                     registry.terraform.io/acme/note: provider registry.terraform.io/acme/note 1.0.0 is not\n│ available for \
                     linux_arm64.\n";
        let ended = |words: &str| Wrong::Ended { code: 1, words: words.into() };

        assert_eq!(ended(words).lacks(&PLATFORMS), Some(1));
        let words = "provider mirror https://mirror.example/ does not have a package of a/b/c 1.0.0 for linux_amd64.\n";
        assert_eq!(ended(words).lacks(&PLATFORMS), Some(0));
        assert_eq!(ended("Error: no route to host").lacks(&PLATFORMS), None);
    }
}
