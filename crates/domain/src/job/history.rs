//! Limits the length of a job's history. A runner decides how often it reports that an attempt starts or gives an order
//! back, and the history is in the job's row, which has to fit into DynamoDB and is read with each report.

use crate::AuditRecord;

/// The maximum number of lines.
const MOST: usize = 200;
/// The number of lines at the beginning that stay.
const FIRST: usize = 20;
/// The maximum length of a reason in a line, in characters. The state of the job has the whole text.
const LONGEST_REASON: usize = 200;

/// Adds a line. If there are more than [`MOST`] lines, keeps the first [`FIRST`] lines and removes the oldest of the
/// others that no decision needs. Lines that a runner caused are removed before those of the control plane.
pub(super) fn add(history: &mut Vec<AuditRecord>, record: &AuditRecord) {
    let reason = record.reason.chars().take(LONGEST_REASON).collect();
    history.push(AuditRecord { reason, ..record.clone() });
    if history.len() <= MOST {
        return;
    }
    let first = |decides: fn(&AuditRecord) -> bool| history.iter().position(decides);
    let begun = [first(|line| line.to == "running"), first(shows_an_attempt)];
    let is_spare = |at: &usize| {
        let is_end = history.get(*at).is_some_and(|line| line.what == "finished");
        !is_end && !begun.contains(&Some(*at))
    };
    let is_of_runner = |at: &usize| is_spare(at) && history.get(*at).is_some_and(|line| line.runner.is_some());
    let is_no_begin = |at: &usize| !begun.contains(&Some(*at));
    let spare = (FIRST..MOST).find(is_of_runner).or_else(|| (FIRST..MOST).find(is_spare));
    let spare = spare.or_else(|| (FIRST..MOST).find(is_no_begin));
    history.remove(spare.unwrap_or(FIRST));
}

/// Returns whether the line shows that an attempt may have begun, perhaps under an earlier order: one reported it, or the
/// runner refused a delivery that was not the first one.
pub(super) fn shows_an_attempt(line: &AuditRecord) -> bool {
    let is_later = line.fence.is_some_and(|fence| fence.receive > 1);
    line.to == "running" || line.what == "started" || (line.what == "outside_window" && is_later)
}
