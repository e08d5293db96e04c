//! Files that look like config files and are not read.

use crate::config::good;

const COMPONENT: &str = "name = \"x\"\ntype = \"container_image\"\n";

#[test]
fn a_file_in_a_wrong_folder_or_with_a_wrong_ending_is_named_with_the_path_that_was_meant() {
    let config = good()
        .with("components/x.json", "{}")
        .with("actions/foo.yaml", "name: foo")
        .with("actions/bar.TOML", "name = \"bar\"")
        .with("component/x.toml", COMPONENT)
        .with("policy/tags.toml", "")
        .with("break-glass/admin.toml", "")
        .with("sandbox.yml", "");
    let found = config.faults();

    let lines =
        found.iter().map(|one| format!("{}: {}; {}\n", one.file, one.message, one.help.as_deref().unwrap_or("")));

    insta::assert_snapshot!(lines.collect::<String>(), @r"
    actions/bar.TOML: `actions/bar.TOML` is not read: config files are TOML and end in `.toml`; did you mean `actions/bar.toml`?
    actions/foo.yaml: `actions/foo.yaml` is not read: config files are TOML and end in `.toml`; did you mean `actions/foo.toml`?
    break-glass/admin.toml: `break-glass/admin.toml` is not read: an app config has no directory `break-glass`; did you mean `break_glass/admin.toml`?
    component/x.toml: `component/x.toml` is not read: an app config has no directory `component`; did you mean `components/x.toml`?
    components/x.json: `components/x.json` is not read: config files are TOML and end in `.toml`; did you mean `components/x.toml`?
    policy/tags.toml: `policy/tags.toml` is not read: an app config has no directory `policy`; did you mean `policies/tags.toml`?
    sandbox.yml: `sandbox.yml` is not read: config files are TOML and end in `.toml`; did you mean `sandbox.toml`?
    ");
    assert_eq!(found.iter().filter(|one| one.severity == freehold_appconfig::Severity::Warning).count(), 7);
}

#[test]
fn files_that_a_config_names_files_of_sources_and_other_files_are_not_mistakes() {
    let chart = "name = \"chart\"\ntype = \"helm_chart\"\nchart_name = \"chart\"\nsource = \"./components/chart\"\n\
                 [[values_file]]\ncontents = \"./values.yaml\"\n";
    let config = good()
        .with_roles()
        .with("components/chart.toml", chart)
        .with("components/values.yaml", "a: 1\n")
        .with("components/chart/Chart.yaml", "apiVersion: v2\nname: chart\nversion: 1.0.0\n")
        .with("components/README.md", "text")
        .with("modules/net/versions.toml", "")
        .with("package.json", "{}")
        .with(".github/x.yaml", "");

    let found = config.faults();

    let ignored: Vec<&str> =
        found.iter().map(|one| one.message.as_str()).filter(|text| text.contains("is not read")).collect();
    assert_eq!(ignored, [""; 0]);
}
