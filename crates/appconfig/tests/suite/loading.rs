//! What a config without mistakes becomes.

use std::path::Path;

use freehold_appconfig::{Diagnostic, Fetched, Severity, check, load, load_for_comparison};
use freehold_protocol::app_version::{ComponentSpec, Reference, RolePolicy, Trigger, TriggerIndex};
use freehold_protocol::order::{Mode, Source};
use proptest::prelude::*;
use tempfile::TempDir;

use crate::config::{Config, good, is_of_programs};

#[test]
fn a_config_becomes_an_app_version() {
    let config = good();

    let loaded = config.load();

    assert!(loaded.warnings.is_empty(), "{}", loaded.warnings);
    assert_eq!(loaded.version.app.as_str(), "shop");
    let names: Vec<_> = loaded.version.components.iter().map(|one| one.name.as_str()).collect();
    assert_eq!(names, ["net", "web"]);
    assert_eq!(loaded.version.components[1].source, Source::Image { reference: "registry.example/web:1.0".to_owned() });
    assert_eq!(loaded.version.components[0].references, [Reference::Input("region".to_owned())].into());
}

#[test]
fn a_trigger_keeps_its_lowest_index() {
    let trigger =
        |index: &str| format!("[[triggers]]\ntype = \"post-component-deploy\"\ncomponent_name = \"web\"\n{index}");
    let triggers = [trigger("index = 3\n"), trigger("index = 0\n"), trigger("")].concat();
    let config = good().with(
        "actions/a.toml",
        &format!("name = \"a\"\n{triggers}[[triggers]]\ntype = \"post-provision\"\n[[steps]]\nname = \"s\"\ncommand = \"true\"\n"),
    );

    let action = config.load().version.actions.remove(0);

    let trigger = Trigger::PostDeployComponent { component: "web".parse().unwrap() };
    assert_eq!(action.indexes, [TriggerIndex { trigger, index: 0 }]);
    assert_eq!(action.triggers.len(), 2);
}

#[test]
fn a_file_in_a_nested_directory_names_files_from_the_directory_of_its_kind() {
    let action = "name = \"greet\"\n[[steps]]\nname = \"s\"\ninline_contents = \"./greet/run.sh\"\n";
    let config = good().with("actions/greet/action.toml", action).with("actions/greet/run.sh", "echo hello\n");

    let loaded = config.load();

    assert_eq!(loaded.version.actions[0].steps[0].inline_contents, "echo hello\n");
}

#[test]
fn dependencies_are_those_declared_and_those_found_in_templates() {
    let config = good().with(
        "components/app.toml",
        r#"
name = "app"
type = "cloudformation_stack"
template = "./app.yaml"
dependencies = ["net"]
deploy_timeout = "10m"
capabilities = ["CAPABILITY_NAMED_IAM"]
[parameters]
image = '{{ with .nuon.components.web }}{{ .outputs.image }}{{ end }}'
count = 3
"#,
    );
    let template =
        "Parameters:\n  image: {Type: String}\n  count: {Type: Number}\nResources:\n  A: {Type: AWS::SQS::Queue}\n";
    let config = config.with_roles().with("components/app.yaml", template).with(
        "actions/after.toml",
        "name = \"after\"\ntimeout = \"30s\"\nidempotent = true\n[[triggers]]\ntype = \"post-deploy-component\"\ncomponent_name = \"app\"\n[[steps]]\nname = \"s\"\ncommand = \"echo {{ .nuon.components.app.outputs.x }}\"\n",
    );

    let loaded = config.load();

    let app = &loaded.version.components[0];
    let needs: Vec<_> = app.dependencies.iter().map(|name| name.as_str()).collect();
    assert_eq!(needs, ["net", "web"]);
    assert_eq!(app.deploy_timeout_secs, 600);
    let ComponentSpec::CloudformationStack { stack_name, parameters, capabilities } = &app.spec else {
        panic!("{:?}", app.spec)
    };
    assert_eq!(stack_name, "{{ .nuon.install_stack.outputs.prefix }}app");
    assert_eq!(parameters["count"], "3");
    assert_eq!(capabilities, &["CAPABILITY_NAMED_IAM"]);
    let action = &loaded.version.actions[0];
    assert!(action.idempotent);
    assert_eq!(action.timeout_secs, 30);
    assert_eq!(action.references, [Reference::Component("app".parse().unwrap())].into());
    assert_eq!(action.triggers, [Trigger::PostDeployComponent { component: "app".parse().unwrap() }].into());
}

