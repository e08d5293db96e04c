//! An issuer on loopback: discovery, keys, tokens and revocation, whose tokens are signed with keys of P-256.

use std::collections::{BTreeMap, VecDeque};
use std::io::{BufRead as _, BufReader, Read as _, Write as _};
use std::net::{TcpListener, TcpStream};
use std::sync::{Arc, Mutex, MutexGuard};
use std::time::{SystemTime, UNIX_EPOCH};

use base64::Engine as _;
use base64::engine::general_purpose::URL_SAFE_NO_PAD;
use ring::digest::{SHA256, digest};
use ring::rand::SystemRandom;
use ring::signature::{ECDSA_P256_SHA256_FIXED_SIGNING, EcdsaKeyPair, KeyPair as _};
use serde_json::{Value, json};
use url::{Url, form_urlencoded};

pub(crate) const CLIENT: &str = "command";

pub(crate) struct SigningKey {
    id: &'static str,
    pair: EcdsaKeyPair,
}

impl SigningKey {
    pub(crate) fn new(id: &'static str) -> Self {
        let random = SystemRandom::new();
        let kind = &ECDSA_P256_SHA256_FIXED_SIGNING;
        let bytes = EcdsaKeyPair::generate_pkcs8(kind, &random).unwrap();
        Self { id, pair: EcdsaKeyPair::from_pkcs8(kind, bytes.as_ref(), &random).unwrap() }
    }

    fn public(&self) -> Value {
        let point = self.pair.public_key().as_ref();
        let part = |bytes: &[u8]| URL_SAFE_NO_PAD.encode(bytes);
        json!({ "kty": "EC", "crv": "P-256", "use": "sig", "kid": self.id, "x": part(&point[1..33]),
            "y": part(&point[33..]) })
    }
}

/// What the issuer knows and does next.
pub(crate) struct State {
    pub(crate) address: String,
    pub(crate) signer: SigningKey,
    /// Keys that are published beside that of the signer, or instead of it.
    pub(crate) published: Option<Value>,
    /// Claims and fields that differ from those of a right token and document; `null` leaves one out.
    pub(crate) claims: Value,
    pub(crate) header: Value,
    pub(crate) document: Value,
    pub(crate) lifetime_secs: u64,
    /// The only refresh token that is valid.
    pub(crate) refresh: Option<String>,
    /// Answers to the next questions of a device.
    pub(crate) device: VecDeque<(u16, Value)>,
    /// The kinds of requests so far.
    pub(crate) asked: Vec<String>,
    nonce: String,
    challenge: String,
    redirect: String,
    renewals: u32,
}

#[derive(Clone)]
pub(crate) struct Server(Arc<Mutex<State>>);

impl Server {
    pub(crate) fn start() -> Self {
        let listener = TcpListener::bind(("127.0.0.1", 0)).unwrap();
        let state = State {
            address: format!("http://{}", listener.local_addr().unwrap()),
            signer: SigningKey::new("one"),
            published: None,
            claims: json!({}),
            header: json!({}),
            document: json!({}),
            lifetime_secs: 3600,
            refresh: Some("refresh-0".to_owned()),
            device: VecDeque::new(),
            asked: Vec::new(),
            nonce: String::new(),
            challenge: String::new(),
            redirect: String::new(),
            renewals: 0,
        };
        let server = Self(Arc::new(Mutex::new(state)));
        let answering = server.clone();
        std::thread::spawn(move || {
            for stream in listener.incoming() {
                answering.serve(stream.unwrap());
            }
        });
        server
    }

    pub(crate) fn state(&self) -> MutexGuard<'_, State> {
        self.0.lock().unwrap()
    }

    /// Returns the public keys that the issuer has now.
    pub(crate) fn published(&self) -> Value {
        json!([self.state().signer.public()])
    }

    /// Returns the query that the browser returns with from the page at `url`.
    pub(crate) fn agree(&self, url: &Url) -> String {
        let sent: BTreeMap<_, _> = url.query_pairs().into_owned().collect();
        assert_eq!((sent["response_type"].as_str(), sent["client_id"].as_str()), ("code", CLIENT));
        assert_eq!(sent["code_challenge_method"], "S256");
        let mut state = self.state();
        (state.nonce, state.challenge) = (sent["nonce"].clone(), sent["code_challenge"].clone());
        state.redirect = sent["redirect_uri"].clone();
        let answer = [("code", "c-1"), ("state", sent["state"].as_str())];
        form_urlencoded::Serializer::new(String::new()).extend_pairs(answer).finish()
    }

    fn serve(&self, mut stream: TcpStream) {
        let Some((path, form)) = request(&stream) else { return };
        let (status, body) = self.state().answer(&path, &form);
        let text = body.to_string();
        let head = format!("HTTP/1.1 {status} X\r\ncontent-length: {}\r\nconnection: close\r\n\r\n", text.len());
        let _ = stream.write_all(format!("{head}{text}").as_bytes());
    }
}

