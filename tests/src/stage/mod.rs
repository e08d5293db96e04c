//! A whole world on this machine: the local cloud, a tenant made by the real command from real function binaries, and
//! runners. Functions and runners each reach the cloud through a proxy of their own.

mod runner;

use std::path::{Path, PathBuf};
use std::process::Stdio;
use std::time::Duration;

use anyhow::{Context as _, bail};
use aws_credential_types::Credentials;
use aws_credential_types::provider::SharedCredentialsProvider;
use aws_types::SdkConfig;
use aws_types::region::Region;
use aws_types::sdk_config::SharedHttpClient;
use serde_json::Value;
use tokio::process::Command;
use tokio::time::Instant;

use crate::proxy::Proxy;
use crate::workspace::workspace_root;

pub use runner::Runner;

pub const REGION: &str = "eu-west-1";
pub const TENANT: &str = "acme";
pub const TENANT_ACCOUNT: &str = "111111111111";
pub const CUSTOMER_ACCOUNT: &str = "222222222222";

/// The longest to wait for what happens behind an answer, and the pause between two looks.
const SETTLE_LIMIT: Duration = Duration::from_secs(60);
const LOOK: Duration = Duration::from_millis(200);
/// The longest that one command may take.
const COMMAND_LIMIT: Duration = Duration::from_secs(600);

/// A running local cloud with a tenant. It ends with the process that made it, however that ends.
#[derive(Debug)]
pub struct Stage {
    /// Holds the cloud's state, the runners' and the logs; kept when [`Stage::keep`] is called.
    directory: tempfile::TempDir,
    /// The cloud itself.
    pub endpoint: String,
    /// Between the functions and the cloud.
    pub functions: Proxy,
    /// Between the runners and the cloud.
    pub runners: Proxy,
    root: PathBuf,
    zips: PathBuf,
}

impl Stage {
    /// Starts a local cloud and makes the tenant in it, of the zips in the folder `zips`.
    ///
    /// # Errors
    /// What could not be started, with its output.
    pub async fn start(seed: u64, zips: &Path) -> anyhow::Result<Self> {
        let root = workspace_root()?;
        let directory = tempfile::Builder::new().prefix("freehold-stage-").tempdir()?;
        let port = free_port()?;
        let endpoint = format!("http://127.0.0.1:{port}");
        let functions = Proxy::start("127.0.0.1:0", &endpoint, seed, Vec::new()).await?;
        let runners = Proxy::start("127.0.0.1:0", &endpoint, seed, Vec::new()).await?;
        let state = directory.path().join("cloud");
        let up = Command::new(root.join("localstack/cloud"))
            .args(["up", "--detach", "--port", &port.to_string(), "--until-pid", &std::process::id().to_string()])
            .args(["--function-endpoint", &functions.url(), "--state"])
            .arg(&state)
            .output()
            .await?;
        if !up.status.success() {
            bail!("the local cloud did not start: {}", String::from_utf8_lossy(&up.stderr));
        }
        let stage = Self { directory, endpoint, functions, runners, root, zips: std::path::absolute(zips)? };
        stage.make_tenant().await?;
        Ok(stage)
    }

    async fn make_tenant(&self) -> anyhow::Result<()> {
        let zips = self.zips.display().to_string();
        let principal = format!("arn:aws:iam::{TENANT_ACCOUNT}:root");
        let arguments =
            ["tenant", "deploy", "--name", TENANT, "--functions", &zips, "--build-runner-principal", &principal];
        self.vendor(&arguments).await.map(drop)
    }

    /// Returns a file or directory of this stage.
    pub fn path(&self, name: &str) -> PathBuf {
        self.directory.path().join(name)
    }

    /// Leaves the directory with all logs behind; returns where it is.
    pub fn keep(&mut self) -> PathBuf {
        self.directory.disable_cleanup(true);
        self.directory.path().to_owned()
    }

    /// Runs `freehold --json` as the vendor; returns the JSON that it printed.
    ///
    /// # Errors
    /// What the command printed, when it failed.
    pub async fn vendor(&self, arguments: &[&str]) -> anyhow::Result<Value> {
        self.freehold(TENANT_ACCOUNT, arguments).await
    }

    /// Runs `freehold --json` as the vendor until it succeeds.
    async fn patiently(&self, arguments: &[&str]) -> anyhow::Result<Value> {
        let deadline = Instant::now() + SETTLE_LIMIT;
        loop {
            match self.vendor(arguments).await {
                Err(_) if Instant::now() < deadline => tokio::time::sleep(LOOK).await,
                ended => return ended,
            }
        }
    }

    /// Runs `freehold --json` as the customer.
    ///
    /// # Errors
    /// As [`Stage::vendor`].
    pub async fn customer(&self, arguments: &[&str]) -> anyhow::Result<Value> {
        self.freehold(CUSTOMER_ACCOUNT, arguments).await
    }

    async fn freehold(&self, account: &str, arguments: &[&str]) -> anyhow::Result<Value> {
        let mut command = Command::new(binary(&self.root, "freehold")?);
        command.args(arguments).arg("--json").current_dir(self.directory.path());
        command.env("FREEHOLD_TENANT", TENANT).env("AWS_ACCESS_KEY_ID", account).env("AWS_SECRET_ACCESS_KEY", "local");
        command.env("AWS_ENDPOINT_URL", &self.endpoint).env("AWS_REGION", REGION).env_remove("AWS_SESSION_TOKEN");
        command.stdin(Stdio::null()).kill_on_drop(true);
        let said = tokio::time::timeout(COMMAND_LIMIT, command.output());
        let said = said.await.with_context(|| format!("`freehold {}` did not end", arguments.join(" ")))??;
        let (out, error) = (String::from_utf8_lossy(&said.stdout), String::from_utf8_lossy(&said.stderr));
        if !said.status.success() {
            bail!("`freehold {}` ended with {}: {out}{error}", arguments.join(" "), said.status);
        }
        // Some commands print one object a line; the last one is the result.
        let whole = serde_json::from_str(&out);
        let last = || out.lines().rev().find_map(|line| serde_json::from_str(line).ok());
        whole
            .ok()
            .or_else(last)
            .with_context(|| format!("`freehold {}` printed no JSON: {out}{error}", arguments.join(" ")))
    }

