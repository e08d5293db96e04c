//! Reads the installs that a vendor describes in `installs/`. They are not part of an app version.

use std::collections::BTreeMap;
use std::str::FromStr as _;

use freehold_domain::region::{RegionError, check_region};
use freehold_protocol::api::ApprovalOption;
use freehold_protocol::app_version::Input;
use freehold_protocol::{ComponentName, InstallId};

use crate::build::values::install_labels;
use crate::check::index::Thing;
use crate::check::input_values::misfit;
use crate::check::links::Index;
use crate::check::names;
use crate::kinds::Kind;
use crate::load_result::InstallFile;
use crate::read::document::{Data, Entry, Node};
use crate::read::files::Place;
use crate::report::draft::Draft;
use crate::state::app::App;
use crate::state::file::Checked;

/// Returns the installs, sorted by name. Reports values that do not fit the app's inputs, toggles of components that an
/// install cannot switch on or off, and labels that no install can have.
pub(crate) fn build(app: &mut App, index: &Index, inputs: &[Input]) -> Vec<InstallFile> {
    let mut drafts = Vec::new();
    let mut installs = Vec::new();
    let mut seen: BTreeMap<&str, Place> = BTreeMap::new();
    for checked in app.of(Kind::Install) {
        let root = &checked.root;
        if let Some(name) = root.text("name") {
            let place = checked.place_of(root, "name");
            if let Some(first) = seen.get(name) {
                drafts.push(names::twice(&app.files, &format!("install `{name}`"), first, place.clone()));
            } else {
                seen.insert(name, place.clone());
            }
            match name.parse() {
                Ok(name) => installs.push(install(app, checked, name, inputs)),
                Err(error) => {
                    let message = format!("`freehold install sync` leaves this install out, because {error}");
                    drafts.push(Draft::warning(place, message).help("give the install another name"));
                }
            }
        }
        match root.get("inputs").map(|value| (&value.data, value)) {
            Some((Data::Table(_) | Data::List(_), value)) => {
                value.items().iter().for_each(|item| answers(app, checked, item, index, inputs, &mut drafts));
                drafts.extend(answered_twice(app, checked, value, inputs));
            }
            Some((_, value)) => {
                let draft = Draft::error(checked.place(value), format!("`inputs` is {}", value.kind()));
                drafts.push(draft.expected("a table of strings (`[inputs]`), or a list of such tables (`[[inputs]]`)"));
            }
            None => {}
        }
        drafts.extend(wrong_region(checked));
        drafts.extend(install_labels(checked, "labels").1);
        toggles(app, checked, index, &mut drafts);
    }
    app.drafts.extend(drafts);
    installs.sort_by(|a, b| a.install.cmp(&b.install));
    installs
}

/// Returns the mistake in the region of an install. A region that this release does not know may be a new region.
fn wrong_region(checked: &Checked) -> Option<Draft> {
    let account = checked.root.get("aws_account")?;
    let region = account.text("region")?;
    let place = checked.place_of(account, "region");
    match check_region(region, false).err()? {
        error @ RegionError::Malformed(_) => Some(Draft::error(place, error.to_string())),
        RegionError::Unknown { nearest, .. } => {
            let message = format!("this release does not know region `{region}`");
            Some(Draft::warning(place, message).meant(nearest.as_deref()))
        }
    }
}

/// Returns the install that a file describes.
fn install(app: &App, checked: &Checked, install: InstallId, inputs: &[Input]) -> InstallFile {
    let root = &checked.root;
    let is_read = |name: &str| inputs.iter().any(|input| input.name == name && !input.sensitive && !input.customer);
    let tables = root.get("inputs").map(Node::items).unwrap_or_default();
    let answers = tables.iter().flat_map(|table| table.entries()).filter(|entry| is_read(&entry.key));
    let toggles = root.get("component_toggles").map(Node::entries).unwrap_or_default();
    let toggle = |entry: &Entry| match (ComponentName::from_str(&entry.key), &entry.value.data) {
        (Ok(name), Data::Flag(on)) => Some((name, *on)),
        _ => None,
    };
    InstallFile {
        path: app.files.path(checked.file).to_owned(),
        install,
        region: root.get("aws_account").and_then(|account| account.text("region")).map(str::to_owned),
        approval_option: root.text("approval_option").map(|word| match word {
            "prompt" => ApprovalOption::Prompt,
            _ => ApprovalOption::ApproveAll,
        }),
        inputs: answers.filter_map(|entry| Some((entry.key.clone(), entry.value.as_text()?.to_owned()))).collect(),
        toggles: toggles.iter().filter_map(toggle).collect(),
        labels: install_labels(checked, "labels").0,
    }
}

