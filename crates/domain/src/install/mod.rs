//! Installs: one app in one customer account, with its runner, its inputs, and the workflow that holds it.

pub mod change_gate;
pub mod connection;
pub mod follows;
pub mod labels;
pub mod licence;
pub mod name;
pub mod strangers;

use std::collections::{BTreeMap, BTreeSet};

use freehold_protocol::api::{ApprovalOption, Follows};
use freehold_protocol::envelope::PublicKey;
use freehold_protocol::report::Hello;
use freehold_protocol::sealing::SealingKey;
use freehold_protocol::{AccountId, AppName, ComponentName, Digest, InstallId, KeyId, Timestamp, WorkflowId};
use serde::{Deserialize, Serialize};
use serde_json::Value;

use crate::drift::DriftRule;
use crate::sealed_inputs::Sealing;
use licence::InstallLicence;

/// The reserved install whose runner builds artifacts in the tenant's own account.
pub const BUILD_INSTALL: &str = "build";

/// The maximum number of jobs that are dispatched to a runner at once, even when the runner advertises more slots.
pub const MAX_SLOTS: u32 = 32;

/// The number of keys of replaced runners that are stored for an install: the newest ones. The install's row in the table
/// has at most 400 KB, and a holder of the runner's role can announce any number of keys. A machine that loses its disk
/// every five minutes announces about this many in the 14 days for which a queue keeps a report.
const MAX_RETIRED: usize = 4000;
/// The number of keys of replaced runners that are stored for the build runner. Each machine of the build
/// runner has a key of its own, and writes the row with all of them when it starts.
const MAX_RETIRED_BUILDERS: usize = 300;

/// An install: one app in one customer account, or the tenant's build runner.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Install {
    pub id: InstallId,
    pub serves: Serves,
    pub account: AccountId,
    pub region: String,
    pub created_at: Timestamp,
    /// The vendor's values of inputs, by input name, exactly as the vendor gave them. The value of a sensitive input is
    /// the text of a [`freehold_protocol::sealing::SealedValue`].
    #[serde(default)]
    pub inputs: BTreeMap<String, Value>,
    /// The time at which the vendor last gave a sensitive input; 0 if never.
    #[serde(default, skip_serializing_if = "is_never")]
    pub sealed_at: Timestamp,
    /// The vendor's choices for toggleable components: whether the install has the component. A component without a
    /// choice has the default of its config ([`crate::toggles`]).
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub toggles: BTreeMap<ComponentName, bool>,
    /// The install's own labels; [`labels::with_defaults`] adds the default labels of its app.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub labels: BTreeMap<String, String>,
    /// The newest licence that the vendor set or withdrew; absent before the first one.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub licence: Option<InstallLicence>,
    /// Whether plans wait until somebody at the vendor approves them.
    #[serde(default, skip_serializing_if = "ApprovalOption::approves_all")]
    pub approval_option: ApprovalOption,
    /// The target that the install deploys when a deploy names neither a version nor a release.
    #[serde(default, skip_serializing_if = "Follows::is_latest")]
    pub follows: Follows,
    /// The time at which `follows` was last set; 0 if never.
    #[serde(default, skip_serializing_if = "is_never")]
    pub follows_since: Timestamp,
    /// The customer's answers in the install stack, by parameter, as the runner last reported them.
    /// [`crate::inputs::resolve_inputs`] decides whether an answer is a valid value.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub answers: BTreeMap<String, String>,
    /// The keyed digest of each secret of the app, as the runner last reported it.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub secrets: BTreeMap<String, Digest>,
    /// The digest of the terms that the customer accepted, as the runner last reported it; absent when the install
    /// stack does not ask for consent.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub accepted_contract: Option<Digest>,
    /// The URL of the install's orders queue; absent until the queue exists.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub orders_queue_url: Option<String>,
    /// The number of the reports queue to which the install's runner sends ([`crate::reports::shards`]); absent until the
    /// install is registered. An install keeps its queue for life, because the install stack names it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub reports_shard: Option<u32>,
    /// The URL of the reports queue; absent until the queue exists.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub reports_queue_url: Option<String>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub runner: Option<Runner>,
    /// The newest keys of runners that were replaced; reports signed with them are refused.
    #[serde(default)]
    pub retired: BTreeSet<KeyId>,
    /// The time at which the reports queue took the hello that replaced a key. A report that the queue took before that
    /// time still counts. Keys that were replaced before this field existed are absent.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub replaced_at: BTreeMap<KeyId, Timestamp>,
    /// The exclusive workflow that holds the install, if there is one.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub live: Option<WorkflowId>,
    /// The serial of the next workflow's orders.
    pub next_serial: u64,
    /// The serial of the last exclusive workflow; 0 before the first one, and in records of earlier versions.
    #[serde(default, skip_serializing_if = "is_serial_unknown")]
    pub last_exclusive: u64,
    /// The last workflow that checks parts for drift.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub checking: Option<WorkflowId>,
    /// The last workflow that checked health without a deploy.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub health_check: Option<WorkflowId>,
    /// The rules that ignore drift.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub drift_rules: Vec<DriftRule>,
    /// The vendor's reason for disabling the install; absent when it is enabled. In a disabled install, no workflow
    /// starts and no artifact is granted. Deployed components continue to run.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub disabled: Option<String>,
    /// The time at which the vendor asked to forget the install; absent in every other install. No workflow starts,
    /// every report is refused, and all rows of the install are being removed.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub forgetting: Option<Timestamp>,
    /// The number of installs that the tenant had deleted or forgotten when it created this install. The id of the
    /// provisioning workflow is derived from this number too.
    #[serde(default, skip_serializing_if = "is_zero")]
    pub generation: u32,
    /// Whether the id of the provisioning workflow is derived from [`Install::created_at`] too. The id names an
    /// execution, and Step Functions reserves the name of an execution for 90 days, even after the tenant was destroyed
    /// and deployed again. False for an install of an earlier version, whose workflow keeps its id.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub dated_provisioning: bool,
    /// The fields that only a later version of Freehold knows. They stay in the row.
    #[serde(flatten)]
    pub later_fields: BTreeMap<String, Value>,
}

