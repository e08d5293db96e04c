//! `action`: runs the steps of an action in order. Each step runs in a box, has the job's credentials, may run in a
//! directory of a repository, and may write outputs into a file.

mod step_directory;

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};

use freehold_protocol::limits::MAX_OUTPUTS_BYTES;
use freehold_protocol::order::{ActionStep, RunAction};
use serde_json::{Map, Value};

use crate::identity::job_aws::JobAws;
use crate::job::Job;
use crate::job::failure::{Failure, until_stopped};
use crate::kinds::cluster_images;
use crate::kinds::result::{Done, cluster_access, job_aws};
use crate::kinds::templates::{Templates, owner};
use crate::kubernetes::ClusterAccess;
use crate::sandbox::{self, Ended, Output, Program, Service};
use crate::workspace::{self, Kind, WorkspaceError};
use step_directory::Directories;

/// The environment variables with the path of the file into which a step writes its outputs. Existing app configs use
/// the second one.
const OUTPUT_VARIABLES: [&str; 2] = ["FREEHOLD_OUTPUTS", "NUON_ACTIONS_OUTPUT_FILEPATH"];

pub(super) async fn run(job: &Job, work: &RunAction) -> Result<Done, Failure> {
    let templates = Templates::of(job);
    let directories = until_stopped(job, step_directory::prepare(job, work)).await?;
    let aws = job_aws(job).await?;
    let cluster = match &work.cluster {
        Some(of) => Some(cluster_access(job, of).await?),
        None => None,
    };
    if let Some(cluster) = &cluster {
        let admitted = async {
            let api = cluster.api()?;
            cluster_images::withdraw_unwanted(job, &api).await;
            cluster_images::admit(job, &api, None).await
        };
        until_stopped(job, admitted).await.map_err(|failure| failure.of(&owner(&job.order.work)))?;
    }
    let reach = Reach { aws: &aws, cluster: cluster.as_ref(), directories: &directories };
    let done = run_steps(job, &templates, reach, work).await;
    aws.finish().await;
    done
}

/// The services that the steps can reach beside the hosts of the contract, and the directories that they run in.
#[derive(Clone, Copy)]
struct Reach<'a> {
    aws: &'a JobAws,
    cluster: Option<&'a ClusterAccess>,
    directories: &'a Directories,
}

impl Reach<'_> {
    fn services(&self, job: &Job) -> Vec<Service> {
        let cluster = self.cluster.map(|cluster| cluster.services(job)).unwrap_or_default();
        self.aws.services().into_iter().chain(cluster).collect()
    }
}

async fn run_steps(job: &Job, templates: &Templates, reach: Reach<'_>, work: &RunAction) -> Result<Done, Failure> {
    let shared = templates.map("environment variable", &work.env_vars)?;
    let mut outputs = BTreeMap::new();
    for (index, step) in work.steps.iter().enumerate() {
        // A later step can fail before it starts, for example in its templates. The steps before it may have changed
        // something.
        let made = run_step(job, templates, reach, &shared, index, step).await;
        outputs.extend(made.map_err(|failure| if index > 0 { failure.after_change() } else { failure })?);
    }
    Ok(Done { outputs, ..Done::default() })
}

async fn run_step(
    job: &Job,
    templates: &Templates,
    reach: Reach<'_>,
    shared: &BTreeMap<String, String>,
    index: usize,
    step: &ActionStep,
) -> Result<Map<String, Value>, Failure> {
    let name = if step.name.is_empty() { format!("{}", index + 1) } else { step.name.clone() };
    let what = |part: &str| format!("step `{name}`, {part}");
    let results = format!("outputs-{index}.json");
    workspace::write(&job.workspace, &results, "", Kind::Document).await?;

    let (executable, arguments) = command(job, templates, index, step, &name).await?;
    let mut environment = sandbox::base_environment(job);
    environment.extend(shared.clone());
    environment.extend(templates.map(&what("environment variable"), &step.env_vars)?);
    environment.extend(reach.aws.environment());
    environment.extend(reach.cluster.map(ClusterAccess::environment).unwrap_or_default());
    let inside = sandbox::inside(job, &results);
    environment.extend(OUTPUT_VARIABLES.map(|name| (name.to_owned(), inside.clone())));

    job.log.line(&format!("step `{name}` starts"));
    let program = Program {
        directory: reach.directories.get(&index).map_or("", String::as_str),
        output: Output::Log { prefix: format!("{name} | ") },
        readable: reach.cluster.map(ClusterAccess::readable).unwrap_or_default(),
        services: reach.services(job),
        inside_hosts: reach.cluster.map(|cluster| cluster.hosts(job)).unwrap_or_default(),
        account_hosts: reach.aws.account_hosts(),
        ..Program::new(&executable, arguments, environment)
    };
    match sandbox::run(job, program).await? {
        Ended::Code { code: 0, .. } => {
            let outputs = read_outputs(&job.workspace, &results).await;
            outputs.map_err(|detail| Failure::partial(what(&detail)))
        }
        Ended::Code { code, .. } => Err(Failure::partial(format!("step `{name}` ended with exit code {code}"))),
        Ended::Stopped(reason) => Err(Failure::stopped(reason).after_change()),
    }
}

