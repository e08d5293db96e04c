//! A barrier before the changes of a cluster: a validating webhook that the API server asks before it makes a change.
//! The barrier counts the changes of the runner and of its programs, and closes at a chosen one. So a test kills a runner
//! at that change, however long the changes before it have taken.

use std::io::{self, BufRead, BufReader, Write as _};
use std::net::{TcpListener, TcpStream};
use std::path::Path;
use std::sync::{Arc, Condvar, Mutex, MutexGuard};

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use rustls::pki_types::pem::PemObject as _;
use rustls::pki_types::{CertificateDer, PrivateKeyDer};
use rustls::{ServerConfig, ServerConnection, StreamOwned};
use serde_json::{Value, json};

use super::Cluster;
use crate::fixture::eventually;

/// The longest time that the API server waits for an answer (Kubernetes API, `ValidatingWebhook`).
const TIMEOUT_SECS: u32 = 30;
/// The beginning of the change by which Helm deletes a revision: the oldest one before an upgrade, when there are many,
/// and each one at the end of an uninstall. It does not count, so all upgrades have the same number of changes.
pub(crate) const REVISION_DELETED: &str = "DELETE ConfigMap sh.helm.release.";

/// The change at which the barrier closes. The name of a change is its verb, kind and object, such as `CREATE Job
/// migrate`. That of a dry run begins with `dry run of `.
#[derive(Debug, Clone, Copy)]
pub(crate) enum Aim {
    /// The one after this many changes of the runner, without dry runs.
    After(usize),
    /// The first one whose name begins so, also one of the cluster's controllers.
    First(&'static str),
}

/// The barrier before a cluster. It is open until [`Barrier::close_at`].
pub(crate) struct Barrier(Arc<Shared>);

#[derive(Default)]
struct Shared {
    state: Mutex<State>,
    opened: Condvar,
}

#[derive(Default)]
struct State {
    was_asked: bool,
    aim: Option<Aim>,
    is_closed: bool,
    /// The changes of the runner that passed since the last aim.
    passed: Vec<String>,
    /// How often the barrier was opened.
    opened: u64,
}

impl Barrier {
    /// Puts the barrier before the changes of `cluster`, and waits until the API server asks it.
    pub(crate) async fn before(cluster: &Cluster) -> Self {
        let pki = cluster.kubeconfig.parent().unwrap().join("pki");
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let url = format!("https://{}/", listener.local_addr().unwrap());
        let (shared, tls) = (Arc::<Shared>::default(), server_config(&pki));
        let served = Arc::clone(&shared);
        std::thread::spawn(move || serve(&listener, &tls, &served));
        let authority = STANDARD.encode(std::fs::read(pki.join("ca.crt")).unwrap());
        cluster.apply("test", &configuration(&url, &authority));
        let barrier = Self(shared);
        let mut number = 0_u32;
        eventually("the API server asks before a change", || {
            number += 1;
            let change = format!("number={number}");
            cluster.kubectl(&["annotate", "namespace", "default", "--overwrite", &change]).unwrap();
            barrier.0.state().was_asked
        })
        .await;
        barrier
    }

    /// Closes the barrier when a change comes that is aimed at, and counts from zero.
    pub(crate) fn close_at(&self, aim: Aim) {
        let mut state = self.0.state();
        state.aim = Some(aim);
        state.passed.clear();
    }

    /// Returns whether the change that was aimed at waits before the barrier, and with it all later ones of the runner.
    pub(crate) fn is_closed(&self) -> bool {
        self.0.state().is_closed
    }

    /// Opens the barrier. Of the changes that wait, those of the runner are refused: it must have been killed.
    pub(crate) fn open(&self) {
        let mut state = self.0.state();
        (state.aim, state.is_closed) = (None, false);
        state.opened += 1;
        drop(state);
        self.0.opened.notify_all();
    }

    /// Returns the changes of the runner that passed since the last aim.
    pub(crate) fn passed(&self) -> Vec<String> {
        self.0.state().passed.clone()
    }
}

impl Shared {
    fn state(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap()
    }

