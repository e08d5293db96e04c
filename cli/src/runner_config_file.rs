//! Writes the config file of a runner from the outputs of its stack.

use std::collections::BTreeMap;
use std::fmt::Write as _;
use std::path::{Path, PathBuf};

use clap::{Args, ValueEnum};
use freehold_protocol::envelope::PublicKey;
use freehold_protocol::{Digest, InstallId, TenantName};
use toml_edit::{Array, DocumentMut, Table, value};

use crate::error::{Error, Kind, Result, ResultExt};
use crate::inputs::number;
use crate::policy::Policies;

/// The defaults of a new config: the directory for the runner's key and journal, and the maximum number of jobs that
/// run at once.
const STATE_DIR: &str = "/var/lib/freehold";
const SLOTS: u32 = 4;
/// The keys that this module takes from the stack. `--force` writes these keys again, and preserves every other key of
/// the file.
const FROM_THE_STACK: [&str; 20] = [
    "tenant",
    "install",
    "region",
    "orders_queue_url",
    "reports_queue_url",
    "tenant_key",
    "tenant_second_key",
    "repository",
    "bucket",
    "app_secrets",
    "accepted_contract",
    "boundary",
    "cluster_images",
    "audit_lock",
    "policies",
    "release_key",
    "modes",
    "roles",
    "inputs",
    "outputs",
];
/// The keys of earlier versions, which the runner refuses. `--force` removes them.
const GONE: [&str; 2] = ["enrolment_secret_arn", "enrolment_secret_file"];

/// The settings of the machine that a runner works on. A setting that is left out stays as it is in the file that
/// `--force` replaces.
#[derive(Debug, Clone, Default, Args)]
pub(crate) struct Machine {
    /// Directory for the runner's key and journal; it must survive restarts. By default, the directory that the
    /// replaced file names, or else `/var/lib/freehold`.
    #[arg(long, value_name = "DIR")]
    state_dir: Option<PathBuf>,
    /// The maximum number of jobs that run at once; 4 by default.
    #[arg(long, value_parser = number::<1, 64>, value_name = "N")]
    slots: Option<u32>,
    /// The `terraform` or `tofu` to run; by default, the first of these two that is on PATH.
    #[arg(long, value_name = "FILE")]
    terraform: Option<PathBuf>,
    /// How a job is isolated from the machine; `bubblewrap` by default.
    #[arg(long, value_enum, value_name = "KIND")]
    sandbox: Option<Sandbox>,
}

/// How a job is isolated from the machine.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
enum Sandbox {
    Bubblewrap,
    None,
}

/// The contents of a runner's config file.
#[derive(Debug, Clone)]
pub(crate) struct RunnerConfig {
    pub(crate) tenant: TenantName,
    pub(crate) install: InstallId,
    pub(crate) region: String,
    pub(crate) orders_queue_url: String,
    pub(crate) reports_queue_url: String,
    pub(crate) tenant_key: PublicKey,
    /// The only root key that may follow, or `none`. Absent for a build runner, and for a stack of an earlier release.
    pub(crate) tenant_second_key: Option<String>,
    pub(crate) repository: String,
    pub(crate) bucket: String,
    /// The role ARNs of the modes.
    pub(crate) modes: BTreeMap<String, String>,
    /// The ARNs of the roles that the app config defines, by key.
    pub(crate) roles: BTreeMap<String, String>,
    /// The ARN of the policy that no role of the install exceeds; absent for a build runner.
    pub(crate) boundary: Option<String>,
    /// Which images may reach a cluster; absent for a build runner, and for a stack of an earlier release.
    pub(crate) cluster_images: Option<String>,
    /// How audit records are locked: mode and days. Absent for a build runner, and for a stack of an earlier release.
    pub(crate) audit_lock: Option<String>,
    /// The customer's settings of policies; absent for a build runner, and for a stack of an earlier release.
    pub(crate) policies: Option<Policies>,
    /// The key whose releases may replace the runner; absent for a build runner, and when no order may replace the runner.
    pub(crate) release_key: Option<String>,
    /// The customer's values for inputs, by parameter of the install stack.
    pub(crate) inputs: BTreeMap<String, String>,
    /// The stack's outputs about its network, by key below `.nuon.install_stack.outputs`.
    pub(crate) outputs: BTreeMap<String, String>,
    /// The names of the app's secrets.
    pub(crate) app_secrets: Vec<String>,
    /// The contract that the customer agreed to; absent when the stack does not require consent.
    pub(crate) accepted_contract: Option<Digest>,
}

