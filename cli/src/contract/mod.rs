//! `freehold contract`: show, compare, verify and narrow what a version may do in a customer's account.

mod envelope_file;
mod propose;
mod text;

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::time::Duration;

use clap::{Args, Subcommand};
use freehold_client::calls;
use freehold_permissions::{TermsDiff, compare_terms};
use freehold_protocol::api::{ContractView, InstallView, TenantView};
use freehold_protocol::contract::{SignedContract, Terms};
use freehold_protocol::envelope::PublicKey;
use freehold_protocol::{ActionName, AppName, Digest, Envelope, InstallId, KeyId, ReleaseName, TenantName, Timestamp};
use serde::Serialize;

use crate::api::{Api, app_of, poll_until};
use crate::app::VersionName;
use crate::context::Context;
use crate::error::{Error, Kind, Result};
use crate::output::{Output, note};

/// The maximum number of requests for a contract with its signature. A contract is signed about a second after its
/// build has ended.
const POLLS: u32 = 7;
/// The pause between two of these requests.
const POLL_INTERVAL: Duration = Duration::from_millis(500);

#[derive(Debug, Subcommand)]
pub(crate) enum ContractCommand {
    Show(Show),
    Diff(Diff),
    Verify(Verify),
    Propose(propose::Propose),
}

/// Show what a version of an app may do in a customer's account.
#[derive(Debug, Args)]
#[command(after_help = "\
Examples:
  freehold contract show my-app
  freehold contract show my-app --release 2026.11 -o my-app.contract.json

A contract has two parts. Its terms are what a customer agrees to: each role with its policies, the hosts that are contacted,
the actions with their steps and what they read, the vendor's own policies. The rest changes with every release and needs no
consent: the artifact of each component.

The install stack's parameter `AcceptedContract` holds the digest of the terms that the customer agreed to. The runner
refuses a release whose terms allow more; terms that allow less need no new consent.")]
pub(crate) struct Show {
    /// Name of the app.
    app: AppName,
    /// The version: its number, its digest or the beginning of its digest; the latest version when absent.
    #[arg(long, value_name = "VERSION", conflicts_with = "release")]
    version: Option<VersionName>,
    /// Show the contract of the version that this release contains.
    #[arg(long, value_name = "NAME")]
    release: Option<ReleaseName>,
    /// Write the contract with the tenant's signature to this file, for `freehold contract verify`.
    #[arg(short, long, value_name = "FILE")]
    output: Option<PathBuf>,
    /// Replace the file when it exists and has another text.
    #[arg(long, requires = "output")]
    force: bool,
}

/// Compare what two versions may do, or a version with what a customer agreed to.
#[derive(Debug, Args)]
#[command(after_help = "\
Examples:
  freehold contract diff globex            the latest version against what the customer of globex agreed to
  freehold contract diff my-app 3 4        version 4 against version 3

`+` marks a permission that only the second version has, `-` a permission that only the first version has. A difference
that cannot be compared counts as `+`, and so does an action that executes other steps. `~` marks an action that differs
only outside of the terms, such as in the commit of the repository in which its steps run; this needs no consent. For an
install, these parts are compared with the version that is deployed there.

If the deployed version is not the latest version, its terms are compared too: after a roll back, the deployed version
may do more than the customer agreed to, and its actions are refused.

Exit code 1 when there is a `+`: the customer has to agree again, with `freehold install launch --accept-contract` and
the template that `freehold install stack` writes.")]
pub(crate) struct Diff {
    /// An install, or an app when two versions follow.
    #[arg(value_name = "INSTALL|APP")]
    subject: String,
    /// The version to start from: its number, its digest or the beginning of its digest.
    #[arg(value_name = "FROM", requires = "to")]
    from: Option<VersionName>,
    /// The version to compare with: its number, its digest or the beginning of its digest.
    #[arg(value_name = "TO")]
    to: Option<VersionName>,
}

/// Check the tenant's signature of a contract, without a network or an account.
#[derive(Debug, Args)]
#[command(after_help = "\
Example:
  freehold contract verify my-app.contract.json --root-key 11qYAYKxCrfVS/7TyWQHOg7hcvPapiMlrwIaaPcHURo=

A customer finds the tenant's root key in the output `TenantKey` of their install stack, and the accepted terms in the
output `AcceptedContract`. Exit code 1 when the signature is not valid.")]
pub(crate) struct Verify {
    /// The file that `freehold contract show -o FILE` wrote.
    file: PathBuf,
    /// The tenant's root key, base64.
    #[arg(long, value_name = "KEY")]
    root_key: PublicKey,
}

