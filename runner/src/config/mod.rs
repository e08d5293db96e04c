//! Reads and checks the runner's config file, once at the start. Every error names the key and how to fix it.

pub mod audit_lock;
pub mod limits;
mod mistake;
mod modes;
pub mod policies;
mod role;
pub mod stack;

use std::collections::BTreeMap;
use std::fmt;
use std::net::IpAddr;
use std::path::{Path, PathBuf};
use std::time::Duration;

use freehold_protocol::envelope::PublicKey;
use freehold_protocol::limits::{MAX_ANSWERS, MAX_ANSWERS_BYTES};
use freehold_protocol::{Digest, InstallId, RoleKey, TenantName, names};
use serde::Deserialize;

use audit_lock::AuditLock;
use limits::Limits;
pub use modes::Modes;
use policies::Policies;
pub use role::Role;

/// The settings of a runner.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Config {
    pub role: Role,
    pub tenant: TenantName,
    /// The id of the install. For the build runner it is `build`.
    pub install: InstallId,
    pub region: String,
    pub orders_queue_url: String,
    pub reports_queue_url: String,
    /// The tenant's root public key. The signer of every order must have a certificate from this key.
    pub tenant_key: PublicKey,
    /// The only key that may replace the root key. With `None`, the root key may name any successor.
    pub tenant_second_key: Option<PublicKey>,
    /// The key that signs the releases from which an order may replace the runner's program. With `None`, no order may
    /// replace it.
    pub release_key: Option<PublicKey>,
    /// The directory of the runner's key, journal, spool and workspaces.
    pub state_dir: PathBuf,
    /// The number of jobs that may run at the same time.
    pub slots: u32,
    /// The name of the ECR repository in the runner's own account to which the runner pushes artifacts.
    pub repository: String,
    /// The name of the bucket for Terraform state, plans, logs and audit records.
    pub bucket: Option<String>,
    /// The name of the install stack. The customer switches roles on and off by its parameters. A build runner ignores
    /// this key.
    pub stack: String,
    pub modes: Modes,
    /// The ARN of each role that the app config defines beside the roles of the modes, by the key of the role.
    pub roles: BTreeMap<RoleKey, String>,
    /// The ARN of the permissions boundary of the install's roles. `None` selects the policy that the install stack
    /// creates.
    pub boundary: Option<String>,
    /// The customer's answers to the app's inputs, without the sensitive ones, by parameter of the install stack. The
    /// runner reports them in its hello.
    pub inputs: BTreeMap<String, String>,
    /// The ids of the install stack's VPC and subnets, by their key below `.nuon.install_stack.outputs` in templates.
    pub outputs: BTreeMap<String, String>,
    /// The names of the app's secrets that are stored in this account.
    pub app_secrets: Vec<String>,
    /// The digest of the contract that the customer accepted. With `None`, the runner accepts orders of every release.
    pub accepted_contract: Option<Digest>,
    /// The path of the program `terraform` or `tofu`. `None` selects the first of these two programs on `PATH`.
    pub terraform: Option<PathBuf>,
    /// The digests of programs that the runner starts, by the name of their file, such as `helm`. A program with
    /// another digest does not run.
    pub programs: BTreeMap<String, Digest>,
    /// The URL of a server from which the build runner fetches Terraform's providers instead of their registries. The
    /// server speaks the provider network mirror protocol, and the URL ends with a slash.
    pub provider_mirror: Option<String>,
    /// The hosts that may resolve to addresses of a private network, such as `git.corp.example` or
    /// `db.corp.example:5432`, in addition to the hosts that the accepted contract marks in this way. This list alone
    /// does not permit a connection to a host.
    pub inside_hosts: Vec<String>,
    /// The Auto Scaling group of the build runner's machine, if that machine exists only while there is work.
    pub scaling_group: Option<ScalingGroup>,
    pub sandbox: SandboxKind,
    /// The images that pods of the app may run.
    pub cluster_images: ClusterImages,
    /// The lock of each audit record in S3; `None` if audit records are not locked.
    pub audit_lock: Option<AuditLock>,
    /// The customer's settings of policies.
    pub policies: Policies,
    /// The limits for one job's use of the machine.
    pub limits: Limits,
    /// The time limit for running jobs to end after the runner was asked to stop, in seconds.
    pub drain_secs: u64,
}

/// An Auto Scaling group that has a machine for the build runner while there is work.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ScalingGroup {
    pub name: String,
    /// How long the build runner waits for work before its machine ends.
    pub idle: Duration,
}

