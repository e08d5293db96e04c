//! Reads the runner's config from the outputs of the install stack.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::time::Duration;

use aws_config::SdkConfig;
use aws_sdk_cloudformation::Client;
use freehold_protocol::app_version::NETWORK_OUTPUTS;
use tokio::time::Instant;
use toml_edit::{Array, DocumentMut, Table, value};
use tracing::warn;

use crate::aws;
use crate::config::{Config, ConfigError, Role};
use crate::repeat::Repeat;

/// The time between two reads of the stack.
const POLL_INTERVAL: Duration = Duration::from_secs(10 * 60);
/// Each key of the config with the output of the stack that has its value.
const OUTPUTS: [(&str, &str); 9] = [
    ("tenant", "TenantName"),
    ("install", "InstallName"),
    ("orders_queue_url", "OrdersQueueUrl"),
    ("reports_queue_url", "ReportsQueueUrl"),
    ("tenant_key", "TenantKey"),
    ("repository", "RepositoryName"),
    ("bucket", "BucketName"),
    ("accepted_contract", "AcceptedContract"),
    ("boundary", "BoundaryArn"),
];
/// The role names, without the install's prefix, that belong to `modes`. Roles with other names belong to `roles`.
const MODES: [&str; 3] = ["provision", "maintenance", "deprovision"];

/// An install stack of this account, as the source of a config.
#[derive(Debug, Clone)]
pub struct StackSource {
    client: Client,
    region: String,
    stack: String,
    state_dir: PathBuf,
}

