//! `freehold install`: the commands of the vendor (such as create, list, show and stack) and of the customer (launch
//! and runner-config).

mod approvals;
mod consent;
mod create;
mod delete;
mod disable;
mod enable;
mod forget;
mod inputs;
mod labels;
mod launch;
mod leftovers;
mod licence;
mod release;
mod runner_config;
mod show;
mod stack;
mod sync;
mod taken_names;
mod template;
mod toggles;
mod upgrade_runner;

use std::path::PathBuf;

use clap::{Args, Subcommand};
use freehold_protocol::{AccountId, AppName, ChannelName, ComponentName, Digest, InstallId, ReleaseName};
use freehold_stackcheck::Own;

use crate::app::{Label, key_and_value};
use crate::context::Context;
use crate::error::Result;
use crate::inputs::{Input, Parameter};
use crate::tenant::Architecture;

#[derive(Debug, Subcommand)]
pub(crate) enum InstallCommand {
    Create(Create),
    Sync(sync::Sync),
    /// List the installs.
    #[command(after_help = "\
Examples:
  freehold install list
  freehold install list --label env=production --label team
  freehold install list --json")]
    List {
        /// List only the installs with this label: its key, or its key and its value. Can be given several times; an
        /// install must then have all of these labels.
        #[arg(long = "label", value_name = "KEY[=VALUE]")]
        labels: Vec<Label>,
    },
    /// Show an install: its runner, inputs and deployed components.
    #[command(after_help = "Examples:\n  freehold install show globex\n  freehold install show globex --json")]
    Show {
        /// Name of the install.
        install: InstallId,
    },
    Inputs(Inputs),
    Toggles(Toggles),
    Labels(labels::Labels),
    SetLicence(licence::SetLicence),
    Approvals(approvals::Approvals),
    Release(release::Release),
    Stack(Stack),
    Launch(Launch),
    RunnerConfig(RunnerConfig),
    Delete(Delete),
    Forget(Forget),
    Disable(Disable),
    Enable(Enable),
    UpgradeRunner(UpgradeRunner),
}

/// Create an install of an app in a customer's account.
#[derive(Debug, Args)]
#[command(
    override_usage = "freehold install create [OPTIONS] --app <NAME> --account <ID>\n                               \
                      --region <REGION> <INSTALL>",
    after_help = "\
Example:
  freehold install create globex --app my-app --account 222222222222 --region eu-west-1 --input domain=globex.example

The customer needs only the stack's template, and you need no secret of the customer's: the runner proves to AWS that it
has the role that the stack makes in the customer's account."
)]
pub(crate) struct Create {
    /// Name of the install.
    install: InstallId,
    /// Name of the app.
    #[arg(long, value_name = "NAME")]
    app: AppName,
    /// The customer's AWS account; an install cannot move to another account.
    #[arg(long, value_name = "ID")]
    account: AccountId,
    /// AWS region of the install; an install cannot move to another region.
    #[arg(long, value_name = "REGION")]
    region: String,
    /// Accept a region that this version of Freehold does not know.
    #[arg(long)]
    unknown_region: bool,
    /// An input to set: `name=text`, `name:=JSON` or `name=@FILE`.
    #[arg(long = "input", value_name = "NAME=VALUE")]
    inputs: Vec<Input>,
    /// A toggleable component that the install has; may be repeated.
    #[arg(long, value_name = "COMPONENT")]
    on: Vec<ComponentName>,
    /// A toggleable component that the install leaves out; may be repeated.
    #[arg(long, value_name = "COMPONENT")]
    off: Vec<ComponentName>,
    /// A label of the install, by which `freehold install list` chooses; may be repeated.
    #[arg(long = "label", value_name = "KEY=VALUE", value_parser = key_and_value)]
    labels: Vec<(String, String)>,
    /// Whether plans wait until somebody at the vendor approves them, like `approval_option` in an install's file.
    #[arg(long, value_enum, default_value_t = approvals::Choice::ApproveAll)]
    approval_option: approvals::Choice,
    /// The release to which the install is pinned; without it, the install gets the latest version.
    #[arg(long, value_name = "RELEASE", conflicts_with = "channel")]
    pin: Option<ReleaseName>,
    /// The channel whose releases are deployed to the install automatically.
    #[arg(long, value_name = "CHANNEL")]
    channel: Option<ChannelName>,
}

