//! The licence of the install, which signed orders brought, for a page. `freehold customer verify-licence` verifies the
//! copy of it that the app has.

use freehold_protocol::Timestamp;
use freehold_protocol::licence::Licence;
use freehold_protocol::order::Order;
use freehold_protocol::succession::Roots;
use serde_json::Value;

use super::super::answer::Answer;
use super::super::verify_licence;
use super::evidence::Evidence;
use super::history::runs;
use crate::error::{Error, Kind, Result};

/// The place of the licence in the values of an order.
const PLACE: &str = "/nuon/install/licence";

/// Returns the newest licence that an order of the records brought.
pub(in crate::customer) fn answer(evidence: &Evidence, now: Timestamp) -> Result<Answer> {
    let Some(roots) = &evidence.roots else {
        return Err(Error::failed("nobody can check who signed the licence, because the vendor's root key is missing")
            .or("pass the vendor's key as `--root-key KEY`"));
    };
    let mut newest: Option<Licence> = None;
    for order in runs(&evidence.copy, Some(roots)).iter().filter_map(|run| run.signed.as_ref()) {
        if let Some(licence) = licence_of(order, roots)? {
            let is_newer = newest.as_ref().is_none_or(|known| known.serial < licence.serial);
            newest = if is_newer { Some(licence) } else { newest };
        }
    }
    let newest = newest.ok_or_else(|| {
        Error::not_found(format!("no signed order in {} has a licence", evidence.whose))
            .or("an install has a licence after `freehold install set-licence` and the next order")
    })?;
    let valid = "the signature is valid under the vendor's root key";
    verify_licence::answer(newest, roots.current().key_id(), (now, valid))
}

/// Returns the licence in an order, if the order has one.
fn licence_of(order: &Order, roots: &Roots) -> Result<Option<Licence>> {
    let Some(text) = order.context.pointer(PLACE).and_then(Value::as_str) else { return Ok(None) };
    let opened = Licence::open(text.as_bytes(), roots);
    let checked = opened.and_then(|licence| licence.check_install(&order.tenant, &order.install).map(|()| licence));
    checked.map(Some).map_err(|error| {
        Error::quoting(Kind::Failed, format!("the licence in the order of job `{}` is not valid: {error}", order.job))
            .or("do not use this licence; ask the vendor for it again")
    })
}
