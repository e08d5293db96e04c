//! A tenant on a cloud, its build runner, and the installs of its customers.

use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicU32, Ordering};

use anyhow::{Context as _, ensure};
use aws_credential_types::Credentials;
use aws_types::SdkConfig;
use freehold_skips::{lacking, skip_as};
use serde_json::Value;

use super::chosen_cloud;
use super::clients::{self, REGION};
use super::cloud::{Capability, Cloud, Started};
use super::command::{CommandOutput, environment, run};
use super::programs::Programs;
use super::runner::{How, Runner};
use super::wait::{SOON, until};

/// The exit code of a command that the current state does not allow.
const CONFLICT: i32 = 4;

/// What a test needs to run.
#[derive(Debug, Clone, Copy, Default)]
pub struct Needs {
    pub cloud: &'static [Capability],
    /// Programs on `PATH`; of words with `|` between them any one is enough.
    pub programs: &'static [&'static str],
}

/// A tenant on a cloud of its own. The cloud ends when this value is dropped.
#[derive(Debug)]
pub struct World {
    cloud: Box<dyn Cloud>,
    programs: Programs,
    directory: tempfile::TempDir,
    tenant: String,
    customers: AtomicU32,
    /// Where runners reach the cloud instead of at its own endpoint. Calls may fail there.
    runner_endpoint: Option<String>,
    /// Further variables of commands and runners.
    pub(super) variables: Vec<(&'static str, String)>,
}

/// An install whose stack is launched; its runner is not started yet.
#[derive(Debug, Clone)]
pub struct Install {
    pub name: String,
    pub account: String,
    pub config: PathBuf,
    /// The output of `install create`.
    pub created: Value,
}

impl World {
    /// Starts a cloud and deploys a tenant there; prints why and returns nothing when `needs` are not met.
    ///
    /// # Errors
    /// When a program does not start.
    pub async fn start(test: &str, needs: Needs) -> anyhow::Result<Option<Self>> {
        let Some(world) = Self::without_tenant(test, needs).await? else {
            return Ok(None);
        };
        world.deploy_tenant().await?.json()?;
        Ok(Some(world))
    }

    /// Starts a cloud only.
    ///
    /// # Errors
    /// When a program does not start.
    pub async fn without_tenant(test: &str, needs: Needs) -> anyhow::Result<Option<Self>> {
        let programs = Programs::find(None)?;
        if let Some(reason) = lacking(needs.programs) {
            skip_as(test, &reason);
            return Ok(None);
        }
        let directory = tempfile::Builder::new().prefix("freehold-test-").tempdir()?;
        let cloud = match chosen_cloud::start(&directory.path().join("cloud")).await? {
            Started::Cloud(cloud) => cloud,
            Started::Skip(reason) => {
                skip_as(test, &reason);
                return Ok(None);
            }
        };
        if let Some(lacking) = needs.cloud.iter().find(|needed| !cloud.capabilities().contains(needed)) {
            skip_as(test, &format!("{} has no {lacking}", cloud.name()));
            return Ok(None);
        }
        eprintln!("{test} runs on {}", cloud.name());
        let shared = !cloud.capabilities().contains(&Capability::EmptyAccounts);
        let tenant = if shared { format!("t{:08x}", std::process::id()) } else { "acme".to_owned() };
        let (customers, runner_endpoint, variables) = (AtomicU32::new(0), None, Vec::new());
        Ok(Some(Self { cloud, programs, directory, tenant, customers, runner_endpoint, variables }))
    }

