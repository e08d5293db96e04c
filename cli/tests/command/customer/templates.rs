//! The answers about templates: what a vendor added to a stack is told.

use super::bucket::freehold;

const LAUNCHED: &str = include_str!("../../../../crates/app/golden/install.yaml");

/// Asks a question of templates in files; returns the exit code and the output.
fn ask(words: &[&str], files: &[(&str, &str)]) -> (i32, String) {
    let place = tempfile::tempdir().unwrap();
    for (name, text) in files {
        std::fs::write(place.path().join(name), text).unwrap();
    }
    let done = freehold(place.path(), &[&["customer"], words].concat());
    let output = [done.stdout, done.stderr].map(|bytes| String::from_utf8_lossy(&bytes).into_owned()).concat();
    (done.status.code().unwrap(), output)
}

#[test]
fn the_roles_of_a_template_are_listed_with_their_switches_and_an_added_right_is_told() {
    let open = LAUNCHED.replacen(
        "Principal: {AWS: !Sub \"arn:${AWS::Partition}:iam::${AWS::AccountId}:root\"}",
        "Principal: {AWS: \"arn:aws:iam::999999999999:root\"}",
        1,
    );
    assert_ne!(open, LAUNCHED);

    let (code, honest) = ask(&["permissions", "--template", "a.yaml"], &[("a.yaml", LAUNCHED)]);
    let (changed_code, lie) = ask(&["permissions", "--template", "a.yaml"], &[("a.yaml", &open)]);

    assert_eq!(code, 0, "{honest}");
    assert!(honest.contains("EnableProvision") && honest.contains("not compared with a contract"), "{honest}");
    assert!(changed_code == 1 && lie.contains("Problems:"), "{lie}");
}

#[test]
fn the_lines_of_a_new_template_that_differ_are_listed() {
    let new = LAUNCHED.replacen("MaxSessionDuration: 3600", "MaxSessionDuration: 43200", 1);
    let files = [("old.yaml", LAUNCHED), ("new.yaml", new.as_str())];

    let same = ask(&["changes", "--template", "old.yaml", "--new-template", "old.yaml"], &files);
    let (_, differs) = ask(&["changes", "--template", "old.yaml", "--new-template", "new.yaml"], &files);

    assert!(same.0 == 0 && same.1.contains("the templates are the same"), "{same:?}");
    assert!(differs.contains("-       MaxSessionDuration: 3600"), "{differs}");
    assert!(differs.contains("+       MaxSessionDuration: 43200"), "{differs}");
}
