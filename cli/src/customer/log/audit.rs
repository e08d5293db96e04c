//! `freehold customer audit verify`: whether the log is complete and unchanged, for people and programs.

use std::collections::BTreeMap;

use clap::{Args, Subcommand};
use freehold_protocol::audit::verify::{Asker, Verified, Writer};
use serde::Serialize;

use super::super::answer::Answer;
use super::super::question::Question;
use super::answer::{merged_texts, newer_line};
use super::evidence::{Evidence, Records};
use super::local_copy;
use crate::context::Context;
use crate::error::{Error, Result};
use crate::output::{Part, Table, clean, plural, time};

/// The maximum number of problems that are printed; the JSON output has all of them.
const SHOWN: usize = 20;

/// The advice about records with problems.
const CHANGED: &str =
    "keep this copy; CloudTrail and the versions of the bucket's objects show who changed the records";
/// The advice about a copy that lacks records after its last one. A second copy also lacks a record that was removed.
const MIXED: &str = "if a runner worked while you copied the bucket, copy the records again, without `reports/` and \
                     `receipts/`, into the same directory, and repeat this command: a record that is still missing was \
                     removed";

/// For customers: verify the audit records of an install.
#[derive(Debug, Subcommand)]
pub(crate) enum AuditCommand {
    Verify(Verify),
}

/// For customers: check that the audit records are complete and unchanged.
#[derive(Debug, Args)]
#[command(after_help = Question::Whole.help("\
Examples:
  freehold customer audit verify globex --tenant acme
  aws s3 cp --recursive s3://fh-acme--globex--222222222222/audit/ audit \\
      --exclude '*' --include 'reports/*' --include 'receipts/*'
  aws s3 cp --recursive s3://fh-acme--globex--222222222222/audit/ audit \\
      --exclude 'reports/*' --exclude 'receipts/*'
  freehold customer audit verify --copy audit --root-key 11qYAYKxCrfVS/7TyWQHOg7hcvPapiMlrwIaaPcHURo=
  freehold customer audit verify --copy audit --runner 7300c0ae1429cd153252736a781b78f4
  freehold customer audit verify --copy audit --seen 000000000044-4b5e57f6eb2f

The runners of an install write one chain. Each record has the signature of its runner and the digest of the record
before it, so the command finds records that are missing, changed, exchanged, of another key or of another install, and
names the first wrong record. Reports and the control plane's receipts name records too, so a chain without such a
record was cut. A chain that was cut after the last of these records looks like a shorter chain: note the last record
that the command prints, and pass it as `--seen` the next time. Exit code 1 when something is wrong. A record with an
event of a newer version is verified like any other record, and the command says how many there are.

Copy the reports and receipts first, as in the examples: a runner may write while you copy, and the records that reports
name must not be missing in the copy."))]
pub(crate) struct Verify {
    #[command(flatten)]
    records: Records,
}

impl AuditCommand {
    pub(crate) async fn run(&self, context: &Context) -> Result<()> {
        match self {
            Self::Verify(args) => args.run(context).await,
        }
    }
}

/// The result of the verification of one copy.
#[derive(Debug, Serialize)]
struct LogState<'a> {
    /// Whether the records are complete and unchanged.
    verified: bool,
    /// Whether the signatures of receipts were verified with the vendor's root key.
    root_key_compared: bool,
    #[serde(flatten)]
    chain: &'a Verified,
    /// The number of records in each directory, which runners of earlier versions wrote and which are not verified.
    #[serde(skip_serializing_if = "BTreeMap::is_empty")]
    skipped: &'a BTreeMap<String, usize>,
}

impl Verify {
    async fn run(&self, context: &Context) -> Result<()> {
        answer(&self.records.read(context).await?)?.print(context.out)
    }
}

