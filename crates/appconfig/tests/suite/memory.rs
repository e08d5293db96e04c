//! A config in memory is read as the same files on disk are.

use std::collections::BTreeMap;
use std::path::Path;

use freehold_appconfig::Fetched;
use freehold_appconfig::check;
use freehold_appconfig::check_files;
use freehold_appconfig::load;
use freehold_appconfig::load_files;

use crate::config::{Config, good};

/// Returns the files below `dir` by their paths from there.
fn files(dir: &Path) -> BTreeMap<String, Vec<u8>> {
    let mut found = BTreeMap::new();
    for entry in std::fs::read_dir(dir).unwrap() {
        let (path, name) = entry.map(|entry| (entry.path(), entry.file_name().into_string().unwrap())).unwrap();
        if path.is_dir() {
            found.extend(files(&path).into_iter().map(|(rest, bytes)| (format!("{name}/{rest}"), bytes)));
        } else {
            found.insert(name, std::fs::read(&path).unwrap());
        }
    }
    found
}

fn configs() -> Vec<Config> {
    let stack = "name = \"app\"\ntype = \"cloudformation_stack\"\ntemplate = \"./stacks\"\n";
    let image = "name = \"box\"\ntype = \"container_image\"\n[oci_layout]\npath = \"./image\"\n";
    vec![
        good(),
        good().with("components/app.toml", stack).with("stacks/template.json", "{}"),
        good().with("components/app.toml", &stack.replace("./stacks", "./")).with("template.yaml", "Resources: {}\n"),
        good().with("components/app.toml", stack),
        good().with("components/app.toml", &stack.replace("./stacks", "../../x")),
        good().with("components/box.toml", image).with("image/index.json", "{}").with("image/.git/x", "y"),
        good().with("components/box.toml", image),
        good().with("components/web.toml", "name = ").without("metadata.toml"),
        good().with("components/.hidden.toml", "= 1").with("components/a/b/c/deep.toml", "name = 1"),
        good().with("modules/net.toml", "").with("other.toml", "x = 1"),
    ]
}

#[test]
fn memory_and_disk_give_the_same_version_sources_and_mistakes() {
    for config in configs() {
        let (files, place) = (files(&config.dir), config.dir.display());

        match (load(&config.dir), load_files("shop", &files, &Fetched::new())) {
            (Ok(disk), Ok(memory)) => {
                assert_eq!(disk.version, memory.version, "{place}");
                assert_eq!(disk.warnings, memory.warnings, "{place}");
                assert_eq!(disk.unresolved, memory.unresolved, "{place}");
                let archives = |loaded: &freehold_appconfig::Loaded| {
                    loaded.sources.iter().map(|one| (one.owner.clone(), one.archive.clone())).collect::<Vec<_>>()
                };
                assert_eq!(archives(&disk), archives(&memory), "{place}");
            }
            (disk, memory) => assert_eq!(disk.unwrap_err().to_string(), memory.unwrap_err().to_string(), "{place}"),
        }
        assert_eq!(check(&config.dir).to_string(), check_files("shop", &files).to_string(), "{place}");
    }
}

#[test]
fn paths_that_are_not_plain_are_not_seen() {
    let plain = files(&good().dir);
    let mut odd = plain.clone();
    for path in ["/metadata.toml", "../x.toml", "components/../y.toml", "components//z.toml", "./a.toml", "", "a/"] {
        odd.insert(path.to_owned(), b"= broken".to_vec());
    }

    let (one, two) = (check_files("shop", &plain), check_files("shop", &odd));

    assert_eq!(one.to_string(), two.to_string());
}

#[test]
fn an_invalid_app_name_is_refused() {
    let found = check_files("No App", &files(&good().dir));

    assert!(found.has_errors(), "{found}");
}

#[test]
fn bytes_that_are_not_text_are_an_error_with_a_place() {
    let mut files = files(&good().dir);
    files.insert("components/web.toml".to_owned(), vec![0xff, 0xfe]);

    let found = check_files("shop", &files).to_string();

    assert!(found.contains("not UTF-8 text") && found.contains("components/web.toml"), "{found}");
}
