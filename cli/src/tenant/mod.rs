//! `freehold tenant`: deploys, shows and removes the vendor's control plane.

mod architecture;
mod bucket;
mod build_machine;
mod build_runner;
mod code;
mod code_checksums;
mod concurrency;
mod deploy;
mod destroy;
mod functions_directory;
mod leftovers;
mod names;
mod principal;
mod remove;
mod resources;
mod rotate_root;
mod source;
mod status;
mod table_settings;

use std::path::PathBuf;

use clap::{Args, Subcommand};
use freehold_protocol::{DownloadUrl, TenantName};

use crate::context::Context;
use crate::error::Result;
use crate::inputs::{audience, issuer, mail_address, number, sha256};

pub(crate) use architecture::Architecture;
pub(crate) use bucket::Bucket;
pub(crate) use names::{NO_RUNNER, bucket_name};

/// Whether an optional part of the tenant is on.
#[derive(Debug, Clone, Copy, PartialEq, Eq, clap::ValueEnum)]
pub(crate) enum Switch {
    On,
    Off,
}

impl Switch {
    /// Returns the value of the stack's parameter.
    const fn as_str(self) -> &'static str {
        match self {
            Self::On => "on",
            Self::Off => "off",
        }
    }
}

#[derive(Debug, Subcommand)]
pub(crate) enum TenantCommand {
    Deploy(Box<Deploy>),
    BuildRunner(BuildRunner),
    RotateRoot(rotate_root::RotateRoot),
    #[command(subcommand)]
    Source(source::SourceCommand),
    Status(Status),
    Destroy(Destroy),
}

/// Deploy or update the control plane in the account of your AWS credentials.
#[derive(Debug, Args)]
#[command(after_help = "\
Examples:
  freehold tenant deploy --name acme
  freehold tenant deploy --name acme --functions target/dist/arm64/functions
  freehold tenant deploy --name acme --alarm-email ops@acme.example
  freehold tenant deploy --name acme --people-issuer https://login.acme.example --people-client-id freehold
  freehold tenant deploy --name acme --pipeline-issuer https://token.actions.githubusercontent.com --pipeline-audience freehold-acme

People sign in with accounts of a user pool of the stack, or of the issuer that `--people-issuer` names. An account alone
permits nothing: `freehold member invite --help` shows how a person becomes a member. The address of the console is printed
last; with `--json`, it is the field `console_url`.

Running the command again with the same code changes nothing. The second line printed is the API's address; with `--json`, it
is the field `api_url`. Options that are left out keep their current value.")]
pub(crate) struct Deploy {
    /// Name of the tenant; the same as `--tenant`.
    #[arg(long)]
    name: Option<TenantName>,
    /// Directory with `<function>.zip` or `<function>/bootstrap.zip`. By default, the functions of the release that
    /// this program is in, or else those that `make dist` or `make package` wrote below the current directory; arm64
    /// first. If the checksums of the functions do not list this program, the functions are from another build. They
    /// are then deployed only if this option names their directory.
    #[arg(long, value_name = "DIR")]
    functions: Option<PathBuf>,
    /// Processor that the functions are built for; read from the code when absent.
    #[arg(long, value_name = "NAME")]
    architecture: Option<Architecture>,
    /// Mail address that receives the alarms.
    #[arg(long, value_name = "ADDRESS", value_parser = mail_address)]
    alarm_email: Option<String>,
    /// Whether programs outside of AWS may call webhooks, by a route of the API that anybody can reach; off if this
    /// option was never given.
    #[arg(long, value_name = "on|off")]
    webhooks: Option<Switch>,
    /// Whether each install has metrics of its own in CloudWatch, which bills them one by one; off if this option was
    /// never given.
    #[arg(long, value_name = "on|off")]
    install_metrics: Option<Switch>,
    /// OpenID Connect issuer of the accounts of people, exactly as `iss` in its tokens has it. The accounts are in a user
    /// pool of the stack if this option was never given, and again after an empty value.
    #[arg(long, value_name = "URL", requires = "people_client_id", value_parser = issuer)]
    people_issuer: Option<String>,
    /// Client of `freehold` and of the console at `--people-issuer`, which has no secret.
    #[arg(long, value_name = "ID", requires = "people_issuer", value_parser = audience)]
    people_client_id: Option<String>,
    /// Whether the sign-in page of the stack's user pool asks everybody for a code of an authenticator app too; off if
    /// this option was never given.
    #[arg(long, value_name = "on|off")]
    people_second_factor: Option<Switch>,
    /// OpenID Connect issuer of pipelines, which then may call the API with its tokens and without a stored key. An empty
    /// value ends this.
    #[arg(long, value_name = "URL", requires = "pipeline_audience", value_parser = issuer)]
    pipeline_issuer: Option<String>,
    /// Audience for which a pipeline gets its tokens from `--pipeline-issuer`; the API refuses all others.
    #[arg(long, value_name = "NAME", requires = "pipeline_issuer", value_parser = audience)]
    pipeline_audience: Option<String>,
    /// Whether the console has an address, which browsers reach from anywhere; on if this option was never given.
    #[arg(long, value_name = "on|off")]
    console: Option<Switch>,
    /// ARN of the principal of this account that may assume the build runner's role, when the build
    /// runner is not an EC2 instance.
    #[arg(long, value_name = "ARN")]
    build_runner_principal: Option<String>,
    /// ARN of a role that reads a private registry (`aws_ecr.iam_role_arn`); may be repeated.
    #[arg(long = "source-role", value_name = "ARN")]
    source_roles: Vec<String>,
    /// Subnet in which a machine for the build runner starts when there is something to build; may be repeated.
    /// An empty value removes the machine from the stack.
    #[arg(long = "build-subnet", value_name = "ID")]
    build_subnets: Vec<String>,
    /// VPC of the subnets in `--build-subnet`.
    #[arg(long, value_name = "ID")]
    build_vpc: Option<String>,
    /// Instance type of the build runner's machine, with a Graviton processor; t4g.medium if this option was never
    /// given.
    #[arg(long, value_name = "TYPE")]
    build_instance_type: Option<String>,
    /// Machine image (AMI) of the build runner's machine: Amazon Linux 2023 for arm64, with Terraform and Buildah if
    /// components need them.
    #[arg(long, value_name = "ID")]
    build_image: Option<String>,
    /// How long the build runner's machine waits for the next build before it ends, in seconds; 600 if this option was
    /// never given.
    #[arg(long, value_name = "SECONDS", value_parser = number::<60, 86_400>)]
    build_idle_secs: Option<u32>,
    /// URL from which the build runner's machine downloads `freehold-builder` for arm64.
    #[arg(long, value_name = "URL", requires = "builder_sha256")]
    builder_url: Option<DownloadUrl>,
    /// SHA-256 of the program at `--builder-url`; the machine refuses a download with another SHA-256.
    #[arg(long, value_name = "HEX", requires = "builder_url", value_parser = sha256)]
    builder_sha256: Option<String>,
    /// URL from which customers' machines download the runner for arm64.
    #[arg(long, value_name = "URL", requires = "runner_sha256")]
    runner_url: Option<DownloadUrl>,
    /// SHA-256 of the runner at `--runner-url`; a customer's machine refuses a download with another SHA-256.
    #[arg(long, value_name = "HEX", requires = "runner_url", value_parser = sha256)]
    runner_sha256: Option<String>,
    /// ARN of a managed policy that no role of the tenant may exceed; see docs/tenant-role.md.
    #[arg(long, value_name = "ARN")]
    roles_boundary: Option<String>,
    /// ARN of a KMS key for the table.
    #[arg(long, value_name = "ARN")]
    table_key: Option<String>,
    /// The number of days for which logs are stored.
    #[arg(long, value_name = "DAYS")]
    log_retention_days: Option<u32>,
}

