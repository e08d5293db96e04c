//! `freehold install sync`: creates the installs that files of an app describe, and changes the installs that differ
//! from their files.

use std::collections::BTreeMap;
use std::path::PathBuf;
use std::str::FromStr;

use clap::Args;
use freehold_appconfig::{InstallFile, load_for_comparison};
use freehold_client::calls;
use freehold_protocol::api::{
    AnsweredBy, ApprovalOption, CreateInstallRequest, Follows, InstallCreated, InstallInputs, InstallToggles,
    InstallView, SetApprovalsRequest, SetInputsRequest, SetLabelsRequest, SetTogglesRequest, ToggledBy,
};
use freehold_protocol::app_version::AppVersion;
use freehold_protocol::{AccountId, AppName, ComponentName, InstallId, WorkflowId};
use serde::Serialize;
use serde_json::Value;

use super::labels::check_created;
use crate::api::Api;
use crate::app::load;
use crate::context::Context;
use crate::error::{Error, Kind, Result};
use crate::inputs::refuse_reserved;
use crate::inputs::sealing::{accepted, refuse_sensitive};
use crate::output::{Output, Table};
use crate::progress::Progress;

/// Create the installs that the files in `installs/` describe, and change those that differ from their files.
#[derive(Debug, Args)]
#[command(after_help = "\
Examples:
  freehold install sync ./my-app --dry-run               shows what would change
  freehold install sync ./my-app --account globex=222222222222
  freehold install sync ./my-app --only globex

In an existing install, the command changes only the inputs, toggles, approval option and labels that the install's file
names. The labels in a file replace all labels that the install itself has. An install without a file does not change. A
file does not name the customer's account, so a new install needs `--account`. The command compares everything before
the first change, and a repeated command continues where it was stopped. Sensitive inputs and customers' inputs are not
read from files. Labels apply at once; the next deploy uses the other changes.")]
pub(crate) struct Sync {
    /// The directory of the app config; its name is the name of the app.
    #[arg(value_name = "DIR")]
    dir: PathBuf,
    /// The customer's AWS account of an install that does not exist yet; may be repeated.
    #[arg(long = "account", value_name = "INSTALL=ID")]
    accounts: Vec<Account>,
    /// Sync only this install; may be repeated.
    #[arg(long, value_name = "INSTALL")]
    only: Vec<InstallId>,
    /// Accept a region of a new install that this version of Freehold does not know.
    #[arg(long)]
    unknown_region: bool,
    /// Show what would change, and change nothing.
    #[arg(long)]
    dry_run: bool,
}

/// The account of one install: `INSTALL=ID`.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Account {
    install: InstallId,
    account: AccountId,
}

impl FromStr for Account {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        let (install, account) = text.split_once('=').ok_or("expected `INSTALL=ID`, such as `globex=222222222222`")?;
        let install = install.parse().map_err(|error| format!("{error}"))?;
        Ok(Self { install, account: account.parse().map_err(|error| format!("{error}"))? })
    }
}

/// The changes that a sync makes to one install.
#[derive(Debug, Default, PartialEq, Serialize)]
struct Change {
    #[serde(skip_serializing_if = "Option::is_none")]
    create: Option<Place>,
    #[serde(skip_serializing_if = "BTreeMap::is_empty")]
    inputs: BTreeMap<String, String>,
    #[serde(skip_serializing_if = "BTreeMap::is_empty")]
    toggles: BTreeMap<ComponentName, bool>,
    #[serde(skip_serializing_if = "Option::is_none")]
    approval_option: Option<ApprovalOption>,
    /// The values of the labels to set; `None` for a label to remove.
    #[serde(skip_serializing_if = "BTreeMap::is_empty")]
    labels: BTreeMap<String, Option<String>>,
}

/// The account and the region of a new install.
#[derive(Debug, PartialEq, Serialize)]
struct Place {
    account: AccountId,
    region: String,
}

/// One install in the output of the command.
#[derive(Debug, Serialize)]
struct Synced {
    install: InstallId,
    file: String,
    change: Change,
    /// The workflow of a new install.
    #[serde(skip_serializing_if = "Option::is_none")]
    workflow: Option<WorkflowId>,
}

/// The output of the command.
#[derive(Debug, Serialize)]
struct Answer {
    dry_run: bool,
    installs: Vec<Synced>,
}

