//! Builds the environment of a program. Of its own environment, the runner passes on only the settings for
//! certificates, endpoints and Terraform's CLI, and for a program without a box also those for the proxy. A program in
//! a box uses the box's proxy.

use std::collections::BTreeMap;
use std::os::unix::fs::PermissionsExt as _;
use std::path::{Path, PathBuf};

use super::egress;
use super::program::inside;
use crate::config::SandboxKind;
use crate::job::Job;
use crate::tool_image::PATH;

/// The variables that the runner passes on unchanged.
const PASSED_ON: [&str; 3] = ["AWS_ENDPOINT_URL", "AWS_USE_FIPS_ENDPOINT", "AWS_USE_DUALSTACK_ENDPOINT"];

/// The variables that name the proxy. Without a box the runner passes them on; in a box they name the box's own proxy.
const PROXY: [&str; 4] = ["HTTP_PROXY", "HTTPS_PROXY", "http_proxy", "https_proxy"];
/// The variables that list the hosts that programs reach without the proxy.
const NO_PROXY: [&str; 2] = ["NO_PROXY", "no_proxy"];

/// The variables that the runner passes on when they name an existing file or directory, which the program may then
/// read.
pub(super) const PATHS: [&str; 7] = [
    "SSL_CERT_FILE",
    "SSL_CERT_DIR",
    "AWS_CA_BUNDLE",
    "CURL_CA_BUNDLE",
    "GIT_SSL_CAINFO",
    "REQUESTS_CA_BUNDLE",
    "TF_CLI_CONFIG_FILE",
];

/// Returns the variables that every program of `job` gets.
pub fn base_environment(job: &Job) -> BTreeMap<String, String> {
    let image = job.image.get().map(|image| image.environment().clone()).unwrap_or_default();
    let path = image.get("PATH").cloned().unwrap_or_else(|| PATH.to_owned());
    let own = [
        ("PATH", path),
        ("HOME", inside(job, "")),
        ("TMPDIR", "/tmp".to_owned()),
        ("LANG", "C.UTF-8".to_owned()),
        // Without this variable, a program without credentials of its mode could get the runner's credentials from the
        // machine's metadata service.
        ("AWS_EC2_METADATA_DISABLED", "true".to_owned()),
        ("AWS_REGION", job.config.region.clone()),
        ("AWS_DEFAULT_REGION", job.config.region.clone()),
    ];
    let own_setting = |name: &'static str| Some((name, std::env::var(name).ok()?));
    let proxy: Vec<(&str, String)> = match job.config.sandbox {
        SandboxKind::None => PROXY.into_iter().chain(NO_PROXY).filter_map(own_setting).collect(),
        SandboxKind::Bubblewrap => {
            let proxy = PROXY.map(|name| (name, format!("http://{}", egress::PROXY)));
            proxy
                .into_iter()
                .chain(NO_PROXY.map(|name| (name, "localhost,127.0.0.0/8,127.0.0.1,::1".to_owned())))
                .collect()
        }
    };
    let passed_on = PASSED_ON.into_iter().filter_map(own_setting).chain(proxy);
    let paths = paths().map(|(name, path)| (name, path.display().to_string()));
    let own = own.into_iter().chain(passed_on).chain(paths).map(|(name, value)| (name.to_owned(), value));
    image.into_iter().chain(own).collect()
}

/// Returns each variable of [`PATHS`] that names an existing file or directory, with that path.
pub(super) fn paths() -> impl Iterator<Item = (&'static str, PathBuf)> {
    PATHS.into_iter().filter_map(|name| {
        let path = PathBuf::from(std::env::var_os(name)?);
        (path.is_absolute() && path.exists()).then_some((name, path))
    })
}

/// Returns the first of `names` that programs of `job` find: in the job's image, or on the runner's `PATH`.
pub fn find_program_of(job: &Job, names: &[&str]) -> Option<PathBuf> {
    job.image.get().map_or_else(|| find_program(names), |image| image.find_program(names))
}

/// Returns the message for missing programs `names`: `of_machine` when the job runs without an image, otherwise a text
/// that names the image.
pub fn lacks_program(job: &Job, names: &[&str], of_machine: &str) -> String {
    job.image.get().map_or_else(
        || of_machine.to_owned(),
        |image| {
            let (names, digest) = (names.join("` or `"), image.digest());
            format!(
                "the image `{digest}`, which the job runs in, has no `{names}` on its `PATH`; add the program to it"
            )
        },
    )
}

/// Returns the path of the first program of `names` that is executable on the runner's `PATH`.
pub fn find_program(names: &[&str]) -> Option<PathBuf> {
    let path = std::env::var_os("PATH").unwrap_or_else(|| PATH.into());
    let directories: Vec<PathBuf> = std::env::split_paths(&path).filter(|directory| directory.is_absolute()).collect();
    names.iter().find_map(|name| directories.iter().map(|directory| directory.join(name)).find(|file| is_program(file)))
}

/// The variable that lets jobs without a box run as root.
const JOBS_AS_ROOT: &str = "FREEHOLD_JOBS_AS_ROOT";

/// Checks that jobs of this process may run with `sandbox`: without a box, a job of a runner that runs as root controls
/// the whole machine.
///
/// # Errors
/// A sentence with the ways out.
pub fn check_user(sandbox: SandboxKind) -> Result<(), String> {
    let consents = std::env::var(JOBS_AS_ROOT).is_ok_and(|value| value == "1");
    judge_user(sandbox, rustix::process::geteuid().is_root(), consents)
}

fn judge_user(sandbox: SandboxKind, is_root: bool, consents: bool) -> Result<(), String> {
    if sandbox == SandboxKind::Bubblewrap || !is_root || consents {
        return Ok(());
    }
    Err(format!(
        "the config has `sandbox = \"none\"` and the runner runs as root, so every job would control this machine; \
         leave the key out, start the runner as another user, or set `{JOBS_AS_ROOT}=1` on a machine that has nothing \
         else"
    ))
}

fn is_program(file: &Path) -> bool {
    file.metadata().is_ok_and(|data| data.is_file() && data.permissions().mode() & 0o111 != 0)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_runner_that_is_root_needs_a_box_or_the_word_of_its_owner() {
        assert!(judge_user(SandboxKind::None, true, false).unwrap_err().contains("FREEHOLD_JOBS_AS_ROOT=1"));
        assert_eq!(judge_user(SandboxKind::None, true, true), Ok(()));
        assert_eq!(judge_user(SandboxKind::None, false, false), Ok(()));
        assert_eq!(judge_user(SandboxKind::Bubblewrap, true, false), Ok(()));
    }
}
