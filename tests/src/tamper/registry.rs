//! A registry in memory that can lie about one thing and verifies no digest: only the copy engine can keep tampered
//! bytes out of it.

use std::collections::BTreeMap;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use freehold_oci::{Login, Manifest, Repository, RetryPolicy};
use freehold_protocol::Digest;
use reqwest::{Client, Url};
use serde_json::{Value, json};
use tokio::net::{TcpListener, TcpStream};

use crate::http::{Message, Wire};

/// What is said instead of the truth.
#[derive(Debug, Clone)]
pub(super) enum Lie {
    /// A blob or manifest has these bytes; the header of a manifest names this digest.
    Bytes { of: Digest, bytes: Vec<u8>, named: Option<Digest> },
    /// A blob breaks off at a byte, and these bytes follow from there.
    Later { of: Digest, at: usize, bytes: Vec<u8> },
    /// A blob ends at a byte, whether or not its whole length was announced.
    Ends { of: Digest, at: usize, announced: bool },
    /// These manifests refer to the artifact.
    Listed(Vec<Value>),
    /// A manifest that is pushed is kept with these bytes.
    Keeps { of: Digest, bytes: Vec<u8> },
    /// A manifest that is pushed is said to be this one, then and later.
    Stored { of: Digest, named: Digest },
}

/// What one repository holds.
#[derive(Debug, Default, Clone)]
pub(super) struct Held {
    /// By the digest that they are asked for with.
    pub(super) blobs: BTreeMap<String, Arc<Vec<u8>>>,
    /// By digest or tag, with their media types.
    pub(super) manifests: BTreeMap<String, (String, Arc<Vec<u8>>)>,
}

#[derive(Default)]
struct State {
    repositories: BTreeMap<String, (Held, Option<Lie>)>,
    uploads: BTreeMap<String, Vec<u8>>,
    count: u64,
}

#[derive(Clone)]
pub(super) struct Registry {
    pub(super) address: String,
    http: Client,
    state: Arc<Mutex<State>>,
}

/// An answer; a connection ends with one whose body is not what was announced.
struct Answer {
    status: u16,
    headers: Vec<(&'static str, String)>,
    body: Vec<u8>,
    /// Bytes of the body that are sent, when not all of them.
    ends: Option<(usize, bool)>,
}

impl Answer {
    fn of(status: u16) -> Self {
        Self { status, headers: Vec::new(), body: Vec::new(), ends: None }
    }

    fn with(mut self, name: &'static str, value: impl ToString) -> Self {
        self.headers.push((name, value.to_string()));
        self
    }
}

impl Held {
    pub(super) fn add_blob(&mut self, bytes: Vec<u8>) {
        self.blobs.insert(Digest::of(&bytes).to_string(), Arc::new(bytes));
    }

    pub(super) fn add_manifest(&mut self, manifest: &Manifest) {
        let kept = (manifest.media_type.clone(), Arc::new(manifest.bytes.to_vec()));
        self.manifests.insert(manifest.digest.to_string(), kept);
    }

    /// Adds all that `other` holds, but for its tags.
    pub(super) fn add_all(&mut self, other: &Self) {
        self.blobs.extend(other.blobs.clone());
        let named = other.manifests.iter().filter(|(version, _)| version.starts_with("sha256:"));
        self.manifests.extend(named.map(|(version, kept)| (version.clone(), kept.clone())));
    }

    /// Returns what is not what it is called.
    pub(super) fn wrong(&self) -> Option<String> {
        let all = self.blobs.iter().chain(self.manifests.iter().map(|(name, (_, bytes))| (name, bytes)));
        all.map(|(name, bytes)| (name, Digest::of(bytes))).find_map(|(name, found)| {
            let right = name == found.as_str() || *name == freehold_oci::digest_tag(&found);
            // The list of what refers to an artifact, where a registry has no API for it.
            let list = name.strip_prefix("sha256-").is_some_and(|hex| hex.len() == 64);
            (!right && !list).then(|| format!("`{name}` holds `{found}`"))
        })
    }
}

impl Registry {
    pub(super) async fn start(http: Client) -> anyhow::Result<Self> {
        let listener = TcpListener::bind("127.0.0.1:0").await?;
        let registry = Self { address: listener.local_addr()?.to_string(), http, state: Arc::default() };
        let server = registry.clone();
        tokio::spawn(async move {
            while let Ok((stream, _)) = listener.accept().await {
                let server = server.clone();
                tokio::spawn(async move { server.serve(stream).await });
            }
        });
        Ok(registry)
    }

