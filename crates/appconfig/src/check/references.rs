//! Resolves the paths that templates read, and reports paths that do not exist.

use std::collections::BTreeSet;
use std::ops::Range;

use freehold_protocol::app_version::Reference;
use freehold_template::nearest;

use crate::check::index::{Index, Thing};
use crate::kinds::Kind;
use crate::read::files::Place;
use crate::report::draft::Draft;
use crate::state::file::{Checked, Reading};

/// The keys below `.nuon` in templates.
const TREE: [&str; 14] = [
    "org",
    "app",
    "install",
    "inputs",
    "install_stack",
    "sandbox",
    "components",
    "actions",
    "secrets",
    "runner",
    "domain",
    "cloud_account",
    "action",
    "runbook",
];

/// The keys that templates can read below places of the tree.
const KEYS_BELOW: [(&[&str], &[&str]); 9] = [
    (&["nuon", "org"], &["id", "name"]),
    (INSTALL, &["id", "name", "inputs", "sandbox", "licence", "namespace", "tags", "labels", "node_labels"]),
    (&["nuon", "install", "sandbox"], &["outputs"]),
    (&["nuon", "sandbox"], &["outputs"]),
    (&["nuon", "install_stack"], &["outputs"]),
    (&["nuon", "actions"], &["workflows"]),
    (&["nuon", "cloud_account"], &["aws"]),
    (&["nuon", "action"], &["inputs"]),
    (&["nuon", "runbook"], &["inputs"]),
];
const INSTALL: &[&str] = &["nuon", "install"];
/// The place of the signed licence in the tree.
const LICENCE: [&str; 3] = ["nuon", "install", "licence"];

/// The keys that templates can read below `install_stack.outputs`.
const STACK_OUTPUTS: [&str; 14] = [
    "account_id",
    "region",
    "boundary_arn",
    "prefix",
    "role_path",
    "vpc_id",
    "runner_subnet",
    "public_subnets",
    "private_subnets",
    "provision_iam_role_arn",
    "maintenance_iam_role_arn",
    "deprovision_iam_role_arn",
    "break_glass_role_arns",
    "custom_role_arns",
];

/// The outputs of a component whose image the runner copied.
const IMAGE_OUTPUTS: [&str; 4] = ["reference", "repository", "digest", "image"];
/// The keys of the output `image` of such a component.
const IMAGE_TABLE: [&str; 4] = ["repository", "tag", "digest", "ref"];

