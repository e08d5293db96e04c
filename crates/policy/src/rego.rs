//! Reads one policy, and evaluates it on one input document, in this process.

use regorus::{Engine, Value};

use crate::builtin_names::absent_call;
use crate::cidr;
use crate::error::PolicyError;
use crate::iteration::{self, tolerant};
use crate::messages::messages;
use crate::question::PolicyText;
use crate::{MAX_POLICY_BYTES, PACKAGES, Verdict};

/// A module and its rule. When this rule is evaluated, the engine analyses the policy without evaluating it.
const ANALYSED: (&str, &str) = ("package freehold_analysed\nis_done := true\n", "data.freehold_analysed.is_done");

/// A policy that was read.
struct Loaded {
    engine: Engine,
    /// The path of its package, such as `data.nuon`.
    package: String,
    is_denying: bool,
    is_warning: bool,
}

/// Checks that a policy can be read. Returns whether it has a rule `deny` or `warn`: without these rules, a policy
/// never has a message.
///
/// # Errors
/// [`PolicyError`] with the position of the mistake.
pub fn check(policy: &PolicyText) -> Result<bool, PolicyError> {
    let loaded = load(policy)?;
    Ok(loaded.is_denying || loaded.is_warning)
}

/// Evaluates a policy. A built-in function that fails, such as `to_number("x")`, has no value, and so makes its rule
/// not apply: these are the semantics of OPA.
///
/// # Errors
/// [`PolicyError`] when the policy cannot be read, or cannot be evaluated with this input.
pub fn evaluate(policy: &PolicyText, input: &serde_json::Value) -> Result<Verdict, PolicyError> {
    answer(policy, input, false)
}

/// Evaluates a policy as [`evaluate`] does, except that a built-in function that fails is an error.
///
/// # Errors
/// [`PolicyError`].
pub fn evaluate_strictly(policy: &PolicyText, input: &serde_json::Value) -> Result<Verdict, PolicyError> {
    answer(policy, input, true)
}

fn answer(policy: &PolicyText, input: &serde_json::Value, is_strict: bool) -> Result<Verdict, PolicyError> {
    let read = load(policy)?;
    // A policy that can be read can also be read in this form, unless it is written in a way that `tolerant` does not
    // expect.
    let other = PolicyText { text: tolerant(&policy.text), ..policy.clone() };
    let mut loaded = load_text(&other).unwrap_or(read);
    loaded.engine.set_strict_builtin_errors(is_strict);
    loaded.engine.set_input(Value::from(input.clone()));
    let mut verdict = Verdict::default();
    if loaded.is_denying {
        verdict.deny = rule(&mut loaded, policy, "deny", "denied")?;
    }
    if loaded.is_warning {
        verdict.warn = rule(&mut loaded, policy, "warn", "a warning without a message")?;
    }
    Ok(verdict)
}

fn load(policy: &PolicyText) -> Result<Loaded, PolicyError> {
    let PolicyText { file, text } = policy;
    if text.len() > MAX_POLICY_BYTES {
        let message = format!("the policy has {} bytes, more than {MAX_POLICY_BYTES}", text.len());
        return Err(PolicyError::Unusable { file: file.clone(), message });
    }
    if let Some(absent) = absent_call(text) {
        let (line, column) = position(text, absent.offset);
        let message = format!("function `{}` does not exist: {}", absent.name, absent.reason);
        return Err(PolicyError::Wrong { file: file.clone(), line, column, message });
    }
    load_text(policy)
}

fn load_text(policy: &PolicyText) -> Result<Loaded, PolicyError> {
    let PolicyText { file, text } = policy;
    let wrong = |error: &dyn std::fmt::Display| PolicyError::of_engine(file, &error.to_string());
    let (mut engine, package) = parse(file, text)?;
    let package = match package.strip_prefix("data.") {
        Some(name) if PACKAGES.contains(&name) => package,
        other => {
            let package = other.unwrap_or(&package).to_owned();
            return Err(PolicyError::OtherPackage { file: file.clone(), package });
        }
    };
    let has = |rule| engine.has_declared_rule_rooted_at(file, rule).map_err(|error| wrong(&error));
    let (is_denying, is_warning) = (has("deny")?, has("warn")?);
    // Some mistakes are found by the analysis, such as a variable that nothing defines.
    engine.add_policy(String::new(), ANALYSED.0.to_owned()).map_err(|error| wrong(&error))?;
    engine.eval_rule(ANALYSED.1.to_owned()).map_err(|error| wrong(&error))?;
    Ok(Loaded { engine, package, is_denying, is_warning })
}

