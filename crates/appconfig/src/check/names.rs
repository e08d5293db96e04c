//! Reports unknown names and duplicate names.

use freehold_template::nearest;

use crate::read::files::{Files, Place};
use crate::report::draft::Draft;

/// Reports that no `what` called `name` exists, and suggests the nearest known name. `home` is the file or the
/// directory that defines such things.
pub(crate) fn unknown<'a>(
    place: Place,
    what: &str,
    home: &str,
    name: &str,
    known: impl IntoIterator<Item = &'a str>,
) -> Draft {
    let draft = Draft::error(place, format!("there is no {what} `{name}`"));
    match nearest(name, known) {
        Some(near) => draft.meant(Some(near)),
        None => draft.help(format!("define the {what} in `{home}`, or remove the reference to it")),
    }
}

/// Reports that `what`, such as ``role `x` ``, is defined in two places.
pub(crate) fn twice(files: &Files, what: &str, first: &Place, second: Place) -> Draft {
    let message = format!("{what} is defined twice, in {} and here", files.short(first));
    let draft = Draft::error(second, message).related(first.clone(), "first defined here");
    draft.help("rename one of them, or remove it")
}
