//! Decides whether an approved plan may be applied: compares everything that the approval covers. Does no I/O.

use std::collections::BTreeSet;

use freehold_protocol::approval::{OrderApproval, PlanRecord, Side, WrittenDecision};
use freehold_protocol::order::{Order, Work};
use freehold_protocol::time::rfc3339;
use freehold_protocol::{Digest, Timestamp, canonical};
use serde::{Deserialize, Serialize};
use serde_json::{Value, json};

/// The values and the state that a plan is made from, besides the order.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Facts {
    /// The rendered values that the plan is made from. They may contain secrets, so only a salted digest is stored.
    pub inputs: Value,
    /// The state that the plan is compared with, such as the lineage and the serial of a Terraform state.
    pub state: String,
}

/// The order that applies a plan.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Use {
    pub job: String,
    pub dispatch: u32,
}

/// Everything that the runner finds about a plan that an order names.
#[derive(Debug, Clone, Copy)]
pub struct Found<'a> {
    /// The bytes of the plan's record in the customer's bucket; absent when there is none.
    pub record: Option<&'a [u8]>,
    /// The bytes of the note that names the order under which the plan is applied; absent before the first such order.
    pub used: Option<&'a [u8]>,
    pub now: Timestamp,
}

/// The reason why an approved plan is not applied.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum NotApplied {
    /// The approval does not count for this order. The job ends.
    Refused(String),
    /// Something that the plan was made from has changed since, or an earlier dispatch has begun to apply the plan. The
    /// runner makes a new plan, which needs an approval of its own.
    Outdated(String),
}

/// Returns the record of the plan that `order` names, if the approval is for this order and nothing has changed since.
///
/// # Errors
/// [`NotApplied`] with the reason.
pub fn recalled(
    order: &Order,
    named: &OrderApproval,
    facts: &Facts,
    found: Found<'_>,
) -> Result<PlanRecord, NotApplied> {
    let record = record_of(named, found.record)?;
    check_subject(order, named, &record)?;
    let until = record.until.min(named.until);
    if found.now > until {
        let until = rfc3339::text(until).unwrap_or_default();
        let why = format!("its approval expired at {until}; start the job again, which makes a new plan");
        return Err(refused(named, &why));
    }
    if record.policies != named.policies {
        return Err(refused(named, "its approval was given for other results of the policies"));
    }
    if let Some(used) = found.used {
        check_use(order, named, used)?;
    }
    check_unchanged(order, named, facts, &record)?;
    Ok(record)
}

fn refused(named: &OrderApproval, why: &str) -> NotApplied {
    NotApplied::Refused(format!("plan `{}` is not applied: {why}", named.plan))
}

/// Reads the record of a plan, whose bytes must have the digest that names the plan.
fn record_of(named: &OrderApproval, bytes: Option<&[u8]>) -> Result<PlanRecord, NotApplied> {
    let bytes = bytes.ok_or_else(|| refused(named, "the install's bucket has no record of it"))?;
    let digest = Digest::of(bytes);
    if digest != named.plan {
        return Err(refused(named, &format!("the bytes of its record have changed: their digest is `{digest}`")));
    }
    serde_json::from_slice(bytes).map_err(|error| refused(named, &format!("its record cannot be read: {error}")))
}

/// Checks that the plan is for the install, the job and the change of the order.
fn check_subject(order: &Order, named: &OrderApproval, record: &PlanRecord) -> Result<(), NotApplied> {
    if (&record.tenant, &record.install) != (&order.tenant, &order.install) {
        return Err(refused(named, &format!("it is for install `{}` of `{}`", record.install, record.tenant)));
    }
    let (changes, removal) = (order.work.changes(), is_removal(order));
    if (record.changes.as_str(), record.removal) != (changes.as_str(), removal) {
        let (planned, ordered) = (subject(&record.changes, record.removal), subject(&changes, removal));
        return Err(refused(named, &format!("it is for {planned}, and this job is for {ordered}")));
    }
    if record.job != order.job {
        return Err(refused(named, &format!("it is the plan of job `{}`", record.job)));
    }
    Ok(())
}

fn subject(changes: &str, removal: bool) -> String {
    let removal = if removal { "the removal of " } else { "" };
    format!("{removal}`{changes}`")
}

/// Checks that no other order has begun to apply the plan. `used` is the note of the order that has.
fn check_use(order: &Order, named: &OrderApproval, used: &[u8]) -> Result<(), NotApplied> {
    let this = Use { job: order.job.to_string(), dispatch: order.dispatch };
    match serde_json::from_slice::<Use>(used) {
        // The same order was delivered again. The state shows whether its first delivery changed something.
        Ok(used) if used == this => Ok(()),
        // The machine failed while it applied the plan, and the job was ordered again. What is left needs a new plan.
        Ok(used) if used.job == this.job => {
            Err(NotApplied::Outdated(format!("dispatch {} has begun to apply plan `{}`", used.dispatch, named.plan)))
        }
        Ok(Use { job, dispatch }) => {
            Err(refused(named, &format!("dispatch {dispatch} of job `{job}` has applied it already")))
        }
        Err(error) => {
            let why = format!("cannot read the note that names the order under which the plan was applied: {error}");
            Err(refused(named, &why))
        }
    }
}

