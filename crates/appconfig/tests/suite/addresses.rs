//! Values that are addresses: listed until somebody fetches them, then checked as files are.

use freehold_protocol::app_version::ComponentSpec;

use crate::config::{Config, good};

const ADDRESS: &str = "https://crds.example/v1/crds.yaml";

/// Returns a config whose manifest is what `manifest` names.
fn with_manifest(manifest: &str) -> Config {
    good().with_sandbox().with(
        "components/crds.toml",
        &format!("name = \"crds\"\ntype = \"kubernetes_manifest\"\nnamespace = \"x\"\nmanifest = \"{manifest}\"\n"),
    )
}

fn manifest(loaded: &freehold_appconfig::Loaded) -> &str {
    match &loaded.version.components[0].spec {
        ComponentSpec::KubernetesManifest { manifest, .. } => manifest,
        other => panic!("{other:?}"),
    }
}

#[test]
fn an_address_is_listed_until_its_text_is_there() {
    let git = "git::https://git.example/acme/app//run.sh?ref=v1";
    let config = with_manifest(ADDRESS).with(
        "actions/a.toml",
        &format!("name = \"a\"\n[[steps]]\nname = \"s\"\ninline_contents = \"{git}\"\n[[steps]]\nname = \"t\"\ninline_contents = \"{git}\"\n"),
    );

    let first = config.load();
    let second = config.load_with(&[(ADDRESS, "kind: X\napiVersion: v1\n"), (git, "echo")]);

    assert_eq!(first.addresses, [git, ADDRESS]);
    assert_eq!(manifest(&first), "");
    assert!(second.addresses.is_empty());
    assert_eq!(manifest(&second), "kind: X\napiVersion: v1\n");
    assert_eq!(second.version.actions[0].steps[1].inline_contents, "echo");
    assert!(config.check().iter().all(|one| !one.message.contains("address")));
}

#[test]
fn a_mistake_behind_an_address_is_placed_there() {
    let config = with_manifest(ADDRESS);

    let found = config.faults_with(&[(ADDRESS, "kind: X\nregion: {{ .nuon.inputs.inputs.regoin }}\n{{ if }}\n")]);
    insta::assert_snapshot!(found, @r#"
    error: template: expected a value or a function, found the end of the action
     --> https://crds.example/v1/crds.yaml:3:7
      |
    3 | {{ if }}
      |       ^
    "#);

    let found = config.faults_with(&[(ADDRESS, "kind: X\nregion: {{ .nuon.inputs.inputs.regoin }}\napiVersion: v1\n")]);
    insta::assert_snapshot!(found, @r#"
    error: there is no input `regoin`
     --> https://crds.example/v1/crds.yaml:2:12
      |
    2 | region: {{ .nuon.inputs.inputs.regoin }}
      |            ^^^^^^^^^^^^^^^^^^^^^^^^^^
      |
      = help: did you mean `region`?
    "#);
}

#[test]
fn a_git_address_without_a_path_says_how_one_is_written() {
    let config = with_manifest("git::https://git.example/acme/app");

    insta::assert_snapshot!(config.faults(), @r#"
    error: `git::https://git.example/acme/app` is not the address of a file
     --> components/crds.toml:4:12
      |
    4 | manifest = "git::https://git.example/acme/app"
      |            ^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^ expected `git::https://host/owner/name//path/of/file?ref=branch`
    "#);
}

#[test]
fn a_file_address_inside_of_the_app_is_read() {
    let relative = with_manifest("file://crds.yaml").with("crds.yaml", "kind: X\napiVersion: v1\n");
    assert_eq!(manifest(&relative.load()), "kind: X\napiVersion: v1\n");

    let absolute = with_manifest(&format!("file://{}", relative.dir.join("crds.yaml").display()));
    assert!(absolute.faults().to_string().contains("is outside of the app's directory"));

    let path = absolute.dir.join("crds.yaml");
    let inside = absolute.with("crds.yaml", "kind: Y\napiVersion: v1\n").with(
        "components/crds.toml",
        &format!(
            "name = \"crds\"\ntype = \"kubernetes_manifest\"\nnamespace = \"x\"\nmanifest = \"file://{}\"\n",
            path.display()
        ),
    );
    assert_eq!(manifest(&inside.load()), "kind: Y\napiVersion: v1\n");
}

#[test]
fn a_file_address_elsewhere_is_an_error() {
    let config = with_manifest("file:///etc/hostname");

    insta::assert_snapshot!(config.faults(), @r#"
    error: `file:///etc/hostname` is outside of the app's directory
     --> components/crds.toml:4:12
      |
    4 | manifest = "file:///etc/hostname"
      |            ^^^^^^^^^^^^^^^^^^^^^^
      |
      = help: move the file into the app's directory
    "#);
}
