//! A mirror of providers over TLS, with a certificate of its own authority, and the packages in it.

use std::collections::BTreeMap;
use std::fs::File;
use std::io::{Cursor, Write as _};
use std::path::{Path, PathBuf};
use std::process::Command;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex};

use rustls::pki_types::pem::PemObject as _;
use rustls::pki_types::{CertificateDer, PrivateKeyDer};
use serde_json::{Value, json};
use tokio::io::{AsyncBufReadExt as _, AsyncWriteExt as _, BufReader};
use tokio::net::TcpListener;
use tokio_rustls::TlsAcceptor;

/// Where the certificates are in the process in the cloud.
const CERTIFICATES: &str = "FREEHOLD_TEST_CERTIFICATES";
/// The provider, as modules name it.
pub(crate) const NOTE: &str = "providers.example/acme/note";

/// Certificates of an authority that only this test knows.
pub(crate) struct Certificates {
    directory: PathBuf,
    _made: Option<tempfile::TempDir>,
}

impl Certificates {
    /// Makes them, or finds those that the process before has made.
    pub(crate) fn new() -> Self {
        if let Some(directory) = std::env::var_os(CERTIFICATES) {
            return Self { directory: directory.into(), _made: None };
        }
        let made = tempfile::tempdir().unwrap();
        let certificate = |name: &str, more: &[&str]| {
            let mut openssl = Command::new("openssl");
            openssl.args(["req", "-x509", "-newkey", "ec", "-pkeyopt", "ec_paramgen_curve:prime256v1", "-nodes"]);
            openssl.args(["-days", "2", "-subj", &format!("/CN=freehold test {name}")]);
            openssl.args(["-keyout", &format!("{name}.key"), "-out", &format!("{name}.pem")]).args(more);
            assert!(openssl.current_dir(made.path()).output().unwrap().status.success());
        };
        certificate("authority", &[]);
        let of_server = ["-addext", "subjectAltName=IP:127.0.0.1", "-addext", "basicConstraints=critical,CA:FALSE"];
        certificate("server", &[&["-CA", "authority.pem", "-CAkey", "authority.key"], of_server.as_slice()].concat());
        Self { directory: made.path().to_owned(), _made: Some(made) }
    }

    /// Returns the variables with which a process trusts the authority, and finds these certificates.
    pub(crate) fn environment(&self) -> Vec<(&'static str, PathBuf)> {
        vec![(CERTIFICATES, self.directory.clone()), ("SSL_CERT_FILE", self.directory.join("authority.pem"))]
    }

    pub(crate) fn acceptor(&self) -> TlsAcceptor {
        let chain = vec![CertificateDer::from_pem_file(self.directory.join("server.pem")).unwrap()];
        let key = PrivateKeyDer::from_pem_file(self.directory.join("server.key")).unwrap();
        let provider = Arc::new(rustls::crypto::ring::default_provider());
        let config = rustls::ServerConfig::builder_with_provider(provider).with_safe_default_protocol_versions();
        let config = config.unwrap().with_no_client_auth().with_single_cert(chain, key).unwrap();
        TlsAcceptor::from(Arc::new(config))
    }
}

/// A mirror with packages of one provider.
#[derive(Clone)]
pub(crate) struct Mirror {
    pub(crate) url: String,
    files: Arc<Mutex<BTreeMap<String, Vec<u8>>>>,
    asked: Arc<AtomicUsize>,
}

impl Mirror {
    pub(crate) async fn start(certificates: &Certificates) -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let url = format!("https://{}/", listener.local_addr().unwrap());
        let mirror = Self { url, files: Arc::default(), asked: Arc::default() };
        let (served, acceptor) = (mirror.clone(), certificates.acceptor());
        tokio::spawn(async move {
            loop {
                let (stream, _) = listener.accept().await.unwrap();
                let (served, acceptor) = (served.clone(), acceptor.clone());
                tokio::spawn(async move {
                    let mut stream = BufReader::new(acceptor.accept(stream).await?);
                    let mut head = String::new();
                    while !head.ends_with("\r\n\r\n") && stream.read_line(&mut head).await? > 0 {}
                    stream.write_all(&served.answer(&head)).await?;
                    stream.shutdown().await
                });
            }
        });
        mirror
    }

    /// Offers a version of the provider for `platforms`. The package for this machine has the program.
    pub(crate) fn offer(&self, version: &str, platforms: &[&str]) {
        let mut archives = serde_json::Map::new();
        for platform in platforms {
            let name = format!("terraform-provider-note_{version}_{platform}.zip");
            archives.insert((*platform).to_owned(), json!({ "url": &name }));
            self.put(&name, package(version, platform));
        }
        self.put(&format!("{version}.json"), json!({ "archives": archives }).to_string().into_bytes());
        let mut files = self.files.lock().unwrap();
        let index = files.entry(format!("{NOTE}/index.json")).or_insert_with(|| b"{\"versions\":{}}".to_vec());
        let mut versions: Value = serde_json::from_slice(index).unwrap();
        versions["versions"][version] = json!({});
        *index = versions.to_string().into_bytes();
    }

    /// Puts other bytes into the place of a file.
    pub(crate) fn put(&self, name: &str, bytes: Vec<u8>) {
        self.files.lock().unwrap().insert(format!("{NOTE}/{name}"), bytes);
    }

    /// Returns how many requests there were.
    pub(crate) fn asked(&self) -> usize {
        self.asked.load(Ordering::Relaxed)
    }

    fn answer(&self, head: &str) -> Vec<u8> {
        self.asked.fetch_add(1, Ordering::Relaxed);
        let path = head.split(' ').nth(1).unwrap_or_default().trim_start_matches('/');
        let files = self.files.lock().unwrap();
        let (status, body) = files.get(path).map_or(("404 Not Found", &[][..]), |body| ("200 OK", body.as_slice()));
        let kind = if path.ends_with(".json") { "application/json" } else { "application/zip" };
        let length = body.len();
        let head = format!(
            "HTTP/1.1 {status}\r\ncontent-type: {kind}\r\ncontent-length: {length}\r\nconnection: close\r\n\r\n"
        );
        [head.as_bytes(), body].concat()
    }
}

/// Returns the package of a version, which has the platform in it so that no two are the same.
pub(crate) fn package(version: &str, platform: &str) -> Vec<u8> {
    let mut zip = zip::ZipWriter::new(Cursor::new(Vec::new()));
    let program = zip::write::SimpleFileOptions::default().unix_permissions(0o755);
    zip.start_file(format!("terraform-provider-note_v{version}"), program).unwrap();
    std::io::copy(&mut File::open(provider()).unwrap(), &mut zip).unwrap();
    zip.start_file("PLATFORM", zip::write::SimpleFileOptions::default()).unwrap();
    zip.write_all(platform.as_bytes()).unwrap();
    zip.finish().unwrap().into_inner()
}

/// Returns the program of the provider, an example of this package, which is built with its tests.
fn provider() -> PathBuf {
    let test = std::env::current_exe().unwrap();
    let built = test.ancestors().nth(2).unwrap().join("examples/terraform-provider-note");
    assert!(Path::new(&built).is_file(), "`{}` is missing; build the examples of this package", built.display());
    built
}
