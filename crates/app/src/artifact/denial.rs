//! The reason why a request for a grant is refused.

use freehold_protocol::grant::GrantRefusal;

/// The reason why a request is refused.
#[derive(Debug)]
pub(super) struct Denied {
    pub refusal: GrantRefusal,
    pub reason: String,
}

pub(super) fn deny(refusal: GrantRefusal, reason: impl Into<String>) -> Denied {
    Denied { refusal, reason: reason.into() }
}
