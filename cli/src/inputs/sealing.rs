//! Seals the values of sensitive inputs before they are sent, so that only the runner of the install can read them.

use std::collections::BTreeMap;

use freehold_client::calls;
use freehold_protocol::api::{AnsweredBy, InputView, InstallInputs, TenantView};
use freehold_protocol::app_version::{Input, InputError, InputKind};
use freehold_protocol::{AppName, Digest, InstallId, TenantName};
use freehold_sealing::{Place, seal};
use serde::Deserialize as _;
use serde_json::Value;

use crate::api::Api;
use crate::error::{Error, Result};

/// Returns `inputs` with the values of sensitive inputs sealed to the key of the install's runner. An input is sensitive
/// if it is sensitive in the install or in `version`, the version to deploy.
pub(crate) async fn seal_inputs(
    api: &Api,
    install: &InstallId,
    inputs: BTreeMap<String, Value>,
    version: Option<(&AppName, &Digest)>,
) -> Result<BTreeMap<String, Value>> {
    if inputs.is_empty() {
        return Ok(inputs);
    }
    let mut shown: InstallInputs = api.send(calls::show_inputs(install)).await?;
    if let Some((app, version)) = version.filter(|(_, version)| **version != shown.version) {
        add_sensitive(&mut shown.inputs, &schema(api, app, version).await?);
    }
    if !shown.inputs.iter().any(|view| is_sealed(view) && given(&inputs, &view.name).is_some()) {
        return Ok(inputs);
    }
    let tenant: TenantView = api.send(calls::show_tenant()).await?;
    with_sealed(&tenant.tenant, &shown, inputs)
}

/// Refuses values of sensitive inputs for an install that has no runner yet, before they leave this machine.
pub(crate) async fn refuse_sensitive(
    api: &Api,
    app: &AppName,
    install: &InstallId,
    inputs: &BTreeMap<String, Value>,
) -> Result<()> {
    if inputs.is_empty() {
        return Ok(());
    }
    let latest = api.send(calls::show_app(app)).await?.latest;
    let schema = schema(api, app, &latest).await?;
    let property = |name: &String| schema.get("properties")?.get(name);
    match inputs.keys().find(|name| property(name).is_some_and(is_sensitive)) {
        Some(name) => Err(no_key(install, name)),
        None => Ok(()),
    }
}

/// Returns the schema of the inputs of a version.
async fn schema(api: &Api, app: &AppName, version: &Digest) -> Result<Value> {
    Ok(api.send(calls::show_inputs_schema(app, version)).await?.schema)
}

/// Returns whether, according to its schema, the vendor sets the input and its value must be sealed.
fn is_sensitive(property: &Value) -> bool {
    property["x-freehold-sensitive"] == true && property["x-freehold-source"] == "vendor"
}

/// Replaces each input in `inputs` that `schema` marks as sensitive by an entry without a value, and adds the sensitive
/// inputs of `schema` that are missing.
fn add_sensitive(inputs: &mut Vec<InputView>, schema: &Value) {
    for (name, property) in schema["properties"].as_object().into_iter().flatten() {
        let Ok(kind) = InputKind::deserialize(&property["x-freehold-type"]) else { continue };
        if !is_sensitive(property) {
            continue;
        }
        let required = schema["required"].as_array().is_some_and(|all| all.iter().any(|one| one == name));
        inputs.retain(|view| view.name != *name);
        inputs.push(InputView {
            name: name.clone(),
            display_name: String::new(),
            kind,
            required,
            sensitive: true,
            parameter: None,
            from: AnsweredBy::Nobody,
            value: None,
            problem: None,
        });
    }
}

fn with_sealed(
    tenant: &TenantName,
    shown: &InstallInputs,
    mut inputs: BTreeMap<String, Value>,
) -> Result<BTreeMap<String, Value>> {
    let install = &shown.install;
    for view in shown.inputs.iter().filter(|view| is_sealed(view)) {
        let Some(value) = given(&inputs, &view.name) else { continue };
        let key = shown.sealing_key.as_ref().ok_or_else(|| no_key(install, &view.name))?;
        accepted(view, value).map_err(|error| Error::invalid(error.to_string()))?;
        let sealed = seal(value, key, Place { tenant, install, input: &view.name });
        let sealed = sealed.map_err(|error| {
            let name = &view.name;
            Error::invalid(format!("cannot seal input `{name}` to the runner of install `{install}`: {error}"))
        })?;
        inputs.insert(view.name.clone(), Value::from(String::from(sealed)));
    }
    Ok(inputs)
}

/// Returns the value converted to the type of the input, or an error when it cannot be converted. A value is checked
/// before it is sealed: afterwards, only the runner can check it.
pub(crate) fn accepted(view: &InputView, value: &Value) -> Result<Value, InputError> {
    let input = Input {
        name: view.name.clone(),
        display_name: String::new(),
        description: String::new(),
        group: String::new(),
        kind: view.kind,
        required: view.required,
        sensitive: true,
        customer: false,
        internal: false,
        default: None,
    };
    input.accept(value)
}