    /// Waits while the barrier is closed for this change. Returns whether the change may be made.
    fn admit(&self, change: &Change) -> bool {
        let mut state = self.state();
        state.was_asked = true;
        // The API server asks again when the object has changed since it was read.
        let has_passed = state.passed.contains(&change.name);
        let is_aimed_at = match state.aim {
            None => false,
            Some(Aim::After(number)) => change.counts && state.passed.len() == number,
            Some(Aim::First(beginning)) => change.name.starts_with(beginning),
        };
        if !has_passed && (is_aimed_at || (state.is_closed && change.is_of_runner)) {
            state.is_closed = true;
            let before = state.opened;
            drop(self.opened.wait_while(state, |state| state.opened == before).unwrap());
            return !change.is_of_runner;
        }
        if change.counts && !has_passed {
            state.passed.push(change.name.clone());
        }
        true
    }
}

/// A change that the API server asks about.
struct Change {
    name: String,
    /// Whether the runner or one of its programs makes it, and not a controller or a test.
    is_of_runner: bool,
    counts: bool,
}

impl Change {
    fn of(request: &Value) -> Self {
        let text = |path: &str| request.pointer(path).and_then(Value::as_str).unwrap_or_default();
        let is_dry_run = request["dryRun"] == true;
        let prefix = if is_dry_run { "dry run of " } else { "" };
        let name = format!("{prefix}{} {} {}", text("/operation"), text("/kind/kind"), text("/name"));
        let user = text("/userInfo/username");
        let is_of_runner = user != "administrator" && !user.starts_with("system:");
        let counts = is_of_runner && !is_dry_run && !name.starts_with(REVISION_DELETED);
        Self { name, is_of_runner, counts }
    }
}

/// Returns the webhook. The API server's own certificate is also that of the barrier, whose address is the same.
fn configuration(url: &str, authority: &str) -> Value {
    let operations = ["CREATE", "UPDATE", "DELETE"];
    let rule = json!({ "apiGroups": ["*"], "apiVersions": ["*"], "resources": ["*"], "operations": operations });
    json!({
        "apiVersion": "admissionregistration.k8s.io/v1",
        "kind": "ValidatingWebhookConfiguration",
        "metadata": { "name": "barrier" },
        "webhooks": [{
            "name": "barrier.example.org",
            "clientConfig": { "url": url, "caBundle": authority },
            "rules": [rule],
            "admissionReviewVersions": ["v1"],
            // Only such a webhook is also asked about dry runs.
            "sideEffects": "None",
            "failurePolicy": "Fail",
            "timeoutSeconds": TIMEOUT_SECS,
        }],
    })
}

fn server_config(pki: &Path) -> Arc<ServerConfig> {
    let chain = vec![CertificateDer::from_pem_file(pki.join("api.crt")).unwrap()];
    let key = PrivateKeyDer::from_pem_file(pki.join("api.key")).unwrap();
    let provider = Arc::new(rustls::crypto::ring::default_provider());
    let config = ServerConfig::builder_with_provider(provider).with_safe_default_protocol_versions();
    Arc::new(config.unwrap().with_no_client_auth().with_single_cert(chain, key).unwrap())
}

/// Serves each connection in a thread of its own, because a test blocks its own thread while `kubectl` runs.
fn serve(listener: &TcpListener, tls: &Arc<ServerConfig>, shared: &Arc<Shared>) {
    for stream in listener.incoming() {
        let (tls, shared) = (Arc::clone(tls), Arc::clone(shared));
        std::thread::spawn(move || -> io::Result<()> { answer(stream?, tls, &shared) });
    }
}

/// Answers the requests of one connection until it ends.
fn answer(stream: TcpStream, tls: Arc<ServerConfig>, shared: &Shared) -> io::Result<()> {
    let connection = ServerConnection::new(tls).map_err(io::Error::other)?;
    let mut stream = BufReader::new(StreamOwned::new(connection, stream));
    while let Some(body) = next_body(&mut stream)? {
        let review: Value = serde_json::from_slice(&body)?;
        let allowed = shared.admit(&Change::of(&review["request"]));
        let response = json!({ "uid": review["request"]["uid"], "allowed": allowed });
        let answer = json!({ "apiVersion": review["apiVersion"], "kind": review["kind"], "response": response });
        let body = answer.to_string();
        let head = format!("content-type: application/json\r\ncontent-length: {}", body.len());
        stream.get_mut().write_all(format!("HTTP/1.1 200 OK\r\n{head}\r\n\r\n{body}").as_bytes())?;
        stream.get_mut().flush()?;
    }
    Ok(())
}

/// Returns the body of the next request; nothing when the connection has ended.
fn next_body(stream: &mut impl BufRead) -> io::Result<Option<Vec<u8>>> {
    let mut length: usize = 0;
    let mut line = String::new();
    loop {
        line.clear();
        if stream.read_line(&mut line)? == 0 {
            return Ok(None);
        }
        if line == "\r\n" {
            break;
        }
        if let Some((name, value)) = line.split_once(':')
            && name.eq_ignore_ascii_case("content-length")
        {
            length = value.trim().parse().map_err(io::Error::other)?;
        }
    }
    let mut body = vec![0; length];
    stream.read_exact(&mut body)?;
    Ok(Some(body))
}
