//! Secrets that change in a customer's account: the runner notices at its start, and the next deploy runs what reads them, and
//! nothing else. A copy is made again in the customer's own cluster, whose name is a parameter of the install stack.

use std::path::{Path, PathBuf};

use anyhow::Context as _;
use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use freehold_protocol::{Digest, names};
use freehold_tests::harness::runner::Signal;
use freehold_tests::harness::wait::{SOON, until};
use freehold_tests::harness::{Capability, Cluster, Install, Needs, Runner, World, app};
use serde_json::{Value, json};

const NEEDS: Needs = Needs {
    cloud: &[Capability::HttpApi, Capability::Registry, Capability::IamEnforced],
    programs: &["bwrap", "terraform|tofu"],
};
const NEEDS_OF_COPIES: Needs = Needs {
    cloud: &[Capability::HttpApi, Capability::Registry, Capability::IamEnforced, Capability::Clusters],
    programs: &["bwrap", "terraform|tofu"],
};

const PASSWORD: &str = "[[secret]]\nname = \"password\"\ndescription = \"Of the site\"\nrequired = true\n";
/// The digest of the secret says which value was used, and shows no part of it.
const SITE: &str = r#"variable "password" { type = string }
resource "terraform_data" "site" { input = sha256(var.password) }
output "digest" { value = terraform_data.site.output }
"#;

#[tokio::test(flavor = "multi_thread")]
async fn a_changed_secret_runs_the_component_that_reads_it_and_no_other() -> anyhow::Result<()> {
    let Some(world) = World::start("cloud_changed_secret", NEEDS).await? else { return Ok(()) };
    world.ship(&app_with_password(world.directory())?).await?;
    let install = world.install_answering("globex", "small", &["AppSecretPassword=correct horse"]).await?;
    let mut runner = world.runner(&install).await?;
    world.provisioned(&install).await?;
    let before = site(&world).await?;
    let unchanged = world.vendor(&["deploy", "globex"]).await?;

    let known = digests(&world).await?;
    world.change_stack(&install, &["AppSecretPassword=battery staple"]).await?;
    restart(&world, &mut runner, &known).await?;
    let changed = world.vendor(&["deploy", "globex"]).await?;
    let again = world.vendor(&["deploy", "globex"]).await?;

    assert_eq!((before, site(&world).await?), (sha256("correct horse"), sha256("battery staple")));
    assert_eq!(node_names(&changed), ["site"], "{changed}");
    assert_eq!((&unchanged["nodes"], &again["nodes"]), (&json!([]), &json!([])), "{unchanged} {again}");
    Ok(())
}

fn app_with_password(parent: &Path) -> anyhow::Result<PathBuf> {
    let directory = app::small(parent)?;
    app::write(&directory, "secrets.toml", PASSWORD)?;
    let component = |name: &str, vars: &str| {
        format!(
            "name = \"{name}\"\ntype = \"terraform_module\"\nterraform_version = \"1.11.3\"\nsource = \"./{name}\"\n{vars}"
        )
    };
    let reads = component("site", "[vars]\npassword = \"{{ .nuon.secrets.password }}\"\n");
    app::write(&directory, "components/site.toml", &reads)?;
    app::write(&directory, "site/main.tf", SITE)?;
    app::write(&directory, "components/other.toml", &component("other", ""))?;
    app::write(&directory, "other/main.tf", "resource \"terraform_data\" \"other\" { input = \"nothing secret\" }\n")?;
    Ok(directory)
}

/// Returns the digest of the password that the site has.
async fn site(world: &World) -> anyhow::Result<String> {
    let view = world.vendor(&["install", "show", "globex"]).await?;
    let site = view["components"].as_array().into_iter().flatten().find(|one| one["component"] == "site");
    let digest = site.and_then(|site| site["outputs"]["digest"].as_str());
    Ok(digest.with_context(|| format!("the site has no digest: {view}"))?.to_owned())
}

fn sha256(text: &str) -> String {
    Digest::of(text.as_bytes()).hex().to_owned()
}

/// Starts the runner again, which reads the secrets at its start and every ten minutes. Returns once the tenant knows of
/// other digests than those `before`.
async fn restart(world: &World, runner: &mut Runner, before: &Value) -> anyhow::Result<()> {
    // Stopped and not killed: the open poll of a killed runner would take the next order.
    runner.signal(Signal::TERM)?;
    runner.ends(SOON).await?;
    runner.start_again()?;
    until("the tenant knows of the changed secret", SOON, || async {
        Ok((digests(world).await? != *before).then_some(()))
    })
    .await
}

/// Returns the keyed digests of the install's secrets, as its row has them.
async fn digests(world: &World) -> anyhow::Result<Value> {
    let rows = world.rows("install#globex", "state").await?;
    let (_, install) = rows.first().context("the install has no row")?;
    anyhow::ensure!(install["secrets"].is_object(), "the runner announced no secrets: {install}");
    Ok(install["secrets"].clone())
}

