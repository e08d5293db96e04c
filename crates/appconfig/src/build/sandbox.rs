//! Reads the sandbox from `sandbox.toml`: the infrastructure in which the components run.

use freehold_protocol::app_version::{Sandbox, SandboxTool};
use freehold_protocol::order::Source;

use crate::build::schedule::not_a_drift_schedule;
use crate::build::sources::Sources;
use crate::build::values::{mistakes_in_variables, not_a_version, refused_variables, scalars, values, whole};
use crate::check::links::{Index, references};
use crate::check::operation_roles;
use crate::kinds::Kind;
use crate::report::draft::Draft;
use crate::state::app::App;
use crate::state::file::Checked;
use crate::state::source::{SANDBOX, provider_source};

/// Keys that only have an effect with Terraform.
const TERRAFORM: [&str; 4] = ["terraform_version", "vars", "var_file", "providers"];
/// Keys that only have an effect with Pulumi.
const PULUMI: [&str; 3] = ["runtime", "pulumi_version", "pulumi_config"];

/// Returns the app's sandbox, if it has one.
pub(crate) fn build(app: &mut App, index: &Index, sources: &mut Sources) -> Option<Sandbox> {
    let mut drafts = Vec::new();
    let sandbox = app.of(Kind::Sandbox).next().and_then(|checked| {
        let root = &checked.root;
        let tool = tool(checked, &mut drafts);
        if matches!(tool, Some(SandboxTool::Terraform { .. })) {
            drafts.extend(refused_variables(checked));
            drafts.extend(not_a_version(checked));
            drafts.extend(mistakes_in_variables(&app.files, checked));
        }
        let source = source(app, checked, sources);
        drafts.extend(not_a_drift_schedule(checked, root));
        let operation_roles =
            operation_roles::of_entity(checked, root, "a sandbox", operation_roles::SANDBOX, &mut drafts);
        let tool = tool?;
        let vars = match tool {
            SandboxTool::Terraform { .. } => root.get("vars"),
            SandboxTool::Pulumi { .. } => root.get("pulumi_config"),
        };
        let files = root.tables("var_file").iter().filter_map(|file| file.get("contents"));
        Some(Sandbox {
            tool,
            source: source?,
            vars: values(vars),
            env_vars: scalars(root.get("env_vars")),
            var_files: files.filter_map(|node| checked.content(node)).map(str::to_owned).collect(),
            references: references(checked, index),
            drift_schedule: root.text("drift_schedule").unwrap_or_default().to_owned(),
            operation_roles,
            max_auto_retries: whole(root.get("max_auto_retries")),
            skip_noops: root.flag("skip_noops"),
            auto_approve_on_policies_passing: root.flag("auto_approve_on_policies_passing"),
        })
    });
    app.drafts.extend(drafts);
    sandbox
}

/// Returns the source of the module: a repository, or a directory of the app.
fn source(app: &App, checked: &Checked, sources: &mut Sources) -> Option<Source> {
    let keys = ["source", "public_repo", "connected_repo"];
    let entry = sources.one_of(checked, &checked.root, &keys, SANDBOX, "module")?;
    match entry.value.as_text() {
        Some(word) if entry.key == "source" => sources.directory(&app.files, checked, &entry.value, word, SANDBOX),
        Some(_) | None => sources.repo(&app.files, checked, entry, SANDBOX),
    }
}

fn tool(checked: &Checked, drafts: &mut Vec<Draft>) -> Option<SandboxTool> {
    let root = &checked.root;
    let text = |key: &str| root.text(key).filter(|text| !text.is_empty()).map(str::to_owned);
    let (word, other, must, others) = match root.text("type") {
        None | Some("terraform") => ("terraform", "pulumi", "terraform_version", PULUMI.as_slice()),
        Some("pulumi") => ("pulumi", "terraform", "runtime", TERRAFORM.as_slice()),
        Some(_) => return None,
    };
    for entry in others.iter().filter_map(|key| root.entry(key)) {
        let message = format!("`{}` has no effect in a sandbox of type `{word}`", entry.key);
        let draft = Draft::warning(checked.key_place(entry), message);
        drafts.push(draft.help(format!("remove it, or write `type = \"{other}\"`")));
    }
    if text(must).is_none() {
        let message = format!("key `{must}` is missing: a sandbox of type `{word}` needs it");
        let example = if must == "runtime" { "runtime = \"go\"" } else { "terraform_version = \"1.11.3\"" };
        drafts.push(Draft::error(checked.place_of(root, "type"), message).help(format!("add `{example}`")));
        return None;
    }
    Some(match word {
        "pulumi" => SandboxTool::Pulumi { runtime: text(must)?, version: text("pulumi_version").unwrap_or_default() },
        _ => SandboxTool::Terraform { version: text(must)?, providers: provider_source(root) },
    })
}
