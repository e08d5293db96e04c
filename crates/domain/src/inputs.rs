//! Resolves the values of an install's inputs from the vendor's values, the customer's answers in the install stack,
//! and the defaults.

use std::collections::{BTreeMap, BTreeSet};

use freehold_protocol::app_version::{AppVersion, Input, InputError, InputKind, Reference};
use freehold_protocol::limits::MAX_INPUTS_BYTES;
use freehold_protocol::sealing::SealedValue;
use serde_json::{Value, json};

use crate::sealed_inputs::{self, SealedProblem, Sealing};
use crate::suggestion::Known;

/// All problems with the inputs of an install.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("{}", list_problems(.0))]
pub struct InputsError(pub Vec<InputProblem>);

/// A problem with one input.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum InputProblem {
    #[error("app `{app}` has no input `{input}`; {}", .known.way_out("inputs"))]
    Unknown { app: String, input: String, known: Known },
    #[error(
        "input `{input}` is answered by the customer, with parameter `{parameter}` of the install stack; leave it out"
    )]
    OfCustomer { input: String, parameter: String },
    #[error("input `{0}` is required; set it with `--input {0}=VALUE`")]
    Missing(String),
    #[error(transparent)]
    Wrong(#[from] InputError),
    #[error(
        "the customer has not answered input `{input}` yet; ask the customer to launch the install's current template \
         with a value for parameter `{parameter}`, and, for a runner on another machine than the install stack's, to \
         restart it with a new config (`freehold install runner-config`)"
    )]
    Unanswered { input: String, parameter: String },
    #[error("{error}; ask the customer to change parameter `{parameter}` of the install stack")]
    WrongAnswer { error: InputError, parameter: String },
    #[error(transparent)]
    Sealed(#[from] SealedProblem),
    #[error(
        "the values of the inputs have {0} bytes in all, more than the {MAX_INPUTS_BYTES} that an install stores; put long \
         texts into files of the app"
    )]
    TooLarge(usize),
}

fn list_problems(problems: &[InputProblem]) -> String {
    if let [one] = problems {
        return one.to_string();
    }
    let numbered: Vec<String> = problems.iter().zip(1..).map(|(problem, nth)| format!("({nth}) {problem}")).collect();
    format!("{} mistakes in the inputs: {}", numbered.len(), numbered.join("; "))
}

/// The maximum size of a parameter's default, in bytes (AWS CloudFormation quotas, "Parameter value size").
const MAX_DEFAULT_BYTES: usize = 4096;

/// Returns the default of an input's parameter in the install stack, as text. A sensitive input has no default, because
/// a default is readable in the template.
///
/// # Errors
/// [`InputError`] for a default that does not fit the type of the input.
pub fn parameter_default(input: &Input) -> Result<Option<String>, InputError> {
    let Some(default) = input.usable_default().filter(|_| !input.sensitive) else {
        return Ok(None);
    };
    let value = input.accept(default)?;
    let words = |items: &[Value]| -> Option<String> {
        let plain = |text: &&str| !text.is_empty() && !text.contains(',') && text.trim() == *text;
        let texts: Option<Vec<&str>> = items.iter().map(|item| item.as_str().filter(plain)).collect();
        texts.map(|texts| texts.join(",")).filter(|text| !text.starts_with('['))
    };
    let text = match (&value, input.kind) {
        // A string in a `json` input keeps its quotes. The empty string means that there is no answer.
        (Value::String(text), kind) if kind != InputKind::Json || text.is_empty() => text.clone(),
        (Value::Array(items), InputKind::List) => words(items).unwrap_or_else(|| value.to_string()),
        (value, _) => value.to_string(),
    };
    Ok(Some(text).filter(|text| !text.is_empty()))
}

/// Returns why the install stack cannot have a default with this text; `None` if it can.
pub fn refused_default(text: &str) -> Option<String> {
    if text.len() > MAX_DEFAULT_BYTES {
        return Some(format!(
            "has {} bytes, more than the {MAX_DEFAULT_BYTES} of a stack parameter; make it shorter",
            text.len()
        ));
    }
    // CloudFormation would replace a dynamic reference with a parameter or a secret of the customer's account.
    if text.contains("{{resolve:") {
        return Some("must not contain a dynamic reference (`{{resolve:`); leave it out".to_owned());
    }
    text.contains(|c: char| c.is_control() && !matches!(c, '\n' | '\r' | '\t'))
        .then(|| "contains a control character; leave it out".to_owned())
}

