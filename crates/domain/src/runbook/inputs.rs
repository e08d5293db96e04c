//! The texts that a person gives to a run of a runbook or an action.

use std::collections::BTreeMap;

use freehold_protocol::app_version::{Action, RunInput, Runbook, StepKind};
use freehold_protocol::limits::MAX_RUN_INPUT_BYTES;

use crate::suggestion::Known;

/// The reason why inputs of a run are refused. `of` names the runbook or the action.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum RunInputsError {
    #[error("{of} has no input `{input}`; {}", .known.way_out("inputs"))]
    Unknown { of: String, input: String, known: Known },
    #[error("{of} requires input `{input}`; give it with `--input {input}=VALUE`")]
    Missing { of: String, input: String },
    #[error("the inputs have {bytes} bytes, more than the maximum of {MAX_RUN_INPUT_BYTES}; shorten them")]
    TooLong { bytes: usize },
}

/// Returns the values of a run's inputs: those that are given, and the defaults of the others.
///
/// # Errors
/// [`RunInputsError`] for an input that the runbook does not have or that is missing, and for inputs that are too long.
pub fn runbook_inputs(
    runbook: &Runbook,
    given: &BTreeMap<String, String>,
) -> Result<BTreeMap<String, String>, RunInputsError> {
    values(&format!("runbook `{}`", runbook.name), &runbook.inputs, given)
}

/// Returns the values of a run's inputs as [`runbook_inputs`] does, if each action among the steps accepts them too.
/// `actions` are those of the app version.
///
/// # Errors
/// [`RunInputsError`].
pub fn inputs_of_run(
    runbook: &Runbook,
    actions: &[Action],
    given: &BTreeMap<String, String>,
) -> Result<BTreeMap<String, String>, RunInputsError> {
    let inputs = runbook_inputs(runbook, given)?;
    for step in &runbook.steps {
        if let StepKind::Action { action } = &step.does
            && let Some(action) = actions.iter().find(|known| known.name == *action)
        {
            inputs_of_step(action, &inputs)?;
        }
    }
    Ok(inputs)
}

/// Returns the values of the inputs of an action that a person runs, as [`runbook_inputs`] does.
///
/// # Errors
/// [`RunInputsError`].
pub fn action_inputs(
    action: &Action,
    given: &BTreeMap<String, String>,
) -> Result<BTreeMap<String, String>, RunInputsError> {
    values(&format!("action `{}`", action.name), &action.inputs, given)
}

/// Returns the values of the inputs of an action that runs as a step of a runbook: the run's inputs of the same names, and the
/// defaults of the others.
///
/// # Errors
/// [`RunInputsError`] for an input that is missing.
pub fn inputs_of_step(
    action: &Action,
    of_run: &BTreeMap<String, String>,
) -> Result<BTreeMap<String, String>, RunInputsError> {
    let is_own = |name: &String| action.inputs.iter().any(|input| input.name == *name);
    let given = of_run.iter().filter(|(name, _)| is_own(name));
    action_inputs(action, &given.map(|(name, value)| (name.clone(), value.clone())).collect())
}

/// Returns all inputs of the action: `values`, and the defaults of those that are not in it. A run that an event or a
/// schedule starts has only defaults.
pub fn with_defaults(action: &Action, values: &BTreeMap<String, String>) -> BTreeMap<String, String> {
    let value = |input: &RunInput| values.get(&input.name).unwrap_or(&input.default).clone();
    action.inputs.iter().map(|input| (input.name.clone(), value(input))).collect()
}

