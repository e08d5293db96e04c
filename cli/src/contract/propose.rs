//! `freehold contract propose`: proposes a contract's policies without the IAM actions that no job used.

use std::collections::{BTreeMap, BTreeSet};
use std::path::{Path, PathBuf};

use clap::Args;
use freehold_permissions::{Narrowed, narrow};
use freehold_protocol::app_version::RolePolicy;
use freehold_protocol::audit::{AuditEvent, AuditRecord, ORDERS, RECEIPTS, REPORTS};
use freehold_protocol::contract::{RoleTerms, SignedContract};
use freehold_protocol::{AppName, Envelope, JobId, Timestamp};
use serde::Serialize;

use super::envelope_file;
use crate::context::Context;
use crate::error::{Error, Kind, Result, ResultExt};
use crate::file::COPY_OF_AUDIT;
use crate::output::{Output, Table, clean, note, plural, time};

/// The service for which a runner records the used actions. The runner's proxy sees all calls of its jobs to IAM.
const SERVICE: &str = "iam";

/// Propose smaller policies, without the `iam:` actions that no job used.
#[derive(Debug, Args)]
#[command(after_help = "\
Examples:
  aws s3 sync s3://BUCKET/audit audit          the customer's bucket: the output `BucketName` of the install stack
  freehold contract propose my-app.contract.json --audit audit
  freehold contract propose my-app.contract.json --audit audit -o smaller

The jobs of a runner call the AWS service IAM through the runner, which records in the customer's audit trail the actions that
each job used or tried to use. The proposal replaces each `iam:` action that a role's policies allow with the `iam:` actions that
jobs under this role used. Actions of other services stay as they are: the records do not contain their use. Different runs use
different actions, so take the records of at least one provision, one change and one teardown.

The contract is the file that `freehold contract show APP -o FILE` writes. This command checks neither its signature
nor the signatures of the records; `freehold contract verify` checks the signature of a contract.")]
pub(crate) struct Propose {
    /// The file that `freehold contract show -o FILE` wrote.
    file: PathBuf,
    /// The directory with the audit records of one or more installs of the app.
    #[arg(long, value_name = "DIR")]
    audit: PathBuf,
    /// Write each policy that becomes smaller to this directory, as `ROLE.POLICY.json`.
    #[arg(short, long, value_name = "DIR")]
    output: Option<PathBuf>,
    /// Replace files that exist and have another text.
    #[arg(long, requires = "output")]
    force: bool,
}

/// A proposal as `--json` prints it.
#[derive(Debug, Serialize)]
struct Proposal {
    app: AppName,
    records: usize,
    /// The number of records whose events only a newer version can read.
    newer_events: usize,
    installs: BTreeSet<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    from: Option<Timestamp>,
    #[serde(skip_serializing_if = "Option::is_none")]
    to: Option<Timestamp>,
    roles: Vec<RoleProposal>,
}

/// The proposal for one role.
#[derive(Debug, Serialize)]
struct RoleProposal {
    role: String,
    jobs: usize,
    /// The used IAM actions. The value holds the groups of the jobs that used the action, such as a component.
    used: BTreeMap<String, BTreeSet<String>>,
    policies: Vec<PolicyProposal>,
    /// The policies that stay unchanged, each with the reason.
    #[serde(skip_serializing_if = "BTreeMap::is_empty")]
    kept: BTreeMap<String, String>,
}

#[derive(Debug, Serialize)]
struct PolicyProposal {
    policy: String,
    #[serde(flatten)]
    narrowed: Narrowed,
}