impl RunnerConfig {
    /// Returns the file's text. If `machine` does not set a setting, the text has the setting of `former`, the file
    /// that is replaced.
    pub(crate) fn to_toml(&self, machine: &Machine, former: &Former) -> Result<String> {
        let mut file = DocumentMut::new();
        let absolute = |path: &Path| -> Result<String> {
            let path = std::path::absolute(path).doing(format!("understand the path `{}`", path.display()))?;
            path.into_os_string().into_string().map_err(|path| {
                let path = path.to_string_lossy();
                Error::invalid(format!("path `{path}` in a runner config must be UTF-8")).or("use another path")
            })
        };
        file.insert("tenant", value(self.tenant.as_str()));
        file.insert("install", value(self.install.as_str()));
        file.insert("region", value(&self.region));
        file.insert("orders_queue_url", value(&self.orders_queue_url));
        file.insert("reports_queue_url", value(&self.reports_queue_url));
        file.insert("tenant_key", value(self.tenant_key.to_string()));
        if let Some(second) = &self.tenant_second_key {
            file.insert("tenant_second_key", value(second));
        }
        let state_dir = machine.state_dir.as_deref();
        if state_dir.is_some() || !former.has("state_dir") {
            file.insert("state_dir", value(absolute(state_dir.unwrap_or(Path::new(STATE_DIR)))?));
        }
        if machine.slots.is_some() || !former.has("slots") {
            file.insert("slots", value(i64::from(machine.slots.unwrap_or(SLOTS))));
        }
        file.insert("repository", value(&self.repository));
        file.insert("bucket", value(&self.bucket));
        if !self.app_secrets.is_empty() {
            file.insert("app_secrets", value(self.app_secrets.iter().collect::<Array>()));
        }
        if let Some(accepted) = &self.accepted_contract {
            file.insert("accepted_contract", value(accepted.as_str()));
        }
        if let Some(boundary) = &self.boundary {
            file.insert("boundary", value(boundary));
        }
        if let Some(policies) = &self.policies {
            file.insert("policies", policies.table().into());
        }
        if let Some(images) = &self.cluster_images {
            file.insert("cluster_images", value(images));
        }
        if let Some(lock) = &self.audit_lock {
            file.insert("audit_lock", value(lock));
        }
        if let Some(key) = &self.release_key {
            file.insert("release_key", value(key));
        }
        if let Some(terraform) = &machine.terraform {
            file.insert("terraform", value(absolute(terraform)?));
        }
        if machine.sandbox.is_some() || !former.has("sandbox") {
            file.insert(
                "sandbox",
                value(match machine.sandbox {
                    None | Some(Sandbox::Bubblewrap) => "bubblewrap",
                    Some(Sandbox::None) => "none",
                }),
            );
        }
        for (name, pairs) in
            [("modes", &self.modes), ("roles", &self.roles), ("inputs", &self.inputs), ("outputs", &self.outputs)]
        {
            if !pairs.is_empty() {
                let pairs = pairs.iter().map(|(key, text)| (key.as_str(), value(text)));
                file.insert(name, pairs.collect::<Table>().into());
            }
        }
        former.keep_in(&mut file);
        let program = if self.install.as_str() == "build" { "freehold-builder" } else { "freehold-runner" };
        let mut text = String::new();
        let _ = writeln!(text, "# Start the runner with: {program} run --config FILE");
        text.push_str(&file.to_string());
        Ok(text)
    }