/// The reason why the outputs of a stack cannot be used as a config.
#[derive(Debug, thiserror::Error)]
pub enum StackError {
    #[error("no AWS region is known; set AWS_REGION to the region of the install stack")]
    NoRegion,
    #[error("cannot read install stack `{stack}`: {reason}; allow `cloudformation:DescribeStacks` on it for this role")]
    Unreadable { stack: String, reason: String },
    #[error("there is no install stack `{0}` in this account and region; launch it first")]
    Missing(String),
    #[error("install stack `{stack}` has no output `{output}`; launch its current template")]
    NoOutput { stack: String, output: &'static str },
    #[error(transparent)]
    Config(#[from] ConfigError),
}

impl StackSource {
    /// Returns the stack called `name` in the default region of AWS tools. `state_dir` becomes the state directory in
    /// the config.
    pub async fn of(name: &str, state_dir: &Path) -> Self {
        let sdk = aws::default_config().await;
        let region = sdk.region().map(ToString::to_string).unwrap_or_default();
        Self { client: Client::new(&sdk), region, stack: name.to_owned(), state_dir: state_dir.to_owned() }
    }

    /// Returns the same stack, read with a session that begins now.
    #[must_use]
    pub async fn by_a_new_session(&self) -> Self {
        Self::of(&self.stack, &self.state_dir).await
    }

    /// Returns the stack that `config` names, for a runner that read its config from a file.
    pub fn of_config(config: &Config, sdk: &SdkConfig) -> Self {
        let (region, state_dir) = (config.region.clone(), config.state_dir.clone());
        Self { client: Client::new(sdk), region, stack: config.stack.clone(), state_dir }
    }

    /// Reads the stack's outputs and returns them as a config.
    ///
    /// # Errors
    /// A [`StackError`] that states how to fix the problem.
    pub async fn read(&self) -> Result<Config, StackError> {
        if self.region.is_empty() {
            return Err(StackError::NoRegion);
        }
        let answer = self.client.describe_stacks().stack_name(&self.stack).send().await.map_err(|error| {
            let reason = aws::explain(&error);
            if reason.contains("does not exist") {
                return StackError::Missing(self.stack.clone());
            }
            StackError::Unreadable { stack: self.stack.clone(), reason }
        })?;
        let stack = answer.stacks().first().ok_or_else(|| StackError::Missing(self.stack.clone()))?;
        let outputs = stack.outputs().iter();
        let outputs = outputs.filter_map(|one| Some((one.output_key()?.to_owned(), one.output_value()?.to_owned())));
        config(&outputs.collect(), &self.region, &self.stack, &self.state_dir)
    }

    /// Compares the stack every ten minutes with `config`, which came from a file. The runner reads the file only when
    /// it starts, so this function logs each difference and how to fix it. It ignores a stack that cannot be read.
    pub async fn compare(&self, config: &Config) {
        let mut warned = Repeat::default();
        loop {
            let other = self.read().await.map(|now| differences(&now, config)).unwrap_or_default();
            if other.is_empty() {
                warned.is_over();
            } else {
                let (stack, install, other) = (&self.stack, &config.install, other.join(", "));
                let text = format!(
                    "Install stack `{stack}` and the config file of this runner differ in: {other}. The runner uses \
                     the file; to use the stack's values, run `freehold install runner-config {install} --force` and start \
                     the runner again"
                );
                if warned.is_due(&text, Instant::now()) {
                    warn!("{text}");
                }
            }
            tokio::time::sleep(POLL_INTERVAL).await;
        }
    }

    /// Waits until the config in the stack differs from `config`. A stack that cannot be read counts as unchanged.
    pub async fn changed(&self, config: &Config) {
        loop {
            tokio::time::sleep(POLL_INTERVAL).await;
            match self.read().await {
                Ok(now) if now != *config => return,
                Ok(_) => {}
                Err(error) => warn!("{}", aws::explain(&error)),
            }
        }
    }
}

/// Returns the keys that have one value in the config file and another in the stack. `now` is the config in the stack.
fn differences(now: &Config, file: &Config) -> Vec<&'static str> {
    [
        ("accepted_contract", now.accepted_contract != file.accepted_contract),
        ("inputs", now.inputs != file.inputs),
        ("outputs", now.outputs != file.outputs),
        ("app_secrets", now.app_secrets != file.app_secrets),
        ("cluster_images", now.cluster_images != file.cluster_images),
        ("audit_lock", now.audit_lock != file.audit_lock),
        ("policies", now.policies != file.policies),
        ("modes", now.modes != file.modes),
        ("roles", now.roles != file.roles),
        ("tenant_key", now.tenant_key != file.tenant_key),
        ("tenant_second_key", now.tenant_second_key != file.tenant_second_key),
        ("release_key", now.release_key != file.release_key),
        ("orders_queue_url", now.orders_queue_url != file.orders_queue_url),
        ("reports_queue_url", now.reports_queue_url != file.reports_queue_url),
    ]
    .into_iter()
    .filter_map(|(key, is_other)| is_other.then_some(key))
    .collect()
}

/// Returns the config that the stack's outputs describe. `outputs` has the value of each output by its name.
fn config(
    outputs: &BTreeMap<String, String>,
    region: &str,
    stack: &str,
    state_dir: &Path,
) -> Result<Config, StackError> {
    let mut file = DocumentMut::new();
    for (key, output) in OUTPUTS {
        let text = outputs.get(output);
        let text = text.ok_or_else(|| StackError::NoOutput { stack: stack.to_owned(), output })?;
        file.insert(key, value(text));
    }
    insert_later_outputs(&mut file, outputs);
    file.insert("region", value(region));
    file.insert("stack", value(stack));
    file.insert("state_dir", value(state_dir.display().to_string()));
    let install = outputs.get("InstallName").map(String::as_str).unwrap_or_default();
    let tenant = outputs.get("TenantName").map(String::as_str).unwrap_or_default();
    let ours = format!(":role/fh-{tenant}--{install}--");
    let (mut modes, mut roles, mut inputs) = (Table::new(), Table::new(), Table::new());
    for (name, text) in outputs {
        if let Some((_, key)) = text.split_once(&ours).filter(|_| name.ends_with("RoleArn") && name != "RunnerRoleArn")
        {
            let table = if MODES.contains(&key) { &mut modes } else { &mut roles };
            table.insert(key, value(text));
        } else if name.starts_with("Input") {
            inputs.insert(name, value(text));
        }
    }
    let secrets = outputs.get("AppSecrets").map(|names| names.split(',').collect::<Array>());
    file.insert("app_secrets", value(secrets.unwrap_or_default()));
    let handed_out = NETWORK_OUTPUTS.iter().filter_map(|(key, output)| Some((*key, outputs.get(*output)?)));
    let network: Table =
        handed_out.filter(|(_, text)| !text.is_empty()).map(|(key, text)| (key, value(text))).collect();
    for (name, table) in [("modes", modes), ("roles", roles), ("inputs", inputs), ("outputs", network)] {
        file.insert(name, table.into());
    }
    Ok(Config::parse(&file.to_string(), &format!("stack {stack}"), Role::Install)?)
}

/// Adds the settings of outputs that the template of an earlier release lacks.
fn insert_later_outputs(file: &mut DocumentMut, outputs: &BTreeMap<String, String>) {
    if let Some(images) = outputs.get("ClusterImages") {
        file.insert("cluster_images", value(images));
    }
    if let Some(second) = outputs.get("TenantSecondKey") {
        file.insert("tenant_second_key", value(second));
    }
    if let (Some(mode), Some(days)) = (outputs.get("AuditLock"), outputs.get("AuditLockDays")) {
        file.insert("audit_lock", value(format!("{mode} {days}")));
    }
    if let Some(loosened) = outputs.get("LoosenedPolicies") {
        file.insert("policies", policies(loosened, outputs).into());
    }
    if let Some(key) = outputs.get("RunnerReleaseKey") {
        file.insert("release_key", value(key));
    }
}

/// Returns the table `policies`. A stack with these outputs permits the runner to read the customer's policies.
fn policies(loosened: &str, outputs: &BTreeMap<String, String>) -> Table {
    let list = |text: &str| text.split(',').filter(|name| !name.is_empty()).collect::<Array>();
    let text = |name: &str| outputs.get(name).map(String::as_str).unwrap_or_default();
    let mut table = Table::new();
    table.insert("customer", value(true));
    table.insert("loosened", value(list(loosened)));
    table.insert("maintenance_creates", value(text("MaintenanceCreates") != "false"));
    table.insert("maintenance_components", value(list(text("MaintenanceComponents"))));
    table
}

#[cfg(test)]
mod tests {
    use freehold_protocol::envelope::PublicKey;
    use freehold_protocol::order::Mode;

