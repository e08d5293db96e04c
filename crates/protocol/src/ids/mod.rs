//! Ids. Every kind of id is its own type, which is parsed once, where a text enters the program.

mod arn;
pub mod names;
mod partition;

use std::fmt;
use std::str::FromStr;

use serde::{Deserialize, Serialize};

use crate::Digest;
use crate::fence::Fence;
use crate::shape::Shape;

pub use arn::Arn;
pub use partition::Partition;
pub use token_subject::TokenSubject;

/// A text is not an id of the expected kind.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("`{value}` is not {what}; expected {expected}")]
pub struct IdError {
    value: String,
    what: &'static str,
    expected: &'static str,
}

macro_rules! id {
    ($(#[$doc:meta])* $name:ident, $what:literal, $expected:literal, $shape:expr) => {
        $(#[$doc])*
        #[derive(Clone, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
        #[serde(try_from = "String", into = "String")]
        pub struct $name(String);

        impl $name {
            /// The form of the id.
            pub const SHAPE: Shape = $shape;

            /// Returns the id as text.
            pub fn as_str(&self) -> &str {
                &self.0
            }
        }

        impl FromStr for $name {
            type Err = IdError;

            fn from_str(text: &str) -> Result<Self, IdError> {
                if Self::SHAPE.accepts(text) {
                    return Ok(Self(text.to_owned()));
                }
                Err(IdError { value: text.chars().take(80).collect(), what: $what, expected: $expected })
            }
        }

        impl TryFrom<String> for $name {
            type Error = IdError;

            fn try_from(text: String) -> Result<Self, IdError> {
                text.parse()
            }
        }

        impl From<$name> for String {
            fn from(id: $name) -> Self {
                id.0
            }
        }

        impl fmt::Display for $name {
            fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.write_str(&self.0)
            }
        }

        impl fmt::Debug for $name {
            fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.write_str(&self.0)
            }
        }

        #[cfg(feature = "schema")]
        impl schemars::JsonSchema for $name {
            fn schema_name() -> std::borrow::Cow<'static, str> {
                stringify!($name).into()
            }

            fn json_schema(_: &mut schemars::SchemaGenerator) -> schemars::Schema {
                Self::SHAPE.schema()
            }
        }
    };
}

mod token_subject;

