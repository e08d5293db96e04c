//! The clock of the machine that a command runs on.

use freehold_protocol::Timestamp;

use crate::error::{Error, Result};

/// Returns the current time.
///
/// # Errors
/// When the clock of this machine is before 1970.
pub(crate) fn now() -> Result<Timestamp> {
    let millis = u64::try_from(jiff::Timestamp::now().as_millisecond());
    millis.map(Timestamp::from_millis).map_err(|_| Error::failed("the clock of this machine is before 1970"))
}
