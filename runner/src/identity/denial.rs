//! Explains why AWS denies this runner's calls: compares the runner's role with the required one, reads the switches in
//! the install stack, and finds out whether the customer has revoked the runner's session.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::Duration;

use async_trait::async_trait;
use aws_config::SdkConfig;
use aws_sdk_cloudformation::types::StackStatus;
use aws_sdk_sts::error::ProvideErrorMetadata as _;

use crate::aws;
use crate::config::{Config, Role};

/// A runner ends when one of its queues has refused it for this long. Its stack or its install then does not exist any
/// more, or its permissions are wrong.
pub(crate) const DENIED_LIMIT: Duration = Duration::from_secs(15 * 60);
/// The stack parameter that switches the runner off (kill switch).
pub const KILL_SWITCH: &str = "EnableRunner";
/// The stack parameter that revokes the sessions that began before its time.
const REVOKED_BEFORE: &str = "RevokeSessionsBefore";
/// The time limit of each AWS call for an explanation.
const DEADLINE: Duration = Duration::from_secs(20);

/// The state of the install stack, and its parameters.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum StackState {
    /// The stack exists and has these parameters.
    Launched(BTreeMap<String, String>),
    /// The stack exists, but its last change has not ended or has failed. The stack names these parameters, and its
    /// resources may still follow the parameters from before the change.
    Changing(BTreeMap<String, String>),
    /// The stack is being deleted, or does not exist.
    Gone,
    /// The runner may not read the stack, or cannot read it at the moment, for this reason.
    Unreadable(String),
}

/// The AWS account of the runner.
#[async_trait]
pub trait Account: Send + Sync + std::fmt::Debug {
    /// Returns the state of the stack called `name`.
    async fn stack(&self, name: &str) -> StackState;

    /// Returns the state of the stack called `name`, read with a session that begins now.
    async fn stack_by_a_new_session(&self, name: &str) -> StackState;

    /// Returns the ARN that belongs to the credentials in use.
    ///
    /// # Errors
    /// The reason, when AWS does not accept the credentials.
    async fn caller(&self) -> Result<String, String>;
}

/// The implementation of [`Account`] that calls AWS.
#[derive(Debug)]
pub struct AwsAccount {
    sts: aws_sdk_sts::Client,
    formation: aws_sdk_cloudformation::Client,
    region: String,
}

impl AwsAccount {
    /// Returns the account of the credentials of `sdk`.
    pub fn new(sdk: &SdkConfig) -> Self {
        let region = sdk.region().map(ToString::to_string).unwrap_or_default();
        Self { sts: aws_sdk_sts::Client::new(sdk), formation: aws_sdk_cloudformation::Client::new(sdk), region }
    }
}

#[async_trait]
impl Account for AwsAccount {
    async fn stack(&self, name: &str) -> StackState {
        read(&self.formation, name).await
    }

    async fn stack_by_a_new_session(&self, name: &str) -> StackState {
        // New settings make the client look its credentials up again; only clients of the same settings share a
        // session.
        let sdk = aws::sdk_config(&self.region, None).await;
        read(&aws_sdk_cloudformation::Client::new(&sdk), name).await
    }

    async fn caller(&self) -> Result<String, String> {
        let answer = self.sts.get_caller_identity().send().await;
        let answer = answer.map_err(|error| without_announcement(&aws::explain(&error)).to_owned())?;
        answer.arn.ok_or_else(|| "the response of AWS STS contains no ARN".to_owned())
    }
}

/// Returns `reason` without the SDK's text before AWS's own message, for example when AWS denies a profile its role.
fn without_announcement(reason: &str) -> &str {
    reason.strip_prefix("an error occurred while loading credentials: ").unwrap_or(reason)
}

async fn read(formation: &aws_sdk_cloudformation::Client, name: &str) -> StackState {
    let stacks = match formation.describe_stacks().stack_name(name).send().await {
        Ok(answer) => answer.stacks.unwrap_or_default(),
        Err(error) if error.message().is_some_and(|text| text.contains("does not exist")) => {
            return StackState::Gone;
        }
        Err(error) => return StackState::Unreadable(aws::explain(&error)),
    };
    let Some(stack) = stacks.into_iter().next() else { return StackState::Gone };
    let parameters = stack.parameters.unwrap_or_default().into_iter();
    let parameters = parameters.filter_map(|one| Some((one.parameter_key?, one.parameter_value?))).collect();
    state_of(stack.stack_status.as_ref().map_or("", StackStatus::as_str), parameters)
}

