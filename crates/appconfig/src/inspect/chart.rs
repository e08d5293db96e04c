//! Checks Helm charts: `Chart.yaml`, the templates, and the values that the config sets. Also checks that a
//! kustomization has its file.

use std::collections::BTreeSet;

use freehold_template::nearest;

use crate::inspect::reader::Reader;
use crate::read::document::{Data, Node};
use crate::read::files::Place;
use crate::read::paths::join;
use crate::read::yaml;
use crate::report::draft::Draft;
use crate::state::file::Checked;
use crate::state::source::Held;

/// Checks the chart in `held`.
pub(super) fn look(reader: &mut Reader<'_>, checked: &Checked, held: &Held) {
    if !held.paths.contains("Chart.yaml") {
        reader.say(without_chart(held));
        return;
    }
    let Some((file, chart)) = document(reader, held, "Chart.yaml") else { return };
    for key in ["apiVersion", "name", "version"] {
        if chart.text(key).is_none_or(str::is_empty) {
            let draft = Draft::error(Place { file, span: 0..1 }, format!("the chart has no `{key}`"));
            reader.say(draft.help(format!("add `{key}: {}`", example(key))));
        }
    }
    let library = chart.text("type") == Some("library");
    let dependencies = chart.tables("dependencies");
    if !library && dependencies.is_empty() && !held.paths.iter().any(|path| path.starts_with("templates/")) {
        let directory = join(&held.path, "templates");
        let draft = Draft::warning(
            held.place.clone(),
            format!("the chart has no files in `{directory}`, so it creates nothing"),
        );
        reader.say(draft.help("write its templates there, or correct the path"));
    }
    let defaults = held.paths.contains("values.yaml").then(|| document(reader, held, "values.yaml"));
    // If `values.yaml` cannot be parsed (this was reported), the known values are incomplete, so the config's values
    // are not checked.
    if let Some(None) = defaults {
        return;
    }
    let defaults = defaults.flatten().map(|(_, root)| root);
    values(reader, checked, held, defaults.as_ref(), dependencies);
}

fn example(key: &str) -> &'static str {
    match key {
        "apiVersion" => "v2",
        "version" => "0.1.0",
        _ => "my-chart",
    }
}

fn without_chart(held: &Held) -> Draft {
    let draft = Draft::error(held.place.clone(), format!("there is no `Chart.yaml` in `{}`", held.path));
    match held.paths.iter().find_map(|path| path.strip_suffix("/Chart.yaml")) {
        Some(directory) => draft.help(format!("did you mean `{}`?", join(held.word.trim_end_matches('/'), directory))),
        None => draft.help("create the file, or correct the path: the source is the directory of the chart itself"),
    }
}

/// Parses a file of the chart as YAML. Reports a file that is not YAML.
fn document(reader: &mut Reader<'_>, held: &Held, name: &str) -> Option<(usize, Node)> {
    let file = reader.open(held, name)?;
    match yaml::parse(reader.text(file)) {
        Ok(root) => Some((file, root)),
        Err(wrong) => {
            reader.say(Draft::error(Place { file, span: wrong.span }, format!("not YAML: {}", wrong.message)));
            None
        }
    }
}

/// Warns about values in the config that are neither in the chart's `values.yaml` nor used by its templates.
fn values(reader: &mut Reader<'_>, checked: &Checked, held: &Held, defaults: Option<&Node>, dependencies: &[Node]) {
    let given = checked.root.get("values").map(Node::entries).unwrap_or_default();
    if given.is_empty() {
        return;
    }
    let Some(mut known) = read_by_templates(reader, held) else { return };
    known.extend(defaults.map(Node::entries).unwrap_or_default().iter().map(|entry| entry.key.clone()));
    let names = dependencies.iter().flat_map(|one| [one.text("name"), one.text("alias")]).flatten();
    known.extend(names.map(str::to_owned));
    known
        .extend(held.paths.iter().filter_map(|path| Some(path.strip_prefix("charts/")?.split_once('/')?.0.to_owned())));
    known.insert("global".to_owned());
    for entry in given {
        // `a.b` sets the key `b` of `a`, and `a[0]` sets an element of `a`.
        let first = entry.key.split(['.', '[']).next().unwrap_or_default();
        if !known.contains(first) {
            let message = format!("the chart in `{}` does not use the value `{first}`; it has no effect", held.path);
            let draft = Draft::warning(checked.key_place(entry), message);
            reader.say(match nearest(first, known.iter().map(String::as_str)) {
                near @ Some(_) => draft.meant(near),
                None => draft.help("remove it, or use it in a template of the chart"),
            });
        }
    }
}

/// Returns the keys that the templates read below `.Values`; `None` when a template reads all values at once or
/// cannot be read.
fn read_by_templates(reader: &mut Reader<'_>, held: &Held) -> Option<BTreeSet<String>> {
    let mut known = BTreeSet::new();
    for name in held.paths.iter().filter(|path| path.starts_with("templates/")) {
        let file = reader.open(held, name)?;
        for rest in reader.text(file).split(".Values").skip(1) {
            let word: String =
                rest.strip_prefix('.')?.chars().take_while(|c| c.is_alphanumeric() || *c == '_').collect();
            if word.is_empty() {
                return None;
            }
            known.insert(word);
        }
    }
    Some(known)
}

/// Reports a kustomization in `held` that has no kustomization file.
pub(super) fn look_at_kustomization(reader: &mut Reader<'_>, checked: &Checked, held: &Held) {
    const NAMES: [&str; 3] = ["kustomization.yaml", "kustomization.yml", "Kustomization"];
    let node = checked.root.get("kustomize");
    let inner = node.filter(|node| node.get("directory").is_some()).and_then(|node| node.text("path"));
    let inner = inner.unwrap_or_default().trim_start_matches("./").trim_end_matches('/');
    if matches!(node.map(|node| &node.data), Some(Data::Table(_)))
        && !NAMES.iter().any(|name| held.paths.contains(&join(inner, name)))
    {
        let directory = join(&held.path, inner);
        let message = format!("there is no `kustomization.yaml` in `{}`", directory.trim_end_matches('/'));
        reader.say(Draft::error(held.place.clone(), message).help("create the file, or correct the path"));
    }
}
