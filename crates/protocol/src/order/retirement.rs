//! The message that tells a runner that another key has replaced its own.

use serde::{Deserialize, Serialize};

use crate::{Delegated, InstallId, KeyId, KeyUse, Payload, TenantName, Timestamp};

/// The signed message that tells a runner that its key was replaced, so that the control plane accepts no more of its
/// reports.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Retired {
    pub tenant: TenantName,
    pub install: InstallId,
    /// The key that was replaced. Runners with another key ignore the message.
    pub runner: KeyId,
    /// The key of the install's current runner.
    pub replaced_by: KeyId,
    /// The time at which the reports queue took the newest hello of the current runner.
    pub replaced_at: Timestamp,
    pub issued_at: Timestamp,
    pub not_after: Timestamp,
}

impl Retired {
    /// The message group of notices in the orders queue. A notice waits there for its runner, and no other message
    /// waits behind it.
    pub const MESSAGE_GROUP: &'static str = "retired";
}

impl Payload for Retired {
    const TYPE: &'static str = "application/vnd.freehold.retired.v1+json";
}

impl Delegated for Retired {
    const USE: KeyUse = KeyUse::Notices;
}