/// Show the inputs of an install, or change the inputs that the vendor sets.
#[derive(Debug, Args)]
#[command(after_help = "\
Examples:
  freehold install inputs globex
  freehold install inputs globex --input replicas=3 --input zones=a,b
  freehold install inputs globex --input replicas:=null    back to the default
  freehold install inputs globex --input api_key=@api-key

The next deploy uses the changed values. Customers change their own inputs in the install stack.

This command encrypts a sensitive input with the key of the install's runner, so that only that runner can read it. Set such an
input only after `freehold install show` names a runner, and set it again after the runner was replaced.")]
pub(crate) struct Inputs {
    /// Name of the install.
    install: InstallId,
    /// An input to change: `name=text`, `name:=JSON` or `name=@FILE`.
    #[arg(long = "input", value_name = "NAME=VALUE")]
    inputs: Vec<Input>,
}

/// Show which toggleable components an install leaves out, or switch components on or off.
#[derive(Debug, Args)]
#[command(after_help = "\
Examples:
  freehold install toggles globex
  freehold install toggles globex --off search --on reports
  freehold install toggles globex --default search      back to the default of the config

The next deploy deploys what is on and removes what is off, under the mode `deprovision`. A component that other
components need cannot be switched off alone: switch these off too. A removal that would destroy data fails; `freehold
teardown globex --component NAME --destroy-data` removes such a component.")]
pub(crate) struct Toggles {
    /// Name of the install.
    install: InstallId,
    /// A component that the install has from now on; may be repeated.
    #[arg(long, value_name = "COMPONENT")]
    on: Vec<ComponentName>,
    /// A component that the install leaves out from now on; may be repeated.
    #[arg(long, value_name = "COMPONENT")]
    off: Vec<ComponentName>,
    /// A component to switch to the default of the config; may be repeated.
    #[arg(long, value_name = "COMPONENT")]
    default: Vec<ComponentName>,
}

/// Print the CloudFormation template that the customer launches.
#[derive(Debug, Args)]
#[command(after_help = "\
Examples:
  freehold install stack globex -o globex.yaml
  freehold install stack globex --link                   only a link, which opens the customer's AWS console
  freehold install stack globex --diff                   what changes against the version that is deployed
  freehold install stack globex --diff old.yaml          what changes against a template that you have

The template's SHA-256 goes to stderr: send it to the customer through another channel.")]
pub(crate) struct Stack {
    /// Name of the install.
    install: InstallId,
    /// Write the template to this file instead of stdout.
    #[arg(short, long, value_name = "FILE")]
    output: Option<PathBuf>,
    /// Replace the file when it exists and has another text.
    #[arg(long, requires = "output")]
    force: bool,
    /// Put the template into the tenant's bucket and print a quick-create link to it, valid for 12 hours, instead of
    /// the template.
    #[arg(long)]
    link: bool,
    /// Show only the lines that differ from FILE, or from the template of the deployed version. The exit code stays 0.
    #[arg(long, value_name = "FILE", num_args = 0..=1, conflicts_with_all = ["output", "link"])]
    diff: Option<Option<PathBuf>>,
}

/// For customers: launch or update an install stack.
#[derive(Debug, Args)]
#[command(after_help = "\
Examples:
  freehold install launch globex --template globex.yaml
  freehold install launch globex --template globex.yaml --parameter EnableDeprovision=true
  freehold install launch globex --template globex.yaml --accept-contract

