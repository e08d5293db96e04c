//! A small registry in memory that does what it is told to do wrong. It knows ranges, upload status, mounts and the
//! referrers API, which Debian's registry does not all know.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::{Arc, Mutex, MutexGuard};
use std::time::Duration;

use bytes::Bytes;
use freehold_oci::Repository;
use freehold_protocol::Digest;
use serde_json::{Value, json};
use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
use tokio::net::{TcpListener, TcpStream};

use crate::registry::at;

/// What goes wrong.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Fault {
    /// One bit of every blob is another one.
    BlobBit,
    /// The announced length is one less, and so are the bytes.
    BlobShort,
    /// The announced length is one more, and so are the bytes.
    BlobLong,
    /// No announced length, and one byte less.
    BlobShortUnannounced,
    /// No announced length, and one byte more in the middle.
    BlobLongUnannounced,
    /// The connection ends in the middle of every blob.
    BlobEnds,
    /// After half of a blob nothing comes any more.
    BlobHangs,
    /// One byte of a blob at a time.
    BlobDrips,
    /// A manifest has a space more.
    ManifestByte,
    /// The header names another digest than the manifest has.
    ManifestHeader,
    /// After a push the header names another digest.
    StoredHeader,
    /// What is pushed is stored with a bit changed.
    StoresManifestBit,
    /// Uploads are read as slowly as can be.
    UploadHangs,
    /// Each page of a list of referrers names a next page, itself.
    EndlessReferrers,
}

#[derive(Debug, Clone, Default)]
pub(crate) struct Behaviour {
    pub(crate) fault: Option<Fault>,
    /// Without ranges, upload status, mounts and referrers.
    pub(crate) old: bool,
    /// Tags cannot be moved, as on ECR.
    pub(crate) immutable: bool,
    /// This many first reads of a list of referrers are answered together.
    pub(crate) meeting: usize,
    /// The next answers to requests with this method and part of a path: status, and seconds of `Retry-After`.
    pub(crate) refuse: Vec<(&'static str, &'static str, u16, Option<u64>)>,
}

struct State {
    behaviour: Behaviour,
    blobs: BTreeMap<Digest, Bytes>,
    /// Which blobs a repository holds.
    held: BTreeSet<(String, String)>,
    /// By repository and tag or digest.
    manifests: BTreeMap<(String, String), (String, Bytes)>,
    uploads: BTreeMap<String, Vec<u8>>,
    /// Held while an upload's bytes come in. As in a real registry, its status is told between two requests only: a cut
    /// connection may have bytes on the way that the answer has to count.
    busy: BTreeMap<String, Arc<tokio::sync::Mutex<()>>>,
    log: Vec<String>,
    received: u64,
    /// The reads of a list of referrers that came, and where they wait for each other.
    readers: usize,
    meeting: Arc<tokio::sync::Barrier>,
}

impl State {
    fn new(behaviour: Behaviour) -> Self {
        let meeting = Arc::new(tokio::sync::Barrier::new(behaviour.meeting));
        Self {
            behaviour,
            blobs: BTreeMap::new(),
            held: BTreeSet::new(),
            manifests: BTreeMap::new(),
            uploads: BTreeMap::new(),
            busy: BTreeMap::new(),
            log: Vec::new(),
            received: 0,
            readers: 0,
            meeting,
        }
    }
}

#[derive(Clone)]
pub(crate) struct Faulty {
    pub(crate) address: String,
    state: Arc<Mutex<State>>,
}

struct Request {
    method: String,
    path: String,
    query: BTreeMap<String, String>,
    headers: BTreeMap<String, String>,
    length: usize,
}

struct Answer {
    status: u16,
    headers: Vec<(&'static str, String)>,
    body: Bytes,
    /// Whether the length is announced.
    announced: bool,
    /// Sent in this way.
    fault: Option<Fault>,
}

impl Answer {
    fn of(status: u16) -> Self {
        Self { status, headers: Vec::new(), body: Bytes::new(), announced: true, fault: None }
    }

    fn with(mut self, name: &'static str, value: impl Into<String>) -> Self {
        self.headers.push((name, value.into()));
        self
    }
}

impl Faulty {
    pub(crate) async fn start(behaviour: Behaviour) -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let address = listener.local_addr().unwrap().to_string();
        let state = Arc::new(Mutex::new(State::new(behaviour)));
        let faulty = Self { address, state };
        let server = faulty.clone();
        tokio::spawn(async move {
            while let Ok((stream, _)) = listener.accept().await {
                let server = server.clone();
                tokio::spawn(async move { server.serve(stream).await });
            }
        });
        faulty
    }

    pub(crate) fn repository(&self, name: &str) -> Repository {
        at(&self.address, name)
    }

