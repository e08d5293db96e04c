//! Warns about parts of an app that run in Pulumi, because Freehold was not tested with the program `pulumi`.

use freehold_protocol::app_version::{AppVersion, ComponentSpec, SandboxTool};

use crate::kinds::Kind;
use crate::read::files::Place;
use crate::report::draft::Draft;
use crate::state::app::App;

const HELP: &str = "deploy to an install of your own first, and tear it down again";

/// Warns once, at the first Pulumi program.
pub(crate) fn check(app: &mut App, version: &AppVersion) {
    let sandbox = version.sandbox.iter().filter(|sandbox| matches!(sandbox.tool, SandboxTool::Pulumi { .. }));
    let programs = version.components.iter().filter(|one| matches!(one.spec, ComponentSpec::Pulumi { .. }));
    let mut found = sandbox
        .map(|_| (Kind::Sandbox, None))
        .chain(programs.map(|component| (Kind::Component, Some(component.name.as_str()))));
    let Some((kind, name)) = found.next() else { return };
    let more = match found.count() {
        0 => String::new(),
        more => format!(" (and {more} more)"),
    };
    let part = name.map_or_else(|| "the sandbox".to_owned(), |name| format!("component `{name}`"));
    let place = app.of(kind).find(|checked| name.is_none() || checked.root.text("name") == name);
    let place = place.map_or(Place { file: 0, span: 0..0 }, |checked| checked.place_of(&checked.root, "type"));
    let message = format!(
        "{part} is a program of Pulumi{more}: Freehold was tested with a program that has Pulumi's interface, and not \
         with Pulumi itself"
    );
    app.drafts.push(Draft::warning(place, message).help(HELP));
}
