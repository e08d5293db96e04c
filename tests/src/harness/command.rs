//! Runs the real `freehold` command and keeps its output.

use std::path::Path;
use std::process::Stdio;
use std::time::Duration;

use anyhow::{Context as _, ensure};
use aws_credential_types::Credentials;
use serde_json::Value;
use tokio::process::Command;

use super::clients::REGION;

/// The longest that one command may take.
const LIMIT: Duration = Duration::from_secs(600);

/// The output and the exit code of a command.
#[derive(Debug, Clone)]
pub struct CommandOutput {
    pub command: String,
    pub code: i32,
    pub out: String,
    pub error: String,
}

/// Returns the variables that make a program act as `credentials` on the cloud at `endpoint`.
pub fn environment(endpoint: Option<&str>, credentials: &Credentials) -> Vec<(&'static str, String)> {
    let mut all = vec![
        ("AWS_REGION", REGION.to_owned()),
        ("AWS_ACCESS_KEY_ID", credentials.access_key_id().to_owned()),
        ("AWS_SECRET_ACCESS_KEY", credentials.secret_access_key().to_owned()),
    ];
    all.extend(credentials.session_token().map(|token| ("AWS_SESSION_TOKEN", token.to_owned())));
    all.extend(endpoint.map(|endpoint| ("AWS_ENDPOINT_URL", endpoint.to_owned())));
    all
}

/// Runs `program` in `directory` with these variables; of the caller's variables it keeps only `PATH`.
///
/// # Errors
/// When it cannot be started or does not end.
pub async fn run(
    program: &Path,
    directory: &Path,
    environment: &[(&'static str, String)],
    arguments: &[&str],
) -> anyhow::Result<CommandOutput> {
    let mut command = Command::new(program);
    command.args(arguments).current_dir(directory).env_clear();
    command.env("PATH", std::env::var_os("PATH").unwrap_or_default());
    command.env("HOME", directory);
    command.envs(environment.iter().map(|(name, value)| (name, value)));
    command.stdin(Stdio::null()).kill_on_drop(true);
    let words = format!("freehold {}", arguments.join(" "));
    let ended = tokio::time::timeout(LIMIT, command.output()).await;
    let ended = ended.with_context(|| format!("`{words}` did not end in {} s", LIMIT.as_secs()))??;
    Ok(CommandOutput {
        command: words,
        code: ended.status.code().unwrap_or(-1),
        out: String::from_utf8_lossy(&ended.stdout).into_owned(),
        error: String::from_utf8_lossy(&ended.stderr).into_owned(),
    })
}

impl CommandOutput {
    /// Returns the JSON of a command that succeeded; of several lines of JSON the last one.
    ///
    /// # Errors
    /// The output of a command that failed.
    pub fn json(&self) -> anyhow::Result<Value> {
        ensure!(self.code == 0, "`{}` ended with {}: {}{}", self.command, self.code, self.out, self.error);
        let last = || self.out.lines().rev().find_map(|line| serde_json::from_str(line).ok());
        let value = serde_json::from_str(&self.out).ok().or_else(last);
        value.with_context(|| format!("`{}` printed no JSON: {}{}", self.command, self.out, self.error))
    }

    /// Returns the whole output when the exit code is `code`.
    ///
    /// # Errors
    /// When the exit code is another.
    pub fn ended_with(&self, code: i32) -> anyhow::Result<String> {
        let output = format!("{}{}", self.out, self.error);
        ensure!(self.code == code, "`{}` ended with {}, not {code}: {output}", self.command, self.code);
        Ok(output)
    }
}