/// The value that a path refers to.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Target<'a> {
    Input(&'a str),
    /// The component's name in the template, and the keys of the path after it.
    Component(&'a str, &'a [String]),
    Action(&'a str, &'a [String]),
    Secret(&'a str),
    /// The name of one output of the sandbox; empty for all outputs.
    Sandbox(&'a str),
    InstallStack(&'a str),
    Licence,
}

/// Returns the value that `path` refers to; `None` for a value that no [`Target`] describes.
pub(crate) fn target(path: &[String]) -> Option<Target<'_>> {
    let words: [&str; 5] = std::array::from_fn(|at| path.get(at).map_or("", String::as_str));
    let rest = |at: usize| path.get(at..).unwrap_or_default();
    // `*` means every element of a list or map, and so all outputs.
    let output = |at: usize| path.get(at).map(String::as_str).filter(|word| *word != "*").unwrap_or_default();
    let found = match words {
        ["nuon", "inputs", "inputs", name, _] | ["nuon", "install", "inputs", name, _] => (name, Target::Input(name)),
        ["nuon", "components", name, ..] => (name, Target::Component(name, rest(3))),
        ["nuon", "actions", "workflows", name, _] => (name, Target::Action(name, rest(4))),
        ["nuon", "secrets", name, ..] => (name, Target::Secret(name)),
        ["nuon", "sandbox", "outputs" | "", ..] => return Some(Target::Sandbox(output(3))),
        ["nuon", "install", "sandbox", "outputs" | "", _] => return Some(Target::Sandbox(output(4))),
        ["nuon", "install_stack", "outputs" | "", ..] => return Some(Target::InstallStack(output(3))),
        ["nuon", "install", "licence", ..] => return Some(Target::Licence),
        _ => return None,
    };
    (!matches!(found.0, "" | "*")).then_some(found.1)
}

/// Reports a path that will not exist when the template is rendered.
pub(crate) fn misreference(reading: &Reading, index: &Index) -> Option<Draft> {
    if reading.guarded {
        return None;
    }
    let place = reading.place.clone();
    if let Some(draft) = outside(reading, &place).or_else(|| unknown_key(reading, index)) {
        return Some(draft);
    }
    match target(&reading.path) {
        Some(Target::Input(name)) => index.unknown(place, Thing::Input, name),
        Some(Target::Secret(name)) => index.unknown(place, Thing::Secret, name),
        Some(Target::Action(name, rest)) => index
            .unknown(place.clone(), Thing::Action, name)
            .or_else(|| without_outputs(place, "actions.workflows", name, rest)),
        Some(Target::Component(name, rest)) => index
            .unknown(place.clone(), Thing::Component, name)
            .or_else(|| without_outputs(place.clone(), "components", name, rest))
            .or_else(|| unknown_output(place, name, rest, index)),
        Some(Target::InstallStack(output)) => unknown_stack_output(place, output, index),
        Some(Target::Sandbox(_) | Target::Licence) => None,
        None => short_input(reading, index),
    }
}

/// Reports a path that is not below one of the keys of `.nuon`.
fn outside(reading: &Reading, place: &Place) -> Option<Draft> {
    let shown = format!(".{}", reading.path.join("."));
    let first = reading.path.first()?;
    if first != "nuon" {
        let message = format!("`{shown}` does not exist in templates; all values are below `.nuon`");
        let draft = Draft::error(place.clone(), message);
        return Some(match first.as_str() {
            "install" | "inputs" | "components" | "sandbox" => draft.help(format!("write `.nuon{shown}`")),
            _ => draft.meant(nearest(first, ["nuon"])),
        });
    }
    let second = reading.path.get(1).filter(|second| !TREE.contains(&second.as_str()) && *second != "*")?;
    // This is only a warning, because some texts are never rendered, such as the names of roles.
    let draft = Draft::warning(place.clone(), format!("`.nuon.{second}` does not exist"));
    Some(match nearest(second, TREE) {
        Some(near) => draft.help(format!("did you mean `.nuon.{near}`?")),
        None if ["id", "name"].contains(&second.as_str()) => {
            draft.help(format!("did you mean `.nuon.install.{second}`?"))
        }
        None => draft.help(format!("below `.nuon` are: {}", TREE.join(", "))),
    })
}

/// Reports a path with a key that its place in the tree does not have. This is only a warning, as in [`outside`].
fn unknown_key(reading: &Reading, index: &Index) -> Option<Draft> {
    let is_below = |place: &[&str]| reading.path.iter().zip(place).all(|(word, key)| word == key);
    let of_place = KEYS_BELOW.iter().filter(|(place, _)| is_below(place));
    let (place, key, keys) =
        of_place.filter_map(|(place, keys)| Some((place, reading.path.get(place.len())?, keys))).next_back()?;
    let is_of_other_cloud = index.other_cloud && place.last() == Some(&"cloud_account");
    if key == "*" || keys.contains(&key.as_str()) || is_of_other_cloud {
        return None;
    }
    let shown = place.join(".");
    let draft = Draft::warning(reading.place.clone(), format!("`.{shown}.{key}` does not exist"));
    Some(match nearest(key, keys.iter().copied()) {
        Some(near) => draft.help(format!("did you mean `.{shown}.{near}`?")),
        None => draft.help(format!("below `.{shown}` are: {}", keys.join(", "))),
    })
}

/// Reports a path below a component or action that does not lead to its outputs.
fn without_outputs(place: Place, group: &str, name: &str, rest: &[String]) -> Option<Draft> {
    let word = rest.first().filter(|word| !matches!(word.as_str(), "outputs" | "*"))?;
    let draft = Draft::warning(place, format!("`.nuon.{group}.{name}.{word}` does not exist"));
    Some(draft.help(format!("its outputs are below `.nuon.{group}.{name}.outputs`")))
}

/// Reports an output that a copied image does not have.
fn unknown_output(place: Place, word: &str, rest: &[String], index: &Index) -> Option<Draft> {
    let name = index.component(word)?;
    if !matches!(index.type_of(name), Some("container_image" | "external_image")) {
        return None;
    }
    let (output, known): (&str, &[&str]) = match rest {
        [_, image, key, ..] if image == "image" => (key, &IMAGE_TABLE),
        [_, output, ..] => (output, &IMAGE_OUTPUTS),
        [] | [_] => return None,
    };
    if known.contains(&output) || output == "*" {
        return None;
    }
    let draft = Draft::warning(place, format!("image `{name}` has no output `{output}`"));
    Some(match nearest(output, known.iter().copied()) {
        near @ Some(_) => draft.meant(near),
        None => draft.help(format!("its outputs here are: {}", known.join(", "))),
    })
}

/// Reports an output that install stacks do not have. An app for another cloud is reported as a whole.
fn unknown_stack_output(place: Place, output: &str, index: &Index) -> Option<Draft> {
    let of_secret = output.strip_suffix("_arn").is_some_and(|name| index.secrets.contains_key(name));
    if output.is_empty() || of_secret || index.other_cloud || STACK_OUTPUTS.contains(&output) {
        return None;
    }
    let draft = Draft::warning(place, format!("no install stack has an output `{output}`"));
    Some(match nearest(output, STACK_OUTPUTS) {
        near @ Some(_) => draft.meant(near),
        None => draft.help("make it an input of the app, or give another value with the template function `default`"),
    })
}

/// Returns the first place in `text` where a reference is written in one pair of braces, such as `{ .nuon.install.id }`
/// or `${.nuon.install.id}`.
pub(crate) fn in_single_braces(text: &str) -> Option<Range<usize>> {
    let mut roots = [".nuon.", ".freehold."].into_iter().flat_map(|root| text.match_indices(root));
    roots.find_map(|(at, _)| {
        let before = text.get(..at)?.trim_end_matches(' ').strip_suffix('{')?;
        let start = before.len() - usize::from(before.ends_with('$'));
        let end = at + text.get(at..)?.find('}')? + 1;
        let inside = text.get(before.len() + 1..end - 1)?.trim();
        let is_reference = !inside.contains(|c: char| c.is_whitespace() || "{\"'|,:".contains(c));
        (!before.ends_with('{') && is_reference).then_some(start..end)
    })
}

/// Returns the warning about `found`, a reference in one pair of braces.
pub(crate) fn single_braces(place: Place, found: &str) -> Draft {
    let path = found.trim_start_matches('$').trim_matches(['{', '}']).trim();
    Draft::warning(place, format!("`{found}` is not a template, so the text stays as it is"))
        .help(format!("write `{{{{ {path} }}}}`"))
}

/// Reports a path to an input that lacks the second `inputs`, as in `.nuon.inputs.name`.
fn short_input(reading: &Reading, index: &Index) -> Option<Draft> {
    let [nuon, inputs, name, ..] = reading.path.as_slice() else { return None };
    if nuon != "nuon" || inputs != "inputs" || name == "inputs" || name == "*" {
        return None;
    }
    let draft = Draft::warning(reading.place.clone(), format!("`.nuon.inputs.{name}` does not exist"));
    Some(match index.inputs.contains_key(name) {
        true => draft.help(format!("write `.nuon.inputs.inputs.{name}`")),
        false => draft.help("inputs are below `.nuon.inputs.inputs`"),
    })
}

/// Reports an input of a run that does not exist. Only actions have inputs of their own, and only the steps of a runbook have
/// those of the runbook: its own commands, and the actions that it runs.
pub(crate) fn run_input(reading: &Reading, checked: &Checked) -> Option<Draft> {
    let [nuon, of, rest @ ..] = reading.path.as_slice() else { return None };
    if nuon != "nuon" || reading.guarded {
        return None;
    }
    let place = reading.place.clone();
    match (of.as_str(), checked.kind, rest) {
        ("action", Kind::Action, [inputs, name, ..]) if inputs == "inputs" => {
            missing_input(place, "action", name, checked)
        }
        ("runbook", Kind::Runbook, [inputs, name, ..]) if inputs == "inputs" => {
            missing_input(place, "runbook", name, checked)
        }
        ("action", Kind::Action, _) | ("runbook", Kind::Action | Kind::Runbook, _) => None,
        ("action", ..) => {
            let draft = Draft::warning(place, "`.nuon.action` exists only in the steps of an action");
            Some(draft.help("make it an input of the app, or read it in an action"))
        }
        ("runbook", ..) => {
            let draft = Draft::warning(place, "`.nuon.runbook` exists only in the steps of a runbook's run");
            Some(draft.help("make it an input of the app, or read it in an action that a runbook runs"))
        }
        _ => None,
    }
}

/// Reports a template that reads the licence in a file whose templates are rendered without it.
pub(crate) fn unlicensed(reading: &Reading, checked: &Checked) -> Option<Draft> {
    let has_licence = matches!(checked.kind, Kind::Component | Kind::Sandbox | Kind::Action | Kind::Runbook);
    if has_licence || reading.guarded || target(&reading.path) != Some(Target::Licence) {
        return None;
    }
    let draft = Draft::warning(reading.place.clone(), "`.nuon.install.licence` does not exist here");
    Some(draft.help("read it in a component, the sandbox, an action or a runbook"))
}

/// Reports `name` when the file has no input of this name.
fn missing_input(place: Place, kind: &str, name: &str, checked: &Checked) -> Option<Draft> {
    let known: Vec<&str> = checked.root.tables("inputs").iter().filter_map(|node| node.text("name")).collect();
    if known.contains(&name) {
        return None;
    }
    let draft = Draft::error(place, format!("the {kind} has no input `{name}`"));
    Some(match nearest(name, known) {
        near @ Some(_) => draft.meant(near),
        None => draft.help(format!("add it to the file of the {kind}: `[[inputs]]` with its `name`")),
    })
}

/// Returns what the templates in `checked` refer to. A component is in the result under its `name`, even where a
/// template reads it by its `var_name`.
pub(crate) fn references(checked: &Checked, index: &Index) -> BTreeSet<Reference> {
    let named = checked.uses.iter().filter_map(|reading| reference(target(&reading.path)?, index));
    named.chain(checked.uses.iter().flat_map(|reading| unnamed(&reading.path, checked, index))).collect()
}

/// The place of all components in the tree.
const COMPONENTS: [&str; 2] = ["nuon", "components"];

/// Returns the values that a template of a component, an action or the sandbox can read by a path without their names,
/// such as `.nuon.secrets` or `.nuon.install`: inputs, secrets, the licence, the outputs of the sandbox, and the
/// outputs of all other components.
fn unnamed(path: &[String], checked: &Checked, index: &Index) -> Vec<Reference> {
    let mut found = Vec::new();
    if takes_in(path, &["nuon", "inputs", "inputs"]) || takes_in(path, &["nuon", "install", "inputs"]) {
        found.extend(index.inputs.keys().cloned().map(Reference::Input));
    }
    if takes_in(path, &["nuon", "secrets"]) {
        found.extend(index.secrets.keys().cloned().map(Reference::Secret));
    }
    if takes_in(path, &LICENCE) {
        found.push(Reference::Licence);
    }
    // The sandbox is made before all components, so it reads none of their outputs.
    if checked.kind == Kind::Sandbox {
        return found;
    }
    let outputs: [&[&str]; 2] = [&["nuon", "sandbox", "outputs"], &["nuon", "install", "sandbox", "outputs"]];
    if index.has_sandbox && outputs.iter().any(|place| takes_in(path, place)) {
        found.push(Reference::Sandbox(String::new()));
    }
    if takes_in(path, &COMPONENTS) {
        let own = checked.root.text("name").filter(|_| checked.kind == Kind::Component);
        let others = index.components.keys().filter(|name| Some(name.as_str()) != own);
        found.extend(others.filter_map(|name| name.parse().ok().map(Reference::Component)));
    }
    found
}

/// Returns whether a path can read everything at `place`: the path is `place` or a prefix of `place`, or has a `*`,
/// which is any key, at the position of a key of `place` or at the next position.
fn takes_in(path: &[String], place: &[&str]) -> bool {
    let meets = path.iter().zip(place).all(|(word, key)| word == key || word == "*");
    meets && (path.len() <= place.len() || path.iter().take(place.len() + 1).any(|word| word == "*"))
}

/// Warns about a template of a component or the sandbox that reads all components: no dependency decides which of them
/// are deployed before.
pub(crate) fn all_components(checked: &Checked) -> Option<Draft> {
    let owner = match checked.kind {
        Kind::Component => format!("component `{}`", checked.root.text("name")?),
        Kind::Sandbox => "the sandbox".to_owned(),
        _ => return None,
    };
    let reading = checked.uses.iter().find(|reading| !reading.guarded && takes_in(&reading.path, &COMPONENTS))?;
    let shown = reading.path.join(".");
    let message = format!(
        "`.{shown}` has the outputs of all components that are deployed at that time, and {owner} waits for none of them"
    );
    Some(
        Draft::warning(reading.place.clone(), message)
            .help("read the outputs of one component: `.nuon.components.NAME.outputs`"),
    )
}

fn reference(target: Target<'_>, index: &Index) -> Option<Reference> {
    match target {
        Target::Input(name) => index.inputs.contains_key(name).then(|| Reference::Input(name.to_owned())),
        Target::Component(word, _) => index.component(word)?.parse().ok().map(Reference::Component),
        Target::Action(name, _) if index.actions.contains_key(name) => name.parse().ok().map(Reference::Action),
        Target::Action(..) => None,
        Target::Secret(name) => index.secrets.contains_key(name).then(|| Reference::Secret(name.to_owned())),
        Target::Sandbox(output) => Some(Reference::Sandbox(output.to_owned())),
        Target::InstallStack(output) => Some(Reference::InstallStack(output.to_owned())),
        Target::Licence => Some(Reference::Licence),
    }
}
