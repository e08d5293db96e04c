use fastrand::Rng;

use super::{Found, tampered, whole};

/// `audit-figures` is the long form.
#[tokio::test]
async fn faults_leave_no_hole_and_every_tampering_is_named() {
    let found = Found::with_faults(7, 500).await.unwrap();
    let mut rng = Rng::with_seed(7);

    let mut wrong = found.holes.clone();
    for _ in 0..200 {
        let (chain, other) = found.draw(&mut rng);
        let (kind, verdict) = tampered(chain, other, &mut rng).unwrap();
        wrong.extend(verdict.err().map(|why| format!("{kind:?}: {why}")));
        wrong.extend(whole(chain, &mut rng).unwrap().problems.first().map(|problem| format!("whole: {problem}")));
    }

    assert_eq!(wrong, Vec::<String>::new());
    for fault in ["another machine was first", "a crash after the call", "a power failure", "a new key", "a lost disk"]
    {
        assert!(found.faults.contains_key(fault), "no run had {fault}: {:?}", found.faults);
    }
}
