//! Warns about parts of an app that cannot be deployed yet, and so prevent every install of the app.

use std::collections::BTreeMap;

use freehold_domain::deployability::{Part, Undeployable, undeployable};
use freehold_protocol::app_version::AppVersion;

use crate::kinds::Kind;
use crate::read::files::Place;
use crate::report::draft::Draft;
use crate::state::app::App;

const HELP: &str = "the app can be checked, synced and built; an install of it is refused";

/// Warns once for each reason, at the first part that has it. `roles` has the places that define roles, by name.
pub(crate) fn check(app: &mut App, version: &AppVersion, roles: &BTreeMap<String, Place>) {
    let mut by_reason: Vec<(Undeployable, usize)> = Vec::new();
    for found in undeployable(version) {
        match by_reason.iter_mut().find(|(first, _)| first.why == found.why) {
            Some((_, more)) => *more += 1,
            None => by_reason.push((found, 0)),
        }
    }
    for (first, more) in by_reason {
        let more = if more == 0 { String::new() } else { format!(" (and {more} more)") };
        let place = place(app, &first.part, roles);
        let draft = Draft::warning(place, format!("the app cannot be deployed yet: {first}{more}"));
        app.drafts.push(draft.help(HELP));
    }
}

/// Returns the place in the config that a warning about `part` marks.
fn place(app: &App, part: &Part, roles: &BTreeMap<String, Place>) -> Place {
    let named = |kind: Kind, name: &str, key: &str| {
        let checked = app.of(kind).find(|checked| checked.root.text("name") == Some(name))?;
        Some(checked.place_of(&checked.root, key))
    };
    let found = match part {
        Part::Stack => app.of(Kind::Stack).next().map(|checked| checked.place_of(&checked.root, "type")),
        Part::Sandbox => app.of(Kind::Sandbox).next().map(|checked| checked.place_of(&checked.root, "type")),
        Part::Component(name) => named(Kind::Component, name.as_str(), "type"),
        Part::Action(name) => named(Kind::Action, name.as_str(), "name"),
        Part::ModeRole(_, name) | Part::NamedRole(name) => roles.get(name).cloned(),
    };
    // INVARIANT: every part of a version comes from a place in the config.
    found.unwrap_or(Place { file: 0, span: 0..0 })
}