    use super::*;
    use crate::config::audit_lock::{AuditLock, LockMode};

    fn outputs() -> BTreeMap<String, String> {
        let arn = |name: &str| format!("arn:aws:iam::222222222222:role/fh-acme--globex--{name}");
        [
            ("TenantName", "acme".to_owned()),
            ("InstallName", "globex".to_owned()),
            ("OrdersQueueUrl", "https://sqs.eu-west-1.amazonaws.com/111111111111/fh-acme--globex.fifo".to_owned()),
            ("ReportsQueueUrl", "https://sqs.eu-west-1.amazonaws.com/111111111111/fh-acme--reports".to_owned()),
            ("TenantKey", "11qYAYKxCrfVS/7TyWQHOg7hcvPapiMlrwIaaPcHURo=".to_owned()),
            ("RepositoryName", "fh-acme/globex".to_owned()),
            ("BucketName", "fh-acme--globex--222222222222".to_owned()),
            ("AcceptedContract", format!("sha256:{}", "0".repeat(64))),
            ("BoundaryArn", "arn:aws:iam::222222222222:policy/fh-acme--globex--boundary".to_owned()),
            ("RunnerRoleArn", arn("runner")),
            ("ProvisionRoleArn", arn("provision")),
            ("BreakGlassRoleArn", arn("break-glass")),
            ("VpcId", "vpc-0a1b".to_owned()),
            ("PublicSubnets", String::new()),
            ("InputNote", "say \"hi\"\n[modes]\nprovision = 'x'".to_owned()),
        ]
        .map(|(name, text)| (name.to_owned(), text))
        .into()
    }

    #[test]
    fn the_outputs_of_an_install_stack_are_a_runners_config() {
        let found = config(&outputs(), "eu-west-1", "freehold-acme--globex", Path::new("/state")).unwrap();

        assert_eq!(found.install.as_str(), "globex");
        assert_eq!(
            found.modes.role(Mode::Provision),
            Some("arn:aws:iam::222222222222:role/fh-acme--globex--provision")
        );
        assert_eq!(found.modes.role(Mode::Maintenance), None);
        assert_eq!(found.boundary.as_deref(), Some("arn:aws:iam::222222222222:policy/fh-acme--globex--boundary"));
        assert_eq!(found.roles.keys().map(ToString::to_string).collect::<Vec<_>>(), ["break-glass"]);
        assert_eq!(found.outputs, [("vpc_id".to_owned(), "vpc-0a1b".to_owned())].into());
        assert_eq!(found.inputs["InputNote"], "say \"hi\"\n[modes]\nprovision = 'x'");
    }