Uses the AWS credentials of the customer's account. Running the command again with the same template changes nothing;
parameters that are left out keep their value. The first launch is consent to the contract that the template names. A
later launch of a template with another contract is refused, because the roles would get the permissions of that
contract. Read that contract, then accept it with `--accept-contract`, or with `--parameter AcceptedContract=sha256:...`
and the digest that you read, which must be the digest of the template's contract. To change parameters only, pass the
template that was launched last.")]
pub(crate) struct Launch {
    /// Name of the install.
    install: InstallId,
    /// The template that the vendor gave you.
    #[arg(long, value_name = "FILE")]
    template: PathBuf,
    /// The template's SHA-256, as the vendor published it; any other template is refused.
    #[arg(long, value_name = "HEX", value_parser = sha256)]
    digest: Option<Digest>,
    /// A bucket of this account for the template: CloudFormation reads a template above 51,200 bytes only from S3.
    /// Without this option, the command makes a bucket for such a template, and removes it after the launch.
    #[arg(long, value_name = "BUCKET")]
    template_bucket: Option<String>,
    /// Accept the contract that the template names, instead of the contract that the stack has accepted before.
    #[arg(long)]
    accept_contract: bool,
    /// Launch the template although it is not the one that Freehold renders. Read the findings first, with `freehold customer
    /// verify-template`.
    #[arg(long)]
    unverified: bool,
    #[command(flatten)]
    own: OwnParts,
    /// A parameter of the stack, such as `EnableDeprovision=true`; may be repeated.
    #[arg(long = "parameter", value_name = "NAME=VALUE")]
    parameters: Vec<Parameter>,
}

/// The parts that the customer added to a template. They are not checked.
#[derive(Debug, Default, Args)]
pub(crate) struct OwnParts {
    /// A resource that you added to the template yourself; it is not checked. Repeatable.
    #[arg(long, value_name = "ID=TYPE")]
    allow: Vec<Own>,
    /// An output that you added to the template yourself; it is not checked. Repeatable.
    #[arg(long, value_name = "ID", value_parser = Own::output)]
    allow_output: Vec<Own>,
}

impl OwnParts {
    pub(crate) fn all(&self) -> Vec<Own> {
        [self.allow.as_slice(), &self.allow_output].concat()
    }
}

/// For customers: write the config file of an install's runner.
#[derive(Debug, Args)]
#[command(after_help = "\
Examples:
  freehold install runner-config globex
  freehold-runner run --config globex-runner.toml
  freehold install runner-config globex --force

Reads the outputs of the launched install stack with the AWS credentials of the customer's account. `--force` replaces the
settings that come from the stack. The other settings in the file stay: the state directory, the slots, limits and programs.")]
pub(crate) struct RunnerConfig {
    /// Name of the install.
    install: InstallId,
    /// File to write the config to; `<install>-runner.toml` by default.
    #[arg(long, value_name = "FILE")]
    out: Option<PathBuf>,
    /// Replace the file when it exists, but keep its settings that do not come from the stack.
    #[arg(long)]
    force: bool,
    #[command(flatten)]
    machine: crate::runner_config_file::Machine,
}

/// Delete an install in which nothing ever ran, so that its name is free again.
#[derive(Debug, Args)]
#[command(after_help = "\
Examples:
  freehold install delete globex
  freehold install delete globex --confirm globex    checks the name again, as in the other commands that remove something

An install can never move to another account or region; use this command after a typo. Once the runner has announced
itself, the install cannot be deleted, because the app in the customer's account would stay there without an owner.")]
pub(crate) struct Delete {
    /// Name of the install.
    install: InstallId,
    /// The install's name again. The command does not require it, because nothing ran in the install.
    #[arg(long, value_name = "NAME")]
    confirm: Option<String>,
}

/// Remove everything that the tenant stores about an install that was torn down, or whose customer has left.
#[derive(Debug, Args)]
#[command(after_help = "\
Examples:
  freehold install forget globex                      lists what is removed and what stays, then asks
  freehold install forget globex --customer-gone      leaves what is deployed in the customer's account
  freehold install forget globex --confirm globex     for scripts

