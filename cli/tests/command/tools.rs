//! `freehold tools`: a list of programs becomes an image layout, the same bytes every time, and nothing unchecked is in it.

use std::io::Read as _;
use std::path::Path;
use std::process::{Command, Output};

use flate2::Compression;
use flate2::write::GzEncoder;
use freehold_protocol::Digest;
use serde_json::Value;

fn freehold(args: &[&str]) -> Output {
    Command::new(env!("CARGO_BIN_EXE_freehold")).args(args).output().unwrap()
}

fn fails(dir: &Path, code: i32) -> String {
    let ended = freehold(&["tools", "build", dir.to_str().unwrap()]);
    assert_eq!(ended.status.code(), Some(code), "{ended:?}");
    String::from_utf8(ended.stderr).unwrap()
}

fn build(dir: &Path) -> String {
    let ended = freehold(&["--json", "tools", "build", dir.to_str().unwrap()]);
    assert!(ended.status.success(), "{}", String::from_utf8_lossy(&ended.stderr));
    serde_json::from_slice::<Value>(&ended.stdout).unwrap()["image"].as_str().unwrap().to_owned()
}

fn json(dir: &Path, digest: &str) -> Value {
    let blob = dir.join("image/blobs/sha256").join(digest.strip_prefix("sha256:").unwrap());
    serde_json::from_slice(&std::fs::read(blob).unwrap()).unwrap()
}

/// A gzipped tar of one file.
fn archive(path: &str, content: &[u8]) -> Vec<u8> {
    let mut tar = tar::Builder::new(GzEncoder::new(Vec::new(), Compression::fast()));
    let mut header = tar::Header::new_gnu();
    header.set_size(content.len() as u64);
    header.set_mode(0o755);
    tar.append_data(&mut header, path, content).unwrap();
    tar.into_inner().unwrap().finish().unwrap()
}

/// Writes a list of three items at hand without checksums.
fn list(dir: &Path) -> (String, Vec<u8>) {
    let base = archive("./bin/sh", b"shell");
    std::fs::write(dir.join("base.tar.gz"), &base).unwrap();
    std::fs::write(dir.join("helm.tar.gz"), archive("linux-amd64/helm", b"helm")).unwrap();
    std::fs::write(dir.join("roots.pem"), "certificates").unwrap();
    let text = r#"# A list.
platforms = ["linux/amd64", "linux/arm64"]
env = { PATH = "/usr/local/bin:/bin" }

[[item]]
name = "base"
kind = "tree"
file = "base.tar.gz"

[[item]]
name = "helm"
platform = "linux/amd64"
file = "helm.tar.gz"
member = "linux-amd64/helm"

[[item]]
name = "roots"
file = "roots.pem"
path = "/etc/ssl/certs/ca-certificates.crt"
"#;
    std::fs::write(dir.join("tools.toml"), text).unwrap();
    (text.to_owned(), base)
}

#[test]
fn the_same_list_is_the_same_image_with_a_layer_for_each_item() {
    let directory = tempfile::tempdir().unwrap();
    let dir = directory.path();
    let (text, base) = list(dir);
    assert!(
        fails(dir, 2).contains("item `base`: it has no `sha256`; write the publisher's, or run `freehold tools pin`")
    );

    let pinned = freehold(&["tools", "pin", dir.to_str().unwrap()]);
    let first = build(dir);
    let second = build(dir);

    assert!(pinned.status.success(), "{pinned:?}");
    let after = std::fs::read_to_string(dir.join("tools.toml")).unwrap();
    let without: String =
        after.lines().filter(|line| !line.starts_with("sha256")).map(|line| format!("{line}\n")).collect();
    assert_eq!(without, text);
    assert_eq!(first, second);
    let index = json(dir, &first);
    let images = index["manifests"].as_array().unwrap();
    assert_eq!(images.len(), 2);
    assert_eq!(images[1]["platform"]["architecture"], "arm64");
    let manifest = json(dir, images[0]["digest"].as_str().unwrap());
    let layers = manifest["layers"].as_array().unwrap();
    assert_eq!((layers.len(), layers[0]["digest"].as_str()), (3, Some(Digest::of(&base).as_str())));
    assert_eq!(json(dir, images[1]["digest"].as_str().unwrap())["layers"].as_array().unwrap().len(), 2);
    let config = json(dir, manifest["config"]["digest"].as_str().unwrap());
    assert_eq!(config["config"]["Env"][0], "PATH=/usr/local/bin:/bin");
    assert_eq!(config["rootfs"]["diff_ids"].as_array().unwrap().len(), 3);
    let found: Vec<(String, u32, String)> = layers[1..].iter().map(|layer| entry(dir, layer)).collect();
    assert_eq!(found[0], ("usr/local/bin/helm".to_owned(), 0o755, "helm".to_owned()));
    assert_eq!(found[1], ("etc/ssl/certs/ca-certificates.crt".to_owned(), 0o644, "certificates".to_owned()));
}

