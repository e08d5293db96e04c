//! The endpoints of notifications: a mailbox, a URL or a queue.

use std::fmt;
use std::str::FromStr;

use serde::{Deserialize, Serialize};

use crate::{AccountId, Arn, Partition};

/// The maximum length of an endpoint, in bytes.
const MAX_BYTES: usize = 2048;

/// The endpoint at which a subscriber gets notifications.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(try_from = "String", into = "String")]
pub enum Endpoint {
    /// A mail address. The owner confirms the subscription with a link in a mail from SNS.
    Mail(String),
    /// An `https://` URL. The server confirms the subscription with the token that SNS sends to this URL.
    Https(String),
    /// The ARN of an SQS queue, whose policy has to let the topic send.
    Queue(String),
}

/// A text is not an endpoint.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error(
    "`{0}` is not a place for notifications; expected a mail address, an `https://` URL or the ARN of an SQS queue"
)]
pub struct EndpointError(String);

impl Endpoint {
    /// Returns the name of the protocol in SNS.
    pub const fn protocol(&self) -> &'static str {
        match self {
            Self::Mail(_) => "email",
            Self::Https(_) => "https",
            Self::Queue(_) => "sqs",
        }
    }

    /// Returns the endpoint as text.
    pub fn as_str(&self) -> &str {
        match self {
            Self::Mail(text) | Self::Https(text) | Self::Queue(text) => text,
        }
    }
}

impl FromStr for Endpoint {
    type Err = EndpointError;

    fn from_str(text: &str) -> Result<Self, EndpointError> {
        let is_plain = text.len() <= MAX_BYTES && text.bytes().all(|b| b.is_ascii_graphic());
        let found = match text {
            _ if !is_plain => None,
            url if url.starts_with("https://") => is_url(url).then(|| Self::Https(url.to_owned())),
            arn if arn.starts_with("arn:") => is_queue(arn).then(|| Self::Queue(arn.to_owned())),
            mail => is_mail(mail).then(|| Self::Mail(mail.to_owned())),
        };
        found.ok_or_else(|| EndpointError(text.chars().take(80).collect()))
    }
}

impl TryFrom<String> for Endpoint {
    type Error = EndpointError;

    fn try_from(text: String) -> Result<Self, EndpointError> {
        text.parse()
    }
}

impl From<Endpoint> for String {
    fn from(endpoint: Endpoint) -> Self {
        match endpoint {
            Endpoint::Mail(text) | Endpoint::Https(text) | Endpoint::Queue(text) => text,
        }
    }
}

impl fmt::Display for Endpoint {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.as_str())
    }
}

#[cfg(feature = "schema")]
impl schemars::JsonSchema for Endpoint {
    fn schema_name() -> std::borrow::Cow<'static, str> {
        "Endpoint".into()
    }

    fn json_schema(_: &mut schemars::SchemaGenerator) -> schemars::Schema {
        schemars::json_schema!({ "type": "string", "minLength": 3, "maxLength": MAX_BYTES, "pattern": PATTERN })
    }
}

/// The form of an endpoint, for the published schema.
#[cfg(feature = "schema")]
const PATTERN: &str = concat!(
    "^(https://[A-Za-z0-9.-]+(:[0-9]{1,5})?([/?][!-~]*)?",
    "|arn:aws[a-z-]*:sqs:[a-z0-9-]+:[0-9]{12}:[A-Za-z0-9_-]{1,80}",
    "|[A-Za-z0-9.!#$%&'*+/=?^_`{|}~-]{1,64}@[A-Za-z0-9-]+([.][A-Za-z0-9-]+)+)$"
);

/// Returns whether a text that begins with `https://` has a host, no user and no password.
fn is_url(url: &str) -> bool {
    let rest = url.strip_prefix("https://").unwrap_or_default();
    let end = rest.find(['/', '?']).unwrap_or(rest.len());
    let authority = rest.get(..end).unwrap_or_default();
    let (host, port) = match authority.split_once(':') {
        Some((host, port)) => (host, Some(port)),
        None => (authority, None),
    };
    let is_host = !host.is_empty() && host.chars().all(|c| c.is_ascii_alphanumeric() || "-.".contains(c));
    is_host && port.is_none_or(|port| (1..=5).contains(&port.len()) && port.bytes().all(|b| b.is_ascii_digit()))
}

/// Returns whether a text is the ARN of a standard queue (Amazon SNS Developer Guide: a standard topic cannot send to a FIFO
/// queue).
fn is_queue(arn: &str) -> bool {
    let Some(Arn { partition, service, region, account, resource: name, .. }) = Arn::parse(arn) else { return false };
    let letters = |text: &str, also: &str| text.chars().all(|c| c.is_ascii_alphanumeric() || also.contains(c));
    let is_region =
        !region.is_empty() && region.chars().all(|c| c.is_ascii_lowercase() || c.is_ascii_digit() || c == '-');
    let is_name = (1..=80).contains(&name.len()) && letters(name, "_-");
    Partition::named(partition).is_some()
        && service == "sqs"
        && is_region
        && AccountId::SHAPE.accepts(account)
        && is_name
}

fn is_mail(text: &str) -> bool {
    let Some((user, host)) = text.split_once('@') else { return false };
    let is_user = (1..=64).contains(&user.len())
        && user.chars().all(|c| c.is_ascii_alphanumeric() || ".!#$%&'*+/=?^_`{|}~-".contains(c));
    let mut labels = host.split('.');
    let is_label = |label: &str| !label.is_empty() && label.chars().all(|c| c.is_ascii_alphanumeric() || c == '-');
    is_user && host.contains('.') && labels.all(is_label)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_endpoint_is_a_mailbox_a_url_or_a_standard_queue() {
        let protocols = ["ops@example.com", "https://example.com/hook?a=1", "arn:aws:sqs:eu-west-1:111111111111:told"]
            .map(|text| text.parse::<Endpoint>().unwrap().protocol());

        assert_eq!(protocols, ["email", "https", "sqs"]);
    }

    #[test]
    fn what_sns_could_not_reach_or_a_mail_could_not_name_is_refused() {
        for text in [
            "",
            "ops",
            "ops@example",
            "o ps@example.com",
            "ops@example.com\r\nBcc: x@example.com",
            "http://example.com",
            "https://",
            "https://user:pw@example.com/",
            "arn:aws:sqs:eu-west-1:111111111111:told.fifo",
            "arn:aws:sns:eu-west-1:111111111111:told",
            "arn:aws:sqs:eu-west-1:1:told",
            "arn:aws-evil:sqs:eu-west-1:111111111111:told",
        ] {
            assert!(text.parse::<Endpoint>().is_err(), "{text}");
        }
        assert!(format!("https://example.com/{}", "a".repeat(MAX_BYTES)).parse::<Endpoint>().is_err());
    }
}
