//! The real `freehold-runner` or `freehold-builder` as a process with the credentials of its role.

use std::fs::File;
use std::path::{Path, PathBuf};
use std::process::Stdio;
use std::time::Duration;

use anyhow::{Context as _, bail, ensure};
use rustix::process::{Pid, kill_process};
use tokio::process::{Child, Command};

pub use rustix::process::Signal;

use super::wait::until;

/// A running runner; it is killed when it is dropped.
#[derive(Debug)]
pub struct Runner {
    child: Child,
    how: How,
}

/// What it takes to start a runner.
#[derive(Debug, Clone)]
pub struct How {
    pub program: PathBuf,
    pub config: PathBuf,
    /// The install stack to take the config from instead; `config` is the state directory then.
    pub stack: Option<String>,
    pub log: PathBuf,
    pub environment: Vec<(&'static str, String)>,
}

impl Runner {
    /// Starts a runner.
    ///
    /// # Errors
    /// When it cannot be started.
    pub fn start(how: How) -> anyhow::Result<Self> {
        let log = File::options().create(true).append(true).open(&how.log)?;
        let mut command = Command::new(&how.program);
        command.arg("run").env_clear();
        match &how.stack {
            None => command.arg("--config"),
            Some(stack) => command.args(["--stack", stack, "--state-dir"]),
        };
        command.arg(&how.config);
        command.env("PATH", std::env::var_os("PATH").unwrap_or_default());
        command.envs(how.environment.iter().map(|(name, value)| (name, value)));
        command.stdin(Stdio::null()).stdout(log.try_clone()?).stderr(log).kill_on_drop(true);
        let child = command.spawn().context("starting the runner")?;
        Ok(Self { child, how })
    }

    /// Kills it (-9), and returns when it is gone.
    ///
    /// # Errors
    /// When it cannot be killed.
    pub async fn kill(&mut self) -> anyhow::Result<()> {
        self.child.kill().await.context("killing the runner")
    }

    /// Sends it a signal.
    ///
    /// # Errors
    /// When it has ended.
    pub fn signal(&self, signal: Signal) -> anyhow::Result<()> {
        let pid =
            self.child.id().and_then(|pid| Pid::from_raw(pid.try_into().ok()?)).context("the runner has ended")?;
        kill_process(pid, signal).context("sending a signal to the runner")
    }

    /// Returns whether it has not ended.
    ///
    /// # Errors
    /// When that cannot be found out.
    pub fn is_alive(&mut self) -> anyhow::Result<bool> {
        Ok(self.child.try_wait()?.is_none())
    }

    /// Returns what it takes to start it, to change it for [`Runner::start`].
    pub fn how(&self) -> How {
        self.how.clone()
    }

    /// Returns its state directory.
    ///
    /// # Errors
    /// When its config cannot be read or names none.
    pub fn state_directory(&self) -> anyhow::Result<PathBuf> {
        if self.how.stack.is_some() {
            return Ok(self.how.config.clone());
        }
        let text = std::fs::read_to_string(&self.how.config)?;
        let line = text.lines().find_map(|line| line.strip_prefix("state_dir"));
        let path = line.and_then(|line| line.split('"').nth(1)).context("the config names no state directory")?;
        Ok(PathBuf::from(path))
    }

    /// Starts it again on the state that it left, after [`Runner::kill`].
    ///
    /// # Errors
    /// When it cannot be started.
    pub fn start_again(&mut self) -> anyhow::Result<()> {
        *self = Self::start(self.how.clone())?;
        Ok(())
    }

    /// Starts a runner with another config in its place, as on a machine that replaces a lost one.
    ///
    /// # Errors
    /// When it cannot be started.
    pub fn replace(&mut self, config: &Path) -> anyhow::Result<()> {
        self.how.config = config.to_owned();
        self.start_again()
    }

    /// Waits until it ends by itself, and returns its exit code.
    ///
    /// # Errors
    /// When it does not end in time.
    pub async fn ends(&mut self, limit: Duration) -> anyhow::Result<Option<i32>> {
        let ended = tokio::time::timeout(limit, self.child.wait()).await;
        Ok(ended.with_context(|| format!("the runner did not end in {} s", limit.as_secs()))??.code())
    }

    /// Returns all that it has logged.
    pub fn log(&self) -> String {
        std::fs::read_to_string(&self.how.log).unwrap_or_default()
    }

    /// Waits until its log contains `text`.
    ///
    /// # Errors
    /// When it ends before, or does not say so in time.
    pub async fn logs(&mut self, text: &str, limit: Duration) -> anyhow::Result<()> {
        let what = format!("the runner's log contains `{text}`");
        let (child, how) = (&mut self.child, &self.how);
        until(&what, limit, || {
            let ended = child.try_wait();
            let log = std::fs::read_to_string(&how.log).unwrap_or_default();
            async move {
                match (log.contains(text), ended?) {
                    (true, _) => Ok(Some(())),
                    (false, Some(status)) => bail!("the runner ended with {status}: {log}"),
                    (false, None) => Ok(None),
                }
            }
        })
        .await
    }
}

/// Writes the config of a runner that has nothing of what the one before knew, and returns its path.
///
/// # Errors
/// When the config has no state directory of this harness, or the file cannot be written.
pub fn on_an_empty_disk(config: &Path) -> anyhow::Result<PathBuf> {
    let text = std::fs::read_to_string(config)?;
    ensure!(text.contains("globex-state\""), "the config has no such state directory: {text}");
    let path = config.with_file_name("globex-2.toml");
    std::fs::write(&path, text.replace("globex-state\"", "globex-state-2\""))?;
    Ok(path)
}