#[test]
fn roles_of_both_forms_become_modes() {
    let config = good()
        .with(
            "permissions.toml",
            "[maintenance_role]\nname = \"m\"\ndescription = \"keeps it\"\npermissions_boundary = '{\"Version\": \"2012-10-17\"}'\n[[maintenance_role.policies]]\nmanaged_policy_name = \"ReadOnlyAccess\"\n",
        )
        .with(
            "permissions/provision.toml",
            "type = \"provision\"\nname = \"p\"\ndescription = \"makes it\"\n[[policies]]\nname = \"x\"\ncontents = \"./x.json\"\n",
        )
        .with("permissions/x.json", "{\"Resource\": \"{{ .nuon.install.id }}-*\"}");

    let roles = config.load().version.roles;

    assert_eq!(roles.iter().map(|role| role.mode).collect::<Vec<_>>(), [Mode::Provision, Mode::Maintenance]);
    assert_eq!(
        roles[0].policies,
        [RolePolicy::Inline {
            name: "x".to_owned(),
            document: "{\"Resource\": \"{{ .nuon.install.id }}-*\"}".to_owned()
        }]
    );
    assert_eq!(roles[1].policies, [RolePolicy::Managed("ReadOnlyAccess".to_owned())]);
    assert!(roles[1].boundary.is_some());
}

#[test]
fn a_branch_waits_for_its_commit_and_a_commit_does_not() {
    let commit = "0123456789abcdef0123456789abcdef01234567";
    let module = |name: &str, branch: &str| {
        format!(
            "name = \"{name}\"\ntype = \"terraform_module\"\nterraform_version = \"1.11.3\"\n[public_repo]\nrepo = \"acme/modules\"\ndirectory = \"./{name}/\"\nbranch = \"{branch}\"\n"
        )
    };
    let config = good()
        .with("components/moving.toml", &module("moving", "main"))
        .with("components/pinned.toml", &module("pinned", commit));
    let mut loaded = config.load();
    assert_eq!(loaded.unresolved.len(), 1);
    assert_eq!(loaded.unresolved[0].url, "https://github.com/acme/modules");
    assert_eq!(loaded.unresolved[0].branch, "main");

    let url = "https://github.com/acme/modules";
    assert!(loaded.resolve(url, "main", "main").is_err());
    assert!(loaded.resolve(url, "other", commit).is_err());
    loaded.resolve(url, "main", commit).unwrap();

    assert!(loaded.unresolved.is_empty());
    let source = |name: &str| loaded.version.component(&name.parse().unwrap()).unwrap().source.clone();
    let expected = |directory: &str, branch: &str| Source::Git {
        url: "https://github.com/acme/modules".to_owned(),
        commit: commit.to_owned(),
        directory: directory.to_owned(),
        branch: branch.to_owned(),
    };
    assert_eq!(source("moving"), expected("moving", "main"));
    assert_eq!(source("pinned"), expected("pinned", ""));
}

#[test]
fn a_local_source_is_packed_into_the_same_bytes_every_time() {
    let one = good().with("modules/net/z/b.tf", "b").with("modules/net/.terraform/x", "cache");
    let two = good().with("modules/net/z/b.tf", "b").with("modules/net/.git/HEAD", "ref");
    let other = good().with("modules/net/z/b.tf", "c");

    let (one, two, other) = (one.load(), two.load(), other.load());

    assert_eq!(one.sources[0].archive, two.sources[0].archive);
    assert_ne!(one.sources[0].digest, other.sources[0].digest);
    assert_eq!(one.version.components[0].source, Source::Directory { digest: one.sources[0].digest.clone() });
    let mut tar = tar::Archive::new(flate2::read::GzDecoder::new(one.sources[0].archive.as_slice()));
    let entries: Vec<_> = tar
        .entries()
        .unwrap()
        .map(|entry| {
            let entry = entry.unwrap();
            let header = entry.header();
            let path = entry.path().unwrap().display().to_string();
            (path, header.mode().unwrap(), header.mtime().unwrap(), header.uid().unwrap())
        })
        .collect();
    assert_eq!(entries, [("main.tf".to_owned(), 0o644, 0, 0), ("z/b.tf".to_owned(), 0o644, 0, 0)]);
}

