//! Reads the files that describe how a branch is rolled out: `branch.toml` and `branches/`. Only the list of the runbooks
//! that run after a deploy is part of an app version.

use std::collections::BTreeMap;

use freehold_domain::runbook::{RunInputsError, check_run_size, inputs_of_run};
use freehold_protocol::RunbookName;
use freehold_protocol::app_version::{Action, Runbook};
use freehold_protocol::limits::MAX_POST_DEPLOY_RUNBOOKS;

use crate::check::names;
use crate::check::syntax;
use crate::kinds::Kind;
use crate::read::document::{Data, Entry, Node};
use crate::read::files::Place;
use crate::report::draft::Draft;
use crate::state::app::App;
use crate::state::file::Checked;

/// Checks groups, previews, runbooks, and the expression for ignored paths. Returns the runbooks that run after a deploy.
pub(crate) fn build(app: &mut App, runbooks: &[Runbook], actions: &[Action]) -> Vec<RunbookName> {
    let mut drafts = Vec::new();
    let mut lists: Vec<(Place, Vec<&str>)> = Vec::new();
    for checked in app.of(Kind::Branch) {
        groups(app, checked, &mut drafts);
        drafts.extend(preview(checked));
        if let Some(node) = checked.root.get("post_deploy_runbooks").filter(|node| !node.is_nothing()) {
            drafts.extend(node.elements().iter().filter_map(|node| unfit(app, checked, node, (runbooks, actions))));
            drafts.extend(long_list(checked, node));
            drafts.extend(repeated(checked, node));
            lists.push((checked.place(node), node.elements().iter().filter_map(Node::as_text).collect()));
        }
        if let Some(node) = checked.root.get("ignore_changes_regex")
            && let Some(Err(wrong)) = node.as_text().map(syntax::regex)
        {
            let place = checked.place_in(&app.files, node, wrong.offset);
            let draft = Draft::error(place, format!("not a regular expression: {}", wrong.message));
            drafts.push(draft.expected("an expression over paths, such as `^docs/|\\.md$`"));
        }
    }
    drafts.extend(other_lists(app, &lists));
    let names = lists.into_iter().next().map(|(_, names)| names).unwrap_or_default();
    let names = names.iter().filter_map(|name| name.parse().ok()).collect();
    app.drafts.extend(drafts);
    names
}

/// Reports an element of `post_deploy_runbooks` that names no runbook, or a runbook that cannot run by itself.
fn unfit(app: &App, checked: &Checked, node: &Node, (runbooks, actions): (&[Runbook], &[Action])) -> Option<Draft> {
    let name = node.as_text()?;
    let files = || app.of(Kind::Runbook).filter(|file| file.root.text("name").is_some());
    let Some(file) = files().find(|file| file.root.text("name") == Some(name)) else {
        let known = files().filter_map(|file| file.root.text("name"));
        let unknown = || names::unknown(checked.place(node), "runbook", "runbooks/", name, known);
        return (!app.broken.contains(&Kind::Runbook)).then(unknown);
    };
    let error = |message: String| {
        Draft::error(checked.place(node), message).related(file.place_of(&file.root, "name"), "the runbook")
    };
    if file.root.tables("steps").is_empty() {
        let draft = error(format!("runbook `{name}` has no steps"));
        return Some(draft.help("add a step to it, or remove it from `post_deploy_runbooks`"));
    }
    let runbook = runbooks.iter().find(|runbook| runbook.name.as_str() == name)?;
    match inputs_of_run(runbook, actions, &BTreeMap::new()) {
        Err(RunInputsError::Missing { of, input }) => {
            let draft =
                error(format!("{of} requires input `{input}`, and nobody gives inputs to a run after a deploy"));
            Some(draft.help("give the input a `default`, or remove the runbook from `post_deploy_runbooks`"))
        }
        Ok(inputs) => {
            let large = check_run_size(runbook, &inputs).err()?;
            Some(error(large.to_string()))
        }
        // Inputs that are too long were reported with the runbook.
        Err(RunInputsError::Unknown { .. } | RunInputsError::TooLong { .. }) => None,
    }
}

/// Reports a list of more runbooks than a deploy stores.
fn long_list(checked: &Checked, node: &Node) -> Option<Draft> {
    let count = node.elements().len();
    let message = format!("the list names {count} runbooks, more than the maximum of {MAX_POST_DEPLOY_RUNBOOKS}");
    let draft = Draft::error(checked.place(node), message);
    (count > MAX_POST_DEPLOY_RUNBOOKS).then(|| draft.help("join some of them"))
}

