//! Points in time as the control plane's clock gives them. Nothing here reads a clock.

use serde::{Deserialize, Serialize};

/// Milliseconds since 1970-01-01T00:00:00Z, on the control plane's clock unless a field says otherwise.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize, Default)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(transparent)]
pub struct Timestamp(u64);

impl Timestamp {
    /// Returns the point `millis` milliseconds after the epoch.
    pub const fn from_millis(millis: u64) -> Self {
        Self(millis)
    }

    /// Returns the milliseconds since the epoch.
    pub const fn as_millis(self) -> u64 {
        self.0
    }

    /// Returns the whole seconds since the epoch, the unit of a DynamoDB TTL attribute.
    pub const fn as_secs(self) -> u64 {
        self.0 / 1000
    }

    /// Returns this time moved `secs` seconds into the future.
    pub const fn plus_secs(self, secs: u64) -> Self {
        Self(self.0.saturating_add(secs.saturating_mul(1000)))
    }

    /// Returns the milliseconds from `earlier` to this time, zero when it is not earlier.
    pub const fn since(self, earlier: Self) -> u64 {
        self.0.saturating_sub(earlier.0)
    }
}