impl Propose {
    pub(super) fn run(&self, context: &Context) -> Result<()> {
        let contract: SignedContract = envelope_file::read(&self.file)?.peek().map_err(|error| {
            Error::invalid(format!("`{}` is not a signed contract: {error}", self.file.display()))
                .or(envelope_file::WAY_OUT)
        })?;
        let records = records_in(&self.audit)?;
        if !records.iter().any(|record| matches!(record.event, AuditEvent::Started { .. })) {
            return Err(Error::invalid(format!(
                "no record in `{}` is about the start of a job; pass a copy of `audit/` of the customer's bucket, as \
                 `aws s3 sync s3://BUCKET/audit DIR` copies it",
                self.audit.display()
            )));
        }
        let proposal = propose(&contract, &records);
        if let Some(directory) = &self.output {
            write(directory, &proposal, self.force)?;
        }
        context.out.show(&proposal, |proposal| text(proposal, context.out))
    }
}

/// Reads all audit records below `directory`. A file contains one record, or one record per line in the runner's own
/// files.
fn records_in(directory: &Path) -> Result<Vec<AuditRecord>> {
    let mut files = Vec::new();
    let mut directories = vec![directory.to_owned()];
    while let Some(directory) = directories.pop() {
        for entry in crate::file::entries(&directory, COPY_OF_AUDIT)? {
            let kind = entry.file_type().doing(format!("read the type of `{}`", entry.path().display()))?;
            let is_messages = [ORDERS, RECEIPTS, REPORTS].iter().any(|name| entry.file_name() == *name);
            if kind.is_dir() && !is_messages {
                directories.push(entry.path());
            } else if kind.is_dir() {
                // The messages that records name are not records.
            } else if entry.path().extension().is_some_and(|end| end == "json" || end == "jsonl") {
                files.push(entry.path());
            }
        }
    }
    files.sort();
    let mut records = Vec::new();
    for file in files {
        let bytes = std::fs::read(&file).doing(format!("read `{}`", file.display()))?;
        for (at, line) in bytes.split(|byte| *byte == b'\n').enumerate().filter(|(_, line)| !line.is_empty()) {
            let record = Envelope::parse(line).and_then(|envelope| envelope.peek::<AuditRecord>());
            records.push(record.map_err(|error| {
                let message = format!("`{}`, line {}, is not an audit record: {error}", file.display(), at + 1);
                Error::quoting(Kind::Invalid, message).or(COPY_OF_AUDIT)
            })?);
        }
    }
    Ok(records)
}

fn propose(contract: &SignedContract, records: &[AuditRecord]) -> Proposal {
    let jobs = jobs(records);
    let terms = &contract.contract.terms;
    Proposal {
        app: terms.app.clone(),
        records: records.len(),
        newer_events: records.iter().filter(|record| matches!(record.event, AuditEvent::Newer(_))).count(),
        installs: records.iter().map(|record| record.install.to_string()).collect(),
        from: records.iter().map(|record| record.at).min(),
        to: records.iter().map(|record| record.at).max(),
        roles: terms.roles.iter().map(|role| of_role(role, &jobs)).collect(),
    }
}

/// A job in the audit records, with the IAM actions that it used.
#[derive(Debug)]
struct Job {
    role: String,
    changes: String,
    used: BTreeSet<String>,
}

fn jobs(records: &[AuditRecord]) -> BTreeMap<&JobId, Job> {
    let mut jobs = BTreeMap::new();
    for record in records {
        if let AuditEvent::Started { job, mode, role, group, work, .. } = &record.event {
            let role = role.as_ref().map_or_else(|| mode.as_str().to_owned(), ToString::to_string);
            let changes = group.as_ref().map_or_else(|| work.clone(), ToString::to_string);
            jobs.entry(job).or_insert(Job { role, changes, used: BTreeSet::new() });
        }
    }
    for record in records {
        if let AuditEvent::IamUsed { job, answered, refused, .. } = &record.event
            && let Some(job) = jobs.get_mut(job)
        {
            job.used.extend(answered.keys().chain(refused.keys()).cloned());
        }
    }
    jobs
}