impl Sync {
    pub(super) async fn run(&self, context: &Context) -> Result<()> {
        let progress = Progress::start();
        let loaded = load(&self.dir, &progress, load_for_comparison).await?;
        // `freehold app check` prints the warnings about everything else.
        let warnings = loaded.warnings.clone().filter(|one| loaded.installs.iter().any(|file| file.path == one.file));
        if !warnings.is_empty() {
            progress.say(&warnings.to_string());
        }
        let files = self.chosen(&loaded.installs)?;
        let api = context.api().await?;
        let mut changes = Vec::new();
        for file in files {
            progress.now(format!("comparing install `{}`", file.install));
            let change = self.compare(&api, &loaded.version, file).await.map_err(|error| error.within(&file.path))?;
            changes.push((file, change));
        }
        let (mut installs, mut failed) = (Vec::new(), None);
        for (file, change) in changes {
            let mut workflow = None;
            if !self.dry_run {
                progress.now(format!("changing install `{}`", file.install));
                match self.perform(&api, &loaded.version.app, file, &change).await {
                    Ok(started) => workflow = started,
                    Err(error) => {
                        failed = Some(error.within(&file.path));
                        break;
                    }
                }
            }
            installs.push(Synced { install: file.install.clone(), file: file.path.clone(), change, workflow });
        }
        drop(progress);
        // The changes that were made before a failure are shown too.
        if failed.is_none() || !installs.is_empty() {
            context.out.show(&Answer { dry_run: self.dry_run, installs }, |answer| render(answer, context.out))?;
        }
        failed.map_or(Ok(()), Err)
    }

