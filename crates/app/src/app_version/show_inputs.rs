//! Shows the inputs of an app and of an install: who gives each value, the value itself, and which values are invalid.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use freehold_domain::inputs::{known_inputs, wrong_answer, wrong_value};
use freehold_domain::install::Install;
use freehold_domain::sealed_inputs::make_sensitive_as_in;
use freehold_protocol::api::{AnsweredBy, InputView, InputsSchema, InstallInputs};
use freehold_protocol::app_version::{Input, inputs_schema};
use freehold_protocol::sealing::SealedValue;
use freehold_protocol::{AppName, Digest};
use serde_json::Value;

use crate::AppError;
use crate::app_version::install_release::followed;
use crate::app_version::versions::{Version, Versions};
use crate::table;

/// The text that replaces a sensitive value.
pub const SET: &str = "(set)";

/// Returns the JSON Schema of a version's inputs.
///
/// # Errors
/// The errors of [`Versions::load`].
pub async fn show_inputs_schema(
    versions: &Versions,
    app: &AppName,
    version: &Digest,
) -> Result<InputsSchema, AppError> {
    let version = versions.load(app, Some(version)).await?;
    let schema = inputs_schema(&version.document.inputs, &version.document.input_groups);
    Ok(InputsSchema { app: app.clone(), version: version.version, schema })
}

/// Returns the version that the install follows, with more of its inputs marked as sensitive: an input is marked if it is sensitive
/// in that version, in the version that was last deployed completely, or in the version of a part of `install`.
/// The reason is that jobs of all these versions use the same value.
///
/// # Errors
/// The store's errors, or those of [`Versions::load`].
pub(crate) async fn version_for_values(
    versions: &Versions,
    app: &AppName,
    install: &Install,
) -> Result<Version, AppError> {
    let mut version = followed(versions, app, &install.follows).await?.version;
    let parts = table::parts(&*versions.store, &install.id).await?;
    let mut others: BTreeSet<&Digest> = parts.values().map(|part| &part.version).chain(install.version()).collect();
    others.remove(&version.version);
    for other in others {
        let other = versions.load(app, Some(other)).await?;
        make_sensitive_as_in(Arc::make_mut(&mut version.document), &other.document);
    }
    Ok(version)
}

/// Returns the inputs of the version that the install follows, with the install's values. An input counts as sensitive if it
/// is sensitive in that version, in the deployed version, or in the version of a deployed part.
///
/// # Errors
/// Invalid for an install without an app, or the store's errors.
pub async fn show_inputs(versions: &Versions, install: &Install) -> Result<InstallInputs, AppError> {
    let app = install.require_app()?;
    let version = version_for_values(versions, app, install).await?;
    let given = known_inputs(&version.document, &install.inputs);
    let inputs = version.document.inputs.iter().map(|input| view(input, &given, install)).collect();
    let sealing_key = install.sealing().key.cloned();
    Ok(InstallInputs { install: install.id.clone(), app: app.clone(), version: version.version, inputs, sealing_key })
}

/// Returns the values that the vendor or the customer gave, by input name. Defaults are left out.
pub fn by_name(inputs: &[InputView]) -> BTreeMap<String, Value> {
    let answered = inputs.iter().filter(|input| matches!(input.from, AnsweredBy::Vendor | AnsweredBy::Customer));
    answered.filter_map(|input| Some((input.name.clone(), input.value.clone()?))).collect()
}

fn view(input: &Input, given: &BTreeMap<String, Value>, install: &Install) -> InputView {
    let answers = &install.answers;
    let answer = || answers.get(&input.parameter()).map(|text| Value::from(text.as_str()));
    let (from, value) = match (input.customer, input.sensitive) {
        (true, true) => (AnsweredBy::CustomersAccount, None),
        (true, false) => (AnsweredBy::Customer, answer()),
        (false, _) => (AnsweredBy::Vendor, given.get(&input.name).cloned()),
    };
    let (from, value) = match (from, value) {
        (AnsweredBy::CustomersAccount, _) => (AnsweredBy::CustomersAccount, None),
        (from, Some(value)) => (from, Some(value)),
        (_, None) => match input.usable_default() {
            Some(default) => (AnsweredBy::Default, Some(default.clone())),
            None => (AnsweredBy::Nobody, None),
        },
    };
    let problem =
        if input.customer { wrong_answer(input, answers) } else { wrong_value(input, given, install.sealing()) };
    // A valid value is shown in the form that a deploy uses.
    let shown = value.map(|value| {
        let is_hidden = input.sensitive || SealedValue::of(&value).is_some();
        if is_hidden { SET.into() } else { input.accept(&value).unwrap_or(value) }
    });
    InputView {
        name: input.name.clone(),
        display_name: input.display_name.clone(),
        kind: input.kind,
        required: input.required,
        sensitive: input.sensitive,
        parameter: input.customer.then(|| input.parameter()),
        from,
        value: shown,
        problem: problem.map(|problem| problem.to_string()),
    }
}