/// The isolation of a job from the machine.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum SandboxKind {
    /// Each program of a job runs in a box that `bwrap` makes.
    #[default]
    Bubblewrap,
    /// A job has only a process group and a directory of its own, without isolation.
    None,
}

/// The images that the app's pods may run in a cluster.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum ClusterImages {
    /// Every image; the log of a job names those that are not in the install registry.
    #[default]
    Any,
    /// Digests of the install registry only.
    InstallRegistry,
}

/// The reason why a config file cannot be used.
#[derive(Debug, thiserror::Error)]
pub enum ConfigError {
    /// The runner cannot read the file.
    #[error(
        "cannot read the config file `{file}`; with `--config`, give the file that `freehold install runner-config` or \
         `freehold tenant build-runner` wrote, and let this user read it"
    )]
    Unreadable { file: String, source: std::io::Error },
    /// The file is not TOML, or one of its keys is unknown, missing or of the wrong type.
    #[error("config file `{file}` cannot be used: {detail}{way_out}")]
    Malformed { file: String, detail: String, way_out: String },
    /// The value of a key is not valid.
    #[error("config file `{file}`, key `{key}`: {problem}")]
    Value { file: String, key: &'static str, problem: String },
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Raw {
    tenant: String,
    install: String,
    region: String,
    orders_queue_url: String,
    reports_queue_url: String,
    tenant_key: String,
    #[serde(default)]
    tenant_second_key: String,
    #[serde(default)]
    release_key: String,
    state_dir: String,
    #[serde(default = "default_slots")]
    slots: u32,
    #[serde(default)]
    repository: String,
    #[serde(default)]
    bucket: String,
    #[serde(default)]
    stack: String,
    #[serde(default)]
    modes: Modes,
    #[serde(default)]
    roles: BTreeMap<RoleKey, String>,
    #[serde(default)]
    boundary: String,
    #[serde(default)]
    inputs: BTreeMap<String, String>,
    #[serde(default)]
    outputs: BTreeMap<String, String>,
    #[serde(default)]
    app_secrets: Vec<String>,
    #[serde(default)]
    accepted_contract: String,
    #[serde(default)]
    terraform: String,
    #[serde(default)]
    programs: BTreeMap<String, String>,
    #[serde(default)]
    provider_mirror: String,
    #[serde(default)]
    inside_hosts: Vec<String>,
    #[serde(default)]
    scaling_group: String,
    #[serde(default = "default_idle_secs")]
    idle_secs: u64,
    #[serde(default)]
    sandbox: SandboxKind,
    #[serde(default)]
    cluster_images: ClusterImages,
    #[serde(default)]
    audit_lock: String,
    #[serde(default)]
    policies: Policies,
    #[serde(default)]
    limits: Limits,
    #[serde(default = "default_drain_secs")]
    drain_secs: u64,
}

fn default_slots() -> u32 {
    4
}

fn default_idle_secs() -> u64 {
    600
}

fn default_drain_secs() -> u64 {
    600
}

impl Config {
    /// Reads the file at `path` for a runner of `role`.
    ///
    /// # Errors
    /// A [`ConfigError`] that names the file, the key and how to fix it.
    pub fn load(path: &Path, role: Role) -> Result<Self, ConfigError> {
        let file = path.display().to_string();
        match std::fs::read_to_string(path) {
            Ok(text) => Self::parse(&text, &file, role),
            Err(source) => Err(ConfigError::Unreadable { file, source }),
        }
    }

    /// Parses the text of a config file. Errors call the file `file`.
    ///
    /// # Errors
    /// The same errors as [`Config::load`], except [`ConfigError::Unreadable`].
    pub fn parse(text: &str, file: &str, role: Role) -> Result<Self, ConfigError> {
        let raw: Raw = toml_edit::de::from_str(text).map_err(|error| {
            let (detail, way_out) = mistake::explain(text, file, role, &error);
            ConfigError::Malformed { file: file.to_owned(), detail, way_out }
        })?;
        let reader = Reader { file, role };
        let install = reader.install(&raw.install, role)?;
        let tenant = reader.parsed("tenant", &raw.tenant)?;
        Ok(Self {
            role,
            stack: if raw.stack.is_empty() { names::install_stack(&tenant, &install) } else { raw.stack },
            tenant,
            install,
            region: reader.filled("region", raw.region, "write the AWS region of the install, such as `eu-west-1`")?,
            orders_queue_url: reader.queue("orders_queue_url", raw.orders_queue_url)?,
            reports_queue_url: reader.queue("reports_queue_url", raw.reports_queue_url)?,
            tenant_key: reader.parsed("tenant_key", &raw.tenant_key)?,
            tenant_second_key: reader.optional("tenant_second_key", &raw.tenant_second_key)?,
            release_key: reader.optional("release_key", &raw.release_key)?,
            limits: reader.limits(raw.limits, Path::new(&raw.state_dir), raw.slots)?,
            state_dir: reader.state_dir(raw.state_dir)?,
            slots: reader.slots(raw.slots)?,
            repository: raw.repository,
            bucket: Some(raw.bucket).filter(|bucket| !bucket.is_empty()),
            modes: raw.modes,
            roles: raw.roles,
            boundary: Some(raw.boundary).filter(|arn| !arn.is_empty()),
            inputs: reader.inputs(raw.inputs)?,
            outputs: raw.outputs,
            app_secrets: raw.app_secrets,
            accepted_contract: reader.accepted_contract(&raw.accepted_contract)?,
            terraform: Some(raw.terraform).filter(|path| !path.is_empty()).map(PathBuf::from),
            programs: reader.programs(raw.programs)?,
            provider_mirror: reader.provider_mirror(raw.provider_mirror, role)?,
            inside_hosts: reader.inside_hosts(raw.inside_hosts)?,
            scaling_group: reader.scaling_group(raw.scaling_group, raw.idle_secs, role)?,
            sandbox: raw.sandbox,
            cluster_images: raw.cluster_images,
            audit_lock: reader.optional("audit_lock", &raw.audit_lock)?,
            policies: raw.policies,
            drain_secs: raw.drain_secs,
        })
    }

    /// Returns the time limit for running jobs to end after the runner was asked to stop.
    pub const fn drain_period(&self) -> Duration {
        Duration::from_secs(self.drain_secs)
    }

    /// Returns the name of the IAM role under which this runner must run.
    pub fn needed_role(&self) -> String {
        match self.role {
            Role::Install => names::install_part(&self.tenant, &self.install, "runner"),
            Role::Build => names::tenant_part(&self.tenant, "build-runner"),
        }
    }

    /// Returns the region of the queues. The queues belong to the tenant, so this region may differ from the install's
    /// region.
    pub fn queue_region(&self) -> &str {
        let host = self.orders_queue_url.split('/').nth(2).unwrap_or_default();
        let mut labels = host.split('.');
        match (labels.next(), labels.next(), labels.next()) {
            (Some("sqs"), Some(region), Some("amazonaws")) => region,
            _ => &self.region,
        }
    }
}

struct Reader<'a> {
    file: &'a str,
    role: Role,
}

