//! Finds the runner in the checksums of a Freehold release by its SHA-256. `make dist` writes and signs these
//! checksums.

use std::path::{Path, PathBuf};

use freehold_protocol::envelope::PublicKey;
use freehold_protocol::order::upgrade::listed;
use freehold_protocol::pem;

use crate::error::{Error, Result};

/// The file name of the runner in a release.
const RUNNER: &str = "freehold-runner";
const WAY_OUT: &str = "pass the file that `make dist KEY=FILE` wrote, or ask whoever makes the releases for it";
/// The maximum size of a file of checksums, of its signature and of a key, in bytes.
const MOST: usize = 1024 * 1024;

/// Returns the path, in the release, of the runner with this SHA-256, such as `arm64/freehold-runner`.
pub(super) fn runner_of_release(sums: &Path, key: &Path, sha256: &str) -> Result<String> {
    let text = signed_sums(sums, key)?;
    let found = listed(&text).filter(|(digest, _)| digest.eq_ignore_ascii_case(sha256)).map(|(_, path)| path);
    found.into_iter().find(|path| path.rsplit('/').next() == Some(RUNNER)).map(str::to_owned).ok_or_else(|| {
        Error::failed(format!(
            "the template names a runner with the SHA-256 {sha256}, but `{}` lists no `{RUNNER}` with this SHA-256: \
             the runner is not the program of this release",
            sums.display()
        ))
        .or("do not launch the template; ask the vendor which release contains its runner")
    })
}

/// Reads the checksums and verifies their signature, which is in the file of the same name with `.sig` appended.
fn signed_sums(sums: &Path, key: &Path) -> Result<String> {
    let bytes = bytes(sums)?;
    let signature = PathBuf::from(format!("{}.sig", sums.display()));
    if !public_key(key)?.has_signed(&bytes, &self::bytes(&signature)?) {
        return Err(Error::failed(format!(
            "`{}` is not the signature of `{}` by the key in `{}`",
            signature.display(),
            sums.display(),
            key.display()
        ))
        .or("do not launch the template; ask whoever makes the releases for the signed checksums and the public key"));
    }
    String::from_utf8(bytes).map_err(|_| Error::invalid(format!("`{}` is not text", sums.display())).or(WAY_OUT))
}

fn public_key(file: &Path) -> Result<PublicKey> {
    let text = String::from_utf8_lossy(&bytes(file)?).into_owned();
    if text.contains("PRIVATE KEY-----") {
        let shown = file.display();
        return Err(Error::invalid(format!(
            "`{shown}` is a private key, which only the maker of the releases may have"
        ))
        .or(format!(
            "pass the public key; the maker gets it with `openssl pkey -in {shown} -pubout -out release-key.pub`"
        )));
    }
    let key = pem::public_key(&text).map_err(|wrong| wrong.to_string());
    let key = key.and_then(|der| PublicKey::from_spki_der(&der).map_err(|_| "it is not an Ed25519 key".to_owned()));
    key.map_err(|wrong| {
        Error::invalid(format!("`{}` is not the public key of a release: {wrong}", file.display())).or(WAY_OUT)
    })
}

fn bytes(file: &Path) -> Result<Vec<u8>> {
    let bytes = crate::file::read(file, WAY_OUT)?;
    if bytes.len() > MOST {
        return Err(Error::invalid(format!("`{}` has more than {MOST} bytes", file.display())).or(WAY_OUT));
    }
    Ok(bytes)
}
