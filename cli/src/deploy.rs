//! `freehold deploy`: brings an install to a version and its inputs.

use clap::Args;
use freehold_protocol::api::{DeployComponentsRequest, InstallView, WorkflowStarted};
use freehold_protocol::{ComponentName, InstallId, ReleaseName};

use crate::api::{Api, follow};
use crate::app::VersionName;
use crate::context::Context;
use crate::error::{Error, Result};
use crate::inputs::{Input, by_name};

/// Deploy an app version, or changed inputs, to an install.
#[derive(Debug, Args)]
#[command(after_help = "\
Examples:
  freehold deploy globex                           what changed since the last deploy
  freehold deploy globex --input replicas:=3 --input domain=globex.example
  freehold deploy globex --component api           api and what depends on it
  freehold deploy globex --all --version 7
  freehold deploy globex --release 2026.11

Exit code 1 when the deploy ends failed. Ctrl-c stops watching; the deploy continues.")]
pub(crate) struct Deploy {
    install: InstallId,
    /// An input to change: `name=text`, `name:=JSON` or `name=@FILE`.
    #[arg(long = "input", value_name = "NAME=VALUE")]
    inputs: Vec<Input>,
    /// Only this component and what depends on it; may be repeated.
    #[arg(long = "component", value_name = "NAME")]
    components: Vec<ComponentName>,
    /// Deploy all components, changed or not.
    #[arg(long, conflicts_with = "components")]
    all: bool,
    /// Number, digest or the beginning of a digest; the latest version when absent.
    #[arg(long, value_name = "VERSION")]
    version: Option<VersionName>,
    /// A release instead of a version; refused when a deploy would use other artifacts than the release names.
    #[arg(long, value_name = "NAME", conflicts_with = "version")]
    release: Option<ReleaseName>,
    /// The role to run under, instead of the role that the app config chooses: the key of a role, or a mode.
    #[arg(long, value_name = "ROLE")]
    role: Option<String>,
    /// Start it and return at once.
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
        let (components, release, role) = (self.components.clone(), self.release.clone(), self.role.clone());
        let body = DeployComponentsRequest { version, release, inputs, components, all: self.all, role };
        let path = ["v1", "installs", self.install.as_str(), "deploys"];
        let started: WorkflowStarted = api.post(&path, &body).await?;
        let subject = format!("deploy of `{}`", self.install);
        follow(&api, context.out, &started.workflow, &subject, !self.no_wait).await
    }

    async fn app(&self, api: &Api) -> Result<freehold_protocol::AppName> {
        let view: InstallView = api.get(&["v1", "installs", self.install.as_str()]).await?;
        view.app.ok_or_else(|| Error::invalid(format!("`{}` is not the install of an app", self.install)))
    }
}
