//! Runs `helm` on one release, in the job's box.

use std::collections::BTreeMap;
use std::path::PathBuf;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use freehold_protocol::order::InstallChart;
use semver::Version;
use serde::Deserialize;
use serde_json::Value;

use super::release::{CHART, Release};
use super::releases::Revision;
use crate::identity::job_aws::JobAws;
use crate::job::Job;
use crate::job::failure::Failure;
use crate::kinds::result::succeed;
use crate::kubernetes::ClusterAccess;
use crate::sandbox::{self, Output, Printed, Program, Service};

/// The option for the number of revisions of a release that Helm keeps.
const HISTORY: &str = "--history-max=10";
/// The oldest supported version of Helm. It has all options that every job needs.
const OLDEST: Version = Version::new(3, 13, 0);
/// The oldest version of Helm with `--take-ownership`.
const TAKES_OWNERSHIP: Version = Version::new(3, 17, 0);
/// The oldest version of Helm with `--hide-notes`.
const HIDES_NOTES: Version = Version::new(3, 16, 0);

/// Whether a rendered chart contains its hooks.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Hooks {
    Shown,
    LeftOut,
}

/// The Helm program for one release.
pub(super) struct Helm<'a> {
    job: &'a Job,
    release: Release,
    executable: PathBuf,
    environment: BTreeMap<String, String>,
    readable: Vec<PathBuf>,
    services: Vec<Service>,
    inside_hosts: Vec<String>,
    version: std::sync::OnceLock<Version>,
    has_changed: AtomicBool,
}

impl<'a> Helm<'a> {
    /// Finds the program `helm` and prepares its environment variables.
    pub(super) fn find(job: &'a Job, release: Release, access: &ClusterAccess, aws: &JobAws) -> Result<Self, Failure> {
        let executable = sandbox::find_program_of(job, &["helm"]).ok_or_else(|| {
            let none = "there is no `helm` on this runner's `PATH`; install Helm 3.17 or newer";
            Failure::new(sandbox::lacks_program(job, &["helm"], none))
        })?;
        let mut environment = sandbox::base_environment(job);
        environment.extend(aws.environment());
        environment.extend(access.environment());
        environment.insert("HELM_DRIVER".to_owned(), release.driver.as_str().to_owned());
        let services = aws.services().into_iter().chain(access.services(job)).collect();
        Ok(Self {
            job,
            release,
            executable,
            environment,
            readable: access.readable(),
            services,
            inside_hosts: access.hosts(job),
            version: std::sync::OnceLock::new(),
            has_changed: AtomicBool::new(false),
        })
    }

    pub(super) const fn release(&self) -> &Release {
        &self.release
    }

    /// Returns whether this attempt has started a command that can change the release.
    pub(super) fn has_changed(&self) -> bool {
        self.has_changed.load(Ordering::Relaxed)
    }

    /// Logs the version of Helm, and refuses a version that is older than [`OLDEST`].
    pub(super) async fn check_version(&self) -> Result<(), Failure> {
        let text = self.capture("version", &["version", "--template={{.Version}}"]).await?;
        let version = parse_version(&text)
            .ok_or_else(|| Failure::new(format!("`helm version` prints `{}`, which is not a version", text.trim())))?;
        if version < OLDEST {
            return Err(Failure::new(format!("helm {version} is too old; install Helm {OLDEST} or newer")));
        }
        self.job.log.line(&format!("helm {version}"));
        let _ = self.version.set(version);
        Ok(())
    }

    /// Returns the rendered objects of the chart as YAML, with its hooks or without. `capabilities` are the version of
    /// the cluster and the kinds that it serves; charts can read both.
    pub(super) async fn template(
        &self,
        values: &[String],
        capabilities: &(String, Vec<String>),
        is_upgrade: bool,
        hooks: Hooks,
    ) -> Result<String, Failure> {
        let (version, served) = capabilities;
        let mut arguments = self.words(&["template", &self.release.name, CHART, "--dry-run=server"]);
        arguments.push(if is_upgrade { "--is-upgrade" } else { "--include-crds" }.to_owned());
        if hooks == Hooks::LeftOut {
            arguments.push("--no-hooks".to_owned());
        }
        arguments.push(format!("--kube-version={version}"));
        arguments.extend(served.iter().map(|one| format!("--api-versions={one}")));
        arguments.extend(values.iter().cloned());
        self.print("template", arguments).await
    }

    /// Returns the objects of the newest revision, or of the one that `options` name, as YAML.
    pub(super) async fn manifest(&self, options: &[&str]) -> Result<String, Failure> {
        let words = [&["get", "manifest", self.release.name.as_str()], options].concat();
        self.capture("get manifest", &words).await
    }

    /// Installs or upgrades the release, and waits until its objects are ready.
    pub(super) async fn upgrade(&self, work: &InstallChart, values: &[String], time: Duration) -> Result<(), Failure> {
        let mut arguments = self.words(&["upgrade", &self.release.name, CHART]);
        arguments.extend(["--install", "--create-namespace", "--wait", HISTORY].map(str::to_owned));
        arguments.push(timeout(time));
        let version = self.version.get().cloned().unwrap_or(OLDEST);
        if version >= HIDES_NOTES {
            // The notes of a chart may contain passwords, and the output goes into the log.
            arguments.push("--hide-notes".to_owned());
        }
        if work.take_ownership {
            if version < TAKES_OWNERSHIP {
                return Err(Failure::new(format!(
                    "component `{}` has `take_ownership`, which helm {version} lacks; install Helm {TAKES_OWNERSHIP} or newer",
                    work.component
                )));
            }
            arguments.push("--take-ownership".to_owned());
        }
        arguments.extend(values.iter().cloned());
        self.change("upgrade", arguments).await
    }

