//! The limits of an evaluation, with the real process: a policy that never ends, one that needs all memory, and one that
//! cannot be read.

#![cfg(test)]

use std::time::Duration;

use freehold_policy::{Answer, Evaluator, Limits, PolicyError, PolicyText, Verdict};
use serde_json::json;

fn policy(name: &str, rules: &str) -> PolicyText {
    PolicyText { file: format!("{name}.rego"), text: format!("package nuon\n{rules}\n") }
}

fn ask(policies: Vec<PolicyText>) -> Result<Vec<Answer>, PolicyError> {
    ask_within(Duration::from_secs(30), policies)
}

fn ask_within(time: Duration, policies: Vec<PolicyText>) -> Result<Vec<Answer>, PolicyError> {
    let limits = Limits { time, memory_mib: 200 };
    Evaluator::new(env!("CARGO_BIN_EXE_policy-asker"), limits).ask(policies, vec![json!({ "a": 1 }), json!({ "a": 2 })])
}

/// A rule that needs 10^15 steps, and hardly any memory.
const ENDLESS: &str = "deny contains \"x\" if {\n  some a in numbers.range(1, 100000)\n  some b in numbers.range(1, 100000)\n  some c in numbers.range(1, 100000)\n  a + b + c < 0\n}";
/// A rule that needs far more than 200 MiB.
const LARGE: &str = "deny contains \"x\" if count(numbers.range(1, 100000000)) < 0";

#[test]
fn each_policy_is_asked_about_each_document() {
    let counts =
        policy("a", "deny contains sprintf(\"%d\", [input.a]) if input.a > 0\nwarn contains \"w\" if input.a > 1");

    let answers = ask(vec![counts, policy("b", "")]).unwrap();

    let expected = Verdict { deny: vec!["1".into(), "2".into()], warn: vec!["w".into()] };
    assert_eq!(answers, [Answer::Says(expected), Answer::Says(Verdict::default())]);
}

#[test]
fn a_policy_that_never_ends_is_stopped_and_named() {
    let policies = vec![policy("first", ""), policy("endless", ENDLESS)];

    let error = ask_within(Duration::from_secs(10), policies).unwrap_err();

    assert_eq!(error, PolicyError::TooSlow { file: "endless.rego".into(), secs: 10 });
}

#[test]
fn a_policy_that_needs_all_memory_is_ended_and_named() {
    let error = ask_within(Duration::from_secs(60), vec![policy("large", LARGE)]).unwrap_err();

    let PolicyError::Crashed { file, mib: 200, .. } = error else { panic!("{error}") };
    assert_eq!(file, "large.rego");
}

#[test]
fn a_policy_that_cannot_be_read_says_where_and_the_others_are_asked() {
    let answers = ask(vec![policy("bad", "deny contains {"), policy("good", "deny contains \"x\"")]).unwrap();

    let Answer::Failed(why) = &answers[0] else { panic!("{answers:?}") };
    assert!(why.starts_with("bad.rego:3:"), "{why}");
    assert_eq!(answers[1], Answer::Says(Verdict { deny: vec!["x".into()], warn: vec![] }));
}

#[test]
fn a_program_that_is_not_there_is_named() {
    let limits = Limits { time: Duration::from_secs(1), memory_mib: 100 };

    let error = Evaluator::new("/nowhere/runner", limits).ask(vec![policy("a", "")], vec![json!({})]).unwrap_err();

    assert!(error.to_string().starts_with("cannot evaluate policies: `/nowhere/runner`: "), "{error}");
}
