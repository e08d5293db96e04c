use freehold_protocol::audit::record_name;

use super::{Verify, folder};

#[test]
fn a_folder_is_read_as_the_bucket_has_it_and_an_empty_one_is_refused() {
    let place = tempfile::tempdir().unwrap();
    let write = |name: &str, text: &str| std::fs::write(place.path().join(name), text).unwrap();
    let empty = folder::read(place.path()).unwrap_err().to_string();
    write("7300c0ae1429cd153252736a781b78f4.pub", "11qYAYKxCrfVS/7TyWQHOg7hcvPapiMlrwIaaPcHURo=\n");
    write(&record_name(1), "{}");
    write("notes.txt", "x");

    let copy = folder::read(place.path()).unwrap();
    let verify = Verify { directory: "audit".into(), runners: Vec::new(), seen: Vec::new() };
    let answer = verify.answer(&copy);

    assert!(empty.contains("has no audit records"), "{empty}");
    let key = &copy.keys["7300c0ae1429cd153252736a781b78f4"];
    assert_eq!(key, "11qYAYKxCrfVS/7TyWQHOg7hcvPapiMlrwIaaPcHURo=");
    assert_eq!(copy.records.into_iter().collect::<Vec<_>>(), [(record_name(1), b"{}".to_vec())]);
    assert!(!answer.verified);
    assert!(answer.chain.problems[0].text.starts_with("record 1 cannot be read: "), "{:?}", answer.chain.problems);
}
