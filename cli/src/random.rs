//! Random names and keys.

use crate::error::{Error, Result};

/// Returns 32 random hex digits.
pub(crate) fn hex() -> Result<String> {
    Ok(freehold_protocol::digest::hex(&bytes::<16>()?))
}

/// Returns random bytes for a key.
pub(crate) fn bytes<const N: usize>() -> Result<[u8; N]> {
    let mut bytes = [0_u8; N];
    getrandom::fill(&mut bytes)
        .map_err(|e| Error::internal(format!("cannot read random bytes from this machine: {e}")))?;
    Ok(bytes)
}
