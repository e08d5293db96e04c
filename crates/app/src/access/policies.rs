//! The policies of the tenant as they are evaluated. They are parsed once for each text.

use std::sync::{Arc, Mutex, PoisonError};

use freehold_access::Policies;
use freehold_protocol::Digest;

use super::row::{self, PoliciesRecord};
use crate::AppError;
use crate::ports::Store;
use crate::table::{Stored, load};

/// The policies that were parsed last.
#[derive(Clone, Default)]
pub struct ParsedPolicies(Arc<Mutex<Option<Parsed>>>);

/// Policies and the digest of their text.
struct Parsed {
    digest: Digest,
    policies: Arc<Policies>,
}

impl std::fmt::Debug for ParsedPolicies {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str("ParsedPolicies")
    }
}

impl ParsedPolicies {
    /// Returns the policies of this row, or the ready-made ones without a row.
    ///
    /// # Errors
    /// Internal for policies that this version cannot read, because an earlier version stored them.
    pub(super) fn of(&self, stored: Option<&Stored<PoliciesRecord>>) -> Result<Arc<Policies>, AppError> {
        let text = text(stored);
        let digest = Digest::of(text.as_bytes());
        let mut last = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(known) = &*last
            && known.digest == digest
        {
            return Ok(Arc::clone(&known.policies));
        }
        let policies = Arc::new(Policies::parse(text).map_err(|error| {
            AppError::internal(format!(
                "the policies of the tenant cannot be read, so nothing is permitted: {error}; replace them as an IAM \
                 principal of the tenant's account, with `set_policies`"
            ))
        })?);
        *last = Some(Parsed { digest, policies: Arc::clone(&policies) });
        Ok(policies)
    }

    /// Loads the policies of the tenant and parses them.
    ///
    /// # Errors
    /// The errors of [`Self::of`], or the store's errors.
    pub(super) async fn load(&self, store: &dyn Store) -> Result<Arc<Policies>, AppError> {
        self.of(find(store).await?.as_ref())
    }

    /// Returns the policies that a new tenant has.
    ///
    /// # Errors
    /// Internal when they cannot be read, which a test of the crate `access` excludes.
    pub(super) fn ready_made(&self) -> Result<Arc<Policies>, AppError> {
        self.of(None)
    }
}

/// Loads the row of the policies, if somebody has changed them.
///
/// # Errors
/// The store's errors.
pub(super) async fn find(store: &dyn Store) -> Result<Option<Stored<PoliciesRecord>>, AppError> {
    load(store, &row::policies_key()).await
}

/// Returns the text of the policies of this row, or the text of the ready-made ones without a row.
pub(super) fn text(stored: Option<&Stored<PoliciesRecord>>) -> &str {
    match stored {
        Some(stored) => &stored.value.policies,
        None => Policies::ready_made(),
    }
}
