//! The terms that name the values of the customer that a removal may read.

use freehold_protocol::Digest;
use freehold_protocol::contract::{OrderTerms, Terms};

/// Returns the terms that name the values that a removal may read: those of its order, and those with the digest
/// `accepted`, to which the customer agreed. The terms of a removal leave out what the customer may no longer have
/// accepted. Terms that the order does not contain, and terms that cannot be read, name nothing and are left out.
pub fn terms_for_removal(ordered: &OrderTerms, accepted: Option<&Digest>) -> Vec<Terms> {
    let asked = ordered.asked().ok().flatten();
    let accepted = accepted.zip(ordered.change.as_ref()).and_then(|(digest, change)| change.accepted.open(digest).ok());
    asked.into_iter().chain(accepted).collect()
}
