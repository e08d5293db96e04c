//! The credentials of a job: in an install, those of the role that its order names, or else of its mode's role; for a
//! build, the runner's own.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::{Duration, SystemTime};

use aws_config::SdkConfig;
use aws_credential_types::Credentials;
use aws_credential_types::provider::error::CredentialsError;
use aws_credential_types::provider::future::ProvideCredentials as Provide;
use aws_credential_types::provider::{ProvideCredentials, SharedCredentialsProvider};
use aws_sdk_sts::error::ProvideErrorMetadata;
use aws_sdk_sts::types::PolicyDescriptorType;
use freehold_protocol::order::{Mode, Order, Work};
use freehold_protocol::{Arn, RoleKey};
use tokio::sync::Mutex;

use crate::aws;
use crate::config::{Config, Role};
use crate::identity::denial::{StackState, Standing};
use crate::identity::session_policy;
use crate::job::Job;

/// Credentials are replaced this long before their expiry.
const REFRESH_BEFORE: Duration = Duration::from_secs(300);
/// The longest session, in seconds, that STS permits when a role assumes another role (role chaining).
const SESSION_SECS: i32 = 3_600;

/// Provides the credentials for each job.
#[derive(Debug)]
pub struct Roles {
    config: Arc<Config>,
    sts: aws_sdk_sts::Client,
    own: Option<SharedCredentialsProvider>,
    standing: Standing,
}

/// The reason why a job gets no credentials.
#[derive(Debug, Clone, PartialEq)]
pub enum NoCredentials {
    /// The customer has switched the runner off or revoked its session: the order waits in the queue.
    RunnerOff(String),
    /// The customer has switched the mode off: the attempt is blocked.
    ModeOff(String),
    /// The attempt fails.
    Failed(String),
}

/// The mode or the runner that the customer has switched off, with a sentence for people.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Disabled {
    Mode(String),
    Runner(String),
}

impl Roles {
    /// Returns the provider of credentials for the roles in `config`, which it assumes with the credentials of `sdk`.
    pub fn new(config: Arc<Config>, sdk: &SdkConfig, standing: Standing) -> Self {
        Self { config, sts: aws_sdk_sts::Client::new(sdk), own: sdk.credentials_provider(), standing }
    }

    /// Returns the credentials for `order`. This function has checked that they work; they are refreshed while the job
    /// uses them.
    ///
    /// # Errors
    /// [`NoCredentials`], with a sentence for people.
    pub async fn credentials(&self, order: &Order) -> Result<SharedCredentialsProvider, NoCredentials> {
        if self.config.role == Role::Build {
            let none = || NoCredentials::Failed("the build runner has no AWS credentials".to_owned());
            return self.own.clone().ok_or_else(none);
        }
        let session = session(order, &self.config, self.sts.clone())?;
        match session.current().await {
            Ok(_) => Ok(SharedCredentialsProvider::new(session)),
            Err(AssumeError::Denied(why)) => Err(self.denied(&session, &why).await),
            Err(AssumeError::Failed(why)) => {
                Err(NoCredentials::Failed(format!("cannot assume role `{}`: {why}", session.role)))
            }
        }
    }

    /// Returns the switched-off mode or runner if that is why the job's role can no longer be assumed, otherwise
    /// `None`.
    pub async fn find_disabled(&self, order: &Order) -> Option<Disabled> {
        if self.config.role == Role::Build {
            return self.standing.switched_off().await.map(Disabled::Runner);
        }
        match self.credentials(order).await {
            Err(NoCredentials::RunnerOff(reason)) => Some(Disabled::Runner(reason)),
            Err(NoCredentials::ModeOff(reason)) => Some(Disabled::Mode(reason)),
            Ok(_) | Err(NoCredentials::Failed(_)) => None,
        }
    }

