//! Checks the files that describe how a branch is rolled out: `branch.toml` and `branches/`. They are not part of an
//! app version.

use std::collections::BTreeMap;

use crate::check::names;
use crate::check::syntax;
use crate::kinds::Kind;
use crate::read::document::{Data, Entry, Node};
use crate::read::files::Place;
use crate::report::draft::Draft;
use crate::state::app::App;
use crate::state::file::Checked;

/// Checks groups, previews, runbooks, and the expression for ignored paths.
pub(crate) fn check(app: &mut App) {
    let runbooks: Vec<&str> = app.of(Kind::Runbook).filter_map(|checked| checked.root.text("name")).collect();
    let mut drafts = Vec::new();
    for checked in app.of(Kind::Branch) {
        groups(app, checked, &mut drafts);
        drafts.extend(preview(checked));
        for node in checked.root.tables("post_deploy_runbooks") {
            if let Some(name) = node.as_text().filter(|name| !runbooks.contains(name))
                && !app.broken.contains(&Kind::Runbook)
            {
                drafts.push(names::unknown(
                    checked.place(node),
                    "runbook",
                    "runbooks/",
                    name,
                    runbooks.iter().copied(),
                ));
            }
        }
        if let Some(node) = checked.root.get("ignore_changes_regex")
            && let Some(Err(wrong)) = node.as_text().map(syntax::regex)
        {
            let place = checked.place_in(&app.files, node, wrong.offset);
            let draft = Draft::error(place, format!("not a regular expression: {}", wrong.message));
            drafts.push(draft.expected("an expression over paths, such as `^docs/|\\.md$`"));
        }
    }
    app.drafts.extend(drafts);
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
