//! `freehold lineage`: shows and verifies what an artifact was made from and where it was deployed. The lineage comes
//! from the tenant API or from a bundle.

mod anchor;
mod text;
mod verify;

use std::path::{Path, PathBuf};

use clap::{Args, Subcommand};
use freehold_client::calls;
use freehold_protocol::envelope::PublicKey;
use freehold_protocol::lineage::{Lineage, ParseError, Used};
use freehold_protocol::{ComponentName, Digest, InstallId, JobId, KeyId};
use serde::Serialize;

use crate::api::Api;
use crate::context::Context;
use crate::error::{Error, Kind, Result};
use crate::output::{note, plural};
use verify::Verification;

/// Show the sources of an artifact, who built it, and where it was deployed.
#[derive(Debug, Args)]
#[command(
    args_conflicts_with_subcommands = true,
    after_help = "\
Examples:
  freehold lineage sha256:05b3abf2579a5eb66403cd78be557fd860633a1fe2103c7642030defe32c657f
  freehold lineage --install globex --component web --verify
  freehold lineage --install globex --component web --bundle web.lineage.json
  freehold lineage verify web.lineage.json --root-key 11qYAYKxCrfVS/7TyWQHOg7hcvPapiMlrwIaaPcHURo=

A bundle contains the signed messages themselves, so whoever has the bundle can check it without an account or a
network. The bundle also contains the signed orders with the values of all inputs that are not sensitive: limit a bundle
to one install with `--install` before you give it away. Such a bundle names no other install.

Exit code 1 when a link fails verification; the message names the link."
)]
pub(crate) struct LineageArgs {
    /// Digest of the artifact.
    #[arg(value_name = "DIGEST")]
    artifact: Option<Digest>,
    /// Show only the uses in this install.
    #[arg(long, value_name = "NAME")]
    install: Option<InstallId>,
    /// Show only the uses of this component of the install; without a digest, show its deployed artifact.
    #[arg(long, value_name = "NAME", requires = "install")]
    component: Option<ComponentName>,
    /// Check every link.
    #[arg(long)]
    verify: bool,
    /// The tenant's root key (base64) to verify with; by default, the key that the tenant API returns.
    #[arg(long, value_name = "KEY", requires = "verify")]
    root_key: Option<PublicKey>,
    /// Write a bundle to this file: everything that `lineage verify` needs.
    #[arg(long, value_name = "FILE")]
    bundle: Option<PathBuf>,
    /// Replace the file when it exists and has another text.
    #[arg(long, requires = "bundle")]
    force: bool,
    #[command(subcommand)]
    command: Option<LineageCommand>,
}

#[derive(Debug, Subcommand)]
enum LineageCommand {
    Verify(Verify),
}

/// Check every link of a bundle, without a network or an account.
#[derive(Debug, Args)]
#[command(after_help = "\
Examples:
  freehold lineage verify web.lineage.json
  freehold lineage verify web.lineage.json --root-key 11qYAYKxCrfVS/7TyWQHOg7hcvPapiMlrwIaaPcHURo= \\
      --runner 7300c0ae1429cd153252736a781b78f4
  aws s3 cp --recursive s3://fh-acme--globex--222222222222/audit/ audit
  freehold lineage verify web.lineage.json --root-key 11qYAYKxCrfVS/7TyWQHOg7hcvPapiMlrwIaaPcHURo= --audit audit

A customer finds the tenant's root key in the output `TenantKey` of their install stack, and the id of the runner's key
in the output of `freehold-runner doctor`, or in the bucket of the install, which has the keys of all runners beside
their audit records. Without `--root-key` the bundle is verified with the key that it contains: this proves that its
parts belong together, but not who made the bundle. Without `--runner` and `--audit`, the link `runner key` is
unanchored: whoever made the bundle may have made the runner's key and the report of a deploy too.")]
struct Verify {
    /// The bundle.
    file: PathBuf,
    /// The tenant's root key, base64.
    #[arg(long, value_name = "KEY")]
    root_key: Option<PublicKey>,
    /// The id of a runner's key; a deploy that a runner with any other key reported fails verification. Repeatable.
    #[arg(long = "runner", value_name = "KEY")]
    runners: Vec<KeyId>,
    /// A copy of `audit/` in the install's bucket; the runner keys in it are accepted like those of `--runner`.
    #[arg(long, value_name = "DIR")]
    audit: Option<PathBuf>,
}

/// A lineage as `--json` prints it.
#[derive(Debug, Serialize)]
struct Shown<'a> {
    lineage: &'a Lineage,
    #[serde(skip_serializing_if = "Option::is_none")]
    checked: Option<&'a Verification>,
}

