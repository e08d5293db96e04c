//! Private repositories over HTTPS: a real Git behind a server that wants a token.

use std::fs;
use std::io::Write as _;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::sync::{Arc, Mutex};

use freehold_builder::build::execute;
use freehold_protocol::order::{Package, Source};
use freehold_protocol::report::Outcome;
use freehold_protocol::source::{Hidden, SourceCredential};
use freehold_runner::config::SandboxKind;
use freehold_skips::have;

use crate::builds::{build_bench, built};
use crate::cloud::Cloud;
use crate::fixture::{Bench, reason};
use crate::mirror::Certificates;
use crate::stand_in::{Asked, Reply, StandIn, basic, places, store};
use crate::step::files;

const CANARY: &str = "canary-5c1f0a7e-token";

/// Makes the repository `path` below `root`, with one template in it; returns its commit.
pub(crate) fn repository(root: &Path, path: &str) -> String {
    let directory = root.join(path);
    fs::create_dir_all(&directory).unwrap();
    fs::write(directory.join("queue.yaml"), "Resources: {}\n").unwrap();
    let git = |arguments: &[&str]| {
        let mut git = Command::new("git");
        git.args(["-c", "user.name=test", "-c", "user.email=test@example.com", "-c", "init.defaultBranch=main"]);
        let output = git.args(arguments).current_dir(&directory).output().unwrap();
        assert!(output.status.success(), "{output:?}");
        String::from_utf8(output.stdout).unwrap().trim().to_owned()
    };
    git(&["init", "-q"]);
    git(&["add", "."]);
    git(&["commit", "-q", "-m", "one"]);
    git(&["rev-parse", "HEAD"])
}

/// Answers as Git's own server does (git-http-backend(1)).
fn backend(root: &Path, asked: &Asked) -> Reply {
    let mut git = Command::new("git");
    git.arg("http-backend").stdin(Stdio::piped()).stdout(Stdio::piped()).env("GIT_PROJECT_ROOT", root);
    git.env("GIT_HTTP_EXPORT_ALL", "1").env("REQUEST_METHOD", &asked.method).env("PATH_INFO", &asked.path);
    git.env("QUERY_STRING", &asked.query).env("CONTENT_TYPE", asked.header("content-type"));
    git.env("CONTENT_LENGTH", asked.body.len().to_string()).env("GIT_PROTOCOL", asked.header("git-protocol"));
    git.env("HTTP_CONTENT_ENCODING", asked.header("content-encoding"));
    let mut child = git.spawn().unwrap();
    child.stdin.take().unwrap().write_all(&asked.body).unwrap();
    let output = child.wait_with_output().unwrap().stdout;
    let end = output.windows(4).position(|bytes| bytes == b"\r\n\r\n").unwrap();
    let head = String::from_utf8_lossy(&output[..end]).into_owned();
    let headers: Vec<_> = head.lines().filter_map(|line| line.split_once(": ")).collect();
    let status = headers.iter().find(|(name, _)| *name == "Status").map_or("200", |(_, value)| &value[..3]);
    let headers = headers.iter().filter(|(name, _)| *name != "Status");
    let headers = headers.map(|(name, value)| ((*name).to_owned(), (*value).to_owned())).collect();
    Reply(status.parse().unwrap(), headers, output[end + 4..].to_vec())
}

/// A Git server that wants a token, and the local cloud with that token.
struct Place {
    cloud: Cloud,
    certificates: Certificates,
    root: tempfile::TempDir,
}

impl Place {
    async fn here(test: &str) -> Option<Self> {
        if !have(&["bwrap", "git", "openssl"]) {
            return None;
        }
        let certificates = Certificates::new();
        let environment = certificates.environment();
        let more: Vec<_> = environment.iter().map(|(name, path)| (*name, path.as_path())).collect();
        let cloud = Cloud::here_under(test, &[], &more).await?;
        Some(Self { cloud, certificates, root: tempfile::tempdir().unwrap() })
    }

    /// Starts a server that gives the repositories to whom knows the token, and otherwise answers as `otherwise` says.
    async fn server(&self, otherwise: impl Fn(&Asked) -> Option<Reply> + Send + Sync + 'static) -> StandIn {
        let root = self.root.path().to_owned();
        let answer = move |asked: &Asked| {
            if let Some(reply) = otherwise(asked) {
                return reply;
            }
            if asked.header("authorization") == basic("bot", CANARY) {
                return backend(&root, asked);
            }
            let mut reply = Reply::status(401, "no");
            reply.1.push(("www-authenticate".into(), "Basic realm=\"git\"".into()));
            reply
        };
        StandIn::start(Some(self.certificates.acceptor()), answer).await
    }

    async fn store(&self, server: &StandIn, path: &str, token: &str) {
        let credential = SourceCredential::GitToken { user: "bot".into(), token: Hidden::new(token), inside: false };
        store(&self.cloud, &format!("https://{}{path}", server.address), &credential).await;
    }