    /// Deploys a tenant on a local cloud that is started, with its files in `directory`.
    ///
    /// # Errors
    /// When the deploy fails.
    pub(super) async fn on(
        (cloud, directory): (Box<dyn Cloud>, tempfile::TempDir),
        programs: Programs,
        runner_endpoint: Option<String>,
        variables: Vec<(&'static str, String)>,
    ) -> anyhow::Result<Self> {
        let (tenant, customers) = ("acme".to_owned(), AtomicU32::new(0));
        let world = Self { cloud, programs, directory, tenant, customers, runner_endpoint, variables };
        world.deploy_tenant().await?.json()?;
        Ok(world)
    }

    /// Runs `freehold tenant deploy`. Fails when the command cannot be run.
    pub async fn deploy_tenant(&self) -> anyhow::Result<CommandOutput> {
        self.deploy_tenant_with(&[]).await
    }

    /// Deploys the tenant with further options.
    pub async fn deploy_tenant_with(&self, options: &[&str]) -> anyhow::Result<CommandOutput> {
        let functions = self.programs.functions.display().to_string();
        let principal = format!("arn:aws:iam::{}:root", self.tenant_account());
        let words = ["tenant", "deploy", "--functions", &functions, "--build-runner-principal", &principal, "--json"];
        self.command(self.tenant_account(), &[&words[..], options].concat()).await
    }

    pub fn tenant(&self) -> &str {
        &self.tenant
    }

    pub fn tenant_account(&self) -> &str {
        self.cloud.tenant_account()
    }

    /// Returns the account of a new customer.
    ///
    /// # Errors
    /// When the cloud has no more accounts.
    pub fn new_customer(&self) -> anyhow::Result<String> {
        self.cloud.customer_account(self.customers.fetch_add(1, Ordering::Relaxed))
    }

    /// Returns the endpoint of the cloud; nothing for AWS itself.
    pub fn endpoint(&self) -> Option<&str> {
        self.cloud.endpoint()
    }

    /// Returns the directory of this world; it is removed with it.
    pub fn directory(&self) -> &Path {
        self.directory.path()
    }

    /// Keeps the directory with all logs, and returns it.
    pub fn keep(&mut self) -> PathBuf {
        self.directory.disable_cleanup(true);
        self.directory.path().to_owned()
    }

    fn file(&self, name: &str) -> PathBuf {
        self.directory.path().join(name)
    }

    // Credentials

    /// Returns credentials with all rights in `account`.
    ///
    /// # Errors
    /// When the account is not of this cloud.
    pub fn administrator_keys(&self, account: &str) -> anyhow::Result<Credentials> {
        self.cloud.administrator(account)
    }

    /// Returns the settings of clients with all rights in `account`.
    ///
    /// # Errors
    /// When the account is not of this cloud.
    pub fn administrator(&self, account: &str) -> anyhow::Result<SdkConfig> {
        clients::config(self.endpoint(), self.cloud.administrator(account)?)
    }

    /// Returns the settings of clients with `credentials`.
    ///
    /// # Errors
    /// As [`clients::config`].
    pub fn acting_as(&self, credentials: Credentials) -> anyhow::Result<SdkConfig> {
        clients::config(self.endpoint(), credentials)
    }

    /// Returns the credentials of the role `name` of `account`, taken by the account's administrator.
    ///
    /// # Errors
    /// When the role may not be assumed.
    pub async fn role(&self, account: &str, name: &str) -> anyhow::Result<Credentials> {
        let role = format!("arn:aws:iam::{account}:role/{name}");
        clients::assume(&self.administrator(account)?, &role).await
    }

    /// Returns the credentials of a role of the tenant that only Lambda takes: its trust is opened, its permissions stay.
    ///
    /// # Errors
    /// When the role may not be changed or assumed.
    pub async fn service_role(&self, name: &str) -> anyhow::Result<Credentials> {
        let account = self.tenant_account();
        let trust = format!(
            r#"{{"Version": "2012-10-17", "Statement": [{{"Effect": "Allow", "Action": "sts:AssumeRole",
            "Principal": {{"Service": "lambda.amazonaws.com", "AWS": "arn:aws:iam::{account}:root"}}}}]}}"#
        );
        let iam = aws_sdk_iam::Client::new(&self.administrator(account)?);
        iam.update_assume_role_policy().role_name(name).policy_document(trust).send().await.context("the trust")?;
        self.role(account, name).await
    }

    // Commands

    /// Runs `freehold` as the administrator of `account`.
    ///
    /// # Errors
    /// When it cannot be run.
    pub async fn command(&self, account: &str, arguments: &[&str]) -> anyhow::Result<CommandOutput> {
        let mut variables = environment(self.endpoint(), &self.cloud.administrator(account)?);
        variables.push(("FREEHOLD_TENANT", self.tenant.clone()));
        variables.extend(self.variables.clone());
        run(&self.programs.freehold, self.directory(), &variables, arguments).await
    }

    /// Runs `freehold` without credentials, as somebody outside of AWS. Fails when it cannot be run.
    pub async fn outside(&self, arguments: &[&str]) -> anyhow::Result<CommandOutput> {
        run(&self.programs.freehold, self.directory(), &[], arguments).await
    }

    /// Runs `freehold` as the vendor, as a person would.
    ///
    /// # Errors
    /// When it cannot be run.
    pub async fn run(&self, arguments: &[&str]) -> anyhow::Result<CommandOutput> {
        self.command(self.tenant_account(), arguments).await
    }

    /// Runs `freehold --json` as the vendor; returns the JSON that it printed.
    ///
    /// # Errors
    /// The output of a command that failed.
    pub async fn vendor(&self, arguments: &[&str]) -> anyhow::Result<Value> {
        let words: Vec<&str> = arguments.iter().copied().chain(["--json"]).collect();
        self.run(&words).await?.json()
    }

    /// Runs `freehold` as the vendor and retries while it reports a conflict, which ends when `what` is true. Behind
    /// proxies it retries any failure, since the failure may be injected.
    async fn retry(&self, what: &str, arguments: &[&str]) -> anyhow::Result<CommandOutput> {
        let may_pass = |code: i32| code == CONFLICT || (code != 0 && self.runner_endpoint.is_some());
        let look = || async {
            let output = self.run(arguments).await?;
            Ok((!may_pass(output.code)).then_some(output))
        };
        let output = until(what, SOON, look).await?;
        output.ended_with(0)?;
        Ok(output)
    }

    /// Returns the address of the tenant API.
    ///
    /// # Errors
    /// When the tenant is not deployed.
    pub async fn api_url(&self) -> anyhow::Result<String> {
        let client = aws_sdk_cloudformation::Client::new(&self.administrator(self.tenant_account())?);
        let stacks = client.describe_stacks().stack_name(format!("freehold-{}", self.tenant)).send().await?;
        let outputs = stacks.stacks().first().context("the tenant has no stack")?.outputs();
        let found = outputs.iter().find(|output| output.output_key() == Some("ApiUrl"));
        Ok(found.and_then(|output| output.output_value()).context("the tenant's stack has no ApiUrl")?.to_owned())
    }

    // Steps of a vendor and a customer

    /// Starts the tenant's build runner.
    ///
    /// # Errors
    /// What failed.
    pub async fn build_runner(&self) -> anyhow::Result<Runner> {
        let config = self.file("build.toml");
        let (out, state) = (config.display().to_string(), self.file("build-state").display().to_string());
        self.vendor(&["tenant", "build-runner", "--out", &out, "--force", "--state-dir", &state]).await?;
        let role = format!("fh-{}--build-runner", self.tenant);
        self.start_runner("build", self.tenant_account(), &role, &config).await
    }

    /// Syncs the app in `directory` and builds it with a build runner that ends afterwards; returns the builds.
    ///
    /// # Errors
    /// What failed.
    pub async fn ship(&self, directory: &Path) -> anyhow::Result<Value> {
        let app = directory.file_name().and_then(|name| name.to_str()).context("the app's directory has no name")?;
        let _builder = self.build_runner().await?;
        self.sync_and_build(directory, app).await
    }

    /// Syncs the app in `directory`, called `app`, and builds it with the running build runner.
    ///
    /// # Errors
    /// What failed.
    pub async fn sync_and_build(&self, directory: &Path, app: &str) -> anyhow::Result<Value> {
        self.vendor(&["app", "sync", &directory.display().to_string()]).await?;
        self.retry("the build runner is known", &["build", app, "--json"]).await?.json()
    }

    /// Creates an install of `app` for a new customer, who launches its stack.
    ///
    /// # Errors
    /// What failed.
    pub async fn install(&self, name: &str, app: &str) -> anyhow::Result<Install> {
        self.launch_new(name, app, &[], &[]).await
    }

    /// Creates an install of `app` with the vendor's `inputs` (`name=value`) for a new customer, who launches its stack.
    ///
    /// # Errors
    /// What failed.
    pub async fn install_with_inputs(&self, name: &str, app: &str, inputs: &[&str]) -> anyhow::Result<Install> {
        self.launch_new(name, app, inputs, &[]).await
    }

    /// Creates an install of `app` for a new customer, who launches its stack with `answers` (`Parameter=value`).
    ///
    /// # Errors
    /// What failed.
    pub async fn install_answering(&self, name: &str, app: &str, answers: &[&str]) -> anyhow::Result<Install> {
        self.launch_new(name, app, &[], answers).await
    }

    async fn launch_new(&self, name: &str, app: &str, inputs: &[&str], answers: &[&str]) -> anyhow::Result<Install> {
        let account = self.new_customer()?;
        let file = |suffix: &str| self.file(&format!("{name}{suffix}")).display().to_string();
        let (template, config, state) = (file(".yaml"), file(".toml"), file("-state"));
        let create = ["install", "create", name, "--app", app, "--account", &account, "--region", REGION];
        let inputs: Vec<&str> = inputs.iter().flat_map(|input| ["--input", input]).collect();
        let created = self.vendor(&[&create[..], &inputs].concat()).await?;
        self.retry("the install's queue is made", &["install", "stack", name, "-o", &template]).await?;
        let principal = format!("RunnerPrincipal=arn:aws:iam::{account}:root");
        let launch = ["install", "launch", name, "--template", &template];
        let answers: Vec<&str> = answers.iter().flat_map(|answer| ["--parameter", answer]).collect();
        let launch = [&launch[..], &["--parameter", &principal, "--json"], &answers].concat();
        self.command(&account, &launch).await?.json()?;
        let install = Install { name: name.to_owned(), account, config: config.into(), created };
        self.configure(&install, &state).await?;
        Ok(install)
    }

    /// Launches the vendor's current template as the customer of an install, who accepts its contract; returns the
    /// output.
    ///
    /// # Errors
    /// What failed.
    pub async fn launch_again(&self, install: &Install) -> anyhow::Result<String> {
        let name = install.name.as_str();
        let file = |suffix: &str| self.file(&format!("{name}{suffix}")).display().to_string();
        let (template, state) = (file(".yaml"), file("-state"));
        self.run(&["install", "stack", name, "-o", &template, "--force"]).await?.ended_with(0)?;
        let launch = ["install", "launch", name, "--template", &template, "--accept-contract"];
        let output = self.command(&install.account, &launch).await?.ended_with(0)?;
        self.configure(install, &state).await?;
        Ok(output)
    }

    /// Consents, as the customer of an install, to the contract of its latest version; returns once the tenant knows.
    ///
    /// # Errors
    /// What failed.
    pub async fn agree(&self, install: &Install, runner: &mut Runner) -> anyhow::Result<String> {
        runner.kill().await?;
        let output = self.launch_again(install).await?;
        runner.start_again()?;
        let look = || async {
            let diff = self.run(&["contract", "diff", &install.name]).await?;
            Ok((diff.code == 0).then_some(()))
        };
        until("the tenant knows of the new consent", SOON, look).await?;
        Ok(output)
    }

    async fn configure(&self, install: &Install, state: &str) -> anyhow::Result<()> {
        let config = install.config.display().to_string();
        let configure =
            ["install", "runner-config", &install.name, "--out", &config, "--force", "--state-dir", state, "--json"];
        self.command(&install.account, &configure).await?.json().map(drop)
    }

    /// Starts the runner of an install.
    ///
    /// # Errors
    /// What failed.
    pub async fn runner(&self, install: &Install) -> anyhow::Result<Runner> {
        let role = format!("fh-{}--{}--runner", self.tenant, install.name);
        self.start_runner(&install.name, &install.account, &role, &install.config).await
    }

    /// Starts another runner for an install, on an empty disk, as on a second machine; `machine` names the disk.
    ///
    /// # Errors
    /// What failed.
    pub async fn runner_on_machine(&self, install: &Install, machine: &str) -> anyhow::Result<Runner> {
        let (disk, other) = (format!("{}-state\"", install.name), format!("{}-state-{machine}\"", install.name));
        let text = std::fs::read_to_string(&install.config)?;
        ensure!(text.contains(&disk), "the config has no such state directory: {text}");
        let config = self.file(&format!("{}-{machine}.toml", install.name));
        std::fs::write(&config, text.replace(&disk, &other))?;
        let role = format!("fh-{}--{}--runner", self.tenant, install.name);
        self.start_runner(&install.name, &install.account, &role, &config).await
    }

    /// Starts the runner of an install as a machine of its stack does: configured by the stack.
    ///
    /// # Errors
    /// What failed.
    pub async fn runner_of_stack(&self, install: &Install) -> anyhow::Result<Runner> {
        let (name, account) = (&install.name, &install.account);
        let credentials = self.role(account, &format!("fh-{}--{name}--runner", self.tenant)).await?;
        let state = self.file(&format!("{name}-machine"));
        let how = self.how(name, &state, &credentials);
        Runner::start(How { stack: Some(format!("freehold-{}--{name}", self.tenant)), ..how })
    }

    /// Changes parameters of a launched install stack, as the customer.
    ///
    /// # Errors
    /// What failed.
    pub async fn change_stack(&self, install: &Install, parameters: &[&str]) -> anyhow::Result<Value> {
        let template = self.file(&format!("{}.yaml", install.name)).display().to_string();
        let launch = ["install", "launch", &install.name, "--template", &template, "--json"];
        let parameters: Vec<&str> = parameters.iter().flat_map(|one| ["--parameter", one]).collect();
        self.command(&install.account, &[&launch[..], &parameters].concat()).await?.json()
    }

    async fn start_runner(&self, name: &str, account: &str, role: &str, config: &Path) -> anyhow::Result<Runner> {
        let credentials = self.role(account, role).await?;
        Runner::start(self.how(name, config, &credentials))
    }

    fn how(&self, name: &str, config: &Path, credentials: &Credentials) -> How {
        let own = environment(self.runner_endpoint.as_deref().or(self.endpoint()), credentials);
        How {
            program: if name == "build" { self.programs.builder.clone() } else { self.programs.runner.clone() },
            config: config.to_owned(),
            stack: None,
            log: self.file(&format!("{name}-runner.log")),
            environment: [own, self.variables.clone()].concat(),
        }
    }

    /// Waits until the provisioning of `install` has succeeded; returns its workflow.
    ///
    /// # Errors
    /// When the provisioning failed.
    pub async fn provisioned(&self, install: &Install) -> anyhow::Result<Value> {
        let workflow = install.created["workflow"].as_str().context("an install without a workflow")?;
        self.vendor(&["workflow", "watch", workflow]).await
    }

    /// Returns the newest workflow of an install, with its nodes.
    ///
    /// # Errors
    /// When it has none.
    pub async fn newest_workflow(&self, install: &str) -> anyhow::Result<Value> {
        let all = self.vendor(&["workflow", "list", install]).await?;
        let newest = all[0]["workflow"].as_str().context("the install has no workflow")?.to_owned();
        self.vendor(&["workflow", "show", &newest]).await
    }

    /// Returns the log of a job as soon as `is_whole` holds, and otherwise as it is after [`SOON`]: parts of it may
    /// arrive after the report of the job's end.
    ///
    /// # Errors
    /// When it cannot be read.
    pub async fn log(&self, job: &str, is_whole: impl Fn(&str) -> bool) -> anyhow::Result<String> {
        let read = || async { self.run(&["job", "logs", job]).await?.ended_with(0) };
        let look = || async { Ok(Some(read().await?).filter(|log| is_whole(log))) };
        match until("the log is whole", SOON, look).await {
            Ok(log) => Ok(log),
            // The caller shows what it has.
            Err(_) => read().await,
        }
    }

    /// Returns the rows of one partition of the tenant's table: sort key and body.
    ///
    /// # Errors
    /// When the table cannot be read.
    pub async fn rows(&self, partition: &str, prefix: &str) -> anyhow::Result<Vec<(String, Value)>> {
        clients::rows(&self.administrator(self.tenant_account())?, &self.tenant, partition, prefix).await
    }
}

impl Drop for World {
    fn drop(&mut self) {
        if std::thread::panicking() || std::env::var_os("FREEHOLD_KEEP").is_some() {
            self.directory.disable_cleanup(true);
            eprintln!("logs: {}", self.directory.path().display());
        }
    }
}