    /// Returns the files to sync. An option that names an install without a file is an error, and so is an app without any file.
    fn chosen<'a>(&self, files: &'a [InstallFile]) -> Result<Vec<&'a InstallFile>> {
        if files.is_empty() {
            let dir = self.dir.display();
            let way_out =
                "write one file for each install, such as `installs/globex.toml` with a `name` and an `[aws_account]`";
            return Err(Error::invalid(format!("`{dir}` describes no install in `installs/`")).or(way_out));
        }
        let named = self.only.iter().chain(self.accounts.iter().map(|one| &one.install));
        for install in named {
            if !files.iter().any(|file| file.install == *install) {
                let all: Vec<_> = files.iter().map(|file| format!("`{}`", file.install)).collect();
                return Err(Error::invalid(format!("no file in `installs/` describes install `{install}`"))
                    .or(format!("files describe {}", all.join(", "))));
            }
        }
        for Account { install, account } in &self.accounts {
            if !self.only.is_empty() && !self.only.contains(install) {
                return Err(Error::invalid(format!(
                    "`--account` names install `{install}`, and `--only` leaves it out"
                ))
                .or(format!("add `--only {install}`, or leave `--account` out")));
            }
            if self.accounts.iter().any(|other| other.install == *install && other.account != *account) {
                return Err(Error::invalid(format!("`--account` names two accounts of install `{install}`; give one")));
            }
        }
        let is_chosen = |file: &&InstallFile| self.only.is_empty() || self.only.contains(&file.install);
        Ok(files.iter().filter(is_chosen).collect())
    }

    /// Returns the changes that make an install match its file.
    async fn compare(&self, api: &Api, version: &AppVersion, file: &InstallFile) -> Result<Change> {
        let (install, app) = (&file.install, &version.app);
        let known: Option<InstallView> = match api.send(calls::show_install(install)).await {
            Ok(view) => Some(view),
            Err(error) if error.kind() == Kind::NotFound => None,
            Err(error) => return Err(error),
        };
        let Some(known) = known else { return self.new_install(api, version, file).await };
        if known.app.as_ref() != Some(app) {
            let of = known.app.map_or_else(|| "no app".to_owned(), |of| format!("app `{of}`"));
            return Err(Error::invalid(format!("install `{install}` is one of {of}, not of app `{app}`"))
                .or("give the install in the file another name"));
        }
        if let Some(region) = file.region.as_ref().filter(|region| **region != known.region) {
            let there = &known.region;
            return Err(Error::invalid(format!("install `{install}` is in {there}, and its file names {region}"))
                .or("an install stays in its region; correct the file, or give the install in it another name"));
        }
        let account = self.account_of(install).filter(|account| **account != known.account);
        if let Some(account) = account {
            let there = &known.account;
            return Err(Error::invalid(format!("install `{install}` is in account {there}, not in {account}"))
                .or("an install stays in its account; leave out `--account`"));
        }
        Ok(Change {
            create: None,
            inputs: inputs_to_change(api, file).await?,
            toggles: toggles_to_change(api, file).await?,
            approval_option: file.approval_option.filter(|option| *option != known.approval_option),
            labels: file.labels.as_ref().map(|wanted| labels_to_change(&known.own_labels, wanted)).unwrap_or_default(),
        })
    }

    /// Returns the change that creates an install.
    async fn new_install(&self, api: &Api, version: &AppVersion, file: &InstallFile) -> Result<Change> {
        let install = &file.install;
        refuse_reserved(install)?;
        let Some(region) = file.region.clone() else {
            return Err(Error::invalid(format!(
                "install `{install}` does not exist yet, and its file names no AWS region"
            ))
            .or("add `[aws_account]` with `region = \"...\"`"));
        };
        let Some(account) = self.account_of(install).cloned() else {
            return Err(Error::invalid(format!("install `{install}` does not exist yet")).or(format!(
                "pass the customer's AWS account with `--account {install}=ID`, or leave the install out: `--only` names the \
                 installs to sync"
            )));
        };
        refuse_sensitive(api, &version.app, install, &values(&file.inputs)).await?;
        for input in version.inputs.iter().filter(|input| !input.customer && !input.sensitive) {
            let given = file.inputs.get(&input.name).map(|text| Value::from(text.clone()));
            if given.is_none() && input.default.is_some() {
                continue;
            }
            input.accept(&given.unwrap_or_default()).map_err(|error| Error::invalid(error.to_string()))?;
        }
        Ok(Change {
            create: Some(Place { account, region }),
            inputs: file.inputs.clone(),
            toggles: file.toggles.clone(),
            approval_option: file.approval_option,
            labels: labels_to_change(&BTreeMap::new(), &file.labels.clone().unwrap_or_default()),
        })
    }

    /// Creates or changes one install. Returns the workflow of a new install.
    async fn perform(
        &self,
        api: &Api,
        app: &AppName,
        file: &InstallFile,
        change: &Change,
    ) -> Result<Option<WorkflowId>> {
        let install = &file.install;
        let (inputs, toggles) = (values(&change.inputs), change.toggles.clone());
        if let Some(Place { account, region }) = &change.create {
            let body = CreateInstallRequest {
                install: file.install.clone(),
                app: app.clone(),
                account: account.clone(),
                region: region.clone(),
                unknown_region: self.unknown_region,
                inputs,
                toggles,
                approval_option: change.approval_option.unwrap_or_default(),
                release: Follows::Latest,
                labels: file.labels.clone().unwrap_or_default(),
            };
            let created: InstallCreated = api.send_part(calls::create_install(&body), install.as_str()).await?;
            check_created(&created.install, &body.labels)?;
            return Ok(Some(created.workflow));
        }
        // After a failure, a repeated command makes the remaining changes.
        let mut done = Vec::new();
        let after = |done: &[&str], error: Error| match done {
            [] => error,
            done => error.within(format!("after its {} changed", done.join(" and "))),
        };
        if !inputs.is_empty() {
            let call = calls::set_inputs(install, &SetInputsRequest { inputs });
            let _: InstallInputs = api.send_part(call, &format!("{install}.inputs")).await?;
            done.push("inputs");
        }
        if !toggles.is_empty() {
            let toggles = toggles.into_iter().map(|(name, on)| (name, Some(on))).collect();
            let call = calls::set_toggles(install, &SetTogglesRequest { toggles });
            let set: Result<InstallToggles> = api.send_part(call, &format!("{install}.toggles")).await;
            set.map_err(|error| after(&done, error))?;
            done.push("toggles");
        }
        if let Some(approval_option) = change.approval_option {
            let call = calls::set_approvals(install, &SetApprovalsRequest { approval_option });
            let set: Result<InstallView> = api.send_part(call, &format!("{install}.approvals")).await;
            set.map_err(|error| after(&done, error))?;
            done.push("approval option");
        }
        if !change.labels.is_empty() {
            let call = calls::set_labels(install, &SetLabelsRequest { labels: change.labels.clone() });
            let set: Result<InstallView> = api.send_part(call, &format!("{install}.labels")).await;
            set.map_err(|error| after(&done, error))?;
        }
        Ok(None)
    }

    fn account_of(&self, install: &InstallId) -> Option<&AccountId> {
        self.accounts.iter().find(|one| one.install == *install).map(|one| &one.account)
    }
}

/// Returns the changes that turn the labels `own` into `wanted`: the values to set, and `None` for a label to remove.
fn labels_to_change(
    own: &BTreeMap<String, String>,
    wanted: &BTreeMap<String, String>,
) -> BTreeMap<String, Option<String>> {
    let removed = own.keys().filter(|key| !wanted.contains_key(*key)).map(|key| (key.clone(), None));
    let set = wanted.iter().filter(|(key, value)| own.get(*key) != Some(*value));
    removed.chain(set.map(|(key, value)| (key.clone(), Some(value.clone())))).collect()
}

