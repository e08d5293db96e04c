//! Outgoing connections on loopback: local servers take the place of named hosts and public addresses, and a raw client
//! sends the requests.

use std::collections::HashMap;
use std::io;
use std::net::{IpAddr, SocketAddr};
use std::sync::{Arc, Mutex};
use std::time::Duration;

use async_trait::async_trait;
use freehold_egress::{AccountHosts, Egress, Limits, Network, Refusal, Rules, Serving, Upstream, Way};
use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
use tokio::net::{TcpListener, TcpStream};
use tokio::sync::mpsc;
use tokio::time::timeout;

/// A test that waits longer has failed.
pub(crate) const PATIENCE: Duration = Duration::from_secs(120);
/// An address that passes the checks; [`Stage::plays`] says who answers there.
pub(crate) const PUBLIC: &str = "198.51.100.7";

/// The network of the tests. What it connects to is recorded by the address that was asked for.
#[derive(Default)]
pub(crate) struct Played {
    names: Mutex<HashMap<String, Vec<Vec<IpAddr>>>>,
    servers: Mutex<HashMap<SocketAddr, SocketAddr>>,
    pub(crate) resolved: Mutex<Vec<String>>,
    pub(crate) connected: Mutex<Vec<SocketAddr>>,
}

#[async_trait]
impl Network for Played {
    async fn resolve(&self, name: &str) -> io::Result<Vec<IpAddr>> {
        self.resolved.lock().unwrap().push(name.to_owned());
        let mut names = self.names.lock().unwrap();
        let answers = names.get_mut(name).ok_or(io::ErrorKind::NotFound)?;
        // The last answer stays.
        Ok(if answers.len() > 1 { answers.remove(0) } else { answers[0].clone() })
    }

    async fn connect(&self, address: SocketAddr) -> io::Result<TcpStream> {
        self.connected.lock().unwrap().push(address);
        let played = self.servers.lock().unwrap().get(&address).copied();
        TcpStream::connect(played.ok_or(io::ErrorKind::ConnectionRefused)?).await
    }

    fn is_own(&self, address: IpAddr) -> bool {
        address == IpAddr::from([10, 0, 0, 99])
    }
}

/// The outgoing connections of one job.
pub(crate) struct Stage {
    pub(crate) network: Arc<Played>,
    pub(crate) egress: Egress,
    pub(crate) refusals: Arc<Mutex<Vec<Refusal>>>,
    pub(crate) proxy: SocketAddr,
    pub(crate) serving: Vec<Serving>,
}

impl Stage {
    pub(crate) async fn new(rules: &[&str]) -> Self {
        Self::with(rules, Upstream::none(), Limits::default()).await
    }

    /// A way out to hosts of which `inside` may be in a private network.
    pub(crate) async fn inside(rules: &[&str], inside: &[&str]) -> Self {
        let marked = inside.iter().map(|rule| rule.parse().unwrap());
        let rules = Rules::parse(rules.iter().copied()).unwrap().inside(marked);
        Self::of(rules, None, Upstream::none(), Limits::default()).await
    }

    /// A way out without rules, to the hosts that `account` finds.
    pub(crate) async fn of_account(account: impl AccountHosts) -> Self {
        Self::of(Rules::default(), Some(Arc::new(account)), Upstream::none(), Limits::default()).await
    }

    pub(crate) async fn with(rules: &[&str], upstream: Upstream, limits: Limits) -> Self {
        Self::of(Rules::parse(rules.iter().copied()).unwrap(), None, upstream, limits).await
    }

    async fn of(rules: Rules, account: Option<Arc<dyn AccountHosts>>, upstream: Upstream, limits: Limits) -> Self {
        let network = Arc::new(Played::default());
        let refusals = Arc::new(Mutex::new(Vec::new()));
        let into = Arc::clone(&refusals);
        let sink = move |refusal: &Refusal| into.lock().unwrap().push(refusal.clone());
        let egress = Egress::with(rules, account, upstream, sink, Arc::clone(&network) as Arc<dyn Network>, limits);
        let mut stage = Self { network, egress, refusals, proxy: ([127, 0, 0, 1], 0).into(), serving: Vec::new() };
        stage.proxy = stage.serve(Way::Proxy).await;
        stage
    }

    /// Serves one more listener.
    pub(crate) async fn serve(&mut self, way: Way) -> SocketAddr {
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let address = listener.local_addr().unwrap();
        self.serving.push(self.egress.serve(listener, way));
        address
    }

