//! The form of all answers from the records: the answer, the state of the log, and every doubt.

use freehold_protocol::audit::verify::{Problem, Verified};
use serde::Serialize;

use super::super::answer::Answer;
use super::super::question::Question;
use super::evidence::Evidence;
use crate::error::{Error, Result};
use crate::output::{Part, clean, plural};

/// The maximum number of doubts that are printed; the JSON output has all of them.
const SHOWN: usize = 20;

/// An answer from the records as `--json` prints it.
#[derive(Debug, Serialize)]
struct FromLog<'a, T> {
    question: &'static str,
    /// Whether the log is complete and unchanged, and nothing contradicts the answer.
    proven: bool,
    /// Whether signatures of the vendor were verified with a root key.
    root_key_compared: bool,
    /// The mistakes in the log.
    problems: &'a [Problem],
    /// The facts that contradict the answer, and the facts that are missing for its proof.
    doubts: &'a [String],
    rests_on: &'static str,
    answer: &'a T,
}

/// Returns an answer. It is not proven if the log is incomplete or was changed, or something contradicts the answer.
pub(super) fn of_log<T: Serialize>(
    question: Question,
    evidence: &Evidence,
    answer: (&T, &[String]),
    part: Part,
) -> Result<Answer> {
    of_log_with_texts(question, evidence, answer, (part, Vec::new()))
}

/// Returns an answer as [`of_log`] does, followed by texts from the bucket, whose lines are not wrapped.
pub(super) fn of_log_with_texts<T: Serialize>(
    question: Question,
    evidence: &Evidence,
    (answer, doubts): (&T, &[String]),
    (part, texts): (Part, Vec<String>),
) -> Result<Answer> {
    let problems = evidence.chain.problems.as_slice();
    let doubts: Vec<String> = newer_line(&evidence.chain).into_iter().chain(doubts.iter().cloned()).collect();
    let whole = FromLog {
        question: question.text(),
        proven: problems.is_empty() && doubts.is_empty(),
        root_key_compared: evidence.roots.is_some(),
        problems,
        doubts: &doubts,
        rests_on: question.rests_on(),
        answer,
    };
    let mut parts = vec![part];
    let wrong = listed("The log is incomplete or was changed:", merged_texts(problems).into_iter());
    let not_proven = listed("Not proven:", doubts.iter().cloned());
    parts.extend(wrong.into_iter().chain(not_proven).map(Part::Text));
    if evidence.roots.is_none() {
        let unchecked = "Nobody checked who signed the orders and receipts: pass the vendor's key as `--root-key KEY`.";
        parts.push(Part::Text(unchecked.to_owned()));
    }
    parts.extend(texts.into_iter().map(Part::Verbatim));
    Ok(Answer::new(&whole, parts)?.with_verdict(verdict(problems.len(), doubts.len(), &evidence.whose)))
}

/// Returns an error for an answer that is not proven. `whose` names where the records come from.
fn verdict(problems: usize, doubts: usize, whose: &str) -> Result<()> {
    match (problems, doubts) {
        (0, 0) => Ok(()),
        (0, count) => Err(Error::failed(format!("{} about the answer in {whose}", plural(count, "doubt")))
            .or("keep a copy of the bucket, and ask the vendor to explain each doubt")),
        (count, _) => Err(Error::failed(format!(
            "the answer is based on a log that is incomplete or was changed: {} in {whose}",
            plural(count, "problem"),
        ))
        .or("keep a copy of the bucket; `freehold customer audit verify` names each problem")),
    }
}

/// Returns a sentence about the records whose events only a newer version can read, if there are any. Such an event may
/// belong to any answer.
pub(super) fn newer_line(chain: &Verified) -> Option<String> {
    let first = chain.newer_events.values().flatten().min()?;
    let count = chain.newer_events.values().map(Vec::len).sum();
    let kinds =
        chain.newer_events.iter().take(SHOWN).map(|(kind, records)| format!("{} `{}`", records.len(), clean(kind)));
    Some(format!(
        "{} with an event of a newer version ({}; the first is record {first}): this version of `freehold` verifies \
         that nobody changed such an event, but cannot read it; use a newer version",
        plural(count, "record"),
        kinds.collect::<Vec<_>>().join(", ")
    ))
}

/// Returns the texts of problems. Problems of several records that differ only in the number of the record become one
/// text.
pub(super) fn merged_texts(problems: &[Problem]) -> Vec<String> {
    let mut lines: Vec<(Option<String>, String, Vec<u64>)> = Vec::new();
    for problem in problems {
        let rest = problem.record.and_then(|seq| Some((seq, problem.text.strip_prefix(&format!("record {seq} "))?)));
        let Some((seq, rest)) = rest else {
            lines.push((None, problem.text.clone(), Vec::new()));
            continue;
        };
        match lines.iter_mut().find(|(known, ..)| known.as_deref() == Some(rest)) {
            Some((_, _, records)) => records.push(seq),
            None => lines.push((Some(rest.to_owned()), problem.text.clone(), vec![seq])),
        }
    }
    let text = |(rest, text, records): (Option<String>, String, Vec<u64>)| match (rest, records.as_slice()) {
        (Some(rest), [first, .., last]) => {
            format!("{} records, from {first} to {last}: each {rest}", records.len())
        }
        (Some(_) | None, _) => text,
    };
    lines.into_iter().map(text).collect()
}

fn listed(title: &str, lines: impl ExactSizeIterator<Item = String>) -> Option<String> {
    let count = lines.len();
    if count == 0 {
        return None;
    }
    let mut all: Vec<String> =
        std::iter::once(title.to_owned()).chain(lines.take(SHOWN).map(|line| format!("- {}", clean(&line)))).collect();
    if count > SHOWN {
        all.push(format!("- and {} more; `--json` prints all", count - SHOWN));
    }
    Some(all.join("\n"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn problems_that_differ_in_the_number_of_the_record_alone_are_one_text() {
        let problem = |record: u64, text: &str| Problem { record: Some(record), after: None, text: text.to_owned() };
        let of = |record: u64| problem(record, &format!("record {record} belongs to runner key k"));
        let cut = problem(3, "receipt 9: the chain was cut");
        let alone = problem(8, "record 8 is missing");

        let texts = merged_texts(&[of(1), of(2), cut, of(7), alone]);

        let cut = "receipt 9: the chain was cut";
        assert_eq!(texts, ["3 records, from 1 to 7: each belongs to runner key k", cut, "record 8 is missing"]);
    }
}
