//! Signs the contract of a version for the tenant, once what it says is known, and keeps it signed.

use freehold_domain::contract as made;
use freehold_protocol::contract::{Contract, SignedContract};
use freehold_protocol::limits::MAX_ENVELOPE_BYTES;
use freehold_protocol::{AppName, Digest, Envelope};
use serde::{Deserialize, Serialize};

use crate::AppError;
use crate::artifact::evidence::Signed;
use crate::ports::{Expect, Key, Store};
use crate::table::{Record, Stored, app_pk, load, put};
use crate::workflow::dispatch_job::DispatchJob;
use crate::workflow::plan_workflow::builds_of;

/// The signed contract of a version.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct ContractRecord {
    pub app: AppName,
    pub version: Digest,
    pub signed: Signed,
}

/// Returns the row of a version's signed contract.
pub fn contract_key(app: &AppName, version: &Digest) -> Key {
    Key { pk: app_pk(app), sk: format!("contract#{version}") }
}

impl Record for ContractRecord {
    fn key(&self) -> Key {
        contract_key(&self.app, &self.version)
    }
}

/// A contract and the envelope that holds it.
#[derive(Debug, Clone, PartialEq)]
pub(crate) struct Sealed {
    pub(crate) contract: Contract,
    pub(crate) envelope: Envelope,
}

/// Returns the signed contract of a version, if there is one that this release can read.
pub(crate) async fn sealed(store: &dyn Store, app: &AppName, version: &Digest) -> Result<Option<Sealed>, AppError> {
    let found: Option<Stored<ContractRecord>> = load(store, &contract_key(app, version)).await?;
    let envelope = found.map(|stored| stored.value.signed.envelope());
    Ok(envelope.and_then(|envelope| {
        let SignedContract { contract, .. } = envelope.peek().ok()?;
        Some(Sealed { contract, envelope })
    }))
}

impl DispatchJob {
    /// Signs the contract of a version unless what it says is signed already; the last one that was signed stays.
    ///
    /// # Errors
    /// The ports', or Internal for one that fits no envelope.
    pub(crate) async fn seal_contract(&self, app: &AppName, version: &Digest) -> Result<(), AppError> {
        let store = &*self.store;
        let document = self.versions.load(app, Some(version)).await?.document;
        let builds = builds_of(store, &document).await?;
        let contract = made::contract(&document, version, &builds)?;
        if sealed(store, app, version).await?.is_some_and(|sealed| sealed.contract == contract) {
            return Ok(());
        }
        let signed_at = self.clock.now();
        let delegate = self.signer.delegate(signed_at).await?;
        let signed = SignedContract { tenant: self.tenant.clone(), signed_at, contract };
        let envelope = Envelope::seal_delegated(&signed, &delegate.key, &delegate.certificate)?;
        let bytes = envelope.to_json()?.len();
        if bytes > MAX_ENVELOPE_BYTES {
            return Err(AppError::internal(format!(
                "the contract of version `{version}` of app `{app}` has {bytes} bytes signed, more than the \
                 {MAX_ENVELOPE_BYTES} that are read"
            )));
        }
        let record = ContractRecord { app: app.clone(), version: version.clone(), signed: Signed::of(&envelope)? };
        let _ = store.commit(vec![put(&record, Expect::Any)?]).await?;
        tracing::info!("Signed the contract of version `{version}` of app `{app}`");
        Ok(())
    }
}
