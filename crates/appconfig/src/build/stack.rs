//! Reads the settings of the runner from `runner.toml`, and those of the install stack from `stack.toml`.

use std::collections::{BTreeMap, BTreeSet};

use freehold_protocol::ComponentName;
use freehold_protocol::app_version::{
    Action, Component, ComponentSpec, NestedStack, Platform, Reference, RunnerSettings, Sandbox, StackSettings,
    graviton_instead_of, is_graviton_type,
};

use crate::build::values::{refused_variables, scalars, texts, whole};
use crate::check::links::{Index, references};
use crate::check::names;
use crate::kinds::Kind;
use crate::read::document::Node;
use crate::read::files::Place;
use crate::report::draft::Draft;
use crate::state::app::App;
use crate::state::file::Checked;

/// Returns the settings of the runner. Reports a tool image that is not one of the app's images, texts under
/// `inside_hosts` that are not hosts, and a type of machine on which the runner cannot run.
pub(crate) fn runner(app: &mut App, components: &[Component]) -> Option<RunnerSettings> {
    let checked = app.of(Kind::Runner).next()?;
    let root = &checked.root;
    let text = |key: &str| root.text(key).unwrap_or_default().to_owned();
    let (tool_image, draft) = tool_image(checked, components);
    let inside_hosts = root.get("inside_hosts");
    let mut drafts: Vec<Draft> = draft.into_iter().chain(wrong_hosts(checked, inside_hosts)).collect();
    drafts.extend(other_machine(app, checked));
    let settings = root.text("runner_type").map(|runner_type| RunnerSettings {
        runner_type: runner_type.to_owned(),
        env_vars: scalars(root.get("env_vars")),
        helm_driver: text("helm_driver"),
        instance_type: text("instance_type"),
        init_script_url: text("init_script_url"),
        tool_image,
        inside_hosts: texts(inside_hosts).into_iter().collect(),
    });
    app.drafts.extend(drafts);
    settings
}

/// The parts of an app whose programs have an environment.
pub(crate) struct Programs<'a> {
    pub(crate) components: &'a mut [Component],
    pub(crate) actions: &'a mut [Action],
    pub(crate) sandbox: Option<&'a mut Sandbox>,
}

/// Adds the environment of `runner.toml` to the programs of the app: Terraform, Pulumi and the steps of actions. A variable
/// that a part sets itself stays as it is. Reports variables that Terraform must not have, and templates that read what the
/// first job makes.
pub(crate) fn add_environment(app: &mut App, index: &Index, programs: Programs<'_>) {
    let Some(checked) = app.of(Kind::Runner).next() else { return };
    let (variables, reads) = (scalars(checked.root.get("env_vars")), references(checked, index));
    let mut drafts = refused_variables(checked);
    drafts.extend(checked.uses.iter().filter(|reading| made_by_jobs(&reading.path)).map(|reading| {
        let message =
            "`env_vars` of the runner cannot read outputs of jobs, because the first job already gets these variables";
        Draft::error(reading.place.clone(), message)
            .help("set the variable in the component or the action that needs it")
    }));
    app.drafts.extend(drafts);
    if variables.is_empty() {
        return;
    }
    let add = |own: &mut BTreeMap<String, String>, known: &mut BTreeSet<Reference>| {
        if variables.keys().any(|name| !own.contains_key(name)) {
            known.extend(reads.iter().cloned());
        }
        for (name, value) in &variables {
            own.entry(name.clone()).or_insert_with(|| value.clone());
        }
    };
    for component in programs.components {
        if let ComponentSpec::TerraformModule { env_vars, .. } | ComponentSpec::Pulumi { env_vars, .. } =
            &mut component.spec
        {
            add(env_vars, &mut component.references);
        }
    }
    for action in programs.actions {
        add(&mut action.env_vars, &mut action.references);
    }
    if let Some(sandbox) = programs.sandbox {
        add(&mut sandbox.env_vars, &mut sandbox.references);
    }
}

/// The places of the tree that are made by jobs, or that only some jobs have.
const MADE_BY_JOBS: [&[&str]; 6] =
    [&["sandbox"], &["install", "sandbox"], &["components"], &["actions"], &["action"], &["runbook"]];

/// Returns whether a path reads one of [`MADE_BY_JOBS`], or a subtree that contains it.
fn made_by_jobs(path: &[String]) -> bool {
    let Some((root, below)) = path.split_first() else { return false };
    let meets = |place: &&[&str]| place.iter().zip(below).all(|(one, other)| one == other);
    matches!(root.as_str(), "nuon" | "freehold") && MADE_BY_JOBS.iter().any(meets)
}

/// Returns the component in whose image jobs run, or the mistake if its type is not an image. A component that does not
/// exist is reported by [`crate::check::links`].
fn tool_image(checked: &Checked, components: &[Component]) -> (Option<ComponentName>, Option<Draft>) {
    let node = checked.root.get("tool_image");
    let component = node.and_then(|node| components.iter().find(|one| node.as_text() == Some(one.name.as_str())));
    let Some((node, component)) = node.zip(component) else { return (None, None) };
    match &component.spec {
        ComponentSpec::ContainerImage { .. } | ComponentSpec::DockerBuild { .. } => {
            (Some(component.name.clone()), None)
        }
        other => {
            let message = format!("component `{}` is a `{}`, which is not an image", component.name, other.kind());
            let draft = Draft::error(checked.place(node), message);
            (None, Some(draft.help("name a component of type `container_image` or `docker_build`")))
        }
    }
}