    /// Writes the file, which contains no secret. An existing file is replaced only with `force`; the new file then has
    /// the same settings of the machine.
    pub(crate) fn write(&self, machine: &Machine, path: &Path, force: bool) -> Result<()> {
        let former = if force { Former::of(self, path)? } else { Former::default() };
        crate::file::create(path, &self.to_toml(machine, &former)?, force)
    }
}

/// The config that is replaced. It is empty when there is no file, or when the file is the config of another runner.
#[derive(Debug, Default)]
pub(crate) struct Former(DocumentMut);

impl Former {
    /// Reads the config of the same runner at `path`.
    pub(crate) fn of(config: &RunnerConfig, path: &Path) -> Result<Self> {
        let text = match std::fs::read_to_string(path) {
            Ok(text) => text,
            Err(error) if error.kind() == std::io::ErrorKind::NotFound => return Ok(Self::default()),
            Err(error) => return Err(error).doing(format!("read `{}`, which is to be replaced", path.display())),
        };
        let file: DocumentMut = text.parse().map_err(|error: toml_edit::TomlError| {
            let error = error.to_string();
            Error::quoting(Kind::Invalid, format!("`{}` is not TOML: {}", path.display(), error.trim_end()))
                .or("correct the file, from which the command copies the other settings, or remove the file")
        })?;
        let is = |key: &str, name: &str| file.get(key).and_then(toml_edit::Item::as_str) == Some(name);
        let is_same = is("tenant", config.tenant.as_str()) && is("install", config.install.as_str());
        Ok(if is_same { Self(file) } else { Self::default() })
    }

    fn has(&self, key: &str) -> bool {
        self.0.contains_key(key)
    }