/// A signature that was verified.
#[derive(Debug, Serialize)]
struct Signature {
    tenant: TenantName,
    root_key: KeyId,
    signed_at: Timestamp,
}

/// A contract as `--json` prints it.
#[derive(Debug, Serialize)]
struct Shown {
    #[serde(flatten)]
    view: ContractView,
    #[serde(skip_serializing_if = "Option::is_none")]
    verified: Option<Signature>,
}

/// A verified file as `--json` prints it.
#[derive(Debug, Serialize)]
struct Verified {
    terms: Digest,
    verified: Signature,
    #[serde(flatten)]
    signed: SignedContract,
}

/// A comparison as `--json` prints it.
#[derive(Debug, Serialize)]
struct Compared {
    app: AppName,
    from: Side,
    to: Side,
    /// Whether the terms became wider, so that the customer has to agree again.
    wider: bool,
    /// The actions whose steps are equal in the terms of both sides, and differ outside of the terms. This needs no
    /// consent.
    steps: Vec<ActionName>,
    #[serde(flatten)]
    diff: TermsDiff,
    /// The version that is deployed at the install, if it is not the latest one and may do more than the customer agreed to.
    #[serde(skip_serializing_if = "Option::is_none")]
    deployed: Option<Deployed>,
}

/// The version that is deployed at an install, compared with the terms that its customer agreed to.
#[derive(Debug, Serialize)]
struct Deployed {
    version: Digest,
    number: u64,
    #[serde(flatten)]
    diff: TermsDiff,
}

/// Two sides to compare, and the version that is deployed at the install.
struct Sides {
    app: AppName,
    from: Side,
    to: Side,
    deployed: Option<Deployed>,
}

/// One side of a comparison.
#[derive(Debug, Serialize)]
struct Side {
    /// The name that is printed, such as `version 3`.
    #[serde(skip)]
    name: String,
    terms: Digest,
    #[serde(skip_serializing_if = "Option::is_none")]
    version: Option<Digest>,
    #[serde(skip)]
    document: Terms,
    #[serde(skip)]
    steps: BTreeMap<ActionName, Digest>,
}

impl ContractCommand {
    pub(crate) async fn run(self, context: &Context) -> Result<()> {
        match self {
            Self::Show(args) => args.run(context).await,
            Self::Diff(args) => args.run(context).await,
            Self::Verify(args) => args.run(context),
            Self::Propose(args) => args.run(context),
        }
    }
}

/// Returns the client of the tenant's API. A customer cannot use the API, so the error names another way to the
/// contract.
async fn vendors_api(context: &Context) -> Result<Api> {
    context.api().await.map_err(|error| match error.kind() {
        Kind::Invalid | Kind::NotFound | Kind::Denied => {
            let vendors = error.way_out().unwrap_or("use the vendor's credentials").to_owned();
            error.or(format!(
                "{vendors}. This command is for the vendor; a customer asks the vendor for the file that `freehold \
                 contract show APP -o FILE` writes, and checks that file with `freehold contract verify FILE \
                 --root-key KEY`"
            ))
        }
        Kind::Failed | Kind::Conflict | Kind::Transient | Kind::Internal | Kind::Interrupted => error,
    })
}

impl Show {
    async fn run(&self, context: &Context) -> Result<()> {
        let api = vendors_api(context).await?;
        let version = match (&self.release, &self.version) {
            (Some(release), _) => api.send(calls::show_release(&self.app, release)).await?.contents.version,
            (None, Some(name)) => name.resolve(&api, &self.app).await?,
            (None, None) => latest(&api, &self.app).await?,
        };
        let load = async || load(&api, &self.app, &version).await;
        let is_done = |view: &ContractView| view.signed.is_some() || self.output.is_none();
        let view = poll_until((POLLS, POLL_INTERVAL), load, is_done).await?;
        let verified = match &view.signed {
            Some(envelope) => Some(signature(&api, &view, envelope).await?),
            None => None,
        };
        if let Some(path) = &self.output {
            let envelope = view.signed.as_ref().ok_or_else(|| {
                Error::conflict(format!(
                    "the contract is not signed yet; run `freehold build {}`, or deploy the version",
                    self.app
                ))
            })?;
            let signed = envelope.to_json().map_err(|e| Error::internal(e.to_string()))?;
            crate::file::create(path, &signed, self.force)?;
            note(&format!("wrote {}", path.display()));
        }
        let shown = Shown { view, verified };
        context.out.show(&shown, |shown| {
            let signed = shown.verified.as_ref().map_or_else(
                || format!("not yet; the tenant signs it at the next `freehold build {}` or deploy", self.app),
                Signature::describe,
            );
            let head = format!("app {}, version {}", self.app, shown.view.number);
            text::contract(
                &head,
                &shown.view.contract,
                &shown.view.terms,
                Some(&shown.view.hosts),
                &signed,
                context.out,
            )
        })
    }
}