    /// Finds out why the runner may not assume the role of `session`. STS returns the same error for every cause, so this
    /// function reads the stack.
    async fn denied(&self, session: &RoleSession, why: &str) -> NoCredentials {
        let (switch, role, stack) = (&session.switch, &session.role, self.standing.stack_name());
        match self.standing.stack().await {
            StackState::Launched(parameters) | StackState::Changing(parameters) => {
                if let Some(off) = self.standing.off(&parameters) {
                    return NoCredentials::RunnerOff(off);
                }
                match switch.is_off(&parameters) {
                    Some(parameter) => NoCredentials::ModeOff(
                        switch.off(&format!("parameter `{parameter}` of install stack `{stack}` does not permit it")),
                    ),
                    None => NoCredentials::Failed(format!(
                        "role `{role}` refuses this runner although install stack `{stack}` has the role switched on \
                         ({why}); check who may assume the role, and that no policy of your organization denies this"
                    )),
                }
            }
            StackState::Gone => NoCredentials::Failed(format!(
                "role `{role}` cannot be assumed: install stack `{stack}` was deleted, and its roles with it; launch \
                 the stack again"
            )),
            StackState::Unreadable(reason) => match self.standing.revoked().await {
                Some(revoked) => NoCredentials::RunnerOff(revoked),
                None => NoCredentials::ModeOff(format!(
                    "{what} is probably switched off: role `{role}` refuses this runner ({why}), and its switch cannot be \
                 looked up, because install stack `{stack}` cannot be read ({reason}); to switch {what} on, {}",
                    switch.how_to_switch_on(),
                    what = switch.what
                )),
            },
        }
    }
}

/// Returns credentials of `mode` for `job`, which may be another mode than the job's own. Returns `None` when the install
/// has no role for the mode, or the mode is switched off. `own` are the credentials of the runner.
///
/// # Errors
/// The reason why STS gives no session, for people.
pub async fn session_in(job: &Job, mode: Mode, own: &SdkConfig) -> Result<Option<SharedCredentialsProvider>, String> {
    if mode == job.order.mode && job.order.role.is_none() {
        return Ok(Some(job.credentials.clone()));
    }
    let order = Order { mode, role: None, ..(*job.order).clone() };
    let Ok(session) = session(&order, &job.config, aws_sdk_sts::Client::new(own)) else { return Ok(None) };
    match session.current().await {
        Ok(_) => Ok(Some(SharedCredentialsProvider::new(session))),
        Err(AssumeError::Denied(_)) => Ok(None),
        Err(AssumeError::Failed(why)) => Err(format!("cannot assume role `{}`: {why}", session.role)),
    }
}

fn session(order: &Order, config: &Config, sts: aws_sdk_sts::Client) -> Result<RoleSession, NoCredentials> {
    let switch = Switch::of(order);
    let role = match &order.role {
        Some(key) => config.roles.get(key).map(String::as_str),
        None => config.modes.role(order.mode),
    };
    let Some(role) = role else {
        return Err(NoCredentials::ModeOff(switch.off("this install has no role for it")));
    };
    let (role, name) = (role.to_owned(), order.job.to_string());
    let partition = Arn::parse(&role).map_or("aws", |arn| arn.partition);
    let (managed, policy) = if only_reads(&order.work) {
        let (managed, policy) = session_policy::read_only(partition, config.bucket.as_deref(), &order.work);
        (Some(managed), Some(policy))
    } else {
        (None, config.bucket.as_ref().map(|bucket| session_policy::of(order, partition, bucket)))
    };
    Ok(RoleSession { sts, switch, role, name, managed, policy, cached: Arc::default() })
}

/// Returns whether the session for `work` is limited to reads, because the work runs the app's programs without waiting
/// for a change window.
fn only_reads(work: &Work) -> bool {
    matches!(work, Work::DetectDrift(_)) || matches!(work, Work::Health(work) if work.runs_commands())
}

/// A session of one role for one job.
#[derive(Debug, Clone)]
struct RoleSession {
    sts: aws_sdk_sts::Client,
    switch: Switch,
    role: String,
    name: String,
    /// The ARN of a policy of AWS that limits the permissions of the role further; absent for none.
    managed: Option<String>,
    /// The session policy, which limits the permissions of the role further. With `managed`, the session may do what
    /// either of the two policies permits.
    policy: Option<String>,
    cached: Arc<Mutex<Option<Credentials>>>,
}