id!(
    /// The name of a tenant, one vendor's control plane. It is short because role names contain it, and IAM limits them
    /// to 64 characters.
    TenantName,
    "a tenant name",
    "2 to 16 lower-case letters, digits or single dashes, starting with a letter",
    Shape::Slug { min: 2, max: TENANT_CHARS }
);
id!(
    /// The name of an app, unique in the tenant: the name of its config directory.
    AppName,
    "an app name",
    "2 to 40 lower-case letters, digits or single dashes, starting with a letter",
    Shape::Slug { min: 2, max: 40 }
);
id!(
    /// The name of an install, one app in one customer account. It is short because role names contain it.
    InstallId,
    "an install name",
    "2 to 20 lower-case letters, digits or single dashes, starting with a letter",
    Shape::Slug { min: 2, max: INSTALL_CHARS }
);
id!(
    /// The name of a component, from the app config.
    ComponentName,
    "a component name",
    "1 to 64 letters, digits, dashes or underscores, starting with a letter or digit",
    Shape::Label { max: 64, also: "_-" }
);
id!(
    /// The name that people gave to a release of an app.
    ReleaseName,
    "a release name",
    "1 to 64 letters, digits, dots, dashes or underscores, starting with a letter or digit",
    Shape::Label { max: 64, also: "._-" }
);
id!(
    /// The name of a channel of an app, such as `stable`.
    ChannelName,
    "a channel name",
    "1 to 64 letters, digits, dashes or underscores, starting with a letter or digit",
    Shape::Label { max: 64, also: "_-" }
);
id!(
    /// The name of a webhook, unique in the tenant.
    WebhookName,
    "a webhook name",
    "1 to 64 letters, digits, dashes or underscores, starting with a letter or digit",
    Shape::Label { max: 64, also: "_-" }
);
id!(
    /// The name of a member, unique in the tenant, such as an e-mail address.
    MemberName,
    "a member's name",
    "1 to 64 letters, digits or characters of `._+@-`, starting with a letter or digit",
    Shape::Label { max: 64, also: "._+@-" }
);
id!(
    /// The name of an action, from the app config.
    ActionName,
    "an action name",
    "1 to 64 letters, digits, dashes or underscores, starting with a letter or digit",
    Shape::Label { max: 64, also: "_-" }
);
id!(
    /// The name of a runbook, from the app config.
    RunbookName,
    "a runbook name",
    "1 to 64 letters, digits, dashes or underscores, starting with a letter or digit",
    Shape::Label { max: 64, also: "_-" }
);
id!(
    /// The name of a required check of a component, from the app config.
    CheckName,
    "a check name",
    "1 to 64 letters, digits, dots, dashes or underscores, starting with a letter or digit",
    Shape::Label { max: 64, also: "._-" }
);
id!(
    /// The name of a group: the part that a job changes. SQS delivers the orders of one group in sequence.
    Group,
    "a group",
    "1 to 80 letters, digits, dashes, underscores, dots or colons",
    Shape::Letters { max: 80, also: "_.:-" }
);
id!(
    /// The key of a named role of an install stack. The IAM name of the role is `fh-<tenant>--<install>--<key>`.
    RoleKey,
    "a role key",
    "2 to 21 lower-case letters, digits or single dashes, starting with a letter",
    Shape::Slug { min: 2, max: ROLE_KEY_CHARS }
);
id!(
    /// The name of a role in IAM, without its path (IAM API reference, `CreateRole`).
    IamRoleName,
    "the name of a role",
    "1 to 64 letters, digits or characters of `_+=,.@-`",
    Shape::Letters { max: 64, also: "_+=,.@-" }
);
id!(
    /// The id of an AWS account.
    AccountId,
    "an AWS account id",
    "12 digits",
    Shape::Digits { min: 12, max: 12 }
);
id!(
    /// The id of a workflow. The executions of its state machine are named after it.
    WorkflowId,
    "a workflow id",
    "`wf_` and 20 hex digits",
    Shape::Hex { prefix: "wf_", digits: 20 }
);
id!(
    /// The id of a run of a runbook.
    RunId,
    "the id of a run",
    "`run_` and 20 hex digits",
    Shape::Hex { prefix: "run_", digits: 20 }
);
id!(
    /// The id of a notification.
    NotificationId,
    "the id of a notification",
    "`ntf_` and 20 hex digits",
    Shape::Hex { prefix: "ntf_", digits: 20 }
);
id!(
    /// The id of a job, one unit of work for one runner.
    JobId,
    "a job id",
    "`job_` and 20 hex digits",
    Shape::Hex { prefix: "job_", digits: 20 }
);
id!(
    /// The id of a build, which made an artifact.
    BuildId,
    "a build id",
    "`bld_` and 20 hex digits",
    Shape::Hex { prefix: "bld_", digits: 20 }
);
id!(
    /// The id of a grant, the permission to fetch one artifact once.
    GrantId,
    "a grant id",
    "`grt_` and 20 hex digits",
    Shape::Hex { prefix: "grt_", digits: 20 }
);

/// The largest numbers of characters in a tenant's name, an install's name and a role key. Together with `fh-` and two
/// `--` they have the 64 characters that a role's name may have (IAM quotas, "Role name").
const TENANT_CHARS: usize = 16;
const INSTALL_CHARS: usize = 20;
const ROLE_KEY_CHARS: usize = 64 - "fh-----".len() - TENANT_CHARS - INSTALL_CHARS;

/// The number of characters of a long name that the name of its step keeps: 64 less the longest word before it, eight digits
/// of a digest, and `-step-` with up to ten digits.
const KEPT_CHARS: usize = 64 - "runbook--".len() - 8 - "-step-".len() - 10;

/// Returns the name of a step: `before`, the `name` of the action or runbook, and `after`. If the result would have
/// more than 64 characters, `name` is cut, and a digest keeps the result distinct.
fn numbered(before: &str, name: &str, after: &str) -> String {
    let whole = format!("{before}{name}{after}");
    if ActionName::SHAPE.accepts(&whole) {
        return whole;
    }
    let digest = Digest::of(name.as_bytes());
    let kept = name.get(..KEPT_CHARS).unwrap_or_default();
    format!("{before}{kept}-{}{after}", digest.hex().get(..8).unwrap_or_default())
}

impl RoleKey {
    /// Returns the key of the role with the name `name` in the app config. The name is a template.
    pub fn derive(break_glass: bool, name: &str) -> Self {
        let kind = if break_glass { "break-glass" } else { "custom" };
        let own = slug_of(name);
        let rest = own.strip_prefix(kind).unwrap_or(&own).trim_matches('-');
        let key = if rest.is_empty() { kind.to_owned() } else { format!("{kind}-{rest}") };
        if key.len() <= ROLE_KEY_CHARS {
            return Self(key);
        }
        let digest = Digest::of(name.split_whitespace().collect::<String>().as_bytes());
        let kept = key.get(..ROLE_KEY_CHARS - 5).unwrap_or(kind).trim_end_matches('-');
        // The sync of an app refuses two roles with the same key, so a short digest is enough.
        Self(format!("{kept}-{}", digest.hex().get(..4).unwrap_or_default()))
    }

