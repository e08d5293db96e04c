//! Images of private registries: Debian's registry behind a server that wants a login, or a token from a token service.

use std::fs;
use std::io::{Read as _, Write as _};
use std::net::TcpStream;
use std::process::Command;

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use freehold_builder::build::execute;
use freehold_protocol::order::{Package, Source};
use freehold_protocol::report::Outcome;
use freehold_protocol::source::{Hidden, SourceCredential};
use freehold_runner::sandbox::JobUser;
use freehold_skips::{find_program, have, skip};
use serde_json::json;

use crate::builds::{build_bench, built, recipe_bench};
use crate::cloud::Cloud;
use crate::docker_build::{push_base, recipe};
use crate::fixture::reason;
use crate::registry::{Registry, push_index};
use crate::stand_in::{Asked, Reply, StandIn, basic, places, store};

const CANARY: &str = "canary-9d27c3b1-password";
const BEARER: &str = "Bearer a-token-for-an-hour";

/// Asks the registry behind a server (HTTP/1.0, so that the answer has no chunks).
fn forward(registry: &str, asked: &Asked) -> Reply {
    let mut stream = TcpStream::connect(registry).unwrap();
    let (method, path, accept) = (&asked.method, &asked.path, asked.header("accept"));
    write!(stream, "{method} {path} HTTP/1.0\r\nhost: {registry}\r\naccept: {accept}\r\n\r\n").unwrap();
    let mut answer = Vec::new();
    stream.read_to_end(&mut answer).unwrap();
    let end = answer.windows(4).position(|bytes| bytes == b"\r\n\r\n").unwrap();
    let head = String::from_utf8_lossy(&answer[..end]).into_owned();
    let status = head.split(' ').nth(1).unwrap().parse().unwrap();
    let kept = ["content-type", "docker-content-digest"];
    let headers = head.lines().filter_map(|line| line.split_once(": "));
    let headers = headers.map(|(name, value)| (name.to_ascii_lowercase(), value.to_owned()));
    Reply(status, headers.filter(|(name, _)| kept.contains(&name.as_str())).collect(), answer[end + 4..].to_vec())
}

/// Starts a server that passes requests with the header `wanted` to `registry`, and asks others for `challenge`.
async fn guard(registry: &Registry, wanted: String, challenge: String) -> StandIn {
    let registry = registry.address.clone();
    let answer = move |asked: &Asked| {
        if asked.header("authorization") == wanted {
            return forward(&registry, asked);
        }
        // A careless server repeats the login in its answer.
        let login = asked.header("authorization").trim_start_matches("Basic ");
        let login = String::from_utf8(STANDARD.decode(login).unwrap_or_default()).unwrap();
        let mut reply = Reply::status(401, &format!("no: {login}"));
        reply.1.push(("www-authenticate".into(), challenge.clone()));
        reply
    };
    StandIn::start(None, answer).await
}

/// Starts a token service for the user `bot` with this password.
async fn token_service(password: &'static str) -> StandIn {
    let answer = move |asked: &Asked| {
        if asked.header("authorization") == basic("bot", password) {
            Reply::status(200, &json!({ "token": BEARER.trim_start_matches("Bearer ") }).to_string())
        } else {
            Reply::status(401, "no")
        }
    };
    StandIn::start(None, answer).await
}

async fn stored(cloud: &Cloud, server: &StandIn, password: &str, token_hosts: &[&str]) {
    let credential = SourceCredential::RegistryLogin {
        user: "bot".into(),
        password: Hidden::new(password),
        token_hosts: token_hosts.iter().map(|host| (*host).to_owned()).collect(),
    };
    store(cloud, &format!("oci://{}/team", server.address), &credential).await;
}

async fn copy(server: &StandIn, name: &str) -> Outcome {
    let bench = build_bench(Package::Image, Source::Image { reference: format!("{}/{name}:v1", server.address) });
    let outcome = execute(&bench.job).await;
    let log = bench.log();
    println!("{log}");
    let encoded = &basic("bot", CANARY)[6..];
    let everything = format!("{log}{outcome:?}");
    assert!(!everything.contains(CANARY) && !everything.contains(encoded), "{everything}");
    assert_eq!(places(&[CANARY, encoded], bench.directory.path()), [""; 0]);
    outcome
}

#[tokio::test(flavor = "multi_thread")]
async fn an_image_is_copied_with_a_login_that_only_its_registry_gets() {
    const TEST: &str = "private_registry::an_image_is_copied_with_a_login_that_only_its_registry_gets";
    if !have(&["docker-registry"]) {
        return;
    }
    let Some(cloud) = Cloud::here(TEST).await else { return };
    let Some(registry) = Registry::start().await else { return };
    let digest = push_index(&registry.repository("team/app"), "v1").await;
    push_index(&registry.repository("other/app"), "v1").await;
    let server = guard(&registry, basic("bot", CANARY), "Basic realm=\"registry\"".into()).await;
    stored(&cloud, &server, CANARY, &[]).await;

    let artifact = built(copy(&server, "team/app").await);
    let neighbour = reason(copy(&server, "other/app").await).0;
    stored(&cloud, &server, "canary-an-older-password", &[]).await;
    let wrong = reason(copy(&server, "team/app").await).0;

    assert_eq!((artifact.digest, artifact.manifests.len(), artifact.blobs.len()), (digest, 3, 5));
    assert!(wrong.contains("bot:[redacted]"), "{wrong}");
    for denied in [neighbour, wrong] {
        assert!(denied.contains(&format!("registry `{}` denies access", server.address)), "{denied}");
    }
    let of_neighbour = server.asked().into_iter().filter(|asked| asked.path.contains("/other/"));
    assert!(of_neighbour.into_iter().all(|asked| asked.header("authorization").is_empty()));
}