    /// Behaves differently from now on.
    pub(crate) fn behave(&self, behaviour: Behaviour) {
        self.state().behaviour = behaviour;
    }

    /// Returns the requests since the last time, without digests' digits.
    pub(crate) fn requests(&self) -> Vec<String> {
        std::mem::take(&mut self.state().log)
    }

    /// Returns how many bytes of blobs came in.
    pub(crate) fn received(&self) -> u64 {
        self.state().received
    }

    fn state(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap()
    }

    fn hangs(&self) -> bool {
        self.state().behaviour.fault == Some(Fault::UploadHangs)
    }

    fn busy(&self, upload: &str) -> Arc<tokio::sync::Mutex<()>> {
        Arc::clone(self.state().busy.entry(upload.to_owned()).or_default())
    }

    async fn serve(&self, mut stream: TcpStream) {
        let _ = stream.set_nodelay(true);
        let mut buffer = Vec::new();
        while let Some(request) = head(&mut stream, &mut buffer).await {
            let upload = request.path.split_once("/blobs/uploads/").map(|(_, id)| id.to_owned());
            let busy = upload.as_ref().filter(|id| !id.is_empty()).map(|id| self.busy(id));
            let _alone = match busy.as_ref() {
                Some(busy) if !self.hangs() => Some(busy.lock().await),
                Some(_) | None => None,
            };
            let mut body = Vec::new();
            let kept = upload.filter(|id| !id.is_empty() && matches!(request.method.as_str(), "PATCH" | "PUT"));
            // Bytes of an upload are kept as they come, so that a cut leaves what came before it.
            if !self.receive(&mut stream, &mut buffer, &request, kept.as_deref(), &mut body).await {
                return;
            }
            let answer = self.answer(&request, &body);
            if let Some(meeting) = self.meeting(&request) {
                meeting.wait().await;
            }
            if !write(&mut stream, &request, answer).await {
                return;
            }
        }
    }

    /// Returns where a read of a list of referrers waits for the others.
    fn meeting(&self, request: &Request) -> Option<Arc<tokio::sync::Barrier>> {
        let version = request.path.rsplit_once("/manifests/").map(|(_, version)| version)?;
        let list = request.method == "GET" && version.starts_with("sha256-") && version.len() == 71;
        let mut state = self.state();
        state.readers += usize::from(list);
        (list && state.readers <= state.behaviour.meeting).then(|| Arc::clone(&state.meeting))
    }

    async fn receive(
        &self,
        stream: &mut TcpStream,
        buffer: &mut Vec<u8>,
        request: &Request,
        upload: Option<&str>,
        body: &mut Vec<u8>,
    ) -> bool {
        let mut left = request.length;
        let mut chunk = vec![0; 16 * 1024];
        while left > 0 {
            let piece: Vec<u8> = if buffer.is_empty() {
                let Ok(read @ 1..) = stream.read(&mut chunk).await else { return false };
                chunk[..read].to_vec()
            } else {
                std::mem::take(buffer)
            };
            let (own, rest) = piece.split_at(piece.len().min(left));
            buffer.extend_from_slice(rest);
            left -= own.len();
            match upload {
                Some(id) => {
                    let mut state = self.state();
                    state.received += own.len() as u64;
                    if let Some(bytes) = state.uploads.get_mut(id) {
                        bytes.extend_from_slice(own);
                    }
                }
                None => body.extend_from_slice(own),
            }
            if upload.is_some() && self.hangs() {
                std::future::pending::<()>().await;
            }
        }
        true
    }

    fn answer(&self, request: &Request, body: &[u8]) -> Answer {
        let mut state = self.state();
        state.log.push(format!("{} {}", request.method, short(&request.path)));
        let refused = state
            .behaviour
            .refuse
            .iter()
            .position(|(method, part, ..)| *method == request.method && request.path.contains(part));
        if let Some(at) = refused {
            let (_, _, status, after) = state.behaviour.refuse.remove(at);
            let answer = Answer::of(status);
            return match after {
                Some(secs) => answer.with("retry-after", secs.to_string()),
                None => answer,
            };
        }
        let path = request.path.trim_start_matches("/v2/");
        for (mark, handle) in [
            ("/blobs/uploads/", upload as fn(&mut State, &Request, &str, &str, &[u8]) -> Answer),
            ("/blobs/", blob),
            ("/manifests/", manifest),
            ("/referrers/", referrers),
        ] {
            if let Some((name, rest)) = path.split_once(mark) {
                return handle(&mut state, request, name, rest, body);
            }
        }
        Answer::of(404)
    }
}