    /// Returns whether the role is a break-glass role, which works until a time that the customer sets.
    pub fn is_break_glass(&self) -> bool {
        self.0.starts_with("break-glass")
    }

    /// Returns the key in camel case, for names in the install stack's template, such as `BreakGlass`.
    pub fn camel(&self) -> String {
        let word = |word: &str| {
            let mut chars = word.chars();
            chars.next().map(|first| first.to_ascii_uppercase().to_string() + chars.as_str()).unwrap_or_default()
        };
        self.0.split('-').map(word).collect()
    }

    /// Returns the name of the install stack's parameter that enables the role.
    pub fn switch(&self) -> String {
        format!("Enable{}", self.camel())
    }
}

/// Returns the name as a slug: lower-case letters and digits, with single dashes between words and without templates.
fn slug_of(name: &str) -> String {
    let mut plain = String::new();
    let mut rest = name;
    while let Some((before, after)) = rest.split_once("{{") {
        plain.push_str(before);
        plain.push('-');
        rest = after.split_once("}}").map_or("", |(_, after)| after);
    }
    plain.push_str(rest);
    let words = plain.split(|c: char| !c.is_ascii_alphanumeric()).filter(|word| !word.is_empty());
    words.map(str::to_ascii_lowercase).collect::<Vec<_>>().join("-")
}

/// Returns `prefix` and 20 hex digits of the digest of `parts`. A retry with the same parts derives the same id.
fn derive(prefix: &str, parts: &[&str]) -> String {
    let mut bytes = Vec::new();
    for part in parts {
        bytes.extend_from_slice(&(part.len() as u64).to_be_bytes());
        bytes.extend_from_slice(part.as_bytes());
    }
    let digest = Digest::of(&bytes);
    format!("{prefix}{}", digest.hex().get(..20).unwrap_or_default())
}

impl WorkflowId {
    /// Returns the id of the workflow that `cause` starts for `subject`. A cause is, for example, the idempotency key
    /// of a request.
    pub fn derive(subject: &str, cause: &str) -> Self {
        Self(derive("wf_", &[subject, cause]))
    }
}

impl RunId {
    /// Returns the id of the run that the request with the idempotency key `cause` starts in `install`.
    pub fn derive(install: &InstallId, cause: &str) -> Self {
        Self(derive("run_", &[install.as_str(), cause]))
    }
}

impl NotificationId {
    /// Returns the id of the notification of the kind with this name that these parts of its cause lead to.
    pub fn derive(kind: &str, cause: &[&str]) -> Self {
        Self(derive("ntf_", &[&[kind], cause].concat()))
    }
}

impl ActionName {
    /// Returns the name of the action that runs the command of a runbook's step. `step` is the index of the step, from 0.
    pub fn of_runbook_step(runbook: &RunbookName, step: u32) -> Self {
        let number = u64::from(step) + 1;
        Self(numbered("runbook-", runbook.as_str(), &format!("-step-{number}")))
    }
}

impl JobId {
    /// Returns the id of the job for the node `node` of `workflow`.
    pub fn derive(workflow: &WorkflowId, node: &str) -> Self {
        Self(derive("job_", &[workflow.as_str(), node]))
    }
}

impl ComponentName {
    /// Returns the name under which the sandbox of an app is built, deployed and shown. In an app with a sandbox, no
    /// component may have this name.
    pub fn sandbox() -> Self {
        Self("sandbox".to_owned())
    }

    /// Returns the name under which the directory that a step of an action runs in is built, granted and shown. `step` is
    /// the index of the step, from 0. No component may have this name.
    pub fn of_step(action: &ActionName, step: u32) -> Self {
        let number = u64::from(step) + 1;
        Self(numbered("action-", action.as_str(), &format!("-step-{number}")))
    }

    /// Returns whether this is the name of the sandbox.
    pub fn is_sandbox(&self) -> bool {
        self.0 == "sandbox"
    }
}

/// The thing that an order changes which copies secrets or removes copies, and the message group of such orders.
const SECRETS: &str = "secrets";

impl Group {
    /// Returns the part that the group's jobs change: the text before the first dot of the group's name. Groups with
    /// the same text before the dot have separate serials, but the runner runs one of their jobs at a time.
    pub fn thing(&self) -> &str {
        self.as_str().split('.').next().unwrap_or_default()
    }