    /// Syncs the app config in `directory` and builds what it has no artifact for; a build runner must be running.
    ///
    /// # Errors
    /// What failed.
    pub async fn sync_and_build(&self, directory: &Path) -> anyhow::Result<()> {
        let app = directory.file_name().and_then(|name| name.to_str()).context("the app's directory has no name")?;
        self.vendor(&["app", "sync", &directory.display().to_string()]).await?;
        self.vendor(&["build", app]).await.map(drop)
    }

    /// Starts the tenant's build runner.
    ///
    /// # Errors
    /// What failed.
    pub async fn build_runner(&self) -> anyhow::Result<Runner> {
        let config = self.path("build.toml");
        let state = self.path("build-state");
        let (out, state) = (config.display().to_string(), state.display().to_string());
        self.vendor(&["tenant", "build-runner", "--name", TENANT, "--out", &out, "--state-dir", &state]).await?;
        let role = format!("arn:aws:iam::{TENANT_ACCOUNT}:role/fh-{TENANT}-build-runner");
        Runner::start(self, "build", TENANT_ACCOUNT, &role, &config).await
    }

    /// Creates the install `name` of `app`, launches its stack in the customer's account and starts its runner. Its
    /// provisioning then runs; [`Stage::settled`] waits for it.
    ///
    /// # Errors
    /// What failed.
    pub async fn install(&self, name: &str, app: &str, inputs: &[&str]) -> anyhow::Result<Runner> {
        let file = |suffix: &str| self.path(&format!("{name}{suffix}")).display().to_string();
        let (secret, template, config, state) = (file(".enrolment"), file(".yaml"), file(".toml"), file("-state"));
        let mut create = vec!["install", "create", name, "--app", app, "--account", CUSTOMER_ACCOUNT];
        create.extend(["--region", REGION, "--secret-file", &secret]);
        create.extend(inputs.iter().flat_map(|input| ["--input", input]));
        self.vendor(&create).await?;
        // A conflict until the install's queue is made.
        self.patiently(&["install", "stack", name, "-o", &template]).await?;
        let principal = format!("RunnerPrincipal=arn:aws:iam::{CUSTOMER_ACCOUNT}:root");
        let launch =
            ["install", "launch", name, "--template", &template, "--secret-file", &secret, "--parameter", &principal];
        self.customer(&launch).await?;
        self.customer(&["install", "runner-config", name, "--out", &config, "--state-dir", &state]).await?;
        let role = format!("arn:aws:iam::{CUSTOMER_ACCOUNT}:role/fh-{name}-runner");
        Runner::start(self, name, CUSTOMER_ACCOUNT, &role, Path::new(&config)).await
    }

    /// Waits until the newest workflow of `install` has ended; returns it as the API shows it.
    ///
    /// # Errors
    /// When it failed, or takes longer than a command may.
    pub async fn settled(&self, install: &str) -> anyhow::Result<Value> {
        let all = self.vendor(&["workflow", "list", install]).await?;
        let items = all.as_array().or(all["items"].as_array()).cloned().unwrap_or_default();
        let newest = items.iter().max_by_key(|workflow| workflow["created_at"].as_u64());
        let id = newest.and_then(|workflow| workflow["workflow"].as_str()).context("the install has no workflow")?;
        self.vendor(&["workflow", "watch", id]).await
    }

    /// Returns the settings of SDK clients that ask the cloud directly as the root of `account`.
    pub fn sdk(&self, account: &str) -> SdkConfig {
        sdk_config(&self.endpoint, Credentials::new(account, "local", None, None, "stage"))
    }
}

/// Returns the settings of SDK clients for `endpoint`.
pub fn sdk_config(endpoint: &str, credentials: Credentials) -> SdkConfig {
    let http: SharedHttpClient = aws_smithy_http_client::Builder::new().build_http();
    SdkConfig::builder()
        .behavior_version(aws_config::BehaviorVersion::latest())
        .region(Region::new(REGION))
        .endpoint_url(endpoint)
        .credentials_provider(SharedCredentialsProvider::new(credentials))
        .http_client(http)
        .build()
}

/// Returns the dev binary `name`, or that of the folder which `FREEHOLD_BIN` names.
///
/// # Errors
/// When it is not built.
pub fn binary(root: &Path, name: &str) -> anyhow::Result<PathBuf> {
    let target = std::env::var_os("CARGO_TARGET_DIR").map_or_else(|| root.join("target"), PathBuf::from);
    let folder = std::env::var_os("FREEHOLD_BIN").map_or_else(|| target.join("debug"), PathBuf::from);
    let path = folder.join(name);
    if !path.is_file() {
        bail!("`{}` is not built; run `cargo build --workspace --bins` first", path.display());
    }
    Ok(path)
}

fn free_port() -> anyhow::Result<u16> {
    let probe = std::net::TcpListener::bind("127.0.0.1:0")?;
    Ok(probe.local_addr()?.port())
}