    fn bench(&self, server: &StandIn, path: &str, commit: &str) -> Bench {
        self.bench_of(Package::CloudformationTemplate, server, path, commit)
    }

    fn bench_of(&self, package: Package, server: &StandIn, path: &str, commit: &str) -> Bench {
        let url = format!("https://{}/{path}", server.address);
        let source = Source::Git { url, commit: commit.into(), directory: String::new(), branch: String::new() };
        build_bench(package, source)
    }
}

/// Returns what came of a build, its log and its outcome as text, after a look for the canary in all of it.
async fn run(bench: &Bench) -> (Outcome, String) {
    let outcome = execute(&bench.job).await;
    let log = bench.log();
    println!("{log}");
    let everything = format!("{log}{outcome:?}");
    assert!(!everything.contains(CANARY) && !everything.contains(&basic("bot", CANARY)[6..]), "{everything}");
    assert_eq!(places(&[CANARY, &basic("bot", CANARY)[6..]], bench.directory.path()), [""; 0]);
    (outcome, log)
}

#[tokio::test(flavor = "multi_thread")]
async fn a_private_repository_is_fetched_and_its_token_is_in_no_process_and_no_file() {
    const TEST: &str = "private_git::a_private_repository_is_fetched_and_its_token_is_in_no_process_and_no_file";
    let Some(place) = Place::here(TEST).await else { return };
    let commit = repository(place.root.path(), "acme/demo");
    let found: Arc<Mutex<Vec<String>>> = Arc::default();
    let bench_directory: Arc<Mutex<PathBuf>> = Arc::default();
    let (seen, directory) = (Arc::clone(&found), Arc::clone(&bench_directory));
    // While Git waits for the commit, whoever could look looks.
    let server = place.server(move |asked| {
        if asked.method == "POST" {
            let canaries = [CANARY, &basic("bot", CANARY)[6..]];
            seen.lock().unwrap().push("looked".into());
            seen.lock().unwrap().extend(places(&canaries, &directory.lock().unwrap()));
        }
        None
    });
    let server = server.await;
    place.store(&server, "/acme", CANARY).await;
    let bench = place.bench(&server, "acme/demo", &commit);
    *bench_directory.lock().unwrap() = bench.directory.path().to_owned();

    let (outcome, log) = run(&bench).await;

    let artifact = built(outcome);
    assert!(log.contains(&format!("with the credential of `https://{}/acme`", server.address)), "{log}");
    assert!(!format!("{:?}", artifact.provenance).contains(CANARY));
    let found = found.lock().unwrap();
    assert!(!found.is_empty() && found.iter().all(|one| one == "looked"), "{found:?}");
    assert!(server.asked().iter().all(|asked| asked.path.starts_with("/acme/demo/")), "{:?}", server.asked());
}