impl LineageArgs {
    pub(crate) async fn run(self, context: &Context) -> Result<()> {
        match &self.command {
            Some(LineageCommand::Verify(args)) => args.run(context),
            None => self.show(context).await,
        }
    }

    async fn show(&self, context: &Context) -> Result<()> {
        if let (None, None) = (&self.artifact, &self.install) {
            return Err(Error::invalid("no artifact is given")
                .or("pass its digest, or `--install NAME --component NAME` for the artifact that is deployed there"));
        }
        if let (None, Some(install), None) = (&self.artifact, &self.install, &self.component) {
            return Err(Error::invalid(format!("no component of install `{install}` is given"))
                .or("pass `--component NAME`, or the digest of an artifact"));
        }
        let api = context.api().await?;
        let (artifact, job) = self.subject(&api).await?;
        let lineage = load(&api, &artifact, self.install.as_ref()).await?.only(|used| self.is_wanted(used));
        if let Some(path) = &self.bundle {
            write(path, &lineage, self.force)?;
            note(&format!("wrote {} ({})", path.display(), plural(lineage.uses.len(), "use")));
        }
        let checked = self.verify.then(|| {
            let mut checked = Verification::new(&lineage, self.root_key.as_ref());
            checked.require_runners(&lineage, &[]);
            checked.require_deploy(&lineage, self.install.as_ref(), job.as_ref());
            checked
        });
        let shown = Shown { lineage: &lineage, checked: checked.as_ref() };
        context.out.show(&shown, |_| text::render(&lineage, checked.as_ref(), context.out))?;
        checked.map_or(Ok(()), |checked| checked.verdict("the tenant API"))
    }

    /// Returns the digest of the artifact to show. If the arguments name an install and a component, also returns the
    /// job that deployed the artifact.
    async fn subject(&self, api: &Api) -> Result<(Digest, Option<JobId>)> {
        if let Some(artifact) = &self.artifact {
            return Ok((artifact.clone(), None));
        }
        let (Some(install), Some(component)) = (&self.install, &self.component) else {
            return Err(Error::internal("neither a digest nor an install and a component"));
        };
        let view = api.install(install).await?;
        let deployed = view.components.into_iter().find(|one| one.component == *component && !one.attempted);
        let deployed = deployed.ok_or_else(|| {
            Error::not_found(format!("component `{component}` is not deployed to install `{install}`"))
                .or(format!("`freehold install show {install}` lists what is deployed there"))
        })?;
        Ok((deployed.artifact, Some(deployed.job)))
    }

    fn is_wanted(&self, used: &Used) -> bool {
        self.install.as_ref().is_none_or(|install| used.proof.install == *install)
            && self.component.as_ref().is_none_or(|component| used.component == *component)
    }
}

/// The advice about a file that is not a bundle.
const WAY_OUT: &str = "pass the file that `freehold lineage --bundle FILE` wrote";

impl Verify {
    fn run(&self, context: &Context) -> Result<()> {
        let shown = self.file.display();
        let bytes = crate::file::read(&self.file, WAY_OUT)?;
        let lineage = Lineage::parse(&bytes).map_err(|error| match error {
            ParseError::Malformed(error) => Error::quoting(Kind::Invalid, format!("`{shown}` is not a lineage bundle: {error}")).or(WAY_OUT),
            ParseError::Format(_) => Error::invalid(format!(
                "cannot read the lineage bundle `{shown}`: {error}; use the `freehold` command of the release that wrote it"
            )),
        })?;
        let mut checked = Verification::new(&lineage, self.root_key.as_ref());
        let mut runners: Vec<String> = self.runners.iter().map(ToString::to_string).collect();
        runners.extend(self.audit.as_deref().map(anchor::keys).transpose()?.unwrap_or_default());
        checked.require_runners(&lineage, &runners);
        let all = Shown { lineage: &lineage, checked: Some(&checked) };
        context.out.show(&all, |_| text::render(&lineage, Some(&checked), context.out))?;
        checked.verdict("the bundle itself")
    }
}

/// Returns the lineage with the uses of all pages: in all installs, or in one install.
async fn load(api: &Api, artifact: &Digest, install: Option<&InstallId>) -> Result<Lineage> {
    let call = calls::show_lineage(artifact);
    let call = match install {
        Some(install) => call.in_install(install),
        None => call,
    };
    Ok(api.all(call).await?.lineage)
}

fn write(path: &Path, lineage: &Lineage, force: bool) -> Result<()> {
    let text = serde_json::to_string_pretty(lineage).map_err(|e| Error::internal(format!("cannot write JSON: {e}")))?;
    crate::file::create(path, &format!("{text}\n"), force)
}
