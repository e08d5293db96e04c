//! `freehold install audit verify`: what the verification found, for people and programs.

use std::collections::BTreeMap;

use freehold_protocol::audit::verify::{Verified, verify};
use serde::Serialize;

use super::Verify;
use super::folder::{self, Folder};
use crate::context::Context;
use crate::error::{Error, Result};
use crate::output::{Output, Table, clean, plural, time};

/// The maximum number of problems that are printed; the JSON output has all of them.
const SHOWN: usize = 20;

/// The result of the verification of one copy.
#[derive(Debug, Serialize)]
pub(super) struct Answer {
    /// Whether the records are complete and unchanged.
    pub(super) verified: bool,
    #[serde(flatten)]
    pub(super) chain: Verified,
    /// The number of records in each folder, which runners of earlier versions wrote and which are not verified.
    #[serde(skip_serializing_if = "BTreeMap::is_empty")]
    pub(super) skipped: BTreeMap<String, usize>,
}

impl Verify {
    pub(super) fn run(&self, context: &Context) -> Result<()> {
        let answer = self.answer(folder::read(&self.directory)?);
        context.out.show(&answer, |answer| render(answer, self.runners.is_empty(), context.out))?;
        match answer.chain.problems.len() {
            0 => Ok(()),
            count => Err(Error::failed(format!(
                "the audit records in `{}` are incomplete or were changed: {}",
                self.directory.display(),
                plural(count, "problem")
            ))
            .or("keep this copy; CloudTrail and the versions of the bucket's objects show who changed the records")),
        }
    }

    pub(super) fn answer(&self, folder: Folder) -> Answer {
        let chain = verify(&folder.copy, &self.runners, &self.seen);
        Answer { verified: chain.problems.is_empty(), chain, skipped: folder.skipped }
    }
}

/// Renders the answer. With `any_key`, no keys of runners were given to compare with.
fn render(answer: &Answer, any_key: bool, out: Output) -> String {
    let chain = &answer.chain;
    let mut lines = Vec::new();
    if let (Some(tenant), Some(install), Some(from), Some(to)) = (&chain.tenant, &chain.install, chain.from, chain.to) {
        let records = plural(chain.records, "record");
        lines.push(format!("{records} of install {install} of tenant {tenant}, {} to {}", time(from), time(to)));
    }
    let mut table = Table::new(&["RUNNER KEY", "MACHINE", "RECORDS", "FIRST", "LAST"]);
    for writer in &chain.runners {
        let numbers = [writer.records, writer.from, writer.to].map(|number| number.to_string());
        let [records, from, to] = numbers;
        table.row([writer.key.to_string(), clean(&writer.host), records, from, to]);
    }
    lines.push(out.table(&table));
    if !chain.askers.is_empty() {
        let mut table = Table::new(&["ASKED BY", "STARTS", "FIRST", "LAST"]);
        for asker in &chain.askers {
            let by = asker.asked_by.as_ref().map_or_else(|| "unknown".to_owned(), ToString::to_string);
            table.row([by, asker.starts.to_string(), time(asker.from), time(asker.to)]);
        }
        lines.push(out.table(&table));
    }
    let mut rest: Vec<String> = chain.problems.iter().take(SHOWN).map(|problem| clean(&problem.text)).collect();
    let more = chain.problems.len().saturating_sub(SHOWN);
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
    rest.extend(folder::skipped_line(&answer.skipped));
    if let Some(last) = &chain.last {
        rest.push(format!("last record: {last}"));
        if chain.problems.is_empty() {
            rest.push(format!("the records are complete and unchanged up to record {}", last.seq));
        }
        if any_key {
            rest.push(
                "the runner keys are those beside the records; `--runner KEY` accepts only keys that you know"
                    .to_owned(),
            );
        }
    }
    lines.push(rest.join("\n"));
    lines.join("\n\n")
}
