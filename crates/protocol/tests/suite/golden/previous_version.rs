//! The messages of the version before. Runners and control planes of two neighbouring versions work together, so each
//! reads what the other one writes.

use std::path::PathBuf;

use super::*;

/// Messages that the version before wrote and that are believed no more, with the reason.
const BROKEN: [(&str, &str); 4] = [
    ("envelope-certificate", "the certificate of a delegate key lists its uses (decision 0072)"),
    ("envelope-order", "its certificate lists the uses of the key (decision 0072)"),
    ("envelope-order-attached", "its certificate lists the uses of the key (decision 0072)"),
    ("lineage", "the certificates in it list the uses of their keys (decision 0072)"),
];

fn folder(of: &str) -> PathBuf {
    PathBuf::from(env!("CARGO_MANIFEST_DIR")).join("golden").join(of)
}

/// Returns the messages in a directory by name.
fn messages(of: &str) -> BTreeMap<String, Value> {
    let files = std::fs::read_dir(folder(of)).unwrap().map(|entry| entry.unwrap().path());
    let files = files.filter(|path| path.extension().is_some_and(|extension| extension == "json"));
    let message = |path: PathBuf| {
        let name = path.file_stem().unwrap().to_str().unwrap().to_owned();
        (name, serde_json::from_str(&std::fs::read_to_string(path).unwrap()).unwrap())
    };
    files.map(message).collect()
}

/// Reads a message as its type, which its name begins with, and writes it again.
fn read_and_write(name: &str, message: &Value) -> Result<Value, serde_json::Error> {
    fn as_type<T: Serialize + DeserializeOwned>(message: &Value) -> Result<Value, serde_json::Error> {
        serde_json::to_value(serde_json::from_value::<T>(message.clone())?)
    }
    match name.split('-').next().unwrap_or(name) {
        "order" => as_type::<Order>(message),
        "report" => as_type::<Report>(message),
        "grant" => as_type::<ArtifactGrant>(message),
        "cancel" => as_type::<Cancel>(message),
        "retired" => as_type::<Retired>(message),
        "envelope" => as_type::<Envelope>(message),
        "terms" => as_type::<Terms>(message),
        "signed" => as_type::<SignedContract>(message),
        "statement" => as_type::<Statement>(message),
        "app" => as_type::<AppVersion>(message),
        "notification" => as_type::<freehold_protocol::notification::Notification>(message),
        "preflight" => as_type::<Vec<Finding>>(message),
        "lineage" => as_type::<freehold_protocol::lineage::Lineage>(message),
        other => panic!("`{name}`: no type is known for messages that begin with `{other}`"),
    }
}

/// Adds the paths of what `later` lacks of `earlier`, or has with another value.
fn lost(earlier: &Value, later: &Value, path: &str, found: &mut Vec<String>) {
    match (earlier, later) {
        (Value::Object(earlier), Value::Object(later)) => {
            for (name, value) in earlier {
                let path = format!("{path}.{name}");
                match later.get(name) {
                    Some(later) => lost(value, later, &path, found),
                    None => found.push(path),
                }
            }
        }
        (Value::Array(earlier), Value::Array(later)) if earlier.len() == later.len() => {
            for (at, (earlier, later)) in earlier.iter().zip(later).enumerate() {
                lost(earlier, later, &format!("{path}[{at}]"), found);
            }
        }
        (earlier, later) if earlier == later => {}
        _ => found.push(path.to_owned()),
    }
}

#[test]
fn what_the_version_before_wrote_is_read_and_nothing_of_it_is_lost() {
    let kept = messages("previous");

    assert!(kept.len() >= 55, "only {} messages are kept", kept.len());
    for (name, message) in kept {
        let written = read_and_write(&name, &message).unwrap_or_else(|error| panic!("`{name}` is not read: {error}"));
        let mut found = Vec::new();
        lost(&message, &written, &name, &mut found);
        assert!(found.is_empty(), "{found:?}");
    }
}

#[test]
fn a_message_has_all_that_the_version_before_wrote_in_it() {
    let now = messages("");

    for (name, message) in messages("previous") {
        let today = now.get(&name).unwrap_or_else(|| panic!("`{name}` is not written any more"));
        let mut found = Vec::new();
        lost(&message, today, &name, &mut found);
        let reason = BROKEN.iter().find(|(broken, _)| *broken == name);

        assert_eq!(found.is_empty(), reason.is_none(), "`{name}`: {found:?}, {reason:?}");
    }
}

/// Adds the paths of all objects in `value`, as JSON pointers.
fn objects(value: &Value, path: &str, found: &mut Vec<String>) {
    match value {
        Value::Object(fields) => {
            found.push(path.to_owned());
            fields.iter().for_each(|(name, value)| objects(value, &format!("{path}/{name}"), found));
        }
        Value::Array(values) => {
            values.iter().enumerate().for_each(|(at, value)| objects(value, &format!("{path}/{at}"), found));
        }
        _ => {}
    }
}

/// Parts of an order or a report that are refused with a field that the reader does not know, with the reason.
const REFUSING: [(&str, &str); 7] = [
    ("order/receipt", "it is an envelope of its own, and nothing unsigned stands in one"),
    ("order/receipt/signatures", "they are those of an envelope"),
    ("order/secrets", "a secret is a part of the app: a runner does all that is said of it, or nothing"),
    ("order/sensitive_inputs", "an input is a part of the app, as a secret is"),
    ("report/body/event/facts", "they become a build's provenance, which is signed whole"),
    ("report/body/event/facts/resolved", "they become a build's provenance, which is signed whole"),
    ("report/body/proof", "what proves who reports is understood whole"),
];

#[test]
fn an_order_and_a_report_with_a_field_of_a_later_version_are_read_as_if_it_were_not_there() {
    let mut refused = BTreeMap::new();
    let mut read = 0;
    for (name, message) in messages("") {
        let kind = name.split('-').next().unwrap_or(&name);
        if !["order", "report", "grant", "cancel", "retired"].contains(&kind) {
            continue;
        }
        let mut paths = Vec::new();
        objects(&message, "", &mut paths);
        for path in paths {
            let mut later = message.clone();
            let object = later.pointer_mut(&path).and_then(Value::as_object_mut).unwrap();
            object.insert("of_a_later_version".to_owned(), json!({ "x": 1 }));

            match read_and_write(&name, &later) {
                Ok(written) => {
                    let mut found = Vec::new();
                    lost(&message, &written, &name, &mut found);
                    assert!(found.is_empty(), "{found:?}");
                    read += 1;
                }
                // Else it is a map of another type, which has no fields.
                Err(error) if error.to_string().starts_with("unknown field") => {
                    let part: Vec<_> = path.split('/').filter(|part| part.parse::<usize>().is_err()).collect();
                    refused.insert(format!("{kind}{}", part.join("/")), error.to_string());
                }
                Err(_) => {}
            }
        }
    }

    assert!(read > 100, "only {read} messages with a later field were read");
    let expected: Vec<_> = REFUSING.iter().map(|(part, _)| (*part).to_owned()).collect();
    assert_eq!(refused.keys().cloned().collect::<Vec<_>>(), expected, "{refused:#?}");
}