/// Returns whether the vendor sets the input and its value must be sealed.
const fn is_sealed(view: &InputView) -> bool {
    view.sensitive && view.parameter.is_none()
}

/// Returns the value of an input; `None` also for null, which removes a value.
fn given<'a>(inputs: &'a BTreeMap<String, Value>, name: &str) -> Option<&'a Value> {
    inputs.get(name).filter(|value| !value.is_null())
}

fn no_key(install: &InstallId, input: &str) -> Error {
    Error::invalid(format!(
        "input `{input}` is sensitive, and is sealed to the key of the runner of install `{install}`, which has not \
         announced itself yet; leave the input out, and when `freehold install show {install}` names a runner, give it with \
         `freehold install inputs {install} --input {input}=@FILE` (the first deploy waits for it if it is required)"
    ))
}

#[cfg(test)]
mod tests {
    use freehold_protocol::sealing::SealedValue;
    use freehold_sealing::OpeningKey;
    use serde_json::json;

    use super::*;

    fn inputs_with_key(key: Option<&OpeningKey>) -> InstallInputs {
        let version = format!("sha256:{}", "0".repeat(64));
        let input = |name: &str, kind: &str, sensitive: bool| json!({ "name": name, "type": kind, "required": false, "sensitive": sensitive, "from": "nobody" });
        let mut of_customer = input("zone", "string", true);
        of_customer["parameter"] = json!("InputZone");
        let inputs = [input("greeting", "string", false), input("key", "number", true), of_customer];
        let mut all = json!({ "install": "globex", "app": "shop", "version": version, "inputs": inputs });
        if let Some(key) = key {
            all["sealing_key"] = json!(key.sealing_key());
        }
        serde_json::from_value(all).unwrap()
    }

    fn inputs(value: Value) -> BTreeMap<String, Value> {
        serde_json::from_value(value).unwrap()
    }

    #[test]
    fn only_sensitive_values_of_the_vendor_are_sealed_and_the_runner_opens_them() {
        let (tenant, install) = ("acme".parse().unwrap(), "globex".parse().unwrap());
        let key = OpeningKey::from_bytes(&[7; 32]);
        let given = inputs(json!({ "greeting": "hi", "key": "4711", "zone": "x", "other": 1 }));

        let sent = with_sealed(&tenant, &inputs_with_key(Some(&key)), given).unwrap();
        let removed = with_sealed(&tenant, &inputs_with_key(None), inputs(json!({ "key": null }))).unwrap();

        let sealed = SealedValue::of(&sent["key"]).unwrap();
        let place = Place { tenant: &tenant, install: &install, input: "key" };
        assert_eq!(key.open(&sealed, place), Ok(json!("4711")));
        assert_eq!((&sent["greeting"], &sent["zone"], &sent["other"]), (&json!("hi"), &json!("x"), &json!(1)));
        assert_eq!(json!(removed), json!({ "key": null }));
    }

    #[test]
    fn a_value_is_sealed_that_is_sensitive_in_the_version_to_deploy_alone() {
        let (tenant, install) = ("acme".parse().unwrap(), "globex".parse().unwrap());
        let key = OpeningKey::from_bytes(&[7; 32]);
        let property = |source: &str| json!({ "x-freehold-type": "string", "x-freehold-source": source, "x-freehold-sensitive": true });
        let mut answer = inputs_with_key(Some(&key));
        add_sensitive(
            &mut answer.inputs,
            &json!({
                "properties": {
                    "greeting": property("vendor"), "gone": property("vendor"), "of_customer": property("customer"),
                    "plain": { "x-freehold-type": "string", "x-freehold-source": "vendor" },
                },
                "required": ["gone"],
            }),
        );

        let given = inputs(json!({ "greeting": "hi", "gone": "g", "of_customer": "c", "plain": "p" }));
        let sent = with_sealed(&tenant, &answer, given).unwrap();

        for (name, value) in [("greeting", "hi"), ("gone", "g")] {
            let sealed = SealedValue::of(&sent[name]).unwrap();
            let place = Place { tenant: &tenant, install: &install, input: name };
            assert_eq!(key.open(&sealed, place), Ok(json!(value)));
        }
        assert_eq!((&sent["of_customer"], &sent["plain"]), (&json!("c"), &json!("p")));
    }

    #[test]
    fn what_cannot_be_sealed_is_refused_without_its_value() {
        let tenant = "acme".parse().unwrap();
        let key = OpeningKey::from_bytes(&[7; 32]);
        let refused = |key: Option<&OpeningKey>, value: &str| {
            with_sealed(&tenant, &inputs_with_key(key), inputs(json!({ "key": value }))).unwrap_err().to_string()
        };

        assert_eq!(refused(Some(&key), "hunter22"), "input `key` must be a number, found a text of 8 characters");
        let early = refused(None, "4711");
        assert!(
            early.contains("`freehold install inputs globex --input key=@FILE`") && !early.contains("4711"),
            "{early}"
        );
    }
}
