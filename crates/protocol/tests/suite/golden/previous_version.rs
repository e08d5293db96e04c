//! The messages of the version before. Runners and control planes of two neighbouring versions work together, so each
//! reads what the other one writes. `tests/compatibility` reads the messages of this version as the version before did,
//! and finds the fields and variants that no golden file has.

use std::path::PathBuf;

use freehold_protocol::approval::{PlanRecord, WrittenDecision};
use freehold_protocol::audit::{AuditEvent, AuditRecord};
use freehold_protocol::licence::Licence;
use freehold_protocol::lineage::Lineage;
use freehold_protocol::notification::Notification;
use freehold_protocol::order::drift::DriftFound;
use freehold_protocol::order::health::Health;
use freehold_protocol::order::leftovers::Leftovers;
use freehold_protocol::succession::Succession;

use freehold_protocol::audit::Receipt;

use super::*;

/// Messages that the version before wrote and that are believed no more, with the reason.
const BROKEN: [(&str, &str); 0] = [];

/// Reads a message as its type, and writes it again.
type ReadAndWrite = fn(&Value) -> Result<Value, serde_json::Error>;

/// The types of messages, each with the word with which the names of its golden files begin; `-` for a type that only
/// `golden/fields` has.
const TYPES: [(&str, &str, ReadAndWrite); 24] = [
    ("AppVersion", "app", as_type::<AppVersion>),
    ("ArtifactGrant", "grant", as_type::<ArtifactGrant>),
    ("AuditRecord", "-", as_known_record),
    ("Cancel", "cancel", as_type::<Cancel>),
    ("Delegate", "-", as_type::<Delegate>),
    ("DriftFound", "-", as_type::<DriftFound>),
    ("Envelope", "envelope", as_type::<Envelope>),
    ("Finding", "-", as_type::<Finding>),
    ("Findings", "preflight", as_type::<Vec<Finding>>),
    ("Health", "-", as_type::<Health>),
    ("Leftovers", "-", as_type::<Leftovers>),
    ("Licence", "licence", as_type::<Licence>),
    ("Lineage", "lineage", as_type::<Lineage>),
    ("Notification", "notification", as_type::<Notification>),
    ("Order", "order", as_type::<Order>),
    ("PlanRecord", "-", as_type::<PlanRecord>),
    ("Receipt", "receipt", as_type::<Receipt>),
    ("Report", "report", as_type::<Report>),
    ("Retired", "retired", as_type::<Retired>),
    ("SignedContract", "signed", as_type::<SignedContract>),
    ("Statement", "statement", as_type::<Statement>),
    ("Succession", "-", as_type::<Succession>),
    ("Terms", "terms", as_type::<Terms>),
    ("WrittenDecision", "written", as_type::<WrittenDecision>),
];

fn as_type<T: Serialize + DeserializeOwned>(message: &Value) -> Result<Value, serde_json::Error> {
    serde_json::to_value(serde_json::from_value::<T>(message.clone())?)
}

/// Reads a record whose event this version must know, although it would read any other event as one of a newer version.
fn as_known_record(message: &Value) -> Result<Value, serde_json::Error> {
    let record: AuditRecord = serde_json::from_value(message.clone())?;
    if let AuditEvent::Newer(event) = &record.event {
        return Err(serde::de::Error::custom(format!("event `{}` is not known", event.event)));
    }
    serde_json::to_value(&record)
}

fn folder(of: &str) -> PathBuf {
    PathBuf::from(env!("CARGO_MANIFEST_DIR")).join("golden").join(of)
}

/// Returns the contents of the JSON files in a directory by name.
fn messages(of: &str) -> BTreeMap<String, Value> {
    let files = std::fs::read_dir(folder(of)).unwrap().map(|entry| entry.unwrap().path());
    let files = files.filter(|path| path.extension().is_some_and(|extension| extension == "json"));
    let message = |path: PathBuf| {
        let name = path.file_stem().unwrap().to_str().unwrap().to_owned();
        (name, serde_json::from_str(&std::fs::read_to_string(path).unwrap()).unwrap())
    };
    files.map(message).collect()
}