/// Reads a text as Rego of OPA 1. If that fails, reads it as older Rego, with rules such as `deny[msg] { ... }`. For a
/// text that is neither, the error is the mistake according to the current version.
fn parse(file: &str, text: &str) -> Result<(Engine, String), PolicyError> {
    let read = |is_old| {
        let mut engine = Engine::new();
        cidr::add_to(&mut engine)?;
        iteration::add_to(&mut engine)?;
        engine.add_policy("freehold_format.rego".to_owned(), iteration::SPRINTF.0.to_owned())?;
        engine.set_rego_v0(is_old);
        engine.add_policy(file.to_owned(), text.to_owned()).map(|package| (engine, package))
    };
    match read(false) {
        Ok(read) => Ok(read),
        Err(error) => read(true).map_err(|_| PolicyError::of_engine(file, &error.to_string())),
    }
}

fn rule(loaded: &mut Loaded, policy: &PolicyText, name: &str, what: &str) -> Result<Vec<String>, PolicyError> {
    let value = loaded.engine.eval_rule(format!("{}.{name}", loaded.package));
    let value = value.map_err(|error| PolicyError::of_engine(&policy.file, &error.to_string()))?;
    if value == Value::Undefined {
        return Ok(Vec::new());
    }
    let unwritable = |error: &dyn std::fmt::Display| PolicyError::of_engine(&policy.file, &error.to_string());
    let text = value.to_json_str().map_err(|error| unwritable(&error))?;
    let value = serde_json::from_str(&text).map_err(|error| unwritable(&error))?;
    Ok(messages(&value, what))
}