/// Checks that the work, the values and the state are those that the plan was made from.
fn check_unchanged(order: &Order, named: &OrderApproval, facts: &Facts, record: &PlanRecord) -> Result<(), NotApplied> {
    let moved = |what: &str| Err(NotApplied::Outdated(format!("{what} since the approved plan `{}`", named.plan)));
    match (work_digest(order), inputs_digest(&facts.inputs, &record.salt)) {
        (Ok(work), _) if work != record.work => return moved("the artifact or the config has changed"),
        (Ok(_), Ok(inputs)) if inputs != record.inputs => return moved("the values have changed"),
        (Ok(_), Ok(_)) => {}
        (Err(error), _) | (_, Err(error)) => {
            return Err(refused(named, &format!("its inputs have no canonical form: {error}")));
        }
    }
    if facts.state != record.state {
        return moved("the state has changed");
    }
    Ok(())
}

/// The plan that the job would apply now, and the sides that have to approve it now.
#[derive(Debug, Clone, Copy)]
pub struct Present<'a> {
    /// The digest of the plan's bytes.
    pub bytes: &'a Digest,
    /// The digest of the policies' results about the plan.
    pub policies: &'a Digest,
    pub asks: &'a BTreeSet<Side>,
}

/// Returns who approved the plan at the customer, if the plan may be applied: its bytes are those of the record, the policies have
/// the same results, and each side that has to approve it now has done so.
///
/// # Errors
/// [`NotApplied`] with the reason.
pub fn agreed(
    record: &PlanRecord,
    named: &OrderApproval,
    now: &Present<'_>,
    decision: Option<&[u8]>,
) -> Result<Option<String>, NotApplied> {
    let plan = &named.plan;
    if record.bytes != *now.bytes {
        return Err(NotApplied::Outdated(format!(
            "the job would now make other changes than those of the approved plan `{plan}`"
        )));
    }
    if record.policies != *now.policies {
        return Err(NotApplied::Outdated(format!(
            "the policies now have other results about the approved plan `{plan}`"
        )));
    }
    let customer = approved_by_customer(record, plan, decision).map_err(NotApplied::Refused)?;
    let missing = now.asks.iter().find(|side| match side {
        Side::Vendor => named.by.is_none(),
        Side::Customer => customer.is_none(),
    });
    match missing {
        Some(side) => {
            let side = side.as_str();
            Err(NotApplied::Refused(format!("plan `{plan}` is not applied: the {side} has not approved it")))
        }
        None => Ok(customer),
    }
}

/// Returns who approved the plan at the customer, if the customer's decision is about this plan of this install.
fn approved_by_customer(record: &PlanRecord, plan: &Digest, decision: Option<&[u8]>) -> Result<Option<String>, String> {
    let Some(decision) = decision.and_then(|bytes| serde_json::from_slice::<WrittenDecision>(bytes).ok()) else {
        return Ok(None);
    };
    let is_this = (&decision.tenant, &decision.install, &decision.plan) == (&record.tenant, &record.install, plan);
    match (is_this, decision.approved) {
        (false, _) => Ok(None),
        (true, true) => Ok(Some(decision.by)),
        (true, false) => Err(format!("{} (customer) rejected plan `{plan}`: {}", decision.by, decision.reason)),
    }
}

/// Returns whether the order removes something.
pub fn is_removal(order: &Order) -> bool {
    matches!(order.work, Work::Remove(_))
}

/// Returns the digest of the order's work: its artifacts, templates and options, the image of its programs, and its mode and role.
///
/// # Errors
/// As [`canonical::digest`].
pub fn work_digest(order: &Order) -> Result<Digest, serde_json::Error> {
    let tools = order.tool_image.as_ref().map(|image| &image.artifact.digest);
    canonical::digest(&json!({ "work": order.work, "tools": tools, "mode": order.mode, "role": order.role }))
}

/// Returns the digest of the values that a plan is made from. An integer without a canonical form, which an output may
/// have, counts as a text.
///
/// # Errors
/// Those of [`canonical::digest`]. These values cause none.
pub fn inputs_digest(inputs: &Value, salt: &str) -> Result<Digest, serde_json::Error> {
    canonical::digest(&canonical::with_long_integers_as_text(json!({ "salt": salt, "inputs": inputs })))
}

#[cfg(test)]
mod tests;
