//! A machine with bubblewrap and the runner alone: its root file system has nothing else but the certificates that the runner
//! trusts, and Terraform runs in a tool image.

use std::collections::{BTreeMap, BTreeSet};
use std::path::{Path, PathBuf};
use std::process::Command;

use freehold_protocol::order::{ApplyTerraform, Artifact, MODULE_ARTIFACT, MODULE_LAYER, Package, ToolImage, Work};
use freehold_runner::kinds::execute;
use freehold_skips::{have, skip};
use serde_json::json;

use crate::artifacts::of_layer;
use crate::cloud::Cloud;
use crate::fixture::{Bench, outputs};
use crate::tool_image::{self, gzipped_tar};

const TEST: &str = "bare_machine::a_machine_with_bubblewrap_and_the_runner_alone_runs_a_whole_job";
/// Set in the process on the bare machine: a file with the artifacts.
const ARTIFACTS: &str = "FREEHOLD_TEST_ON_BARE_MACHINE";

const ROOTS: &str = "/etc/ssl/certs/ca-certificates.crt";

const MODULE: &[u8] = br#"
variable "name" { type = string }
resource "terraform_data" "this" { input = var.name }
output "name" { value = terraform_data.this.output }
"#;

#[tokio::test]
async fn a_machine_with_bubblewrap_and_the_runner_alone_runs_a_whole_job() {
    if let Some(file) = std::env::var_os("FREEHOLD_TEST_ON_BARE_MACHINE") {
        let artifacts: [Artifact; 2] = serde_json::from_slice(&std::fs::read(file).unwrap()).unwrap();
        return on_bare_machine(&artifacts).await;
    }
    if !have(&["bwrap", "terraform", "ldd"]) {
        return;
    }
    if !rustix::process::geteuid().is_root() {
        return skip("only root can start a runner in a root file system of its own, in which it makes boxes");
    }
    if !Path::new(ROOTS).is_file() {
        return skip("`/etc/ssl/certs/ca-certificates.crt` is not there; install `ca-certificates`");
    }
    let Some(programs) = image_programs() else {
        return skip("`busybox` or `terraform` is not installed, or is linked to libraries");
    };
    let Some(cloud) = Cloud::here(TEST).await else { return };
    let files: Vec<(&str, &[u8])> = programs.iter().map(|(path, bytes)| (*path, bytes.as_slice())).collect();
    let image = tool_image::of_files(&cloud, &files).await;
    let module = gzipped_tar(&[("main.tf", MODULE)]);
    let module = of_layer(&cloud, Package::TerraformModule, module, (MODULE_LAYER, MODULE_ARTIFACT)).await;
    let root = tempfile::tempdir().unwrap();
    let own = std::env::current_exe().unwrap();
    let bwrap = freehold_runner::sandbox::find_program(&["bwrap"]).unwrap();
    let runner = PathBuf::from(env!("CARGO_BIN_EXE_freehold-runner"));
    let copied = copy_programs(root.path(), &[&own, &bwrap, &runner]);
    let roots = root.path().join(ROOTS.trim_start_matches('/'));
    std::fs::create_dir_all(roots.parent().unwrap()).unwrap();
    std::fs::copy(ROOTS, roots).unwrap();
    std::fs::write(root.path().join("artifacts.json"), serde_json::to_vec(&[&image, &module]).unwrap()).unwrap();

    // A `/proc` that `bwrap` makes has covers, with which the kernel lets no box have one of its own.
    let mut bare = Command::new(&bwrap);
    bare.args(["--cap-add", "ALL", "--die-with-parent", "--bind"])
        .arg(root.path())
        .args(["/", "--bind", "/proc", "/proc"]);
    bare.args(["--dev", "/dev", "--tmpfs", "/tmp", "--chdir", "/", "--setenv", ARTIFACTS, "/artifacts.json", "--"]);
    for variable in ["SSL_CERT_FILE", "SSL_CERT_DIR", "AWS_CA_BUNDLE"] {
        bare.env_remove(variable);
    }
    let ended = bare.arg(&own).args(["--exact", TEST, "--nocapture"]).output().unwrap();

    let output = String::from_utf8_lossy(&ended.stdout).into_owned() + &String::from_utf8_lossy(&ended.stderr);
    assert!(ended.status.success(), "{output}");
    assert!(output.contains("ran on a machine without a shell"), "{output}");
    let programs: BTreeSet<PathBuf> = [own, bwrap, runner].into();
    assert!(copied.difference(&programs).all(|path| path.to_string_lossy().contains(".so")), "{copied:?}");
}

