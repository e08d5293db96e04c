//! Collects the entries of a bundle. A part that cannot be read is listed with the reason, and the others are still read.

use freehold_protocol::Timestamp;

use super::entry::{Entry, Parts};
use super::{audit, stack};
use crate::cloudformation::Stacks;
use crate::customer::OwnInstall;
use crate::error::Result;

/// Returns the entries about an install. `doctor` is the output of `freehold-runner doctor`, if the customer passes it.
///
/// # Errors
/// The first error, when nothing of the install could be read.
pub(super) async fn collect(own: &OwnInstall, doctor: Option<&str>, now: Timestamp) -> Result<Parts> {
    let mut parts = Parts::default();
    add_stack(own, now, &mut parts).await;
    parts.add("stack/machines.json", stack::machines(own).await);
    audit::add(own, &mut parts).await;
    let nothing = parts.entries.iter().all(|entry| entry.name == "stack/machines.json");
    if let Some(error) = parts.error.take().filter(|_| nothing) {
        return Err(error);
    }
    if let Some(text) = doctor {
        let about = "output of `freehold-runner doctor`";
        parts.entries.push(Entry::text("doctor.txt".to_owned(), about, text, false));
    }
    Ok(parts)
}

async fn add_stack(own: &OwnInstall, now: Timestamp, parts: &mut Parts) {
    let found = match own.stack().await {
        Ok(found) => found,
        Err(error) => return parts.lack("stack/", error),
    };
    let stacks = Stacks::new(&own.config);
    parts.add("stack/settings.json", stack::settings(&stacks, &found).await);
    parts.add("stack/events.jsonl", stack::events(&stacks, &found).await);
    parts.add("stack/contract.json", stack::template(&stacks, &found).await);
    parts.add("stack/windows.json", stack::windows(&found, now));
}