#[cfg(unix)]
#[test]
fn a_link_that_leads_out_of_a_source_is_refused_and_one_inside_is_kept() {
    let config = good();
    std::os::unix::fs::symlink("main.tf", config.dir.join("modules/net/same.tf")).unwrap();
    assert_eq!(config.load().sources.len(), 1);

    std::os::unix::fs::symlink("../../../secret", config.dir.join("modules/net/out.tf")).unwrap();

    let found = config.faults();
    assert!(found.to_string().contains("the link `out.tf` points outside of the directory"), "{found}");
}

#[cfg(unix)]
#[test]
fn a_link_that_the_build_would_refuse_is_refused_before_it() {
    let config = good();
    std::os::unix::fs::symlink("more/../main.tf", config.dir.join("modules/net/same.tf")).unwrap();

    let found = config.faults();

    assert!(found.to_string().contains("the link `same.tf` has `..` after a name in its target"), "{found}");
}

#[test]
fn mistakes_have_a_form_for_machines() {
    let config = good().with(
        "components/web2.toml",
        "name = \"web\"\ntype = \"container_image\"\n[public]\nimage_url = \"x\"\ntag = \"1\"\n",
    );

    let json = serde_json::to_string_pretty(&config.faults()).unwrap();

    insta::assert_snapshot!(json, @r#"
    [
      {
        "severity": "error",
        "file": "components/web2.toml",
        "line": 1,
        "column": 8,
        "message": "component `web` is defined twice, in components/web.toml:1 and here",
        "help": "rename one of them, or remove it",
        "related": [
          {
            "file": "components/web.toml",
            "line": 1,
            "column": 8,
            "message": "first defined here"
          }
        ]
      }
    ]
    "#);
}

#[test]
fn all_mistakes_come_at_once_ordered_by_file_and_line() {
    let config = good()
        .with("metadata.toml", "display_name = 1\n")
        .with("components/web.toml", "name = \"web\"\nname = \"x\"\n")
        .with("components/net.toml", "name = \"net\"\ntype = \"terraform_module\"\nsource = 3\n")
        .with("actions/a.toml", "name = \"a\"\n");

    let found: Vec<String> =
        config.faults().iter().map(|one| format!("{}:{} {}", one.file, one.line, one.message)).collect();

    insta::assert_snapshot!(found.join("\n"), @r"
    actions/a.toml:1 key `steps` is missing
    components/net.toml:1 key `terraform_version` is missing
    components/net.toml:3 `source` is a number
    components/web.toml:2 not TOML: duplicate key
    metadata.toml:1 key `version` is missing
    metadata.toml:1 `display_name` is a number
    ");
}

#[test]
fn a_missing_directory_is_reported() {
    let home = TempDir::new().unwrap();

    let found = check(&home.path().join("nothing"));

    assert!(found.to_string().contains("the app's directory cannot be read: it does not exist"), "{found}");
}

#[test]
fn the_demo_is_a_valid_app_once_its_image_is_made() {
    let home = TempDir::new().unwrap();
    let demo = home.path().join("demo");
    copy(&Path::new(env!("CARGO_MANIFEST_DIR")).join("../../examples/demo"), &demo);
    assert!(!check(&demo).has_errors(), "{}", check(&demo));
    std::fs::create_dir_all(demo.join("image")).unwrap();
    std::fs::write(demo.join("image/index.json"), "{}").unwrap();

    let loaded = load(&demo).unwrap_or_else(|found| panic!("{found}"));

    let others = loaded.warnings.clone().filter(|one| !is_of_programs(&one.message));
    assert!(others.is_empty(), "{others}");
    let component = |name: &str| loaded.version.component(&name.parse().unwrap()).unwrap();
    let needs: Vec<_> = component("store-info").dependencies.iter().map(|name| name.as_str()).collect();
    assert_eq!(needs, ["storage", "web"]);
    assert!(matches!(component("web").source, Source::Directory { .. }));
    assert_eq!(loaded.sources.len(), 4);
    assert_eq!(loaded.version.roles.len(), 3);
}

fn copy(from: &Path, to: &Path) {
    std::fs::create_dir_all(to).unwrap();
    for entry in std::fs::read_dir(from).unwrap() {
        let entry = entry.unwrap();
        let target = to.join(entry.file_name());
        if entry.file_type().unwrap().is_dir() {
            copy(&entry.path(), &target);
        } else {
            std::fs::copy(entry.path(), target).unwrap();
        }
    }
}

/// One way to write the same app.
fn written(images: &[(String, String)], inputs: &[String], style: bool) -> Config {
    let mut config = good();
    for (at, (name, tag)) in images.iter().enumerate() {
        let (path, text) = if style {
            let text = format!(
                "# image\ntype='container_image'\npublic={{tag='{tag}', image_url='x/{name}'}}\nname='{name}'\n"
            );
            (format!("components/{:03}-{name}.toml", 100 - at), text)
        } else {
            let text = format!(
                "name = \"{name}\"\ntype = \"container_image\"\n\n[public]\nimage_url = \"x/{name}\"\ntag = \"{tag}\"\n"
            );
            (format!("components/{at}.toml"), text)
        };
        config = config.with(&path, &text);
    }
    for (at, name) in inputs.iter().enumerate() {
        let keys = ["display_name = \"d\"", "description = \"e\"", "group = \"main\"", "required = true"];
        let keys = if style {
            keys.map(str::to_owned).join("\n")
        } else {
            keys.iter().rev().copied().collect::<Vec<_>>().join("\n\n")
        };
        let path = if style { format!("inputs/{at}.toml") } else { format!("inputs/x/{}.toml", 90 - at) };
        config = config.with(&path, &format!("name = \"{name}\"\n{keys}\n"));
    }
    config
}

#[test]
fn what_a_sync_refuses_and_a_check_only_warns_of_is_loaded_for_a_comparison() {
    let whole = good();
    let layout = "name = \"tools\"\ntype = \"container_image\"\n[oci_layout]\npath = \"./image\"\n";
    let unmade = good().with("components/tools.toml", layout);
    let faulty = good().with("components/tools.toml", "name = \"tools\"\n");
    let compared = |config: &Config| load_for_comparison(&config.dir, &Fetched::new());

    assert!(compared(&whole).unwrap().refused.is_empty());
    let loaded = compared(&unmade).unwrap();
    assert_eq!(loaded.refused.to_string(), load(&unmade.dir).unwrap_err().filter(is_error).to_string());
    assert!(loaded.refused.has_errors() && loaded.version.component(&"tools".parse().unwrap()).is_some());
    assert_eq!(compared(&faulty).unwrap_err(), load(&faulty.dir).unwrap_err());
}

fn is_error(one: &Diagnostic) -> bool {
    one.severity == Severity::Error
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(24))]

    #[test]
    fn the_digest_does_not_depend_on_file_names_order_or_formatting(
        images in prop::collection::btree_map("c[a-z]{1,5}", "[0-9]\\.[0-9]", 0..5),
        inputs in prop::collection::btree_set("i[a-z]{1,5}", 0..5),
    ) {
        let images: Vec<_> = images.into_iter().collect();
        let inputs: Vec<_> = inputs.into_iter().collect();

        let plain = written(&images, &inputs, false).load().version;
        let styled = written(&images, &inputs, true).load().version;

        prop_assert_eq!(plain.digest().unwrap(), styled.digest().unwrap());
        prop_assert_eq!(plain.components.len(), images.len() + 2);
    }
}
