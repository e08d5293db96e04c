//! Checks the runner's machine: the free disk space, Terraform and other programs, and the isolation of jobs.

use std::path::Path;
use std::process::Stdio;
use std::time::Duration;

use freehold_protocol::preflight::{CheckInstall, Finding, KUSTOMIZE};
use semver::Version;
use serde::Deserialize;

use super::finding::{fail, pass, unchecked, warn};
use crate::config::SandboxKind;
use crate::job::Job;
use crate::kinds::terraform_module::executable;
use crate::sandbox;

/// The time limit for a program to show that it works.
const ANSWER: Duration = Duration::from_secs(10);
/// The disk space for Terraform's providers, in bytes. The AWS provider alone needs about 700 MB.
const PROVIDERS: u64 = 1 << 30;
/// The way out when a program has another digest than the config of the runner names.
const PIN: &str = "see the table `programs` of the runner's config";
/// The disk space for logs and the spool, in bytes.
const REST: u64 = 1 << 28;

/// Compares the size of the artifacts with the free space on the disk that holds the workspaces.
pub(super) fn disk(job: &Job, work: &CheckInstall) -> Finding {
    const CHECK: &str = "disk";
    let free = match rustix::fs::statvfs(&job.workspace) {
        Ok(found) => found.f_bavail.saturating_mul(found.f_frsize),
        Err(error) => return unchecked(CHECK, error.to_string(), ""),
    };
    judge_disk(free, work, &job.config.state_dir)
}

fn judge_disk(free: u64, work: &CheckInstall, place: &Path) -> Finding {
    const CHECK: &str = "disk";
    let common = if work.terraform_versions.is_empty() { REST } else { PROVIDERS };
    let needed = work.disk_bytes.saturating_add(common);
    let detail = format!("{} are free at `{}`; up to {} are needed", mib(free), place.display(), mib(needed));
    let fix = "make the volume of `state_dir` larger, or remove files that do not belong there";
    if free < work.disk_bytes {
        fail(CHECK, detail, fix)
    } else if free < needed {
        warn(CHECK, detail, fix)
    } else {
        pass(CHECK, detail)
    }
}

fn mib(bytes: u64) -> String {
    format!("{} MiB", bytes >> 20)
}

/// Finds Terraform and checks its version. Returns no finding when no component needs Terraform.
pub(super) async fn terraform(job: &Job, work: &CheckInstall) -> Vec<Finding> {
    const CHECK: &str = "terraform";
    if work.terraform_versions.is_empty() {
        return Vec::new();
    }
    let path = match executable::find_of(job) {
        Ok(path) => path,
        Err(problem) => return vec![fail(CHECK, problem, "install Terraform or OpenTofu on the runner's machine")],
    };
    if let Err(other) = sandbox::check_program_of(job, &path).await {
        return vec![fail(CHECK, other.to_string(), PIN)];
    }
    // A program of an image runs only in a box with this image.
    if job.image.get().is_some() {
        return vec![pass(CHECK, in_image(&path))];
    }
    vec![match version(&path, &job.workspace).await {
        Ok(found) => judge_version(&path, &found, work),
        Err(problem) => fail(CHECK, problem, "make the program run on the runner's machine"),
    }]
}

/// Looks for the program `name`, which a component needs.
pub(super) async fn tool(job: &Job, name: &str) -> Finding {
    let names: &[&str] = if name == KUSTOMIZE { &[KUSTOMIZE, "kubectl"] } else { &[name] };
    let found = sandbox::find_program_of(job, names);
    if let Some(path) = &found
        && let Err(other) = sandbox::check_program_of(job, path).await
    {
        return fail(name, other.to_string(), PIN);
    }
    match found {
        Some(path) if job.image.get().is_some() => pass(name, in_image(&path)),
        None if job.image.get().is_some() => {
            fail(name, sandbox::lacks_program(job, names, ""), "add the program to the tool image, and build it again")
        }
        Some(path) => pass(name, format!("`{}`", path.display())),
        None => {
            let names = names.join("` or `");
            fail(name, format!("there is no `{names}` on this runner's `PATH`"), "install it on the runner's machine")
        }
    }
}

fn in_image(path: &Path) -> String {
    format!("`{}` in the tool image", path.display())
}

