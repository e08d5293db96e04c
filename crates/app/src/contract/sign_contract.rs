//! Signs the contract of a version with a delegate of the tenant's key, and stores it.

use std::sync::Arc;

use freehold_domain::contract as made;
use freehold_protocol::contract::SignedContract;
use freehold_protocol::limits::MAX_ENVELOPE_BYTES;
use freehold_protocol::{AppName, Digest, Envelope, KeyUse, TenantName};

use crate::AppError;
use crate::app_version::builds::builds_of;
use crate::app_version::versions::Versions;
use crate::ports::{Clock, Expect, Signer, Store};
use crate::table::evidence::Signed;
use crate::table::{ContractRecord, put, signed_contract};

/// Returns whether a version has a contract with its present terms, signed by a key that may sign contracts. A contract that an
/// earlier release of Freehold signed may have other terms, such as terms without the commands of probes.
///
/// # Errors
/// The errors of [`Versions::load`], or the store's errors.
pub(crate) async fn is_signed(versions: &Versions, app: &AppName, version: &Digest) -> Result<bool, AppError> {
    let Some(known) = signed_contract(&*versions.store, app, version).await? else { return Ok(false) };
    let document = versions.load(app, Some(version)).await?.document;
    Ok(known.contract.terms == made::terms(&document) && known.envelope.claims(KeyUse::Contracts))
}

/// The use case that signs a contract, with its ports.
#[derive(Clone)]
pub struct SignContract {
    pub tenant: TenantName,
    pub store: Arc<dyn Store>,
    pub versions: Versions,
    pub signer: Arc<dyn Signer>,
    pub clock: Arc<dyn Clock>,
}

impl SignContract {
    /// Signs the contract of a version unless the same contract is signed already, by a key that may sign contracts. A
    /// new contract replaces the former one.
    ///
    /// # Errors
    /// The ports' errors, or Internal when the signed contract is larger than an envelope may be.
    pub async fn sign(&self, app: &AppName, version: &Digest) -> Result<(), AppError> {
        let store = &*self.store;
        let document = self.versions.load(app, Some(version)).await?.document;
        let builds = builds_of(store, &document).await?;
        let contract = made::contract(&document, version, &builds)?;
        let known = signed_contract(store, app, version).await?;
        if known.is_some_and(|known| known.contract == contract && known.envelope.claims(KeyUse::Contracts)) {
            return Ok(());
        }
        let signed_at = self.clock.now();
        let delegate = self.signer.delegate(signed_at).await?;
        let signed = SignedContract { tenant: self.tenant.clone(), signed_at, contract };
        let envelope = Envelope::seal_delegated(&signed, &delegate.key, &delegate.certificate)?;
        let bytes = envelope.to_json()?.len();
        if bytes > MAX_ENVELOPE_BYTES {
            return Err(AppError::internal(format!(
                "the signed contract of version `{version}` of app `{app}` has {bytes} bytes, more than the maximum of \
                 {MAX_ENVELOPE_BYTES}; shorten the policies of its roles"
            )));
        }
        let record = ContractRecord { app: app.clone(), version: version.clone(), signed: Signed::of(&envelope)? };
        let _ = store.commit(vec![put(&record, Expect::Any)?]).await?;
        tracing::info!("Signed the contract of version `{version}` of app `{app}`");
        Ok(())
    }
}
