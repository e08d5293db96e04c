//! Required checks: what programs outside of Freehold report about a component's last deploy, and what follows from it.

use std::collections::{BTreeMap, BTreeSet};

use freehold_protocol::api::CheckResult;
use freehold_protocol::app_version::ComponentHealth;
use freehold_protocol::order::AskedBy;
use freehold_protocol::{CheckName, ComponentName, JobId, Timestamp};
use serde::{Deserialize, Serialize};

/// The maximum length of the reason of one failed check in a text about several, in characters.
const REASON_CHARS: usize = 100;

/// The required checks of a component.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct RequiredChecks {
    pub names: BTreeSet<CheckName>,
    /// How long a gate waits for their results, in seconds.
    pub window_secs: u32,
}

impl RequiredChecks {
    /// Returns the required checks of a component with these settings.
    pub fn of(health: &ComponentHealth) -> Self {
        let names = health.checks();
        if names.is_empty() {
            return Self::default();
        }
        Self { names, window_secs: health.stabilization_window_secs }
    }

    /// Returns whether no check is required.
    pub fn is_empty(&self) -> bool {
        self.names.is_empty()
    }
}

/// The required checks for which the job of a gate waits, and their component.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct AwaitedChecks {
    pub component: ComponentName,
    #[serde(flatten)]
    pub required: RequiredChecks,
}

/// The last result of a check that somebody reported.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct ReportedCheck {
    pub component: ComponentName,
    pub check: CheckName,
    pub result: CheckResult,
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub reason: String,
    /// The address of the details; empty if none was reported.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub url: String,
    pub by: AskedBy,
    /// The time of the first report with this result about this deploy.
    pub at: Timestamp,
    /// The serial of the component's deploy that the result is about.
    pub serial: u64,
    /// The job of that deploy.
    pub deploy: JobId,
}

impl ReportedCheck {
    /// Returns whether `again` is the same report, apart from its time.
    pub fn is_repeated_by(&self, again: &Self) -> bool {
        *self == Self { at: self.at, ..again.clone() }
    }

    /// Returns the result as it replaces `known`, the last one of the check. A repeated result keeps the time of its first
    /// report: a repetition after the deadline of a gate must not replace the report that came in time.
    #[must_use]
    pub fn after(self, known: Option<&Self>) -> Self {
        let repeated = known.filter(|known| known.serial == self.serial && known.result == self.result);
        Self { at: repeated.map_or(self.at, |known| known.at), ..self }
    }

    /// Returns whether the result is about the deploy with this serial, and was reported by the time `until`.
    fn counts(&self, deployed: u64, until: Option<Timestamp>) -> bool {
        self.serial == deployed && until.is_none_or(|until| self.at <= until)
    }
}

/// What the results of all required checks mean together.
#[derive(Debug, Clone, PartialEq, Eq)]
#[must_use]
pub enum Verdict {
    /// All required checks have passed, or no check is required.
    Passed,
    /// These checks failed, each with its reason, which may be empty.
    Failed(BTreeMap<CheckName, String>),
    /// No check failed, but these have no result.
    Missing(BTreeSet<CheckName>),
}

/// Returns the verdict on a component whose last deploy has the serial `deployed`. Results about another deploy do not count, and
/// neither do those that were reported after `until`.
pub fn verdict<'a>(
    required: &BTreeSet<CheckName>,
    reported: impl IntoIterator<Item = &'a ReportedCheck>,
    deployed: u64,
    until: Option<Timestamp>,
) -> Verdict {
    let results: BTreeMap<&CheckName, &ReportedCheck> = reported
        .into_iter()
        .filter(|one| one.counts(deployed, until) && required.contains(&one.check))
        .map(|one| (&one.check, one))
        .collect();
    let failed: BTreeMap<CheckName, String> = results
        .values()
        .filter(|one| one.result == CheckResult::Failed)
        .map(|one| (one.check.clone(), one.reason.clone()))
        .collect();
    let missing: BTreeSet<CheckName> = required.iter().filter(|name| !results.contains_key(*name)).cloned().collect();
    if !failed.is_empty() {
        Verdict::Failed(failed)
    } else if missing.is_empty() {
        Verdict::Passed
    } else {
        Verdict::Missing(missing)
    }
}