    /// Lets `name` resolve to one list of addresses per call; the last one stays.
    pub(crate) fn resolves(&self, name: &str, answers: &[&[&str]]) {
        let answers = answers.iter().map(|all| all.iter().map(|address| address.parse().unwrap()).collect()).collect();
        self.network.names.lock().unwrap().insert(name.to_owned(), answers);
    }

    /// Lets the local `server` answer at `address`.
    pub(crate) fn plays(&self, address: &str, server: SocketAddr) {
        self.network.servers.lock().unwrap().insert(address.parse().unwrap(), server);
    }

    /// Lets `name` be a public host whose `port` is answered by the local `server`.
    pub(crate) fn hosts(&self, name: &str, port: u16, server: SocketAddr) {
        self.resolves(name, &[&[PUBLIC]]);
        self.plays(&format!("{PUBLIC}:{port}"), server);
    }

    pub(crate) fn connected(&self) -> Vec<String> {
        self.network.connected.lock().unwrap().iter().map(ToString::to_string).collect()
    }

    /// Returns the words and sentences of the refusals.
    pub(crate) fn refused(&self) -> Vec<(&'static str, String)> {
        self.refusals.lock().unwrap().iter().map(|refusal| (refusal.word, refusal.reason.clone())).collect()
    }

    /// Sends raw bytes to the proxy and returns all that comes back until it closes.
    pub(crate) async fn ask(&self, request: &str) -> String {
        let mut stream = TcpStream::connect(self.proxy).await.unwrap();
        stream.write_all(request.as_bytes()).await.unwrap();
        all(&mut stream).await
    }

    /// Asks for a tunnel; returns it with the head of the answer.
    pub(crate) async fn connect(&self, to: &str) -> (TcpStream, String) {
        let mut stream = TcpStream::connect(self.proxy).await.unwrap();
        stream.write_all(format!("CONNECT {to} HTTP/1.1\r\nHost: {to}\r\n\r\n").as_bytes()).await.unwrap();
        let head = head(&mut stream).await;
        (stream, head)
    }
}

/// Reads until the other side closes, or resets because it had enough.
pub(crate) async fn all(stream: &mut TcpStream) -> String {
    let mut bytes = Vec::new();
    let _ = timeout(PATIENCE, stream.read_to_end(&mut bytes)).await.expect("the connection should close");
    String::from_utf8_lossy(&bytes).into_owned()
}

/// Reads a head, with its empty line.
pub(crate) async fn head(stream: &mut TcpStream) -> String {
    let mut bytes = Vec::new();
    while !bytes.ends_with(b"\r\n\r\n") {
        let mut one = [0];
        match timeout(PATIENCE, stream.read(&mut one)).await.expect("an answer should come") {
            Ok(1) => bytes.push(one[0]),
            Ok(_) | Err(_) => break,
        }
    }
    String::from_utf8_lossy(&bytes).into_owned()
}

/// Reads exactly `length` bytes.
pub(crate) async fn exactly(stream: &mut TcpStream, length: usize) -> Vec<u8> {
    let mut bytes = vec![0; length];
    timeout(PATIENCE, stream.read_exact(&mut bytes)).await.expect("bytes should come").unwrap();
    bytes
}

/// A server that sends back what it gets.
pub(crate) async fn echo() -> SocketAddr {
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let address = listener.local_addr().unwrap();
    tokio::spawn(async move {
        while let Ok((mut stream, _)) = listener.accept().await {
            tokio::spawn(async move {
                let (mut read, mut write) = stream.split();
                let _ = tokio::io::copy(&mut read, &mut write).await;
            });
        }
    });
    address
}

/// A server that reads one head, answers with `answer`, and hands over all that it got when the connection ends.
pub(crate) async fn server(answer: &'static str) -> (SocketAddr, mpsc::UnboundedReceiver<String>) {
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let address = listener.local_addr().unwrap();
    let (sender, tell) = mpsc::unbounded_channel();
    tokio::spawn(async move {
        while let Ok((mut stream, _)) = listener.accept().await {
            let sender = sender.clone();
            tokio::spawn(async move {
                let mut got = head(&mut stream).await;
                let _ = stream.write_all(answer.as_bytes()).await;
                let _ = stream.shutdown().await;
                got += &all(&mut stream).await;
                let _ = sender.send(got);
            });
        }
    });
    (address, tell)
}