    /// Rolls the release back to revision `to`. Waits until the objects are ready, unless the revision was ready
    /// before: without `--wait`, Helm records the release as deployed at once.
    pub(super) async fn roll_back(&self, to: &Revision, time: Duration) -> Result<(), Failure> {
        let mut arguments = self.words(&["rollback", &self.release.name, &to.number.to_string(), HISTORY]);
        if !to.is_deployed() {
            arguments.push("--wait".to_owned());
        }
        arguments.push(timeout(time));
        self.change("rollback", arguments).await
    }

    /// Uninstalls the release. An absent release is not an error.
    pub(super) async fn uninstall(&self, time: Duration) -> Result<(), Failure> {
        let mut arguments = self.words(&["uninstall", &self.release.name, "--ignore-not-found", "--wait"]);
        arguments.push(timeout(time));
        self.change("uninstall", arguments).await
    }

    /// Returns the outputs of the job: the names and versions of the release after the upgrade.
    pub(super) async fn outputs(&self) -> Result<BTreeMap<String, Value>, Failure> {
        #[derive(Deserialize)]
        struct Listed {
            name: String,
            namespace: String,
            revision: String,
            chart: String,
            #[serde(default)]
            app_version: String,
        }
        let text = self.capture("list", &["list", "--all", "--max=0", "--output=json"]).await?;
        let all: Vec<Listed> = serde_json::from_str(&text)
            .map_err(|error| Failure::because("could not read the output of helm", &error))?;
        let one = all.into_iter().find(|one| one.name == self.release.name);
        let one =
            one.ok_or_else(|| Failure::new(format!("release `{}` is gone after its upgrade", self.release.name)))?;
        let revision = one.revision.parse::<u32>().map_or(Value::from(one.revision), Value::from);
        let outputs = [
            ("release", Value::from(one.name)),
            ("namespace", Value::from(one.namespace)),
            ("revision", revision),
            ("chart", Value::from(one.chart)),
            ("app_version", Value::from(one.app_version)),
        ];
        Ok(outputs.into_iter().map(|(name, value)| (name.to_owned(), value)).collect())
    }

    fn words(&self, words: &[&str]) -> Vec<String> {
        let namespace = format!("--namespace={}", self.release.namespace);
        words.iter().map(|word| (*word).to_owned()).chain([namespace]).collect()
    }

    async fn change(&self, name: &str, arguments: Vec<String>) -> Result<(), Failure> {
        self.has_changed.store(true, Ordering::Relaxed);
        self.start(name, arguments, Output::log()).await
    }

    /// Runs a subcommand and returns its standard output.
    async fn capture(&self, name: &str, words: &[&str]) -> Result<String, Failure> {
        self.print(name, self.words(words)).await
    }

    async fn print(&self, name: &str, arguments: Vec<String>) -> Result<String, Failure> {
        let unreadable = |error| Failure::because("could not read the output of helm", &error);
        let printed = Printed::new(self.job).map_err(unreadable)?;
        self.start(name, arguments, Output::Kept(printed.clone())).await?;
        printed.text().await.map_err(unreadable)
    }

    async fn start(&self, name: &str, arguments: Vec<String>, output: Output) -> Result<(), Failure> {
        let program = Program {
            output,
            readable: self.readable.clone(),
            services: self.services.clone(),
            inside_hosts: self.inside_hosts.clone(),
            ..Program::new(&self.executable, arguments, self.environment.clone())
        };
        succeed(self.job, program, &format!("helm {name}"), error).await
    }
}

fn timeout(time: Duration) -> String {
    format!("--timeout={}s", time.as_secs())
}

fn parse_version(text: &str) -> Option<Version> {
    let version = Version::parse(text.trim().trim_start_matches('v')).ok()?;
    Some(Version::new(version.major, version.minor, version.patch))
}

/// Returns the error in Helm's output as one line that begins with a colon, or an empty text.
fn error(words: &str) -> String {
    let lines = words.lines().skip_while(|line| !line.starts_with("Error: ")).map(str::trim);
    let text = lines.filter(|line| !line.is_empty()).collect::<Vec<_>>().join(" ");
    match text.strip_prefix("Error: ") {
        Some(error) => format!(": {error}"),
        None => String::new(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn versions_are_read_as_helm_prints_them() {
        assert_eq!(parse_version("v3.17.3\n"), Some(Version::new(3, 17, 3)));
        assert_eq!(parse_version("v3.18.0-rc.1+g1234"), Some(Version::new(3, 18, 0)));
        assert_eq!(parse_version("helm"), None);
    }

    #[test]
    fn the_error_is_told_without_what_stands_before_it() {
        let words = "coalesce.go:286: warning: cannot overwrite\nError: execution error at (web/templates/a.yaml:3:4):\n  needs a name\n";

        assert_eq!(error(words), ": execution error at (web/templates/a.yaml:3:4): needs a name");
        assert_eq!(error("killed"), "");
    }
}