/// Returns the values of inputs in the form that the API accepts: as texts, which the API parses by the types of the
/// inputs.
fn values(inputs: &BTreeMap<String, String>) -> BTreeMap<String, Value> {
    inputs.iter().map(|(name, text)| (name.clone(), Value::from(text.clone()))).collect()
}

/// Returns the error about something in the file that the install's version lacks.
fn unknown(what: &str, install: &InstallId) -> Error {
    Error::invalid(format!("the version that install `{install}` follows has no {what}")).or(format!(
        "sync the app first, with `freehold app sync`; an install that is pinned or follows a channel has to get a \
         release that has it (`freehold install release {install}`)"
    ))
}

/// Returns the texts of the inputs that the vendor has not set in the install, or that have another value there than in
/// the file.
async fn inputs_to_change(api: &Api, file: &InstallFile) -> Result<BTreeMap<String, String>> {
    if file.inputs.is_empty() {
        return Ok(BTreeMap::new());
    }
    let shown: InstallInputs = api.send(calls::show_inputs(&file.install)).await?;
    let mut changed = BTreeMap::new();
    for (name, text) in &file.inputs {
        let Some(view) = shown.inputs.iter().find(|view| view.name == *name) else {
            return Err(unknown(&format!("input `{name}`"), &file.install));
        };
        if view.sensitive || view.parameter.is_some() {
            let whose = if view.sensitive { "sensitive" } else { "the customer's" };
            return Err(Error::invalid(format!(
                "input `{name}` is {whose} in the install's version, so no file sets it"
            ))
            .or("remove it from the file"));
        }
        let wanted = accepted(view, &Value::from(text.clone())).map_err(|error| Error::invalid(error.to_string()))?;
        if view.from != AnsweredBy::Vendor || *view.value.as_ref().unwrap_or(&Value::Null) != wanted {
            changed.insert(name.clone(), text.clone());
        }
    }
    Ok(changed)
}

/// Returns the components whose toggle the vendor has not set in the install, or whose toggle there differs from the
/// file.
async fn toggles_to_change(api: &Api, file: &InstallFile) -> Result<BTreeMap<ComponentName, bool>> {
    if file.toggles.is_empty() {
        return Ok(BTreeMap::new());
    }
    let shown: InstallToggles = api.send(calls::show_toggles(&file.install)).await?;
    let mut changed = BTreeMap::new();
    for (name, on) in &file.toggles {
        let Some(known) = shown.toggles.iter().find(|toggle| toggle.component == *name) else {
            return Err(unknown(&format!("toggleable component `{name}`"), &file.install));
        };
        if known.on != *on || known.from != ToggledBy::Vendor {
            changed.insert(name.clone(), *on);
        }
    }
    Ok(changed)
}

fn render(answer: &Answer, out: Output) -> String {
    let mut table = Table::new(&["INSTALL", "FILE", if answer.dry_run { "WOULD CHANGE" } else { "CHANGED" }]);
    for one in &answer.installs {
        table.row([one.install.to_string(), one.file.clone(), describe(&one.change)]);
    }
    let mut text = out.table(&table);
    for Synced { install, change, .. } in answer.installs.iter().filter(|_| !answer.dry_run) {
        if change.create.is_some() {
            text.push_str(&format!("\nnext: freehold install stack {install} -o {install}.yaml"));
        } else if !change.inputs.is_empty() || !change.toggles.is_empty() {
            text.push_str(&format!("\nnext: freehold deploy {install}"));
        }
    }
    text
}

/// Returns the change of one install as text.
fn describe(change: &Change) -> String {
    let place = change.create.iter().map(|place| format!("created in {}, {}", place.account, place.region));
    let inputs = change.inputs.iter().map(|(name, value)| format!("{name}={value}"));
    let toggles = change.toggles.iter().map(|(name, on)| format!("{name} {}", if *on { "on" } else { "off" }));
    let option = change.approval_option.iter().map(|option| format!("approvals {}", option.as_str()));
    let labels = change.labels.iter().map(|(key, value)| match value {
        Some(value) => format!("label {key}={value}"),
        None => format!("label {key} removed"),
    });
    let all: Vec<_> = place.chain(inputs).chain(toggles).chain(option).chain(labels).collect();
    if all.is_empty() { "nothing".to_owned() } else { all.join("; ") }
}
