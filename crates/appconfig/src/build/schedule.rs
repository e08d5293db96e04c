//! Checks the schedules of actions, components and the sandbox.

use freehold_domain::cron::Schedule;

use crate::read::document::Node;
use crate::report::draft::Draft;
use crate::state::file::Checked;

/// Reports a value that is not a cron expression of five fields. A template is not checked, because its value is only
/// known at run time.
pub(crate) fn not_a_schedule(checked: &Checked, node: &Node) -> Option<Draft> {
    let text = node.as_text().filter(|text| !text.contains("{{"))?;
    let found = Schedule::parse(text).err()?;
    let mut place = checked.place(node);
    // A one-line string without escapes is two bytes longer in the file than its value, because of its quotes. Only in
    // such a string is the exact place of the mistake known; in any other string the whole value is marked.
    if place.span.len() == text.len() + 2 {
        let start = place.span.start + 1 + found.offset;
        place.span = start..start + found.length.max(1);
    }
    let draft = Draft::error(place, found.message);
    Some(draft.help("write minute, hour, day of the month, month and day of the week, such as `*/15 8-18 * * mon-fri`"))
}

/// Reports a schedule of drift checks that cannot be read, or that is due more than once an hour. Empty text means never.
pub(crate) fn not_a_drift_schedule(checked: &Checked, root: &Node) -> Option<Draft> {
    not_a_check_schedule(checked, root, "drift_schedule")
}

/// Reports a schedule of checks, the value of `key`, that cannot be read, or that is due more than once an hour. Empty text
/// means never.
pub(crate) fn not_a_check_schedule(checked: &Checked, table: &Node, key: &str) -> Option<Draft> {
    let node = table.get(key).filter(|node| node.as_text() != Some(""))?;
    let text = node.as_text().unwrap_or_default();
    match Schedule::parse(text) {
        Ok(schedule) if !schedule.is_at_most_hourly() => {
            let message = format!("`{key}` `{text}` is due more than once an hour");
            Some(Draft::error(checked.place(node), message).help("write one minute of the hour, such as `0 * * * *`"))
        }
        Ok(_) | Err(_) => not_a_schedule(checked, node),
    }
}
