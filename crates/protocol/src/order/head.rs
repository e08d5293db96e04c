//! The part of an order or a cancel that every version of a runner reads first: the recipient, and the features that a
//! runner has to know to act on the message correctly. Of an order also how long it waits, and for which runner it was
//! made.

use serde::{Deserialize, Serialize};

use super::demands::Demands;
use super::{Cancel, Order};
use crate::envelope::{Delegated, Payload};
use crate::{InstallId, JobId, KeyId, KeyUse, TenantName, Timestamp};

/// The head of an order.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct OrderHead {
    pub tenant: TenantName,
    pub install: InstallId,
    pub job: JobId,
    pub dispatch: u32,
    pub issued_at: Timestamp,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub start_by: Option<Timestamp>,
    pub not_after: Timestamp,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub runner: Option<KeyId>,
    #[serde(default)]
    pub must_understand: Demands,
}

impl Payload for OrderHead {
    const TYPE: &'static str = Order::TYPE;
}

impl Delegated for OrderHead {
    const USE: KeyUse = Order::USE;
}

/// The head of a cancel.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct CancelHead {
    pub tenant: TenantName,
    pub install: InstallId,
    #[serde(default)]
    pub must_understand: Demands,
}

impl Payload for CancelHead {
    const TYPE: &'static str = Cancel::TYPE;
}

impl Delegated for CancelHead {
    const USE: KeyUse = Cancel::USE;
}