/// Returns the line and the column of a position in bytes, both from 1.
fn position(text: &str, offset: usize) -> (u32, u32) {
    let before = text.get(..offset).unwrap_or(text);
    let line = before.matches('\n').count() + 1;
    let column = before.rsplit('\n').next().unwrap_or_default().chars().count() + 1;
    (u32::try_from(line).unwrap_or(u32::MAX), u32::try_from(column).unwrap_or(u32::MAX))
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn policy(text: &str) -> PolicyText {
        PolicyText { file: "policies/a.rego".into(), text: text.into() }
    }

    fn verdict_of(text: &str, input: &serde_json::Value) -> Verdict {
        evaluate(&policy(text), input).unwrap()
    }

    #[test]
    fn deny_and_warn_are_asked_about_the_input() {
        let text = r#"package nuon
            deny contains msg if {
                some one in input.plan.resource_changes
                one.type == "aws_eip"
                "delete" in one.change.actions
                msg := sprintf("%s must not be deleted", [one.address])
            }
            warn contains "no tags" if not input.plan.tags"#;
        let change =
            |action: &str| json!({ "address": "aws_eip.a", "type": "aws_eip", "change": { "actions": [action] } });

        let denied = verdict_of(text, &json!({ "plan": { "resource_changes": [change("delete")], "tags": 1 } }));
        let warned = verdict_of(text, &json!({ "plan": { "resource_changes": [change("create")] } }));

        assert_eq!(denied, Verdict { deny: vec!["aws_eip.a must not be deleted".into()], warn: vec![] });
        assert_eq!(warned, Verdict { deny: vec![], warn: vec!["no tags".into()] });
    }

    #[test]
    fn rules_of_older_rego_are_asked_too() {
        let text = "package nuon\ndeny[msg] { input.a > 1; msg := \"large\" }";

        assert_eq!(verdict_of(text, &json!({ "a": 2 })).deny, ["large"]);
        assert_eq!(verdict_of(text, &json!({ "a": 1 })).deny, Vec::<String>::new());
        assert_eq!(verdict_of("package freehold\ndeny[msg] if { msg := \"x\" }", &json!({})).deny, ["x"]);
        assert_eq!(verdict_of("package freehold\ndeny if input.a", &json!({ "a": true })).deny, ["denied"]);
    }

    #[test]
    fn a_function_that_fails_makes_its_rule_not_apply() {
        let text = "package nuon\ndeny contains \"x\" if to_number(input.a) > 1";

        assert_eq!(verdict_of(text, &json!({ "a": "x" })), Verdict::default());
        assert!(evaluate_strictly(&policy(text), &json!({ "a": "x" })).is_err());
        assert_eq!(verdict_of(text, &json!({ "a": "2" })).deny, ["x"]);
    }

    #[test]
    fn a_message_that_does_not_fit_its_format_denies_all_the_same() {
        for call in [
            r#"sprintf("%+v", [input.a])"#,
            r#"sprintf("%d", [1.5])"#,
            r#"sprintf("none", [1])"#,
            r#"sprintf("%s", [])"#,
        ] {
            for text in [
                format!("package nuon\ndeny contains {call} if input.a"),
                format!("package nuon\ndeny[msg] {{ input.a; msg := {call} }}"),
            ] {
                assert_eq!(verdict_of(&text, &json!({ "a": { "b": 1 } })).deny.len(), 1, "{text}");
            }
        }
        let text = "package nuon\ndeny contains sprintf(\"%s sprintf(\", [input.a]) if input.a";
        assert_eq!(verdict_of(text, &json!({ "a": "x" })).deny, ["x sprintf("]);
    }

    #[test]
    fn a_loop_over_what_is_no_collection_does_not_apply() {
        let text =
            "package nuon\ndeny contains x if {\n  some x in input.a # why\n}\nwarn contains \"w\" if not input.b";

        assert_eq!(verdict_of(text, &json!({ "a": null })), Verdict { deny: vec![], warn: vec!["w".into()] });
        assert_eq!(verdict_of(text, &json!({ "a": "b", "b": 1 })), Verdict::default());
        assert_eq!(verdict_of(text, &json!({ "a": ["b"], "b": 1 })).deny, ["b"]);
    }

    #[test]
    fn a_mistake_has_its_file_line_and_column() {
        for (text, place) in [
            ("package nuon\n\ndeny contains msg if {\n  msg := \n}\n", "policies/a.rego:4:7: expecting `}`"),
            ("package nuon\nx := http.send({})\n", "policies/a.rego:2:6: function `http.send` does not exist"),
            (
                "package nuon\ndeny contains \"x\" if y == 1\n",
                "policies/a.rego:2:22: use of undefined variable `y` is unsafe",
            ),
            (
                "package nuon\ndeny contains \"x\" if {\n  some v in input.a; v != 1\n  sum([v | some v in input.b]) > 2\n}\n",
                "policies/a.rego:4:17: var `v` used before definition below; give the variable of the comprehension",
            ),
            ("package main\ndeny contains 1\n", "policies/a.rego: the policy is in package `main`"),
        ] {
            let error = check(&policy(text)).unwrap_err().to_string();

            assert!(error.starts_with(place), "{error}");
        }
    }

    #[test]
    fn a_function_that_does_not_exist_stops_the_policy() {
        let error = evaluate(&policy("package nuon\ndeny contains \"x\" if nothing(input)\n"), &json!({})).unwrap_err();

        assert_eq!(error.to_string(), "policies/a.rego:2:29: could not find function nothing");
    }

    #[test]
    fn a_policy_without_rules_is_known() {
        let nameless = PolicyText { file: String::new(), text: "package nuon\nwarn contains \"x\"\n".into() };
        assert_eq!(check(&nameless), Ok(true));
        assert_eq!(check(&policy("package nuon\npass contains \"x\"\n")), Ok(false));
        assert_eq!(check(&policy("package nuon\nwarn contains \"x\"\n")), Ok(true));
        assert_eq!(verdict_of("package nuon\n", &json!({})), Verdict::default());
    }
}
