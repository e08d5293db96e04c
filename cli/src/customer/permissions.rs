//! `freehold customer permissions`: what the vendor may do, according to the launched stack and the accepted contract.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};

use clap::Args;
use freehold_protocol::contract::Terms;
use freehold_protocol::envelope::PublicKey;
use freehold_protocol::{Digest, InstallId};
use freehold_stackcheck::{Agreed, Checked, Finding, Names, Overview, verify};
use serde::Serialize;

use super::answer::Answer;
use super::own_install::OwnInstall;
use super::question::Question;
use crate::cloudformation::{ACCEPTED_CONTRACT, Stacks};
use crate::context::Context;
use crate::contract;
use crate::error::{Error, Kind, Result};
use crate::inputs::{Input, by_name};
use crate::output::{Part, Table, clean, plural};

/// For customers: show what the vendor may do in your account now.
#[derive(Debug, Args)]
#[command(after_help = Question::MayDo.help("\
Examples:
  freehold customer permissions globex --tenant acme --contract my-app.contract.json
  freehold customer permissions --template globex.yaml --contract my-app.contract.json

Reads the template and the parameters of the launched stack. With `--template`, reads a file, and needs no account. Exit
code 1 when the template is not one that this version of Freehold renders, or its roles have other policies than the
contract."))]
pub(crate) struct Permissions {
    /// Name of the install, whose stack is read with your own AWS credentials; `--tenant` names the vendor's tenant.
    #[arg(conflicts_with = "template")]
    install: Option<InstallId>,
    /// A template to read instead of the launched stack.
    #[arg(long, value_name = "FILE")]
    template: Option<PathBuf>,
    /// The contract that you agreed to, which the vendor wrote with `freehold contract show -o FILE`.
    #[arg(long, value_name = "FILE")]
    contract: Option<PathBuf>,
    /// The vendor's value of an input that policies use, if the value is not the default of the contract. Repeatable.
    #[arg(long = "input", value_name = "NAME=VALUE", requires = "contract")]
    inputs: Vec<Input>,
}

/// A template with the parameters of its stack, if it is launched.
#[derive(Debug)]
pub(super) struct Launched {
    /// The text by which messages name the template.
    pub(super) name: String,
    pub(super) template: String,
    pub(super) parameters: BTreeMap<String, String>,
}

/// One role of the vendor's app.
#[derive(Debug, Serialize)]
struct Role {
    role: String,
    switch: String,
    /// Whether the role can be assumed now. For a template that is not launched: whether the role could be assumed
    /// after a launch with the defaults.
    open: bool,
    /// The ARNs of the managed policies of AWS.
    managed: Vec<String>,
    /// The number of statements in the role's own policies.
    statements: usize,
    /// The permissions of the role, by the contract that was passed.
    permissions: Vec<String>,
}

/// What the vendor may do, as `--json` prints it.
#[derive(Debug, Serialize)]
struct Allowed {
    question: &'static str,
    /// Whether the template is the one that Freehold renders, and its roles have the policies of the contract.
    proven: bool,
    findings: Vec<Finding>,
    doubts: Vec<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    names: Option<Names>,
    #[serde(skip_serializing_if = "Option::is_none")]
    accepted_contract: Option<String>,
    roles: Vec<Role>,
    rests_on: &'static str,
}

impl Launched {
    /// Reads the template of the stack of `install`, or the file `template`.
    pub(super) async fn read(
        context: &Context,
        install: Option<&InstallId>,
        template: Option<&PathBuf>,
    ) -> Result<Self> {
        if let Some(path) = template {
            return Self::of_file(path);
        }
        let install = install.ok_or_else(|| {
            Error::invalid("no install is given")
                .or("name the install, or pass a file with its template as `--template FILE`")
        })?;
        Self::of_install(&OwnInstall::find(context, install).await?).await
    }

    /// Reads the template that the stack of the install was launched with.
    pub(super) async fn of_install(own: &OwnInstall) -> Result<Self> {
        let stack = own.stack().await?;
        let template = Stacks::new(&own.config).template(&stack.name).await?;
        Ok(Self { name: format!("the template of stack `{}`", stack.name), template, parameters: stack.parameters })
    }

    /// Reads a template that is not launched.
    pub(super) fn of_file(path: &Path) -> Result<Self> {
        let template = crate::file::read_text(path, crate::install::TEMPLATE_WAY_OUT)?;
        Ok(Self { name: format!("`{}`", path.display()), template, parameters: BTreeMap::new() })
    }

    /// Returns the vendor's public key from the `names` in this template.
    pub(super) fn vendors_key(&self, names: &Names) -> Result<PublicKey> {
        names.tenant_key.parse().map_err(|error| {
            Error::quoting(Kind::Failed, format!("{} names a public key that cannot be read: {error}", self.name))
                .or("ask the vendor for the template, and launch it again")
        })
    }

    pub(super) fn check(&self, agreed: Option<&Agreed<'_>>) -> Result<Checked> {
        verify(&self.template, &[], agreed).map_err(|wrong| {
            Error::quoting(Kind::Failed, format!("{} is not a template: {wrong}", self.name))
                .or("ask the vendor for the template, and launch it again")
        })
    }
}

impl Permissions {
    pub(crate) async fn run(&self, context: &Context) -> Result<()> {
        let launched = Launched::read(context, self.install.as_ref(), self.template.as_ref()).await?;
        answer(&launched, self.contract.as_deref(), &self.inputs)?.print(context.out)
    }
}

