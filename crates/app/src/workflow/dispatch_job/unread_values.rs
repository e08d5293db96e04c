//! The values of a removal that nothing in it reads.

use std::collections::BTreeSet;

use freehold_domain::contract::reads_secret;
use freehold_protocol::app_version::{Input, Reference, Secret};

/// Leaves out the secrets and the customer's sensitive inputs that are not in `reads`, the values that the templates of
/// a removal read. Without the document of its terms, an order may name no such value, because nothing shows that the
/// customer agreed to it. A value that is read stays, so that the runner refuses the order and its reason names the
/// value.
pub(super) fn leave_out_unread(secrets: &mut Vec<Secret>, inputs: &mut Vec<Input>, reads: &BTreeSet<Reference>) {
    secrets.retain(|secret| reads_secret(reads, secret));
    inputs.retain(|input| !input.customer || reads.contains(&Reference::Input(input.name.clone())));
}