/// Reports a type of machine without a Graviton processor: the install stack cannot start such a machine, because the
/// image of its machines and the runner are for arm64. The machines of other clouds are not checked.
fn other_machine(app: &App, checked: &Checked) -> Option<Draft> {
    let cloud = app.of(Kind::Stack).next().and_then(|stack| stack.root.text("type"));
    let node = checked.root.get("instance_type").filter(|node| !node.is_nothing())?;
    let text = node.as_text().filter(|text| !is_graviton_type(text))?;
    if cloud.is_some_and(|word| word != Platform::AwsCloudformation.as_str()) {
        return None;
    }
    Some(match graviton_instead_of(text) {
        Some(instead) => {
            let message = format!("the runner's machine is of type `{instead}`, and not `{text}`");
            Draft::warning(checked.place(node), message)
                .help(format!("the install stack starts machines with a Graviton processor only; write `{instead}`"))
        }
        None => Draft::error(
            checked.place(node),
            format!("`{text}` is not a type of machine on EC2 with a Graviton processor"),
        )
        .help("write the type of such a machine, for example `t4g.small`, or remove the key"),
    })
}

/// Reports the texts of `hosts` that are not hosts.
fn wrong_hosts(checked: &Checked, hosts: Option<&Node>) -> Vec<Draft> {
    let wrong = |text: &str| text.is_empty() || text.contains(['/', '{', '$', '@', ' ']);
    let all = hosts.map(Node::items).unwrap_or_default().iter();
    let wrong = all.filter_map(|node| Some((node, node.as_text().filter(|text| wrong(text))?)));
    let draft = |(node, text): (&Node, &str)| {
        Draft::error(checked.place(node), format!("`{text}` is not a host")).help(
            "write `host`, `host:port` or `*.host`; the customer agrees to each host, so a template is not \
                 permitted",
        )
    };
    wrong.map(draft).collect()
}

/// Returns the settings of the install stack. Reports templates whose values are not known when the stack is created.
pub(crate) fn build(app: &mut App) -> Option<StackSettings> {
    let mut drafts = Vec::new();
    let stack = app.of(Kind::Stack).next().and_then(|checked| {
        let root = &checked.root;
        let text = |key: &str| root.text(key).unwrap_or_default().to_owned();
        drafts.extend(checked.uses.iter().filter(|reading| !reading.guarded).filter_map(|reading| {
            let what = too_late(&reading.path)?;
            let message = format!("{what} are not known when the install stack is created");
            let draft = Draft::error(reading.place.clone(), message);
            Some(draft.help("use the install's id, name or inputs"))
        }));
        Some(StackSettings {
            platform: platform(root.text("type")?)?,
            name: text("name"),
            description: text("description"),
            vpc_nested_template_url: text("vpc_nested_template_url"),
            runner_nested_template_url: text("runner_nested_template_url"),
            custom_nested_stacks: nested(app, checked, &mut drafts),
            deployment_scope: text("deployment_scope"),
        })
    });
    app.drafts.extend(drafts);
    stack
}

fn platform(word: &str) -> Option<Platform> {
    [Platform::AwsCloudformation, Platform::AzureBicep, Platform::GcpTerraform]
        .into_iter()
        .find(|one| one.as_str() == word)
}

/// Returns the name of the value that a path reads, if this value exists only after the install stack was launched.
fn too_late(path: &[String]) -> Option<&'static str> {
    let words: Vec<&str> = path.iter().map(String::as_str).collect();
    match words.as_slice() {
        ["nuon" | "freehold", "sandbox", ..] | ["nuon" | "freehold", "install", "sandbox", ..] => {
            Some("the sandbox's outputs")
        }
        ["nuon" | "freehold", "components", ..] => Some("outputs of components"),
        ["nuon" | "freehold", "actions", ..] => Some("outputs of actions"),
        ["nuon" | "freehold", "install_stack", ..] => Some("the install stack's own outputs"),
        _ => None,
    }
}

fn nested(app: &App, checked: &Checked, drafts: &mut Vec<Draft>) -> Vec<NestedStack> {
    let mut seen: BTreeMap<&str, Place> = BTreeMap::new();
    let mut turns: BTreeMap<u32, (&str, Place)> = BTreeMap::new();
    let mut found = Vec::new();
    for node in checked.root.tables("custom_nested_stacks") {
        let (Some(name), Some(template_url)) = (node.text("name"), node.text("template_url")) else { continue };
        let place = checked.place_of(node, "name");
        if let Some(first) = seen.get(name) {
            drafts.push(names::twice(&app.files, &format!("nested stack `{name}`"), first, place));
            continue;
        }
        seen.insert(name, place);
        let index = whole(node.get("index")).unwrap_or_default();
        let place = checked.place_of(node, "index");
        if let Some((other, first)) = turns.get(&index) {
            let message = format!("nested stacks `{other}` and `{name}` both have index {index}");
            let draft = Draft::error(place, message).related(first.clone(), "the other stack");
            drafts.push(draft.help("give each stack its own `index`; the stack with the lowest `index` goes first"));
        } else {
            turns.insert(index, (name, place));
        }
        let parameters = node.get("parameters").map(Node::entries).unwrap_or_default();
        found.push(NestedStack {
            name: name.to_owned(),
            template_url: template_url.to_owned(),
            index,
            parameters: parameters.iter().map(|entry| (entry.key.clone(), entry.value.to_json())).collect(),
        });
    }
    found.sort_by(|a, b| (a.index, &a.name).cmp(&(b.index, &b.name)));
    found
}
