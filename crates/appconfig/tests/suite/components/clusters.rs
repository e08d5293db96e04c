//! What uses the cluster of the sandbox, in apps whose sandbox cannot have one.

use freehold_appconfig::Severity;

use crate::config::{Config, good};

const CHART: &str = "name = \"c\"\ntype = \"helm_chart\"\nchart_name = \"c\"\n[helm_repo]\nrepo_url = \"https://charts.example\"\nchart = \"c\"\n";
const SECRET: &str = "description = \"d\"\nkubernetes_sync = true\nkubernetes_secret_namespace = \"n\"\nkubernetes_secret_name = \"s\"\n";
const LOCAL: &str = "terraform_version = \"1.11.3\"\nsource = \"./modules/own\"\n";

/// The findings, each with its severity, file and line.
fn lines(config: &Config) -> String {
    let line = |one: &freehold_appconfig::Diagnostic| {
        let severity = if one.severity == Severity::Error { "error" } else { "warning" };
        format!("{severity} {}:{}: {}\n", one.file, one.line, one.message)
    };
    config.faults().iter().map(line).collect()
}

#[test]
fn a_chart_of_an_app_without_a_cluster_is_an_error() {
    let config = good().with("components/c.toml", CHART);

    insta::assert_snapshot!(config.faults(), @r#"
    error: component `c` is deployed into the cluster of the sandbox, and the app has no sandbox
     --> components/c.toml:2:8
      |
    2 | type = "helm_chart"
      |        ^^^^^^^^^^^^
      |
      = help: add a `sandbox.toml` whose module has the output `cluster_name`, or name another cluster with `kubernetes_context`, from a `[[kubernetes_context]]` of `metadata.toml`
    "#);
}

#[test]
fn what_a_first_deploy_does_without_is_only_warned_about() {
    let config = good()
        .with("components/c.toml", &format!("toggleable = true\ndefault_enabled = false\n{CHART}"))
        .with("secrets/given.toml", &format!("name = \"given\"\nrequired = true\n{SECRET}"))
        .with("secrets/maybe.toml", &format!("name = \"maybe\"\n{SECRET}"))
        .with("actions/a.toml", "name = \"a\"\n[[steps]]\nname = \"s\"\ncommand = \"ls\"\nenable_kube_config = true\n");

    insta::assert_snapshot!(lines(&config), @r"
    warning actions/a.toml:5: action `a` gets a kubeconfig of the cluster of the sandbox, and the app has no sandbox
    warning components/c.toml:4: component `c` is deployed into the cluster of the sandbox, and the app has no sandbox
    error secrets/given.toml:4: secret `given` is copied into the cluster of the sandbox, and the app has no sandbox
    warning secrets/maybe.toml:3: secret `maybe` is copied into the cluster of the sandbox, and the app has no sandbox
    ");
}

/// Returns an app with a chart, and with a sandbox whose module is `text`.
fn with_module(text: &str) -> Config {
    good().with("components/c.toml", CHART).with("sandbox.toml", LOCAL).with("modules/own/main.tf", text)
}

#[test]
fn a_module_of_the_sandbox_without_a_cluster_is_an_error_where_the_cluster_is_used() {
    assert_eq!(
        lines(&with_module("output \"vpc\" { value = 1 }\n")),
        "error components/c.toml:2: component `c` is deployed into the cluster of the sandbox, and the module of the \
         sandbox has neither an output `cluster` nor an output `cluster_name`\n"
    );
    assert_eq!(lines(&with_module("output \"cluster\" { value = { name = \"x\" } }\n")), "");
    assert_eq!(lines(&with_module("output \"cluster_name\" { value = \"x\" }\n")), "");
}

#[test]
fn an_app_that_may_have_a_cluster_is_left_alone() {
    let context = "version = \"v2\"\n[[kubernetes_context]]\nname = \"own\"\ncomponent = \"net\"\n";
    let chart = format!("kubernetes_context = \"own\"\n{CHART}");
    let stack = "type = \"gcp-terraform\"\nname = \"n\"\ndescription = \"d\"\n";

    assert_eq!(lines(&good().with_sandbox().with("components/c.toml", CHART)), "");
    assert_eq!(lines(&good().with("metadata.toml", context).with("components/c.toml", &chart)), "");
    assert_eq!(lines(&good().with("stack.toml", stack).with("components/c.toml", CHART)), "");
    assert!(!lines(&good().with("sandbox.toml", "x =").with("components/c.toml", CHART)).contains("cluster"));
}

#[test]
fn clusters_in_files_of_their_own_are_those_of_the_app() {
    let one = "name = \"own\"\ncomponent = \"net\"\n";
    let listed = format!("[[kubernetes_context]]\n{one}");
    let chart = format!("kubernetes_context = \"own\"\n{CHART}");
    let app = || good().with("components/c.toml", &chart);
    let contexts = |config: Config| {
        let found = config.load().version.kubernetes_contexts;
        found.into_iter().map(|one| (one.name, one.component.to_string())).collect::<Vec<_>>()
    };

    let expected = [("own".to_owned(), "net".to_owned())];
    assert_eq!(contexts(app().with("kubernetes_contexts.toml", &listed)), expected);
    assert_eq!(contexts(app().with("kubernetes_contexts/own.toml", one)), expected);
    assert_eq!(
        lines(&app().with("kubernetes_contexts.toml", &listed.replace("\"net\"", "\"web\""))),
        "error kubernetes_contexts.toml:3: component `web` is a `container_image`, which does not create a cluster\n"
    );
    assert_eq!(
        lines(&app().with("kubernetes_contexts.toml", &listed).with("kubernetes_contexts/own.toml", one)),
        "error kubernetes_contexts/own.toml:1: kubernetes context `own` is defined twice, in kubernetes_contexts.toml:2 \
         and here\n"
    );
}

#[test]
fn an_action_gets_a_kubeconfig_if_its_script_needs_one() {
    let gets = |config: Config, keys: &str, script: &str| {
        let step = format!("[[steps]]\nname = \"s\"\ninline_contents = \"\"\"\n{script}\n\"\"\"\n");
        let config = config.with("actions/a.toml", &format!("name = \"a\"\n{keys}{step}"));
        config.load().version.actions[0].enable_kube_config
    };
    let with_sandbox = || good().with_sandbox();

    assert!(gets(with_sandbox(), "", "if kubectl get pods; then echo up; fi"));
    assert!(gets(with_sandbox(), "", "helm list"));
    assert!(!gets(with_sandbox(), "", "echo kubectl"));
    assert!(!gets(with_sandbox(), "", "aws eks update-kubeconfig --name x\nkubectl get pods"));
    assert!(!gets(with_sandbox(), "enable_kube_config = false\n", "kubectl get pods"));
    assert!(gets(with_sandbox(), "enable_kube_config = true\n", "true"));
    assert!(!gets(good(), "", "kubectl get pods"));
}
