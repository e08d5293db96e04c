//! Which notifications a subscriber gets.

use std::collections::BTreeSet;

use serde::{Deserialize, Serialize};

use super::kind::NotificationKind;
use crate::{AppName, InstallId};

/// The choice of a subscriber. An empty choice takes all notifications.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct NotificationFilter {
    /// Only about this app, its installs and its builds.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub app: Option<AppName>,
    /// Only about this install.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub install: Option<InstallId>,
    /// Only these kinds, and tests; empty for all kinds.
    #[serde(default, skip_serializing_if = "BTreeSet::is_empty")]
    pub only: BTreeSet<NotificationKind>,
}
