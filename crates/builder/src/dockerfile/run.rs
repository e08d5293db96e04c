//! Runs Buildah or `buildctl`, and writes its output to the job's log.

use std::collections::BTreeMap;
use std::path::Path;

use freehold_runner::job::Job;
use freehold_runner::job::failure::Failure;
use freehold_runner::sandbox::{self, Ended, Program};

use super::request::Request;

/// Runs `executable` in the workspace with `more` as additional environment variables.
pub(super) async fn run(
    job: &Job,
    executable: &Path,
    arguments: Vec<String>,
    more: &[(&str, String)],
    request: &Request<'_>,
) -> Result<(), Failure> {
    let environment = environment(job, more, request.workspace);
    let program = Program { hosts: request.hosts.to_vec(), ..Program::new(executable, arguments, environment) };
    match sandbox::run_image_build(job, program).await? {
        Ended::Code { code: 0, .. } => Ok(()),
        Ended::Code { code, last_words } => {
            let why = last_words.lines().rev().find(|line| !line.trim().is_empty()).unwrap_or("no reason was given");
            Err(Failure::new(format!("the Dockerfile could not be built (exit code {code}): {why}")))
        }
        Ended::Stopped(reason) => Err(Failure::stopped(reason)),
    }
}

/// Returns the environment variables of the program. It does not call AWS, so it gets no AWS variables.
fn environment(job: &Job, more: &[(&str, String)], workspace: &Path) -> BTreeMap<String, String> {
    let mut environment = sandbox::base_environment(job);
    environment.retain(|name, _| !name.starts_with("AWS_"));
    environment.insert("HOME".to_owned(), workspace.display().to_string());
    environment.extend(more.iter().map(|(name, value)| ((*name).to_owned(), value.clone())));
    environment
}
