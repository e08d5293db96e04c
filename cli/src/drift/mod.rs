//! `freehold drift`: checks an install for drift, and lists, acknowledges and ignores differences.

mod text;

use std::collections::BTreeSet;

use clap::{Args, Subcommand};
use freehold_client::calls;
use freehold_protocol::api::{
    AcknowledgeDriftRequest, DetectDriftRequest, IgnoreDriftRequest, InstallDrift, WorkflowStarted,
};
use freehold_protocol::{ComponentName, InstallId};

use crate::api::{Api, follow};
use crate::context::Context;
use crate::error::Result;
use crate::output::Output;

pub(crate) use text::state_text;

#[derive(Debug, Subcommand)]
pub(crate) enum DriftCommand {
    Detect(Detect),
    /// List the differences from the last deploys of an install: since when, in which attributes, and who acknowledged
    /// them.
    #[command(after_help = "\
The list contains the names of resources and attributes, but no values. `freehold deploy INSTALL --component NAME`
repairs a component: the deploy makes a plan of its own and applies it.

Examples:
  freehold drift list globex
  freehold drift list globex --json")]
    List {
        /// Name of the install.
        install: InstallId,
    },
    Acknowledge(Acknowledge),
    Ignore(Ignore),
}

/// Check deployed components for drift, and wait until the checks have ended. A check makes a plan with read-only
/// permissions, and applies nothing. Terraform modules, charts and manifests can be checked; images, programs of type
/// `job`, CloudFormation stacks and Pulumi programs cannot.
#[derive(Debug, Args)]
#[command(after_help = "Examples:\n  freehold drift detect globex\n  freehold drift detect globex --component network")]
pub(crate) struct Detect {
    /// Name of the install.
    install: InstallId,
    /// A component to check, or `sandbox` for the app's sandbox; all that can be checked by default. Can be given several
    /// times.
    #[arg(long = "component", value_name = "COMPONENT")]
    components: Vec<ComponentName>,
    /// Start the checks and return at once.
    #[arg(long)]
    no_wait: bool,
}

/// Acknowledge a difference: you know the difference and leave it as it is for now. The acknowledgement ends when the
/// resource is in sync again, or differs in other attributes.
#[derive(Debug, Args)]
#[command(after_help = "Example:\n  freehold drift acknowledge globex aws_sqs_queue.jobs --reason until-friday")]
pub(crate) struct Acknowledge {
    /// Name of the install.
    install: InstallId,
    /// Address of the resource, as `freehold drift list` shows it.
    address: String,
    /// The component of the resource. Needed when several components have a resource with this address that differs.
    #[arg(long, value_name = "COMPONENT")]
    component: Option<ComponentName>,
    /// The reason why the difference stays, in one line.
    #[arg(long, value_name = "TEXT")]
    reason: String,
}

/// Ignore drift by a rule of the install, such as the changes of an autoscaler. The differences that a rule ignores are
/// still listed, but do not count as drift. A rule with the same address and component is replaced.
#[derive(Debug, Args)]
#[command(after_help = "\
Examples:
  freehold drift ignore globex 'aws_autoscaling_group.*' --attribute desired_capacity --reason autoscaler
  freehold drift ignore globex 'aws_autoscaling_group.*' --remove --reason no-autoscaler")]
pub(crate) struct Ignore {
    /// Name of the install.
    install: InstallId,
    /// Addresses of resources; `*` matches any characters.
    address: String,
    /// The component whose resources are ignored; all by default.
    #[arg(long, value_name = "COMPONENT")]
    component: Option<ComponentName>,
    /// An attribute whose difference is ignored, with everything inside of it; the whole resource by default. Can be given
    /// several times.
    #[arg(long = "attribute", value_name = "NAME")]
    attributes: Vec<String>,
    /// Remove the rule.
    #[arg(long)]
    remove: bool,
    /// The reason, in one line.
    #[arg(long, value_name = "TEXT")]
    reason: String,
}

impl DriftCommand {
    pub(crate) async fn run(self, context: &Context) -> Result<()> {
        let (api, out) = (context.api().await?, context.out);
        match self {
            Self::Detect(args) => args.run(&api, out).await,
            Self::List { install } => {
                let found: InstallDrift = api.send(calls::list_drift(&install)).await?;
                out.show(&found, |found| text::list(found, out))
            }
            Self::Acknowledge(Acknowledge { install, address, component, reason }) => {
                let request = AcknowledgeDriftRequest { address, component, reason };
                let found: InstallDrift = api.send(calls::acknowledge_drift(&install, &request)).await?;
                out.show(&found, |found| text::list(found, out))
            }
            Self::Ignore(args) => {
                let request = IgnoreDriftRequest {
                    address: args.address,
                    component: args.component,
                    attributes: args.attributes.into_iter().collect(),
                    reason: args.reason,
                    remove: args.remove,
                };
                let found: InstallDrift = api.send(calls::ignore_drift(&args.install, &request)).await?;
                out.show(&found, |found| text::list(found, out))
            }
        }
    }
}

impl Detect {
    async fn run(self, api: &Api, out: Output) -> Result<()> {
        let components: BTreeSet<ComponentName> = self.components.into_iter().collect();
        let call = calls::detect_drift(&self.install, &DetectDriftRequest { components });
        let started: WorkflowStarted = api.send(call).await?;
        let subject = format!("drift check of `{}`", self.install);
        follow(api, out, &started.workflow, &subject, !self.no_wait).await?;
        if self.no_wait || out.is_json() {
            return Ok(());
        }
        let found: InstallDrift = api.send(calls::list_drift(&self.install)).await?;
        out.line(&text::list(&found, out));
        Ok(())
    }
}