    #[test]
    fn what_a_second_template_changed_is_named_by_its_key() {
        let read = |outputs: &BTreeMap<String, String>| {
            config(outputs, "eu-west-1", "freehold-acme--globex", Path::new("/state")).unwrap()
        };
        let file = read(&outputs());
        let mut launched = outputs();
        launched.insert("AcceptedContract".to_owned(), format!("sha256:{}", "1".repeat(64)));
        launched.insert("InputNote".to_owned(), "another".to_owned());

        assert_eq!(differences(&read(&launched), &file), ["accepted_contract", "inputs"]);
        assert_eq!(differences(&file, &Config { slots: 9, ..file.clone() }), Vec::<&str>::new());
    }

    #[test]
    fn the_lock_of_audit_records_is_none_unless_the_stack_has_both_outputs() {
        let read = |lock: &[(&str, &str)]| {
            let mut all = outputs();
            all.extend(lock.iter().map(|(name, text)| ((*name).to_owned(), (*text).to_owned())));
            config(&all, "eu-west-1", "freehold-acme--globex", Path::new("/state"))
        };
        let lock = |mode| read(&[("AuditLock", mode), ("AuditLockDays", "30")]);

        assert_eq!(read(&[]).unwrap().audit_lock, None);
        assert_eq!(lock("none").unwrap().audit_lock, None);
        let compliance = AuditLock { mode: LockMode::Compliance, days: 30 };
        assert_eq!(lock("COMPLIANCE").unwrap().audit_lock, Some(compliance));
        assert_eq!(differences(&lock("GOVERNANCE").unwrap(), &read(&[]).unwrap()), ["audit_lock"]);
        let error = lock("forever").unwrap_err().to_string();
        assert!(error.contains("`forever 30`"), "{error}");
    }

    #[test]
    fn what_the_customer_says_about_policies_is_read_where_the_stack_has_it() {
        let read = |outputs: &BTreeMap<String, String>| {
            config(outputs, "eu-west-1", "freehold-acme--globex", Path::new("/state")).unwrap().policies
        };
        let mut newer = outputs();
        newer.insert("LoosenedPolicies".into(), "no-strangers,no-public-exposure".into());
        newer.insert("MaintenanceCreates".into(), "false".into());
        newer.insert("MaintenanceComponents".into(), "web".into());

        let (older, newer) = (read(&outputs()), read(&newer));

        assert!(!older.customer && older.loosened.is_empty() && older.maintenance_creates);
        assert!(newer.customer && newer.loosened.len() == 2 && !newer.maintenance_creates);
        assert_eq!(newer.maintenance_components, ["web".to_owned()].into());
    }

    #[test]
    fn no_order_replaces_the_runner_unless_the_stack_names_a_key() {
        let read = |key: &str| {
            let mut all = outputs();
            all.insert("RunnerReleaseKey".to_owned(), key.to_owned());
            config(&all, "eu-west-1", "freehold-acme--globex", Path::new("/state"))
        };
        let named = crate::testing::release_key(7).verifying_key().into();

        assert_eq!(config(&outputs(), "eu-west-1", "s", Path::new("/state")).unwrap().release_key, None);
        assert_eq!(read("none").unwrap().release_key, None);
        let with_key = read(&PublicKey::to_string(&named)).unwrap();
        assert_eq!(with_key.release_key, Some(named));
        assert_eq!(differences(&with_key, &read("none").unwrap()), ["release_key"]);
        let begins_with_the_word = read("noneLzRFVMU73i67jNK349FgCtYxw4Wl18ziPHeFRZo=").unwrap();
        assert!(begins_with_the_word.release_key.is_some());
    }

    #[test]
    fn an_output_that_is_missing_is_named() {
        let mut outputs = outputs();
        outputs.remove("TenantKey");

        let error = config(&outputs, "eu-west-1", "freehold-acme--globex", Path::new("/state")).unwrap_err();

        assert_eq!(
            error.to_string(),
            "install stack `freehold-acme--globex` has no output `TenantKey`; launch its current template"
        );
    }
}
