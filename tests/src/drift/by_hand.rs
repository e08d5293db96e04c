//! Changes of a Terraform state by hand, and what a check has to say about each of them.

use std::collections::BTreeMap;

use anyhow::Context as _;
use fastrand::Rng;
use serde_json::{Value, json};

use super::BY_HAND;

/// What a check has to find, by address: what a deploy would do, and the sorted names of the attributes that differ.
pub type Expected = BTreeMap<String, (String, Vec<String>)>;

/// Returns the addresses of the resources in a state, as Terraform writes them.
///
/// # Errors
/// When the state is not as Terraform writes states.
pub fn instances(state: &Value) -> anyhow::Result<Vec<String>> {
    let mut all = Vec::new();
    for resource in state["resources"].as_array().context("a state without resources")? {
        for instance in resource["instances"].as_array().context("a resource without instances")? {
            all.push(address(resource, instance)?);
        }
    }
    Ok(all)
}

/// Changes drawn resources of a state; the others stay as they are. A change alters values, takes a name away, takes the
/// resource away, or adds a resource that the module does not have.
///
/// # Errors
/// When the state is not as Terraform writes states.
pub fn change_some(state: &mut Value, rng: &mut Rng) -> anyhow::Result<Expected> {
    let mut expected = Expected::new();
    let resources = state["resources"].as_array_mut().context("a state without resources")?;
    for resource in resources.iter_mut() {
        let whole = resource.clone();
        let instances = resource["instances"].as_array_mut().context("a resource without instances")?;
        let mut left = Vec::new();
        for mut instance in std::mem::take(instances) {
            if rng.u8(..3) > 0 {
                left.push(instance);
                continue;
            }
            let address = address(&whole, &instance)?;
            if rng.u8(..4) == 0 {
                expected.insert(address, ("create".to_owned(), Vec::new()));
                continue;
            }
            expected.insert(address, altered(&mut instance["attributes"], rng)?);
            left.push(instance);
        }
        *instances = left;
    }
    resources.retain(|resource| resource["instances"].as_array().is_some_and(|left| !left.is_empty()));
    if let Some(strange) = resources.first().filter(|_| rng.u8(..3) == 0) {
        let mut strange = strange.clone();
        strange["name"] = json!("strange");
        for instance in strange["instances"].as_array().into_iter().flatten() {
            expected.insert(address(&strange, instance)?, ("delete".to_owned(), Vec::new()));
        }
        resources.push(strange);
    }
    state["serial"] = json!(state["serial"].as_u64().context("a state without a serial")? + 1);
    Ok(expected)
}

fn address(resource: &Value, instance: &Value) -> anyhow::Result<String> {
    let module = resource["module"].as_str().map_or(String::new(), |module| format!("{module}."));
    let (kind, name) = (resource["type"].as_str(), resource["name"].as_str());
    let (kind, name) = (kind.context("a resource without a type")?, name.context("a resource without a name")?);
    let index = match &instance["index_key"] {
        Value::Null => String::new(),
        index => format!("[{index}]"),
    };
    Ok(format!("{module}{kind}.{name}{index}"))
}

/// Alters drawn attributes of one resource; returns what a deploy would do with it, and their names.
fn altered(attributes: &mut Value, rng: &mut Rng) -> anyhow::Result<(String, Vec<String>)> {
    let mut names = Vec::new();
    let replaces = rng.u8(..4) == 0;
    if replaces {
        attributes["triggers_replace"] = json!({ "value": by_hand(rng), "type": "string" });
        names.push("triggers_replace".to_owned());
    }
    if !replaces || rng.bool() {
        let input = attributes["input"]["value"].as_object().context("an input that is not an object")?;
        let mut keys: Vec<String> = input.keys().cloned().collect();
        rng.shuffle(&mut keys);
        keys.truncate(1 + rng.usize(..3));
        for key in &keys {
            names.push(alter(&mut attributes["input"], key, rng)?);
        }
        // A resource of Terraform itself gives its input out again.
        attributes["output"] = attributes["input"].clone();
    }
    names.sort();
    Ok((if replaces { "replace" } else { "update" }.to_owned(), names))
}

/// Alters one name of an input, with its type; returns the path of what differs.
fn alter(input: &mut Value, key: &str, rng: &mut Rng) -> anyhow::Result<String> {
    let value = &mut input["value"][key];
    match value {
        Value::Object(map) => {
            let mut names: Vec<&String> = map.keys().collect();
            rng.shuffle(&mut names);
            let name = (*names.first().context("an empty map")?).clone();
            map.insert(name.clone(), by_hand(rng));
            return Ok(format!("input.{key}.{name}"));
        }
        Value::Array(list) => *list.first_mut().context("an empty list")? = by_hand(rng),
        Value::Bool(switch) => *switch = !*switch,
        Value::Number(number) => *value = json!(number.as_u64().context("a number below 0")? + 1000),
        Value::String(_) if rng.u8(..4) == 0 => {
            input["value"].as_object_mut().context("an input that is not an object")?.remove(key);
            input["type"][1].as_object_mut().context("an input without a type")?.remove(key);
        }
        Value::String(_) | Value::Null => *value = by_hand(rng),
    }
    Ok(format!("input.{key}"))
}

fn by_hand(rng: &mut Rng) -> Value {
    json!(format!("{BY_HAND}-{}", rng.u32(..)))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn state() -> Value {
        let attributes = || {
            let input = json!({ "value": { "a": "1", "m": { "b": "2" } }, "type": ["object", { "a": "string" }] });
            json!({ "input": input, "output": input, "triggers_replace": { "value": "t", "type": "string" } })
        };
        let instance = |index: Value| json!({ "index_key": index, "attributes": attributes() });
        json!({ "serial": 1, "resources": [
            { "type": "terraform_data", "name": "one", "instances": [instance(Value::Null)] },
            { "type": "terraform_data", "name": "many", "module": "module.m", "instances": [instance(json!(0)), instance(json!("k"))] },
        ]})
    }

    #[test]
    fn addresses_are_written_as_terraform_writes_them() {
        let all = instances(&state()).unwrap();

        let of_module = ["module.m.terraform_data.many[0]", "module.m.terraform_data.many[\"k\"]"];
        assert_eq!(all, [&["terraform_data.one"][..], &of_module].concat());
    }

    #[test]
    fn what_is_not_expected_stays_as_it_is_and_what_is_expected_does_not() {
        let by_address = |state: &Value| -> BTreeMap<String, Value> {
            let resources = state["resources"].as_array().unwrap();
            let each =
                resources.iter().flat_map(|of| of["instances"].as_array().unwrap().iter().map(move |one| (of, one)));
            each.map(|(of, one)| (address(of, one).unwrap(), one.clone())).collect()
        };
        let before = by_address(&state());
        for seed in 0..200 {
            let mut changed = state();

            let expected = change_some(&mut changed, &mut Rng::with_seed(seed)).unwrap();

            let after = by_address(&changed);
            let all = before.keys().chain(after.keys());
            let differing: std::collections::BTreeSet<_> =
                all.filter(|one| before.get(*one) != after.get(*one)).collect();
            assert_eq!(differing, expected.keys().collect(), "seed {seed}");
        }
    }
}