    /// Adds to `file` each of these settings that `file` does not have and that the runner still knows.
    fn keep_in(&self, file: &mut DocumentMut) {
        let is_kept = |key: &str| !FROM_THE_STACK.contains(&key) && !GONE.contains(&key);
        for (key, item) in self.0.iter().filter(|(key, _)| is_kept(key)) {
            if !file.contains_key(key) {
                file.insert(key, item.clone());
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn config() -> RunnerConfig {
        RunnerConfig {
            tenant: "acme".parse().unwrap(),
            install: "globex".parse().unwrap(),
            region: "eu-west-1".into(),
            orders_queue_url: "http://localhost:4566/111111111111/fh-acme--globex.fifo".into(),
            reports_queue_url: "http://localhost:4566/111111111111/fh-acme--reports".into(),
            tenant_key: "11qYAYKxCrfVS/7TyWQHOg7hcvPapiMlrwIaaPcHURo=".parse().unwrap(),
            tenant_second_key: Some("none".into()),
            repository: "fh-acme/globex".into(),
            bucket: "fh-acme--globex--222222222222".into(),
            modes: [("provision".to_owned(), "arn:aws:iam::222222222222:role/fh-acme--globex--provision".to_owned())]
                .into(),
            roles: [(
                "break-glass".to_owned(),
                "arn:aws:iam::222222222222:role/fh-acme--globex--break-glass".to_owned(),
            )]
            .into(),
            boundary: Some("arn:aws:iam::222222222222:policy/fh-acme--globex--boundary".into()),
            cluster_images: Some("install-registry".into()),
            audit_lock: Some("COMPLIANCE 365".into()),
            policies: Policies::of(&[("LoosenedPolicies".to_owned(), "no-strangers".to_owned())].into()),
            release_key: None,
            inputs: [("InputDomain".to_owned(), "say \"hi\"".to_owned())].into(),
            outputs: [("vpc_id".to_owned(), "vpc-0a1b".to_owned())].into(),
            app_secrets: vec!["api_key".to_owned()],
            accepted_contract: Some(Digest::of(b"terms")),
        }
    }

    #[test]
    fn a_runner_config_has_every_key_that_the_runner_reads() {
        let config = config();
        let machine = Machine { slots: Some(2), ..Machine::default() };

        let text = config.to_toml(&machine, &Former::default()).unwrap();

        insta::assert_snapshot!(text, @r#"
        # Start the runner with: freehold-runner run --config FILE
        tenant = "acme"
        install = "globex"
        region = "eu-west-1"
        orders_queue_url = "http://localhost:4566/111111111111/fh-acme--globex.fifo"
        reports_queue_url = "http://localhost:4566/111111111111/fh-acme--reports"
        tenant_key = "11qYAYKxCrfVS/7TyWQHOg7hcvPapiMlrwIaaPcHURo="
        tenant_second_key = "none"
        state_dir = "/var/lib/freehold"
        slots = 2
        repository = "fh-acme/globex"
        bucket = "fh-acme--globex--222222222222"
        app_secrets = ["api_key"]
        accepted_contract = "sha256:51d2361f4faea3bc8f9facdbc7d99abb555596a2e51f7b25fd3b41c93587e616"
        boundary = "arn:aws:iam::222222222222:policy/fh-acme--globex--boundary"
        cluster_images = "install-registry"
        audit_lock = "COMPLIANCE 365"
        sandbox = "bubblewrap"

        [policies]
        customer = true
        loosened = ["no-strangers"]
        maintenance_creates = true
        maintenance_components = []

        [modes]
        provision = "arn:aws:iam::222222222222:role/fh-acme--globex--provision"

        [roles]
        break-glass = "arn:aws:iam::222222222222:role/fh-acme--globex--break-glass"

        [inputs]
        InputDomain = 'say "hi"'

        [outputs]
        vpc_id = "vpc-0a1b"
        "#);
    }

    #[test]
    fn a_config_that_is_replaced_keeps_the_settings_of_its_machine() {
        let directory = tempfile::tempdir().unwrap();
        let path = directory.path().join("globex-runner.toml");
        let first =
            Machine { state_dir: Some("/srv/state".into()), sandbox: Some(Sandbox::None), ..Machine::default() };
        config().write(&first, &path, false).unwrap();
        let edited = std::fs::read_to_string(&path).unwrap() + "\n[limits]\nmemory_mib = 512\n";
        std::fs::write(&path, edited).unwrap();
        let later = RunnerConfig { accepted_contract: None, roles: BTreeMap::new(), ..config() };

        later.write(&Machine { slots: Some(8), ..Machine::default() }, &path, true).unwrap();

        let text = std::fs::read_to_string(&path).unwrap();
        for kept in ["state_dir = \"/srv/state\"", "slots = 8", "sandbox = \"none\"", "[limits]\nmemory_mib = 512"] {
            assert!(text.contains(kept), "{kept}: {text}");
        }
        assert!(!text.contains("accepted_contract") && !text.contains("break-glass"), "{text}");
        let other = RunnerConfig { install: "initech".parse().unwrap(), ..config() };
        other.write(&Machine::default(), &path, true).unwrap();
        let text = std::fs::read_to_string(&path).unwrap();
        assert!(text.contains("state_dir = \"/var/lib/freehold\"") && !text.contains("[limits]"), "{text}");
    }

    #[test]
    fn a_config_of_an_earlier_version_loses_the_keys_that_the_runner_refuses() {
        let directory = tempfile::tempdir().unwrap();
        let path = directory.path().join("globex-runner.toml");
        config().write(&Machine::default(), &path, false).unwrap();
        let today = std::fs::read_to_string(&path).unwrap();
        let former = "enrolment_secret_arn = \"arn:aws:secretsmanager:eu-west-1:222222222222:secret:x\"\n\
                      enrolment_secret_file = \"/srv/secret\"\ndrain_secs = 60\n";
        std::fs::write(&path, format!("{former}{today}")).unwrap();

        config().write(&Machine::default(), &path, true).unwrap();

        let text = std::fs::read_to_string(&path).unwrap();
        assert!(text.contains("drain_secs = 60\n") && !text.contains("enrolment"), "{text}");
    }
}
