//! `freehold customer verify-template`: compares a template with the template that Freehold renders, and checks security
//! rules. Each finding names its line.

use std::path::PathBuf;

use clap::Args;
use freehold_protocol::Digest;
use freehold_protocol::contract::SignedContract;
use freehold_protocol::envelope::PublicKey;
use freehold_stackcheck::{Added, Agreed, Checked, Finding, Names, Overview, RULES, RoleOverview, Rule, verify};
use serde::Serialize;

use super::runner_checksum::runner_of_release;
use crate::context::Context;
use crate::contract;
use crate::error::{Error, Kind, Result};
use crate::inputs::{Input, by_name};
use crate::install::{OwnParts, TEMPLATE_WAY_OUT};
use crate::output::{Output, Table, clean, plural};

/// The part of a template that is compared only with the option `--contract`.
const POLICIES_OF_ROLES: &str = "the permissions of the roles (pass `--contract FILE`)";

/// The way out when a template is not the expected template.
const DO_NOT_LAUNCH: &str = "do not launch the template, and ask the vendor for it again";

/// Check, without an account or a network, that an install stack's template is the one that Freehold renders and
/// follows the security rules.
#[derive(Debug, Args)]
#[command(after_help = "\
Examples:
  freehold customer verify-template globex.yaml
  freehold customer verify-template globex.yaml --sha256 4b5e57f6eb2f42b9039b3d1e13929295f231749c510cbe341cd68036d9af97e2
  freehold customer verify-template globex.yaml --contract my-app.contract.json
  freehold customer verify-template globex.yaml --allow Alarm=AWS::SNS::Topic
  freehold customer verify-template globex.yaml --release SHA256SUMS --release-key release-key.pub

Each part of the template that this version of Freehold does not render is a finding, with its line and the reason. Exit
code 1 when there is a finding. With `--contract`, each role must have exactly the policies of the contract; without
`--contract`, the output states that the policies were not compared. The output lists the vendor, the account, the
queues, the contract and the runner that the template names: compare them with the values that the vendor gave you.")]
pub(crate) struct VerifyTemplate {
    /// The template.
    file: PathBuf,
    /// The SHA-256 of the file, as the vendor published it.
    #[arg(long, value_name = "HEX", value_parser = crate::install::sha256)]
    sha256: Option<Digest>,
    #[command(flatten)]
    own: OwnParts,
    /// The file with the contract, which the vendor wrote with `freehold contract show -o FILE`. The roles must have
    /// exactly the policies of this contract.
    #[arg(long, value_name = "FILE")]
    contract: Option<PathBuf>,
    /// The vendor's value of an input that policies use, if the value is not the default of the contract: `name=text`,
    /// `name:=JSON` or `name=@FILE`. Repeatable.
    #[arg(long = "input", value_name = "NAME=VALUE", requires = "contract")]
    inputs: Vec<Input>,
    /// The file of checksums of a Freehold release, with its signature file beside it. The runner must be a program of
    /// that release.
    #[arg(long, value_name = "SHA256SUMS", requires = "release_key")]
    release: Option<PathBuf>,
    /// The public key of whoever signs the releases, in PEM form, such as `release-key.pub`.
    #[arg(long, value_name = "FILE", requires = "release")]
    release_key: Option<PathBuf>,
    /// The install is a trial in a local cloud, so its queues may be on the machine of the runner.
    #[arg(long)]
    local: bool,
}

#[derive(Debug, Serialize)]
struct Verified<'a> {
    file: String,
    sha256: &'a str,
    rules: usize,
    findings: &'a [Finding],
    /// The number of findings beyond those in `findings`.
    left_out: usize,
    /// The resources and outputs that the customer added. They are not checked.
    added: &'a [Added],
    /// The names in the template that the customer should compare, such as the vendor's account, if they can be read.
    names: Option<&'a Names>,
    /// The permissions of the template's roles and its questions to the customer, if its names can be read.
    overview: Option<&'a Overview>,
    /// The parts of the template that nothing was compared with, each with the way to compare it.
    not_compared: &'a [&'a str],
    /// Whether the policies of the roles were compared with the contract, and agree with it.
    policies_compared: bool,
    /// Whether the metadata of the template state that it is the template of an install stack.
    is_install_stack: bool,
    /// The path of the template's runner in the release that the customer named.
    #[serde(skip_serializing_if = "Option::is_none")]
    runner_of_release: Option<String>,
}