/// Reports inputs that have a value in several tables of one file.
fn answered_twice(app: &App, checked: &Checked, tables: &Node, inputs: &[Input]) -> Vec<Draft> {
    let mut seen: BTreeMap<&str, Place> = BTreeMap::new();
    let mut drafts = Vec::new();
    for entry in tables.items().iter().flat_map(|table| table.entries()) {
        let place = checked.key_place(entry);
        match seen.get(entry.key.as_str()) {
            Some(first) => {
                let draft = names::twice(&app.files, &format!("input `{}`", entry.key), first, place);
                let is_secret = inputs.iter().any(|input| input.name == entry.key && input.sensitive);
                drafts.push(draft.secret_if(is_secret));
            }
            None => {
                seen.insert(&entry.key, place);
            }
        }
    }
    drafts
}

fn answers(app: &App, checked: &Checked, table: &Node, index: &Index, inputs: &[Input], drafts: &mut Vec<Draft>) {
    if !matches!(table.data, Data::Table(_)) {
        let draft = Draft::error(checked.place(table), format!("`inputs` holds {}", table.kind()));
        drafts.push(draft.expected("a table of strings"));
    }
    for entry in table.entries() {
        match inputs.iter().find(|input| input.name == entry.key) {
            Some(input) => drafts.extend(answer(app, checked, entry, input)),
            None => drafts.extend(index.unknown(checked.key_place(entry), Thing::Input, &entry.key)),
        }
    }
}

/// Reports a mistake in the value for one input.
fn answer(app: &App, checked: &Checked, entry: &Entry, input: &Input) -> Option<Draft> {
    let (name, value) = (&entry.key, &entry.value);
    let Some(text) = value.as_text() else {
        let draft = Draft::error(checked.place(value), format!("input `{name}` is {}", value.kind()));
        return Some(draft.expected("a string, whatever the input's type").secret_if(input.sensitive));
    };
    if input.sensitive {
        let draft = Draft::warning(
            checked.key_place(entry),
            format!("input `{name}` is sensitive, so its value is not read from a file"),
        );
        return Some(draft.secret().help(
            "remove the value from this file; `freehold install inputs` sets it when the install has a runner, or the \
             customer enters it in the install stack",
        ));
    }
    if input.customer {
        let message = format!("input `{name}` is answered by the customer, so its value is not read from a file");
        let draft = Draft::warning(checked.key_place(entry), message);
        return Some(draft.help("remove the value from this file; the customer enters it in the install stack"));
    }
    let wrong = misfit(input.kind, text)?;
    let place = wrong.offset.map_or(checked.place(value), |at| checked.place_in(&app.files, value, at));
    Some(Draft::error(place, format!("the value of input `{name}` {}", wrong.message)).expected(wrong.expected))
}

fn toggles(app: &App, checked: &Checked, index: &Index, drafts: &mut Vec<Draft>) {
    let Some(value) = checked.root.get("component_toggles") else { return };
    if !matches!(value.data, Data::Table(_)) {
        let draft = Draft::error(checked.place(value), format!("`component_toggles` is {}", value.kind()));
        drafts.push(draft.expected("a table of `true` and `false` by component"));
    }
    for entry in value.entries() {
        let Some(name) = index.component(&entry.key) else {
            drafts.extend(index.unknown(checked.key_place(entry), Thing::Component, &entry.key));
            continue;
        };
        if !matches!(entry.value.data, Data::Flag(_)) {
            let draft = Draft::error(checked.place(&entry.value), format!("`{name}` is {}", entry.value.kind()));
            drafts.push(draft.expected("`true` or `false`"));
        }
        let owner = app.of(Kind::Component).find(|one| one.root.text("name") == Some(name));
        if let Some(owner) = owner.filter(|owner| !owner.root.flag("toggleable")) {
            let message = format!("component `{name}` is not toggleable: every install has it");
            let draft = Draft::error(checked.key_place(entry), message);
            let draft = draft.related(owner.place_of(&owner.root, "name"), "the component");
            drafts.push(draft.help("add `toggleable = true` to the component, or remove this line"));
        }
    }
}
