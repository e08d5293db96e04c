//! Records with events of a newer version are links of the chain: they are counted, and a change of one is found.

use serde_json::json;

use super::tests::{add, chain, found, id, key};
use super::*;

/// Returns an event that a later version wrote.
fn later(event: &serde_json::Value) -> AuditEvent {
    serde_json::from_value(event.clone()).unwrap()
}

/// Returns a chain whose records 3, 4 and 6 have events of a newer version; record 7 is the last one.
fn newer_chain() -> RecordsCopy {
    let mut copy = chain(&[1, 1]);
    let job = "job_00000000000000000001";
    let fence = json!({ "dispatch": 1, "receive": 1 });
    for (seq, event) in [
        (3, json!({ "event": "resumed", "job": job, "reason": "a text" })),
        (4, json!({ "event": "ended", "job": job, "fence": fence, "result": ["succeeded"] })),
        (5, json!({ "event": "sent", "reports": [] })),
        (6, json!({ "event": "resumed", "job": null })),
        (7, json!({ "event": "sent", "reports": [], "size": 7 })),
    ] {
        add(&mut copy, 1, seq, "globex", later(&event));
    }
    copy
}

#[test]
fn events_of_a_newer_version_are_links_of_a_whole_chain_and_are_counted() {
    let verified = verify(&newer_chain(), Known::default());

    assert_eq!(verified.problems, []);
    let expected = BTreeMap::from([("ended".to_owned(), vec![4]), ("resumed".to_owned(), vec![3, 6])]);
    assert_eq!(verified.newer_events, expected);
    assert_eq!((verified.records, verified.runners[0].records, verified.last.unwrap().seq), (7, 7, 7));
}

/// Changes single bits of the envelope, so of the payload, of its type and of the signature.
#[test]
fn a_changed_byte_of_an_event_of_a_newer_version_is_found_at_its_record() {
    let whole = newer_chain();
    for (seq, step) in [(3, 7), (6, 11)] {
        let name = record_name(seq);
        for at in (0..whole.records[&name].len()).step_by(step) {
            let mut copy = whole.clone();
            copy.records.get_mut(&name).unwrap()[at] ^= 1 << (at % 7);

            let verified = verify(&copy, Known::default());

            let first = verified.problems.first().map(|problem| problem.record);
            assert_eq!(first, Some(Some(seq)), "byte {at} of record {seq}");
            assert!(!verified.newer_events.values().flatten().any(|found| *found == seq), "byte {at} of record {seq}");
        }
    }
}

/// Somebody writes another event over a record, and calls it one of a newer version.
#[test]
fn a_record_cannot_be_hidden_behind_an_event_of_a_newer_version() {
    let whole = newer_chain();
    let mut renamed = whole.clone();
    let of_five = Envelope::parse(&whole.records[&record_name(5)]).unwrap();
    let mut record: AuditRecord = of_five.peek().unwrap();
    record.event = later(&json!({ "event": "resumed", "job": null }));
    let payload = Envelope::seal(&record, &[&key(2)]).unwrap().payload;
    let forged = Envelope { payload, ..of_five };
    renamed.records.insert(record_name(5), forged.to_json().unwrap().into_bytes());
    // With the stolen key, the next record does not follow.
    let mut signed = whole.clone();
    add(&mut signed, 1, 5, "globex", record.event.clone());
    let mut exchanged = whole;
    let third = exchanged.records[&record_name(3)].clone();
    exchanged.records.insert(record_name(6), third);

    let unsigned =
        format!("record 5 is not as its runner wrote it: signature of key `{}` does not match the message", id(1));
    let next = "record 6 does not follow record 5: it names another record as its predecessor";
    assert_eq!(found(&renamed), [unsigned.as_str(), next]);
    assert_eq!(found(&signed), [next]);
    assert_eq!(found(&exchanged)[0], "`000000000006.json` is not record 6: its runner wrote it as record 3");
}

#[test]
fn a_key_joins_by_a_newer_form_of_its_first_record_and_by_no_other_event_of_a_newer_version() {
    let first = |event: serde_json::Value| {
        let mut copy = chain(&[1, 1]);
        copy.keys.insert(id(2), PublicKey::from(key(2).verifying_key()).to_string());
        add(&mut copy, 2, 3, "globex", later(&event));
        let verified = verify(&copy, Known::default());
        (verified.problems.len(), verified.runners[1].host.clone())
    };

    assert_eq!(first(json!({ "event": "joined", "host": "i-2", "version": { "major": 9 } })), (0, "i-2".to_owned()));
    assert_eq!(first(json!({ "event": "resumed", "host": "i-2" })), (1, String::new()));
}
