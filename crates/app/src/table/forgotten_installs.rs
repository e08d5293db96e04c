//! The rows of installs that are being forgotten, and the number of installs that are gone.

use freehold_protocol::{Digest, InstallId, Timestamp};
use serde::{Deserialize, Serialize};

use super::record::{Record, key, load};
use crate::AppError;
use crate::ports::{Expect, Key, Store};

/// An install whose rows are being removed.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Forgetting {
    pub install: InstallId,
    /// The time of the request.
    pub since: Timestamp,
    /// The time at which all traffic with the install was ended; absent until then.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub closed_at: Option<Timestamp>,
}

/// The number of installs that the tenant has deleted or forgotten. The row does not name them.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct GoneInstalls {
    pub count: u32,
    /// The digest of the install that was counted last. Without it, two installs that end at the same moment could write
    /// equal rows. A commit takes an equal row for its own earlier try, and would keep the second install.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub last: Option<Digest>,
}

/// Returns the key of the row of an install that is being forgotten.
pub fn forgetting_key(install: &InstallId) -> Key {
    key("forgetting", install.as_str())
}

impl Record for Forgetting {
    fn key(&self) -> Key {
        forgetting_key(&self.install)
    }
}

impl Record for GoneInstalls {
    fn key(&self) -> Key {
        key("gone", "installs")
    }
}

/// Loads the number of installs that are gone, and the condition under which the next number is written.
///
/// # Errors
/// The errors of [`load`].
pub async fn gone_installs(store: &dyn Store) -> Result<(GoneInstalls, Expect), AppError> {
    let found = load::<GoneInstalls>(store, &GoneInstalls::default().key()).await?;
    Ok(found.map_or((GoneInstalls::default(), Expect::Absent), |found| (found.value, Expect::Rev(found.rev))))
}
