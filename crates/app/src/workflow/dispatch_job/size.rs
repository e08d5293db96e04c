//! Whether an order fits into a message and, compressed, into a row of the table.

use freehold_protocol::envelope::decode_base64;
use freehold_protocol::limits::{MAX_ORDER_BYTES, MAX_PACKED_ORDER_BYTES};
use freehold_protocol::{Envelope, EnvelopeError, packed_len};

/// The advice about an order that is too large.
const WAY_OUT: &str = "shorten the inputs of the install or the outputs of the components that it reads, or bring long \
                       texts as files of the app";

/// The reason why an order cannot be sent, as the rest of a sentence about it.
#[derive(Debug, thiserror::Error)]
pub(super) enum SizeError {
    #[error("has {0} bytes, more than the {MAX_ORDER_BYTES} that fit into a message; {WAY_OUT}")]
    Message(usize),
    #[error(
        "has {packed} bytes after compression ({bytes} before), more than the {MAX_PACKED_ORDER_BYTES} that fit into a row \
         of the table; {WAY_OUT}"
    )]
    Row { bytes: usize, packed: usize },
    #[error("cannot be read: {0}")]
    Unreadable(#[from] EnvelopeError),
    #[error("cannot be compressed: {0}")]
    Unpackable(#[from] std::io::Error),
}

/// Checks the size of an order's payload.
///
/// # Errors
/// [`SizeError`].
pub(super) fn check(envelope: &Envelope) -> Result<(), SizeError> {
    // Base64 is a third longer than its bytes, which are compressed only if they may be too long.
    if envelope.payload.len() <= MAX_PACKED_ORDER_BYTES {
        return Ok(());
    }
    let payload = decode_base64(&envelope.payload)?;
    if payload.len() > MAX_ORDER_BYTES {
        return Err(SizeError::Message(payload.len()));
    }
    let packed = packed_len(&payload)?;
    if packed > MAX_PACKED_ORDER_BYTES {
        return Err(SizeError::Row { bytes: payload.len(), packed });
    }
    Ok(())
}