/// Returns whether the log is complete and unchanged.
pub(in crate::customer) fn answer(evidence: &Evidence) -> Result<Answer> {
    let state = LogState {
        verified: evidence.chain.problems.is_empty(),
        root_key_compared: evidence.roots.is_some(),
        chain: &evidence.chain,
        skipped: &evidence.skipped,
    };
    let verdict = match evidence.chain.problems.len() {
        0 => Ok(()),
        count => Err(Error::failed(format!(
            "the audit records in {} are incomplete or were changed: {}",
            evidence.whose,
            plural(count, "problem")
        ))
        .or(if evidence.may_be_mixed() { MIXED } else { CHANGED })),
    };
    Ok(Answer::new(&state, parts(&state, !evidence.knows_runners))?.with_verdict(verdict))
}

/// Returns the state of the log as people read it. With `any_key`, no keys of runners were given to compare with.
fn parts(answer: &LogState<'_>, any_key: bool) -> Vec<Part> {
    let chain = answer.chain;
    let mut parts = Vec::new();
    if let (Some(tenant), Some(install), Some(from), Some(to)) = (&chain.tenant, &chain.install, chain.from, chain.to) {
        let records = plural(chain.records, "record");
        let heading = format!("{records} of install {install} of tenant {tenant}, {} to {}", time(from), time(to));
        parts.push(Part::Text(heading));
    }
    parts.push(Part::Table(table_of_runners(&chain.runners)));
    if !chain.askers.is_empty() {
        parts.push(Part::Table(table_of_askers(&chain.askers)));
    }
    let problems = merged_texts(&chain.problems);
    let mut rest: Vec<String> = problems.iter().take(SHOWN).map(|text| clean(text)).collect();
    let more = problems.len().saturating_sub(SHOWN);
    if more > 0 {
        rest.push(format!("and {more} more; `--json` prints all"));
    }
    if !chain.without_end.is_empty() {
        let jobs: Vec<String> = chain.without_end.iter().map(ToString::to_string).collect();
        rest.push(format!(
            "jobs without a record of their end (they still run, were interrupted, or later records are missing): {}",
            jobs.join(", ")
        ));
    }
    rest.extend(newer_line(chain));
    rest.extend(local_copy::skipped_line(answer.skipped));
    if let Some(last) = &chain.last {
        rest.push(format!("last record: {last}"));
        rest.extend(proofs(answer, last.seq, any_key));
    }
    parts.push(Part::Text(rest.join("\n")));
    parts
}

fn table_of_runners(runners: &[Writer]) -> Table {
    let mut table = Table::new(&["RUNNER KEY", "MACHINE", "RECORDS", "FIRST", "LAST"]);
    for writer in runners {
        let [records, from, to] = [writer.records, writer.from, writer.to].map(|number| number.to_string());
        table.row([writer.key.to_string(), clean(&writer.host), records, from, to]);
    }
    table
}

fn table_of_askers(askers: &[Asker]) -> Table {
    let mut table = Table::new(&["ASKED BY", "STARTS", "FIRST", "LAST"]);
    for asker in askers {
        let by = asker.asked_by.as_ref().map_or_else(|| "unknown".to_owned(), ToString::to_string);
        table.row([by, asker.starts.to_string(), time(asker.from), time(asker.to)]);
    }
    table
}

/// Returns what the records up to `last` prove, and what they do not.
fn proofs(answer: &LogState<'_>, last: u64, any_key: bool) -> Vec<String> {
    let (chain, mut lines) = (answer.chain, Vec::new());
    if chain.problems.is_empty() {
        lines.push(format!("the records are complete and unchanged up to record {last}"));
    }
    match chain.confirmed {
        Some(seq) if answer.root_key_compared => {
            lines.push(format!("the control plane confirmed the records up to {seq}; {}", receipts(chain)));
        }
        Some(seq) => lines.push(format!(
            "receipts confirm the records up to {seq}, but their signatures were not verified: pass the vendor's key as `--root-key KEY`"
        )),
        None => lines.push("there is no receipt of the control plane yet".to_owned()),
    }
    if any_key {
        lines.push(
            "the runner keys come from the directory of the records; `--runner KEY` accepts only keys that you know"
                .to_owned(),
        );
    }
    lines
}

fn receipts(chain: &Verified) -> String {
    let count = usize::try_from(chain.receipts).unwrap_or(usize::MAX);
    let verb = if count == 1 { "agrees" } else { "agree" };
    format!("{} {verb} with the chain", plural(count, "receipt"))
}