/// Returns the value of every input that templates may use: the customer's answer or the vendor's value, else the
/// default, else the empty value of the input's type. The customer's sensitive inputs are left out, because the control
/// plane does not know their values. A value of the vendor that is sealed is returned sealed, together with
/// its type.
///
/// # Errors
/// Every unknown, missing or mistyped input.
pub fn resolve_inputs(
    version: &AppVersion,
    given: &BTreeMap<String, Value>,
    answers: &BTreeMap<String, String>,
    sealing: Sealing<'_>,
) -> Result<BTreeMap<String, Value>, InputsError> {
    resolve(version, given, answers, sealing, |_| true)
}

/// Returns the values of [`resolve_inputs`] for a job whose templates read only the inputs in `reads`. Another
/// sensitive input that lacks a value which the runner can read is left out.
///
/// # Errors
/// Those of [`resolve_inputs`] for all other inputs.
pub fn resolve_inputs_for(
    version: &AppVersion,
    given: &BTreeMap<String, Value>,
    answers: &BTreeMap<String, String>,
    sealing: Sealing<'_>,
    reads: &BTreeSet<Reference>,
) -> Result<BTreeMap<String, Value>, InputsError> {
    resolve(version, given, answers, sealing, |input| reads.contains(&Reference::Input(input.name.clone())))
}

fn resolve(
    version: &AppVersion,
    given: &BTreeMap<String, Value>,
    answers: &BTreeMap<String, String>,
    sealing: Sealing<'_>,
    is_read: impl Fn(&Input) -> bool,
) -> Result<BTreeMap<String, Value>, InputsError> {
    let mut problems = misplaced(version, given);
    problems.extend(sealed_inputs::check_size(given, sealing).err().map(Into::into));
    let mut values = BTreeMap::new();
    for input in version.inputs.iter().filter(|input| !(input.customer && input.sensitive)) {
        let value =
            if input.customer { answered(input, answers) } else { chosen(input, given.get(&input.name), sealing) };
        match value {
            Ok(value) => {
                values.insert(input.name.clone(), value);
            }
            Err(InputProblem::Sealed(problem)) if problem.asks_for_a_value() && !is_read(input) => {}
            Err(problem) => problems.push(problem),
        }
    }
    if problems.is_empty() { Ok(values) } else { Err(InputsError(problems)) }
}

/// Checks the vendor's values `new` together with the values `kept` that the install has, before the customer has
/// answered anything. A sensitive input may lack a value that the runner can read, because such a value can be given
/// only after the runner has announced itself; but a value in `new` must be one that the runner can read.
///
/// # Errors
/// Every unknown, missing or mistyped input, and every input that the customer answers instead of the vendor.
pub fn check_given(
    version: &AppVersion,
    kept: &BTreeMap<String, Value>,
    new: &BTreeMap<String, Value>,
    sealing: Sealing<'_>,
) -> Result<(), InputsError> {
    let given = merged(kept, new);
    let may_wait = |input: &Input, problem: &InputProblem| {
        let is_new = new.get(&input.name).is_some_and(|value| !value.is_null());
        !is_new && matches!(problem, InputProblem::Sealed(problem) if problem.asks_for_a_value())
    };
    let vendors = version.inputs.iter().filter(|input| !input.customer);
    let wrong = vendors.filter_map(|input| {
        chosen(input, given.get(&input.name), sealing).err().filter(|problem| !may_wait(input, problem))
    });
    let too_large = sealed_inputs::check_size(&given, sealing).err().map(Into::into);
    let too_large = too_large.into_iter().chain(check_size(&given).err());
    let problems: Vec<InputProblem> = misplaced(version, &given).into_iter().chain(wrong).chain(too_large).collect();
    if problems.is_empty() { Ok(()) } else { Err(InputsError(problems)) }
}

fn check_size(given: &BTreeMap<String, Value>) -> Result<(), InputProblem> {
    let bytes = given.iter().map(|(name, value)| name.len() + value.to_string().len()).sum();
    if bytes > MAX_INPUTS_BYTES { Err(InputProblem::TooLarge(bytes)) } else { Ok(()) }
}

/// Returns the problem with the customer's answer to `input`, if there is one. The answer to a sensitive input stays in
/// the customer's account, so it is not checked here.
pub fn wrong_answer(input: &Input, answers: &BTreeMap<String, String>) -> Option<InputProblem> {
    if input.sensitive { None } else { answered(input, answers).err() }
}

