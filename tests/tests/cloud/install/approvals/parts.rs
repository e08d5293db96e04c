//! The parts whose plans wait in these scenarios, one of each kind: the value that each has in the customer's account,
//! and how somebody else changes it there.

use std::path::PathBuf;

use anyhow::Context as _;
use aws_sdk_cloudformation::types::{ResourceStatus, StackEvent, StackStatus};
use aws_sdk_sqs::types::QueueAttributeName;
use freehold_tests::harness::wait::{SOON, until};
use freehold_tests::harness::{Install, World, app};
use freehold_tests::workspace::workspace_root;
use serde_json::{Value, json};

use super::cluster;
use super::content::Content;
use super::{bucket, find_object, object, put, raise_serial, s3};
use crate::install::demo_cluster::{GREETING, POLICY};

const INPUTS: &str = r#"
[[group]]
name = "all"
display_name = "All"
description = "What changes from deploy to deploy"

[[input]]
name = "zone"
display_name = "Zone"
description = "The value of the sandbox"
group = "all"
type = "number"
default = 1

[[input]]
name = "size"
display_name = "Size"
description = "The value of the components"
group = "all"
type = "number"
default = 1
"#;
const SANDBOX: &str = r#"
terraform_version = "1.11.3"
source = "./sandbox"
[vars]
size = "{{ .nuon.inputs.inputs.zone }}"
"#;
const MODULE: &str = r#"
name = "module"
type = "terraform_module"
terraform_version = "1.11.3"
source = "./module"
[vars]
size = "{{ .nuon.inputs.inputs.size }}"
"#;
const TERRAFORM: &str = r#"
variable "size" { type = string }
resource "terraform_data" "this" { input = var.size }
output "size" { value = terraform_data.this.output }
"#;
const PROGRAM: &str = r#"
name = "program"
type = "pulumi"
runtime = "go"
source = "./program"
[config]
size = "{{ .nuon.inputs.inputs.size }}"
"#;
const PULUMI: &str =
    r#"{ "resources": [{ "name": "main", "type": "aws:ec2/vpc:Vpc" }], "outputs": { "size": "config:size" } }"#;
/// The template makes a queue whose delay is the value.
const STACK: &str = r#"
name = "stack"
type = "cloudformation_stack"
template = "./templates/queue.yaml"
stack_name = "{{ .nuon.install_stack.outputs.prefix }}stack"
[parameters]
Name = "{{ .nuon.install.id }}-stack"
Round = "{{ .nuon.inputs.inputs.size }}"
"#;
const POLICIES: &str = "\n[[policies]]\nname = \"queues\"\ncontents = \"./queues.json\"\n";

const STACK_NAME: &str = "acme--globex--stack";
const CHECKPOINT: &str = "terraform/program/.pulumi/stacks/net/globex.json";
/// Each update of a program of Pulumi leaves an object here.
const UPDATES: &str = "terraform/program/.pulumi/history/";

/// A part of an app.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Part {
    Sandbox,
    Module,
    Program,
    Stack,
    Chart,
    Manifest,
}

impl Part {
    /// The components that need no cluster.
    pub(super) const COMPONENTS: [Self; 3] = [Self::Module, Self::Program, Self::Stack];
    /// The components of the demo that need its cluster.
    pub(super) const IN_CLUSTER: [Self; 2] = [Self::Chart, Self::Manifest];

    /// Returns the name of its node in a workflow.
    pub(super) const fn node(self) -> &'static str {
        match self {
            Self::Sandbox => "sandbox",
            Self::Module => "module",
            Self::Program => "program",
            Self::Stack => "stack",
            Self::Chart => "greeter",
            Self::Manifest => "limits",
        }
    }

    /// Returns what it has in the customer's account.
    pub(super) async fn content(self, world: &World, install: &Install) -> anyhow::Result<Content> {
        match self {
            Self::Sandbox | Self::Module => terraform(world, install, self.state()).await,
            Self::Program => program(world, install).await,
            Self::Stack => stack(world, install).await,
            Self::Chart => cluster::chart(world, install).await,
            Self::Manifest => cluster::manifest(world, install).await,
        }
    }

    /// Changes what it has, as somebody with rights in the customer's account can. A plan that was made before is then
    /// out of date.
    pub(super) async fn change_by_hand(self, world: &World, install: &Install) -> anyhow::Result<()> {
        match self {
            Self::Sandbox | Self::Module => raise_serial(world, install, self.state()).await,
            Self::Program => forget_resources(world, install).await,
            Self::Stack => delete_stack(world, install).await,
            Self::Chart => cluster::delete(world, install, GREETING).await,
            Self::Manifest => cluster::delete(world, install, POLICY).await,
        }
    }

    /// Returns why the runner does not apply a plan that was made before such a change.
    pub(super) const fn why_anew(self) -> &'static str {
        match self {
            Self::Sandbox | Self::Module => "the state has changed",
            Self::Program | Self::Stack | Self::Chart | Self::Manifest => "the job would now make other changes",
        }
    }

    /// Returns the object with its Terraform state.
    const fn state(self) -> &'static str {
        if matches!(self, Self::Sandbox) { "terraform/sandbox/sandbox.tfstate" } else { "terraform/module.tfstate" }
    }
}