impl State {
    fn answer(&mut self, path: &str, form: &BTreeMap<String, String>) -> (u16, Value) {
        let grant = form.get("grant_type").map(|grant| grant.rsplit(':').next().unwrap()).unwrap_or_default();
        self.asked.push(format!("{path} {grant}").trim_end().to_owned());
        let at = |path: &str| format!("{}{path}", self.address);
        let document = json!({ "issuer": self.address, "authorization_endpoint": at("/authorize"),
            "token_endpoint": at("/token"), "jwks_uri": at("/keys"), "revocation_endpoint": at("/revoke"),
            "device_authorization_endpoint": at("/device"), "scopes_supported": ["openid", "offline_access"] });
        match (path, grant) {
            ("/.well-known/openid-configuration" | "/pool/.well-known/openid-configuration", _) => {
                (200, merged(document, &self.document))
            }
            ("/keys", _) => {
                let keys = self.published.clone().unwrap_or_else(|| json!([self.signer.public()]));
                (200, json!({ "keys": keys }))
            }
            ("/token", "authorization_code") => self.exchange(form),
            ("/token", "refresh_token") => self.renew(form),
            ("/token", "device_code") => match self.device.pop_front() {
                Some(answer) => answer,
                None => (200, self.tokens()),
            },
            ("/device", _) => (
                200,
                json!({ "device_code": "d-1", "user_code": "ABCD-EFGH",
                "verification_uri": "https://id.example.com/device", "expires_in": 600, "interval": 1 }),
            ),
            ("/revoke", _) => {
                assert_eq!(form["token"], *self.refresh.as_ref().unwrap());
                self.refresh = None;
                (200, json!({}))
            }
            _ => (404, json!({})),
        }
    }

    fn exchange(&mut self, form: &BTreeMap<String, String>) -> (u16, Value) {
        let challenge = URL_SAFE_NO_PAD.encode(digest(&SHA256, form["code_verifier"].as_bytes()));
        let is_right = form["code"] == "c-1" && challenge == self.challenge && form["redirect_uri"] == self.redirect;
        if is_right { (200, self.tokens()) } else { (400, json!({ "error": "invalid_grant" })) }
    }

    /// Renews tokens. Each refresh token is valid once.
    fn renew(&mut self, form: &BTreeMap<String, String>) -> (u16, Value) {
        if self.refresh.as_ref() != form.get("refresh_token") {
            return (400, json!({ "error": "invalid_grant" }));
        }
        self.renewals += 1;
        self.refresh = Some(format!("refresh-{}", self.renewals));
        (200, self.tokens())
    }

    fn tokens(&self) -> Value {
        json!({ "access_token": format!("access-{}", self.renewals), "refresh_token": self.refresh,
            "id_token": self.id_token(), "expires_in": self.lifetime_secs, "token_type": "Bearer" })
    }

    fn id_token(&self) -> String {
        let now = SystemTime::now().duration_since(UNIX_EPOCH).unwrap().as_secs();
        let claims = json!({ "iss": self.address, "aud": CLIENT, "sub": "ana", "email": "ana@example.com",
            "nonce": self.nonce, "iat": now, "exp": now + 3600 });
        let header = merged(json!({ "alg": "ES256", "kid": self.signer.id }), &self.header);
        let part = |value: Value| URL_SAFE_NO_PAD.encode(value.to_string());
        let message = format!("{}.{}", part(header), part(merged(claims, &self.claims)));
        let signature = self.signer.pair.sign(&SystemRandom::new(), message.as_bytes()).unwrap();
        format!("{message}.{}", URL_SAFE_NO_PAD.encode(signature.as_ref()))
    }
}

/// Returns `value` with the fields of `other`; a field that is `null` there is left out.
fn merged(mut value: Value, other: &Value) -> Value {
    let fields = value.as_object_mut().unwrap();
    for (name, change) in other.as_object().unwrap() {
        if change.is_null() {
            fields.remove(name);
        } else {
            fields.insert(name.clone(), change.clone());
        }
    }
    value
}

/// Reads a request; returns its path and its form.
fn request(stream: &TcpStream) -> Option<(String, BTreeMap<String, String>)> {
    let mut reader = BufReader::new(stream);
    let mut head = Vec::new();
    let mut line = String::new();
    while reader.read_line(&mut line).ok()? > 2 {
        head.push(line.trim_end().to_owned());
        line.clear();
    }
    let length = head.iter().find_map(|line| line.to_ascii_lowercase().strip_prefix("content-length: ")?.parse().ok());
    let mut body = vec![0; length.unwrap_or(0)];
    reader.read_exact(&mut body).ok()?;
    let path = head.first()?.split(' ').nth(1)?.to_owned();
    Some((path, form_urlencoded::parse(&body).into_owned().collect()))
}