#[expect(clippy::trivially_copy_pass_by_ref, reason = "serde calls this function with a reference")]
const fn is_zero(number: &u32) -> bool {
    *number == 0
}

#[expect(clippy::trivially_copy_pass_by_ref, reason = "serde calls this function with a reference")]
const fn is_serial_unknown(serial: &u64) -> bool {
    *serial == 0
}

#[expect(clippy::trivially_copy_pass_by_ref, reason = "serde calls this function with a reference")]
fn is_never(at: &Timestamp) -> bool {
    *at == Timestamp::default()
}

/// The purpose of an install.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(tag = "serves", rename_all = "snake_case")]
pub enum Serves {
    /// The install runs an app. `version` is the version of the last deploy of all components that succeeded.
    App {
        app: AppName,
        #[serde(default, skip_serializing_if = "Option::is_none")]
        version: Option<Digest>,
    },
    /// The install builds the tenant's artifacts.
    Builds,
}

/// The current runner of an install. Reports that another runner signed are refused.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Runner {
    pub public_key: PublicKey,
    pub version: String,
    pub slots: u32,
    pub host: String,
    pub since: Timestamp,
    /// The time at which the reports queue took the runner's newest hello. It is 0 in rows that were written before
    /// this field existed.
    #[serde(default)]
    pub announced_at: Timestamp,
    /// The key to which sensitive inputs are sealed. Absent for a runner that announces none.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub sealing_key: Option<SealingKey>,
}

