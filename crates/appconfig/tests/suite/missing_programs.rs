//! Warnings about programs that jobs need and the machine of an install stack does not have.

use freehold_appconfig::Diagnostics;

use crate::config::{Config, good, is_of_programs};

const CHART: &str = "name = \"web-chart\"\ntype = \"helm_chart\"\nchart_name = \"web\"\n[helm_repo]\nrepo_url = \"https://charts.example\"\nchart = \"web\"\n";
const KUSTOMIZED: &str = "name = \"jobs\"\ntype = \"kubernetes_manifest\"\nnamespace = \"jobs\"\n[kustomize]\n[kustomize.public_repo]\nrepo = \"example/jobs\"\n";
const SHOW: &str =
    "name = \"show\"\n[[triggers]]\ntype = \"manual\"\n[[steps]]\nname = \"s\"\ninline_contents = \"./show.sh\"\n";

/// The warnings about programs, each with file and line.
fn programs(found: &Diagnostics) -> String {
    let of_programs = found.iter().filter(|one| is_of_programs(&one.message));
    of_programs.map(|one| format!("{}:{}: {}\n", one.file, one.line, one.message)).collect()
}

fn app() -> Config {
    good()
        .with("sandbox.toml", "terraform_version = \"1.11.3\"\nsource = \"./modules/net\"\n")
        .with("components/chart.toml", CHART)
        .with("components/jobs.toml", KUSTOMIZED)
        .with("actions/show.toml", SHOW)
        .with("actions/show.sh", "set -e\necho \"$(kubectl get pods)\"\n")
}

#[test]
fn an_app_without_a_tool_image_is_warned_once_for_each_program_with_the_parts_that_need_it() {
    insta::assert_snapshot!(programs(&app().all()), @r"
    actions/show.sh:2: action `show` needs `kubectl`, which the machine of the install stack does not have, and the app has no `tool_image`
    components/chart.toml:2: component `web-chart` needs `helm`, which the machine of the install stack does not have, and the app has no `tool_image`
    components/jobs.toml:2: component `jobs` needs `kustomize` or `kubectl`, which the machine of the install stack does not have, and the app has no `tool_image`
    sandbox.toml:1: the sandbox and component `net` need `terraform`, which the machine of the install stack does not have, and the app has no `tool_image`
    ");
    assert_eq!(freehold_appconfig::check(&app().dir), app().all());
}

#[test]
fn the_warning_says_how_the_app_gets_the_program() {
    insta::assert_snapshot!(good().all(), @r#"
    warning: component `net` needs `terraform`, which the machine of the install stack does not have, and the app has no `tool_image`
     --> components/net.toml:2:8
      |
    2 | type = "terraform_module"
      |        ^^^^^^^^^^^^^^^^^^
      |
      = help: run `freehold tools init DIR`, which adds an image with programs and names it in `runner.toml`; without an image, jobs fail at each customer whose machine lacks the program
    "#);
}

#[test]
fn more_than_three_parts_are_counted() {
    let net = |name: &str| {
        format!(
            "name = \"{name}\"\ntype = \"terraform_module\"\nterraform_version = \"1.11.3\"\nsource = \"./modules/net\"\n"
        )
    };
    let config = ["a", "b", "c", "d"]
        .into_iter()
        .fold(good(), |config, name| config.with(&format!("components/{name}.toml"), &net(name)));

    let found = programs(&config.all());

    assert!(
        found.contains(": component `a`, component `b`, component `c` and 2 more need `terraform`, which"),
        "{found}"
    );
}

#[test]
fn an_app_with_a_tool_image_and_an_app_of_another_cloud_are_not_warned() {
    let runner = "runner_type = \"aws\"\ntool_image = \"web\"\n";
    let stack = "type = \"gcp-terraform\"\nname = \"n\"\ndescription = \"d\"\n";
    let own = format!("image = \"{{{{ .nuon.components.web.outputs.reference }}}}\"\n{SHOW}");

    assert_eq!(programs(&app().with("runner.toml", runner).all()), "");
    assert_eq!(programs(&app().with("runner.toml", "tool_image = [").all()), "");
    assert_eq!(programs(&app().with("stack.toml", stack).all()), "");
    assert_eq!(programs(&good().without("components/net.toml").with("actions/show.toml", &own).all()), "");
}