fn of_role(role: &RoleTerms, jobs: &BTreeMap<&JobId, Job>) -> RoleProposal {
    let own: Vec<&Job> = jobs.values().filter(|job| job.role == role.role).collect();
    let mut used: BTreeMap<String, BTreeSet<String>> = BTreeMap::new();
    for job in &own {
        for action in &job.used {
            used.entry(action.clone()).or_default().insert(job.changes.clone());
        }
    }
    let actions: BTreeSet<String> = used.keys().cloned().collect();
    let mut proposal =
        RoleProposal { role: role.role.clone(), jobs: own.len(), used, policies: Vec::new(), kept: BTreeMap::new() };
    for policy in &role.policies {
        let (name, why) = match policy {
            RolePolicy::Inline { name, document } if !own.is_empty() => match narrow(document, SERVICE, &actions) {
                Some(narrowed) if !narrowed.changes.is_empty() => {
                    proposal.policies.push(PolicyProposal { policy: name.clone(), narrowed });
                    continue;
                }
                Some(_) => (name, "no `iam:` action in this policy can be left out"),
                None => (name, "it is not a policy document in JSON, for example because it is a template"),
            },
            RolePolicy::Inline { name, .. } => (name, "no job ran under this role"),
            RolePolicy::Managed(name) => (name, "AWS manages it; name a policy of your own instead"),
            RolePolicy::GcpPredefined(name) => (name, "it is not a policy of AWS"),
        };
        proposal.kept.insert(name.clone(), why.to_owned());
    }
    proposal
}

fn write(directory: &Path, proposal: &Proposal, force: bool) -> Result<()> {
    std::fs::create_dir_all(directory).doing(format!("make the directory `{}`", directory.display()))?;
    for role in &proposal.roles {
        for PolicyProposal { policy, narrowed } in &role.policies {
            let Some(document) = &narrowed.document else { continue };
            let plain = |text: &str| text.replace(|c: char| !c.is_ascii_alphanumeric() && c != '-' && c != '_', "-");
            let path = directory.join(format!("{}.{}.json", plain(&role.role), plain(policy)));
            let text = serde_json::to_string_pretty(document).map_err(|error| Error::internal(error.to_string()))?;
            crate::file::create(&path, &format!("{text}\n"), force)?;
            note(&format!("wrote {}", path.display()));
        }
    }
    Ok(())
}

fn text(proposal: &Proposal, out: Output) -> String {
    let between = match (proposal.from, proposal.to) {
        (Some(from), Some(to)) => format!(", {} to {}", time(from), time(to)),
        (None, _) | (_, None) => String::new(),
    };
    let installs = proposal.installs.iter().map(|name| clean(name)).collect::<Vec<_>>().join(", ");
    let mut parts =
        vec![format!("app {}: {} of {installs}{between}", proposal.app, plural(proposal.records, "audit record"))];
    parts.extend(proposal.roles.iter().map(|role| text_of_role(role, out)));
    if proposal.newer_events > 0 {
        parts.push(format!(
            "{} with an event of a newer version: this version of `freehold` cannot read it, so the policies may lack \
             actions that jobs used; use a newer version.",
            plural(proposal.newer_events, "record")
        ));
    }
    parts.push("Only `iam:` actions are compared: the records do not contain the use of other services.".to_owned());
    parts.join("\n\n")
}

fn text_of_role(role: &RoleProposal, out: Output) -> String {
    let mut lines = vec![format!("role {}: {}", clean(&role.role), plural(role.jobs, "job"))];
    if !role.policies.is_empty() {
        let mut table = Table::new(&["POLICY", "ALLOWS", "WAS USED"]);
        for PolicyProposal { policy, narrowed } in &role.policies {
            for change in &narrowed.changes {
                let used = change.used.iter().map(String::as_str).collect::<Vec<_>>().join(", ");
                let used = if used.is_empty() { "not used; the new policy does not allow it".to_owned() } else { used };
                table.row([clean(policy), clean(&change.action), clean(&used)]);
            }
        }
        lines.push(out.table(&table));
    }
    lines.extend(role.kept.iter().map(|(policy, why)| format!("  {} stays: {why}", clean(policy))));
    lines.join("\n")
}