    /// Returns the message group of the orders queue (SQS `MessageGroupId`) in which the control plane sends the orders
    /// of this group. A runner refuses an order in another message group, so it is the same in all versions.
    pub fn message_group(&self) -> &str {
        // A redelivered removal of copies of secrets must not overtake a later copy: all of them wait in one.
        if self.thing() == SECRETS { SECRETS } else { self.as_str() }
    }
}

impl BuildId {
    /// Returns the id of the build of `component` from the source with the digest `version`
    /// ([`source_digest`](crate::app_version::Component::source_digest)).
    pub fn derive(app: &AppName, version: &Digest, component: &ComponentName) -> Self {
        Self(derive("bld_", &[app.as_str(), version.as_str(), component.as_str()]))
    }
}

impl GrantId {
    /// Returns the id of the first grant for `artifact` to the attempt with the fence (`dispatch`, `receive`) of `job`.
    pub fn derive(job: &JobId, dispatch: u32, receive: u32, artifact: &Digest) -> Self {
        Self(derive("grt_", &[job.as_str(), &dispatch.to_string(), &receive.to_string(), artifact.as_str()]))
    }

    /// Returns the id of a grant for an attempt. `round` is the number of earlier grants whose URLs expired.
    #[must_use]
    pub fn of_round(job: &JobId, fence: Fence, artifact: &Digest, round: u32) -> Self {
        let first = Self::derive(job, fence.dispatch, fence.receive, artifact);
        if round == 0 { first } else { Self(derive("grt_", &[first.as_str(), &round.to_string()])) }
    }

    /// Returns the id of an attempt's request for the signed statement about `artifact`.
    pub fn of_statement(job: &JobId, fence: Fence, artifact: &Digest) -> Self {
        let first = Self::derive(job, fence.dispatch, fence.receive, artifact);
        Self(derive("grt_", &[first.as_str(), "statement"]))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_account_id_has_exactly_twelve_digits() {
        assert!("222222222222".parse::<AccountId>().is_ok());

        let error = "22222".parse::<AccountId>().unwrap_err();

        assert_eq!(error.to_string(), "`22222` is not an AWS account id; expected 12 digits");
    }

    #[test]
    fn names_that_would_blur_a_resource_name_are_refused() {
        for bad in ["", "a", "-a", "a-", "a--b", "A", "a_b", "1a", "a.b", "a/b", "a b", "a*"] {
            assert!(bad.parse::<InstallId>().is_err(), "{bad}");
        }
    }

    #[test]
    fn a_roles_key_says_what_it_is_for_and_fits_a_role_name() {
        let long = "{{ .nuon.install.id }}-read-only-access-to-the-databases-of-everybody";
        let named = |break_glass, name| RoleKey::derive(break_glass, name).to_string();

        assert_eq!(named(true, "{{.nuon.install.id}}-break-glass"), "break-glass");
        assert_eq!(named(true, "{{ .nuon.install.id }}-Emergency_Access"), "break-glass-emer-8250");
        assert_eq!(named(false, "{{ .nuon.install.id }}"), "custom");
        assert_eq!(named(false, "support"), "custom-support");
        assert_eq!(named(false, long), "custom-read-only-1855");
        assert!(named(false, long).parse::<RoleKey>().is_ok());
        assert_eq!(RoleKey::derive(true, "a-1").switch(), "EnableBreakGlassA1");
    }

    #[test]
    fn a_steps_directory_has_a_name_of_its_own_that_fits() {
        let action = |chars: usize, last: &str| format!("{}{last}", "a".repeat(chars)).parse::<ActionName>().unwrap();

        let short = ComponentName::of_step(&action(1, ""), 0);
        let long = ComponentName::of_step(&action(63, "b"), u32::MAX);
        let other = ComponentName::of_step(&action(63, "c"), u32::MAX);

        assert_eq!(short.as_str(), "action-a-step-1");
        assert!(long.as_str().parse::<ComponentName>().is_ok(), "{long}");
        assert_ne!(long, other);
    }

    #[test]
    fn only_orders_about_secrets_wait_in_a_message_group_with_another_group() {
        let groups =
            ["component:web", "component:web.drift", "secrets", "secrets.1"].map(|name| name.parse::<Group>().unwrap());

        let names = groups.each_ref().map(Group::message_group);

        assert_eq!(names, ["component:web", "component:web.drift", "secrets", "secrets"]);
    }

    #[test]
    fn a_derived_id_depends_on_where_its_parts_end() {
        let one = WorkflowId::derive("ab", "c");
        let two = WorkflowId::derive("a", "bc");

        assert_ne!(one, two);
        assert_eq!(one, WorkflowId::derive("ab", "c"));
        assert_eq!(one, one.as_str().parse().unwrap());
    }
}