impl VerifyTemplate {
    pub(crate) fn run(&self, context: &Context) -> Result<()> {
        let shown = self.file.display().to_string();
        let bytes = crate::file::read(&self.file, TEMPLATE_WAY_OUT)?;
        let digest = Digest::of(&bytes);
        if let Some(expected) = self.sha256.as_ref().filter(|expected| **expected != digest) {
            return Err(Error::failed(format!(
                "`{shown}` has the SHA-256 {}, not {}: it is not the template that was published",
                digest.hex(),
                expected.hex()
            ))
            .or(DO_NOT_LAUNCH));
        }
        let text = String::from_utf8(bytes)
            .map_err(|_| Error::invalid(format!("`{shown}` is not text")).or(TEMPLATE_WAY_OUT))?;
        let Checked { mut findings, left_out, added, names, overview, is_install_stack } =
            self.checked(&text, &shown)?;
        findings.extend(names.as_ref().filter(|_| !self.local).and_then(|names| local_queue(&text, names)));
        let runner_of_release = self.runner_of_release(&shown, names.as_ref())?;
        let verified = Verified {
            file: shown.clone(),
            sha256: digest.hex(),
            rules: RULES.len(),
            findings: &findings,
            left_out,
            added: &added,
            names: names.as_ref(),
            overview: overview.as_ref(),
            not_compared: if self.contract.is_some() { &[] } else { &[POLICIES_OF_ROLES] },
            policies_compared: self.contract.is_some() && names.is_some() && findings.is_empty(),
            is_install_stack,
            runner_of_release,
        };
        context.out.show(&verified, |verified| render(verified, context.out))?;
        if !is_install_stack {
            return Err(Error::failed(format!(
                "`{shown}` is not the template of an install stack: it has no `Metadata.Freehold`, which each such \
                 template has"
            ))
            .or(TEMPLATE_WAY_OUT));
        }
        match findings.as_slice() {
            [] => Ok(()),
            [first, rest @ ..] => {
                let more = rest.len() + left_out;
                let more = if more == 0 { String::new() } else { format!(" ({more} more)") };
                let (rule, problem) = (first.rule.as_str(), first.problem());
                let wrong = format!("{shown}:{}: {rule}: {problem}{more}", first.line);
                // The problem contains values of the template. A semicolon in such a value must not begin a way out.
                Err(Error::quoting(Kind::Failed, wrong).or(first.way_out.as_deref().unwrap_or(DO_NOT_LAUNCH)))
            }
        }
    }

    /// Checks the template, and the policies of its roles if the customer has given the contract.
    fn checked(&self, template: &str, file: &str) -> Result<Checked> {
        let own = self.own.all();
        let check = |agreed: Option<&Agreed<'_>>| {
            verify(template, &own, agreed).map_err(|wrong| {
                Error::quoting(Kind::Invalid, format!("`{file}` is not a template: {wrong}")).or(TEMPLATE_WAY_OUT)
            })
        };
        let checked = check(None)?;
        let (Some(path), Some(names)) = (&self.contract, &checked.names) else { return Ok(checked) };
        let key: PublicKey = names.tenant_key.parse().map_err(|error| {
            Error::quoting(Kind::Failed, format!("`{file}` names a public key that cannot be read: {error}"))
                .or(DO_NOT_LAUNCH)
        })?;
        let SignedContract { tenant, contract, .. } = contract::signed(path, &key)?;
        if tenant != names.tenant {
            return Err(Error::failed(format!(
                "`{}` is a contract of vendor `{tenant}`, and the template `{file}` belongs to vendor `{}`",
                path.display(),
                names.tenant
            ))
            .or("pass a template and a contract of the same vendor"));
        }
        if contract.terms.app != names.app {
            return Err(Error::failed(format!(
                "`{}` is a contract of app `{}`, and the template `{file}` belongs to app `{}`",
                path.display(),
                contract.terms.app,
                names.app
            ))
            .or("pass a template and a contract of the same app"));
        }
        check(Some(&Agreed { terms: &contract.terms, answers: &by_name(&self.inputs)? }))
    }

    /// Finds the template's runner in the release, if the customer named a release.
    fn runner_of_release(&self, file: &str, names: Option<&Names>) -> Result<Option<String>> {
        let (Some(sums), Some(key)) = (&self.release, &self.release_key) else { return Ok(None) };
        let sha256 =
            names.map(|names| names.runner_sha256.as_str()).filter(|sha256| !sha256.is_empty()).ok_or_else(|| {
                Error::failed(format!(
                    "`{file}` contains no SHA-256 of a runner, so the runner cannot be looked up in `{}`",
                    sums.display()
                ))
                .or("leave `--release` out, and check the runner that you start yourself with `sha256sum`")
            })?;
        runner_of_release(sums, key, sha256).map(Some)
    }
}

/// Returns the finding about a queue on the machine of the runner. Nobody can send orders to the runner of such a template
/// but programs of that machine.
fn local_queue(template: &str, names: &Names) -> Option<Finding> {
    let queues = [&names.orders_queue_url, &names.reports_queue_url];
    let url = queues.into_iter().find(|url| url.starts_with("http://"))?;
    let before = template.lines().position(|line| line.contains(url.as_str())).unwrap_or_default();
    let way_out = "pass `--local` if the install is a trial in a local cloud";
    Some(Finding {
        line: before + 1,
        of: String::new(),
        rule: Rule::AsRendered,
        reason: format!(
            "queue `{url}` is on the machine of the runner, and a real install has queues in AWS; {way_out}"
        ),
        way_out: Some(way_out.to_owned()),
    })
}