#[tokio::test(flavor = "multi_thread")]
async fn a_token_that_is_refused_is_named_by_its_address_alone() {
    const TEST: &str = "private_git::a_token_that_is_refused_is_named_by_its_address_alone";
    let Some(place) = Place::here(TEST).await else { return };
    let commit = repository(place.root.path(), "acme/demo");
    // A careless server repeats the token in its answer.
    for (status, words) in
        [(401, "refuses the token of"), (403, "refuses the token of"), (404, "or the token of"), (500, "returns 500")]
    {
        let server = place.server(move |_| Some(Reply::status(status, &format!("token {CANARY} has expired"))));
        let server = server.await;
        place.store(&server, "", CANARY).await;

        let (outcome, _) = run(&place.bench(&server, "acme/demo.git", &commit)).await;

        let reason = reason(outcome).0;
        assert!(reason.contains(words) && reason.contains(&server.address), "{reason}");
        if status < 500 {
            assert!(reason.contains(&format!("freehold tenant source add https://{}`", server.address)), "{reason}");
        }
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_token_goes_to_its_own_address_only() {
    const TEST: &str = "private_git::a_token_goes_to_its_own_address_only";
    let Some(place) = Place::here(TEST).await else { return };
    let commit = repository(place.root.path(), "acme/demo");
    let other = place.server(|_| None).await;
    let elsewhere = other.address.clone();
    let server = place.server(move |asked| {
        let target = |to: String| Reply(301, vec![("location".into(), to)], Vec::new());
        let end = asked.path.strip_prefix("/acme/moved").map(|end| format!("{end}?{}", asked.query));
        let far = asked.path.strip_prefix("/acme/gone").map(|end| format!("{end}?{}", asked.query));
        let up = asked.path.strip_prefix("/acme/up").map(|end| format!("{end}?{}", asked.query));
        end.map(|end| target(format!("/acme/demo{end}")))
            .or_else(|| far.map(|end| target(format!("https://{elsewhere}/acme/demo{end}"))))
            .or_else(|| up.map(|end| target(format!("/other/demo{end}"))))
    });
    let server = server.await;
    place.store(&server, "/acme", CANARY).await;

    let (renamed, _) = run(&place.bench(&server, "acme/moved", &commit)).await;
    let (left, _) = run(&place.bench(&server, "acme/gone", &commit)).await;
    let (above, _) = run(&place.bench(&server, "acme/up", &commit)).await;
    let (neighbour, _) = run(&place.bench(&server, "other/demo", &commit)).await;

    built(renamed);
    for outcome in [left, above] {
        let reason = reason(outcome).0;
        assert!(reason.contains("redirects to `127.0.0.1`, where the credential of"), "{reason}");
    }
    assert_eq!(other.asked().len(), 0, "the other host was not asked");
    let reason = reason(neighbour).0;
    assert!(reason.contains("store a credential for it with `freehold tenant source add"), "{reason}");
    let at_neighbour = server.asked().into_iter().filter(|asked| asked.path.starts_with("/other"));
    assert!(at_neighbour.into_iter().all(|asked| asked.header("authorization").is_empty()));
}

#[tokio::test(flavor = "multi_thread")]
async fn the_directory_of_a_step_is_packed_from_a_private_repository_without_its_token() {
    const TEST: &str = "private_git::the_directory_of_a_step_is_packed_from_a_private_repository_without_its_token";
    let Some(place) = Place::here(TEST).await else { return };
    let commit = repository(place.root.path(), "acme/checks");
    let server = place.server(|_| None).await;
    let step = || place.bench_of(Package::StepDirectory, &server, "acme/checks", &commit);

    let (closed, _) = run(&step()).await;
    place.store(&server, "/acme", CANARY).await;
    let (outcome, log) = run(&step()).await;

    let closed = reason(closed).0;
    assert!(closed.contains("store a credential for it with `freehold tenant source add"), "{closed}");
    assert!(log.contains(&format!("with the credential of `https://{}/acme`", server.address)), "{log}");
    let artifact = built(outcome);
    assert!(!format!("{:?}", artifact.provenance).contains(CANARY));
    // The artifact has the files of the commit alone: no directory of Git, whose settings name the server.
    let packed = files(&place.cloud, &artifact).await;
    assert_eq!(packed.into_iter().collect::<Vec<_>>(), [("queue.yaml".into(), (0o644, "Resources: {}\n".into()))]);
}

#[tokio::test(flavor = "multi_thread")]
async fn without_a_box_no_private_repository_is_read() {
    const TEST: &str = "private_git::without_a_box_no_private_repository_is_read";
    let Some(place) = Place::here(TEST).await else { return };
    let commit = repository(place.root.path(), "acme/demo");
    let server = place.server(|_| None).await;
    place.store(&server, "/acme", CANARY).await;
    let mut bench = place.bench(&server, "acme/demo", &commit);
    bench.change_config(|config| config.sandbox = SandboxKind::None);

    let (outcome, _) = run(&bench).await;

    assert!(reason(outcome).0.contains("set `sandbox = \"bubblewrap\"`"));
    assert_eq!(server.asked().len(), 0);
}

#[tokio::test(flavor = "multi_thread")]
async fn terraform_fetches_private_modules_and_those_that_they_call() {
    const TEST: &str = "private_git::terraform_fetches_private_modules_and_those_that_they_call";
    if !have(&["terraform"]) {
        return;
    }
    let Some(place) = Place::here(TEST).await else { return };
    let server = place.server(|_| None).await;
    place.store(&server, "/acme", CANARY).await;
    let module =
        |name: &str| format!("module \"{name}\" {{ source = \"git::https://{}/acme/{name}\" }}\n", server.address);
    for (name, text) in [("outer", module("inner")), ("inner", "output \"a\" { value = 1 }\n".to_owned())] {
        let directory = place.root.path().join("acme").join(name);
        fs::create_dir_all(&directory).unwrap();
        fs::write(directory.join("main.tf"), text).unwrap();
        repository(place.root.path(), &format!("acme/{name}"));
    }
    let directory = tempfile::tempdir().unwrap();
    fs::write(directory.path().join("main.tf"), module("outer")).unwrap();
    let source = place.cloud.upload(directory.path()).await;

    let (outcome, _) = run(&build_bench(Package::TerraformModule, source.clone())).await;
    place.store(&server, "/acme", "canary-an-older-token").await;
    let (refused, _) = run(&build_bench(Package::TerraformModule, source)).await;

    built(outcome);
    assert!(server.asked().iter().any(|asked| asked.path.starts_with("/acme/inner/")), "{:?}", server.asked());
    let reason = reason(refused).0;
    assert!(reason.starts_with("could not fetch the modules: ") && reason.contains("refuses the token of"), "{reason}");
}
