//! Reads the file that `freehold contract show -o FILE` writes.

use std::path::Path;

use freehold_protocol::Envelope;

use crate::error::{Error, Kind, Result};

pub(super) const WAY_OUT: &str = "pass the file that `freehold contract show APP -o FILE` wrote";

/// Returns the envelope in the file. Does not check its signature.
pub(super) fn read(path: &Path) -> Result<Envelope> {
    let shown = path.display();
    let bytes = crate::file::read(path, WAY_OUT)?;
    Envelope::parse(&bytes).map_err(|error| {
        Error::quoting(Kind::Invalid, format!("`{shown}` is not a signed contract: {error}")).or(WAY_OUT)
    })
}