fn render(verified: &Verified<'_>, out: Output) -> String {
    if !verified.is_install_stack {
        let findings = plural(verified.findings.len() + verified.left_out, "finding");
        return format!("Not shown: {findings}; `--json` prints them\n\nSHA-256: {}", verified.sha256);
    }
    let sections = [
        Some(judgement(verified, out)),
        verified.names.map(named),
        verified.overview.map(given),
        verified.overview.and_then(machine),
        verified.overview.map(asked),
        verified.overview.filter(|overview| !overview.warnings.is_empty()).map(warned),
        verified.names.filter(|_| verified.policies_compared).map(|names| {
            format!("Compared: each role has the policies of the contract {}, and no other", names.contract)
        }),
        (!verified.not_compared.is_empty()).then(|| format!("Not compared: {}", verified.not_compared.join("; "))),
        verified.runner_of_release.as_ref().map(|path| format!("The runner is `{path}` of the release.")),
        (!verified.added.is_empty()).then(|| added(verified.added)),
        Some(format!("SHA-256: {}", verified.sha256)),
    ];
    sections.into_iter().flatten().collect::<Vec<_>>().join("\n\n")
}

fn judgement(verified: &Verified<'_>, out: Output) -> String {
    if verified.findings.is_empty() {
        let rules: Vec<String> = RULES.iter().map(|(rule, asks)| format!("- {}: {asks}", rule.as_str())).collect();
        return format!("{} follows all {} rules:\n{}", verified.file, verified.rules, rules.join("\n"));
    }
    let mut table = Table::new(&["LINE", "OF", "RULE", "REASON"]);
    for finding in verified.findings {
        let of = if finding.of.is_empty() { "template" } else { &finding.of };
        table.row([finding.line.to_string(), of.to_owned(), finding.rule.as_str().to_owned(), finding.reason.clone()]);
    }
    match verified.left_out {
        0 => out.table(&table),
        more => format!("{}\n\n{} more not shown", out.table(&table), plural(more, "finding")),
    }
}

/// Returns the text about the names in the template that only the customer can compare with the vendor's information.
fn named(names: &Names) -> String {
    let runner = if names.runner_url.is_empty() {
        "none; set `RunnerPrincipal`, or `RunnerUrl` and `RunnerSha256`".to_owned()
    } else {
        format!("{} with the SHA-256 {}", names.runner_url, names.runner_sha256)
    };
    let Names { tenant, tenant_account, tenant_key, install, account, region, app, version, contract, .. } = names;
    let lines = [
        "The template names these; compare them with the values that the vendor gave you:".to_owned(),
        format!("- vendor: {tenant}, account {tenant_account}, public key {tenant_key}"),
        format!("- install: {install} in account {account}, {region}"),
        format!("- app: {app}, version {version}, contract {contract}"),
        format!("- queues: {} and {}", names.orders_queue_url, names.reports_queue_url),
        format!("- runner: {runner}"),
    ];
    lines.join("\n")
}

/// Returns the text about the roles.
fn given(overview: &Overview) -> String {
    let role = |role: &RoleOverview| {
        let switch = if role.on { "on" } else { "off" };
        let names = role.managed.iter().map(|arn| arn.rsplit_once(":policy/").map_or(arn.as_str(), |(_, name)| name));
        let managed: Vec<String> = names.map(|name| format!("managed policy {name}")).collect();
        let statements = (role.statements > 0).then(|| format!("{} of its own", plural(role.statements, "statement")));
        let may: Vec<String> = managed.into_iter().chain(statements).collect();
        let may = if may.is_empty() { "no permissions of its own".to_owned() } else { may.join(", ") };
        format!("- {}: {may}; `{}` is {switch}", clean(&role.role), role.switch)
    };
    let lines = std::iter::once("The roles have these permissions:".to_owned());
    lines.chain(overview.roles.iter().map(role)).collect::<Vec<_>>().join("\n")
}

/// Returns the text about the runner's machine, whose price the customer pays.
fn machine(overview: &Overview) -> Option<String> {
    let machine = &overview.machine_type;
    (!machine.is_empty())
        .then(|| format!("The runner's machine is of type {machine}, unless you choose another `InstanceType`"))
}

/// Returns the text about the questions of the app.
fn asked(overview: &Overview) -> String {
    let list = |all: &mut dyn Iterator<Item = &String>| {
        let all: Vec<&str> = all.map(String::as_str).collect();
        if all.is_empty() { "none".to_owned() } else { all.join(", ") }
    };
    let lines = [
        "The values of these parameters:".to_owned(),
        format!("- are sent to the vendor: {}", list(&mut overview.sent_inputs.iter())),
        format!("- stay in the account as secrets: {}", list(&mut overview.secret_inputs.iter())),
        format!("- are part of the policies of roles: {}", list(&mut overview.policy_inputs.iter())),
    ];
    lines.join("\n")
}

fn warned(overview: &Overview) -> String {
    let lines = overview.warnings.iter().map(|warning| format!("Warning: {}", clean(warning)));
    lines.collect::<Vec<_>>().join("\n")
}

fn added(added: &[Added]) -> String {
    let lines = added.iter().map(|one| format!("- line {}: {}, {}", one.line, one.name, one.kind));
    format!("Added by you and not checked:\n{}", lines.collect::<Vec<_>>().join("\n"))
}
