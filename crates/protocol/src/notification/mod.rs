//! Notifications: messages of the control plane to people about events. A notification has names, ids, counts and
//! times, and neither values nor the texts of programs: it leaves the tenant's account by mail.

mod endpoint;
mod filter;
mod kind;

use serde::{Deserialize, Serialize};

use crate::{AppName, InstallId, JobId, NotificationId, RunId, Timestamp, WorkflowId};

pub use endpoint::{Endpoint, EndpointError};
pub use filter::NotificationFilter;
pub use kind::{NotificationKind, UnknownKind};

/// The maximum length of a subject, in characters (Amazon SNS API reference, `Publish`: ASCII, fewer than 100 characters).
pub const MAX_SUBJECT_CHARS: usize = 99;
/// The maximum size of a text, in bytes. SNS bills each 64 KiB of a message as one request.
pub const MAX_TEXT_BYTES: usize = 4096;

/// One notification, as subscribers that read JSON receive it.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct Notification {
    /// The id is derived from the cause, so a notification that is sent again has the same id.
    pub id: NotificationId,
    pub kind: NotificationKind,
    /// The time of the event that the notification is about.
    pub at: Timestamp,
    /// The install; absent for a build, and for a test that names no install.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub install: Option<InstallId>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub app: Option<AppName>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub workflow: Option<WorkflowId>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub job: Option<JobId>,
    /// The run of a runbook.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub run: Option<RunId>,
    /// One line of at most [`MAX_SUBJECT_CHARS`] visible ASCII characters and spaces.
    pub subject: String,
    /// Sentences for a person, of at most [`MAX_TEXT_BYTES`] bytes.
    pub text: String,
    /// The command that shows more, or that makes the decision; empty when there is none.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub command: String,
}

impl Notification {
    /// Returns the notification with a subject and a text that are within their limits. Characters that a subject cannot have
    /// become question marks.
    #[must_use]
    pub fn limited(self) -> Self {
        let plain = |c: char| if c == ' ' || c.is_ascii_graphic() { c } else { '?' };
        let subject = self.subject.chars().take(MAX_SUBJECT_CHARS).map(plain).collect();
        let mut text = self.text;
        let mut end = text.len().min(MAX_TEXT_BYTES);
        while !text.is_char_boundary(end) {
            end -= 1;
        }
        text.truncate(end);
        Self { subject, text, ..self }
    }

    /// Returns the text of a mail: what happened, the command that shows more, and the id.
    pub fn mail(&self) -> String {
        let command = if self.command.is_empty() { String::new() } else { format!("Run:\n  {}\n\n", self.command) };
        format!("{}\n\n{command}{} {}\n", self.text, self.kind, self.id)
    }
}