/// The reason why an install refuses an operation.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum InstallError {
    #[error("install `{install}` is being worked on by `{live}`; wait for it or cancel it")]
    Live { install: InstallId, live: WorkflowId },
    #[error(
        "another workflow has changed install `{install}` since `{workflow}` ended, so what `{workflow}` planned is out of \
         date; start the work anew, for example with `freehold deploy {install}`"
    )]
    Later { install: InstallId, workflow: WorkflowId },
    #[error("install `{install}` is disabled: {why}; to serve it again, run `freehold install enable {install}`")]
    Disabled { install: InstallId, why: String },
    #[error("install `{0}` is being forgotten; wait some minutes, then its name is free again")]
    Forgetting(InstallId),
    #[error("runner key `{key}` of install `{install}` was replaced and cannot be used again")]
    Retired { install: InstallId, key: KeyId },
    #[error("install `{0}` has no runner yet; launch its install stack and start the runner")]
    NoRunner(InstallId),
    #[error(
        "install `{install}` cannot be deleted: {what}, so the app in the customer's account could stay there without an \
         owner; remove the app with `freehold teardown {install}`, let the customer delete the install stack, and run \
         `freehold install forget {install}`, or stop serving it with `freehold install disable {install} --reason TEXT`"
    )]
    Ran { install: InstallId, what: String },
    #[error("`{0}` is the build runner, not an install of an app; `freehold install list` shows the installs")]
    NoApp(InstallId),
    #[error("install `{install}` exists already, for {serves} in account {account}, {region}; choose another name")]
    Exists { install: InstallId, serves: String, account: AccountId, region: String },
    #[error("install name `{0}` is reserved; choose another one")]
    Reserved(InstallId),
    #[error(
        "install name `{wanted}` and the existing name `{existing}` begin alike: one is a prefix of \
         the other, so their resource names could collide; choose another name"
    )]
    Prefix { wanted: InstallId, existing: InstallId },
}

/// The effect of a runner's hello on its install.
#[derive(Debug, Clone, PartialEq)]
#[must_use]
pub enum HelloStep {
    /// The runner is new, or its hello has other values than before.
    Changed(Box<Install>),
    /// The hello changes nothing: it was handled before, or the same runner has announced itself again since.
    Already,
    /// The hello is older than the hello of the current runner, which stays. The key of the hello is retired.
    Late(Box<Install>),
}

impl Install {
    /// Returns a new install, which has no runner, no queue and no values of inputs yet.
    pub fn new(id: InstallId, serves: Serves, account: AccountId, region: String, created_at: Timestamp) -> Self {
        Self {
            id,
            serves,
            account,
            region,
            created_at,
            inputs: BTreeMap::new(),
            sealed_at: Timestamp::default(),
            toggles: BTreeMap::new(),
            labels: BTreeMap::new(),
            licence: None,
            approval_option: ApprovalOption::default(),
            follows: Follows::Latest,
            follows_since: Timestamp::default(),
            answers: BTreeMap::new(),
            secrets: BTreeMap::new(),
            accepted_contract: None,
            orders_queue_url: None,
            reports_shard: None,
            reports_queue_url: None,
            runner: None,
            retired: BTreeSet::new(),
            replaced_at: BTreeMap::new(),
            live: None,
            next_serial: 1,
            last_exclusive: 0,
            checking: None,
            health_check: None,
            drift_rules: Vec::new(),
            disabled: None,
            forgetting: None,
            generation: 0,
            dated_provisioning: true,
            later_fields: BTreeMap::new(),
        }
    }

    /// Returns the id of the workflow that provisions the install.
    pub fn provisioning(&self) -> WorkflowId {
        let cause = match (self.dated_provisioning, self.generation) {
            (true, generation) => format!("provision.{generation}.{}", self.created_at.as_millis()),
            (false, 0) => "provision".to_owned(),
            (false, generation) => format!("provision.{generation}"),
        };
        WorkflowId::derive(self.id.as_str(), &cause)
    }

    /// Checks that the install is not being forgotten.
    ///
    /// # Errors
    /// [`InstallError::Forgetting`].
    pub fn check_kept(&self) -> Result<(), InstallError> {
        match self.forgetting {
            Some(_) => Err(InstallError::Forgetting(self.id.clone())),
            None => Ok(()),
        }
    }

