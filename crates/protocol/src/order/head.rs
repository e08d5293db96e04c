//! The part of an order or a cancel that every version of a runner reads first: for whom it is, and what a runner has to
//! know to act on it as it is meant.

use std::collections::BTreeSet;

use serde::{Deserialize, Serialize};

use super::{Cancel, Order};
use crate::approval;
use crate::envelope::{Delegated, Payload};
use crate::{InstallId, JobId, KeyUse, TenantName, Timestamp};

/// The features that an order or a cancel may demand of this version. A field that an earlier runner must not ignore
/// comes with a feature, and the control plane names the feature in each message that has the field.
const FEATURES: [&str; 1] = [approval::FEATURE];

/// The features that a message demands, by name, in its field `must_understand`. A message without the field demands none.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(transparent)]
pub struct Demands(BTreeSet<String>);

impl Demands {
    /// Returns the demand of one feature.
    pub fn feature(name: &str) -> Self {
        Self([name.to_owned()].into())
    }

    /// Returns whether nothing is demanded.
    pub fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    /// Returns the demanded features that this version does not know.
    pub fn unknown(&self) -> Vec<&str> {
        self.0.iter().map(String::as_str).filter(|name| !FEATURES.contains(name)).collect()
    }
}

/// The head of an order.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct OrderHead {
    pub tenant: TenantName,
    pub install: InstallId,
    pub job: JobId,
    pub dispatch: u32,
    pub not_after: Timestamp,
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