/// Writes an app that has each part, and lets its runner find what stands in for Pulumi.
pub(super) fn app_with_parts(world: &mut World) -> anyhow::Result<PathBuf> {
    world.find_pulumi_stand_in()?;
    let directory = app::small(world.directory())?;
    // Two parts with the same files would have one artifact.
    let sandbox = format!("# The sandbox.\n{TERRAFORM}");
    let files = [
        ("inputs.toml", INPUTS),
        ("sandbox.toml", SANDBOX),
        ("components/module.toml", MODULE),
        ("components/program.toml", PROGRAM),
        ("components/stack.toml", STACK),
        ("sandbox/main.tf", sandbox.as_str()),
        ("module/main.tf", TERRAFORM),
        ("program/Pulumi.yaml", "name: net\nruntime: go\n"),
        ("program/program.json", PULUMI),
    ];
    for (file, text) in files {
        app::write(&directory, file, text)?;
    }
    let queues = workspace_root()?.join("tests/figures/ledger");
    for file in ["permissions/queues.json", "templates/queue.yaml"] {
        app::write(&directory, file, &std::fs::read_to_string(queues.join(file))?)?;
    }
    for file in ["permissions/provision.toml", "permissions/maintenance.toml"] {
        let role = std::fs::read_to_string(directory.join(file))?;
        app::write(&directory, file, &format!("{role}{POLICIES}"))?;
    }
    Ok(directory)
}

/// Terraform raises the serial of a state whenever it writes the state.
async fn terraform(world: &World, install: &Install, key: &str) -> anyhow::Result<Content> {
    let Some(bytes) = find_object(world, install, key).await? else { return Ok(Content::default()) };
    let state: Value = serde_json::from_slice(&bytes)?;
    let changes = usize::try_from(state["serial"].as_u64().context("a state without a serial")?)?;
    Ok(Content { value: text(&state["outputs"]["size"]["value"]), changes })
}

async fn program(world: &World, install: &Install) -> anyhow::Result<Content> {
    let Some(bytes) = find_object(world, install, CHECKPOINT).await? else { return Ok(Content::default()) };
    let state: Value = serde_json::from_slice(&bytes)?;
    // Two updates may write the same object: its name is the number of a process in a box.
    let updates = s3(world, install)?.list_object_versions().bucket(bucket(install)).prefix(UPDATES).send().await?;
    Ok(Content { value: text(&state["outputs"]["size"]), changes: updates.versions().len() })
}

async fn stack(world: &World, install: &Install) -> anyhow::Result<Content> {
    let stacks = aws_sdk_cloudformation::Client::new(&world.administrator(&install.account)?);
    // CloudFormation does not have an error code of its own for an absent stack.
    let Ok(found) = stacks.describe_stacks().stack_name(STACK_NAME).send().await else { return Ok(Content::default()) };
    let status = found.stacks().first().and_then(|stack| stack.stack_status());
    if status.is_none_or(|status| *status == StackStatus::DeleteComplete) {
        return Ok(Content::default());
    }
    let events = stacks.describe_stack_events().stack_name(STACK_NAME).send().await?;
    let ends = |event: &&StackEvent| {
        let is_whole = event.resource_type() == Some("AWS::CloudFormation::Stack");
        let status = event.resource_status();
        is_whole && matches!(status, Some(ResourceStatus::CreateComplete | ResourceStatus::UpdateComplete))
    };
    Ok(Content { value: delay(world, install).await?, changes: events.stack_events().iter().filter(ends).count() })
}

/// Returns the delay of the stack's queue; nothing if the queue does not exist.
async fn delay(world: &World, install: &Install) -> anyhow::Result<Option<String>> {
    let sqs = aws_sdk_sqs::Client::new(&world.administrator(&install.account)?);
    let Ok(queue) = sqs.get_queue_url().queue_name("globex-stack").send().await else { return Ok(None) };
    let name = QueueAttributeName::DelaySeconds;
    let asked = sqs.get_queue_attributes().set_queue_url(queue.queue_url).attribute_names(name.clone());
    Ok(asked.send().await?.attributes().and_then(|all| all.get(&name)).cloned())
}

/// Takes all resources out of the state of the program.
async fn forget_resources(world: &World, install: &Install) -> anyhow::Result<()> {
    let mut state: Value = serde_json::from_slice(&object(world, install, CHECKPOINT).await?)?;
    state["checkpoint"]["latest"]["resources"] = json!([]);
    put(world, install, CHECKPOINT, serde_json::to_vec(&state)?).await
}

async fn delete_stack(world: &World, install: &Install) -> anyhow::Result<()> {
    let stacks = aws_sdk_cloudformation::Client::new(&world.administrator(&install.account)?);
    stacks.delete_stack().stack_name(STACK_NAME).send().await?;
    until("the stack is deleted", SOON, || async {
        Ok((stack(world, install).await? == Content::default()).then_some(()))
    })
    .await
}

fn text(value: &Value) -> Option<String> {
    value.as_str().map(str::to_owned)
}