/// Returns the state of a stack with this status (AWS CloudFormation User Guide, "Stack status codes"). During the
/// cleanup after an update (`UPDATE_COMPLETE_CLEANUP_IN_PROGRESS`), the resources follow the parameters already.
fn state_of(status: &str, parameters: BTreeMap<String, String>) -> StackState {
    if status.starts_with("DELETE_") {
        return StackState::Gone;
    }
    if status.is_empty() || status.contains("_COMPLETE") {
        return StackState::Launched(parameters);
    }
    StackState::Changing(parameters)
}

/// The reason why AWS denied a call of the runner.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Refused {
    /// The customer has switched the runner off.
    SwitchedOff(String),
    /// The install stack is being deleted, or is gone.
    StackGone(String),
    /// The customer has revoked the runner's session, and a new session has permissions.
    Revoked(String),
    /// AWS denied the call for another reason.
    Otherwise(String),
}

/// Finds out whether the runner is switched on in its account, and whether it has the right credentials.
#[derive(Debug, Clone)]
pub struct Standing {
    account: Arc<dyn Account>,
    /// The name of the install stack; `None` for a build runner, which has no install stack.
    stack: Option<String>,
    needed: String,
}

impl Standing {
    /// Returns a value that examines the runner of `config` in `account`.
    pub fn new(config: &Config, account: Arc<dyn Account>) -> Self {
        let stack = (config.role == Role::Install).then(|| config.stack.clone());
        Self { account, stack, needed: config.needed_role() }
    }

    /// Returns the name of the install stack, or an empty text for a build runner.
    pub fn stack_name(&self) -> &str {
        self.stack.as_deref().unwrap_or_default()
    }

    /// Returns the state of the install stack.
    pub async fn stack(&self) -> StackState {
        let Some(name) = &self.stack else {
            return StackState::Unreadable("a build runner has no install stack".to_owned());
        };
        in_time(self.account.stack(name)).await
    }

    /// Returns a sentence if a new session may read the stack. Only call this when the present session may not read the
    /// stack: that session is then revoked.
    pub async fn revoked(&self) -> Option<String> {
        let name = self.stack.as_ref()?;
        let seen = in_time(self.account.stack_by_a_new_session(name)).await;
        let (StackState::Launched(parameters) | StackState::Changing(parameters)) = seen else { return None };
        let before = parameters.get(REVOKED_BEFORE).map_or("", String::as_str);
        Some(format!(
            "the customer has revoked the session of this runner: by parameter `{REVOKED_BEFORE}` of install stack `{name}`, \
             sessions that began before {before} have no permissions"
        ))
    }

    /// Returns a sentence about the kill switch when the customer has switched the runner off, otherwise `None`.
    pub async fn switched_off(&self) -> Option<String> {
        match self.stack().await {
            StackState::Launched(parameters) | StackState::Changing(parameters) => self.off(&parameters),
            StackState::Gone | StackState::Unreadable(_) => None,
        }
    }

    /// Returns a sentence about the kill switch when the stack's `parameters` switch the runner off, otherwise `None`.
    pub fn off(&self, parameters: &BTreeMap<String, String>) -> Option<String> {
        let is_off = parameters.get(KILL_SWITCH).is_some_and(|value| value == "false");
        is_off.then(|| {
            format!(
                "the customer has switched this runner off: parameter `{KILL_SWITCH}` of install stack `{}` is `false`; \
                 orders wait until it is `true`",
                self.stack_name()
            )
        })
    }

    /// Returns a sentence about an install stack that is being deleted, or is gone.
    pub fn gone(&self) -> String {
        format!("install stack `{}` is being deleted or does not exist any more", self.stack_name())
    }

    /// Explains why AWS denied a call. `why` is AWS's own message.
    pub async fn refused(&self, why: &str) -> Refused {
        let state = self.stack().await;
        match &state {
            StackState::Launched(parameters) | StackState::Changing(parameters) => {
                if let Some(off) = self.off(parameters) {
                    return Refused::SwitchedOff(off);
                }
            }
            StackState::Unreadable(_) => {
                if let Some(revoked) = self.revoked().await {
                    return Refused::Revoked(revoked);
                }
            }
            StackState::Gone => return Refused::StackGone(format!("{}: {why}", self.gone())),
        }
        Refused::Otherwise(match (self.role().await, &self.stack, state) {
            (Ok(arn), Some(stack), StackState::Unreadable(_)) => format!(
                "{why}; this runner has the right role, `{arn}`, but it may not read install stack `{stack}` either, even with \
                 newly fetched credentials: check that the install still exists; if the customer has set \
                 `{REVOKED_BEFORE}`, give the runner a session that began later"
            ),
            (Ok(arn), ..) => {
                let owner = if self.stack.is_some() { "install" } else { "tenant" };
                format!("{why}; this runner has the right role, `{arn}`, so check that the {owner} still exists")
            }
            (Err(problem), ..) => format!("{problem}; the message of AWS was: {why}"),
        })
    }

