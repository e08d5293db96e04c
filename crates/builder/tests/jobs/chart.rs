//! Charts: built from a directory and from a chart repository, and read back by `helm` itself.

use std::fs;
use std::io::{BufRead as _, BufReader, Write as _};
use std::net::TcpListener;
use std::path::{Path, PathBuf};
use std::process::Command;

use freehold_oci::{CopyOptions, Version};
use freehold_protocol::Digest;
use freehold_protocol::order::{Artifact, CHART_CONFIG, CHART_LAYER, Package, Source};
use freehold_protocol::provenance::Statement;
use freehold_runner::registry::ecr_repository;
use freehold_skips::{have, skip_as};

use crate::builds::built;
use crate::cloud::{Cloud, TENANT_REPOSITORY};
use crate::fixture::reason;
use crate::registry::Registry;

/// `helm` in a home of its own.
struct Helm {
    program: PathBuf,
    home: tempfile::TempDir,
}

impl Helm {
    fn find(test: &str) -> Option<Self> {
        Some(Self { program: helm(test)?, home: tempfile::tempdir().unwrap() })
    }

    fn run(&self, directory: &Path, arguments: &[&str]) -> String {
        let mut command = Command::new(&self.program);
        command.args(arguments).current_dir(directory).env_clear().env("HOME", self.home.path());
        let output = command.output().unwrap();
        assert!(output.status.success(), "{arguments:?}: {}", String::from_utf8_lossy(&output.stderr));
        String::from_utf8(output.stdout).unwrap()
    }

    /// Pulls `artifact` out of a real registry and returns the bytes of its chart.
    async fn pull(&self, cloud: &Cloud, artifact: &Artifact) -> Option<Vec<u8>> {
        let registry = Registry::start().await?;
        let from = ecr_repository(&cloud.tenant, TENANT_REPOSITORY).await.unwrap();
        let to = registry.repository("charts/shop");
        let version = Version::Digest(artifact.digest.clone());
        freehold_oci::copy(&from, &version, &to, &CopyOptions::default()).await.unwrap();
        let into = tempfile::tempdir().unwrap();
        let reference = format!("oci://{}/charts/shop@{}", registry.address, artifact.digest);

        self.run(into.path(), &["pull", &reference, "--plain-http"]);

        let archives = fs::read_dir(into.path()).unwrap().map(|entry| entry.unwrap().path());
        let archives: Vec<PathBuf> = archives.filter(|path| path.extension().is_some_and(|end| end == "tgz")).collect();
        assert_eq!(archives.len(), 1, "{archives:?}");
        let manifests = self.run(into.path(), &["template", "release", archives[0].to_str().unwrap()]);
        assert!(manifests.contains("name: release-shop"), "{manifests}");
        assert!(manifests.contains("name: release-cache"), "{manifests}");
        assert!(manifests.contains("name: release-queue"), "{manifests}");
        Some(fs::read(&archives[0]).unwrap())
    }
}

/// Returns `helm`: the one that the tests' Python environment brings, or the one on the path. Says that `test` is skipped
/// when there is none.
fn helm(test: &str) -> Option<PathBuf> {
    let target = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../target/infra-venv");
    let venv = std::env::var_os("FREEHOLD_INFRA_VENV").map_or(target, PathBuf::from).join("bin");
    let path = std::env::var_os("PATH").unwrap_or_default();
    let places = std::iter::once(venv).chain(std::env::split_paths(&path));
    let found = places.map(|folder| folder.join("helm")).find(|program| program.is_file());
    if found.is_none() {
        skip_as(test, "`helm` is not there; `tests/infra/run` installs it on x86-64");
    }
    found
}

fn chart(directory: &Path, name: &str, version: &str, more: &str) {
    fs::create_dir_all(directory.join("templates")).unwrap();
    fs::write(directory.join("Chart.yaml"), format!("apiVersion: v2\nname: {name}\nversion: {version}\n{more}"))
        .unwrap();
    let object = "apiVersion: v1\nkind: ConfigMap\nmetadata:\n  name: {{ .Release.Name }}-{{ .Chart.Name }}\n";
    fs::write(directory.join("templates/map.yaml"), object).unwrap();
}

