//! Compares the outputs that templates read with the outputs that the sandbox's module, a component's module and a
//! component's CloudFormation template declare.

use freehold_template::nearest;

use super::declarations::{Form, Outputs};
use super::reader::Reader;
use crate::check::references::{Target, target};
use crate::kinds::Kind;
use crate::report::draft::Draft;
use crate::state::file::{Checked, Reading};
use crate::state::source::Held;

/// Reports reads of the outputs of the part that `owner` defines: of an output that the source in `held` does not
/// declare, and of a sensitive output in a file that defines neither a component nor an action.
pub(super) fn check(reader: &mut Reader<'_>, files: &[Checked], owner: &Checked, held: &Held, declared: &Outputs) {
    if !declared.whole {
        return;
    }
    // Components that read their own outputs are reported as cycles, and a sandbox that reads outputs as undeployable.
    for file in files.iter().filter(|file| file.kind != Kind::Sandbox && file.file != owner.file) {
        for reading in file.uses.iter().filter(|reading| !reading.guarded) {
            let Some(name) = output_of(owner, &reading.path) else { continue };
            if let Some(draft) = missing(file.kind, reading, name, &source(owner, held, declared), declared) {
                reader.say(draft);
            }
        }
    }
}

/// Returns the output of the part that `owner` defines, if a path reads one.
fn output_of<'a>(owner: &Checked, path: &'a [String]) -> Option<&'a str> {
    let name = match target(path)? {
        Target::Sandbox(name) if owner.kind == Kind::Sandbox => name,
        Target::Component(word, [outputs, name, ..]) if owner.kind == Kind::Component && outputs == "outputs" => {
            let is_named = ["name", "var_name"].iter().any(|key| owner.root.text(key) == Some(word));
            is_named.then_some(name.as_str())?
        }
        Target::Input(_)
        | Target::Component(..)
        | Target::Action(..)
        | Target::Secret(_)
        | Target::Sandbox(_)
        | Target::InstallStack(_)
        | Target::Licence => return None,
    };
    (!matches!(name, "" | "*")).then_some(name)
}

/// The texts that name a source in messages.
struct Source {
    /// The source, such as "the module in `modules/net`".
    whole: String,
    /// The part that it belongs to, such as "component `net`".
    part: String,
}

fn source(owner: &Checked, held: &Held, declared: &Outputs) -> Source {
    let path = held.path.trim_end_matches('/');
    let part = if owner.kind == Kind::Sandbox {
        "the sandbox".to_owned()
    } else {
        format!("component `{}`", owner.root.text("name").unwrap_or_default())
    };
    let whole = match (owner.kind, declared.form) {
        (Kind::Sandbox, _) => format!("the sandbox's module in `{path}`"),
        (_, Form::Terraform) => format!("the module in `{path}` of {part}"),
        (_, Form::CloudFormation) => format!("the template `{path}` of {part}"),
    };
    Source { whole, part }
}

fn missing(kind: Kind, reading: &Reading, name: &str, source: &Source, declared: &Outputs) -> Option<Draft> {
    let Source { whole, part } = source;
    // The runner keeps sensitive outputs in the customer's account, and only its jobs for components and actions get them.
    let is_read_by_a_job = matches!(kind, Kind::Component | Kind::Action);
    let (message, help) = match declared.names.get(name) {
        Some(is_sensitive) if !is_sensitive || is_read_by_a_job => return None,
        Some(_) => (
            format!(
                "output `{name}` of {part} is sensitive: only components and actions can read it, because its value \
                 stays in the customer's account"
            ),
            "remove `sensitive = true` from the output, or read it in a component or an action".to_owned(),
        ),
        None => (format!("{whole} has no output `{name}`"), declare(name, declared.form)),
    };
    let place = reading.place.clone();
    // A component cannot be deployed without the output. Texts in other files may never be rendered, so they only cause
    // a warning.
    let draft = match kind {
        Kind::Component => Draft::error(place, message),
        _ => Draft::warning(place, message),
    };
    let near = nearest(name, declared.names.keys().map(String::as_str)).filter(|_| !declared.names.contains_key(name));
    Some(match near {
        near @ Some(_) => draft.meant(near),
        None => draft.help(help),
    })
}

/// Returns how to declare an output.
fn declare(name: &str, form: Form) -> String {
    match form {
        Form::Terraform => format!("declare it: `output \"{name}\" {{ value = ... }}`, or correct the expression"),
        Form::CloudFormation => {
            format!("declare it below `Outputs:` as `{name}: {{Value: ...}}`, or correct the expression")
        }
    }
}
