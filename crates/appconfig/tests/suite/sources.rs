//! What is said about charts, kustomizations and Dockerfiles beside a config, and about sources that are elsewhere.

use crate::config::{Config, good};

const CHART: &str = "apiVersion: v2\nname: web\nversion: 0.1.0\n";

fn chart(values: &str, files: &[(&str, &str)]) -> Config {
    let component =
        format!("name = \"chart\"\ntype = \"helm_chart\"\nchart_name = \"web\"\nsource = \"./chart\"\n{values}");
    files.iter().fold(good().with_sandbox().with("components/chart.toml", &component), |config, (path, text)| {
        config.with(&format!("chart/{path}"), text)
    })
}

/// Returns what is said, without the warning that a kind cannot be deployed yet.
fn messages(config: &Config) -> String {
    let found = config.check();
    let words = found.iter().filter(|one| !one.message.contains("cannot be deployed yet"));
    let line = |one: &freehold_appconfig::Diagnostic| {
        let help = one.help.as_deref().unwrap_or_default();
        format!("{:?} {}:{}: {}; {help}", one.severity, one.file, one.line, one.message)
    };
    words.map(line).collect::<Vec<_>>().join("\n")
}

#[test]
fn a_chart_has_its_file_its_keys_and_templates() {
    let whole = chart("", &[("Chart.yaml", CHART), ("templates/a.yaml", "a: {{ .Values.x }}\n")]);

    assert_eq!(messages(&whole), "");
    insta::assert_snapshot!(messages(&chart("", &[("web/Chart.yaml", CHART)])), @"Error components/chart.toml:4: there is no `Chart.yaml` in `chart`; did you mean `./chart/web`?");
    insta::assert_snapshot!(messages(&chart("", &[("Chart.yaml", "name: web\nversion: \"\"\n")])), @r"
    Error chart/Chart.yaml:1: the chart has no `apiVersion`; add `apiVersion: v2`
    Error chart/Chart.yaml:1: the chart has no `version`; add `version: 0.1.0`
    Warning components/chart.toml:4: the chart has no files in `chart/templates`, so it creates nothing; write its templates there, or correct the path
    ");
    insta::assert_snapshot!(messages(&chart("", &[("Chart.yaml", "name: [web\n"), ("templates/a.yaml", "")])), @"Error chart/Chart.yaml:2: not YAML: while parsing a flow sequence, expected ',' or ']';");
}

#[test]
fn values_that_the_chart_does_not_read_are_warned_of() {
    let values =
        "[values]\nreplicas = 2\nimgae = \"x\"\n\"image.tag\" = \"1\"\nglobal = { a = 1 }\ndb = { a = 1 }\nsize = 1\n";
    let files = [
        ("Chart.yaml", "apiVersion: v2\nname: web\nversion: 0.1.0\ndependencies:\n  - {name: postgres, alias: db}\n"),
        ("values.yaml", "image: {tag: latest}\n"),
        ("templates/a.yaml", "a: {{ .Values.replicas }}\n"),
    ];
    let all = [files[0], files[1], ("templates/a.yaml", "a: {{ toYaml .Values }}\n")];

    insta::assert_snapshot!(messages(&chart(values, &files)), @r"
    Warning components/chart.toml:7: the chart in `chart` does not use the value `imgae`; it has no effect; did you mean `image`?
    Warning components/chart.toml:11: the chart in `chart` does not use the value `size`; it has no effect; remove it, or use it in a template of the chart
    ");
    assert_eq!(messages(&chart(values, &all)), "");
}

#[test]
fn a_dockerfile_is_in_the_source_and_has_the_stage() {
    let docker = |more: &str| {
        let text = format!("name = \"image\"\ntype = \"docker_build\"\nsource = \"./image\"\n{more}");
        good()
            .with("components/image.toml", &text)
            .with("image/Dockerfile", "# a\nFROM --platform=x a AS build\nfrom b\n")
    };

    assert_eq!(messages(&docker("dockerfile = \"./Dockerfile\"\ntarget = \"Build\"\n")), "");
    assert_eq!(messages(&docker("dockerfile = \"Dockerfile\"\ntarget = \"1\"\n")), "");
    insta::assert_snapshot!(messages(&docker("dockerfile = \"Dockerfle\"\n")), @"Error components/image.toml:4: there is no `Dockerfle` in `image`; did you mean `Dockerfile`?");
    insta::assert_snapshot!(messages(&docker("dockerfile = \"Dockerfile\"\ntarget = \"biuld\"\n")), @"Error components/image.toml:5: there is no stage `biuld`; did you mean `build`?");
    insta::assert_snapshot!(messages(&docker("dockerfile = \"Dockerfile\"\n").with("image/Dockerfile", "RUN x\n")), @"Error image/Dockerfile:1: `image/Dockerfile` has no `FROM` line; add `FROM ...`");
}

#[test]
fn a_kustomization_has_its_file() {
    let kustomized =
        "name = \"k\"\ntype = \"kubernetes_manifest\"\nnamespace = \"n\"\n[kustomize]\npath = \"./overlay\"\n";
    let config = good().with_sandbox().with("components/k.toml", kustomized).with("overlay/other.yaml", "");

    insta::assert_snapshot!(messages(&config), @"Error components/k.toml:5: there is no `kustomization.yaml` in `overlay`; create the file, or correct the path");
    assert_eq!(messages(&config.with("overlay/kustomization.yml", "")), "");
}

#[test]
fn sources_in_repositories_are_named_and_not_looked_at() {
    let config = good().with(
        "components/net.toml",
        "name = \"net\"\ntype = \"terraform_module\"\nterraform_version = \"1.11.3\"\n[public_repo]\nrepo = \"acme/modules\"\n",
    );

    let found = config.check();

    let elsewhere: Vec<_> = found.not_looked_at().iter().map(|one| (one.part.as_str(), one.source.as_str())).collect();
    assert_eq!(elsewhere, [("component `net`", "https://github.com/acme/modules")]);
    assert!(good().check().not_looked_at().is_empty());
}

#[test]
fn a_file_is_no_source_and_its_directory_is_named_as_the_way_out() {
    let net = "name = \"net\"\ntype = \"terraform_module\"\nterraform_version = \"1.11.3\"\nsource = \"./modules/net/main.tf\"\n";

    let found = messages(&good().with("components/net.toml", net));

    assert!(
        found.contains(
            "components/net.toml:4: the source `./modules/net/main.tf` is a file, and a directory is expected; name the \
             directory of the file"
        ),
        "{found}"
    );
}
