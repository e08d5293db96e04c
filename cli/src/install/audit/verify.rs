//! `freehold install audit verify`: the result for all chains together.

use std::collections::BTreeMap;

use serde::Serialize;

use super::Verify;
use super::chain::Chain;
use super::folder::{self, Files};
use crate::context::Context;
use crate::error::{Error, Result};
use crate::output::{Output, Table, plural, time};

/// The maximum number of problems that are printed; the JSON output has all of them.
const SHOWN: usize = 20;

/// The result of the verification of one copy.
#[derive(Debug, Serialize)]
pub(super) struct Verified {
    /// Whether the records are complete and unchanged.
    pub(super) verified: bool,
    pub(super) chains: Vec<Chain>,
    /// Problems that do not belong to one chain.
    pub(super) problems: Vec<String>,
}

impl Verify {
    pub(super) fn run(&self, context: &Context) -> Result<()> {
        let verified = self.verified(&folder::read(&self.directory)?);
        context.out.show(&verified, |verified| render(verified, context.out))?;
        match verified.all_problems().count() {
            0 => Ok(()),
            count => Err(Error::failed(format!(
                "the audit records in `{}` are incomplete or were changed: {}",
                self.directory.display(),
                plural(count, "problem")
            ))
            .or("keep this copy; CloudTrail and the versions of the bucket's objects show who changed the records")),
        }
    }

    pub(super) fn verified(&self, files: &BTreeMap<String, Files>) -> Verified {
        let chains: Vec<Chain> = files.iter().map(|(runner, own)| Chain::verify(runner, own, files)).collect();
        let foreign = files.keys().filter(|runner| !self.runners.is_empty() && !self.runners.contains(runner));
        let foreign = foreign.map(|runner| format!("runner key {runner} is not a key that `--runner` names"));
        let absent = self.runners.iter().filter(|runner| !files.contains_key(*runner));
        let absent = absent.map(|runner| format!("there are no records of runner key {runner}"));
        let has = |seen: &str| files.values().any(|files| files.records.contains_key(seen));
        let cut = self.seen.iter().filter(|seen| !has(seen.as_str()));
        let cut = cut.map(|seen| format!("record `{seen}`, which an earlier copy had, is missing"));
        let problems: Vec<String> = foreign.chain(absent).chain(cut).chain(of_two_installs(&chains)).collect();
        let verified = problems.is_empty() && chains.iter().all(|chain| chain.problems.is_empty());
        Verified { verified, chains, problems }
    }
}

impl Verified {
    /// Returns every problem, with the runner key that it is about.
    pub(super) fn all_problems(&self) -> impl Iterator<Item = String> + '_ {
        let of_chain = |chain: &Chain| {
            let runner = chain.runner.clone();
            chain.problems.iter().map(move |problem| format!("{runner}: {problem}")).collect::<Vec<_>>()
        };
        self.problems.iter().cloned().chain(self.chains.iter().flat_map(of_chain))
    }
}

/// Returns the problem of a copy that has records of more than one install.
fn of_two_installs(chains: &[Chain]) -> Option<String> {
    let mut installs = chains.iter().filter_map(|chain| Some((chain.tenant.as_ref()?, chain.install.as_ref()?)));
    let first = installs.next()?;
    let other = installs.find(|other| *other != first)?;
    Some(format!(
        "there are records of install `{}` of tenant `{}` and of `{}` of `{}`",
        first.1, first.0, other.1, other.0
    ))
}

fn render(verified: &Verified, out: Output) -> String {
    let mut table = Table::new(&["RUNNER KEY", "INSTALL", "RECORDS", "FROM", "TO", "LAST RECORD"]);
    for chain in &verified.chains {
        let at = |at: Option<_>| at.map(time).unwrap_or_default();
        let install = chain.install.as_ref().map(ToString::to_string).unwrap_or_default();
        let (from, to) = (at(chain.from), at(chain.to));
        table.row([chain.runner.clone(), install, chain.records.to_string(), from, to, chain.last.clone()]);
    }
    let problems: Vec<String> = verified.all_problems().collect();
    let more = problems.len().saturating_sub(SHOWN);
    let mut lines: Vec<String> = problems.into_iter().take(SHOWN).collect();
    if more > 0 {
        lines.push(format!("and {more} more; `--json` prints all"));
    }
    for chain in &verified.chains {
        if let Some(former) = &chain.continues {
            lines.push(format!(
                "key {} continues the records of key {} after `{}`",
                chain.runner, former.runner, former.record
            ));
        }
    }
    let running: Vec<String> =
        verified.chains.iter().flat_map(|chain| &chain.without_end).map(ToString::to_string).collect();
    if !running.is_empty() {
        lines.push(format!(
            "jobs without a record of their end (they still run, were interrupted, or later records are missing): {}",
            running.join(", ")
        ));
    }
    if verified.verified {
        lines.push("the records are complete and unchanged up to the last record of each key".to_owned());
    }
    format!("{}\n\n{}", out.table(&table), lines.join("\n"))
}