    /// Returns the deployed version; `None` before the first deploy of all components has succeeded.
    pub const fn version(&self) -> Option<&Digest> {
        match &self.serves {
            Serves::App { version, .. } => version.as_ref(),
            Serves::Builds => None,
        }
    }

    /// Returns the app that the install runs; `None` for the tenant's build runner.
    pub const fn app(&self) -> Option<&AppName> {
        match &self.serves {
            Serves::App { app, .. } => Some(app),
            Serves::Builds => None,
        }
    }

    /// Returns the app that the install runs.
    ///
    /// # Errors
    /// [`InstallError::NoApp`] for the tenant's build runner.
    pub fn require_app(&self) -> Result<&AppName, InstallError> {
        self.app().ok_or_else(|| InstallError::NoApp(self.id.clone()))
    }

    /// Returns the serial of the newest licence.
    pub fn licence_serial(&self) -> Option<u64> {
        self.licence.as_ref().map(|licence| licence.serial)
    }

    /// Returns the install's name and the key to which its sensitive inputs are sealed.
    pub fn sealing(&self) -> Sealing<'_> {
        Sealing { install: &self.id, key: self.runner.as_ref().and_then(|runner| runner.sealing_key.as_ref()) }
    }

    /// Checks that nothing ran in the install: no runner ever announced itself, so no order was ever sent.
    ///
    /// # Errors
    /// [`InstallError::Ran`].
    pub fn check_never_ran(&self) -> Result<(), InstallError> {
        let what = match (&self.runner, self.version()) {
            (_, Some(version)) => format!("version `{version}` was deployed there"),
            (Some(runner), None) => format!("its runner on `{}` has announced itself", runner.host),
            (None, None) if !self.retired.is_empty() => "a runner has announced itself".to_owned(),
            (None, None) => return Ok(()),
        };
        Err(InstallError::Ran { install: self.id.clone(), what })
    }

    /// Returns the effect of a runner's hello, which the reports queue took at `sent_at`. Hellos can arrive in any
    /// order: only a hello that is at least as new as the current runner's hello has an effect on the runner. If it
    /// has a new key, the key of the former runner is retired. It is refused while it is among the newest retired keys.
    ///
    /// # Errors
    /// [`InstallError::Retired`] for the key of a runner that was replaced before.
    pub fn on_hello(&self, hello: &Hello, sent_at: Timestamp, now: Timestamp) -> Result<HelloStep, InstallError> {
        let key = hello.public_key.key_id();
        if self.retired.contains(&key) {
            return Err(InstallError::Retired { install: self.id.clone(), key });
        }
        let is_current = self.runner.as_ref().is_some_and(|runner| runner.public_key == hello.public_key);
        let mut next = self.clone();
        if !is_current {
            // A forgotten key would be accepted again only with a proof of the role, and with this proof any new key is
            // accepted too.
            next.forget_oldest_keys(match self.serves {
                Serves::Builds => MAX_RETIRED_BUILDERS - 1,
                Serves::App { .. } => MAX_RETIRED - 1,
            });
        }
        if let Some(runner) = self.runner.as_ref().filter(|runner| sent_at < runner.announced_at) {
            if runner.public_key == hello.public_key {
                return Ok(HelloStep::Already);
            }
            next.retire(key, runner.announced_at);
            return Ok(HelloStep::Late(Box::new(next)));
        }
        let since = match &self.runner {
            Some(runner) if runner.public_key == hello.public_key => runner.since,
            Some(runner) => {
                next.retire(runner.public_key.key_id(), sent_at);
                now
            }
            None => now,
        };
        let runner = Runner {
            public_key: hello.public_key.clone(),
            version: hello.version.chars().take(40).collect(),
            slots: hello.slots.clamp(1, MAX_SLOTS),
            host: hello.host.chars().take(120).collect(),
            since,
            announced_at: sent_at,
            sealing_key: hello.sealing_key.clone(),
        };
        let secrets = hello.secrets.as_ref().unwrap_or(&self.secrets);
        let same_answers = self.answers == hello.inputs
            && self.secrets == *secrets
            && self.accepted_contract == hello.accepted_contract;
        if self.runner.as_ref() == Some(&runner) && same_answers {
            return Ok(HelloStep::Already);
        }
        next.runner = Some(runner);
        next.answers.clone_from(&hello.inputs);
        next.secrets.clone_from(secrets);
        next.accepted_contract.clone_from(&hello.accepted_contract);
        Ok(HelloStep::Changed(Box::new(next)))
    }

    fn retire(&mut self, key: KeyId, at: Timestamp) {
        self.replaced_at.insert(key.clone(), at);
        self.retired.insert(key);
    }

    /// Forgets the oldest replaced keys until `kept` keys are left.
    fn forget_oldest_keys(&mut self, kept: usize) {
        while self.retired.len() > kept {
            let replaced = |key: &KeyId| self.replaced_at.get(key).copied().unwrap_or_default();
            let Some(oldest) = self.retired.iter().min_by_key(|key| replaced(key)).cloned() else { return };
            self.retired.remove(&oldest);
            self.replaced_at.remove(&oldest);
        }
    }

    /// Returns whether `key` was replaced after the reports queue had taken a message at `taken_at`.
    pub fn was_replaced_after(&self, key: &KeyId, taken_at: Timestamp) -> bool {
        self.replaced_at.get(key).is_some_and(|at| taken_at < *at)
    }

    /// Starts `workflow`: returns the changed install, and the serial for the orders of the workflow. An `exclusive`
    /// workflow holds the install until it ends.
    ///
    /// # Errors
    /// [`InstallError::Live`] when another workflow holds the install, [`InstallError::Disabled`],
    /// [`InstallError::Forgetting`].
    pub fn begin(&self, workflow: &WorkflowId, exclusive: bool) -> Result<(Self, u64), InstallError> {
        let mut next = self.clone();
        self.check_kept()?;
        if let Some(why) = &self.disabled {
            return Err(InstallError::Disabled { install: self.id.clone(), why: why.clone() });
        }
        if exclusive {
            match &self.live {
                Some(live) if live != workflow => {
                    return Err(InstallError::Live { install: self.id.clone(), live: live.clone() });
                }
                Some(_) | None => next.live = Some(workflow.clone()),
            }
            next.last_exclusive = self.next_serial;
        }
        next.next_serial += 1;
        Ok((next, self.next_serial))
    }

    /// Gives the install back to `workflow`, which had ended and whose orders have this serial. Returns the changed install.
    ///
    /// # Errors
    /// As [`Install::begin`], and [`InstallError::Later`] when another exclusive workflow has begun in the meantime.
    pub fn hold_again(&self, workflow: &WorkflowId, serial: u64) -> Result<Self, InstallError> {
        let (mut next, _) = self.begin(workflow, true)?;
        // Rows of earlier versions lack this serial. For such a row, any later workflow counts.
        let last = if self.last_exclusive == 0 { self.next_serial.saturating_sub(1) } else { self.last_exclusive };
        if last > serial {
            return Err(InstallError::Later { install: self.id.clone(), workflow: workflow.clone() });
        }
        next.next_serial = self.next_serial;
        next.last_exclusive = last;
        Ok(next)
    }

    /// Returns the install after `workflow` released it; `deployed` is the version that the workflow deployed.
    pub fn release(&self, workflow: &WorkflowId, deployed: Option<&Digest>) -> Self {
        let mut next = self.clone();
        if next.live.as_ref() == Some(workflow) {
            next.live = None;
        }
        if let (Serves::App { version, .. }, Some(deployed)) = (&mut next.serves, deployed) {
            *version = Some(deployed.clone());
        }
        next
    }
    /// Returns the install after all parts of its app were removed.
    #[must_use]
    pub fn emptied(&self) -> Self {
        let mut next = self.clone();
        if let Serves::App { version, .. } = &mut next.serves {
            *version = None;
        }
        next
    }
}

#[cfg(test)]
mod tests;
