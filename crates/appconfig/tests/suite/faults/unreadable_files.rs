//! Files and directories that cannot be read.

use crate::config::good;

#[test]
fn names_in_a_file_that_cannot_be_read_are_not_reported_as_missing() {
    let config = good();
    std::fs::write(config.dir.join("inputs.toml"), b"[[group]]\nname = \"caf\xe9\"\n").unwrap();

    insta::assert_snapshot!(config.faults(), @r"
    error: the file cannot be read: it is not UTF-8 text, because of a byte in line 2
    --> inputs.toml
     = help: save it as UTF-8 text that you are permitted to read, or remove it
    ");
}

#[cfg(unix)]
#[test]
fn a_link_that_leads_nowhere_is_named() {
    let config = good();
    std::os::unix::fs::symlink("/nowhere", config.dir.join("components/old.toml")).unwrap();

    insta::assert_snapshot!(config.faults(), @r"
    error: the file cannot be read: it does not exist
    --> components/old.toml
     = help: correct the link, or remove it
    ");
}