impl Signature {
    fn of(signed: &SignedContract, root: &PublicKey) -> Self {
        Self { tenant: signed.tenant.clone(), root_key: root.key_id(), signed_at: signed.signed_at }
    }

    fn describe(&self) -> String {
        format!("by {} with root key {} at {}", self.tenant, self.root_key, crate::output::time(self.signed_at))
    }
}

/// Verifies, with the tenant's key, that the signature is for the contract that the API returned.
async fn signature(api: &Api, view: &ContractView, envelope: &Envelope) -> Result<Signature> {
    let tenant: TenantView = api.send(calls::show_tenant()).await?;
    let signed = open(envelope, &tenant.tenant_key)?;
    if signed.tenant != tenant.tenant || signed.contract != view.contract {
        return Err(Error::failed(
            "the signature is for another contract than the contract that is shown; do not use \
                                  this contract",
        ));
    }
    Ok(Signature::of(&signed, &tenant.tenant_key))
}

/// Reads the file that `freehold contract show -o FILE` wrote, and checks its signature.
pub(crate) fn signed(path: &Path, root: &PublicKey) -> Result<SignedContract> {
    open(&envelope_file::read(path)?, root)
}

/// Returns the difference between the terms that a customer agreed to and new terms, as text.
pub(crate) fn difference(diff: &TermsDiff, is_same: bool, out: Output) -> String {
    text::diff("the contract that you agreed to -> the new one", diff, &[], is_same, out)
}

fn open(envelope: &Envelope, root: &PublicKey) -> Result<SignedContract> {
    SignedContract::open(envelope, root).map_err(|error| {
        Error::quoting(Kind::Failed, format!("the signature of the contract is not valid: {error}"))
            .or("do not use this contract; ask the vendor for it again, and for the tenant's public key")
    })
}

impl Verify {
    fn run(&self, context: &Context) -> Result<()> {
        let signed = signed(&self.file, &self.root_key)?;
        let terms = digest(&signed.contract.terms)?;
        let verified = Signature::of(&signed, &self.root_key);
        context.out.show(&Verified { terms, verified, signed }, |all| {
            let contract = &all.signed.contract;
            let head = format!("app {}, version {}", contract.app, contract.version);
            let text = text::contract(&head, contract, &all.terms, None, &all.verified.describe(), context.out);
            format!("{text}\n\nthe signature is valid under the root key that you passed")
        })
    }
}

impl Diff {
    async fn run(&self, context: &Context) -> Result<()> {
        let api = vendors_api(context).await?;
        let Sides { app, from, to, deployed } = match (&self.from, &self.to) {
            (Some(from), Some(to)) => {
                let app: AppName = self.subject.parse().map_err(|e| Error::invalid(format!("{e}")))?;
                let from = of_version(&api, &app, &from.resolve(&api, &app).await?).await?;
                let to = of_version(&api, &app, &to.resolve(&api, &app).await?).await?;
                Sides { app, from, to, deployed: None }
            }
            (None, _) | (_, None) => of_install(&api, &self.subject).await?,
        };
        let diff = compare_terms(&from.document, &to.document);
        let mut steps = other_steps(&from.steps, &to.steps);
        steps.retain(|name| !differ_in_terms(name, &from.document, &to.document));
        let compared = Compared { app, from, to, wider: !diff.widened.is_empty(), steps, diff, deployed };
        context.out.show(&compared, |all| {
            let head = format!("app {}: {} -> {}", all.app, all.from.name, all.to.name);
            let text = text::diff(&head, &all.diff, &all.steps, all.from.terms == all.to.terms, context.out);
            let Some(deployed) = &all.deployed else { return text };
            let head = format!("app {}: {} -> version {}, which is deployed", all.app, all.from.name, deployed.number);
            format!("{text}\n\n{}", text::additions(&head, &deployed.diff, context.out))
        })?;
        match &compared.deployed {
            _ if compared.wider => {
                let install = if self.to.is_some() { "INSTALL" } else { self.subject.as_str() };
                Err(Error::failed("the customer has to agree to the additions")
                    .or(format!("send the customer the template that `freehold install stack {install}` writes")))
            }
            None => Ok(()),
            Some(deployed) => Err(Error::failed(format!(
                "version {}, which is deployed, may do more than the customer agreed to, so its actions are refused",
                deployed.number
            ))
            .or(format!(
                "deploy {}, which needs no new consent: `freehold deploy {}`",
                compared.to.name, self.subject
            ))),
        }
    }
}

