//! The proof that a runner has the credentials of its role: the signature of a request `GetCallerIdentity` to AWS STS,
//! which the runner makes and the control plane sends. One of the request's signed headers names the runner's key.

use std::fmt;

use serde::{Deserialize, Serialize};
use sha2::{Digest as _, Sha256};

use crate::digest::hex;
use crate::envelope::PublicKey;
use crate::time::civil;
use crate::{InstallId, Partition, TenantName, Timestamp};

/// The longest session token that is sent to STS, in bytes. AWS documents no limit; tokens have about 1 KB.
const MAX_TOKEN_BYTES: usize = 8192;

/// The parts of a signed request `GetCallerIdentity` that only the holder of the credentials knows. All other parts
/// follow from the install and the runner's key, so the receiver of a proof makes them itself ([`CallerRequest`]).
#[derive(Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct RoleProof {
    /// The time of the request by the runner's clock, in whole seconds. STS accepts a request for 15 minutes.
    pub at: Timestamp,
    /// The access key id of the credentials. It is not secret.
    pub access_key_id: String,
    /// The session token of the credentials, which nobody can use without the secret access key.
    pub session_token: String,
    /// The signature (AWS Signature Version 4), 64 hex digits.
    pub signature: String,
}

impl fmt::Debug for RoleProof {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        // The output omits the session token and the signature.
        f.debug_struct("RoleProof").field("at", &self.at).finish_non_exhaustive()
    }
}

/// The reason why a request to STS cannot be made.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum RoleProofError {
    #[error("`{0}` cannot be a part of the name of AWS STS's host; expected a region like `eu-west-1`")]
    Region(String),
    #[error("the proof of the runner's role has no valid {0}")]
    Part(&'static str),
}

/// A request `GetCallerIdentity` that is bound to one runner key of one install.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct CallerRequest {
    region: String,
    binding: String,
}

impl CallerRequest {
    /// The body of the request (AWS STS API reference, `GetCallerIdentity`).
    pub const BODY: &'static str = "Action=GetCallerIdentity&Version=2011-06-15";
    /// The type of the body.
    pub const CONTENT_TYPE: &'static str = "application/x-www-form-urlencoded";
    /// The signed header with the binding.
    pub const BINDING_HEADER: &'static str = "x-freehold-runner";
    /// The names of the signed headers, in the order in which they are signed.
    const SIGNED_HEADERS: &'static str = "content-type;host;x-amz-date;x-amz-security-token;x-freehold-runner";

    /// Returns the request that proves that the runner with key `key` has the role of `install`. STS answers in `region`.
    ///
    /// # Errors
    /// [`RoleProofError::Region`] for a text that is not the name of a region, because it becomes a part of a host's name.
    pub fn new(
        region: &str,
        tenant: &TenantName,
        install: &InstallId,
        key: &PublicKey,
    ) -> Result<Self, RoleProofError> {
        let is_region = (3..=32).contains(&region.len())
            && region.bytes().all(|byte| byte.is_ascii_lowercase() || byte.is_ascii_digit() || byte == b'-')
            && region.starts_with(|first: char| first.is_ascii_lowercase());
        if !is_region {
            return Err(RoleProofError::Region(region.chars().take(80).collect()));
        }
        Ok(Self { region: region.to_owned(), binding: binding(tenant, install, key) })
    }

    /// Returns the host of STS in the region.
    pub fn host(&self) -> String {
        format!("sts.{}.{}", self.region, Partition::of_region(&self.region).dns_suffix)
    }

    /// Returns the region.
    pub fn region(&self) -> &str {
        &self.region
    }

    /// Returns the value of the header [`Self::BINDING_HEADER`]: a digest of the tenant, the install and the key.
    pub fn binding(&self) -> &str {
        &self.binding
    }

    /// Returns all headers of the request as `proof` signs it. No name of a header comes from the proof.
    ///
    /// # Errors
    /// [`RoleProofError::Part`] for a proof with a part that cannot be in a header.
    pub fn headers(&self, proof: &RoleProof) -> Result<Vec<(&'static str, String)>, RoleProofError> {
        let RoleProof { at, access_key_id, session_token, signature } = proof;
        let date = amz_date(*at).ok_or(RoleProofError::Part("time"))?;
        if !(16..=128).contains(&access_key_id.len()) || !access_key_id.bytes().all(|byte| byte.is_ascii_alphanumeric())
        {
            return Err(RoleProofError::Part("access key id"));
        }
        let is_token = |byte: u8| byte.is_ascii_alphanumeric() || b"+/=_-.".contains(&byte);
        if !(1..=MAX_TOKEN_BYTES).contains(&session_token.len()) || !session_token.bytes().all(is_token) {
            return Err(RoleProofError::Part("session token"));
        }
        if signature.len() != 64 || !signature.bytes().all(|byte| byte.is_ascii_hexdigit()) {
            return Err(RoleProofError::Part("signature"));
        }
        let day = date.get(..8).unwrap_or_default();
        let authorization = format!(
            "AWS4-HMAC-SHA256 Credential={access_key_id}/{day}/{}/sts/aws4_request, SignedHeaders={}, \
             Signature={signature}",
            self.region,
            Self::SIGNED_HEADERS
        );
        Ok(vec![
            ("content-type", Self::CONTENT_TYPE.to_owned()),
            ("host", self.host()),
            ("x-amz-date", date),
            ("x-amz-security-token", session_token.clone()),
            (Self::BINDING_HEADER, self.binding.clone()),
            ("authorization", authorization),
        ])
    }
}