    /// Returns the ARN of the runner's credentials when they belong to the required role.
    ///
    /// # Errors
    /// A sentence that names the runner's actual role and the required one.
    pub async fn role(&self) -> Result<String, String> {
        let needed = &self.needed;
        let caller = tokio::time::timeout(DEADLINE, self.account.caller()).await;
        let caller = caller.unwrap_or_else(|_| Err("STS did not answer in time".to_owned()));
        match caller {
            Ok(arn) if role_name(&arn) == Some(needed) => Ok(arn),
            Ok(arn) => Err(format!(
                "this runner has the credentials of `{arn}` and needs those of role `{needed}`: give its machine that role's \
                 instance profile, or assume the role in its AWS profile"
            )),
            Err(reason) => {
                let switch = self.stack.as_ref().map(|stack| {
                    format!(
                        ", or, if parameter `{KILL_SWITCH}` of install stack `{stack}` is `false`, have the customer set \
                         it to `true`: until then nobody may assume the role"
                    )
                });
                Err(format!(
                    "AWS does not accept the credentials of this runner ({reason}); give it credentials of role \
                     `{needed}` by an instance profile or AWS_PROFILE{}",
                    switch.unwrap_or_default()
                ))
            }
        }
    }
}

async fn in_time(state: impl Future<Output = StackState>) -> StackState {
    let state = tokio::time::timeout(DEADLINE, state).await;
    state.unwrap_or_else(|_| StackState::Unreadable("CloudFormation did not answer in time".to_owned()))
}