/// Returns path, mode and content of the only entry of a layer.
fn entry(dir: &Path, layer: &Value) -> (String, u32, String) {
    let digest = layer["digest"].as_str().unwrap().strip_prefix("sha256:").unwrap();
    let file = std::fs::File::open(dir.join("image/blobs/sha256").join(digest)).unwrap();
    let mut tar = tar::Archive::new(flate2::read::GzDecoder::new(file));
    let mut entry = tar.entries().unwrap().next().unwrap().unwrap();
    let mut text = String::new();
    entry.read_to_string(&mut text).unwrap();
    (entry.path().unwrap().display().to_string(), entry.header().mode().unwrap(), text)
}

#[test]
fn what_has_another_checksum_is_refused_and_the_image_before_stays() {
    let directory = tempfile::tempdir().unwrap();
    let dir = directory.path();
    list(dir);
    assert!(freehold(&["tools", "pin", dir.to_str().unwrap()]).status.success());
    let before = build(dir);

    std::fs::write(dir.join("roots.pem"), "others").unwrap();
    let other = fails(dir, 2);
    std::fs::write(dir.join("roots.pem"), "certificates").unwrap();
    std::fs::write(dir.join("helm.tar.gz"), archive("linux-amd64/other", b"helm")).unwrap();
    let text = std::fs::read_to_string(dir.join("tools.toml")).unwrap();
    let digest = Digest::of(&std::fs::read(dir.join("helm.tar.gz")).unwrap());
    let old = Digest::of(&archive("linux-amd64/helm", b"helm"));
    std::fs::write(dir.join("tools.toml"), text.replace(old.hex(), digest.hex())).unwrap();
    let absent = fails(dir, 2);

    assert!(
        other.contains("item `roots`: its bytes have the SHA-256 ") && other.contains("before you know the reason"),
        "{other}"
    );
    assert!(absent.contains("item `helm`: it has no file `linux-amd64/helm`; correct `member`"), "{absent}");
    let index = std::fs::read_to_string(dir.join("image/index.json")).unwrap();
    assert!(index.contains(&before));
    let files: Vec<String> =
        std::fs::read_dir(dir).unwrap().map(|entry| entry.unwrap().file_name().display().to_string()).collect();
    assert!(!files.iter().any(|name| name.starts_with(".image-")), "{files:?}");
}

#[test]
fn a_new_list_is_written_once_and_is_part_of_an_app() {
    let directory = tempfile::tempdir().unwrap();
    let app = directory.path().join("my-app");
    let app = app.to_str().unwrap();
    assert!(freehold(&["app", "init", app]).status.success());

    let first = freehold(&["tools", "init", app]);
    let runner = std::fs::read_to_string(format!("{app}/runner.toml")).unwrap();
    let unmade = freehold(&["tools", "pin", &format!("{app}/tools")]);
    std::fs::write(format!("{app}/tools/tools.toml"), "# mine\n").unwrap();
    let second = freehold(&["tools", "init", app]);

    assert!(first.status.success(), "{first:?}");
    assert!(std::fs::read_to_string(format!("{app}/components/tools.toml")).unwrap().contains("./tools/image"));
    assert!(runner.contains("runner_type = \"aws\"") && runner.contains("tool_image = \"tools\""), "{runner}");
    assert_eq!(unmade.status.code(), Some(2));
    let unmade = String::from_utf8_lossy(&unmade.stderr);
    assert!(
        unmade.contains("base-amd64.tar.gz") && unmade.contains("make the file with the command in the comment"),
        "{unmade}"
    );
    assert_eq!(second.status.code(), Some(4));
    assert_eq!(std::fs::read_to_string(format!("{app}/tools/tools.toml")).unwrap(), "# mine\n");
}

