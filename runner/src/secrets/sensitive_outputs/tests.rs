//! Tests of the sensitive outputs that a runner keeps, with a property over jobs, attempts and removals.

use std::collections::BTreeSet;

use proptest::prelude::*;

use super::*;

fn kept(sandbox: bool, var_name: &str) -> KeptOutputs {
    KeptOutputs {
        part: "net".parse().unwrap(),
        sandbox,
        var_name: var_name.into(),
        serial: 3,
        job: "job_00000000000000000001".parse().unwrap(),
        fence: Fence { dispatch: 1, receive: 2 },
        digests: BTreeMap::new(),
    }
}

#[test]
fn the_outputs_that_the_version_before_kept_are_read_and_nothing_of_them_is_lost() {
    crate::testing::check_golden_values::<Kept>("Kept");
}

#[test]
fn outputs_are_where_templates_look_beside_the_plain_ones() {
    let secret = BTreeMap::from([("token".to_owned(), json!({ "user": "a", "password": "b" }))]);
    let mut of_component = json!({ "nuon": { "components": { "net": { "outputs": { "vpc": 1 } } } } });
    let mut of_sandbox = json!({ "nuon": { "sandbox": { "outputs": { "vpc": 1 } } } });

    put(&mut of_component, &kept(false, "network"), &secret);
    put(&mut of_sandbox, &kept(true, ""), &secret);

    let components = &of_component["nuon"]["components"];
    assert_eq!(components["net"]["outputs"], json!({ "vpc": 1, "token": secret["token"] }));
    assert_eq!(components["network"]["outputs"]["token"], secret["token"]);
    assert_eq!(of_sandbox["nuon"]["sandbox"]["outputs"], json!({ "vpc": 1, "token": secret["token"] }));
    assert_eq!(of_sandbox["nuon"]["install"]["sandbox"]["outputs"]["token"], secret["token"]);
}

#[test]
fn a_digest_changes_with_the_value_the_name_and_the_key() {
    let digest = |key: &str, name: &str, value: Value| {
        let kept = Kept { key: key.into(), outputs: BTreeMap::from([(name.into(), value)]), former: Vec::new() };
        kept.digests().into_values().next().unwrap()
    };
    let one = digest("k", "token", json!("x"));

    assert_eq!(one, digest("k", "token", json!("x")));
    assert_ne!(one, digest("l", "token", json!("x")));
    assert_ne!(one, digest("k", "tokens", json!("x")));
    assert_ne!(one, digest("k", "token", json!("y")));
    assert_ne!(digest("k", "a", json!(12)), digest("k", "a", json!("12")));
    assert_ne!(one, Digest::of(b"\"x\""));
    assert_ne!(new_key().unwrap(), new_key().unwrap());
}

#[test]
fn replaced_values_are_known_for_redaction_and_bounded() {
    let outputs = |n: usize| BTreeMap::from([("a".to_owned(), json!(n)), ("b".to_owned(), json!("same"))]);
    let first = Kept { key: "k".into(), outputs: outputs(0), former: Vec::new() };

    let again = first.replaced_by(outputs(0));
    let last = (1..100).fold(again, |kept, n| kept.replaced_by(outputs(n)));

    assert_eq!((last.key.as_str(), &last.outputs["a"]), ("k", &json!(99)));
    assert_eq!((last.former.len(), &last.former[0], &last.former[31]), (FORMER_VALUES, &json!(98), &json!(67)));
}

#[test]
fn former_values_never_make_what_is_kept_too_large() {
    let outputs = |n: usize| BTreeMap::from([("bundle".to_owned(), json!(n.to_string().repeat(MAX_BYTES / 4)))]);
    let first = Kept { key: new_key().unwrap(), outputs: outputs(0), former: Vec::new() };

    let last = (1..4).fold(first, |kept, n| kept.replaced_by(outputs(n)));

    assert!(json!(last).to_string().len() <= MAX_BYTES);
    assert_eq!((&last.outputs, last.former.len()), (&outputs(3), 2));
    assert_eq!(last.former[0], outputs(2)["bundle"]);
}

#[test]
fn the_name_of_an_object_has_its_serial() {
    let name = object_of(&kept(false, ""));

    assert_eq!(name, "locked/net/00000000000000000003.job_00000000000000000001.1.2.json");
    assert_eq!(serial_of(&name, &prefix(&"net".parse().unwrap())), Some(3));
    assert_eq!(serial_of("locked/net/notes.txt", "locked/net/"), None);
}

/// What happens to one part: a job with a new serial, a further attempt at the last job, or a removal.
#[derive(Debug, Clone, Copy)]
enum Event {
    /// `counts` says whether the control plane records the success.
    Job {
        counts: bool,
    },
    /// Another attempt at the last job, after the control plane recorded the first one or not.
    Again {
        counts: bool,
    },
    /// An attempt at the job before the last one ends late. Its success is not recorded.
    Late,
    Removal,
}

fn events() -> impl Strategy<Value = Vec<Event>> {
    let one = prop_oneof![
        4 => any::<bool>().prop_map(|counts| Event::Job { counts }),
        3 => any::<bool>().prop_map(|counts| Event::Again { counts }),
        2 => Just(Event::Late),
        1 => Just(Event::Removal),
    ];
    proptest::collection::vec(one, 0..40)
}

proptest! {
    /// Whatever is delivered again, recorded or lost: the object that the next order names is there, and at most the
    /// objects of two serials are.
    #[test]
    fn what_counts_is_kept_and_what_is_over_goes(events in events()) {
        let mut objects = BTreeSet::new();
        let (mut serial, mut attempt, mut was_counted) = (0_u64, 0_u32, false);
        // The attempt that was recorded, and the serials that the orders of the last two jobs named.
        let (mut counted, mut named, mut named_before) = (None, None, None);
        for event in events {
            match event {
                Event::Job { .. } => {
                    (serial, attempt, was_counted) = (serial + 1, 1, false);
                    named_before = named;
                    named = counted.map(|(of, _): (u64, u32)| of);
                }
                Event::Again { .. } if attempt > 0 => attempt += 1,
                Event::Late if attempt > 0 && serial > 1 => {
                    objects.insert((serial - 1, 100 + attempt));
                    objects.retain(|(of, _)| !is_over(*of, serial - 1, named_before));
                }
                Event::Again { .. } | Event::Late => continue,
                Event::Removal => {
                    serial += 1;
                    objects.retain(|(of, _): &(u64, u32)| *of > serial);
                    prop_assert!(objects.is_empty());
                    (attempt, counted, named) = (0, None, None);
                }
            }
            if let Event::Job { counts } | Event::Again { counts } = event {
                objects.insert((serial, attempt));
                objects.retain(|(of, _)| !is_over(*of, serial, named));
                // The control plane records one success of a job.
                if counts && !was_counted {
                    (counted, was_counted) = (Some((serial, attempt)), true);
                }
                prop_assert!(objects.iter().map(|(of, _)| of).collect::<BTreeSet<_>>().len() <= 2);
            }
            if let Some(counted) = counted {
                prop_assert!(objects.contains(&counted), "{objects:?} has not {counted:?}");
            }
        }
    }
}
