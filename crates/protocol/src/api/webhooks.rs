//! Requests and responses of the API about webhooks.

use std::collections::BTreeMap;
use std::fmt;

use serde::{Deserialize, Serialize};

use crate::envelope::PublicKey;
use crate::order::AskedBy;
use crate::{
    ActionName, AppName, ChannelName, InstallId, ReleaseName, RunId, RunbookName, Timestamp, WebhookName, WorkflowId,
};

/// The work that a call of a webhook starts.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(tag = "task", rename_all = "kebab-case", deny_unknown_fields)]
pub enum WebhookTask {
    /// A deploy of the version that the install follows.
    DeployComponents { install: InstallId },
    /// A run of an action, with the inputs of the call.
    RunAction { install: InstallId, action: ActionName },
    /// A run of a runbook, with the inputs of the call.
    RunRunbook { install: InstallId, runbook: RunbookName },
    /// A move of a channel to the release of the call.
    MoveChannel { app: AppName, channel: ChannelName },
}

impl WebhookTask {
    /// Returns the install in which the task runs; `None` for a task of an app.
    pub const fn install(&self) -> Option<&InstallId> {
        match self {
            Self::DeployComponents { install } | Self::RunAction { install, .. } | Self::RunRunbook { install, .. } => {
                Some(install)
            }
            Self::MoveChannel { .. } => None,
        }
    }
}

impl fmt::Display for WebhookTask {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::DeployComponents { install } => write!(f, "deploys install `{install}`"),
            Self::RunAction { install, action } => write!(f, "runs action `{action}` in install `{install}`"),
            Self::RunRunbook { install, runbook } => write!(f, "runs runbook `{runbook}` in install `{install}`"),
            Self::MoveChannel { app, channel } => write!(f, "moves channel `{channel}` of app `{app}`"),
        }
    }
}

/// `POST /v1/webhooks`: adds a webhook. Calls must be signed by the private key that belongs to `key`, which the tenant
/// never gets.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(deny_unknown_fields)]
pub struct AddWebhookRequest {
    pub webhook: WebhookName,
    pub key: PublicKey,
    pub starts: WebhookTask,
}

/// A webhook.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct WebhookView {
    pub webhook: WebhookName,
    pub key: PublicKey,
    pub starts: WebhookTask,
    pub added_at: Timestamp,
    pub added_by: AskedBy,
    /// The path below the address of the API that is called.
    pub path: String,
}

/// `GET /v1/webhooks`: all webhooks of the tenant, by name.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct WebhooksView {
    pub webhooks: Vec<WebhookView>,
}

/// `POST /v1/webhooks/{webhook}/calls`: the body of a call. An empty body means the same as `{}`.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(deny_unknown_fields)]
pub struct CallWebhookRequest {
    /// The inputs of the run, for a webhook that runs a runbook or an action.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub inputs: BTreeMap<String, String>,
    /// The release to move to, for a webhook that moves a channel.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub release: Option<ReleaseName>,
}

/// The work that a call started. A repeated call starts nothing.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(tag = "started", rename_all = "kebab-case")]
pub enum WebhookCalled {
    Workflow {
        workflow: WorkflowId,
    },
    Run {
        run: RunId,
    },
    /// The channel has this release now, and its followers are deployed.
    Channel {
        app: AppName,
        channel: ChannelName,
        release: ReleaseName,
    },
}
