//! Finds the policies that `freehold policy test` evaluates: in a file, in a customer's directory, or in an app config.

use std::collections::BTreeSet;
use std::path::Path;

use freehold_appconfig::{Fetched, load_for_comparison};
use freehold_domain::suggestion::Known;
use freehold_policy::{PolicyText, built_in};
use freehold_protocol::ComponentName;
use freehold_protocol::app_version::{Policy, PolicyEngine};

use super::documents::Documents;
use crate::app::has_errors;
use crate::error::{Error, Result};
use crate::file;

const WAY_OUT: &str =
    "pass a file with the extension `.rego`, a directory of such files, or the directory of an app config";

/// The policies at a path.
#[derive(Debug, Default)]
pub(super) struct Chosen {
    /// The policies that are evaluated on the documents.
    pub(super) texts: Vec<PolicyText>,
    /// The number of policies of an app config that are not in Rego.
    pub(super) not_in_rego: usize,
    /// The number of policies in Rego of an app config that guard other components or other types of documents.
    pub(super) others: usize,
}

/// Returns the policies at `path` that are evaluated on `documents`. Only a policy of an app config can be limited to
/// some components. The policies of a file or a directory are evaluated for every `component`.
pub(super) fn find(path: &Path, component: Option<&ComponentName>, documents: &Documents) -> Result<Chosen> {
    if !path.is_dir() {
        return Ok(Chosen { texts: vec![of_file(path)?], ..Chosen::default() });
    }
    if path.join("metadata.toml").exists() || path.join("sandbox.toml").exists() || path.join("components").is_dir() {
        return of_app(path, component, documents);
    }
    let mut files: Vec<_> = file::entries(path, WAY_OUT)?.into_iter().map(|entry| entry.path()).collect();
    files.retain(|file| file.extension().is_some_and(|extension| extension == "rego"));
    files.sort();
    if files.is_empty() {
        return Err(Error::invalid(format!("there is no file `*.rego` in `{}`", path.display())).or(WAY_OUT));
    }
    Ok(Chosen { texts: files.iter().map(|file| of_file(file)).collect::<Result<_>>()?, ..Chosen::default() })
}

/// Returns the policies of every install.
pub(super) fn built_in() -> Vec<PolicyText> {
    built_in::ALL.iter().map(built_in::BuiltIn::policy).collect()
}

fn of_file(path: &Path) -> Result<PolicyText> {
    Ok(PolicyText { file: path.display().to_string(), text: file::read_text(path, WAY_OUT)? })
}

fn of_app(dir: &Path, component: Option<&ComponentName>, documents: &Documents) -> Result<Chosen> {
    let loaded = load_for_comparison(dir, &Fetched::new()).map_err(|found| has_errors(dir, &found))?;
    let version = &loaded.version;
    if let Some(name) = component
        && version.component(name).is_none()
        && name.as_str() != "sandbox"
    {
        let known = Known::instead_of(name.as_str(), version.components.iter().map(|one| one.name.as_str()));
        return Err(Error::not_found(format!("app `{}` has no component `{name}`", version.app))
            .or(known.way_out("components")));
    }
    let is_rego = |policy: &&Policy| policy.engine == PolicyEngine::Opa;
    let in_rego = version.policies.iter().filter(is_rego).count();
    let kinds: BTreeSet<&str> = documents.kinds();
    let asked = version.policies.iter().filter(is_rego).filter(|policy| {
        let is_named = component.is_none_or(|name| policy.components.is_empty() || policy.components.contains(name));
        is_named && (kinds.is_empty() || kinds.contains(policy.kind.as_str()))
    });
    let texts = asked.map(|policy| PolicyText { file: policy.name.clone(), text: policy.contents.clone() });
    let texts: Vec<PolicyText> = texts.collect();
    let (not_in_rego, others) = (version.policies.len() - in_rego, in_rego - texts.len());
    Ok(Chosen { texts, not_in_rego, others })
}
