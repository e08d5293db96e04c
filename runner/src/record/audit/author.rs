//! The runner that signs audit records.

use std::sync::Arc;

use freehold_protocol::audit::{AuditEvent, AuditRecord};
use freehold_protocol::{Digest, Envelope, InstallId, TenantName, Timestamp};

use super::error::AuditError;
use crate::keys::runner_key::Identity;

/// The runner that signs the records.
#[derive(Debug, Clone)]
pub struct Author {
    pub identity: Arc<Identity>,
    pub tenant: TenantName,
    pub install: InstallId,
    /// The machine: an EC2 instance id or a host name.
    pub host: String,
}

impl Author {
    /// Returns a signed record, as one line of JSON. The same arguments give the same bytes.
    pub(super) fn record(
        &self,
        seq: u64,
        previous: Digest,
        at: Timestamp,
        event: AuditEvent,
    ) -> Result<String, AuditError> {
        let (tenant, install) = (self.tenant.clone(), self.install.clone());
        let record = AuditRecord { tenant, install, runner: self.identity.id().clone(), seq, previous, at, event };
        Ok(Envelope::seal(&record, &[self.identity.key()])?.to_json()?)
    }
}