/// A repository of charts that `helm` packed and listed.
struct Charts {
    directory: tempfile::TempDir,
    address: String,
}

impl Charts {
    fn start(helm: &Helm, charts: &[(&str, &str)]) -> Self {
        let directory = tempfile::tempdir().unwrap();
        for (name, version) in charts {
            let source = tempfile::tempdir().unwrap();
            chart(&source.path().join(name), name, version, "");
            helm.run(source.path(), &["package", name, "-d", directory.path().to_str().unwrap()]);
        }
        helm.run(directory.path(), &["repo", "index", "."]);
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let address = format!("http://{}/stable", listener.local_addr().unwrap());
        let root = directory.path().to_owned();
        std::thread::spawn(move || {
            for stream in listener.incoming() {
                let mut stream = stream.unwrap();
                let mut head = BufReader::new(stream.try_clone().unwrap()).lines().map_while(Result::ok);
                let line = head.next().unwrap_or_default();
                head.take_while(|line| !line.is_empty()).for_each(drop);
                let path = line.split(' ').nth(1).unwrap_or_default();
                let body = path.strip_prefix("/stable/").and_then(|name| fs::read(root.join(name)).ok());
                let status = if body.is_some() { "200 OK" } else { "404 Not Found" };
                let body = body.unwrap_or_default();
                let head = format!("HTTP/1.1 {status}\r\ncontent-length: {}\r\nconnection: close\r\n\r\n", body.len());
                let _ = stream.write_all(head.as_bytes()).and_then(|()| stream.write_all(&body));
            }
        });
        Self { directory, address }
    }

    fn source(&self, chart: &str, version: &str) -> Source {
        Source::Chart { repo_url: self.address.clone(), chart: chart.into(), version: version.into() }
    }
}

/// Returns address and SHA-256 of everything that a build names in its statement.
fn resolved(artifact: &Artifact) -> Vec<(String, String)> {
    let statement: Statement = artifact.provenance.as_ref().unwrap().statement.peek().unwrap();
    let found = statement.predicate.build_definition.resolved_dependencies;
    found.into_iter().map(|one| (one.uri, one.digest["sha256"].clone())).collect()
}

fn layer(artifact: &Artifact) -> &Digest {
    assert_eq!(artifact.blobs[0].media_type, CHART_CONFIG);
    assert_eq!(artifact.blobs[1].media_type, CHART_LAYER);
    &artifact.blobs[1].digest
}

#[tokio::test]
async fn a_directory_is_read_back_by_helm_with_all_that_it_needs() {
    const TEST: &str = "chart::a_directory_is_read_back_by_helm_with_all_that_it_needs";
    let Some(helm) = Helm::find(TEST) else { return };
    if !have(&["docker-registry"]) {
        return;
    }
    let Some(cloud) = Cloud::here(TEST).await else { return };
    let charts = Charts::start(&helm, &[("queue", "1.2.0"), ("queue", "1.10.0"), ("queue", "2.0.0")]);
    let directory = tempfile::tempdir().unwrap();
    let root = directory.path();
    let dependencies = format!(
        "appVersion: 1.10\ndependencies:\n- name: cache\n  version: ~1.0\n  repository: file://parts/cache\n\
         - name: queue\n  version: 1.x\n  repository: {}\n",
        charts.address
    );
    chart(root, "shop", "0.3.0", &dependencies);
    chart(&root.join("parts/cache"), "cache", "1.0.4", "");
    fs::write(root.join(".helmignore"), "/parts/\n*.bak\n").unwrap();
    fs::write(root.join("values.bak"), "x").unwrap();

    let one = built(cloud.build(Package::HelmChart, cloud.upload(root).await).await);
    fs::write(root.join("values.bak"), "what is ignored does not count").unwrap();
    let two = built(cloud.build(Package::HelmChart, cloud.upload(root).await).await);
    let pulled = helm.pull(&cloud, &one).await.unwrap();

    assert_eq!(one.digest, two.digest);
    assert_eq!(Digest::of(&pulled), *layer(&one));
    let packed = tempfile::tempdir().unwrap();
    fs::write(packed.path().join("shop.tgz"), pulled).unwrap();
    let tar = Command::new("tar").args(["-tzf", "shop.tgz"]).current_dir(packed.path()).output().unwrap();
    let inside = [".helmignore", "Chart.yaml", "charts/cache/Chart.yaml", "charts/cache/templates/map.yaml"];
    let inside = inside.into_iter().chain(["charts/queue-1.10.0.tgz", "templates/map.yaml"]);
    let inside: String = inside.map(|path| format!("shop/{path}\n")).collect();
    assert_eq!(String::from_utf8(tar.stdout).unwrap(), inside);
}

