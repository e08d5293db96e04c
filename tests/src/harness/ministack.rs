//! The default cloud: an instance of `localstack/cloud` for this process alone.

use std::path::Path;
use std::process::Stdio;

use anyhow::{Context as _, ensure};
use tokio::process::Command;

use super::cloud::Capability;
use super::emulator::Emulator;
use super::proxies::Proxies;
use crate::workspace::{kubernetes_programs, workspace_root};

/// A running local cloud.
#[derive(Debug)]
pub(super) struct MiniStack {
    name: String,
    endpoint: String,
    capabilities: Vec<Capability>,
}

impl MiniStack {
    /// Starts an instance that keeps its files in `state` and ends with this process.
    ///
    /// # Errors
    /// The output of `localstack/cloud`, when the cloud does not start.
    pub(super) async fn start(state: &Path) -> anyhow::Result<Self> {
        Self::up(state, &["--port", "0"]).await
    }

    /// Starts an instance behind `proxies`: its functions reach it through one of them, and registries are reached through the
    /// other.
    ///
    /// # Errors
    /// The output of `localstack/cloud`, when the cloud does not start.
    pub(super) async fn start_behind(proxies: &Proxies, state: &Path) -> anyhow::Result<Self> {
        let (port, functions) = (proxies.port.to_string(), proxies.functions.url());
        let registry = proxies.runners.url().rsplit(':').next().unwrap_or_default().to_owned();
        let arguments = ["--port", &port, "--function-endpoint", &functions, "--registry-port", &registry];
        Self::up(state, &arguments).await
    }

    /// Starts an instance whose clock, and that of its functions, is ahead by as much as the file `clock` says.
    ///
    /// # Errors
    /// The output of `localstack/cloud`, when the cloud does not start.
    pub(super) async fn start_with_clock(clock: &Path, state: &Path) -> anyhow::Result<Self> {
        Self::up(state, &["--port", "0", "--clock", &clock.display().to_string()]).await
    }

    async fn up(state: &Path, arguments: &[&str]) -> anyhow::Result<Self> {
        let up = Command::new(workspace_root()?.join("localstack/cloud"))
            .args(["up", "--detach", "--until-pid", &std::process::id().to_string()])
            .args(arguments)
            .arg("--state")
            .arg(state)
            .stdin(Stdio::null())
            .output()
            .await
            .context("starting `localstack/cloud`")?;
        let stdout = String::from_utf8_lossy(&up.stdout);
        ensure!(up.status.success(), "the local cloud did not start: {stdout}{}", String::from_utf8_lossy(&up.stderr));
        let endpoint = std::fs::read_to_string(state.join("endpoint")).context("the local cloud names no endpoint")?;
        let name = stdout.split("local cloud: ").nth(1).and_then(|rest| rest.split(" at ").next());
        Ok(Self {
            name: name.unwrap_or("MiniStack").to_owned(),
            endpoint: endpoint.trim().to_owned(),
            capabilities: capabilities()?,
        })
    }
}

/// Returns what it can do here: clusters need programs that not every machine can build.
fn capabilities() -> anyhow::Result<Vec<Capability>> {
    use Capability::{AnyAccount, Clusters, Ed25519, EmptyAccounts, HttpApi, IamEnforced, Registry, Tables};
    let mut all = vec![HttpApi, Registry, IamEnforced, AnyAccount, Ed25519, EmptyAccounts, Tables];
    if kubernetes_programs()?.join("kube-apiserver").is_file() {
        all.push(Clusters);
    }
    Ok(all)
}

impl Emulator for MiniStack {
    fn name(&self) -> String {
        self.name.clone()
    }

    fn endpoint(&self) -> &str {
        &self.endpoint
    }

    fn capabilities(&self) -> &[Capability] {
        &self.capabilities
    }
}