impl Verdict {
    /// Returns why the checks have not passed, as a part of a sentence; empty when they have passed.
    pub fn problem(&self) -> String {
        match self {
            Self::Passed => String::new(),
            Self::Failed(failed) => failed.iter().map(failure).collect::<Vec<_>>().join("; "),
            Self::Missing(missing) => format!("no result of {} was reported", named(missing)),
        }
    }
}

fn failure((name, reason): (&CheckName, &String)) -> String {
    let short: String = reason.chars().take(REASON_CHARS).collect();
    let cut = if short.len() < reason.len() { "..." } else { "" };
    if short.is_empty() { format!("check `{name}` failed") } else { format!("check `{name}` failed: {short}{cut}") }
}

/// Returns the checks by name, as a part of a sentence.
pub fn named(names: &BTreeSet<CheckName>) -> String {
    let quoted: Vec<String> = names.iter().map(|name| format!("`{name}`")).collect();
    let noun = if quoted.len() == 1 { "check" } else { "checks" };
    format!("{noun} {}", quoted.join(", "))
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    const NAMES: [&str; 4] = ["ci", "load", "smoke", "web.up"];

    fn at(secs: u64) -> Timestamp {
        Timestamp::default().plus_secs(secs)
    }

    fn check(name: &str) -> CheckName {
        name.parse().unwrap()
    }

    fn reported(name: &str, result: CheckResult, serial: u64, time: u64) -> ReportedCheck {
        let deploy = JobId::derive(&freehold_protocol::WorkflowId::derive("globex", &serial.to_string()), "web");
        ReportedCheck {
            component: "web".parse().unwrap(),
            check: check(name),
            result,
            reason: format!("{name} at {time}"),
            url: String::new(),
            by: AskedBy::Schedule,
            at: at(time),
            serial,
            deploy,
        }
    }

    fn names(names: &[&str]) -> BTreeSet<CheckName> {
        names.iter().map(|name| check(name)).collect()
    }

    #[test]
    fn a_component_without_required_checks_has_passed() {
        let failed = [reported("ci", CheckResult::Failed, 1, 1)];

        assert_eq!(verdict(&names(&[]), &failed, 1, None), Verdict::Passed);
    }

    #[test]
    fn a_failed_check_decides_although_others_are_missing() {
        let failed = [reported("ci", CheckResult::Failed, 1, 1)];

        let found = verdict(&names(&["ci", "load"]), &failed, 1, None);

        assert_eq!(found, Verdict::Failed([(check("ci"), "ci at 1".to_owned())].into()));
        assert_eq!(found.problem(), "check `ci` failed: ci at 1");
    }

    #[test]
    fn a_problem_names_the_checks_and_cuts_long_reasons() {
        let missing = verdict(&names(&["load", "ci"]), &[], 1, None);
        let one = verdict(&names(&["ci"]), &[], 1, None);
        let long = Verdict::Failed([(check("ci"), "é".repeat(101)), (check("load"), String::new())].into());

        assert_eq!(missing.problem(), "no result of checks `ci`, `load` was reported");
        assert_eq!(one.problem(), "no result of check `ci` was reported");
        assert_eq!(long.problem(), format!("check `ci` failed: {}...; check `load` failed", "é".repeat(100)));
    }

    #[test]
    fn the_same_report_again_differs_in_its_time_only() {
        let one = reported("ci", CheckResult::Passed, 1, 1);

        assert!(one.is_repeated_by(&ReportedCheck { at: at(9), ..one.clone() }));
        assert!(!one.is_repeated_by(&ReportedCheck { result: CheckResult::Failed, ..one.clone() }));
        assert!(!one.is_repeated_by(&ReportedCheck { serial: 2, ..one.clone() }));
    }

    #[test]
    fn a_repeated_result_keeps_the_time_of_its_first_report() {
        let first = reported("ci", CheckResult::Passed, 1, 1);
        let again = reported("ci", CheckResult::Passed, 1, 9);

        assert_eq!(again.clone().after(Some(&first)).at, at(1));
        assert_eq!(reported("ci", CheckResult::Failed, 1, 9).after(Some(&first)).at, at(9));
        assert_eq!(reported("ci", CheckResult::Passed, 2, 9).after(Some(&first)).at, at(9));
        assert_eq!(again.after(None).at, at(9));
    }

    fn any_report() -> impl Strategy<Value = (bool, u64, u64)> {
        (any::<bool>(), 1_u64..4, 0_u64..10)
    }

    proptest! {
        /// Each required check counts once, by its result for this deploy in time: it passed, it failed or it is missing.
        #[test]
        fn a_verdict_is_that_of_the_results_in_time_for_the_last_deploy(
            required in proptest::collection::btree_set(0_usize..NAMES.len(), 0..=NAMES.len()),
            reports in proptest::collection::btree_map(0_usize..NAMES.len(), any_report(), 0..=NAMES.len()),
            deployed in 1_u64..4,
            until in proptest::option::of(0_u64..10),
        ) {
            let required: BTreeSet<CheckName> = required.into_iter().map(|index| check(NAMES[index])).collect();
            let results: Vec<ReportedCheck> = reports
                .into_iter()
                .map(|(index, (passed, serial, time))| {
                    let result = if passed { CheckResult::Passed } else { CheckResult::Failed };
                    reported(NAMES[index], result, serial, time)
                })
                .collect();

            let found = verdict(&required, &results, deployed, until.map(at));

            let of = |name: &CheckName| {
                let is_its = |one: &&ReportedCheck| one.check == *name && one.serial == deployed;
                let in_time = |one: &&ReportedCheck| until.is_none_or(|until| one.at <= at(until));
                results.iter().filter(is_its).find(in_time).map(|one| one.result)
            };
            let with = |result: Option<CheckResult>| -> BTreeSet<CheckName> {
                required.iter().filter(|name| of(name) == result).cloned().collect()
            };
            let (failed, missing) = (with(Some(CheckResult::Failed)), with(None));
            match found {
                Verdict::Passed => prop_assert!(failed.is_empty() && missing.is_empty()),
                Verdict::Failed(found) => {
                    prop_assert_eq!(found.into_keys().collect::<BTreeSet<_>>(), failed.clone());
                    prop_assert!(!failed.is_empty());
                }
                Verdict::Missing(found) => {
                    prop_assert!(failed.is_empty() && !found.is_empty());
                    prop_assert_eq!(found, missing);
                }
            }
        }

        /// A result that comes later never makes fewer checks pass, unless it says that one failed.
        #[test]
        fn one_more_check_that_passes_never_does_harm(
            passed in proptest::collection::btree_set(0_usize..NAMES.len(), 0..=NAMES.len()),
            next in 0_usize..NAMES.len(),
        ) {
            let required = names(&NAMES);
            let mut results: Vec<ReportedCheck> =
                passed.iter().map(|index| reported(NAMES[*index], CheckResult::Passed, 1, 1)).collect();
            let before = verdict(&required, &results, 1, None);

            results.push(reported(NAMES[next], CheckResult::Passed, 1, 2));

            let missing = |verdict: &Verdict| match verdict {
                Verdict::Passed => BTreeSet::new(),
                Verdict::Missing(missing) => missing.clone(),
                Verdict::Failed(_) => names(&NAMES),
            };
            let after = verdict(&required, &results, 1, None);
            prop_assert!(missing(&after).is_subset(&missing(&before)));
            prop_assert!(!missing(&after).contains(&check(NAMES[next])));
        }
    }
}
