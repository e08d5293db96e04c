//! Who asked for work: a caller by the ARN of the IAM principal, a member or a pipeline by the subject of its token, a
//! program by its webhook, or a part of the control plane.

use std::fmt;
use std::str::FromStr;

use serde::{Deserialize, Serialize};

use crate::{AccountId, Arn, MemberName, Partition, Shape, TokenSubject, WebhookName};

/// The maximum length of an ARN. The longest part is the path of an IAM user, with at most 512 characters.
const ARN_CHARS: usize = 700;
/// The names of IAM users, roles and sessions have at most 64 characters.
const NAME: Shape = Shape::Letters { max: 64, also: "_+=,.@-" };
/// The path and name of an IAM user, whose characters IAM permits in a path.
const USER: Shape = Shape::Visible { max: 576 };

/// Who asked for a workflow, or for its cancel.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(tag = "by", rename_all = "snake_case")]
pub enum AskedBy {
    /// A caller of the tenant's API.
    Caller { arn: CallerArn },
    /// A member of the tenant who has signed in, with the subject of the person's token.
    Member { member: MemberName, subject: TokenSubject },
    /// A pipeline, by the subject of the token that its service issued.
    Pipeline { subject: TokenSubject },
    /// A program that called a webhook of the tenant's API.
    Webhook { webhook: WebhookName },
    /// The cron schedule of an action, of drift checks or of health checks.
    Schedule,
    /// The control plane's sweep, when it removes an install that is being forgotten, and when it starts the actions of a
    /// role that the customer has switched on or off.
    Sweep,
}

impl AskedBy {
    /// Returns whether a runner of the version before cannot read the value. It would refuse an order or a cancel that
    /// has the value in a field that it knows.
    pub const fn is_new(&self) -> bool {
        match self {
            Self::Member { .. } | Self::Pipeline { .. } => true,
            Self::Caller { .. } | Self::Webhook { .. } | Self::Schedule | Self::Sweep => false,
        }
    }

    /// Splits the value into the one for the field that earlier runners read, and the one for the field that they ignore.
    pub fn in_fields(asked_by: Option<Self>) -> (Option<Self>, Option<Self>) {
        match asked_by {
            Some(by) if by.is_new() => (None, Some(by)),
            by => (by, None),
        }
    }
}

impl fmt::Display for AskedBy {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Caller { arn } => write!(f, "{arn}"),
            Self::Member { member, .. } => write!(f, "member {member}"),
            Self::Pipeline { subject } => write!(f, "pipeline {subject}"),
            Self::Webhook { webhook } => write!(f, "webhook {webhook}"),
            Self::Schedule => f.write_str("schedule"),
            Self::Sweep => f.write_str("sweep"),
        }
    }
}

/// The ARN of an IAM principal that called the API: an IAM user, a session of a role, a federated user, or the root user
/// of an account.
#[derive(Clone, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(try_from = "String", into = "String")]
pub struct CallerArn(String);

/// A text is not the ARN of an IAM principal that can call the API.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error(
    "`{0}` is not the ARN of a caller; expected an IAM user, a session of a role, a federated user or a root user, such as \
     `arn:aws:sts::111111111111:assumed-role/deployer/ana`"
)]
pub struct CallerArnError(String);