/// Returns the program and the arguments of a step: a shell with the step's command line or with its script.
async fn command(
    job: &Job,
    templates: &Templates,
    index: usize,
    step: &ActionStep,
    name: &str,
) -> Result<(PathBuf, Vec<String>), Failure> {
    let shells = ["bash", "sh"];
    let shell = sandbox::find_program_of(job, &shells).ok_or_else(|| {
        let none = "there is neither `bash` nor `sh` on this runner's `PATH`; install one";
        Failure::new(sandbox::lacks_program(job, &shells, none))
    })?;
    if step.inline_contents.is_empty() {
        let command = templates.text(&format!("step `{name}`, command"), &step.command)?;
        if command.trim().is_empty() {
            return Err(Failure::new(format!("step `{name}` has neither a command nor inline contents")));
        }
        return Ok((shell, vec!["-c".to_owned(), command]));
    }
    let script = templates.text(&format!("step `{name}`, inline contents"), &step.inline_contents)?;
    let file = format!("step-{index}");
    workspace::write(&job.workspace, &file, script.as_str(), Kind::Program).await?;
    let inside = sandbox::inside(job, &file);
    let arguments = match options_of_sh(&script) {
        // Existing scripts were written for machines on which `sh` is bash, such as Amazon Linux. Elsewhere `sh` may be
        // another shell with fewer features, so bash runs them in its POSIX mode.
        Some(options) if shell.ends_with("bash") => {
            ["--posix".to_owned()].into_iter().chain(options).chain([inside]).collect()
        }
        // The shell executes the script, and the script's first line names its interpreter.
        _ if script.starts_with("#!") => vec!["-c".to_owned(), "exec \"$0\"".to_owned(), inside],
        _ => vec![inside],
    };
    Ok((shell, arguments))
}

/// Returns the options in the interpreter line of a script for `sh`, or `None` for a script for another interpreter.
fn options_of_sh(script: &str) -> Option<Vec<String>> {
    let line = script.strip_prefix("#!")?.lines().next()?;
    let words: Vec<&str> = line.split_whitespace().collect();
    match words.as_slice() {
        ["/usr/bin/env", "sh"] => Some(Vec::new()),
        ["/bin/sh" | "/usr/bin/sh", options @ ..] => Some(options.iter().map(|&one| one.to_owned()).collect()),
        _ => None,
    }
}

/// Returns the outputs that a step wrote, as a JSON object or as lines of the form `KEY=TEXT`. They are empty when the
/// step wrote nothing.
async fn read_outputs(workspace: &Path, name: &str) -> Result<Map<String, Value>, String> {
    let text = workspace::read(workspace, name, MAX_OUTPUTS_BYTES as u64).await.map_err(|error| match error {
        WorkspaceError::Gone(_) => "outputs: the file is gone".to_owned(),
        // The step may have replaced the file, for example by a link.
        WorkspaceError::NotPlain(_) => "outputs: they are not in a regular file".to_owned(),
        WorkspaceError::TooLarge { size, most, .. } => {
            format!("outputs: they have {size} bytes; at most {most} can be reported")
        }
        WorkspaceError::Io { source, .. } => format!("outputs: {source}"),
    })?;
    if text.iter().all(u8::is_ascii_whitespace) {
        return Ok(Map::new());
    }
    serde_json::from_slice(&text).or_else(|error| {
        let lines = std::str::from_utf8(&text).ok().and_then(outputs_in_lines);
        lines.ok_or_else(|| format!("outputs: they are not a JSON object, and not lines of the form KEY=TEXT: {error}"))
    })
}

/// Returns the outputs in lines of the form `KEY=TEXT`; of two lines with the same key, the later one counts. Returns
/// `None` when another line is not empty.
fn outputs_in_lines(text: &str) -> Option<Map<String, Value>> {
    let is_key = |key: &str| {
        !key.is_empty() && key.bytes().all(|byte| byte.is_ascii_alphanumeric() || matches!(byte, b'_' | b'-' | b'.'))
    };
    let pair = |line: &str| {
        let (key, value) = line.split_once('=')?;
        is_key(key).then(|| (key.to_owned(), Value::from(value)))
    };
    text.lines().filter(|line| !line.trim().is_empty()).map(pair).collect()
}
