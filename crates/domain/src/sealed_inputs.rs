//! The vendor's sensitive inputs. Their values are sealed to the key of the install's runner before they reach the control
//! plane, which can neither read nor check them.

use std::collections::{BTreeMap, BTreeSet};

use freehold_protocol::app_version::{AppVersion, Input};
use freehold_protocol::limits::MAX_SEALED_BYTES;
use freehold_protocol::sealing::{SealedValue, SealingKey};
use freehold_protocol::{Digest, InstallId};
use serde_json::Value;

/// An install, and the key to which its sensitive inputs are sealed. There is no key before the first hello of a runner.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Sealing<'a> {
    pub install: &'a InstallId,
    pub key: Option<&'a SealingKey>,
}

/// A problem with the value of one sensitive input, or with all of them.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum SealedProblem {
    #[error(
        "input `{input}` is sensitive and required, and has no value, so the first deploy waits for it; when the runner of \
         install `{install}` has announced itself, give it with `freehold install inputs {install} --input {input}=@FILE`"
    )]
    Missing { input: String, install: InstallId },
    #[error(
        "input `{input}` is sensitive, and its value is not sealed; when the runner of install `{install}` has announced \
         itself, give it with `freehold install inputs {install} --input {input}=@FILE`, which seals it; to deploy a \
         version that is not the newest, give it with `--input` of `freehold deploy`"
    )]
    Clear { input: String, install: InstallId },
    #[error(
        "the value of input `{input}` is sealed to another key than that of the present runner of install `{install}`, \
         which cannot read it; give it again with `freehold install inputs {install} --input {input}=@FILE`, or remove it \
         with `--input {input}:=null`"
    )]
    OtherKey { input: String, install: InstallId },
    #[error(
        "the sealed values of install `{install}` have {bytes} bytes in all; at most {MAX_SEALED_BYTES} are stored, so \
         shorten the values of its sensitive inputs"
    )]
    TooLarge { install: InstallId, bytes: usize },
}

impl SealedProblem {
    /// Returns whether the input has no value that the present runner can read, so that the vendor has to give one.
    pub const fn asks_for_a_value(&self) -> bool {
        match self {
            Self::Missing { .. } | Self::Clear { .. } | Self::OtherKey { .. } => true,
            Self::TooLarge { .. } => false,
        }
    }
}

/// Checks the vendor's value of `input`. The value of a sensitive input must be sealed. The value of another input may be
/// sealed: an install has parts of several versions, and an input may be sensitive in only some of them.
///
/// # Errors
/// A [`SealedProblem`] about this input.
pub fn check_value(input: &Input, given: &Value, sealing: Sealing<'_>) -> Result<(), SealedProblem> {
    let (name, install) = (input.name.clone(), sealing.install.clone());
    match (input.sensitive, SealedValue::of(given)) {
        (_, Some(sealed)) if Some(sealed.key()) == sealing.key => Ok(()),
        (_, Some(_)) => Err(SealedProblem::OtherKey { input: name, install }),
        (true, None) => Err(SealedProblem::Clear { input: name, install }),
        (false, None) => Ok(()),
    }
}

/// Checks the size of all sealed values among `given`.
///
/// # Errors
/// [`SealedProblem::TooLarge`].
pub fn check_size(given: &BTreeMap<String, Value>, sealing: Sealing<'_>) -> Result<(), SealedProblem> {
    let sealed = given.values().filter(|value| SealedValue::of(value).is_some());
    let bytes = sealed.filter_map(Value::as_str).map(str::len).sum();
    if bytes > MAX_SEALED_BYTES {
        return Err(SealedProblem::TooLarge { install: sealing.install.clone(), bytes });
    }
    Ok(())
}

/// Returns whether the vendor gives the value of `input`, sealed.
pub const fn is_sealed(input: &Input) -> bool {
    input.sensitive && !input.customer
}

/// Marks as sensitive each input of `version` that the vendor answers and that is sensitive in `other`.
pub fn make_sensitive_as_in(version: &mut AppVersion, other: &AppVersion) {
    for input in version.inputs.iter_mut().filter(|input| !input.customer) {
        input.sensitive |= other.inputs.iter().any(|one| one.name == input.name && is_sealed(one));
    }
}

/// Returns the names of the inputs whose sealed values the first deploy of `version` needs.
pub fn needed(version: &AppVersion) -> BTreeSet<String> {
    let needed = version.inputs.iter().filter(|input| is_sealed(input) && input.required);
    needed.filter(|input| input.usable_default().is_none()).map(|input| input.name.clone()).collect()
}

/// Returns the first of the inputs `needed` that has no value which is sealed to the present key.
pub fn first_missing<'a>(
    needed: &'a BTreeSet<String>,
    given: &BTreeMap<String, Value>,
    sealing: Sealing<'_>,
) -> Option<&'a str> {
    let is_there = |name: &String| {
        let sealed = given.get(name).and_then(SealedValue::of);
        sealed.is_some_and(|sealed| Some(sealed.key()) == sealing.key)
    };
    needed.iter().find(|name| !is_there(name)).map(String::as_str)
}