/// Returns the problem with the vendor's value of `input`, if there is one.
pub fn wrong_value(input: &Input, given: &BTreeMap<String, Value>, sealing: Sealing<'_>) -> Option<InputProblem> {
    chosen(input, given.get(&input.name), sealing).err()
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
            let known = Known::instead_of(name, version.inputs.iter().map(|input| input.name.as_str()));
            Some(InputProblem::Unknown { app: version.app.to_string(), input: name.clone(), known })
        }
    };
    given.keys().filter_map(problem).collect()
}

/// Returns the value of an input that the vendor answers. The runner checks the type of a sealed value, because nobody
/// else can read it.
fn chosen(input: &Input, given: Option<&Value>, sealing: Sealing<'_>) -> Result<Value, InputProblem> {
    let given = given.filter(|value| !value.is_null());
    if let Some(value) = given {
        sealed_inputs::check_value(input, value, sealing)?;
        if SealedValue::of(value).is_some() {
            // The runner converts the opened value to the type, so the same sealed value with another type is another
            // value.
            return Ok(json!({ "sealed": value, "type": input.kind.as_str() }));
        }
    }
    match given.or(input.usable_default()) {
        Some(value) => input.accept(value).map_err(|error| match error {
            InputError::Missing { input } => InputProblem::Missing(input),
            error @ InputError::Wrong { .. } => InputProblem::Wrong(error),
        }),
        None if input.required && input.sensitive => {
            let (input, install) = (input.name.clone(), sealing.install.clone());
            Err(SealedProblem::Missing { input, install }.into())
        }
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
    use super::*;
    use freehold_protocol::sealing::SealingKey;

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

    fn install() -> freehold_protocol::InstallId {
        "globex".parse().unwrap()
    }

    fn resolved(
        given: &BTreeMap<String, Value>,
        answers: &BTreeMap<String, String>,
    ) -> Result<BTreeMap<String, Value>, InputsError> {
        resolve_inputs(&version(), given, answers, Sealing { install: &install(), key: None })
    }

    fn checked(new: Value) -> Result<(), InputsError> {
        check_given(&version(), &BTreeMap::new(), &given(new), Sealing { install: &install(), key: None })
    }

    fn answers(value: Value) -> BTreeMap<String, String> {
        serde_json::from_value(value).unwrap()
    }

    #[test]
    fn every_input_but_the_customers_secrets_has_a_value() {
        let answers = answers(json!({ "InputDomain": "globex.example", "InputZones": "3", "InputOld": "x" }));

        let values = resolved(&given(json!({ "greeting": "hi" })), &answers).unwrap();

        let expected = json!({ "days": 7, "domain": "globex.example", "greeting": "hi", "note": "", "zones": 3 });
        assert_eq!(json!(values), expected);
    }

    #[test]
    fn all_mistakes_are_reported_at_once() {
        let given = given(json!({ "greting": "hi", "days": "soon", "domain": "mine" }));

        let error = resolved(&given, &answers(json!({ "InputZones": "many" }))).unwrap_err();

        insta::assert_snapshot!(error.to_string().replace("; (", ";\n("), @r"
        6 mistakes in the inputs: (1) input `domain` is answered by the customer, with parameter `InputDomain` of the install stack; leave it out;
        (2) app `demo` has no input `greting`; did you mean `greeting`?;
        (3) input `days` must be a number, found a text of 4 characters;
        (4) the customer has not answered input `domain` yet; ask the customer to launch the install's current template with a value for parameter `InputDomain`, and, for a runner on another machine than the install stack's, to restart it with a new config (`freehold install runner-config`);
        (5) input `greeting` is required; set it with `--input greeting=VALUE`;
        (6) input `zones` must be a number, found a text of 4 characters; ask the customer to change parameter `InputZones` of the install stack
        ");
    }

    #[test]
    fn the_values_of_an_install_are_limited_together() {
        let text = |bytes: usize| checked(json!({ "greeting": "x".repeat(bytes) }));

        assert_eq!(text(MAX_INPUTS_BYTES - 10), Ok(()));
        assert_eq!(
            text(MAX_INPUTS_BYTES - 9).unwrap_err().to_string(),
            "the values of the inputs have 204801 bytes in all, more than the 204800 that an install stores; put long texts \
             into files of the app"
        );
    }

    #[test]
    fn one_mistake_stands_alone() {
        let wrong = |value: Value| checked(value).unwrap_err().to_string();

        assert_eq!(wrong(json!({})), "input `greeting` is required; set it with `--input greeting=VALUE`");
        assert_eq!(
            wrong(json!({ "greeting": "hi", "greting": "x" })),
            "app `demo` has no input `greting`; did you mean `greeting`?"
        );
        assert_eq!(
            wrong(json!({ "greeting": "hi", "zones": 2 })),
            "input `zones` is answered by the customer, with parameter `InputZones` of the install stack; leave it out"
        );
        assert!(checked(json!({ "greeting": "hi", "days": null })).is_ok());
    }

    #[test]
    fn a_sensitive_value_may_be_given_later_but_not_in_clear() {
        let version: AppVersion = serde_json::from_value(json!({
            "format": 1, "app": "demo",
            "inputs": [
                { "name": "greeting", "type": "string", "required": true },
                { "name": "key", "type": "number", "required": true, "sensitive": true },
            ],
        }))
        .unwrap();
        let (install, key) = (install(), SealingKey::from_bytes([1; 32]));
        let sealed = |to: u8| json!(SealedValue::new(SealingKey::from_bytes([to; 32]), [1; 32], vec![2; 80]));
        let sealing = Sealing { install: &install, key: Some(&key) };
        let check = |kept: Value, new: Value| check_given(&version, &given(kept), &given(new), sealing);
        let words = |checked: Result<(), InputsError>| checked.unwrap_err().to_string();
        let resolve = |values: Value| resolve_inputs(&version, &given(values), &BTreeMap::new(), sealing);

        assert_eq!(check(json!({}), json!({ "greeting": "hi" })), Ok(()));
        assert_eq!(check(json!({ "key": sealed(2) }), json!({ "greeting": "hi" })), Ok(()));
        assert_eq!(check(json!({ "greeting": "hi", "key": sealed(2) }), json!({ "key": sealed(1) })), Ok(()));
        assert_eq!(check(json!({ "greeting": "hi", "key": sealed(2) }), json!({ "key": null })), Ok(()));
        let clear = words(check(json!({ "greeting": "hi" }), json!({ "key": 4711 })));
        assert!(clear.contains("its value is not sealed") && !clear.contains("4711"), "{clear}");
        assert!(
            words(check(json!({ "greeting": "hi" }), json!({ "key": sealed(2) }))).contains("sealed to another key")
        );
        assert_eq!(
            check(json!({}), json!({ "greeting": sealed(1) })),
            Ok(()),
            "it may be sensitive in another version"
        );
        assert_eq!(
            resolve(json!({ "greeting": "hi", "key": sealed(1) })).unwrap()["key"],
            json!({ "sealed": sealed(1), "type": "number" })
        );
        assert_eq!(
            resolve(json!({ "greeting": "hi" })).unwrap_err().to_string(),
            "input `key` is sensitive and required, and has no value, so the first deploy waits for it; when the runner \
             of install `globex` has announced itself, give it with `freehold install inputs globex --input key=@FILE`"
        );
        assert_eq!(
            resolve(json!({ "greeting": "hi", "key": sealed(2) })).unwrap_err().to_string(),
            "the value of input `key` is sealed to another key than that of the present runner of install `globex`, which \
             cannot read it; give it again with `freehold install inputs globex --input key=@FILE`, or remove it with \
             `--input key:=null`"
        );
    }

    #[test]
    fn a_sealed_value_is_not_among_the_values_of_an_order() {
        let version: AppVersion = serde_json::from_value(json!({
            "format": 1, "app": "demo",
            "inputs": [
                { "name": "greeting", "type": "string" },
                { "name": "key", "type": "string", "sensitive": true },
                { "name": "salt", "type": "string", "sensitive": true, "default": "pepper" },
                { "name": "token", "type": "string", "sensitive": true },
            ],
        }))
        .unwrap();
        let (install, key) = (install(), SealingKey::from_bytes([1; 32]));
        let value = json!(SealedValue::new(key.clone(), [1; 32], vec![2; 80]));
        let given = given(json!({ "greeting": "hi", "key": value }));
        let sealing = Sealing { install: &install, key: Some(&key) };
        let mut inputs = resolve_inputs(&version, &given, &BTreeMap::new(), sealing).unwrap();

        let taken = sealed_inputs::take_sealed(&version, &given, &mut inputs);

        assert_eq!(json!(inputs), json!({ "greeting": "hi", "salt": "pepper", "token": "" }));
        assert_eq!(taken, BTreeMap::from([("key".to_owned(), SealedValue::of(&value).unwrap().digest())]));
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
