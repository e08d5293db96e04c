//! The rows of terms that customers accept, of signed contracts of versions, and of signed licences of installs.

use freehold_protocol::contract::{Contract, SignedContract};
use freehold_protocol::{AppName, Digest, Envelope, InstallId};
use serde::{Deserialize, Serialize};

use super::app::app_pk;
use super::evidence::Signed;
use super::install::install_pk;
use super::record::{Record, Stored, key, load};
use crate::AppError;
use crate::ports::{Key, Store};

/// The signed contract of a version.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct ContractRecord {
    pub app: AppName,
    pub version: Digest,
    pub signed: Signed,
}

/// Returns the key of the row of a version's signed contract.
pub fn contract_key(app: &AppName, version: &Digest) -> Key {
    Key { pk: app_pk(app), sk: format!("contract#{version}") }
}

impl Record for ContractRecord {
    fn key(&self) -> Key {
        contract_key(&self.app, &self.version)
    }
}

/// A contract and its signed envelope.
#[derive(Debug, Clone, PartialEq)]
pub struct ContractInEnvelope {
    pub contract: Contract,
    pub envelope: Envelope,
}

/// Returns the signed contract of a version, if it exists and this release of Freehold can read it.
///
/// # Errors
/// The errors of [`load`].
pub async fn signed_contract(
    store: &dyn Store,
    app: &AppName,
    version: &Digest,
) -> Result<Option<ContractInEnvelope>, AppError> {
    let found: Option<Stored<ContractRecord>> = load(store, &contract_key(app, version)).await?;
    let envelope = found.map(|stored| stored.value.signed.envelope());
    Ok(envelope.and_then(|envelope| {
        let SignedContract { contract, .. } = envelope.peek().ok()?;
        Some(ContractInEnvelope { contract, envelope })
    }))
}

/// The newest signed licence of an install.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct LicenceRecord {
    pub install: InstallId,
    /// The serial of the licence.
    pub serial: u64,
    pub signed: Signed,
}

/// Returns the key of the row of an install's signed licence.
pub fn licence_key(install: &InstallId) -> Key {
    key(install_pk(install), "licence")
}

impl Record for LicenceRecord {
    fn key(&self) -> Key {
        licence_key(&self.install)
    }
}

/// The terms of a current or former version of the app.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct TermsRecord {
    pub app: AppName,
    pub digest: Digest,
    /// The canonical JSON of the terms. It is stored as text, because another release of Freehold may write the same
    /// terms in different bytes, which have another digest.
    pub terms: String,
}

/// Returns the key of the row of the terms with this digest.
pub fn terms_key(app: &AppName, digest: &Digest) -> Key {
    Key { pk: app_pk(app), sk: format!("terms#{digest}") }
}

impl Record for TermsRecord {
    fn key(&self) -> Key {
        terms_key(&self.app, &self.digest)
    }
}

/// Returns terms by their digest, if a synced version has them.
///
/// # Errors
/// The errors of [`load`].
pub async fn known_terms(store: &dyn Store, app: &AppName, digest: &Digest) -> Result<Option<TermsRecord>, AppError> {
    let found: Option<Stored<TermsRecord>> = load(store, &terms_key(app, digest)).await?;
    Ok(found.map(|stored| stored.value))
}