async fn version(path: &Path, directory: &Path) -> Result<String, String> {
    #[derive(Deserialize)]
    struct VersionAnswer {
        terraform_version: String,
    }
    let shown = path.display();
    let mut command = tokio::process::Command::new(path);
    command.args(["version", "-json"]).env("CHECKPOINT_DISABLE", "1").current_dir(directory);
    let output = tokio::time::timeout(ANSWER, command.stdin(Stdio::null()).kill_on_drop(true).output()).await;
    let output = output
        .map_err(|_| format!("`{shown}` did not show its version within {} s", ANSWER.as_secs()))?
        .map_err(|error| format!("`{shown}` does not start: {error}"))?;
    let answer: Result<VersionAnswer, _> = serde_json::from_slice(&output.stdout);
    answer.map(|answer| answer.terraform_version).map_err(|_| {
        let stderr = String::from_utf8_lossy(&output.stderr);
        let why = stderr.lines().next().map(|line| format!(": {line}")).unwrap_or_default();
        format!("`{shown} version -json` did not print a version as JSON{why}")
    })
}

/// Warns of a program that is older than the version in a component's config, or has another major version. This is not
/// a failure, because the runner uses its program anyway; only `required_version` in a module makes a job fail.
fn judge_version(path: &Path, found: &str, work: &CheckInstall) -> Finding {
    const CHECK: &str = "terraform";
    let detail = format!("`{}` is version {found}", path.display());
    let Ok(here) = Version::parse(found) else { return unchecked(CHECK, detail, "") };
    let unfit = work.terraform_versions.iter().find(|wanted| {
        let wanted = Version::parse(wanted.trim_start_matches('v'));
        wanted.is_ok_and(|wanted| wanted.major != here.major || wanted > here)
    });
    match unfit {
        Some(wanted) => {
            warn(CHECK, format!("{detail}; a component names `{wanted}`"), format!("install version {wanted} or newer"))
        }
        None => pass(CHECK, detail),
    }
}

/// Makes a box and tests its isolation, if the config requires boxes and a component runs programs.
pub(super) async fn sandbox(job: &Job, work: &CheckInstall) -> Vec<Finding> {
    const CHECK: &str = "sandbox";
    vec![match (job.config.sandbox, work.programs) {
        (SandboxKind::None, _) => {
            warn(CHECK, "none: jobs see the whole machine", "set `sandbox = \"bubblewrap\"` in the runner's config")
        }
        (SandboxKind::Bubblewrap, false) => pass(CHECK, "no deployed component needs a box"),
        (SandboxKind::Bubblewrap, true) => match sandbox::check(&job.config.limits).await {
            Ok(holds) => pass(CHECK, holds),
            Err(problem) => fail(CHECK, problem, "see `freehold-runner doctor` on the runner's machine"),
        },
    }]
}

#[cfg(test)]
mod tests {
    use freehold_protocol::preflight::Verdict;

    use super::*;

    fn work(version: &str, disk_bytes: u64) -> CheckInstall {
        CheckInstall { terraform_versions: [version.to_owned()].into(), disk_bytes, ..CheckInstall::default() }
    }

    #[test]
    fn artifacts_must_fit_and_providers_should() {
        let judged = |free: u64| judge_disk(free, &work("", 10 << 20), Path::new("/state"));

        assert_eq!(judged(9 << 20).state, Verdict::Fail);
        assert_eq!(judged(11 << 20).state, Verdict::Warn);
        assert_eq!(judged(2 << 30), pass("disk", "2048 MiB are free at `/state`; up to 1034 MiB are needed"));
    }

    #[test]
    fn an_older_terraform_is_a_warning() {
        let judged = |wanted: &str| judge_version(Path::new("/bin/terraform"), "1.11.3", &work(wanted, 0)).state;

        for fits in ["", "1.11.3", "1.5.0", "v1.2.0", "latest", "~> 1.12"] {
            assert_eq!(judged(fits), Verdict::Pass, "{fits}");
        }
        for unfit in ["1.12.0", "0.12.31", "2.0.0"] {
            assert_eq!(judged(unfit), Verdict::Warn, "{unfit}");
        }
    }

    #[tokio::test]
    async fn a_program_that_prints_no_version_is_named_with_its_error() {
        let refused = async |program: &str| version(Path::new(program), Path::new("/")).await.unwrap_err();

        let (silent, loud) = (refused("true").await, refused("cat").await);

        assert_eq!(silent, "`true version -json` did not print a version as JSON");
        assert!(loud.starts_with("`cat version -json` did not print a version as JSON: cat: "), "{loud}");
    }
}
