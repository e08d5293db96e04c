//! `freehold deploy`: deploys a version and its inputs to an install.

use std::collections::{BTreeMap, BTreeSet};

use clap::Args;
use freehold_client::calls;
use freehold_protocol::api::{
    AnsweredBy, DeployComponentsRequest, InstallInputs, InstallView, RolledBackView, VersionDocument, WorkflowStarted,
    WorkflowView,
};
use freehold_protocol::{ComponentName, Digest, InstallId, ReleaseName, WorkflowId};
use serde_json::Value;

use crate::api::{Api, app_of, follow};
use crate::app::VersionName;
use crate::context::Context;
use crate::error::Result;
use crate::inputs::sealing::seal_inputs;
use crate::inputs::{Input, by_name};
use crate::output::Output;

/// Deploy an app version, or changed inputs, to an install.
#[derive(Debug, Args)]
#[command(after_help = "\
Examples:
  freehold deploy globex                           what changed since the last deploy
  freehold deploy globex --input replicas:=3 --input domain=globex.example
  freehold deploy globex --component api           api and the components that depend on it
  freehold deploy globex --sandbox                 the sandbox, changed or not, and the components that read its outputs
  freehold deploy globex --all --version 7
  freehold deploy globex --release 2026.11
  freehold deploy globex --now                     also while the customer's change windows are closed
  freehold deploy globex --release 2026.11 --verified   rolls back when it fails

Changed inputs stay set for later deploys, also when a job of this deploy fails. Deploying another version or release
does not restore former inputs. A deploy that ends before its first job leaves the inputs as they were.

A deploy with --verified that fails, for example because a component does not become healthy, is rolled back by a
workflow of its own, which deploys what ran before and restores the vendor's inputs and toggles. A roll back that fails
is not rolled back. A component that only the failed version has stays deployed.

Exit code 1 when the deploy fails. Ctrl-c stops watching; the deploy continues.")]
pub(crate) struct Deploy {
    /// Name of the install.
    install: InstallId,
    /// An input to change: `name=text`, `name:=JSON` or `name=@FILE`.
    #[arg(long = "input", value_name = "NAME=VALUE")]
    inputs: Vec<Input>,
    /// Deploy only this component and the components that depend on it; may be repeated.
    #[arg(long = "component", value_name = "NAME")]
    components: Vec<ComponentName>,
    /// Deploy the sandbox, changed or not, and the components that read its outputs; may be combined with
    /// `--component`.
    #[arg(long)]
    sandbox: bool,
    /// Deploy the sandbox and all components, changed or not.
    #[arg(long, conflicts_with_all = ["components", "sandbox"])]
    all: bool,
    /// The version: its number, its digest or the beginning of its digest; the latest version when absent.
    #[arg(long, value_name = "VERSION")]
    version: Option<VersionName>,
    /// The release to deploy, instead of a version; refused when the deploy would use other artifacts than the release.
    #[arg(long, value_name = "NAME", conflicts_with = "version")]
    release: Option<ReleaseName>,
    /// The role to run under, instead of the role that the app config chooses: a mode such as `provision`, or the key
    /// of a role as `freehold contract show` lists it, such as `break-glass-admin`.
    #[arg(long, value_name = "ROLE")]
    role: Option<String>,
    /// Start also while the customer's change windows are closed. This works only for callers whom the customer has named
    /// (`ChangesNowBy` of the install stack).
    #[arg(long)]
    now: bool,
    /// Roll back automatically when the deploy fails: to the version, artifacts, inputs and toggles that ran before.
    #[arg(long)]
    verified: bool,
    /// Start the deploy and return at once.
    #[arg(long)]
    no_wait: bool,
}

impl Deploy {
    pub(crate) async fn run(&self, context: &Context) -> Result<()> {
        let inputs = by_name(&self.inputs)?;
        let api = context.api().await?;
        let version = match &self.version {
            None => None,
            Some(VersionName::Digest(digest)) => Some(digest.clone()),
            Some(name) => Some(name.resolve(&api, &self.app(&api).await?).await?),
        };
        let inputs = self.seal(&api, inputs, version.as_ref()).await?;
        let (release, role) = (self.release.clone(), self.role.clone());
        let sandbox = self.sandbox.then(ComponentName::sandbox);
        let components = self.components.iter().cloned().chain(sandbox).collect();
        let (all, now, verified) = (self.all, self.now, self.verified);
        let body = DeployComponentsRequest { version, release, inputs, components, all, role, now, verified };
        let started: WorkflowStarted = api.send(calls::deploy_components(&self.install, &body)).await?;
        let subject = format!("deploy of `{}`", self.install);
        let ended = follow(&api, context.out, &started.workflow, &subject, !self.no_wait).await;
        if !self.no_wait {
            // Errors of these hints are ignored, because the deploy alone decides the result of this command.
            if self.verified && ended.is_err() {
                let _ = self.say_roll_back(&api, context.out, &started.workflow).await;
            }
            let _ = self.say_inputs(&api, context.out).await;
            if ended.is_ok() {
                let _ = self.say_left_behind(&api, context.out, started.version.as_ref()).await;
            }
        }
        ended
    }

    /// Returns `inputs` with the values of sensitive inputs sealed. The version to deploy may have other sensitive
    /// inputs than the newest version.
    async fn seal(
        &self,
        api: &Api,
        inputs: BTreeMap<String, Value>,
        version: Option<&Digest>,
    ) -> Result<BTreeMap<String, Value>> {
        if inputs.is_empty() || (version.is_none() && self.release.is_none()) {
            return seal_inputs(api, &self.install, inputs, None).await;
        }
        let app = self.app(api).await?;
        let version = match (version, &self.release) {
            (Some(version), _) => Some(version.clone()),
            (None, Some(release)) => Some(api.send(calls::show_release(&app, release)).await?.contents.version),
            (None, None) => None,
        };
        seal_inputs(api, &self.install, inputs, version.as_ref().map(|version| (&app, version))).await
    }