#[tokio::test(flavor = "multi_thread")]
async fn a_token_service_elsewhere_gets_the_password_only_when_it_is_named() {
    const TEST: &str = "private_registry::a_token_service_elsewhere_gets_the_password_only_when_it_is_named";
    if !have(&["docker-registry"]) {
        return;
    }
    let Some(cloud) = Cloud::here(TEST).await else { return };
    let Some(registry) = Registry::start().await else { return };
    let digest = push_index(&registry.repository("team/app"), "v1").await;
    let tokens = token_service(CANARY).await;
    let challenge = format!("Bearer realm=\"http://{}/token\",service=\"registry\"", tokens.address);
    let server = guard(&registry, BEARER.into(), challenge).await;

    stored(&cloud, &server, CANARY, &[]).await;
    let unnamed = reason(copy(&server, "team/app").await).0;
    let asked_of_unnamed = tokens.asked().len();
    stored(&cloud, &server, CANARY, &[&tokens.address]).await;
    let artifact = built(copy(&server, "team/app").await);
    stored(&cloud, &server, "canary-an-older-password", &[&tokens.address]).await;
    let wrong = reason(copy(&server, "team/app").await).0;

    assert!(unnamed.contains(&format!("`--token-host {}`", tokens.address)), "{unnamed}");
    assert_eq!(asked_of_unnamed, 0, "the password stays here");
    assert_eq!(artifact.digest, digest);
    assert!(wrong.contains("its token service returned status 401"), "{wrong}");
}

#[tokio::test(flavor = "multi_thread")]
async fn a_redirect_does_not_carry_the_login() {
    const TEST: &str = "private_registry::a_redirect_does_not_carry_the_login";
    let Some(cloud) = Cloud::here(TEST).await else { return };
    let elsewhere = StandIn::start(None, |_| Reply::status(404, "nothing here")).await;
    let target = format!("http://{}/v2/stolen", elsewhere.address);
    let server = StandIn::start(None, move |_| Reply(307, vec![("location".into(), target.clone())], Vec::new())).await;
    stored(&cloud, &server, CANARY, &[]).await;

    reason(copy(&server, "team/app").await);

    let first = server.asked().first().map(|asked| asked.header("authorization").to_owned());
    assert_eq!(first, Some(basic("bot", CANARY)));
    assert!(!elsewhere.asked().is_empty());
    assert!(elsewhere.asked().iter().all(|asked| asked.header("authorization").is_empty()));
}

#[tokio::test(flavor = "multi_thread")]
async fn a_base_image_is_read_with_a_login_that_no_step_finds() {
    const TEST: &str = "private_registry::a_base_image_is_read_with_a_login_that_no_step_finds";
    if !have(&["bwrap", "buildah", "busybox", "docker-registry"]) {
        return;
    }
    if !JobUser::find().can_build_images() {
        return skip("this user has no range of 65536 in /etc/subuid");
    }
    let busybox = find_program("busybox").unwrap();
    if !Command::new("ldd").arg(&busybox).output().is_ok_and(|output| !output.status.success()) {
        return skip("`busybox` is not the static one; install `busybox-static`");
    }
    let Some(cloud) = Cloud::here(TEST).await else { return };
    let Some(registry) = Registry::start().await else { return };
    push_base(&registry.repository("team/base"), "3").await;
    let server = guard(&registry, basic("bot", CANARY), "Basic realm=\"registry\"".into()).await;
    stored(&cloud, &server, CANARY, &[]).await;
    let directory = tempfile::tempdir().unwrap();
    fs::copy(busybox, directory.path().join("busybox")).unwrap();
    // The pattern does not match itself, so that neither the Dockerfile nor the search is found.
    let look = format!("busybox grep -l '[{}]{}'", &CANARY[..1], &CANARY[1..]);
    let text = format!(
        "FROM {}/team/base:3\nCOPY busybox /bin/busybox\nCOPY busybox /bin/sh\nRUN echo planted > /planted; \
         busybox find / -xdev -type f | busybox xargs busybox grep -l '[p]lanted$'; echo looking; \
         busybox find / -xdev -type f | busybox xargs {look} && echo found-a-file; \
         {look} /proc/[0-9]*/environ /proc/[0-9]*/cmdline && echo found-a-process; true\n",
        server.address
    );
    fs::write(directory.path().join("Dockerfile"), text).unwrap();
    let bench = recipe_bench(Package::DockerImage, cloud.upload(directory.path()).await, recipe("Dockerfile", "", ""));

    let outcome = execute(&bench.job).await;

    let log = bench.log();
    println!("{log}");
    built(outcome);
    let lines: Vec<&str> = log.lines().collect();
    assert!(lines.contains(&"/planted") && lines.contains(&"looking"), "{log}");
    assert!(!lines.contains(&"found-a-file") && !lines.contains(&"found-a-process"), "{log}");
    assert_eq!(places(&[CANARY, &basic("bot", CANARY)[6..]], bench.directory.path()), [""; 0]);
}
