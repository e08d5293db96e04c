//! Resolves the values of an install's inputs from the vendor's values, the customer's answers in the install stack,
//! and the defaults.

use std::collections::BTreeMap;

use freehold_protocol::app_version::{AppVersion, Input, InputError};
use serde_json::Value;

use crate::suggestion::{hint, nearest};

/// All problems with the inputs of an install.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("{}", list_problems(.0))]
pub struct InputsError(pub Vec<InputProblem>);

/// A problem with one input.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum InputProblem {
    #[error("app `{app}` has no input `{input}`{}", hint(.nearest))]
    Unknown { app: String, input: String, nearest: Option<String> },
    #[error(
        "input `{input}` is answered by the customer, with parameter `{parameter}` of the install stack; leave it out"
    )]
    OfCustomer { input: String, parameter: String },
    #[error("input `{0}` is required; set it with `--input {0}=VALUE`")]
    Missing(String),
    #[error(transparent)]
    Wrong(#[from] InputError),
    #[error(
        "input `{input}` is answered by the customer, who has not answered it yet; the customer launches the \
         install's current template, with parameter `{parameter}`, and restarts the runner with a new config"
    )]
    Unanswered { input: String, parameter: String },
    #[error("{error}; the customer changes parameter `{parameter}` of the install stack")]
    WrongAnswer { error: InputError, parameter: String },
}

fn list_problems(problems: &[InputProblem]) -> String {
    if let [one] = problems {
        return one.to_string();
    }
    let numbered: Vec<String> = problems.iter().zip(1..).map(|(problem, nth)| format!("({nth}) {problem}")).collect();
    format!("{} mistakes in the inputs: {}", numbered.len(), numbered.join("; "))
}

/// Returns the value of every input that templates may use: the customer's answer or the vendor's value, else the
/// default, else the empty value of the input's type. The customer's sensitive inputs are left out, because the control
/// plane does not know their values.
///
/// # Errors
/// Every unknown, missing or mistyped input.
pub fn resolve_inputs(
    version: &AppVersion,
    given: &BTreeMap<String, Value>,
    answers: &BTreeMap<String, String>,
) -> Result<BTreeMap<String, Value>, InputsError> {
    let mut problems = misplaced(version, given);
    let mut values = BTreeMap::new();
    for input in version.inputs.iter().filter(|input| !(input.customer && input.sensitive)) {
        let value = if input.customer { answered(input, answers) } else { chosen(input, given.get(&input.name)) };
        match value {
            Ok(value) => {
                values.insert(input.name.clone(), value);
            }
            Err(problem) => problems.push(problem),
        }
    }
    if problems.is_empty() { Ok(values) } else { Err(InputsError(problems)) }
}

/// Checks the vendor's values before the customer has answered anything.
///
/// # Errors
/// Every unknown, missing or mistyped input, and every input that the customer answers instead of the vendor.
pub fn check_given(version: &AppVersion, given: &BTreeMap<String, Value>) -> Result<(), InputsError> {
    let vendors = version.inputs.iter().filter(|input| !input.customer);
    let wrong = vendors.filter_map(|input| chosen(input, given.get(&input.name)).err());
    let problems: Vec<InputProblem> = misplaced(version, given).into_iter().chain(wrong).collect();
    if problems.is_empty() { Ok(()) } else { Err(InputsError(problems)) }
}

/// Returns the problem with the customer's answer to `input`, if there is one. The answer to a sensitive input stays in
/// the customer's account, so it is not checked here.
pub fn wrong_answer(input: &Input, answers: &BTreeMap<String, String>) -> Option<InputProblem> {
    if input.sensitive { None } else { answered(input, answers).err() }
}

/// Returns the problem with the vendor's value of `input`, if there is one.
pub fn wrong_value(input: &Input, given: &BTreeMap<String, Value>) -> Option<InputProblem> {
    chosen(input, given.get(&input.name)).err()
}

/// Returns the stored values of the inputs of `version` that the vendor answers. The other values stay stored: they
/// belong to inputs that this version dropped or leaves to the customer, and another version may need them.
pub fn known_inputs(version: &AppVersion, stored: &BTreeMap<String, Value>) -> BTreeMap<String, Value> {
    stored
        .iter()
        .filter(|(name, _)| version.inputs.iter().any(|input| input.name == **name && !input.customer))
        .map(|(name, value)| (name.clone(), value.clone()))
        .collect()
}

/// Returns `old` with the values of `new` in place of its own. A null in `new` removes a value, so that the default
/// applies again.
pub fn merged(old: &BTreeMap<String, Value>, new: &BTreeMap<String, Value>) -> BTreeMap<String, Value> {
    let mut all = old.clone();
    for (name, value) in new {
        match value {
            Value::Null => all.remove(name),
            value => all.insert(name.clone(), value.clone()),
        };
    }
    all
}

/// Returns a problem for every value whose input is unknown or is answered by the customer.
fn misplaced(version: &AppVersion, given: &BTreeMap<String, Value>) -> Vec<InputProblem> {
    let problem = |name: &String| match version.inputs.iter().find(|input| input.name == *name) {
        Some(input) if input.customer => {
            Some(InputProblem::OfCustomer { input: name.clone(), parameter: input.parameter() })
        }
        Some(_) => None,
        None => {
            let nearest = nearest(name, version.inputs.iter().map(|input| input.name.as_str()));
            Some(InputProblem::Unknown { app: version.app.to_string(), input: name.clone(), nearest })
        }
    };
    given.keys().filter_map(problem).collect()
}