/// Register the tenant's build runner and write its config file.
#[derive(Debug, Args)]
#[command(after_help = "\
Examples:
  freehold tenant build-runner --name acme
  freehold-builder run --config build-runner.toml

With `freehold tenant deploy --build-subnet`, a build starts a machine for the build runner, and nothing else has to be
started. Otherwise, run the build runner on a machine of yours.

The build runner must run with the role `fh-<tenant>--build-runner`. EC2 instances with the instance profile of that name have it;
elsewhere (a laptop, a CI job), run `freehold tenant deploy --build-runner-principal ARN` once with the ARN of the role or
user that may assume this role, and then assume the role, for instance with `role_arn` in a profile of ~/.aws/config. The tenant accepts a build runner because it has that role.")]
pub(crate) struct BuildRunner {
    /// Name of the tenant; the same as `--tenant`.
    #[arg(long)]
    name: Option<TenantName>,
    /// File to write the config to.
    #[arg(long, default_value = "build-runner.toml", value_name = "FILE")]
    out: PathBuf,
    /// Replace the file when it exists.
    #[arg(long)]
    force: bool,
    #[command(flatten)]
    machine: crate::runner_config_file::Machine,
}

/// Show the stack with its outputs, such as the addresses of the API and the console, the code of the functions, the
/// length of the queues and the build runner's machine.
#[derive(Debug, Args)]
#[command(after_help = "Examples:\n  freehold tenant status\n  freehold tenant status --json")]
pub(crate) struct Status {
    /// Name of the tenant; the same as `--tenant`.
    #[arg(long)]
    name: Option<TenantName>,
}

/// Remove the control plane and all its data.
#[derive(Debug, Args)]
#[command(after_help = "\
Examples:
  freehold tenant destroy --name acme                   asks for the name
  freehold tenant destroy --name acme --confirm acme    for scripts
  freehold tenant destroy --name acme --installs 3      although three installs exist

Installs in customers' accounts stay as they are, but nothing operates them any more. The accounts of people in the stack's
user pool are removed too. KMS deletes the signing key after 7 days. Resources that could not be removed are listed, and the exit code is then 1.")]
pub(crate) struct Destroy {
    /// Name of the tenant; the same as `--tenant`.
    #[arg(long)]
    name: Option<TenantName>,
    /// The tenant's name, to confirm without being asked.
    #[arg(long, value_name = "NAME")]
    confirm: Option<String>,
    /// The number of installs that still exist; required while there are any.
    #[arg(long, value_name = "COUNT")]
    installs: Option<usize>,
}

impl TenantCommand {
    pub(crate) async fn run(self, context: &Context) -> Result<()> {
        match self {
            Self::Deploy(args) => args.run(context).await,
            Self::BuildRunner(args) => args.run(context).await,
            Self::RotateRoot(args) => args.run(context).await,
            Self::Source(command) => command.run(context).await,
            Self::Status(args) => args.run(context).await,
            Self::Destroy(args) => args.run(context).await,
        }
    }
}