#[test]
fn a_list_that_is_missing_or_not_text_is_wrong_input_like_any_other_file() {
    let directory = tempfile::tempdir().unwrap();
    let dir = directory.path();

    let absent = fails(dir, 2);
    std::fs::write(dir.join("tools.toml"), [0xff, 0xfe]).unwrap();
    let binary = fails(dir, 2);

    let list = dir.join("tools.toml");
    let way_out = "pass the directory of the list; `freehold tools init APP` writes one to start from";
    assert_eq!(absent, format!("error: there is no file `{}`; {way_out}\n", list.display()));
    assert_eq!(binary, format!("error: `{}` is not text: byte 1 is not UTF-8; {way_out}\n", list.display()));
}

#[test]
fn a_list_is_written_into_a_folder_of_an_app_only() {
    let directory = tempfile::tempdir().unwrap();
    let nowhere = directory.path().join("nowhere");

    let refused = freehold(&["tools", "init", nowhere.to_str().unwrap()]);

    assert_eq!(refused.status.code(), Some(2), "{refused:?}");
    let message = String::from_utf8_lossy(&refused.stderr);
    assert!(message.contains("is not an app: there is no `") && message.contains("`freehold app init`"), "{message}");
    assert!(!nowhere.exists());
}

#[test]
fn a_new_app_with_a_tool_image_has_no_mistake_once_the_image_is_built() {
    let directory = tempfile::tempdir().unwrap();
    let app = directory.path().join("my-app");
    let path = app.to_str().unwrap();
    assert!(freehold(&["app", "init", path]).status.success());
    assert!(freehold(&["tools", "init", path]).status.success());
    list(&app.join("tools"));

    let pinned = freehold(&["tools", "pin", app.join("tools").to_str().unwrap()]);
    build(&app.join("tools"));
    let checked = freehold(&["app", "check", path]);

    assert!(pinned.status.success(), "{pinned:?}");
    assert!(checked.status.success(), "{checked:?}");
    let stdout = String::from_utf8_lossy(&checked.stdout);
    assert!(stdout.contains("my-app`: no errors, no warnings"), "{stdout}");
}

#[test]
fn before_the_image_is_built_check_names_the_command_and_the_graph_is_shown() {
    let directory = tempfile::tempdir().unwrap();
    let app = directory.path().join("my-app");
    let path = app.to_str().unwrap();
    assert!(freehold(&["app", "init", path]).status.success());
    assert!(freehold(&["tools", "init", path]).status.success());

    let checked = freehold(&["app", "check", path]);
    let graph = freehold(&["app", "graph", path]);

    let stdout = String::from_utf8_lossy(&checked.stdout);
    assert!(checked.status.success() && stdout.contains("no errors, 1 warning"), "{stdout}");
    assert!(stdout.contains(&format!("= help: make it with `freehold tools build {path}/tools`")), "{stdout}");
    assert!(graph.status.success(), "{graph:?}");
    assert!(String::from_utf8_lossy(&graph.stdout).contains("tools "), "{graph:?}");
}

#[test]
fn a_directory_that_is_not_an_image_is_not_replaced() {
    let directory = tempfile::tempdir().unwrap();
    let dir = directory.path();
    list(dir);
    assert!(freehold(&["tools", "pin", dir.to_str().unwrap()]).status.success());
    std::fs::create_dir(dir.join("image")).unwrap();
    build(dir);
    std::fs::remove_dir_all(dir.join("image")).unwrap();
    std::fs::create_dir(dir.join("image")).unwrap();
    std::fs::write(dir.join("image/mine"), "x").unwrap();

    let ended = freehold(&["tools", "build", dir.to_str().unwrap()]);

    assert!(String::from_utf8_lossy(&ended.stderr).contains("is not an image that this command made"), "{ended:?}");
    assert!(!ended.status.success() && dir.join("image/mine").is_file());
}
