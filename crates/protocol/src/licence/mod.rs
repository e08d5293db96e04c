//! Licences: signed facts about what an install may use. The app reads the licence of its install in the customer's
//! account, without any service of the vendor, and judges it.

use std::collections::BTreeMap;
use std::fmt;

use serde::de::{Error as _, MapAccess, Visitor};
use serde::{Deserialize, Deserializer, Serialize};
use serde_json::Value;

use crate::envelope::{Delegated, Envelope, EnvelopeError, Payload, PublicKey};
use crate::flag::is_false;
use crate::succession::Roots;
use crate::{AppName, InstallId, KeyUse, TenantName, Timestamp, canonical, limits};

/// The licence of an install, as the tenant signs it. The signed bytes are canonical JSON.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Licence {
    pub tenant: TenantName,
    pub install: InstallId,
    pub app: AppName,
    /// The number of the licence. Each later licence of the install has a higher number, also after the install was
    /// forgotten and created again, and an older licence never replaces a newer one.
    pub serial: u64,
    /// The time at which the vendor set the licence.
    pub issued_at: Timestamp,
    /// The time of the signature, for the certificate of the key that made it.
    pub signed_at: Timestamp,
    /// The time after which the licence is over; absent for a licence without an end. The app decides what follows.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub not_after: Option<Timestamp>,
    /// Whether the vendor has withdrawn the licence before. A withdrawn licence has no facts and is over.
    #[serde(default, skip_serializing_if = "is_false")]
    pub withdrawn: bool,
    /// The facts by name: texts, integers, booleans and lists of texts.
    #[serde(deserialize_with = "distinct_facts")]
    pub facts: BTreeMap<String, Value>,
}

impl Payload for Licence {
    const TYPE: &'static str = "application/vnd.freehold.licence.v1+json";

    fn bytes(&self) -> Result<Vec<u8>, serde_json::Error> {
        canonical::to_vec(self)
    }
}

impl Delegated for Licence {
    const USE: KeyUse = KeyUse::Licences;
}

/// The reason why a licence is refused.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum LicenceError {
    #[error("it has {0} bytes, and a signed licence has at most {max}", max = limits::MAX_LICENCE_BYTES)]
    TooLarge(usize),
    #[error("it belongs to install `{install}` of tenant `{tenant}`")]
    OtherInstall { tenant: TenantName, install: InstallId },
    #[error(transparent)]
    Envelope(#[from] EnvelopeError),
}

impl Licence {
    /// Returns the licence in the text of an envelope, if the key that signed it leads to one of `roots` at the time that
    /// the licence names.
    ///
    /// # Errors
    /// [`LicenceError::TooLarge`] and [`LicenceError::Envelope`].
    pub fn open(text: &[u8], roots: &Roots) -> Result<Self, LicenceError> {
        let (envelope, claimed) = claimed(text)?;
        Ok(roots.open_delegated(&envelope, claimed.signed_at)?)
    }

    /// Does the same as [`Licence::open`] for a reader that was given the tenant's root key, and no name of a tenant.
    ///
    /// # Errors
    /// As [`Licence::open`].
    pub fn open_under(text: &[u8], root: &PublicKey) -> Result<Self, LicenceError> {
        let (envelope, claimed) = claimed(text)?;
        let roots = Roots::given(claimed.tenant, root.clone(), None);
        Ok(roots.open_delegated(&envelope, claimed.signed_at)?)
    }

    /// Checks that the licence belongs to `install` of `tenant`.
    ///
    /// # Errors
    /// [`LicenceError::OtherInstall`].
    pub fn check_install(&self, tenant: &TenantName, install: &InstallId) -> Result<(), LicenceError> {
        if self.tenant == *tenant && self.install == *install {
            return Ok(());
        }
        Err(LicenceError::OtherInstall { tenant: self.tenant.clone(), install: self.install.clone() })
    }

    /// Returns whether the licence is over at `now`.
    pub fn is_over(&self, now: Timestamp) -> bool {
        self.withdrawn || self.not_after.is_some_and(|end| now > end)
    }
}

/// Returns the envelope in `text` and its content, whose signature is not verified yet.
fn claimed(text: &[u8]) -> Result<(Envelope, Licence), LicenceError> {
    if text.len() > limits::MAX_LICENCE_BYTES {
        return Err(LicenceError::TooLarge(text.len()));
    }
    let envelope = Envelope::parse(text)?;
    let licence = envelope.peek()?;
    Ok((envelope, licence))
}

/// Reads facts, and refuses two facts of the same name: an app could read one of them while a person was shown the
/// other.
fn distinct_facts<'de, D: Deserializer<'de>>(deserializer: D) -> Result<BTreeMap<String, Value>, D::Error> {
    deserializer.deserialize_map(DistinctFacts)
}

struct DistinctFacts;

impl<'de> Visitor<'de> for DistinctFacts {
    type Value = BTreeMap<String, Value>;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("facts by name")
    }

    fn visit_map<A: MapAccess<'de>>(self, mut map: A) -> Result<Self::Value, A::Error> {
        let mut facts = BTreeMap::new();
        while let Some((name, value)) = map.next_entry::<String, Value>()? {
            if facts.insert(name.clone(), value).is_some() {
                return Err(A::Error::custom(format!("fact `{name}` is given twice")));
            }
        }
        Ok(facts)
    }
}