#[derive(Debug)]
enum AssumeError {
    Denied(String),
    Failed(String),
}

impl RoleSession {
    async fn current(&self) -> Result<Credentials, AssumeError> {
        let mut cached = self.cached.lock().await;
        if let Some(credentials) = cached.as_ref().filter(|credentials| is_fresh(credentials)) {
            return Ok(credentials.clone());
        }
        let credentials = self.assume().await?;
        *cached = Some(credentials.clone());
        Ok(credentials)
    }

    async fn assume(&self) -> Result<Credentials, AssumeError> {
        let call =
            self.sts.assume_role().role_arn(&self.role).role_session_name(&self.name).set_policy(self.policy.clone());
        let managed = self.managed.iter().map(|arn| PolicyDescriptorType::builder().arn(arn).build());
        let call = call.set_policy_arns(self.managed.is_some().then(|| managed.collect()));
        let answer = call.duration_seconds(SESSION_SECS).send().await.map_err(|error| {
            let (denied, text) = (aws::is_denied(error.code()), aws::explain(&error));
            if denied { AssumeError::Denied(text) } else { AssumeError::Failed(text) }
        })?;
        let given =
            answer.credentials.ok_or_else(|| AssumeError::Failed("no credentials in the response".to_owned()))?;
        let expires = SystemTime::try_from(given.expiration)
            .map_err(|error| AssumeError::Failed(format!("the expiry in the response is not a time: {error}")))?;
        let token = Some(given.session_token);
        Ok(Credentials::new(given.access_key_id, given.secret_access_key, token, Some(expires), "FreeholdMode"))
    }
}

impl ProvideCredentials for RoleSession {
    fn provide_credentials<'a>(&'a self) -> Provide<'a>
    where
        Self: 'a,
    {
        Provide::new(async {
            self.current().await.map_err(|error| match error {
                AssumeError::Denied(reason) | AssumeError::Failed(reason) => CredentialsError::provider_error(reason),
            })
        })
    }
}

fn is_fresh(credentials: &Credentials) -> bool {
    credentials.expiry().is_none_or(|expiry| expiry > SystemTime::now() + REFRESH_BEFORE)
}

/// A switch in the install stack by which the customer permits a mode or a role.
#[derive(Debug, Clone)]
pub(crate) struct Switch {
    /// The name of the switched mode or role, such as "mode `provision`".
    what: String,
    /// The name of the stack parameter.
    parameter: String,
    ends: bool,
}

impl Switch {
    fn of(order: &Order) -> Self {
        order.role.as_ref().map_or_else(|| Self::of_mode(order.mode), Self::of_role)
    }

    /// Returns the switch of a mode.
    pub(crate) fn of_mode(mode: Mode) -> Self {
        let (what, parameter) = (format!("mode `{}`", mode.as_str()), parameter(mode).to_owned());
        Self { what, parameter, ends: false }
    }

    /// Returns the switch of a role that the app itself defines.
    pub(crate) fn of_role(key: &RoleKey) -> Self {
        Self { what: format!("role `{key}`"), parameter: key.switch(), ends: key.is_break_glass() }
    }

    /// Returns the name of the switched mode or role, such as "mode `provision`".
    pub(crate) fn what(&self) -> &str {
        &self.what
    }

    /// Returns the parameter that switches the role off, if there is one. Only call this when the role denied the
    /// runner.
    pub(crate) fn is_off(&self, parameters: &BTreeMap<String, String>) -> Option<&str> {
        let value = parameters.get(&self.parameter)?;
        match (value.as_str(), self.ends) {
            ("false", _) => Some(&self.parameter),
            // The end time has passed: this is the only reason for which a break-glass role that is switched on is denied.
            (_, true) => Some("BreakGlassUntil"),
            (_, false) => None,
        }
    }

