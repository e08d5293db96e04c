//! Compares the sandbox outputs that templates read with the outputs that the sandbox's module declares.

use freehold_template::nearest;

use super::reader::Reader;
use super::terraform::Module;
use crate::check::references::{Target, target};
use crate::kinds::Kind;
use crate::report::draft::Draft;
use crate::state::file::{Checked, Reading};
use crate::state::source::Held;

/// Reports each output that a file reads and that the module in `held` does not declare, or declares as sensitive.
pub(super) fn check(reader: &mut Reader<'_>, files: &[Checked], held: &Held, module: &Module) {
    if !module.whole {
        return;
    }
    for file in files.iter().filter(|file| file.kind != Kind::Sandbox) {
        for reading in file.uses.iter().filter(|reading| !reading.guarded) {
            let Some(Target::Sandbox(name)) = target(&reading.path) else { continue };
            if let Some(draft) = missing(file.kind, reading, name, held, module) {
                reader.say(draft);
            }
        }
    }
}

fn missing(kind: Kind, reading: &Reading, name: &str, held: &Held, module: &Module) -> Option<Draft> {
    let folder = held.path.trim_end_matches('/');
    let (message, help) = match module.outputs.get(name) {
        _ if name.is_empty() => return None,
        Some(false) => return None,
        Some(true) => (
            format!(
                "output `{name}` of the sandbox is sensitive: it stays in Terraform's state, and templates cannot read \
                 it"
            ),
            "remove `sensitive = true` from the output, or read the value from a secret".to_owned(),
        ),
        None => (
            format!("the sandbox's module in `{folder}` has no output `{name}`"),
            format!("declare it: `output \"{name}\" {{ value = ... }}`, or correct the template"),
        ),
    };
    let place = reading.place.clone();
    // A component cannot be deployed without the output. Texts in other files may never be rendered, so they only cause
    // a warning.
    let draft = match kind {
        Kind::Component => Draft::error(place, message),
        _ => Draft::warning(place, message),
    };
    let near = nearest(name, module.outputs.keys().map(String::as_str)).filter(|_| !module.outputs.contains_key(name));
    Some(match near {
        near @ Some(_) => draft.meant(near),
        None => draft.help(help),
    })
}