impl Reader<'_> {
    fn wrong(&self, key: &'static str, problem: impl fmt::Display) -> ConfigError {
        ConfigError::Value { file: self.file.to_owned(), key, problem: problem.to_string() }
    }

    fn parsed<T: std::str::FromStr<Err: fmt::Display>>(&self, key: &'static str, text: &str) -> Result<T, ConfigError> {
        text.parse().map_err(|e| self.wrong(key, format!("{e}; {}", self.source())))
    }

    /// Returns what to do about a value that differs from the value that Freehold wrote.
    const fn source(&self) -> &'static str {
        match self.role {
            Role::Install => "copy it from the install stack's outputs",
            Role::Build => "write the file again with `freehold tenant build-runner --force`",
        }
    }

    fn install(&self, text: &str, role: Role) -> Result<InstallId, ConfigError> {
        let install: InstallId = self.parsed("install", text)?;
        match role {
            Role::Build if install.as_str() != "build" => {
                Err(self.wrong("install", "must be `build`; with the config of an install, start `freehold-runner`"))
            }
            Role::Install if install.as_str() == "build" => {
                Err(self
                    .wrong("install", "`build` is the build runner's id; start `freehold-builder` with this config"))
            }
            Role::Build | Role::Install => Ok(install),
        }
    }

    fn filled(&self, key: &'static str, text: String, way_out: &str) -> Result<String, ConfigError> {
        if text.trim().is_empty() { Err(self.wrong(key, format!("is empty; {way_out}"))) } else { Ok(text) }
    }

    /// Checks the URL of a queue. Without TLS, anyone on the network could read orders and reports, so `http://` is
    /// accepted only for a queue on this machine.
    fn queue(&self, key: &'static str, url: String) -> Result<String, ConfigError> {
        let plain = url.strip_prefix("http://").map(|rest| rest.split('/').next().unwrap_or_default());
        match plain {
            None if url.starts_with("https://") => Ok(url),
            Some(host) if is_loopback(host) => Ok(url),
            Some(_) => Err(self.wrong(key, format!("`{url}` has no TLS; write it with `https://`"))),
            None => Err(self.wrong(key, format!("`{url}` is not a queue URL; {}", self.source()))),
        }
    }

    fn inside_hosts(&self, hosts: Vec<String>) -> Result<Vec<String>, ConfigError> {
        let wrong = hosts.iter().find_map(|host| host.parse::<freehold_egress::Rule>().err());
        wrong
            .map_or(Ok(hosts), |error| Err(self.wrong("inside_hosts", format!("{error}; write `host` or `host:port`"))))
    }

    fn provider_mirror(&self, url: String, role: Role) -> Result<Option<String>, ConfigError> {
        const KEY: &str = "provider_mirror";
        match role {
            _ if url.is_empty() => Ok(None),
            Role::Install => Err(self.wrong(
                KEY,
                "only the build runner uses it; remove it: an install's artifacts already contain the providers",
            )),
            Role::Build if url.starts_with("https://") && url.ends_with('/') => Ok(Some(url)),
            Role::Build => Err(self.wrong(KEY, format!("`{url}` must begin with `https://` and end with `/`"))),
        }
    }

    fn scaling_group(&self, name: String, idle_secs: u64, role: Role) -> Result<Option<ScalingGroup>, ConfigError> {
        const KEY: &str = "scaling_group";
        match role {
            _ if name.is_empty() => Ok(None),
            Role::Install => {
                Err(self.wrong(KEY, "only the build runner uses it; remove it: the machine of an install stays up"))
            }
            Role::Build if idle_secs == 0 => Err(self.wrong("idle_secs", "0 is out of range; write at least 1")),
            Role::Build => Ok(Some(ScalingGroup { name, idle: Duration::from_secs(idle_secs) })),
        }
    }

    fn state_dir(&self, text: String) -> Result<PathBuf, ConfigError> {
        let path = PathBuf::from(text);
        if path.is_absolute() {
            return Ok(path);
        }
        Err(self.wrong(
            "state_dir",
            format!("`{}` must be an absolute path to a directory that survives restarts", path.display()),
        ))
    }

    fn inputs(&self, inputs: BTreeMap<String, String>) -> Result<BTreeMap<String, String>, ConfigError> {
        let bytes: usize = inputs.iter().map(|(name, value)| name.len() + value.len()).sum();
        if inputs.len() <= MAX_ANSWERS && bytes <= MAX_ANSWERS_BYTES {
            return Ok(inputs);
        }
        Err(self.wrong(
            "inputs",
            format!(
                "has {} answers of {bytes} bytes, more than the {MAX_ANSWERS} answers or {MAX_ANSWERS_BYTES} bytes \
                 that can be reported; make them fewer or shorter",
                inputs.len()
            ),
        ))
    }

    fn accepted_contract(&self, text: &str) -> Result<Option<Digest>, ConfigError> {
        if text.is_empty() { Ok(None) } else { self.parsed("accepted_contract", text).map(Some) }
    }

    /// Returns a value of the install stack. The stack's text `none`, or an empty text, means that there is no value.
    fn optional<T: std::str::FromStr<Err: fmt::Display>>(
        &self,
        key: &'static str,
        text: &str,
    ) -> Result<Option<T>, ConfigError> {
        let is_given = !text.is_empty() && text.split(' ').next() != Some("none");
        is_given.then(|| self.parsed(key, text)).transpose()
    }

    fn programs(&self, texts: BTreeMap<String, String>) -> Result<BTreeMap<String, Digest>, ConfigError> {
        let digest = |text: &str| text.parse().map_err(|e| self.wrong("programs", format!("{e}; write `sha256:...`")));
        texts.into_iter().map(|(name, text)| Ok((name, digest(&text)?))).collect()
    }

    fn limits(&self, limits: Limits, state_dir: &Path, slots: u32) -> Result<Limits, ConfigError> {
        match limits.problem() {
            None => Ok(limits.within_disk(state_dir, slots)),
            Some(problem) => Err(self.wrong("limits", problem)),
        }
    }

    fn slots(&self, slots: u32) -> Result<u32, ConfigError> {
        if (1..=64).contains(&slots) {
            return Ok(slots);
        }
        Err(self.wrong("slots", format!("{slots} is out of range; a runner runs 1 to 64 jobs at once")))
    }
}

/// Returns whether the host of a URL, with or without a port, is this machine.
fn is_loopback(authority: &str) -> bool {
    let host = authority.rsplit_once(':').map_or(authority, |(host, port)| {
        if port.bytes().all(|byte| byte.is_ascii_digit()) { host } else { authority }
    });
    let address = host.trim_start_matches('[').trim_end_matches(']').parse::<IpAddr>();
    host == "localhost" || address.is_ok_and(|address| address.is_loopback())
}

#[cfg(test)]
mod tests;