    /// Returns a sentence for people that names the switched-off mode or role and the stack parameter that switches it
    /// on.
    fn off(&self, why: &str) -> String {
        format!("{} is switched off: {why}; to allow it, {}", self.what, self.how_to_switch_on())
    }

    /// Returns what the customer does to switch the mode or role on.
    pub(crate) fn how_to_switch_on(&self) -> String {
        let until = if self.ends { ", and `BreakGlassUntil` to a time in the future" } else { "" };
        format!("set parameter `{}` of the install stack to `true`{until}", self.parameter)
    }
}

const fn parameter(mode: Mode) -> &'static str {
    match mode {
        Mode::Provision => "EnableProvision",
        Mode::Maintenance => "EnableMaintenance",
        Mode::Deprovision => "EnableDeprovision",
        Mode::BreakGlass => "EnableBreakGlass",
    }
}

#[cfg(test)]
mod tests {
    use freehold_protocol::order::DetectDrift;

    use super::*;
    use crate::testing::{AccountDouble, config, order};

    fn roles(account: AccountDouble) -> Roles {
        let sdk = SdkConfig::builder().behavior_version(aws_config::BehaviorVersion::latest()).build();
        let config = config("/state", Role::Install);
        let standing = Standing::new(&config, Arc::new(account));
        Roles::new(Arc::new(config), &sdk, standing)
    }

    fn blocked(none: NoCredentials) -> String {
        match none {
            NoCredentials::ModeOff(reason) => reason,
            other => panic!("{other:?}"),
        }
    }

    /// What is said of an order for mode `maintenance` whose role refuses the runner.
    async fn denied(account: AccountDouble) -> NoCredentials {
        let roles = roles(account);
        let role = "arn:aws:iam::222222222222:role/fh-acme--globex-prod--maintenance".to_owned();
        let switch = Switch::of(&order(1, 7));
        let session = RoleSession {
            sts: roles.sts.clone(),
            switch,
            role,
            name: "job".to_owned(),
            managed: None,
            policy: None,
            cached: Arc::default(),
        };
        roles.denied(&session, "not for you").await
    }

    #[tokio::test]
    async fn an_order_that_a_revoked_session_cannot_do_waits_and_does_not_end_as_blocked() {
        let account = AccountDouble::with("RevokeSessionsBefore", "2026-11-27T16:47:34Z");
        account.revoke();

        let NoCredentials::RunnerOff(reason) = denied(account).await else { panic!("not off") };

        assert!(reason.starts_with("the customer has revoked the session of this runner: "), "{reason}");
    }

    #[test]
    fn a_drift_check_and_a_command_that_asks_for_health_have_a_session_that_only_reads() {
        let sdk = SdkConfig::builder().behavior_version(aws_config::BehaviorVersion::latest()).build();
        let mut config = config("/state", Role::Install);
        let role = "arn:aws-us-gov:iam::222222222222:role/fh--maintenance";
        config.modes = serde_json::from_value(serde_json::json!({ "maintenance": role })).unwrap();
        let of = |work: Work| {
            session(&Order { work, ..order(1, 7) }, &config, aws_sdk_sts::Client::new(&sdk))
                .unwrap_or_else(|_| panic!())
        };
        let deploy = order(1, 7).work;

        let check = of(Work::DetectDrift(DetectDrift { what: Box::new(deploy.clone()) }));

        assert_eq!(check.managed.as_deref(), Some("arn:aws-us-gov:iam::aws:policy/ReadOnlyAccess"));
        let more: serde_json::Value = serde_json::from_str(&check.policy.unwrap()).unwrap();
        let allowed = more["Statement"].as_array().unwrap().iter().filter(|one| one["Effect"] == "Allow");
        let actions: Vec<_> = allowed.map(|one| one["Action"].clone()).collect();
        assert_eq!(actions, [serde_json::json!(["kms:Decrypt", "secretsmanager:GetSecretValue"])]);
        assert_eq!(of(deploy).managed, None);
        let health = |probe: serde_json::Value| {
            let probes = [probe];
            let work = serde_json::json!({ "kind": "health", "component": "web", "asks": { "of": "nothing" }, "probes": probes,
                "hold_secs": 0, "limit_secs": 0 });
            of(serde_json::from_value(work).unwrap()).managed
        };
        assert_eq!(health(serde_json::json!({ "name": "up", "type": "exec", "command": ["check"] })), check.managed,);
        assert_eq!(health(serde_json::json!({ "name": "up", "type": "tcp", "url": "a.example:1" })), None);
    }

