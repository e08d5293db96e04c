//! A runner as a process of its own, with the credentials of its role.

use std::fs::File;
use std::path::{Path, PathBuf};
use std::process::Stdio;

use anyhow::Context as _;
use tokio::process::{Child, Command};

use super::{REGION, Stage, binary};

/// A running runner; it is killed when it is dropped.
#[derive(Debug)]
pub struct Runner {
    child: Child,
    command: Start,
}

/// What it takes to start the same runner again.
#[derive(Debug, Clone)]
struct Start {
    binary: PathBuf,
    role: &'static str,
    config: PathBuf,
    log: PathBuf,
    environment: Vec<(&'static str, String)>,
}

impl Runner {
    /// Starts the runner of `config`, called `name` (`build` for the build runner), as `role` of `account`.
    pub(super) async fn start(
        stage: &Stage,
        name: &str,
        account: &str,
        role: &str,
        config: &Path,
    ) -> anyhow::Result<Self> {
        let sts = aws_sdk_sts::Client::new(&stage.sdk(account));
        let session = sts.assume_role().role_arn(role).role_session_name("runner").send().await;
        let session = session.with_context(|| format!("taking the role {role}"))?;
        let keys = session.credentials().context("no credentials of the role")?;
        let environment = vec![
            ("PATH", std::env::var("PATH").unwrap_or_default()),
            ("AWS_ENDPOINT_URL", stage.runners.url()),
            ("AWS_REGION", REGION.to_owned()),
            ("AWS_ACCESS_KEY_ID", keys.access_key_id().to_owned()),
            ("AWS_SECRET_ACCESS_KEY", keys.secret_access_key().to_owned()),
            ("AWS_SESSION_TOKEN", keys.session_token().to_owned()),
        ];
        let command = Start {
            binary: binary(&stage.root, "freehold-runner")?,
            role: if name == "build" { "build" } else { "install" },
            config: config.to_owned(),
            log: stage.path(&format!("{name}-runner.log")),
            environment,
        };
        Ok(Self { child: command.spawn()?, command })
    }

    /// Kills the runner (-9) and waits until it is gone.
    ///
    /// # Errors
    /// When the process cannot be killed.
    pub async fn kill(&mut self) -> anyhow::Result<()> {
        self.child.kill().await.context("killing the runner")
    }

    /// Starts it again, on the same state.
    ///
    /// # Errors
    /// When it cannot be started.
    pub fn start_again(&mut self) -> anyhow::Result<()> {
        self.child = self.command.spawn()?;
        Ok(())
    }

    /// Returns the process id while it runs.
    pub fn pid(&self) -> Option<u32> {
        self.child.id()
    }

    /// Returns the file with what it says.
    pub fn log(&self) -> &Path {
        &self.command.log
    }
}

impl Start {
    fn spawn(&self) -> anyhow::Result<Child> {
        let log = File::options().create(true).append(true).open(&self.log)?;
        let mut command = Command::new(&self.binary);
        command.args(["run", "--role", self.role, "--config"]).arg(&self.config).env_clear();
        command.envs(self.environment.iter().map(|(name, value)| (name, value)));
        command.stdin(Stdio::null()).stdout(log.try_clone()?).stderr(log).kill_on_drop(true);
        command.spawn().context("starting the runner")
    }
}
