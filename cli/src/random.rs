//! Random names.

use crate::error::{Error, Result};

/// Returns 32 random hex digits.
pub(crate) fn hex() -> Result<String> {
    let mut bytes = [0_u8; 16];
    getrandom::fill(&mut bytes)
        .map_err(|e| Error::internal(format!("cannot read random bytes from this machine: {e}")))?;
    Ok(freehold_protocol::digest::hex(&bytes))
}