/// Returns the messages in a directory of `fields` that together have each field and each variant which no file of
/// `golden` itself has, with the name of their type.
fn fields(of: &str) -> Vec<(String, Value)> {
    let each = |(name, values): (String, Value)| match values {
        Value::Array(values) => values.into_iter().map(move |value| (name.clone(), value)),
        other => panic!("`{name}` is not a list: {other}"),
    };
    messages(of).into_iter().flat_map(each).collect()
}

/// Reads a message as the type with this name, or whose word its name begins with, and writes it again.
fn read_and_write(name: &str, message: &Value) -> Result<Value, serde_json::Error> {
    let word = name.split('-').next().unwrap_or(name);
    let known = TYPES.iter().find(|(of_type, of_files, _)| *of_type == name || *of_files == word);
    let (_, _, read_and_write) = known.unwrap_or_else(|| panic!("`{name}`: no type of messages is called like this"));
    read_and_write(message)
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

    assert!(kept.len() >= 84, "only {} messages are kept", kept.len());
    for (name, message) in kept.into_iter().chain(fields("previous/fields")) {
        let written = read_and_write(&name, &message).unwrap_or_else(|error| panic!("`{name}` is not read: {error}"));
        let mut found = Vec::new();
        lost(&message, &written, &name, &mut found);
        assert!(found.is_empty(), "{found:?}");
    }
}

#[test]
fn each_field_and_variant_is_written_as_it_was_read() {
    let values = fields("fields");

    assert!(values.len() >= 70, "only {} messages are kept", values.len());
    for (name, message) in values {
        let written = read_and_write(&name, &message).unwrap_or_else(|error| panic!("`{name}` is not read: {error}"));
        assert_eq!(written, message, "`{name}`");
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

#[test]
fn an_audit_record_with_a_field_or_a_kind_of_a_later_version_is_read_and_nothing_of_it_is_lost() {
    let mut newer = BTreeSet::new();
    let records = fields("fields").into_iter().filter(|(name, _)| name == "AuditRecord").map(|(_, record)| record);
    for record in records {
        let mut paths = Vec::new();
        objects(&record, "", &mut paths);
        for path in paths {
            let mut later = record.clone();
            let object = later.pointer_mut(&path).and_then(Value::as_object_mut).unwrap();
            object.insert("of_a_later_version".to_owned(), json!({ "x": 1 }));
            let mut found = Vec::new();
            if let Ok(written) = as_known_record(&later) {
                lost(&record, &written, &path, &mut found);
            } else {
                newer.insert(format!("{}{path}", record["event"]["event"].as_str().unwrap()));
                lost(&later, &as_type::<AuditRecord>(&later).unwrap(), &path, &mut found);
            }
            assert!(found.is_empty(), "{found:?}");
        }
        let mut later = record.clone();
        later["event"]["event"] = json!("of_a_later_version");
        assert!(as_known_record(&later).is_err() && as_type::<AuditRecord>(&later).unwrap() == later, "{later}");
    }

    // These are maps of another type, which have no fields.
    let maps = ["iam_used/event/answered", "iam_used/event/refused", "strangers/event/roles"];
    assert_eq!(newer, maps.map(str::to_owned).into());
}

/// A runner of an earlier version needs the job to find out which orders the event may be about: see
/// `newer_event.rs` of the runner.
#[test]
fn each_kind_of_event_but_four_names_its_job_or_null() {
    let records = fields("fields").into_iter().filter(|(name, _)| name == "AuditRecord").map(|(_, record)| record);
    let without = records.filter(|record| record["event"].get("job").is_none());
    let kinds: BTreeSet<String> = without.map(|record| record["event"]["event"].as_str().unwrap().to_owned()).collect();

    assert_eq!(kinds, ["joined", "key_replaced", "refused", "sent"].map(str::to_owned).into());
}
