//! The work of replacing a runner's own program by another one of a signed release.

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use serde::{Deserialize, Serialize};

use crate::Digest;
use crate::envelope::PublicKey;

/// The name of the runner's program in a release, below the directory of an architecture, and in the archive that the runner
/// downloads.
pub const RUNNER_PROGRAM: &str = "freehold-runner";
/// The media type of the archive: a gzipped tar with [`RUNNER_PROGRAM`].
pub const RUNNER_ARCHIVE: &str = "application/vnd.freehold.runner.v1.tar+gzip";
/// The limits of the time within which the new program has to prove its health, in seconds.
pub const HEALTH_SECS: std::ops::RangeInclusive<u32> = 10..=1800;

/// Replaces the runner's program. The runner takes only a program whose checksum is signed by the release key that the
/// customer's install stack names, and returns to its old program when the new program does not prove its health in
/// time.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct UpgradeRunner {
    /// The version that the program must have, and that must not be older than the version that runs.
    pub version: String,
    /// The SHA-256 of the program.
    pub program: Digest,
    /// The digest of the archive with the program. The runner downloads it under a grant.
    pub archive: Digest,
    /// The size of the archive, in bytes.
    pub archive_size: u64,
    /// The proof that the program belongs to a release.
    pub release: SignedSums,
    /// The time within which the new program has to prove its health, in seconds ([`HEALTH_SECS`]).
    pub health_secs: u32,
}

/// The checksums of a release, as `make dist` writes them into `SHA256SUMS`, with their Ed25519 signature.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct SignedSums {
    /// The text of `SHA256SUMS`.
    pub sums: String,
    /// The contents of `SHA256SUMS.sig`, in base64.
    pub signature: String,
}

/// The reason why a program is not of a signed release.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum NotReleased {
    #[error("the checksums of the release are not signed by the release key {0}")]
    OtherKey(Box<PublicKey>),
    #[error("the signed checksums of the release have no `{path}` with the SHA-256 {sha256}")]
    Unlisted { path: String, sha256: String },
}

/// Returns the lines of a `SHA256SUMS`: a SHA-256 in hexadecimal digits, and the path that has it.
pub fn listed(sums: &str) -> impl Iterator<Item = (&str, &str)> {
    sums.lines().filter_map(|line| line.split_once("  "))
}

impl SignedSums {
    /// Checks that `key` signed the checksums, and that they list `program` as the runner for `architecture`, such as
    /// `arm64`.
    ///
    /// # Errors
    /// The reason why the program is not of a release of this key.
    pub fn verify(&self, key: &PublicKey, architecture: &str, program: &Digest) -> Result<(), NotReleased> {
        let signature = STANDARD.decode(&self.signature).unwrap_or_default();
        if !key.has_signed(self.sums.as_bytes(), &signature) {
            return Err(NotReleased::OtherKey(Box::new(key.clone())));
        }
        let path = format!("{architecture}/{RUNNER_PROGRAM}");
        let wanted = (program.hex(), path.as_str());
        if listed(&self.sums).any(|line| line == wanted) {
            return Ok(());
        }
        Err(NotReleased::Unlisted { path, sha256: program.hex().to_owned() })
    }
}

#[cfg(test)]
mod tests {
    use ed25519_dalek::{Signer as _, SigningKey};

    use super::*;

    fn signed(sums: &str, seed: u8) -> SignedSums {
        let signature = SigningKey::from_bytes(&[seed; 32]).sign(sums.as_bytes());
        SignedSums { sums: sums.to_owned(), signature: STANDARD.encode(signature.to_bytes()) }
    }

    #[test]
    fn only_a_program_that_the_key_signed_for_this_architecture_is_of_a_release() {
        let key: PublicKey = SigningKey::from_bytes(&[7; 32]).verifying_key().into();
        let (program, other) = (Digest::of(b"runner"), Digest::of(b"other"));
        let sums = format!("{}  arm64/freehold-runner\n{}  arm64/freehold\n", program.hex(), other.hex());
        let path = || "x86_64/freehold-runner".to_owned();

        assert_eq!(signed(&sums, 7).verify(&key, "arm64", &program), Ok(()));
        assert_eq!(signed(&sums, 8).verify(&key, "arm64", &program), Err(NotReleased::OtherKey(Box::new(key.clone()))));
        let changed = SignedSums { sums: sums.replace(program.hex(), other.hex()), ..signed(&sums, 7) };
        assert_eq!(changed.verify(&key, "arm64", &other), Err(NotReleased::OtherKey(Box::new(key.clone()))));
        let unlisted = signed(&sums, 7).verify(&key, "arm64", &other);
        assert!(matches!(unlisted, Err(NotReleased::Unlisted { .. })), "{unlisted:?}");
        let elsewhere = NotReleased::Unlisted { path: path(), sha256: program.hex().to_owned() };
        assert_eq!(signed(&sums, 7).verify(&key, "x86_64", &program), Err(elsewhere));
    }
}
