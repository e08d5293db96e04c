//! One call of AWS, as CloudTrail shows it.

use freehold_protocol::{Timestamp, names};
use serde::Serialize;
use serde_json::Value;

/// One event of CloudTrail.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub(crate) struct Call {
    pub(crate) id: String,
    pub(crate) at: Timestamp,
    /// The service, such as `iam`.
    pub(crate) service: String,
    /// The call, such as `CreateRole`.
    pub(crate) name: String,
    pub(crate) changes: bool,
    /// The resource that the call names, if it is one of the services in which a runner changes something.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) resource: Option<String>,
    /// The ARN of the caller.
    pub(crate) caller: String,
    /// The name of the role and of the session, if the caller is a session.
    #[serde(skip)]
    pub(crate) session: Option<(String, String)>,
    /// The role and the session that the call requested, if the call is `AssumeRole`.
    #[serde(skip)]
    pub(crate) takes: Option<(String, String)>,
    /// The AWS service that made the call for the caller, such as CloudFormation for a stack that a job changed.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) through: Option<String>,
    /// The code of the error, if AWS refused the call.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) error: Option<String>,
}

impl Call {
    /// Reads an event in the form in which CloudTrail writes it into its log (AWS CloudTrail user guide, "CloudTrail
    /// record contents").
    pub(crate) fn of(event: &Value) -> Option<Self> {
        let text = |pointer: &str| event.pointer(pointer).and_then(Value::as_str);
        let at: jiff::Timestamp = text("/eventTime")?.parse().ok()?;
        let service = text("/eventSource")?.split('.').next()?.to_owned();
        let name = text("/eventName")?.to_owned();
        let reads = match event.get("readOnly") {
            Some(Value::Bool(reads)) => *reads,
            Some(Value::String(reads)) => reads == "true",
            _ => ["Get", "List", "Describe", "Head"].iter().any(|prefix| name.starts_with(prefix)),
        };
        let identity = ["/userIdentity/arn", "/userIdentity/invokedBy", "/userIdentity/accountId"];
        let caller = identity.iter().find_map(|pointer| text(pointer)).unwrap_or("unknown").to_owned();
        let takes = text("/requestParameters/roleArn").zip(text("/requestParameters/roleSessionName"));
        let resource = resource(&service).and_then(text).map(str::to_owned);
        Some(Self {
            id: text("/eventID").unwrap_or_default().to_owned(),
            at: Timestamp::from_millis(u64::try_from(at.as_millisecond()).ok()?),
            service,
            session: session(&caller),
            takes: takes.map(|(arn, session)| (names::name_of_arn(arn).to_owned(), session.to_owned())),
            through: text("/userIdentity/invokedBy").map(str::to_owned),
            error: text("/errorCode").map(str::to_owned),
            changes: !reads,
            resource,
            name,
            caller,
        })
    }
}

/// Returns the role and the session of an ARN such as `arn:aws:sts::222222222222:assumed-role/ROLE/SESSION`.
fn session(arn: &str) -> Option<(String, String)> {
    let (_, names) = arn.split_once(":assumed-role/")?;
    let (role, session) = names.split_once('/')?;
    Some((role.to_owned(), session.to_owned()))
}

/// Returns the place in an event where CloudTrail has the resource that a call changes, as a JSON pointer; `None` for a
/// service in which a runner changes nothing.
fn resource(service: &str) -> Option<&'static str> {
    match service {
        "autoscaling" => Some("/requestParameters/autoScalingGroupName"),
        "ecr" => Some("/requestParameters/repositoryName"),
        "kms" => Some("/resources/0/ARN"),
        "s3" => Some("/requestParameters/bucketName"),
        "sqs" => Some("/requestParameters/queueUrl"),
        "sts" => Some("/requestParameters/roleArn"),
        _ => None,
    }
}