/// Reports each runbook that a list names again.
fn repeated(checked: &Checked, list: &Node) -> Vec<Draft> {
    let mut seen: BTreeMap<&str, Place> = BTreeMap::new();
    let mut drafts = Vec::new();
    for node in list.elements() {
        let Some(name) = node.as_text() else { continue };
        if let Some(first) = seen.get(name) {
            let draft = Draft::error(checked.place(node), format!("the list names runbook `{name}` twice"));
            drafts.push(draft.related(first.clone(), "first named here").help("remove one of the two"));
        } else {
            seen.insert(name, checked.place(node));
        }
    }
    drafts
}

/// Reports the branches whose lists of runbooks differ from the first one: an app version has one list.
fn other_lists(app: &App, lists: &[(Place, Vec<&str>)]) -> Vec<Draft> {
    let Some(((first, names), others)) = lists.split_first() else { return Vec::new() };
    let differing = others.iter().filter(|(_, other)| other != names);
    let report = |(place, _): &(Place, Vec<&str>)| {
        let message = "this branch has other `post_deploy_runbooks`, and an app version has one list of them";
        let draft = Draft::new(app.purpose.unsupported(), place.clone(), message);
        draft
            .related(first.clone(), "the first list")
            .help("write the same list in each branch, or in one of them only")
    };
    differing.map(report).collect()
}

fn groups(app: &App, checked: &Checked, drafts: &mut Vec<Draft>) {
    const STATIC: [&str; 2] = ["install_ids", "install_names"];
    let mut seen: BTreeMap<&str, Place> = BTreeMap::new();
    for group in checked.root.tables("install_groups") {
        let name = group.text("name").unwrap_or_default();
        let place = checked.place_of(group, "name");
        if let Some(first) = seen.get(name) {
            drafts.push(names::twice(&app.files, &format!("install group `{name}`"), first, place.clone()));
        } else {
            seen.insert(name, place.clone());
        }
        let listed = STATIC.iter().find_map(|key| given(group, key));
        match (listed, given(group, "label_selector")) {
            (Some(listed), Some(labels)) => {
                let (first, second) =
                    if listed.key_span.start < labels.key_span.start { (listed, labels) } else { (labels, listed) };
                let message = format!("install group `{name}` has both `{}` and `{}`", first.key, second.key);
                let draft = Draft::error(checked.key_place(second), message);
                let draft = draft.related(checked.key_place(first), "the other key");
                drafts.push(draft.help("list installs, or select them by label"));
            }
            (None, None) if !group.flag("default") => {
                let draft = Draft::warning(place, format!("install group `{name}` has no installs"));
                drafts.push(draft.help("add one of `install_ids`, `install_names`, `label_selector`"));
            }
            (Some(_), None) | (None, Some(_)) | (None, None) => {}
        }
    }
}

/// Returns the entry under `key` unless its value is empty.
fn given<'n>(node: &'n Node, key: &str) -> Option<&'n Entry> {
    node.entry(key).filter(|entry| match &entry.value.data {
        Data::List(items) => !items.is_empty(),
        Data::Table(entries) => !entries.is_empty(),
        Data::Text(text) => !text.is_empty(),
        Data::Whole(_) | Data::Fraction(_) | Data::Flag(_) | Data::Date(_) => true,
    })
}

/// Reports a preview that names its install in more than one way, or not at all.
fn preview(checked: &Checked) -> Option<Draft> {
    const KEYS: [&str; 3] = ["install_id", "install_name", "label_selector"];
    let node = checked.root.get("preview")?;
    let found: Vec<&Entry> = KEYS.iter().filter_map(|key| given(node, key)).collect();
    match found.as_slice() {
        [first, second, ..] => {
            let message = format!("the preview has both `{}` and `{}`", first.key, second.key);
            let draft = Draft::error(checked.key_place(second), message);
            Some(draft.related(checked.key_place(first), "the other key").help("keep one of them"))
        }
        [] if node.text("mode") != Some("build-only") => {
            let draft = Draft::error(checked.place(node), "the preview names no install");
            Some(draft.help("add one of `install_id`, `install_name`, `label_selector`, or `mode = \"build-only\"`"))
        }
        [] | [_] => None,
    }
}
