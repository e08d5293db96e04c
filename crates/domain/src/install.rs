//! Installs: one app in one customer account, with its runner, its inputs, and the workflow that holds it.

use std::collections::{BTreeMap, BTreeSet};

use freehold_protocol::envelope::PublicKey;
use freehold_protocol::report::Hello;
use freehold_protocol::{AccountId, AppName, Digest, InstallId, KeyId, Timestamp, WorkflowId};
use serde::{Deserialize, Serialize};
use serde_json::Value;

/// The reserved install whose runner builds artifacts in the tenant's own account.
pub const BUILD_INSTALL: &str = "build";

/// Names that an install may not have, because they would collide with the tenant's own queues or roles.
pub const RESERVED_INSTALLS: [&str; 5] = [BUILD_INSTALL, "dead", "dispatch", "grants", "reports"];

/// The maximum number of jobs that are dispatched to a runner at once, even when the runner advertises more slots.
pub const MAX_SLOTS: u32 = 32;

/// An install: one app in one customer account, or the tenant's build runner.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Install {
    pub id: InstallId,
    pub serves: Serves,
    pub account: AccountId,
    pub region: String,
    pub created_at: Timestamp,
    /// The public half of the key that is derived from the enrolment secret.
    pub enrolment_key: PublicKey,
    /// The vendor's values of inputs, by input name, exactly as the vendor gave them.
    #[serde(default)]
    pub inputs: BTreeMap<String, Value>,
    /// The customer's answers in the install stack, by parameter, as the runner last reported them.
    /// [`crate::inputs::resolve_inputs`] decides whether an answer is a valid value.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub answers: BTreeMap<String, String>,
    /// The keyed digest of each secret of the app, as the runner last reported it.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub secrets: BTreeMap<String, Digest>,
    /// The digest of the terms that the customer accepted, as the runner last reported it; absent when the install
    /// stack asks for no consent.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub accepted_contract: Option<Digest>,
    /// The URL of the install's orders queue; absent until the queue exists.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub orders_queue_url: Option<String>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub runner: Option<Runner>,
    /// Keys of runners that were replaced; reports signed with them are refused.
    #[serde(default)]
    pub retired: BTreeSet<KeyId>,
    /// The exclusive workflow that holds the install, if there is one.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub live: Option<WorkflowId>,
    /// The serial of the next workflow's orders.
    pub next_serial: u64,
    /// The vendor's reason for disabling the install; absent when it is enabled. In a disabled install, no workflow
    /// starts and no artifact is granted. Deployed components continue to run.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub disabled: Option<String>,
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
}

