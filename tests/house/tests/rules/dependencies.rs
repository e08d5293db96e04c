//! What only tests use is a dev-dependency, each crate uses what it names, and versions stand in one place.

use std::collections::BTreeSet;
use std::path::Path;

use serde_json::{Value, json};

use crate::modules::{reached, without_tests};
use crate::{files, members, packages, read, top};

#[test]
fn a_dependency_that_only_tests_use_is_a_dev_dependency() {
    let files = reached();
    let mut wrong = Vec::new();
    for package in packages() {
        let name = package["name"].as_str().unwrap();
        // These have no other use than tests, and `features` has no code.
        if ["freehold-features", "freehold-tests"].contains(&name) {
            continue;
        }
        let folder = Path::new(package["manifest_path"].as_str().unwrap()).parent().unwrap().join("src");
        let own = files.iter().filter(|(file, is_in_program)| file.starts_with(&folder) && **is_in_program);
        let code: String = own.map(|(file, _)| product_code(&read(file))).collect();
        wrong.extend(unused(&package, &code, &Value::Null).map(|dependency| format!("`{name}`: `{dependency}`")));
    }

    assert!(wrong.is_empty(), "move these to `[dev-dependencies]`:\n{}", wrong.join("\n"));
}

#[test]
fn a_dev_dependency_is_used_by_a_test() {
    let mut wrong = Vec::new();
    for package in packages() {
        let name = package["name"].as_str().unwrap();
        let folder = Path::new(package["manifest_path"].as_str().unwrap()).parent().unwrap();
        let mut folders = Vec::from(["src", "tests", "examples", "benches"].map(|part| folder.join(part)));
        // Its tests use the fixtures of the runner's.
        folders.extend((name == "freehold-builder").then(|| top().join("runner/tests")));
        // Its tests sign in at the issuer of that crate's tests.
        folders.extend((name == "freehold-cli").then(|| top().join("crates/sign-in/tests")));
        let sources = folders.iter().filter(|folder| folder.is_dir()).flat_map(|folder| files(folder, "rs"));
        let code: String = sources.map(|file| read(&file)).collect();
        wrong.extend(unused(&package, &code, &json!("dev")).map(|dependency| format!("`{name}`: `{dependency}`")));
    }

    assert!(wrong.is_empty(), "remove these of `[dev-dependencies]`:\n{}", wrong.join("\n"));
}

#[test]
fn the_version_of_a_dependency_stands_in_the_workspace() {
    let mut own = Vec::new();
    for (name, manifest) in members() {
        let text = read(&manifest);
        let tables = text.split("\n[").filter(|table| table.split(']').next().unwrap().ends_with("dependencies"));
        let lines = tables.flat_map(str::lines).filter(|line| line.contains(" = "));
        own.extend(
            lines
                .filter(|line| !line.contains("workspace = true") && !line.contains("{ path = "))
                .map(|line| format!("{name}: {line}")),
        );
    }

    assert!(own.is_empty(), "write `.workspace = true`:\n{}", own.join("\n"));
}

#[test]
fn a_dependency_is_in_use_by_the_name_that_it_has_in_code() {
    let package = json!({ "dependencies": [
        { "name": "serde-json", "rename": null, "kind": null },
        { "name": "base64", "rename": "base", "kind": null },
        { "name": "insta", "rename": null, "kind": "dev" },
    ] });

    assert_eq!(unused(&package, "use serde_json::Value; base::encode()", &Value::Null).collect::<Vec<_>>(), [""; 0]);
    assert_eq!(
        unused(&package, "use my_serde_json::Value; base64::encode()", &Value::Null).collect::<Vec<_>>(),
        ["serde-json", "base64"]
    );
    assert_eq!(unused(&package, "use serde_json::Value;", &json!("dev")).collect::<Vec<_>>(), ["insta"]);
    assert_eq!(product_code("// base64::\nuse a;\n#[cfg(test)]\nmod tests {\n    use b;\n}\n"), "use a;\n");
}

#[test]
fn a_dependency_of_the_workspace_is_one_of_a_crate() {
    let workspace = read(&top().join("Cargo.toml"));
    let manifests: Vec<String> = members().into_iter().map(|(_, manifest)| read(&manifest)).collect();
    let table = workspace.split_once("\n[workspace.dependencies]\n").unwrap().1.split("\n[").next().unwrap();
    let names: Vec<&str> = table.lines().filter_map(|line| line.split_once(" = ")).map(|(name, _)| name).collect();
    assert!(names.len() > 50, "Cargo.toml has only {} dependencies", names.len());

    let unused: Vec<&str> = names
        .into_iter()
        .filter(|name| {
            let forms = [format!("\n{name}.workspace = true"), format!("\n{name} = {{ workspace = true")];
            !manifests.iter().any(|manifest| forms.iter().any(|form| manifest.contains(form)))
        })
        .collect();

    assert!(unused.is_empty(), "no crate has these of `[workspace.dependencies]`: {unused:?}");
}

/// Returns the dependencies of one kind that the code does not name: `null` for those of programs, `dev` for those of tests.
fn unused<'a>(package: &'a Value, code: &str, kind: &'a Value) -> impl Iterator<Item = String> + use<'a> {
    let words: BTreeSet<String> =
        code.split(|letter: char| !letter.is_alphanumeric() && letter != '_').map(str::to_owned).collect();
    let dependencies = package["dependencies"].as_array().unwrap().iter();
    let names = dependencies.filter(move |dependency| dependency["kind"] == *kind).map(|dependency| {
        let in_code = dependency["rename"].as_str().or(dependency["name"].as_str()).unwrap().replace('-', "_");
        (dependency["name"].as_str().unwrap().to_owned(), in_code)
    });
    names.filter(move |(_, in_code)| !words.contains(in_code)).map(|(name, _)| name)
}

/// Returns the lines of a file that are neither comments nor its tests.
fn product_code(text: &str) -> String {
    without_tests(text).split_inclusive('\n').filter(|line| !line.trim_start().starts_with("//")).collect()
}