/// Returns the name of the role that the session with this ARN belongs to.
fn role_name(arn: &str) -> Option<&str> {
    arn.split_once(":assumed-role/")?.1.split('/').next()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::testing::{AccountDouble, config};

    fn standing(account: AccountDouble) -> Standing {
        Standing::new(&config("/state", Role::Install), Arc::new(account))
    }

    fn launched(runner: &str) -> StackState {
        StackState::Launched([(KILL_SWITCH.to_owned(), runner.to_owned())].into())
    }

    #[test]
    fn a_stack_follows_its_parameters_after_the_change_and_not_before() {
        let is_launched = |status: &str| match state_of(status, BTreeMap::new()) {
            StackState::Launched(_) => Some(true),
            StackState::Changing(_) => Some(false),
            StackState::Gone | StackState::Unreadable(_) => None,
        };

        for (status, expected) in [
            ("CREATE_IN_PROGRESS", Some(false)),
            ("CREATE_COMPLETE", Some(true)),
            ("UPDATE_IN_PROGRESS", Some(false)),
            ("UPDATE_COMPLETE_CLEANUP_IN_PROGRESS", Some(true)),
            ("UPDATE_COMPLETE", Some(true)),
            ("UPDATE_FAILED", Some(false)),
            ("UPDATE_ROLLBACK_IN_PROGRESS", Some(false)),
            ("UPDATE_ROLLBACK_FAILED", Some(false)),
            ("UPDATE_ROLLBACK_COMPLETE_CLEANUP_IN_PROGRESS", Some(true)),
            ("UPDATE_ROLLBACK_COMPLETE", Some(true)),
            ("DELETE_IN_PROGRESS", None),
            ("DELETE_FAILED", None),
        ] {
            assert_eq!(is_launched(status), expected, "{status}");
        }
    }

    #[tokio::test]
    async fn a_kill_switch_counts_while_the_stack_is_being_changed() {
        let parameters = [(KILL_SWITCH.to_owned(), "false".to_owned())].into();
        let account = AccountDouble::new(StackState::Changing(parameters), Ok("arn:aws:iam::222222222222:root"));

        let refused = standing(account).refused("no").await;

        assert!(matches!(&refused, Refused::SwitchedOff(text) if text.contains("`EnableRunner`")), "{refused:?}");
    }

    #[tokio::test]
    async fn a_runner_that_is_switched_off_is_told_the_parameter_and_the_stack() {
        let account = AccountDouble::new(launched("false"), Ok("arn:aws:iam::222222222222:root"));

        let Refused::SwitchedOff(text) = standing(account).refused("no").await else { panic!("not off") };

        assert!(text.contains("`EnableRunner` of install stack `freehold-acme--globex-prod` is `false`"), "{text}");
    }

    #[tokio::test]
    async fn a_runner_whose_stack_is_gone_is_told_so() {
        let account = AccountDouble::new(StackState::Gone, Ok("arn:aws:iam::222222222222:root"));

        let refused = standing(account).refused("no").await;

        let text = "install stack `freehold-acme--globex-prod` is being deleted or does not exist any more: no";
        assert_eq!(refused, Refused::StackGone(text.to_owned()));
    }

    #[tokio::test]
    async fn wrong_credentials_are_named_with_the_role_that_is_needed() {
        let account = AccountDouble::new(launched("true"), Ok("arn:aws:sts::222222222222:assumed-role/admin/me"));

        let Refused::Otherwise(text) = standing(account).refused("not for you (AccessDenied)").await else {
            panic!("off")
        };

        assert!(text.contains("`arn:aws:sts::222222222222:assumed-role/admin/me`"), "{text}");
        assert!(text.contains("needs those of role `fh-acme--globex-prod--runner`"), "{text}");
    }

    #[tokio::test]
    async fn expired_credentials_are_not_the_right_ones() {
        let account = AccountDouble::new(StackState::Unreadable("expired".into()), Err("ExpiredToken"));

        let problem = standing(account).role().await.unwrap_err();

        assert!(problem.contains("(ExpiredToken)") && problem.contains("`fh-acme--globex-prod--runner`"), "{problem}");
        // Without a session, the runner cannot read the stack; the kill switch may be the reason.
        assert!(
            problem.contains("if parameter `EnableRunner` of install stack `freehold-acme--globex-prod` is `false`")
        );
    }

    #[test]
    fn the_answer_of_aws_stands_without_the_words_of_the_sdk_before_it() {
        let denied = "User: me is not authorized to perform: sts:AssumeRole (AccessDenied)";

        let of_a_profile = format!("an error occurred while loading credentials: {denied}");

        assert_eq!(without_announcement(&of_a_profile), denied);
        assert_eq!(without_announcement(denied), denied);
    }

    #[tokio::test]
    async fn the_right_role_is_not_blamed() {
        let arn = "arn:aws:sts::222222222222:assumed-role/fh-acme--globex-prod--runner/i-1";
        let account = AccountDouble::new(launched("true"), Ok(arn));

        let refused = standing(account).refused("no such queue").await;

        let text =
            format!("no such queue; this runner has the right role, `{arn}`, so check that the install still exists");
        assert_eq!(refused, Refused::Otherwise(text));
    }

    #[tokio::test]
    async fn a_session_that_may_do_nothing_where_a_new_one_may_has_been_revoked() {
        let account = AccountDouble::with("RevokeSessionsBefore", "2026-11-27T16:47:34Z");
        account.revoke();

        let refused = standing(account).refused("explicit deny").await;

        let text = "the customer has revoked the session of this runner: by parameter `RevokeSessionsBefore` of install \
                    stack `freehold-acme--globex-prod`, sessions that began before 2026-11-27T16:47:34Z have no permissions";
        assert_eq!(refused, Refused::Revoked(text.to_owned()));
    }

    #[tokio::test]
    async fn a_session_that_cannot_be_replaced_is_told_the_parameter() {
        let arn = "arn:aws:sts::222222222222:assumed-role/fh-acme--globex-prod--runner/i-1";
        let account = AccountDouble::new(StackState::Unreadable("explicit deny".into()), Ok(arn));

        let Refused::Otherwise(text) = standing(account).refused("explicit deny").await else { panic!("revoked") };

        assert!(text.contains("if the customer has set `RevokeSessionsBefore`, give the runner a session"), "{text}");
    }

    #[tokio::test]
    async fn a_build_runner_is_told_of_its_tenant_and_not_of_an_install() {
        let config = config("/state", Role::Build);
        let arn = format!("arn:aws:sts::111111111111:assumed-role/{}/i-1", config.needed_role());
        let account = Arc::new(AccountDouble::new(StackState::Gone, Ok(&arn)));

        let refused = Standing::new(&config, account).refused("no such queue").await;

        let text =
            format!("no such queue; this runner has the right role, `{arn}`, so check that the tenant still exists");
        assert_eq!(refused, Refused::Otherwise(text));
    }
}