First remove what is deployed with `freehold teardown globex`, and let the customer delete the install stack. The
command is refused while something is deployed or runs there, and until two hours after the runner's last report.
Nothing of the install stays in the tenant: no queue, row, message or permission. The customer keeps the audit records.
Run the command again if it was stopped before its end. When the install does not exist any more, the command ends with
exit code 3.")]
pub(crate) struct Forget {
    /// Name of the install.
    install: InstallId,
    /// The customer has left: forget the install even if components are still deployed or its runner still reports.
    #[arg(long)]
    customer_gone: bool,
    /// The install's name, to confirm without being asked.
    #[arg(long, value_name = "NAME")]
    confirm: Option<String>,
    /// Return at once; the rest takes some minutes.
    #[arg(long)]
    no_wait: bool,
}

/// Stop serving an install: no workflow starts and no artifact is granted; the deployed app keeps running.
#[derive(Debug, Args)]
#[command(after_help = "Example:\n  freehold install disable globex --reason \"contract ended\"")]
pub(crate) struct Disable {
    /// Name of the install.
    install: InstallId,
    /// The reason, which every refusal shows.
    #[arg(long, value_name = "REASON")]
    reason: String,
}

/// Serve a disabled install again.
#[derive(Debug, Args)]
#[command(after_help = "Example:\n  freehold install enable globex")]
pub(crate) struct Enable {
    /// Name of the install.
    install: InstallId,
}

/// Replace the runner of an install by the runner of a signed release, and wait until the new one works.
#[derive(Debug, Args)]
#[command(after_help = "\
Examples:
  freehold install upgrade-runner globex --release target/dist
  freehold install upgrade-runner globex --release target/dist --arch x86_64 --no-wait

The customer permits this with the parameter `RunnerReleaseKey` of the install stack: the public key with which the
runner verifies releases. The runner compares the program with the signed checksums, lets running jobs end, and starts
the program. When the program does not prove its health in time, the runner rolls back to the old program and the
command fails. A new machine starts with the program that the stack names.")]
pub(crate) struct UpgradeRunner {
    /// Name of the install.
    install: InstallId,
    /// Directory of the release, with `SHA256SUMS`, `SHA256SUMS.sig` and `ARCH/freehold-runner`, as `make dist` writes it.
    #[arg(long, value_name = "DIR")]
    release: PathBuf,
    /// Architecture of the runner's machine; the machines of install stacks have arm64.
    #[arg(long, value_enum, default_value_t = Architecture::Arm64)]
    arch: Architecture,
    /// Version of the release, if it is not the version of this command.
    #[arg(long, value_name = "VERSION")]
    to: Option<String>,
    /// Seconds within which the new runner has to prove its health.
    #[arg(long, value_name = "SECS", default_value_t = 180, value_parser = clap::value_parser!(u32).range(10..=1800))]
    health_secs: u32,
    /// Start also while the customer's change windows are closed. This works only for callers whom the customer has named
    /// (`ChangesNowBy` of the install stack).
    #[arg(long)]
    now: bool,
    /// Start the upgrade and return at once.
    #[arg(long)]
    no_wait: bool,
}

impl InstallCommand {
    pub(crate) async fn run(self, context: &Context) -> Result<()> {
        match self {
            Self::Create(args) => args.run(context).await,
            Self::Sync(args) => args.run(context).await,
            Self::List { labels } => show::list(context, &labels).await,
            Self::Show { install } => show::show(context, &install).await,
            Self::Inputs(args) => args.run(context).await,
            Self::Toggles(args) => args.run(context).await,
            Self::Labels(args) => args.run(context).await,
            Self::SetLicence(args) => args.run(context).await,
            Self::Approvals(args) => args.run(context).await,
            Self::Release(args) => args.run(context).await,
            Self::Stack(args) => args.run(context).await,
            Self::Launch(args) => args.run(context).await,
            Self::RunnerConfig(args) => args.run(context).await,
            Self::Delete(args) => args.run(context).await,
            Self::Forget(args) => args.run(context).await,
            Self::Disable(args) => args.run(context).await,
            Self::Enable(args) => args.run(context).await,
            Self::UpgradeRunner(args) => args.run(context).await,
        }
    }
}

pub(crate) use template::{WAY_OUT as TEMPLATE_WAY_OUT, sha256};
