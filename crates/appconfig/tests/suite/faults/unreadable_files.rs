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

#[cfg(unix)]
#[test]
fn a_link_that_leads_back_is_one_error_and_one_to_another_directory_is_followed() {
    let link = |target: &str, path: &str| {
        let config = good().with("shared/db.toml", "name = \"web\"\ntype = \"container_image\"\n");
        std::os::unix::fs::symlink(target, config.dir.join(path)).unwrap();
        config.faults()
    };

    for target in [".", "..", "../components"] {
        let found = link(target, "components/again").to_string();

        assert_eq!(found.matches("error: ").count(), 1, "{found}");
        assert!(found.contains("the link `components/again` leads back to a directory above it"), "{found}");
    }
    let found = link("../shared", "components/others").to_string();
    assert!(found.contains("component `web` is defined twice"), "{found}");
}