    /// Prints whether a failed verified deploy is rolled back.
    async fn say_roll_back(&self, api: &Api, out: Output, deploy: &WorkflowId) -> Result<()> {
        let view: WorkflowView = api.send(calls::show_workflow(deploy)).await?;
        if !out.is_json() {
            out.line(&roll_back_text(&self.install, view.rolled_back.as_ref()));
        }
        Ok(())
    }

    /// Prints which inputs keep their values, if the user might expect that the deploy changes them.
    async fn say_inputs(&self, api: &Api, out: Output) -> Result<()> {
        if out.is_json() || (self.inputs.is_empty() && self.version.is_none() && self.release.is_none()) {
            return Ok(());
        }
        let shown: InstallInputs = api.send(calls::show_inputs(&self.install)).await?;
        if let Some(text) = inputs_that_stay(&shown) {
            out.line(&text);
        }
        Ok(())
    }

    /// Prints which parts stay deployed although the deployed version does not have them.
    async fn say_left_behind(&self, api: &Api, out: Output, version: Option<&Digest>) -> Result<()> {
        let Some(version) = version.filter(|_| !out.is_json()) else { return Ok(()) };
        let install = api.install(&self.install).await?;
        let app = app_of(&install)?;
        let VersionDocument { view, document, .. } = api.send(calls::show_version(&app, version)).await?;
        let has: BTreeSet<ComponentName> = document.parts().map(|part| part.name.clone()).collect();
        let left: Vec<&ComponentName> =
            install.components.iter().map(|one| &one.component).filter(|name| !has.contains(name)).collect();
        if let Some(text) = left_behind(&self.install, view.number, &left) {
            out.line(&text);
        }
        Ok(())
    }

    async fn app(&self, api: &Api) -> Result<freehold_protocol::AppName> {
        let view: InstallView = api.send(calls::show_install(&self.install)).await?;
        app_of(&view)
    }
}

/// Returns the sentence about what follows a verified deploy that failed.
fn roll_back_text(install: &InstallId, followed: Option<&RolledBackView>) -> String {
    match followed {
        Some(RolledBackView { workflow: Some(by), .. }) => {
            format!("rolled back by {by}; `freehold workflow watch {by}`")
        }
        Some(RolledBackView { workflow: None, refused }) => format!("not rolled back: {refused}"),
        None => format!("its roll back begins within a minute; `freehold workflow list {install}` shows it"),
    }
}

/// Returns the sentence about the inputs that the vendor has set, which keep their values; `None` if there are no such
/// inputs.
fn inputs_that_stay(shown: &InstallInputs) -> Option<String> {
    let vendors = shown.inputs.iter().filter(|input| input.from == AnsweredBy::Vendor);
    let names: Vec<&str> = vendors.map(|input| input.name.as_str()).collect();
    (!names.is_empty()).then(|| {
        let install = &shown.install;
        format!(
            "inputs that stay set for later deploys: `{}`; `freehold install inputs {install}` shows and changes them",
            names.join("`, `")
        )
    })
}

/// Returns the sentence about parts that stay deployed although version `number` does not have them.
fn left_behind(install: &InstallId, number: u64, left: &[&ComponentName]) -> Option<String> {
    let first = left.first()?;
    let names: Vec<String> = left.iter().map(|name| format!("`{name}`")).collect();
    let (what, stay, them) = match left.len() {
        1 => ("component", "stays", "it"),
        _ => ("components", "stay", "them"),
    };
    let more = if left.len() == 1 { "" } else { ", and so on" };
    Some(format!(
        "{what} {} {stay} deployed: version {number} does not have {them}, and a deploy does not remove {them}; \
         `freehold teardown {install} --component {first}` removes it{more}",
        names.join(", ")
    ))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn components_that_a_version_does_not_have_and_that_stay_are_named_with_the_way_to_remove_them() {
        let (install, topic) = ("globex".parse().unwrap(), "topic".parse().unwrap());

        let warning = left_behind(&install, 1, &[&topic]).unwrap();

        assert_eq!(
            warning,
            "component `topic` stays deployed: version 1 does not have it, and a deploy does not remove it; \
             `freehold teardown globex --component topic` removes it"
        );
        assert_eq!(left_behind(&install, 1, &[]), None);
    }

    #[test]
    fn inputs_that_the_vendor_set_are_named_and_others_are_not() {
        let input = |name: &str, from: &str| serde_json::json!({ "name": name, "type": "string", "required": false, "sensitive": false, "from": from });
        let with_inputs = |inputs: &[serde_json::Value]| -> InstallInputs {
            let version = format!("sha256:{}", "0".repeat(64));
            let all = serde_json::json!({ "install": "globex", "app": "shop", "version": version, "inputs": inputs });
            serde_json::from_value(all).unwrap()
        };

        let some = with_inputs(&[input("days", "vendor"), input("zone", "customer"), input("size", "default")]);

        assert_eq!(
            inputs_that_stay(&some).unwrap(),
            "inputs that stay set for later deploys: `days`; `freehold install inputs globex` shows and changes them"
        );
        assert_eq!(inputs_that_stay(&with_inputs(&[input("size", "default")])), None);
    }
}