fn upload(state: &mut State, request: &Request, name: &str, id: &str, _: &[u8]) -> Answer {
    let session = |id: &str| format!("/v2/{name}/blobs/uploads/{id}");
    match request.method.as_str() {
        "POST" => {
            let mount = request.query.get("mount").filter(|_| !state.behaviour.old);
            if let (Some(digest), Some(from)) = (mount, request.query.get("from"))
                && state.held.contains(&(from.clone(), digest.clone()))
            {
                state.held.insert((name.to_owned(), digest.clone()));
                return Answer::of(201).with("location", format!("/v2/{name}/blobs/{digest}"));
            }
            let id = format!("u{}", state.log.len() + state.uploads.len() * 100_000);
            state.uploads.insert(id.clone(), Vec::new());
            Answer::of(202).with("location", session(&id))
        }
        "GET" => match state.uploads.get(id).filter(|_| !state.behaviour.old) {
            Some(bytes) => Answer::of(204)
                .with("location", session(id))
                .with("range", format!("0-{}", bytes.len().saturating_sub(1))),
            None => Answer::of(404),
        },
        "PATCH" => {
            let have = state.uploads.get(id).map_or(0, Vec::len);
            let begins = request.headers.get("content-range").and_then(|range| range.split_once('-'));
            let begins: usize = begins.map_or(have - request.length, |(first, _)| first.parse().unwrap());
            if begins + request.length != have {
                return Answer::of(416);
            }
            Answer::of(202).with("location", session(id)).with("range", format!("0-{}", have - 1))
        }
        "PUT" => {
            let Some(bytes) = state.uploads.remove(id) else { return Answer::of(404) };
            let found = Digest::of(&bytes);
            if request.query.get("digest").map(String::as_str) != Some(found.as_str()) {
                return Answer::of(400);
            }
            state.held.insert((name.to_owned(), found.to_string()));
            state.blobs.insert(found.clone(), Bytes::from(bytes));
            stored(state, &found)
        }
        _ => Answer::of(405),
    }
}

fn stored(state: &State, digest: &Digest) -> Answer {
    let named = if state.behaviour.fault == Some(Fault::StoredHeader) { Digest::of(b"other") } else { digest.clone() };
    Answer::of(201).with("docker-content-digest", named.to_string())
}

fn blob(state: &mut State, request: &Request, name: &str, digest: &str, _: &[u8]) -> Answer {
    let held = state.held.contains(&(name.to_owned(), digest.to_owned()));
    let Some(bytes) = digest.parse().ok().and_then(|digest: Digest| state.blobs.get(&digest)).filter(|_| held) else {
        return Answer::of(404);
    };
    let mut answer = Answer::of(200);
    let mut body = bytes.to_vec();
    let range = request.headers.get("range").filter(|_| !state.behaviour.old);
    if let Some(first) = range.and_then(|range| range.strip_prefix("bytes=")?.strip_suffix('-')?.parse::<usize>().ok())
    {
        answer = Answer::of(206).with("content-range", format!("bytes {first}-{}/{}", body.len() - 1, body.len()));
        body.drain(..first);
    }
    // Only of blobs that are layers: a copy has read its config before.
    match state.behaviour.fault {
        Some(Fault::BlobBit) => body[0] ^= 1,
        Some(Fault::BlobShort | Fault::BlobShortUnannounced) => drop(body.pop()),
        Some(Fault::BlobLong) => body.push(0),
        Some(Fault::BlobLongUnannounced) => body.insert(body.len() / 2, 0),
        _ => {}
    }
    answer.announced = !matches!(state.behaviour.fault, Some(Fault::BlobShortUnannounced | Fault::BlobLongUnannounced));
    answer.fault = state.behaviour.fault;
    answer.body = Bytes::from(body);
    answer
}

fn manifest(state: &mut State, request: &Request, name: &str, version: &str, body: &[u8]) -> Answer {
    let key = |version: &str| (name.to_owned(), version.to_owned());
    if request.method == "PUT" {
        let found = Digest::of(body);
        let taken = state.manifests.get(&key(version)).is_some_and(|(_, bytes)| bytes != body);
        if state.behaviour.immutable && taken {
            let mut answer = Answer::of(400);
            answer.body = Bytes::from(json!({ "errors": [{ "code": "TAG_INVALID" }] }).to_string());
            return answer;
        }
        let mut bytes = body.to_vec();
        if state.behaviour.fault == Some(Fault::StoresManifestBit) {
            bytes.push(b' ');
        }
        let kept = (request.headers["content-type"].clone(), Bytes::from(bytes));
        state.manifests.insert(key(version), kept.clone());
        state.manifests.insert(key(found.as_str()), kept);
        let subject = serde_json::from_slice::<Value>(body).is_ok_and(|document| document.get("subject").is_some());
        let answer = stored(state, &found);
        return if subject && !state.behaviour.old { answer.with("oci-subject", "yes") } else { answer };
    }
    let Some((media_type, bytes)) = state.manifests.get(&key(version)).cloned() else { return Answer::of(404) };
    let (mut bytes, mut named) = (bytes.to_vec(), Digest::of(&bytes));
    match state.behaviour.fault {
        Some(Fault::ManifestByte) => bytes.push(b' '),
        Some(Fault::ManifestHeader) => named = Digest::of(b"other"),
        _ => {}
    }
    let mut answer = Answer::of(200).with("content-type", media_type).with("docker-content-digest", named.to_string());
    answer.body = Bytes::from(bytes);
    answer
}