/// The principal of a [`CallerArn`].
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Principal<'a> {
    /// A session of a role. The ARN does not contain the path of the role.
    Session { role: &'a str, session: &'a str },
    /// An IAM user, by its path and name.
    User { name: &'a str },
    /// A session that an IAM user made with `GetFederationToken`.
    Federated { name: &'a str },
    /// The root user of the account.
    Root,
}

impl CallerArn {
    /// Returns the ARN as text.
    pub fn as_str(&self) -> &str {
        &self.0
    }

    /// Returns the account of the principal, and the principal.
    pub fn parts(&self) -> Option<(AccountId, Principal<'_>)> {
        parts(&self.0)
    }
}

fn parts(arn: &str) -> Option<(AccountId, Principal<'_>)> {
    let Arn { partition, service, region, account, resource, .. } = Arn::parse(arn)?;
    if Partition::named(partition).is_none() || !region.is_empty() {
        return None;
    }
    let principal = match (service, resource.split_once('/')) {
        ("iam", None) if resource == "root" => Principal::Root,
        ("iam", Some(("user", name))) if USER.accepts(name) => Principal::User { name },
        ("sts", Some(("federated-user", name))) if NAME.accepts(name) => Principal::Federated { name },
        ("sts", Some(("assumed-role", names))) => {
            let (role, session) = names.split_once('/')?;
            if !NAME.accepts(role) || !NAME.accepts(session) {
                return None;
            }
            Principal::Session { role, session }
        }
        _ => return None,
    };
    Some((account.parse().ok()?, principal))
}

impl FromStr for CallerArn {
    type Err = CallerArnError;

    fn from_str(text: &str) -> Result<Self, CallerArnError> {
        if text.len() <= ARN_CHARS && parts(text).is_some() {
            return Ok(Self(text.to_owned()));
        }
        Err(CallerArnError(text.chars().take(80).flat_map(char::escape_default).collect()))
    }
}

impl TryFrom<String> for CallerArn {
    type Error = CallerArnError;

    fn try_from(text: String) -> Result<Self, CallerArnError> {
        text.parse()
    }
}

impl From<CallerArn> for String {
    fn from(arn: CallerArn) -> Self {
        arn.0
    }
}

impl fmt::Display for CallerArn {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

impl fmt::Debug for CallerArn {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

#[cfg(feature = "schema")]
impl schemars::JsonSchema for CallerArn {
    fn schema_name() -> std::borrow::Cow<'static, str> {
        "CallerArn".into()
    }

    fn json_schema(_: &mut schemars::SchemaGenerator) -> schemars::Schema {
        let partitions = Partition::ALL.map(|partition| partition.name).join("|");
        let pattern = format!("^arn:({partitions}):(iam|sts)::[0-9]{{12}}:[!-~]+$");
        schemars::json_schema!({ "type": "string", "pattern": pattern, "maxLength": ARN_CHARS })
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;
    use serde_json::json;

    use super::*;

    fn principal(arn: &str) -> String {
        let arn: CallerArn = arn.parse().unwrap();
        format!("{:?}", arn.parts().unwrap().1)
    }

    #[test]
    fn the_principals_that_can_call_an_api_are_told_apart() {
        assert_eq!(
            principal("arn:aws:sts::111111111111:assumed-role/AWSReservedSSO_Deploy_0a1b/ana@acme.example"),
            "Session { role: \"AWSReservedSSO_Deploy_0a1b\", session: \"ana@acme.example\" }"
        );
        assert_eq!(principal("arn:aws-us-gov:iam::111111111111:user/team/a:b/ana"), "User { name: \"team/a:b/ana\" }");
        assert_eq!(principal("arn:aws-cn:sts::111111111111:federated-user/ana"), "Federated { name: \"ana\" }");
        assert_eq!(principal("arn:aws:iam::111111111111:root"), "Root");
    }

    #[test]
    fn a_caller_can_be_of_each_partition() {
        for partition in Partition::ALL {
            let arn = format!("arn:{}:sts::111111111111:assumed-role/deployer/ana", partition.name);

            assert_eq!(principal(&arn), "Session { role: \"deployer\", session: \"ana\" }", "{arn}");
        }
    }

    #[test]
    fn the_longest_user_is_a_caller() {
        let (path, name) = ("p".repeat(510), "n".repeat(64));

        assert!(format!("arn:aws-us-gov:iam::111111111111:user/{path}/{name}").parse::<CallerArn>().is_ok());
    }

    #[test]
    fn hostile_texts_are_not_callers() {
        let long = format!("arn:aws:sts::111111111111:assumed-role/{}/ana", "r".repeat(65));
        let longer = format!("arn:aws:iam::111111111111:user/{}", "u".repeat(1_000_000));
        for bad in [
            "",
            "ana",
            "schedule",
            "arn:aws:iam::111111111111:role/deployer",
            "arn:aws:sts::111111111111:assumed-role/deployer",
            "arn:aws:sts::111111111111:assumed-role/deployer/",
            "arn:aws:sts::111111111111:assumed-role//ana",
            "arn:aws:sts::111111111111:assumed-role/path/deployer/ana",
            "arn:aws:sts::111111111111:assumed-role/deployer/ana\n",
            "arn:aws:sts::111111111111:assumed-role/deployer/an a",
            "arn:aws:sts::111111111111:assumed-role/deployer/\u{202e}ana",
            "arn:aws:iam::111111111111:user/ana\nroot",
            "arn:aws:iam::111111111111:user/",
            "arn:aws:iam::111111111111:user/\u{1b}[2J",
            "arn:aws:iam::1111:user/ana",
            "arn:aws:iam:eu-west-1:111111111111:user/ana",
            "arn:aws:iam::111111111111:root/x",
            "arn:aws:sts::111111111111:root",
            "arn:evil:iam::111111111111:user/ana",
            "arn:aws-:iam::111111111111:user/ana",
            "x:arn:aws:iam::111111111111:user/ana",
            "aws:iam::111111111111:user/ana",
            &long,
            &longer,
        ] {
            let error = bad.parse::<CallerArn>().expect_err(bad).to_string();
            assert!(error.len() < 1200 && !error.contains(char::is_control), "{error}");
        }
    }

    #[test]
    fn a_signed_text_with_a_hostile_arn_is_not_read() {
        let asked = |arn: &str| serde_json::from_value::<AskedBy>(json!({ "by": "caller", "arn": arn }));

        assert!(asked("arn:aws:iam::111111111111:user/ana").is_ok());
        assert!(asked("arn:aws:iam::111111111111:user/ana\n").is_err());
        assert!(serde_json::from_value::<AskedBy>(json!({ "by": "nobody" })).is_err());
        assert_eq!(serde_json::to_value(AskedBy::Schedule).unwrap(), json!({ "by": "schedule" }));
    }

    #[test]
    fn a_member_and_a_pipeline_are_one_visible_line_and_come_in_the_field_that_earlier_runners_ignore() {
        let member = json!({ "by": "member", "member": "ana@example.com", "subject": "7f3c" });
        let pipeline = json!({ "by": "pipeline", "subject": "repo:acme/shop:ref:refs/heads/main" });

        let read = |value: &serde_json::Value| serde_json::from_value::<AskedBy>(value.clone());

        for (value, text) in
            [(&member, "member ana@example.com"), (&pipeline, "pipeline repo:acme/shop:ref:refs/heads/main")]
        {
            let by = read(value).unwrap();
            assert_eq!((by.to_string().as_str(), &serde_json::to_value(&by).unwrap()), (text, value));
            assert_eq!(AskedBy::in_fields(Some(by.clone())), (None, Some(by)));
        }
        assert_eq!(AskedBy::in_fields(Some(AskedBy::Sweep)), (Some(AskedBy::Sweep), None));
        for subject in ["", "a b", "a\nb", "\u{202e}a", &"s".repeat(256)] {
            assert!(read(&json!({ "by": "pipeline", "subject": subject })).is_err(), "{subject:?}");
        }
    }

    proptest! {
        #[test]
        fn what_is_accepted_is_one_visible_line_and_stays_the_same(
            text in "(arn:aws:(sts|iam)::[0-9]{11,12}:(user|root|assumed-role|federated-user)/?[a-c/:=@ \n\u{e9}]{0,8})|\\PC{0,40}",
        ) {
            if let Ok(arn) = text.parse::<CallerArn>() {
                prop_assert!(arn.as_str().bytes().all(|byte| byte.is_ascii_graphic()));
                prop_assert_eq!(arn.to_string(), text);
            }
        }
    }
}