/// Returns the digest that binds a request to a key. Each part follows its length, so that two different triples never
/// give the same input.
fn binding(tenant: &TenantName, install: &InstallId, key: &PublicKey) -> String {
    let mut hash = Sha256::new();
    hash.update(b"freehold runner role v1\0");
    for part in [tenant.as_str().as_bytes(), install.as_str().as_bytes(), key.verifying_key().as_bytes()] {
        hash.update((part.len() as u64).to_be_bytes());
        hash.update(part);
    }
    hex(hash.finalize().as_slice())
}

/// Returns a time as AWS signs it, such as `20261123T074854Z`; `None` after the year 9999.
fn amz_date(at: Timestamp) -> Option<String> {
    let secs = at.as_secs();
    let (year, month, day) = civil(secs / 86_400);
    let (hour, minute, second) = (secs / 3600 % 24, secs / 60 % 60, secs % 60);
    (year <= 9999).then(|| format!("{year:04}{month:02}{day:02}T{hour:02}{minute:02}{second:02}Z"))
}

#[cfg(test)]
mod tests {
    use ed25519_dalek::SigningKey;

    use super::*;

    fn request(region: &str, install: &str, key: u8) -> Result<CallerRequest, RoleProofError> {
        let key = SigningKey::from_bytes(&[key; 32]).verifying_key().into();
        CallerRequest::new(region, &"acme".parse().unwrap(), &install.parse().unwrap(), &key)
    }

    fn proof() -> RoleProof {
        RoleProof {
            at: Timestamp::from_millis(1_795_420_134_000),
            access_key_id: "ASIA0123456789ABCDEF".into(),
            session_token: "FwoGZXIvYXdz+/=".into(),
            signature: "7d".repeat(32),
        }
    }

    #[test]
    fn a_request_is_made_from_its_region_and_key_alone() {
        let request = request("eu-west-1", "globex", 7).unwrap();

        let headers = request.headers(&proof()).unwrap();

        let signed = format!(
            "AWS4-HMAC-SHA256 Credential=ASIA0123456789ABCDEF/20261123/eu-west-1/sts/aws4_request, SignedHeaders=content-type;\
             host;x-amz-date;x-amz-security-token;x-freehold-runner, Signature={}",
            "7d".repeat(32)
        );
        assert_eq!(
            headers,
            [
                ("content-type", "application/x-www-form-urlencoded".to_owned()),
                ("host", "sts.eu-west-1.amazonaws.com".to_owned()),
                ("x-amz-date", "20261123T074854Z".to_owned()),
                ("x-amz-security-token", "FwoGZXIvYXdz+/=".to_owned()),
                ("x-freehold-runner", request.binding().to_owned()),
                ("authorization", signed),
            ]
        );
    }

    #[test]
    fn another_key_install_or_tenant_is_another_binding() {
        let binding = |install, key| request("eu-west-1", install, key).unwrap().binding().to_owned();
        let tenant = |tenant: &str, install: &str| {
            let key = SigningKey::from_bytes(&[7; 32]).verifying_key().into();
            let request = CallerRequest::new("eu-west-1", &tenant.parse().unwrap(), &install.parse().unwrap(), &key);
            request.unwrap().binding().to_owned()
        };

        assert_eq!(binding("globex", 7), tenant("acme", "globex"));
        for other in
            [binding("globex", 8), binding("globex-2", 7), tenant("acm", "eglobex"), tenant("initech", "globex")]
        {
            assert_ne!(other, binding("globex", 7));
        }
    }

    #[test]
    fn no_other_host_can_be_named() {
        for region in ["", "eu", "evil.example/", "x@evil", "EU-WEST-1", "eu west", "-eu-west-1", "evil.example#"] {
            assert!(matches!(request(region, "globex", 7), Err(RoleProofError::Region(_))), "{region}");
        }
        assert_eq!(request("cn-north-1", "globex", 7).unwrap().host(), "sts.cn-north-1.amazonaws.com.cn");
        assert_eq!(request("us-gov-west-1", "globex", 7).unwrap().host(), "sts.us-gov-west-1.amazonaws.com");
        assert_eq!(request("us-iso-east-1", "globex", 7).unwrap().host(), "sts.us-iso-east-1.c2s.ic.gov");
        assert_eq!(request("eusc-de-east-1", "globex", 7).unwrap().host(), "sts.eusc-de-east-1.amazonaws.eu");
    }

    #[test]
    fn a_part_that_could_add_a_header_or_a_field_is_refused() {
        let request = request("eu-west-1", "globex", 7).unwrap();
        let good = proof();
        for (bad, part) in [
            (RoleProof { access_key_id: "ASIA/20261123/us-east-1".into(), ..good.clone() }, "access key id"),
            (
                RoleProof { access_key_id: "ASIA0123456789AB, SignedHeaders=host".into(), ..good.clone() },
                "access key id",
            ),
            (RoleProof { access_key_id: String::new(), ..good.clone() }, "access key id"),
            (RoleProof { session_token: String::new(), ..good.clone() }, "session token"),
            (RoleProof { session_token: "a\r\nhost: evil".into(), ..good.clone() }, "session token"),
            (RoleProof { session_token: "a".repeat(MAX_TOKEN_BYTES + 1), ..good.clone() }, "session token"),
            (RoleProof { signature: "7d".repeat(31), ..good.clone() }, "signature"),
            (RoleProof { signature: "zz".repeat(32), ..good.clone() }, "signature"),
            (RoleProof { at: Timestamp::from_millis(u64::MAX), ..good }, "time"),
        ] {
            assert_eq!(request.headers(&bad), Err(RoleProofError::Part(part)));
        }
    }
}
