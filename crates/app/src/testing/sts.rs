//! The double of AWS STS. All credentials come from this double, so it knows whose credentials signed a request.

use async_trait::async_trait;
use freehold_protocol::report::{CallerRequest, RoleProof};
use freehold_protocol::{Digest, Timestamp};

use super::memory::Memory;
use crate::ports::{Caller, CallerIdentity, PortError};

/// The secret of all credentials that this STS issued.
const SECRET: &str = "secret access key";

/// Returns the proof of a session of `role` in `account`, made at `at` for `request`.
pub fn prove(account: &str, role: &str, request: &CallerRequest, at: Timestamp) -> RoleProof {
    let session_token = format!("{account}/{role}/i-1");
    let signature = signature(request, &session_token, at);
    RoleProof { at, access_key_id: "ASIA0123456789ABCDEF".to_owned(), session_token, signature }
}

/// Signs what AWS signs: the host, the time, the session and the binding to the runner's key.
fn signature(request: &CallerRequest, session_token: &str, at: Timestamp) -> String {
    let signed = [SECRET, &request.host(), request.binding(), session_token, &at.as_secs().to_string()].join("\n");
    Digest::of(signed.as_bytes()).hex().to_owned()
}

#[async_trait]
impl CallerIdentity for Memory {
    async fn caller(&self, request: &CallerRequest, proof: &RoleProof) -> Result<Caller, PortError> {
        self.faults.run("caller", || {
            if proof.signature != signature(request, &proof.session_token, proof.at) {
                return Caller::Refused("the signature does not match (SignatureDoesNotMatch)".to_owned());
            }
            let mut parts = proof.session_token.splitn(2, '/');
            let account = parts.next().unwrap_or_default().to_owned();
            let session = parts.next().unwrap_or_default();
            Caller::Known { arn: format!("arn:aws:sts::{account}:assumed-role/{session}"), account }
        })
    }
}