#[tokio::test]
async fn a_published_chart_stays_as_it_is() {
    const TEST: &str = "chart::a_published_chart_stays_as_it_is";
    let Some(helm) = Helm::find(TEST) else { return };
    let Some(cloud) = Cloud::here(TEST).await else { return };
    let charts = Charts::start(&helm, &[("web", "1.2.0"), ("web", "1.10.0"), ("web", "2.0.0-rc.1")]);

    let newest = built(cloud.build(Package::HelmChart, charts.source("web", "")).await);
    let named = built(cloud.build(Package::HelmChart, charts.source("web", "1.2.0")).await);
    let absent = reason(cloud.build(Package::HelmChart, charts.source("web", "3.x")).await).0;
    let unknown = reason(cloud.build(Package::HelmChart, charts.source("db", "")).await).0;
    fs::write(charts.directory.path().join("web-1.2.0.tgz"), "other bytes").unwrap();
    let changed = reason(cloud.build(Package::HelmChart, charts.source("web", "1.2.0")).await).0;

    let published = fs::read(charts.directory.path().join("web-1.10.0.tgz")).unwrap();
    assert_eq!(*layer(&newest), Digest::of(&published));
    let address = format!("{}/web-1.10.0.tgz", charts.address);
    assert_eq!(resolved(&newest), [(address, Digest::of(&published).hex().to_owned())]);
    assert_ne!(newest.digest, named.digest);
    assert!(absent.ends_with("has no version `3.x`; its newest is `2.0.0-rc.1`"), "{absent}");
    assert!(unknown.ends_with("has no chart `db`; its `index.yaml` lists the charts"), "{unknown}");
    assert!(changed.contains("; the chart is not used"), "{changed}");
}

#[tokio::test]
async fn what_cannot_be_brought_is_named() {
    const TEST: &str = "chart::what_cannot_be_brought_is_named";
    let Some(cloud) = Cloud::here(TEST).await else { return };
    let directory = tempfile::tempdir().unwrap();
    let root = directory.path();
    chart(&root.join("parts/cache"), "cache", "1.0.4", "");
    let cases = [
        ("name: a", "dependency `a`: it names no repository and is not in `charts/`"),
        ("{name: b, repository: '@internal'}", "dependency `b`: `@internal` is not an address"),
        ("{name: c, repository: 'file://../c'}", "dependency `c`: there is no directory `file://../c` in the source"),
        ("{name: d, repository: 'file://../..'}", "dependency `d`: `file://../..` is outside of the source"),
        (
            "{name: cache, version: 2.x, repository: 'file://parts/cache'}",
            "holds chart `cache` 1.0.4, but the dependency is `cache` 2.x",
        ),
        ("{name: e, version: ^1, repository: 'oci://registry.example.com/charts'}", "name one version instead of `^1`"),
        ("{name: f, repository: 'http://charts.example.com'}", "is not reached over HTTPS"),
    ];
    for (dependency, message) in cases {
        chart(root, "shop", "0.3.0", &format!("dependencies:\n- {dependency}\n"));

        let (reason, partial) = reason(cloud.build(Package::HelmChart, cloud.upload(root).await).await);

        assert!(reason.contains(message), "{reason}");
        assert!(!partial);
    }
}