fn values(
    of: &str,
    inputs: &[RunInput],
    given: &BTreeMap<String, String>,
) -> Result<BTreeMap<String, String>, RunInputsError> {
    for input in given.keys() {
        if !inputs.iter().any(|known| known.name == *input) {
            let known = Known::instead_of(input, inputs.iter().map(|known| known.name.as_str()));
            return Err(RunInputsError::Unknown { of: of.to_owned(), input: input.clone(), known });
        }
    }
    let value = |input: &RunInput| match given.get(&input.name).filter(|value| !value.is_empty()) {
        None if input.required && input.default.is_empty() => {
            Err(RunInputsError::Missing { of: of.to_owned(), input: input.name.clone() })
        }
        given => Ok((input.name.clone(), given.unwrap_or(&input.default).clone())),
    };
    let values: BTreeMap<String, String> = inputs.iter().map(value).collect::<Result<_, _>>()?;
    let bytes = values.iter().map(|(name, value)| name.len() + value.len()).sum();
    if bytes > MAX_RUN_INPUT_BYTES {
        return Err(RunInputsError::TooLong { bytes });
    }
    Ok(values)
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn given<const N: usize>(inputs: [(&str, &str); N]) -> BTreeMap<String, String> {
        inputs.map(|(name, value)| (name.to_owned(), value.to_owned())).into()
    }

    fn action() -> Action {
        let inputs = json!([{ "name": "ticket", "required": true }, { "name": "count", "default": "3" }]);
        serde_json::from_value(json!({ "name": "fix", "timeout_secs": 60, "steps": [], "inputs": inputs })).unwrap()
    }

    #[test]
    fn inputs_have_their_defaults_and_wrong_ones_are_named() {
        let runbook: Runbook =
            serde_json::from_value(json!({ "name": "fix", "steps": [], "inputs": action().inputs })).unwrap();
        let refused = |given| runbook_inputs(&runbook, &given).unwrap_err().to_string();

        let values = runbook_inputs(&runbook, &given([("ticket", "OPS-1")])).unwrap();

        assert_eq!(values, given([("ticket", "OPS-1"), ("count", "3")]));
        assert_eq!(refused(given([("tiket", "x")])), "runbook `fix` has no input `tiket`; did you mean `ticket`?");
        assert!(refused(given([])).ends_with("give it with `--input ticket=VALUE`"));
        assert!(refused(given([("ticket", "")])).ends_with("give it with `--input ticket=VALUE`"));
        let long = "x".repeat(MAX_RUN_INPUT_BYTES);
        assert!(refused(given([("count", &long), ("ticket", "1")])).contains("have 16396 bytes"));
    }

    #[test]
    fn a_step_of_a_runbook_gives_its_action_the_inputs_that_it_has() {
        let of_run = given([("ticket", "OPS-1"), ("snapshot", "s-1")]);

        let values = inputs_of_step(&action(), &of_run).unwrap();
        let by_hand = action_inputs(&action(), &of_run).unwrap_err().to_string();
        let missing = inputs_of_step(&action(), &given([])).unwrap_err().to_string();

        assert_eq!(values, given([("ticket", "OPS-1"), ("count", "3")]));
        assert!(by_hand.starts_with("action `fix` has no input `snapshot`; "), "{by_hand}");
        assert_eq!(missing, "action `fix` requires input `ticket`; give it with `--input ticket=VALUE`");
    }

    #[test]
    fn a_run_is_refused_if_an_action_of_its_steps_lacks_an_input() {
        let runbook: Runbook = serde_json::from_value(json!({
            "name": "fix", "inputs": [{ "name": "ticket" }],
            "steps": [{ "does": { "type": "action", "action": "fix" } }],
        }))
        .unwrap();

        let missing = inputs_of_run(&runbook, &[action()], &given([])).unwrap_err();
        let values = inputs_of_run(&runbook, &[action()], &given([("ticket", "OPS-1")])).unwrap();

        assert_eq!(missing.to_string(), "action `fix` requires input `ticket`; give it with `--input ticket=VALUE`");
        assert_eq!(values, given([("ticket", "OPS-1")]));
    }

    #[test]
    fn a_run_that_nobody_gives_inputs_has_the_defaults() {
        assert_eq!(with_defaults(&action(), &given([])), given([("ticket", ""), ("count", "3")]));
        assert_eq!(with_defaults(&action(), &given([("count", "5")])), given([("ticket", ""), ("count", "5")]));
    }
}