/// Returns the programs of the image, none of which needs a library.
fn image_programs() -> Option<Vec<(&'static str, Vec<u8>)>> {
    let places = [("bin/busybox", "busybox"), ("bin/terraform", "terraform")];
    let read = |(inside, name): (&'static str, &str)| {
        let path = freehold_runner::sandbox::find_program(&[name])?;
        libraries(&path).is_empty().then(|| (inside, std::fs::read(path).unwrap()))
    };
    let mut programs: Vec<_> = places.into_iter().map(read).collect::<Option<_>>()?;
    programs.push(("bin/sh", b"-> busybox".to_vec()));
    Some(programs)
}

/// Returns the libraries of a program and their loader.
fn libraries(program: &Path) -> BTreeSet<PathBuf> {
    let ldd = Command::new("ldd").arg(program).output().unwrap();
    let text = String::from_utf8_lossy(&ldd.stdout).into_owned();
    text.split_whitespace().filter(|word| word.starts_with('/')).map(PathBuf::from).collect()
}

/// Copies programs and their libraries into a new root file system; returns what it has now.
fn copy_programs(root: &Path, programs: &[&PathBuf]) -> BTreeSet<PathBuf> {
    let mut files: BTreeSet<PathBuf> = programs.iter().map(|path| (*path).clone()).collect();
    files.extend(programs.iter().flat_map(|path| libraries(path)));
    for file in &files {
        let to = root.join(file.strip_prefix("/").unwrap());
        std::fs::create_dir_all(to.parent().unwrap()).unwrap();
        std::fs::copy(file, to).unwrap();
    }
    files
}

/// Runs a step of an action, and applies a module, both in the image.
async fn on_bare_machine([image, module]: &[Artifact; 2]) {
    assert!(
        freehold_runner::sandbox::find_program(&["sh", "terraform"]).is_none() && !Path::new("/usr/bin/env").exists()
    );
    let cloud = Cloud::joined().await;
    let in_image = |bench: &mut Bench| {
        let tool_image = ToolImage { component: "network".parse().unwrap(), artifact: image.clone() };
        bench.change_order(|order| order.tool_image = Some(Box::new(tool_image)));
    };
    let mut action = cloud.bench(tool_image::work("echo \"shell of $(ls /bin | wc -l) files\"", ""), image);
    in_image(&mut action);
    let work = ApplyTerraform {
        component: "network".parse().unwrap(),
        artifact: module.clone(),
        terraform_version: String::new(),
        vars: BTreeMap::from([("name".to_owned(), json!("{{ .nuon.install.id }}"))]),
        env_vars: BTreeMap::new(),
        var_files: Vec::new(),
    };
    let mut terraform = cloud.bench(Work::TerraformModule(work), module);
    in_image(&mut terraform);
    terraform.job.config = action.job.config.clone();

    outputs(execute(&action.job).await);
    let applied = execute(&terraform.job).await;

    assert_eq!(outputs(applied), json!({ "name": "globex-prod" }), "{}", terraform.log());
    assert!(action.log().contains("look | shell of 3 files"));
    assert!(cloud.object("terraform/network.tfstate").await.is_some());
    println!("ran on a machine without a shell");
}