    /// Returns the name of a new repository that holds `held` and lies so.
    pub(super) fn open(&self, held: Held, lie: Option<Lie>) -> String {
        let mut state = self.state();
        state.count += 1;
        let name = format!("case-{}", state.count);
        state.repositories.insert(name.clone(), (held, lie));
        name
    }

    /// Forgets a repository; returns what it held.
    pub(super) fn close(&self, name: &str) -> Held {
        let mut state = self.state();
        state.uploads.retain(|upload, _| !upload.starts_with(&format!("{name}/")));
        state.repositories.remove(name).map(|(held, _)| held).unwrap_or_default()
    }

    /// Returns the client's side of a repository, which does not try again for long.
    pub(super) fn repository(&self, name: &str) -> Repository {
        let policy = RetryPolicy { attempts: 3, pause: std::time::Duration::from_millis(1), ..RetryPolicy::default() };
        Repository::with_retry_policy(self.http.clone(), &self.address, name, Login::Anonymous, policy)
            .expect("an address of this machine")
    }

    pub(super) fn blob_url(&self, name: &str, digest: &Digest) -> String {
        format!("http://{}/v2/{name}/blobs/{digest}", self.address)
    }

    fn state(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    async fn serve(&self, stream: TcpStream) {
        let mut wire = Wire::new(stream);
        // A request that breaks off leaves nothing behind.
        while let Ok(Some(request)) = wire.request().await {
            let answer = self.answer(&request).unwrap_or_else(|| Answer::of(404));
            let whole = answer.ends.is_none();
            if wire.write(&written(&request, answer)).await.is_err() || !whole {
                return;
            }
        }
    }

    fn answer(&self, request: &Message) -> Option<Answer> {
        let url = Url::parse(&format!("http://registry{}", request.start[1])).ok()?;
        let path = url.path().strip_prefix("/v2/")?;
        let (name, rest) = path.split_once('/')?;
        let mut state = self.state();
        if let Some(id) = rest.strip_prefix("blobs/uploads/") {
            let digest = url.query_pairs().find(|(key, _)| key == "digest").map(|(_, digest)| digest.into_owned());
            return state.upload(request, name, id, digest);
        }
        let (held, lie) = state.repositories.get_mut(name)?;
        match rest.split_once('/')? {
            ("blobs", digest) => blob(held, lie.as_ref(), request, digest),
            ("manifests", version) if request.start[0] == "PUT" => Some(kept(held, lie.as_ref(), request, version)),
            ("manifests", version) => manifest(held, lie.as_ref(), version),
            ("referrers", digest) => Some(listed(held, lie.as_ref(), digest)),
            _ => None,
        }
    }
}

impl State {
    fn upload(&mut self, request: &Message, name: &str, id: &str, digest: Option<String>) -> Option<Answer> {
        let session = |id: &str| format!("/v2/{name}/blobs/uploads/{id}");
        let key = format!("{name}/{id}");
        match request.start[0].as_str() {
            "POST" => {
                self.count += 1;
                let id = format!("u{}", self.count);
                self.uploads.insert(format!("{name}/{id}"), Vec::new());
                Some(Answer::of(202).with("location", session(&id)))
            }
            "PATCH" => {
                self.uploads.get_mut(&key)?.extend_from_slice(&request.body);
                Some(Answer::of(202).with("location", session(id)))
            }
            "PUT" => {
                let mut bytes = self.uploads.remove(&key)?;
                bytes.extend_from_slice(&request.body);
                let (held, _) = self.repositories.get_mut(name)?;
                held.blobs.insert(digest?, Arc::new(bytes));
                Some(Answer::of(201))
            }
            _ => None,
        }
    }
}

fn blob(held: &Held, lie: Option<&Lie>, request: &Message, digest: &str) -> Option<Answer> {
    let mut bytes = held.blobs.get(digest)?.to_vec();
    let range = request.header("range").and_then(|range| range.strip_prefix("bytes=")?.strip_suffix('-'));
    let from = range.and_then(|from| from.parse::<usize>().ok());
    let mut ends = None;
    match lie {
        Some(Lie::Bytes { of, bytes: other, .. }) if of.as_str() == digest => bytes.clone_from(other),
        Some(Lie::Later { of, bytes: other, .. }) if of.as_str() == digest && from.is_some() => bytes.clone_from(other),
        Some(Lie::Later { of, at, .. }) if of.as_str() == digest => ends = Some((*at, true)),
        Some(Lie::Ends { of, at, announced }) if of.as_str() == digest => ends = Some((*at, *announced)),
        _ => {}
    }
    let mut answer = Answer::of(200);
    if let Some(from) = from.map(|from| from.min(bytes.len())) {
        let last = bytes.len().saturating_sub(1);
        answer = Answer::of(206).with("content-range", format!("bytes {from}-{last}/{}", bytes.len()));
        bytes.drain(..from);
        ends = ends.map(|(at, announced)| (at.saturating_sub(from), announced));
    }
    Some(Answer { body: bytes, ends, ..answer })
}

fn kept(held: &mut Held, lie: Option<&Lie>, request: &Message, version: &str) -> Answer {
    let found = Digest::of(&request.body);
    let media_type = request.header("content-type").unwrap_or_default().to_owned();
    let (mut bytes, mut named) = (request.body.clone(), found.clone());
    match lie {
        Some(Lie::Keeps { of, bytes: other }) if *of == found => bytes.clone_from(other),
        Some(Lie::Stored { of, named: other }) if *of == found => named = other.clone(),
        _ => {}
    }
    let kept = (media_type, Arc::new(bytes));
    held.manifests.insert(version.to_owned(), kept.clone());
    // A push by tag makes the manifest known by its digest too.
    held.manifests.insert(found.to_string(), kept);
    Answer::of(201).with("docker-content-digest", named).with("oci-subject", "listed")
}

fn manifest(held: &Held, lie: Option<&Lie>, version: &str) -> Option<Answer> {
    let (media_type, bytes) = held.manifests.get(version)?;
    let truth = Digest::of(bytes);
    let (body, named) = match lie {
        Some(Lie::Bytes { of, bytes: other, named }) if *of == truth => (other.clone(), named.clone()),
        Some(Lie::Stored { of, named }) if *of == truth => (bytes.to_vec(), Some(named.clone())),
        _ => (bytes.to_vec(), Some(truth)),
    };
    let mut answer = Answer::of(200).with("content-type", media_type);
    if let Some(named) = named {
        answer = answer.with("docker-content-digest", named);
    }
    Some(Answer { body, ..answer })
}

fn listed(held: &Held, lie: Option<&Lie>, digest: &str) -> Answer {
    let list = match lie {
        Some(Lie::Listed(list)) => list.clone(),
        _ => {
            let all = held.manifests.iter().filter(|(version, _)| version.starts_with("sha256:"));
            all.filter_map(|(_, (media_type, bytes))| entry(media_type, bytes, Some(digest))).collect()
        }
    };
    let media_type = "application/vnd.oci.image.index.v1+json";
    let index = json!({ "schemaVersion": 2, "mediaType": media_type, "manifests": list });
    Answer { body: index.to_string().into_bytes(), ..Answer::of(200).with("content-type", media_type) }
}

/// Returns how a manifest is listed as a referrer; none when it refers to something else than `subject`.
pub(super) fn entry(media_type: &str, bytes: &[u8], subject: Option<&str>) -> Option<Value> {
    let document: Value = serde_json::from_slice(bytes).ok()?;
    let refers = subject.is_none_or(|subject| document["subject"]["digest"] == subject);
    refers.then(|| {
        json!({ "mediaType": media_type, "digest": Digest::of(bytes), "size": bytes.len(),
            "artifactType": document["artifactType"] })
    })
}

fn written(request: &Message, answer: Answer) -> Vec<u8> {
    let mut text = format!("HTTP/1.1 {} x\r\n", answer.status);
    for (name, value) in &answer.headers {
        text.push_str(&format!("{name}: {value}\r\n"));
    }
    match answer.ends {
        Some((_, false)) => text.push_str("connection: close\r\n"),
        Some((_, true)) | None => text.push_str(&format!("content-length: {}\r\n", answer.body.len())),
    }
    text.push_str("\r\n");
    let sent = answer.ends.map_or(answer.body.len(), |(at, _)| at.min(answer.body.len()));
    let body = if request.start[0] == "HEAD" { &[] } else { &answer.body[..sent] };
    [text.as_bytes(), body].concat()
}
