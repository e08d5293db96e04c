//! Every kind of component: the document that its config becomes.

mod clusters;
mod mistakes;

use freehold_protocol::app_version::{Component, ComponentSpec, Reference};
use freehold_protocol::order::Source;
use serde_json::json;

use crate::config::{Config, good, is_of_programs};

const COMMIT: &str = "0123456789abcdef0123456789abcdef01234567";

fn component(config: &Config, name: &str) -> Component {
    config.load().version.component(&name.parse().unwrap()).unwrap().clone()
}

/// Returns the component as canonical JSON says it, without what every kind has.
fn special(config: &Config, name: &str) -> serde_json::Value {
    let component = component(config, name);
    let mut special = json!({ "source": component.source, "spec": component.spec });
    special.sort_all_objects();
    special
}

#[test]
fn a_chart_of_a_chart_repository_has_values_and_files() {
    let config = good()
        .with_sandbox()
        .with(
            "components/db.toml",
            r#"
name = "db"
type = "helm_chart"
chart_name = "postgres"
storage_driver = "configmap"
take_ownership = true

[helm_repo]
repo_url = "https://charts.example"
chart = "postgres"
version = "1.2.3"

[values]
"image.tag" = "{{ .nuon.components.web.outputs.image.tag }}"
replicas = 2

[[values_file]]
contents = "./db.yaml"

[[values_file]]
path = "./more.yaml"
"#,
        )
        .with("components/db.yaml", "a: {{ .nuon.install.id }}\n")
        .with("components/more.yaml", "b: 2\n");

    insta::assert_snapshot!(serde_json::to_string_pretty(&special(&config, "db")).unwrap(), @r#"
    {
      "source": {
        "chart": "postgres",
        "from": "chart",
        "repo_url": "https://charts.example",
        "version": "1.2.3"
      },
      "spec": {
        "chart_name": "postgres",
        "kind": "helm_chart",
        "namespace": "{{ .nuon.install.id }}",
        "storage_driver": "configmap",
        "take_ownership": true,
        "values": {
          "image.tag": "{{ .nuon.components.web.outputs.image.tag }}",
          "replicas": 2
        },
        "values_files": [
          "a: {{ .nuon.install.id }}\n",
          "b: 2\n"
        ]
      }
    }
    "#);
    assert_eq!(component(&config, "db").dependencies, ["web".parse().unwrap()].into());
}

#[test]
fn a_chart_of_a_git_repository_lives_in_the_namespace_of_the_install() {
    let text = format!(
        "name = \"db\"\ntype = \"helm_chart\"\nchart_name = \"db\"\n[public_repo]\nrepo = \"acme/charts\"\ndirectory = \"./db\"\nbranch = \"{COMMIT}\"\n"
    );
    let config = good().with_sandbox().with("components/db.toml", &text);

    insta::assert_snapshot!(serde_json::to_string_pretty(&special(&config, "db")).unwrap(), @r#"
    {
      "source": {
        "commit": "0123456789abcdef0123456789abcdef01234567",
        "directory": "db",
        "from": "git",
        "url": "https://github.com/acme/charts"
      },
      "spec": {
        "chart_name": "db",
        "kind": "helm_chart",
        "namespace": "{{ .nuon.install.id }}"
      }
    }
    "#);
}

#[test]
fn a_manifest_is_a_text_or_a_file() {
    let config = good()
        .with_sandbox()
        .with(
            "components/a.toml",
            "name = \"a\"\ntype = \"kubernetes_manifest\"\nnamespace = \"x\"\nmanifest = '''\napiVersion: v1\nkind: Pod\n'''\n",
        )
        .with(
            "components/b.toml",
            "name = \"b\"\ntype = \"kubernetes_manifest\"\nnamespace = \"x\"\nmanifest = \"./b.yaml\"\n",
        )
        .with("components/b.yaml", "apiVersion: v1\nkind: {{ .nuon.inputs.inputs.region }}\n");

    let manifest = |name: &str| match component(&config, name).spec {
        ComponentSpec::KubernetesManifest { manifest, .. } => manifest,
        other => panic!("{other:?}"),
    };
    assert_eq!(manifest("a"), "apiVersion: v1\nkind: Pod\n");
    assert_eq!(manifest("b"), "apiVersion: v1\nkind: {{ .nuon.inputs.inputs.region }}\n");
    assert_eq!(component(&config, "a").source, Source::Version);
    assert_eq!(component(&config, "b").references, [Reference::Input("region".to_owned())].into());
}

#[test]
fn a_kustomization_is_a_path_in_a_repository_beside_it() {
    let text = format!(
        "name = \"k\"\ntype = \"kubernetes_manifest\"\nnamespace = \"x\"\n[public_repo]\nrepo = \"acme/apps\"\ndirectory = \".\"\nbranch = \"{COMMIT}\"\n[kustomize]\npath = \"./guestbook\"\npatches = [\"a.yaml\"]\nenable_helm = false\n"
    );
    let config = good().with_sandbox().with("components/k.toml", &text);

    insta::assert_snapshot!(serde_json::to_string_pretty(&special(&config, "k")).unwrap(), @r#"
    {
      "source": {
        "commit": "0123456789abcdef0123456789abcdef01234567",
        "directory": "",
        "from": "git",
        "url": "https://github.com/acme/apps"
      },
      "spec": {
        "kind": "kubernetes_manifest",
        "kustomize": {
          "options": {
            "enable_helm": false,
            "patches": [
              "a.yaml"
            ],
            "path": "./guestbook"
          }
        },
        "namespace": "x"
      }
    }
    "#);
}

#[test]
fn a_kustomization_without_a_repository_is_a_directory_of_the_app() {
    let config = good()
        .with_sandbox()
        .with("components/k.toml", "name = \"k\"\ntype = \"kubernetes_manifest\"\nnamespace = \"x\"\n[kustomize]\npath = \"./k8s\"\nload_restrictor = \"none\"\n")
        .with("components/w.toml", "name = \"w\"\ntype = \"kubernetes_manifest\"\nnamespace = \"x\"\n[kustomize]\ndirectory = \"./k8s\"\npath = \"prod\"\n")
        .with("components/k8s/kustomization.yaml", "resources: []\n")
        .with("components/k8s/prod/kustomization.yaml", "resources: []\n");

    let options = |name: &str| match component(&config, name).spec {
        ComponentSpec::KubernetesManifest { kustomize, .. } => serde_json::to_string(&kustomize).unwrap(),
        other => panic!("{other:?}"),
    };
    assert_eq!(options("k"), r#"{"options":{"load_restrictor":"none"}}"#);
    assert_eq!(options("w"), r#"{"options":{"path":"prod"}}"#);
    assert!(matches!(component(&config, "k").source, Source::Directory { .. }));
    assert_eq!(component(&config, "k").source, component(&config, "w").source);
}

#[test]
fn a_docker_build_takes_a_directory_arguments_and_a_stage() {
    let config = good()
        .with(
            "components/img.toml",
            "name = \"img\"\ntype = \"docker_build\"\ndockerfile = \"Dockerfile\"\nsource = \"./img\"\ntarget = \"run\"\n[build_args]\nDEBUG = 1\n[env_vars]\nA = \"b\"\n",
        )
        .with("components/img/Dockerfile", "FROM scratch AS run\n");

    let component = component(&config, "img");

    assert!(matches!(component.source, Source::Directory { .. }));
    insta::assert_snapshot!(serde_json::to_string(&component.spec).unwrap(), @r#"{"kind":"docker_build","dockerfile":"Dockerfile","env_vars":{"A":"b"},"build_args":{"DEBUG":"1"},"target":"run"}"#);
}

#[test]
fn a_job_is_all_in_the_version_and_its_arguments_are_templates() {
    let config = good().with_sandbox().with(
        "components/job.toml",
        "name = \"job\"\ntype = \"job\"\nimage_url = \"{{ .nuon.components.web.outputs.image.repository }}\"\ntag = \"1\"\ncmd = [\"migrate\"]\nargs = [\"--region\", \"{{ .nuon.inputs.inputs.region }}\"]\n[env_vars]\nN = 3\n",
    );

    insta::assert_snapshot!(serde_json::to_string_pretty(&special(&config, "job")).unwrap(), @r#"
    {
      "source": {
        "from": "version"
      },
      "spec": {
        "args": [
          "--region",
          "{{ .nuon.inputs.inputs.region }}"
        ],
        "cmd": [
          "migrate"
        ],
        "env_vars": {
          "N": "3"
        },
        "image_url": "{{ .nuon.components.web.outputs.image.repository }}",
        "kind": "job",
        "tag": "1"
      }
    }
    "#);
    let expected = [Reference::Input("region".to_owned()), Reference::Component("web".parse().unwrap())];
    assert_eq!(component(&config, "job").references, expected.into());
}

#[test]
fn the_image_of_a_job_is_copied_by_its_build_unless_a_template_names_it() {
    let config = good()
        .with_sandbox()
        .with("components/job.toml", "name = \"job\"\ntype = \"job\"\nimage_url = \"example/tools\"\ntag = \"1\"\n");

    assert_eq!(component(&config, "job").source, Source::Image { reference: "example/tools:1".into() });
}

#[test]
fn a_job_with_an_image_that_nothing_brings_is_a_warning() {
    let config = good().with_sandbox().with(
        "components/job.toml",
        "name = \"job\"\ntype = \"job\"\nimage_url = \"example/tools\"\ntag = \"{{ .nuon.inputs.inputs.region }}\"\n",
    );

    insta::assert_snapshot!(config.all().filter(|one| !is_of_programs(&one.message)), @r#"
    warning: the app cannot be deployed yet: component `job` runs an image that no component copies into the install registry
     --> components/job.toml:2:8
      |
    2 | type = "job"
      |        ^^^^^
      |
      = help: the app can be checked, synced and built; an install of it is refused
    "#);
}

#[test]
fn a_pulumi_program_has_a_configuration() {
    let text = format!(
        "name = \"p\"\ntype = \"pulumi\"\nruntime = \"go\"\n[public_repo]\nrepo = \"acme/p\"\nbranch = \"{COMMIT}\"\n[config]\n\"aws:region\" = \"{{{{ .nuon.install_stack.outputs.region }}}}\"\n[env_vars]\nA = true\n"
    );
    let config = good().with("components/p.toml", &text);

    insta::assert_snapshot!(serde_json::to_string_pretty(&special(&config, "p")).unwrap(), @r#"
    {
      "source": {
        "commit": "0123456789abcdef0123456789abcdef01234567",
        "directory": "",
        "from": "git",
        "url": "https://github.com/acme/p"
      },
      "spec": {
        "config": {
          "aws:region": "{{ .nuon.install_stack.outputs.region }}"
        },
        "env_vars": {
          "A": "true"
        },
        "kind": "pulumi",
        "runtime": "go"
      }
    }
    "#);
    assert_eq!(component(&config, "p").references, [Reference::InstallStack("region".to_owned())].into());
}

#[test]
fn an_image_comes_from_any_registry() {
    let image = |name: &str, keys: &str| format!("name = \"{name}\"\ntype = \"external_image\"\n{keys}\n");
    let config = good()
        .with("components/ecr.toml", &image("ecr", "[aws_ecr]\niam_role_arn = \"arn:aws:iam::111122223333:role/r\"\nregion = \"eu-west-1\"\nimage_url = \"111122223333.dkr.ecr.eu-west-1.amazonaws.com/a\"\ntag = \"1\""))
        .with("components/gar.toml", &image("gar", "[gcp_gar]\ngcp_project_id = \"p\"\nregion = \"r\"\nimage_url = \"r-docker.example/p/a\"\ntag = \"1\""))
        .with("components/acr.toml", &image("acr", "[azure_acr]\nregistry_url = \"acme.example\"\nimage_url = \"acme.example/a\"\ntag = \"1\""));

    let source = |name: &str| serde_json::to_string(&component(&config, name).source).unwrap();

    insta::assert_snapshot!([source("ecr"), source("gar"), source("acr")].join("\n"), @r#"
    {"from":"ecr_image","reference":"111122223333.dkr.ecr.eu-west-1.amazonaws.com/a:1","region":"eu-west-1","role_arn":"arn:aws:iam::111122223333:role/r"}
    {"from":"image","reference":"r-docker.example/p/a:1"}
    {"from":"image","reference":"acme.example/a:1"}
    "#);
    assert_eq!(component(&config, "ecr").spec.kind(), "container_image");
}

#[test]
fn a_signature_is_a_key_or_an_identity() {
    let text = "name = \"web\"\ntype = \"container_image\"\n[public]\nimage_url = \"x/y\"\ntag = \"1\"\n[verification]\nrequire_signature = true\n[[verification.authorities]]\ntype = \"sigstore_keyless\"\nissuer = \"https://accounts.example\"\nsubject_regexp = \".*\"\n[[verification.authorities]]\npublic_key = \"./key.pub\"\n";
    let config = |text: &str| {
        let key = "-----BEGIN PUBLIC KEY-----\nQUJD\n-----END PUBLIC KEY-----\n";
        good().with("components/web.toml", text).with("components/key.pub", key)
    };
    let spec = |text: &str| component(&config(text), "web").spec;

    assert_eq!(spec(&text.replace("sigstore_keyless", "keyless")), spec(text));
    insta::assert_snapshot!(serde_json::to_string_pretty(&spec(text)).unwrap(), @r#"
    {
      "kind": "container_image",
      "verification": {
        "require_signature": true,
        "authorities": [
          {
            "issuer": "https://accounts.example",
            "subject_regexp": ".*",
            "type": "sigstore_keyless"
          },
          {
            "public_key": "-----BEGIN PUBLIC KEY-----\nQUJD\n-----END PUBLIC KEY-----\n"
          }
        ]
      }
    }
    "#);
}

#[test]
fn settings_of_operation_are_kept() {
    let config = good()
        .with("metadata.toml", "version = \"v2\"\n[[kubernetes_context]]\nname = \"data\"\ncomponent = \"net\"\n")
        .with("permissions/p.toml", "type = \"custom\"\nname = \"deployer\"\ndescription = \"d\"\n")
        .with(
            "components/web.toml",
            r#"
name = "web"
type = "container_image"
kubernetes_context = "data"
toggleable = true
default_enabled = false
build_timeout = "10m"
deploy_timeout = "20m"
max_auto_retries = 3
skip_noops = true
auto_approve_on_policies_passing = true
drift_schedule = "0 */6 * * *"
labels = { team = "shop" }

[public]
image_url = "x/y"
tag = "1"

[[operation_roles]]
operation = "deploy"
role = "deployer"

[health]
block_deploy = true
required_checks = ["synthetic"]

[[health.probes]]
type = "http"
url = "https://{{ .nuon.sandbox.outputs.domain }}/healthz"

[[health.probes]]
type = "exec"
command = ["check"]
"#,
        );

    let component = component(&config, "web");

    insta::assert_snapshot!(serde_json::to_string_pretty(&component.settings).unwrap(), @r#"
    {
      "labels": {
        "team": "shop"
      },
      "operation_roles": {
        "deploy": "deployer"
      },
      "kubernetes_context": "data",
      "toggle": false,
      "max_auto_retries": 3,
      "skip_noops": true,
      "auto_approve_on_policies_passing": true,
      "drift_schedule": "0 */6 * * *",
      "health": {
        "block_deploy": true,
        "stabilization_window_secs": 180,
        "required_checks": [
          "synthetic"
        ],
        "probes": [
          {
            "type": "http",
            "url": "https://{{ .nuon.sandbox.outputs.domain }}/healthz"
          },
          {
            "command": [
              "check"
            ],
            "type": "exec"
          }
        ]
      }
    }
    "#);
    assert_eq!((component.build_timeout_secs, component.deploy_timeout_secs), (Some(600), 1200));
    assert_eq!(component.dependencies, ["net".parse().unwrap()].into());
    assert_eq!(component.references, [Reference::Sandbox("domain".to_owned())].into());
}
