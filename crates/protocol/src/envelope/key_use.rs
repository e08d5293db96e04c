//! The statements that a delegate key may sign: its certificate lists the uses, and a reader demands the use of the
//! statement that it reads.

use std::collections::BTreeSet;
use std::fmt;

use serde::{Deserialize, Serialize};

/// One kind of statement that a delegate key may sign. Statements of provenance and certificates are not among them,
/// because the root key signs these itself.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum KeyUse {
    /// Orders to run a job.
    Orders,
    /// Cancels of jobs.
    Cancels,
    /// Notices to a runner that its key was replaced.
    Notices,
    /// Answers to runners that asked for an artifact or for a statement.
    Grants,
    /// Contracts of app versions.
    Contracts,
    /// Receipts of the last audit records that runners reported.
    Receipts,
    /// Licences of installs.
    Licences,
    /// A use that this version does not know. It permits nothing.
    #[serde(other)]
    Unknown,
}

impl KeyUse {
    /// Every use that permits something.
    pub const ALL: [Self; 7] =
        [Self::Orders, Self::Cancels, Self::Notices, Self::Grants, Self::Contracts, Self::Receipts, Self::Licences];

    /// Returns the name in messages; also that in certificates, except for [`Self::Unknown`].
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::Orders => "orders",
            Self::Cancels => "cancels",
            Self::Notices => "notices",
            Self::Grants => "grants",
            Self::Contracts => "contracts",
            Self::Receipts => "receipts",
            Self::Licences => "licences",
            Self::Unknown => "something unknown",
        }
    }
}

impl fmt::Display for KeyUse {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.as_str())
    }
}

/// The uses of a certificate. A certificate without uses, or with none that the reader knows, permits nothing.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(transparent)]
pub struct KeyUses(BTreeSet<KeyUse>);

impl KeyUses {
    /// Returns whether a key with these uses may sign statements of use `wanted`.
    pub fn permit(&self, wanted: KeyUse) -> bool {
        wanted != KeyUse::Unknown && self.0.contains(&wanted)
    }

    /// Returns whether these uses permit nothing at all.
    pub fn are_none(&self) -> bool {
        !self.0.iter().any(|one| self.permit(*one))
    }
}

impl<const N: usize> From<[KeyUse; N]> for KeyUses {
    fn from(uses: [KeyUse; N]) -> Self {
        Self(uses.into())
    }
}

impl FromIterator<KeyUse> for KeyUses {
    fn from_iter<I: IntoIterator<Item = KeyUse>>(uses: I) -> Self {
        Self(uses.into_iter().collect())
    }
}

impl fmt::Display for KeyUses {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        if self.0.is_empty() {
            return f.write_str("nothing");
        }
        let names: Vec<&str> = self.0.iter().map(|one| one.as_str()).collect();
        f.write_str(&names.join(", "))
    }
}