/// Removes from `resolved` the inputs whose values in `given` are sealed, and returns the digests of these values by
/// input. The inputs that stay in `resolved` may be written into an order.
pub fn take_sealed(
    version: &AppVersion,
    given: &BTreeMap<String, Value>,
    resolved: &mut BTreeMap<String, Value>,
) -> BTreeMap<String, Digest> {
    let mut sealed = BTreeMap::new();
    for input in version.inputs.iter().filter(|input| !input.customer) {
        if let Some(value) = given.get(&input.name).and_then(SealedValue::of)
            && resolved.remove(&input.name).is_some()
        {
            sealed.insert(input.name.clone(), value.digest());
        }
    }
    sealed
}

/// Returns the sealed values whose digests an order names, to be attached to its message; `None` if the install has
/// another value by now.
pub fn attached(named: &BTreeMap<String, Digest>, given: &BTreeMap<String, Value>) -> Option<Vec<String>> {
    let value = |(name, digest): (&String, &Digest)| {
        let sealed = given.get(name).and_then(SealedValue::of)?;
        (sealed.digest() == *digest).then(|| String::from(sealed))
    };
    named.iter().map(value).collect()
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn version() -> AppVersion {
        serde_json::from_value(json!({
            "format": 1, "app": "demo",
            "inputs": [
                { "name": "greeting", "type": "string", "required": true },
                { "name": "key", "type": "string", "required": true, "sensitive": true },
                { "name": "salt", "type": "string", "required": true, "sensitive": true, "default": "pepper" },
                { "name": "token", "type": "string", "sensitive": true },
                { "name": "zone", "type": "string", "required": true, "sensitive": true, "customer": true },
            ],
        }))
        .unwrap()
    }

    fn sealed(to: u8) -> Value {
        json!(SealedValue::new(SealingKey::from_bytes([to; 32]), [1; 32], vec![2; 80]))
    }

    #[test]
    fn the_value_of_a_sensitive_input_is_sealed_and_every_sealed_value_is_sealed_to_the_present_key() {
        let (install, key) = ("globex".parse().unwrap(), SealingKey::from_bytes([1; 32]));
        let version = version();
        let check = |name: &str, value: &Value, key: Option<&SealingKey>| {
            let input = version.inputs.iter().find(|input| input.name == name).unwrap();
            check_value(input, value, Sealing { install: &install, key })
        };
        let of = |name: &str| (name.to_owned(), install.clone());

        assert_eq!(check("key", &sealed(1), Some(&key)), Ok(()));
        assert_eq!(check("greeting", &json!("hi"), None), Ok(()));
        let (input, install) = of("key");
        let other = SealedProblem::OtherKey { input: input.clone(), install: install.clone() };
        for present in [None, Some(&key)] {
            assert_eq!(check("key", &sealed(2), present), Err(other.clone()));
            let clear = SealedProblem::Clear { input: input.clone(), install: install.clone() };
            assert_eq!(check("key", &json!("hunter2"), present), Err(clear));
        }
        let (input, install) = of("greeting");
        assert_eq!(check("greeting", &sealed(1), Some(&key)), Ok(()));
        assert_eq!(check("greeting", &sealed(2), Some(&key)), Err(SealedProblem::OtherKey { input, install }));
    }

    #[test]
    fn the_first_deploy_waits_for_what_is_required_and_has_no_default() {
        let (install, key) = ("globex".parse().unwrap(), SealingKey::from_bytes([1; 32]));
        let needed = needed(&version());
        let missing = |given: &[(&str, Value)], key: Option<&SealingKey>| {
            let given = given.iter().map(|(name, value)| ((*name).to_owned(), value.clone())).collect();
            first_missing(&needed, &given, Sealing { install: &install, key }).map(str::to_owned)
        };

        assert_eq!(needed, BTreeSet::from(["key".to_owned()]));
        assert_eq!(missing(&[], Some(&key)).as_deref(), Some("key"));
        assert_eq!(missing(&[("key", sealed(2))], Some(&key)).as_deref(), Some("key"));
        assert_eq!(missing(&[("key", sealed(1))], None).as_deref(), Some("key"));
        assert_eq!(missing(&[("key", sealed(1)), ("token", sealed(2))], Some(&key)), None);
    }

    #[test]
    fn more_sealed_values_than_fit_are_refused() {
        let (install, key) = ("globex".parse().unwrap(), SealingKey::from_bytes([1; 32]));
        let long = |bytes: usize| json!(SealedValue::new(key.clone(), [1; 32], vec![2; bytes]));
        let check = |values: &[Value]| {
            let given = values.iter().enumerate().map(|(n, value)| (n.to_string(), value.clone())).collect();
            check_size(&given, Sealing { install: &install, key: Some(&key) })
        };

        assert_eq!(check(&[long(30_000), long(30_000), json!("x".repeat(100_000))]), Ok(()));
        assert!(matches!(check(&[long(50_000), long(50_000)]), Err(SealedProblem::TooLarge { .. })));
    }

    #[test]
    fn an_order_gets_the_values_that_it_names_and_no_later_ones() {
        let given = |to: u8| BTreeMap::from([("key".to_owned(), sealed(to)), ("token".to_owned(), sealed(3))]);
        let named = BTreeMap::from([("key".to_owned(), SealedValue::of(&sealed(1)).unwrap().digest())]);

        assert_eq!(attached(&named, &given(1)), Some(vec![sealed(1).as_str().unwrap().to_owned()]));
        assert_eq!(attached(&BTreeMap::new(), &given(1)), Some(Vec::new()));
        for given in [given(2), BTreeMap::new()] {
            assert_eq!(attached(&named, &given), None);
        }
    }
}
