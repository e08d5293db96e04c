//! Two machines with one key, because somebody copied a state directory: one of them finds a record of the other one in
//! the place of its own.

use freehold_protocol::audit::record_name;
use tempfile::TempDir;

use super::memory::{Memory, author};
use super::*;

fn machine(directory: &TempDir, seed: u8, bucket: &Arc<Memory>) -> Audit {
    Audit::open(directory.path(), author(seed), Some(bucket.clone() as Arc<dyn Bucket>)).unwrap()
}

async fn record(audit: &Audit) -> Result<(), AuditError> {
    audit.record(AuditEvent::Sent { reports: Vec::new() })?;
    audit.flush(BUCKET_LIMIT).await
}

/// Returns a machine that has recorded something, with its directory, and a copy of the directory.
async fn copied(bucket: &Arc<Memory>) -> (Audit, TempDir, TempDir) {
    let (first, second) = (tempfile::tempdir().unwrap(), tempfile::tempdir().unwrap());
    let one = machine(&first, 1, bucket);
    record(&one).await.unwrap();
    std::fs::copy(first.path().join("audit.spool"), second.path().join("audit.spool")).unwrap();
    (one, first, second)
}

#[tokio::test]
async fn the_second_of_two_machines_with_one_key_that_records_something_is_refused_until_it_has_a_new_key() {
    let bucket = Arc::new(Memory::default());
    let (one, _first, second) = copied(&bucket).await;
    record(&one).await.unwrap();

    let refused = record(&machine(&second, 1, &bucket)).await.unwrap_err();
    let restarted = machine(&second, 1, &bucket).carry(&Beat::default()).await;
    record(&one).await.unwrap();
    record(&machine(&second, 2, &bucket)).await.unwrap();

    for error in [&refused, &restarted] {
        assert!(matches!(error, AuditError::SharedKey { seq: 3, key } if key == author(1).identity.id()), "{error}");
    }
    assert_eq!(bucket.events(), ["i-1", "sent 0", "sent 0", "sent 0", "i-2", "sent 0", "sent 0"]);
}

#[tokio::test]
async fn of_two_machines_with_one_key_the_copy_may_be_first() {
    let bucket = Arc::new(Memory::default());
    let (one, _first, second) = copied(&bucket).await;
    record(&machine(&second, 1, &bucket)).await.unwrap();

    let refused = record(&one).await.unwrap_err();

    assert!(matches!(refused, AuditError::SharedKey { seq: 3, .. }), "{refused}");
}

/// Such as two machines that start from one image, which has a key and no records.
#[tokio::test]
async fn a_key_that_joins_the_chain_a_second_time_is_found_by_the_machine_that_joined_first() {
    let (first, second) = (tempfile::tempdir().unwrap(), tempfile::tempdir().unwrap());
    let bucket = Arc::new(Memory::default());
    let one = machine(&first, 1, &bucket);
    record(&one).await.unwrap();
    record(&machine(&second, 1, &bucket)).await.unwrap();

    let refused = record(&one).await.unwrap_err();

    assert!(matches!(refused, AuditError::SharedKey { seq: 3, .. }), "{refused}");
}

/// Whoever may write into the bucket has no record with the signature of the key and the next number.
#[tokio::test]
async fn an_earlier_record_of_the_machine_in_the_place_of_the_next_one_does_not_stop_it() {
    let directory = tempfile::tempdir().unwrap();
    let bucket = Arc::new(Memory::default());
    let audit = machine(&directory, 1, &bucket);
    record(&audit).await.unwrap();
    let second = bucket.objects.lock().unwrap()[&record_name(2)].clone();
    bucket.objects.lock().unwrap().insert(record_name(3), second);

    record(&audit).await.unwrap();

    assert!(bucket.objects.lock().unwrap().contains_key(&record_name(4)));
}