/// Returns what the vendor may do by a template, compared with the file of a contract if one is given.
pub(super) fn answer(launched: &Launched, contract: Option<&Path>, inputs: &[Input]) -> Result<Answer> {
    let checked = launched.check(None)?;
    let mut doubts = Vec::new();
    let terms = match (contract, &checked.names) {
        (Some(path), Some(names)) => {
            let signed = contract::signed(path, &launched.vendors_key(names)?)?;
            doubts.extend(other_contract(&signed.contract.terms, names, &launched.parameters)?);
            Some(signed.contract.terms)
        }
        (None, _) | (_, None) => None,
    };
    let checked = match &terms {
        Some(terms) => launched.check(Some(&Agreed { terms, answers: &by_name(inputs)? }))?,
        None => checked,
    };
    let Checked { findings, left_out, names, overview, .. } = checked;
    if left_out > 0 {
        doubts.push(format!("{} more", plural(left_out, "finding")));
    }
    let accepted = launched.parameters.get(ACCEPTED_CONTRACT).cloned();
    let accepted_contract = accepted.or_else(|| Some(names.as_ref()?.contract.to_string()));
    let allowed = Allowed {
        question: Question::MayDo.text(),
        proven: findings.is_empty() && doubts.is_empty(),
        roles: overview.map(|overview| roles(&overview, launched, terms.as_ref())).unwrap_or_default(),
        findings,
        doubts,
        names,
        accepted_contract,
        rests_on: Question::MayDo.rests_on(),
    };
    let answer = Answer::new(&allowed, parts(&allowed, launched, terms.is_some()))?;
    Ok(answer.with_verdict(allowed.verdict(&launched.name)))
}

impl Allowed {
    /// Returns an error for the first finding or doubt. `name` is the text by which messages name the template.
    fn verdict(&self, name: &str) -> Result<()> {
        let wrong = self.findings.first().map(|found| format!("line {}: {}", found.line, found.reason));
        match wrong.or_else(|| self.doubts.first().cloned()) {
            None => Ok(()),
            Some(first) => Err(Error::quoting(Kind::Failed, format!("{name}: {first}"))
                .or("close the modes (`freehold customer close`), and ask the vendor to explain this")),
        }
    }
}

/// Returns a doubt if the contract that was passed is not the one that the stack accepted.
fn other_contract(terms: &Terms, names: &Names, parameters: &BTreeMap<String, String>) -> Result<Option<String>> {
    let digest: Digest =
        terms.digest().map_err(|error| Error::internal(format!("cannot make the digest of terms: {error}")))?;
    let accepted = parameters.get(ACCEPTED_CONTRACT).map_or(names.contract.as_str(), String::as_str);
    Ok((accepted != digest.as_str())
        .then(|| format!("the stack has accepted the contract {accepted}, and you passed {digest}")))
}

fn roles(overview: &Overview, launched: &Launched, terms: Option<&Terms>) -> Vec<Role> {
    let runner_is_off = launched.parameters.get("EnableRunner").is_some_and(|value| value == "false");
    let role = |one: &freehold_stackcheck::RoleOverview| {
        let on = launched.parameters.get(&one.switch).map_or(one.on, |value| value == "true");
        let agreed = terms.and_then(|terms| terms.roles.iter().find(|role| role.role == one.role));
        let permissions =
            agreed.map(|role| freehold_permissions::permissions(&role.policies, role.boundary.as_deref()));
        let permissions = permissions.unwrap_or_default();
        Role {
            role: one.role.clone(),
            switch: one.switch.clone(),
            open: on && !runner_is_off,
            managed: one.managed.clone(),
            statements: one.statements,
            permissions: permissions.iter().map(|one| clean(&one.stated())).collect(),
        }
    };
    overview.roles.iter().map(role).collect()
}

fn parts(answer: &Allowed, launched: &Launched, with_contract: bool) -> Vec<Part> {
    let mut parts = Vec::new();
    if let Some(names) = &answer.names {
        parts.push(Part::Text(format!(
            "{}: app {} of vendor {} (account {}), contract {}",
            launched.name,
            names.app,
            names.tenant,
            names.tenant_account,
            answer.accepted_contract.as_deref().unwrap_or("none")
        )));
    }
    let mut table = Table::new(&["ROLE", "NOW", "SWITCH", "MAY"]);
    for role in &answer.roles {
        let managed = role.managed.iter().map(|arn| format!("managed policy {}", clean(arn)));
        let own = (role.statements > 0 && role.permissions.is_empty())
            .then(|| format!("{} of its own", plural(role.statements, "statement")));
        let may: Vec<String> = managed.chain(own).chain(role.permissions.iter().cloned()).collect();
        let now = if role.open { "open" } else { "closed" };
        table.row([clean(&role.role), now.to_owned(), role.switch.clone(), may.join("\n")]);
    }
    parts.push(Part::Table(table));
    let wrong = answer.findings.iter().map(|found| format!("- line {}: {}", found.line, clean(&found.reason)));
    let wrong: Vec<String> = wrong.chain(answer.doubts.iter().map(|doubt| format!("- {}", clean(doubt)))).collect();
    if !wrong.is_empty() {
        parts.push(Part::Text(format!("Problems:\n{}", wrong.join("\n"))));
    }
    if !with_contract {
        let missing = "The permissions were not compared with a contract: pass `--contract FILE`.";
        parts.push(Part::Text(missing.to_owned()));
    }
    parts
}
