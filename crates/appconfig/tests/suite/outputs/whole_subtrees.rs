//! Templates that read a whole subtree of `.nuon`, such as `toJson .nuon.install`: what is sensitive below it is referred to.

use std::collections::BTreeSet;

use freehold_protocol::app_version::{AppVersion, Reference};
use freehold_template::{Limits, render};
use serde_json::json;

use crate::config::{Config, good};

/// An app with a sandbox, the components `net` and `db`, and the action `say`, each of which has a template of its own.
fn app(net: &str, say: &str) -> Config {
    let module = |name: &str, value: &str| {
        format!(
            "name = \"{name}\"\ntype = \"terraform_module\"\nterraform_version = \"1.11.3\"\n\
             source = \"./modules/net\"\n[vars]\nx = '{value}'\n"
        )
    };
    good()
        .with("sandbox.toml", "terraform_version = \"1.11.3\"\nsource = \"./modules/net\"\n")
        .with("components/net.toml", &module("net", net))
        .with("components/db.toml", &module("db", "1"))
        .with("actions/say.toml", &format!("name = \"say\"\n[[steps]]\nname = \"s\"\ncommand = '{say}'\n"))
}

/// The parts whose outputs the action `say` refers to. An order for the action names their sensitive outputs.
fn read_by_say(version: &AppVersion) -> BTreeSet<String> {
    let part = |reference: &Reference| match reference {
        Reference::Component(name) => Some(name.to_string()),
        Reference::Sandbox(_) => Some("sandbox".to_owned()),
        _ => None,
    };
    version.actions[0].references.iter().filter_map(part).collect()
}

#[test]
fn a_template_that_shows_the_whole_install_refers_to_the_sandbox() {
    let whole = [
        "{{ toJson .nuon.install }}",
        "{{ toJson .nuon.install.sandbox }}",
        "{{ range $k, $v := .nuon.install }}{{ toJson $v }}{{ end }}",
        "{{ with .nuon }}{{ toJson .install }}{{ end }}",
        "{{ range .nuon }}{{ toJson .outputs }}{{ end }}",
        "{{ .nuon.install | default 1 | toJson }}",
    ];
    let tree = json!({ "nuon": { "install": { "id": "i", "sandbox": { "outputs": { "token": "canary" } } },
        "sandbox": { "outputs": { "token": "canary" } } } });

    for template in whole {
        let version = app("1", template).load().version;

        let command = &version.actions[0].steps[0].command;
        let shows = render(command, &tree, &Limits::default()).is_ok_and(|text| text.contains("canary"));
        assert!(shows || template.starts_with("{{ range .nuon }}"), "{template}");
        assert!(read_by_say(&version).contains("sandbox"), "{template}: {:?}", version.actions[0].references);
    }
}

#[test]
fn a_template_that_shows_all_components_refers_to_each_of_them() {
    let all: BTreeSet<String> = ["db", "net", "web"].map(str::to_owned).into();
    for template in ["{{ toJson .nuon.components }}", "{{ range .nuon.components }}{{ toJson .outputs }}{{ end }}"] {
        let version = app("1", template).load().version;

        assert_eq!(read_by_say(&version), all, "{template}");
        assert!(version.actions[0].dependencies.is_empty());
    }
}

#[test]
fn a_template_that_shows_all_outputs_of_one_component_refers_to_that_component_alone() {
    let one: BTreeSet<String> = ["db".to_owned()].into();
    for template in [
        "{{ toJson .nuon.components.db.outputs }}",
        "{{ toJson .nuon.components.db }}",
        "{{ range $k, $v := .nuon.components.db.outputs }}{{ toJson $v }}{{ end }}",
        "{{ with .nuon.components.db }}{{ toJson .outputs }}{{ end }}",
    ] {
        let version = app("1", template).load().version;

        assert_eq!(read_by_say(&version), one, "{template}");
        assert_eq!(version.actions[0].dependencies, ["db".parse().unwrap()].into(), "{template}");
    }
}

#[test]
fn a_part_of_the_tree_without_outputs_refers_to_none() {
    for template in ["{{ .nuon.install.id }}", "{{ toJson .nuon.install.inputs }}", "{{ toJson .nuon.org }}"] {
        assert_eq!(read_by_say(&app("1", template).load().version), BTreeSet::new(), "{template}");
    }
    let without = good()
        .with("actions/say.toml", "name = \"say\"\n[[steps]]\nname = \"s\"\ncommand = '{{ toJson .nuon.install }}'\n");
    let expected = [Reference::Input("region".to_owned()), Reference::Licence].into();
    assert_eq!(without.load().version.actions[0].references, expected);
}

#[test]
fn a_component_that_reads_all_components_waits_for_none_and_gets_a_warning() {
    let config = app("{{ toJson .nuon.components }}", "true");

    insta::assert_snapshot!(config.faults(), @r"
    warning: `.nuon.components` has the outputs of all components that are deployed at that time, and component `net` waits for none of them
     --> components/net.toml:6:16
      |
    6 | x = '{{ toJson .nuon.components }}'
      |                ^^^^^^^^^^^^^^^^
      |
      = help: read the outputs of one component: `.nuon.components.NAME.outputs`
    ");
    let net = config.load().version;
    let net = net.component(&"net".parse().unwrap()).unwrap();
    let others: BTreeSet<Reference> = ["db", "web"].map(|name| Reference::Component(name.parse().unwrap())).into();
    assert_eq!((&net.references, net.dependencies.len()), (&others, 0));
}