    #[tokio::test]
    async fn a_mode_without_a_role_is_blocked_and_the_sentence_names_the_parameter() {
        let roles = roles(AccountDouble::with("EnableMaintenance", "true"));

        let reason = blocked(roles.credentials(&order(1, 7)).await.unwrap_err());

        assert!(reason.contains("`maintenance`") && reason.contains("`EnableMaintenance`"), "{reason}");
    }

    #[tokio::test]
    async fn a_break_glass_role_that_is_not_there_is_blocked_and_the_sentence_names_its_end() {
        let roles = roles(AccountDouble::with("EnableBreakGlass", "true"));
        let order = Order { mode: Mode::BreakGlass, role: Some("break-glass".parse().unwrap()), ..order(1, 7) };

        let reason = blocked(roles.credentials(&order).await.unwrap_err());

        assert!(reason.starts_with("role `break-glass` is switched off: "), "{reason}");
        assert!(
            reason.ends_with(
                "`EnableBreakGlass` of the install stack to `true`, and `BreakGlassUntil` to a time in the future"
            ),
            "{reason}"
        );
    }

    #[tokio::test]
    async fn a_mode_that_the_stack_has_off_is_off() {
        let reason = blocked(denied(AccountDouble::with("EnableMaintenance", "false")).await);

        assert_eq!(
            reason,
            "mode `maintenance` is switched off: parameter `EnableMaintenance` of install stack `freehold-acme--globex-prod` does \
             not permit it; to allow it, set parameter `EnableMaintenance` of the install stack to `true`"
        );
    }

    #[tokio::test]
    async fn a_role_that_went_with_its_stack_is_gone_and_not_off() {
        let NoCredentials::Failed(reason) = denied(AccountDouble::new(StackState::Gone, Err("no"))).await else {
            panic!("not failed")
        };

        assert!(reason.contains("install stack `freehold-acme--globex-prod` was deleted"), "{reason}");
        assert!(!reason.contains("switched off"), "{reason}");
    }

    #[tokio::test]
    async fn a_mode_whose_stack_cannot_be_read_may_be_off() {
        let account = AccountDouble::new(StackState::Unreadable("Throttling: slow down".to_owned()), Err("no"));

        let reason = blocked(denied(account).await);

        assert_eq!(
            reason,
            "mode `maintenance` is probably switched off: role \
             `arn:aws:iam::222222222222:role/fh-acme--globex-prod--maintenance` refuses this runner (not for you), and \
             its switch cannot be looked up, because install stack `freehold-acme--globex-prod` cannot be read \
             (Throttling: slow down); to switch mode `maintenance` on, set parameter `EnableMaintenance` of the \
             install stack to `true`"
        );
    }

    #[tokio::test]
    async fn a_mode_of_a_runner_that_is_off_waits() {
        let none = denied(AccountDouble::with("EnableRunner", "false")).await;

        assert!(matches!(none, NoCredentials::RunnerOff(reason) if reason.contains("`EnableRunner`")));
    }

    #[tokio::test]
    async fn a_role_that_refuses_while_it_is_on_fails_and_says_so() {
        let none = denied(AccountDouble::with("EnableMaintenance", "true")).await;

        let NoCredentials::Failed(reason) = none else { panic!("{none:?}") };
        assert!(
            reason.contains("although install stack `freehold-acme--globex-prod` has the role switched on"),
            "{reason}"
        );
    }
}
