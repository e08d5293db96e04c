//! The credentials of a job: those of the mode's role for an install, and the runner's own for builds.

use std::sync::Arc;
use std::time::{Duration, SystemTime};

use aws_config::SdkConfig;
use aws_credential_types::Credentials;
use aws_credential_types::provider::error::CredentialsError;
use aws_credential_types::provider::future::ProvideCredentials as Provide;
use aws_credential_types::provider::{ProvideCredentials, SharedCredentialsProvider};
use aws_sdk_sts::error::ProvideErrorMetadata;
use freehold_protocol::order::{Mode, Order};
use freehold_protocol::report::{Block, Outcome};
use tokio::sync::Mutex;

use crate::aws;
use crate::config::{Config, Role};

/// Credentials are replaced this long before they expire.
const REFRESH_BEFORE: Duration = Duration::from_secs(300);
/// The longest session that a role assumed from a role may have (STS, role chaining).
const SESSION_SECS: i32 = 3_600;

/// Gives each job its credentials.
#[derive(Debug)]
pub struct Roles {
    config: Arc<Config>,
    sts: aws_sdk_sts::Client,
    own: Option<SharedCredentialsProvider>,
}

/// Why a job has no credentials.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum NoCredentials {
    /// The customer has the mode switched off.
    ModeDisabled(String),
    /// Anything else.
    Failed(String),
}

impl NoCredentials {
    /// Returns the outcome of an attempt that could not start for this reason.
    pub fn outcome(self) -> Outcome {
        match self {
            Self::ModeDisabled(reason) => Outcome::Blocked { block: Block::ModeDisabled, reason },
            Self::Failed(reason) => Outcome::Failed { reason, partial: false },
        }
    }
}

impl Roles {
    /// Returns the roles of `config`, assumed with the credentials of `sdk`.
    pub fn new(config: Arc<Config>, sdk: &SdkConfig) -> Self {
        Self { config, sts: aws_sdk_sts::Client::new(sdk), own: sdk.credentials_provider() }
    }

    /// Returns the credentials for `order`. They work now, and are refreshed while they are used.
    ///
    /// # Errors
    /// [`NoCredentials`], with a sentence for people.
    pub async fn credentials(&self, order: &Order) -> Result<SharedCredentialsProvider, NoCredentials> {
        if self.config.role == Role::Build {
            let none = || NoCredentials::Failed("the build runner has no AWS credentials".to_owned());
            return self.own.clone().ok_or_else(none);
        }
        let session = self.session(order)?;
        session.current().await.map_err(|error| error.explain(&session))?;
        Ok(SharedCredentialsProvider::new(session))
    }

    /// Returns why the mode's role can no longer be assumed, if it is switched off.
    pub async fn disabled(&self, order: &Order) -> Option<String> {
        if self.config.role == Role::Build {
            return None;
        }
        match self.credentials(order).await {
            Err(NoCredentials::ModeDisabled(reason)) => Some(reason),
            Ok(_) | Err(NoCredentials::Failed(_)) => None,
        }
    }

    fn session(&self, order: &Order) -> Result<RoleSession, NoCredentials> {
        let switch = Switch::of(order);
        let role = match &order.role {
            Some(key) => self.config.roles.get(key).map(String::as_str),
            None => self.config.modes.role(order.mode),
        };
        let Some(role) = role else {
            return Err(NoCredentials::ModeDisabled(switch.off("this install has no role for it")));
        };
        let (sts, role, name) = (self.sts.clone(), role.to_owned(), order.job.to_string());
        Ok(RoleSession { sts, switch, role, name, cached: Arc::default() })
    }
}

/// One role assumed for one job.
#[derive(Debug, Clone)]
struct RoleSession {
    sts: aws_sdk_sts::Client,
    switch: Switch,
    role: String,
    name: String,
    cached: Arc<Mutex<Option<Credentials>>>,
}

#[derive(Debug)]
enum AssumeError {
    Denied(String),
    Failed(String),
}

impl AssumeError {
    fn explain(self, session: &RoleSession) -> NoCredentials {
        match self {
            Self::Denied(reason) => NoCredentials::ModeDisabled(session.switch.off(&reason)),
            Self::Failed(reason) => NoCredentials::Failed(format!("cannot assume role `{}`: {reason}", session.role)),
        }
    }
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
        let call = self.sts.assume_role().role_arn(&self.role).role_session_name(&self.name);
        let answer = call.duration_seconds(SESSION_SECS).send().await.map_err(|error| {
            let (denied, text) = (aws::is_denied(error.code()), aws::explain(&error));
            if denied { AssumeError::Denied(text) } else { AssumeError::Failed(text) }
        })?;
        let given = answer.credentials.ok_or_else(|| AssumeError::Failed("no credentials in the answer".to_owned()))?;
        let expires = SystemTime::try_from(given.expiration)
            .map_err(|error| AssumeError::Failed(format!("the expiry in the answer is not a time: {error}")))?;
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

/// What the customer switches on and off.
#[derive(Debug, Clone)]
struct Switch {
    /// Such as "mode `provision`".
    what: String,
    /// The parameter of the install stack.
    parameter: String,
    ends: bool,
}

impl Switch {
    fn of(order: &Order) -> Self {
        match &order.role {
            Some(key) => Self { what: format!("role `{key}`"), parameter: key.switch(), ends: key.is_break_glass() },
            None => Self {
                what: format!("mode `{}`", order.mode.as_str()),
                parameter: parameter(order.mode).to_owned(),
                ends: false,
            },
        }
    }

    /// Returns the sentence for people: what is off, and which parameter of the install stack switches it on.
    fn off(&self, why: &str) -> String {
        let until = if self.ends { ", and `BreakGlassUntil` to a moment that is still to come" } else { "" };
        format!(
            "{} is switched off: {why}; to allow it, set parameter `{}` of the install stack to `true`{until}",
            self.what, self.parameter
        )
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
    use super::*;
    use crate::testing::{config, order};

    #[tokio::test]
    async fn a_mode_without_a_role_is_blocked_and_the_sentence_names_the_parameter() {
        let sdk = SdkConfig::builder().behavior_version(aws_config::BehaviorVersion::latest()).build();
        let roles = Roles::new(Arc::new(config("/state", Role::Install)), &sdk);

        let outcome = roles.credentials(&order(1, 7)).await.unwrap_err().outcome();

        let Outcome::Blocked { block: Block::ModeDisabled, reason } = outcome else { panic!("{outcome:?}") };
        assert!(reason.contains("`maintenance`") && reason.contains("`EnableMaintenance`"), "{reason}");
    }

    #[tokio::test]
    async fn a_break_glass_role_that_is_not_there_is_blocked_and_the_sentence_names_its_end() {
        let sdk = SdkConfig::builder().behavior_version(aws_config::BehaviorVersion::latest()).build();
        let roles = Roles::new(Arc::new(config("/state", Role::Install)), &sdk);
        let order = Order { mode: Mode::BreakGlass, role: Some("break-glass".parse().unwrap()), ..order(1, 7) };

        let outcome = roles.credentials(&order).await.unwrap_err().outcome();

        let Outcome::Blocked { block: Block::ModeDisabled, reason } = outcome else { panic!("{outcome:?}") };
        assert!(reason.starts_with("role `break-glass` is switched off: "), "{reason}");
        assert!(reason.ends_with("`EnableBreakGlass` of the install stack to `true`, and `BreakGlassUntil` to a moment that is still to come"), "{reason}");
    }
}
