//! Schedules that a config gives to actions, components and the sandbox.

use freehold_domain::cron::Schedule;

use crate::read::document::Node;
use crate::report::draft::Draft;
use crate::state::file::Checked;

/// Reports why a value is not a schedule of five fields. A template is not checked, because its value is known at run
/// time only.
pub(crate) fn not_a_schedule(checked: &Checked, node: &Node) -> Option<Draft> {
    let text = node.as_text().filter(|text| !text.contains("{{"))?;
    let found = Schedule::parse(text).err()?;
    let mut place = checked.place(node);
    // A string of one line without escapes has one quote before it; of any other, the whole is marked.
    if place.span.len() == text.len() + 2 {
        let start = place.span.start + 1 + found.offset;
        place.span = start..start + found.length.max(1);
    }
    let draft = Draft::error(place, found.message);
    Some(draft.help("write minute, hour, day of the month, month and day of the week, such as `*/15 8-18 * * mon-fri`"))
}
