use freehold_protocol::audit::verify::{Known, verify};
use freehold_protocol::audit::{MAX_OBJECT_BYTES, record_name};

use super::local_copy;

#[test]
fn a_directory_is_read_as_the_bucket_has_it_and_an_empty_one_is_refused() {
    let place = tempfile::tempdir().unwrap();
    let write = |name: &str, text: &str| std::fs::write(place.path().join(name), text).unwrap();
    let empty = local_copy::read(place.path()).unwrap_err().to_string();
    write("7300c0ae1429cd153252736a781b78f4.pub", "11qYAYKxCrfVS/7TyWQHOg7hcvPapiMlrwIaaPcHURo=\n");
    write(&record_name(1), "{}");
    write("notes.txt", "x");

    let read = local_copy::read(place.path()).unwrap();
    let copy = read.copy.clone();
    let chain = verify(&copy, Known::default());

    assert!(empty.contains("has no audit records of the install's chain"), "{empty}");
    assert!(read.skipped.is_empty());
    let key = &copy.keys["7300c0ae1429cd153252736a781b78f4"];
    assert_eq!(key, "11qYAYKxCrfVS/7TyWQHOg7hcvPapiMlrwIaaPcHURo=");
    assert_eq!(copy.records.into_iter().collect::<Vec<_>>(), [(record_name(1), b"{}".to_vec())]);
    assert!(chain.problems[0].text.starts_with("record 1 cannot be read: "), "{:?}", chain.problems);
}

#[test]
fn a_file_that_is_larger_than_every_record_is_named_with_the_way_out() {
    for name in [record_name(1), format!("orders/{}", record_name(1))] {
        let place = tempfile::tempdir().unwrap();
        std::fs::create_dir(place.path().join("orders")).unwrap();
        std::fs::write(place.path().join(&name), vec![b'x'; MAX_OBJECT_BYTES + 1]).unwrap();

        let refused = local_copy::read(place.path()).unwrap_err();

        assert!(refused.to_string().contains(&format!("/{name}` has more than 2.00 MiB")), "{refused}");
        assert_eq!(refused.way_out(), Some(local_copy::FOREIGN));
    }
}

#[test]
fn records_of_earlier_versions_are_counted_and_named() {
    let place = tempfile::tempdir().unwrap();
    let write = |name: &str| {
        let path = place.path().join(name);
        std::fs::create_dir_all(path.parent().unwrap()).unwrap();
        std::fs::write(path, "{}").unwrap();
    };
    for name in
        ["7300c0ae/000000000001.json", "7300c0ae/000000000002.json", "7300c0ae/key.pub", "8411/000000000001.json"]
    {
        write(name);
    }

    let alone = local_copy::read(place.path()).unwrap_err().to_string();
    write(&record_name(1));
    let skipped = local_copy::read(place.path()).unwrap().skipped;

    let line = "not verified: 3 records in `7300c0ae`, `8411`, because runners of earlier versions wrote one chain per key, \
                and the install's chain does not contain these records";
    assert!(alone.contains("has no audit records of the install's chain (not verified: 3 records"), "{alone}");
    assert_eq!(local_copy::skipped_line(&skipped).unwrap(), line);
    assert_eq!(skipped.into_iter().collect::<Vec<_>>(), [("7300c0ae".to_owned(), 2), ("8411".to_owned(), 1)]);
}

#[test]
fn the_messages_that_records_name_are_read_from_a_copy_of_the_whole_bucket_too() {
    let place = tempfile::tempdir().unwrap();
    let write = |name: &str| {
        let path = place.path().join(name);
        std::fs::create_dir_all(path.parent().unwrap()).unwrap();
        std::fs::write(path, "{}").unwrap();
    };
    let names =
        ["audit/000000000001.json", "audit/orders/a.json", "audit/receipts/000000000001.json", "audit/reports/b.json"];
    for name in names.into_iter().chain(["logs/job_1/1.1.log", "terraform/a.json"]) {
        write(name);
    }

    let read = local_copy::read(place.path()).unwrap();

    let copy = &read.copy;
    let found = [&copy.records, &copy.orders, &copy.receipts, &copy.reports].map(std::collections::BTreeMap::len);
    assert_eq!((found, read.skipped.len()), ([1; 4], 0));
}
