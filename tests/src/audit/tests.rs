use fastrand::Rng;
use freehold_protocol::audit::{ORDERS, RECEIPTS, REPORTS};

use super::{Found, Run, tampered, whole};

/// `audit-figures` is the long form.
#[tokio::test(start_paused = true)]
async fn faults_leave_no_hole_and_every_tampering_is_named() {
    let found = Found::with_faults(7, 500).await.unwrap();
    let mut rng = Rng::with_seed(7);

    let mut wrong = [found.holes.clone(), found.alarms.clone()].concat();
    for _ in 0..200 {
        let (chain, other) = found.draw(&mut rng);
        let (kind, verdict) = tampered(chain, other, &mut rng).unwrap();
        wrong.extend(verdict.err().map(|why| format!("{kind:?}: {why}")));
        wrong.extend(whole(chain, &mut rng).unwrap().problems.first().map(|problem| format!("whole: {problem}")));
    }

    assert_eq!(wrong, Vec::<String>::new());
    assert!(found.copies > 20, "{} copies", found.copies);
    for chain in &found.chains {
        let messages = [&chain.copy.reports, &chain.copy.receipts, &chain.copy.orders].map(|all| all.len());
        assert!(messages.iter().all(|count| *count > 0), "{messages:?}");
    }
    for fault in ["another machine was first", "a crash after the call", "a power failure", "a new key", "a lost disk"]
    {
        assert!(found.faults.contains_key(fault), "no run had {fault}: {:?}", found.faults);
    }
}

/// The order of the names in the bucket, in which `aws s3 cp --recursive` copies them.
#[tokio::test(start_paused = true)]
async fn copies_with_the_records_first_look_cut_although_nobody_cut_the_chain() {
    let mut alarms = Vec::new();
    for seed in 0..8 {
        let run = Run::of(seed, "globex", &["", ORDERS, RECEIPTS, REPORTS]).await.unwrap();
        assert_eq!(run.holes, Vec::<String>::new());
        alarms.extend(run.alarms);
    }

    assert!(alarms.iter().any(|alarm| alarm.contains("the chain was cut")), "{alarms:?}");
}