/// Returns the value of an input that the vendor answers.
fn chosen(input: &Input, given: Option<&Value>) -> Result<Value, InputProblem> {
    let given = given.filter(|value| !value.is_null());
    match given.or(input.usable_default()) {
        Some(value) => input.accept(value).map_err(|error| match error {
            InputError::Missing { input } => InputProblem::Missing(input),
            error @ InputError::Wrong { .. } => InputProblem::Wrong(error),
        }),
        None if input.required => Err(InputProblem::Missing(input.name.clone())),
        None => Ok(input.nothing()),
    }
}

/// Returns the value of an input that the customer answers. While there is no answer, the default applies, as it does
/// in the install stack.
fn answered(input: &Input, answers: &BTreeMap<String, String>) -> Result<Value, InputProblem> {
    let parameter = input.parameter();
    let answer = answers.get(&parameter).map(|text| Value::from(text.as_str()));
    match answer.as_ref().or(input.usable_default()) {
        Some(value) => input.accept(value).map_err(|error| match error {
            InputError::Missing { input } => InputProblem::Unanswered { input, parameter },
            error @ InputError::Wrong { .. } => InputProblem::WrongAnswer { error, parameter },
        }),
        None if input.required => Err(InputProblem::Unanswered { input: input.name.clone(), parameter }),
        None => Ok(input.nothing()),
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn version() -> AppVersion {
        serde_json::from_value(json!({
            "format": 1, "app": "demo",
            "inputs": [
                { "name": "days", "type": "number", "default": "7" },
                { "name": "domain", "type": "string", "required": true, "customer": true },
                { "name": "greeting", "type": "string", "required": true },
                { "name": "note", "type": "string" },
                { "name": "token", "type": "string", "required": true, "customer": true, "sensitive": true },
                { "name": "zones", "type": "number", "default": "2", "customer": true },
            ],
        }))
        .unwrap()
    }

    fn given(value: Value) -> BTreeMap<String, Value> {
        serde_json::from_value(value).unwrap()
    }

    fn answers(value: Value) -> BTreeMap<String, String> {
        serde_json::from_value(value).unwrap()
    }

    #[test]
    fn every_input_but_the_customers_secrets_has_a_value() {
        let answers = answers(json!({ "InputDomain": "globex.example", "InputZones": "3", "InputOld": "x" }));

        let values = resolve_inputs(&version(), &given(json!({ "greeting": "hi" })), &answers).unwrap();

        let expected = json!({ "days": 7, "domain": "globex.example", "greeting": "hi", "note": "", "zones": 3 });
        assert_eq!(json!(values), expected);
    }

    #[test]
    fn all_mistakes_are_reported_at_once() {
        let given = given(json!({ "greting": "hi", "days": "soon", "domain": "mine" }));

        let error = resolve_inputs(&version(), &given, &answers(json!({ "InputZones": "many" }))).unwrap_err();

        insta::assert_snapshot!(error.to_string().replace("; (", ";\n("), @r"
        6 mistakes in the inputs: (1) input `domain` is answered by the customer, with parameter `InputDomain` of the install stack; leave it out;
        (2) app `demo` has no input `greting`; did you mean `greeting`?;
        (3) input `days` must be a number, found a text of 4 characters;
        (4) input `domain` is answered by the customer, who has not answered it yet; the customer launches the install's current template, with parameter `InputDomain`, and restarts the runner with a new config;
        (5) input `greeting` is required; set it with `--input greeting=VALUE`;
        (6) input `zones` must be a number, found a text of 4 characters; the customer changes parameter `InputZones` of the install stack
        ");
    }

    #[test]
    fn one_mistake_stands_alone() {
        let wrong = |value: Value| check_given(&version(), &given(value)).unwrap_err().to_string();

        assert_eq!(wrong(json!({})), "input `greeting` is required; set it with `--input greeting=VALUE`");
        assert_eq!(
            wrong(json!({ "greeting": "hi", "greting": "x" })),
            "app `demo` has no input `greting`; did you mean `greeting`?"
        );
        assert_eq!(
            wrong(json!({ "greeting": "hi", "zones": 2 })),
            "input `zones` is answered by the customer, with parameter `InputZones` of the install stack; leave it out"
        );
        assert!(check_given(&version(), &given(json!({ "greeting": "hi", "days": null }))).is_ok());
    }

    #[test]
    fn a_stored_value_of_an_input_that_became_the_customers_is_not_used() {
        let stored = given(json!({ "greeting": "hi", "zones": 9, "gone": 1 }));

        assert_eq!(json!(known_inputs(&version(), &stored)), json!({ "greeting": "hi" }));
    }

    #[test]
    fn null_takes_a_value_away() {
        let all = merged(&given(json!({ "a": 1, "b": 2 })), &given(json!({ "a": null, "c": 3 })));

        assert_eq!(json!(all), json!({ "b": 2, "c": 3 }));
    }
}