fn referrers(state: &mut State, _: &Request, name: &str, digest: &str, _: &[u8]) -> Answer {
    if state.behaviour.old {
        return Answer::of(404);
    }
    let all = state.manifests.iter().filter(|((held, version), _)| held == name && version.starts_with("sha256:"));
    let list: Vec<Value> = all
        .filter_map(|(_, (media_type, bytes))| {
            let document: Value = serde_json::from_slice(bytes).ok()?;
            (document["subject"]["digest"] == digest).then(|| {
                json!({ "mediaType": media_type, "digest": Digest::of(bytes), "size": bytes.len(),
                    "artifactType": document["artifactType"] })
            })
        })
        .collect();
    let index =
        json!({ "schemaVersion": 2, "mediaType": "application/vnd.oci.image.index.v1+json", "manifests": list });
    let mut answer = Answer::of(200).with("content-type", "application/vnd.oci.image.index.v1+json");
    answer.body = Bytes::from(index.to_string());
    if state.behaviour.fault == Some(Fault::EndlessReferrers) {
        return answer.with("link", format!("</v2/{name}/referrers/{digest}>; rel=\"next\""));
    }
    answer
}

async fn head(stream: &mut TcpStream, buffer: &mut Vec<u8>) -> Option<Request> {
    let mut chunk = vec![0; 16 * 1024];
    let end = loop {
        if let Some(at) = buffer.windows(4).position(|four| four == b"\r\n\r\n") {
            break at + 4;
        }
        let Ok(read @ 1..) = stream.read(&mut chunk).await else { return None };
        buffer.extend_from_slice(&chunk[..read]);
    };
    let text = String::from_utf8(buffer.drain(..end).collect()).unwrap();
    let mut lines = text.lines();
    let mut words = lines.next()?.split(' ');
    let (method, target) = (words.next()?.to_owned(), words.next()?);
    let url = reqwest::Url::parse(&format!("http://registry{target}")).unwrap();
    let headers: BTreeMap<String, String> = lines
        .filter_map(|line| line.split_once(':'))
        .map(|(name, value)| (name.to_ascii_lowercase(), value.trim().to_owned()))
        .collect();
    let length = headers.get("content-length").map_or(0, |length| length.parse().unwrap());
    let query = url.query_pairs().map(|(name, value)| (name.into_owned(), value.into_owned())).collect();
    Some(Request { method, path: url.path().to_owned(), query, headers, length })
}

async fn write(stream: &mut TcpStream, request: &Request, answer: Answer) -> bool {
    let mut text = format!("HTTP/1.1 {} x\r\n", answer.status);
    for (name, value) in &answer.headers {
        text.push_str(&format!("{name}: {value}\r\n"));
    }
    if answer.announced {
        text.push_str(&format!("content-length: {}\r\n", answer.body.len()));
    } else {
        text.push_str("connection: close\r\n");
    }
    text.push_str("\r\n");
    if stream.write_all(text.as_bytes()).await.is_err() {
        return false;
    }
    if request.method == "HEAD" {
        return answer.announced;
    }
    let half = answer.body.len() / 2;
    match answer.fault {
        Some(Fault::BlobEnds) => {
            let _ = stream.write_all(&answer.body[..half]).await;
            false
        }
        Some(Fault::BlobHangs) => {
            let _ = stream.write_all(&answer.body[..half]).await;
            std::future::pending().await
        }
        Some(Fault::BlobDrips) => {
            for byte in &answer.body {
                if stream.write_all(&[*byte]).await.is_err() {
                    return false;
                }
                tokio::time::sleep(Duration::from_millis(50)).await;
            }
            true
        }
        _ => stream.write_all(&answer.body).await.is_ok() && answer.announced,
    }
}

fn short(path: &str) -> String {
    match path.split_once("sha256") {
        Some((before, _)) => format!("{before}*"),
        None => {
            path.rsplit_once("/uploads/").map_or_else(|| path.to_owned(), |(before, _)| format!("{before}/uploads/*"))
        }
    }
}