/// The reason why an install refuses an operation.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum InstallError {
    #[error("install `{install}` is being worked on by `{live}`; wait for it or cancel it")]
    Live { install: InstallId, live: WorkflowId },
    #[error("install `{install}` is disabled: {why}; nothing is sent to it until it is enabled again")]
    Disabled { install: InstallId, why: String },
    #[error("runner key `{key}` of install `{install}` was replaced and cannot be used again")]
    Retired { install: InstallId, key: KeyId },
    #[error("install `{0}` has no runner yet; launch its install stack and start the runner")]
    NoRunner(InstallId),
    #[error(
        "install `{install}` cannot be deleted: {what}; the app in the customer's account would stay there without an \
         owner; `freehold install disable {install} --reason TEXT` stops serving it"
    )]
    Ran { install: InstallId, what: String },
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
    pub fn new(
        id: InstallId,
        serves: Serves,
        account: AccountId,
        region: String,
        created_at: Timestamp,
        enrolment_key: PublicKey,
    ) -> Self {
        Self {
            id,
            serves,
            account,
            region,
            created_at,
            enrolment_key,
            inputs: BTreeMap::new(),
            answers: BTreeMap::new(),
            secrets: BTreeMap::new(),
            accepted_contract: None,
            orders_queue_url: None,
            runner: None,
            retired: BTreeSet::new(),
            live: None,
            next_serial: 1,
            disabled: None,
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
    /// has a new key, the key of the former runner is retired and can never come back.
    ///
    /// # Errors
    /// [`InstallError::Retired`] for the key of a runner that was replaced before.
    pub fn on_hello(&self, hello: &Hello, sent_at: Timestamp, now: Timestamp) -> Result<HelloStep, InstallError> {
        let key = hello.public_key.key_id();
        if self.retired.contains(&key) {
            return Err(InstallError::Retired { install: self.id.clone(), key });
        }
        let mut next = self.clone();
        if let Some(runner) = self.runner.as_ref().filter(|runner| sent_at < runner.announced_at) {
            if runner.public_key == hello.public_key {
                return Ok(HelloStep::Already);
            }
            next.retired.insert(key);
            return Ok(HelloStep::Late(Box::new(next)));
        }
        let since = match &self.runner {
            Some(runner) if runner.public_key == hello.public_key => runner.since,
            Some(runner) => {
                next.retired.insert(runner.public_key.key_id());
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

    /// Starts `workflow`: returns the changed install, and the serial for the orders of the workflow. An `exclusive`
    /// workflow holds the install until it ends.
    ///
    /// # Errors
    /// [`InstallError::Live`] when another workflow holds the install, [`InstallError::Disabled`].
    pub fn begin(&self, workflow: &WorkflowId, exclusive: bool) -> Result<(Self, u64), InstallError> {
        let mut next = self.clone();
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
        }
        next.next_serial += 1;
        Ok((next, self.next_serial))
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

/// Checks a new install's name against the existing ones.
///
/// # Errors
/// [`InstallError::Reserved`] or [`InstallError::Prefix`].
pub fn check_name<'a>(
    wanted: &InstallId,
    existing: impl IntoIterator<Item = &'a InstallId>,
) -> Result<(), InstallError> {
    // Names of an app's resources begin with `<install>-`, and names of a stack's resources with `fh-`.
    let of_stacks = wanted.as_str() == "fh" || wanted.as_str().starts_with("fh-");
    if of_stacks || RESERVED_INSTALLS.contains(&wanted.as_str()) {
        return Err(InstallError::Reserved(wanted.clone()));
    }
    for other in existing {
        let alike = other.as_str().starts_with(wanted.as_str()) || wanted.as_str().starts_with(other.as_str());
        if alike && other != wanted {
            return Err(InstallError::Prefix { wanted: wanted.clone(), existing: other.clone() });
        }
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn install() -> Install {
        let serves = Serves::App { app: "demo".parse().unwrap(), version: None };
        let (id, account) = ("globex".parse().unwrap(), "222222222222".parse().unwrap());
        Install::new(id, serves, account, "eu-west-1".into(), Timestamp::default(), key(9))
    }

    fn key(seed: u8) -> PublicKey {
        freehold_protocol::envelope::enrolment_key(
            &"acme".parse().unwrap(),
            &"globex".parse().unwrap(),
            &seed.to_string(),
        )
        .verifying_key()
        .into()
    }

    fn hello(seed: u8) -> Hello {
        let inputs = BTreeMap::from([("InputDomain".to_owned(), "globex.example".to_owned())]);
        Hello {
            public_key: key(seed),
            version: "0.1.0".into(),
            slots: 4,
            host: "i-1".into(),
            inputs,
            secrets: None,
            accepted_contract: None,
        }
    }

    /// Returns what `install` makes of `hello` when the queue took it at `sent_at`.
    fn hears(install: &Install, hello: &Hello, sent_at: u64) -> Result<HelloStep, InstallError> {
        install.on_hello(hello, Timestamp::from_millis(sent_at), Timestamp::from_millis(1000 + sent_at))
    }

    fn changed(step: Result<HelloStep, InstallError>) -> Install {
        match step {
            Ok(HelloStep::Changed(install)) => *install,
            other => panic!("{other:?}"),
        }
    }

    #[test]
    fn a_replaced_runner_never_comes_back() {
        let first = changed(hears(&install(), &hello(1), 1));
        let second = changed(hears(&first, &hello(2), 2));

        let back = hears(&second, &hello(1), 3);

        assert!(matches!(back, Err(InstallError::Retired { .. })));
        assert_eq!(hears(&second, &hello(2), 2), Ok(HelloStep::Already));
    }

    #[test]
    fn a_late_hello_of_a_dead_machine_retires_its_own_key_and_not_the_living_runner() {
        let living = changed(hears(&install(), &hello(2), 20));

        let Ok(HelloStep::Late(after)) = hears(&living, &hello(1), 10) else { panic!("the hello was not late") };

        assert_eq!(after.runner, living.runner);
        assert!(matches!(hears(&after, &hello(1), 30), Err(InstallError::Retired { .. })));
    }

    #[test]
    fn an_older_hello_of_the_same_runner_brings_back_neither_answers_nor_consent() {
        let newer = Hello { inputs: BTreeMap::new(), accepted_contract: Some(Digest::of(b"two")), ..hello(1) };
        let living = changed(hears(&install(), &newer, 20));

        assert_eq!(hears(&living, &hello(1), 10), Ok(HelloStep::Already));
    }

    #[test]
    fn a_runner_that_announces_itself_again_is_newer_than_what_was_sent_between() {
        let first = changed(hears(&install(), &hello(1), 10));
        let again = changed(hears(&first, &hello(1), 30));

        let between = hears(&again, &hello(2), 20);

        assert!(matches!(between, Ok(HelloStep::Late(_))));
        assert_eq!(again.runner.unwrap().since, first.runner.unwrap().since);
    }

    proptest::proptest! {
        /// The order in which the hellos of a history were sent decides, and not the order in which they arrive.
        #[test]
        fn the_newest_hello_wins_in_whatever_order_hellos_arrive(
            arrivals in proptest::sample::subsequence((0..6_u8).collect::<Vec<_>>(), 1..=6),
            seed in proptest::prelude::any::<u64>(),
        ) {
            let mut order = arrivals.clone();
            order.sort_by_key(|at| seed.rotate_left(u32::from(*at) * 11) % 97);
            let mut now = install();

            for at in order {
                // Machine 0 sends hellos 0 and 1, machine 1 sends 2 and 3, machine 2 sends 4 and 5.
                match hears(&now, &hello(at / 2), u64::from(at) + 1) {
                    Ok(HelloStep::Changed(next) | HelloStep::Late(next)) => now = *next,
                    Ok(HelloStep::Already) | Err(InstallError::Retired { .. }) => {}
                    Err(error) => panic!("{error}"),
                }
            }

            let newest = arrivals.iter().max().unwrap();
            let runner = now.runner.unwrap();
            assert_eq!((runner.public_key, runner.announced_at.as_millis()), (key(newest / 2), u64::from(*newest) + 1));
        }
    }

    #[test]
    fn a_hello_brings_the_customers_answers_and_another_one_replaces_them() {
        let first = changed(hears(&install(), &hello(1), 1));
        let other = BTreeMap::from([("InputZones".to_owned(), "3".to_owned())]);

        let second = changed(hears(&first, &Hello { inputs: other.clone(), ..hello(1) }, 2));

        assert_eq!(first.answers["InputDomain"], "globex.example");
        assert_eq!(second.answers, other);
        assert_eq!(second.runner.unwrap().since, first.runner.unwrap().since);
    }

    #[test]
    fn a_hello_brings_the_customers_consent_and_a_new_one_replaces_it() {
        let accepts = |text: &[u8]| Hello { accepted_contract: Some(Digest::of(text)), ..hello(1) };
        let first = changed(hears(&install(), &accepts(b"one"), 1));

        let second = changed(hears(&first, &accepts(b"two"), 2));

        assert_eq!((first.accepted_contract, install().accepted_contract), (Some(Digest::of(b"one")), None));
        assert_eq!(second.accepted_contract, Some(Digest::of(b"two")));
        assert_eq!(hears(&second, &accepts(b"two"), 2), Ok(HelloStep::Already));
    }

    #[test]
    fn a_second_live_deploy_is_refused() {
        let one = WorkflowId::derive("globex", "1");
        let two = WorkflowId::derive("globex", "2");
        let (held, first) = install().begin(&one, true).unwrap();

        let error = held.begin(&two, true).unwrap_err();

        assert_eq!((first, held.next_serial), (1, 2));
        assert_eq!(
            error.to_string(),
            format!("install `globex` is being worked on by `{one}`; wait for it or cancel it")
        );
        assert!(held.release(&one, None).begin(&two, true).is_ok());
    }

    #[test]
    fn a_name_that_is_a_prefix_of_another_is_refused_both_ways() {
        let existing: Vec<InstallId> = vec!["prod".parse().unwrap(), "stage-eu".parse().unwrap()];

        for bad in ["pro", "prod-2", "stage", "build", "fh", "fh-globex"] {
            assert!(check_name(&bad.parse().unwrap(), &existing).is_err(), "{bad}");
        }
        assert!(check_name(&"globex".parse().unwrap(), &existing).is_ok());
    }
}
