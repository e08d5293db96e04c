//! Checks the files of local sources: modules, templates, charts, kustomizations, Dockerfiles. Every error that it
//! reports would make a tool fail later, in a build or at the customer.

mod brackets;
mod chart;
mod cloudformation;
mod declarations;
mod docker;
mod outputs;
mod reader;
mod terraform;
mod variable_reads;

use std::collections::{BTreeMap, BTreeSet};

use crate::inspect::declarations::Found;
use crate::inspect::reader::Reader;
use crate::kinds::Kind;
use crate::read::files::Place;
use crate::state::app::App;
use crate::state::file::Checked;
use crate::state::source::{Held, Made, SANDBOX};

/// What the local sources of an app declare.
#[derive(Debug, Default)]
pub(crate) struct Declared {
    /// The resources of components.
    pub(crate) made: Vec<Made>,
    /// The names of the outputs of the sandbox's module; `None` if not all of them are known.
    pub(crate) sandbox_outputs: Option<BTreeSet<String>>,
}

/// Checks every local source. Returns what the sources declare.
pub(crate) fn look(app: &mut App, held: &[Held]) -> Declared {
    let App { files, checked, drafts, .. } = app;
    let owners: BTreeMap<String, &Checked> =
        checked.iter().filter_map(|checked| Some((owner(checked)?, checked))).collect();
    let files_of_app: &[Checked] = checked;
    let mut reader = Reader::new(files, drafts);
    let mut declared = Declared::default();
    for held in held {
        let Some(checked) = owners.get(&held.owner) else { continue };
        let found = look_at(&mut reader, checked, held);
        outputs::check(&mut reader, files_of_app, checked, held, &found.outputs);
        if checked.kind == Kind::Sandbox && found.outputs.whole {
            declared.sandbox_outputs = Some(found.outputs.names.keys().cloned().collect());
        }
        declared.made.extend(checked.root.text("name").into_iter().flat_map(|name| of(name, &found.types)));
    }
    declared
}

/// Checks the source of one part.
fn look_at(reader: &mut Reader<'_>, checked: &Checked, held: &Held) -> Found {
    match (checked.kind, checked.root.text("type")) {
        (Kind::Sandbox, None | Some("terraform")) => {
            let outputs = terraform::look(reader, checked, held).outputs;
            return Found { outputs, ..Found::default() };
        }
        (Kind::Component, Some("terraform_module")) => {
            let module = terraform::look(reader, checked, held);
            return Found { types: module.types, outputs: module.outputs };
        }
        (Kind::Component, Some("cloudformation_stack")) => return cloudformation::look(reader, checked, held),
        (Kind::Component, Some("helm_chart")) => chart::look(reader, checked, held),
        (Kind::Component, Some("kubernetes_manifest")) => chart::look_at_kustomization(reader, checked, held),
        (Kind::Component, Some("docker_build")) => docker::look(reader, checked, held),
        _ => {}
    }
    Found::default()
}

/// Returns a resource of `component` for each type in `types`.
fn of(component: &str, types: &[(String, Place)]) -> Vec<Made> {
    let made = |(kind, place): &(String, Place)| Made {
        component: component.to_owned(),
        kind: kind.clone(),
        place: place.clone(),
    };
    types.iter().map(made).collect()
}

/// Returns the name of the part that a file defines, in the form of [`Held::owner`].
fn owner(checked: &Checked) -> Option<String> {
    match checked.kind {
        Kind::Component => Some(format!("component `{}`", checked.root.text("name")?)),
        Kind::Sandbox => Some(SANDBOX.to_owned()),
        _ => None,
    }
}