/// Returns the names of the nodes of a workflow, sorted.
fn node_names(workflow: &Value) -> Vec<&str> {
    let nodes = workflow["nodes"].as_array().map(Vec::as_slice).unwrap_or_default();
    let mut names: Vec<&str> = nodes.iter().filter_map(|node| node["name"].as_str()).collect();
    names.sort_unstable();
    names
}

const TOKEN: &str = r#"[[secret]]
name = "token"
description = "What runs in the cluster reads it"
required = true
kubernetes_sync = true
kubernetes_secret_namespace = "web"
kubernetes_secret_name = "web-token"
"#;
const INPUTS: &str = r#"[[group]]
name = "cluster"
display_name = "Cluster"
description = "The cluster of the customer's own"

[[input]]
name = "cluster_name"
display_name = "Name"
description = "The name of the cluster"
group = "cluster"
required = true
user_configurable = true
"#;
const SANDBOX: &str = r#"terraform_version = "1.11.3"
source = "./sandbox"

[vars]
cluster_name = "{{ .nuon.inputs.inputs.cluster_name }}"
"#;
const MODULE: &str = r#"variable "cluster_name" { type = string }
output "cluster_name" { value = var.cluster_name }
"#;
const NOTE: &str = r#"name = "note"
timeout = "1m"

[[triggers]]
type = "post-secrets-sync"

[[steps]]
name = "say"
command = "echo noted"
"#;
const DESCRIBE: &str = r#"{
  "Version": "2012-10-17",
  "Statement": [{ "Sid": "Cluster", "Effect": "Allow", "Action": "eks:DescribeCluster", "Resource": "*" }]
}
"#;
/// The customer made it before the app came.
const CLUSTER: &str = "theirs";

#[tokio::test(flavor = "multi_thread")]
async fn a_changed_secret_is_copied_again_into_the_customers_own_cluster() -> anyhow::Result<()> {
    let Some(world) = World::start("cloud_changed_secret.copies", NEEDS_OF_COPIES).await? else { return Ok(()) };
    world.ship(&app_with_copy(world.directory())?).await?;
    let answers = [format!("InputClusterName={CLUSTER}"), "AppSecretToken=one".to_owned()];
    let install = world.install_answering("globex", "small", &answers.each_ref().map(String::as_str)).await?;
    let cluster = world.cluster(&install.account, CLUSTER).await?;
    for mode in ["provision", "maintenance"] {
        let role = format!("fh-acme--globex--{mode}");
        world.admit(&cluster, &role, "AmazonEKSClusterAdminPolicy").await?;
    }
    let mut runner = world.runner(&install).await?;
    let provisioned = world.provisioned(&install).await?;
    let before = copy(&cluster).await?;

    let known = digests(&world).await?;
    put_token(&world, &install, "two").await?;
    restart(&world, &mut runner, &known).await?;
    let changed = world.vendor(&["deploy", "globex"]).await?;
    let again = world.vendor(&["deploy", "globex"]).await?;

    let first = node_names(&provisioned);
    assert!(["action:note", "sandbox", "secrets:copies"].iter().all(|name| first.contains(name)), "{provisioned}");
    assert_eq!(node_names(&changed), ["action:note", "secrets:copies"], "{changed}");
    assert_eq!(again["nodes"], json!([]), "{again}");
    assert_eq!([before, copy(&cluster).await?], ["one", "two"].map(|value| STANDARD.encode(value)));
    Ok(())
}

/// Writes an app whose sandbox is a cluster of the customer's own: a module passes on its name.
fn app_with_copy(parent: &Path) -> anyhow::Result<PathBuf> {
    let directory = app::small(parent)?;
    let files = [
        ("secrets.toml", TOKEN),
        ("inputs.toml", INPUTS),
        ("sandbox.toml", SANDBOX),
        ("sandbox/main.tf", MODULE),
        ("actions/note.toml", NOTE),
        ("permissions/describe.json", DESCRIBE),
    ];
    for (file, text) in files {
        app::write(&directory, file, text)?;
    }
    for file in ["permissions/provision.toml", "permissions/maintenance.toml"] {
        let role = std::fs::read_to_string(directory.join(file))?;
        let policy = "\n[[policies]]\nname = \"describe\"\ncontents = \"./describe.json\"\n";
        app::write(&directory, file, &format!("{role}{policy}"))?;
    }
    Ok(directory)
}

/// Changes the secret where the customer's stack keeps it, as a rotation does.
async fn put_token(world: &World, install: &Install, value: &str) -> anyhow::Result<()> {
    let secrets = aws_sdk_secretsmanager::Client::new(&world.administrator(&install.account)?);
    let name = names::app_secret(&world.tenant().parse()?, &install.name.parse()?, "token");
    secrets.put_secret_value().secret_id(name).secret_string(value).send().await.context("the secret")?;
    Ok(())
}

/// Returns the copy of the secret in the cluster, in base64.
async fn copy(cluster: &Cluster) -> anyhow::Result<String> {
    let words = ["get", "secret", "web-token", "--namespace=web", "--output=json"];
    let found = cluster.kubectl(&words).await?.json()?;
    Ok(found["data"]["value"].as_str().with_context(|| format!("no value: {found}"))?.to_owned())
}
