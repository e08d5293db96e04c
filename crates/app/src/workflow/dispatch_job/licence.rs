//! Adds the signed licence of an install to the values of an order. A licence is signed when the first order brings it.
//! All later orders bring the same text, so that the values that a part was deployed with change only with the licence.

use freehold_domain::install::Install;
use freehold_domain::install::licence::InstallLicence;
use freehold_protocol::{Envelope, KeyUse, Timestamp};
use serde_json::Value;

use super::DispatchJob;
use crate::AppError;
use crate::ports::{DelegateKey, Expect};
use crate::stack::nuon_tree;
use crate::table::evidence::Signed;
use crate::table::{self, Decided, LicenceRecord, Stored, licence_key, load, put};

impl DispatchJob {
    /// Adds the licence of the install to `context`, the values of an order. Does nothing for an install without a
    /// licence, and for an order without values about the install.
    pub(super) async fn add_licence(
        &self,
        context: &mut Value,
        install: &Install,
        delegate: &DelegateKey,
        now: Timestamp,
    ) -> Result<(), AppError> {
        let (Some(licence), Some(values)) = (&install.licence, nuon_tree::install_values(context)) else {
            return Ok(());
        };
        let envelope = self.signed_licence(install, licence, delegate, now).await?;
        values.insert("licence".to_owned(), envelope.to_json()?.into());
        Ok(())
    }

    /// Returns the signed licence. Signs it if no order has brought it yet, and again after another root key has
    /// followed.
    async fn signed_licence(
        &self,
        install: &Install,
        licence: &InstallLicence,
        delegate: &DelegateKey,
        now: Timestamp,
    ) -> Result<Envelope, AppError> {
        table::change(&*self.store, ("install", &install.id), || async {
            let known: Option<Stored<LicenceRecord>> = load(&*self.store, &licence_key(&install.id)).await?;
            let kept = known.as_ref().map(|known| (known.value.serial, known.value.signed.envelope()));
            if let Some((serial, envelope)) = kept
                && (serial > licence.serial || serial == licence.serial && is_current(&envelope, delegate))
            {
                return Ok(Decided::Keep(envelope));
            }
            let statement = licence.statement(&self.tenant, &install.id, install.require_app()?, now);
            let envelope = Envelope::seal_delegated(&statement, &delegate.key, &delegate.certificate)?;
            let (install, serial) = (install.id.clone(), licence.serial);
            let record = LicenceRecord { install, serial, signed: Signed::of(&envelope)? };
            let expect = known.map_or(Expect::Absent, |known| Expect::Rev(known.rev));
            Ok(Decided::Commit(vec![put(&record, expect)?], envelope))
        })
        .await
    }
}

/// Returns whether the key that signed the licence was certified for it, by the root key that certified `delegate`.
fn is_current(licence: &Envelope, delegate: &DelegateKey) -> bool {
    let mut roots = delegate.certificate.signatures.iter().map(|signature| &signature.keyid);
    licence.claims(KeyUse::Licences) && roots.any(|root| licence.is_certified_as(root))
}

#[cfg(test)]
mod tests {
    use ed25519_dalek::SigningKey;
    use freehold_protocol::KeyUses;
    use freehold_protocol::api::SetLicenceRequest;
    use freehold_protocol::envelope::Delegate;
    use freehold_protocol::order::AskedBy;

    use super::*;

    const AT: Timestamp = Timestamp::from_millis(1_000_000);

    fn delegate(root: u8, uses: KeyUses) -> DelegateKey {
        let key = SigningKey::from_bytes(&[2; 32]);
        let (not_after, send_until) = (AT.plus_secs(60), AT.plus_secs(30));
        let delegate = Delegate {
            tenant: "acme".parse().unwrap(),
            public_key: key.verifying_key().into(),
            not_before: AT,
            not_after,
            send_until: Some(send_until),
            uses,
        };
        let certificate = Envelope::seal(&delegate, &[&SigningKey::from_bytes(&[root; 32])]).unwrap();
        DelegateKey { key, certificate, not_after, send_until }
    }

    #[test]
    fn a_licence_is_signed_again_after_another_root_key_and_when_its_key_was_not_certified_for_licences() {
        let request = SetLicenceRequest { not_after: Some(AT.plus_secs(1)), ..SetLicenceRequest::default() };
        let licence = InstallLicence::next(None, 0, &request, &AskedBy::Sweep, AT).unwrap().unwrap();
        let (tenant, install, app) = ("acme".parse().unwrap(), "globex".parse().unwrap(), "shop".parse().unwrap());
        let statement = licence.statement(&tenant, &install, &app, AT);
        let signed = |by: &DelegateKey| Envelope::seal_delegated(&statement, &by.key, &by.certificate).unwrap();
        let (licences, orders) = ([KeyUse::Licences].into(), [KeyUse::Orders].into());
        let (first, of_orders) = (delegate(1, licences), delegate(1, orders));
        let later = delegate(5, [KeyUse::Licences].into());

        assert!(is_current(&signed(&first), &first));
        assert!(!is_current(&signed(&first), &later));
        assert!(!is_current(&signed(&of_orders), &first));
    }
}