/// Returns the actions that both sides have with different steps.
fn other_steps(from: &BTreeMap<ActionName, Digest>, to: &BTreeMap<ActionName, Digest>) -> Vec<ActionName> {
    let differs = |(name, steps): &(&ActionName, &Digest)| from.get(*name).is_some_and(|before| before != *steps);
    to.iter().filter(differs).map(|(name, _)| name.clone()).collect()
}

/// Returns whether the steps of the action differ between the two terms.
fn differ_in_terms(action: &ActionName, from: &Terms, to: &Terms) -> bool {
    let steps = |terms: &Terms| terms.actions.iter().find(|one| one.name == *action)?.steps.clone();
    steps(from) != steps(to)
}

/// Returns the steps of the actions whose steps in the deployed terms are the agreed steps. For any other action, the
/// deployed version does not show the files that the customer agreed to.
fn as_agreed(
    mut steps: BTreeMap<ActionName, Digest>,
    deployed: &Terms,
    agreed: &Terms,
) -> BTreeMap<ActionName, Digest> {
    steps.retain(|name, _| !differ_in_terms(name, deployed, agreed));
    steps
}

/// Returns the two sides to compare: the terms that the customer accepted, and the terms of the latest version. Terms
/// do not contain the files in which steps of actions run, so the first side has the files of the deployed version.
async fn of_install(api: &Api, name: &str) -> Result<Sides> {
    let install: InstallId = name.parse().map_err(|e| Error::invalid(format!("{e}")))?;
    let view: InstallView = api.send(calls::show_install(&install)).await?;
    let app = app_of(&view)?;
    let accepted = view.accepted_contract.ok_or_else(|| {
        Error::conflict(format!(
            "install `{name}` has not reported which contract it accepted: its runner has not announced itself yet, or its \
             stack is older than contracts; launch the template that `freehold install stack {name}` writes"
        ))
    })?;
    let document: Terms = api.send(calls::show_terms(&app, &accepted)).await?;
    let there = match &view.version {
        Some(version) => Some(load(api, &app, version).await?),
        None => None,
    };
    let to = of_version(api, &app, &latest(api, &app).await?).await?;
    let deployed = there.as_ref().filter(|there| to.version.as_ref() != Some(&there.contract.version)).map(|there| {
        let diff = compare_terms(&document, &there.contract.terms);
        Deployed { version: there.contract.version.clone(), number: there.number, diff }
    });
    let deployed = deployed.filter(|deployed| !deployed.diff.widened.is_empty());
    let steps =
        there.map(|there| as_agreed(there.contract.steps, &there.contract.terms, &document)).unwrap_or_default();
    let from = Side { name: format!("what {name} agreed to"), terms: accepted, version: None, document, steps };
    Ok(Sides { app, from, to, deployed })
}

async fn of_version(api: &Api, app: &AppName, version: &Digest) -> Result<Side> {
    let ContractView { number, terms, contract, .. } = load(api, app, version).await?;
    let (version, document, steps) = (Some(contract.version), contract.terms, contract.steps);
    Ok(Side { name: format!("version {number}"), terms, version, document, steps })
}

async fn latest(api: &Api, app: &AppName) -> Result<Digest> {
    Ok(api.send(calls::show_app(app)).await?.latest)
}

async fn load(api: &Api, app: &AppName, version: &Digest) -> Result<ContractView> {
    let view: ContractView = api.send(calls::show_contract(app, version)).await?;
    let found = digest(&view.contract.terms)?;
    if found != view.terms {
        return Err(Error::internal(format!(
            "the tenant API sent terms with the digest {found}, but states the digest {}; do not use these terms",
            view.terms
        )));
    }
    Ok(view)
}

fn digest(terms: &Terms) -> Result<Digest> {
    terms.digest().map_err(|error| Error::internal(error.to_string()))
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn a_deployed_version_says_nothing_about_an_action_whose_steps_nobody_agreed_to() {
        let digest = |letter: &str| format!("sha256:{}", letter.repeat(64));
        let terms = |steps: &str| -> Terms {
            let action = json!({ "name": "check", "role": "maintenance", "steps": digest(steps) });
            let terms = json!({ "format": 1, "app": "shop", "roles": [], "hosts": [], "actions": [action], "policy_inputs": {} });
            serde_json::from_value(terms).unwrap()
        };
        let of_contract = BTreeMap::from([("check".parse().unwrap(), digest("d").parse().unwrap())]);

        assert_eq!(as_agreed(of_contract.clone(), &terms("b"), &terms("a")), BTreeMap::new());
        assert_eq!(as_agreed(of_contract.clone(), &terms("a"), &terms("a")), of_contract);
    }
}
