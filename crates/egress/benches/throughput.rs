//! Compares the throughput of a tunnel with that of a direct connection over loopback. Prints a JSON line for each run;
//! `tests/bench/run` makes a table of them.

#![expect(clippy::expect_used, clippy::indexing_slicing, reason = "a bench may panic")]

use std::io;
use std::net::{IpAddr, SocketAddr};
use std::sync::Arc;
use std::time::Instant;

use async_trait::async_trait;
use freehold_egress::{Egress, Limits, Network, Refusal, Rules, Upstream, Way};
use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
use tokio::net::{TcpListener, TcpStream};

/// How many bytes one run moves.
const BYTES: usize = 1 << 30;
const RUNS: usize = 10;
const CHUNK: usize = 256 * 1024;

/// A network in which every name is one public address, and that address is the server on loopback.
struct Loopback(SocketAddr);

#[async_trait]
impl Network for Loopback {
    async fn resolve(&self, _name: &str) -> io::Result<Vec<IpAddr>> {
        Ok(vec![IpAddr::from([198, 51, 100, 7])])
    }

    async fn connect(&self, _address: SocketAddr) -> io::Result<TcpStream> {
        TcpStream::connect(self.0).await
    }

    fn is_own(&self, _address: IpAddr) -> bool {
        false
    }
}

fn main() {
    // Cargo passes `--bench`; without it this is a test run, which measures nothing.
    if !std::env::args().any(|word| word == "--bench") {
        return;
    }
    let runtime = tokio::runtime::Builder::new_multi_thread().enable_all().build().expect("a runtime");
    runtime.block_on(measure());
}

async fn measure() {
    let server = listen().await;
    let source = server.local_addr().expect("an address");
    tokio::spawn(send(server));
    let rules = Rules::parse(["source.example:8443"]).expect("a rule");
    let network = Arc::new(Loopback(source));
    let egress =
        Egress::with(rules, None, Upstream::none(), |refusal: &Refusal| panic(refusal), network, Limits::default());
    let listener = listen().await;
    let proxy = listener.local_addr().expect("an address");
    let _serving = egress.serve(listener, Way::Proxy);
    for _ in 0..RUNS {
        // The two take turns, so that a busy machine slows both.
        print("egress.direct", receive(TcpStream::connect(source).await.expect("the server")).await);
        print("egress.tunnel", receive(tunnel(proxy).await).await);
    }
}

#[expect(clippy::panic, reason = "a bench may panic")]
fn panic(refusal: &Refusal) {
    panic!("{}", refusal.reason);
}

async fn listen() -> TcpListener {
    TcpListener::bind("127.0.0.1:0").await.expect("a port")
}

async fn send(server: TcpListener) {
    while let Ok((mut stream, _)) = server.accept().await {
        tokio::spawn(async move {
            let chunk = vec![7; CHUNK];
            for _ in 0..BYTES / CHUNK {
                stream.write_all(&chunk).await.expect("a client that reads");
            }
        });
    }
}

async fn tunnel(proxy: SocketAddr) -> TcpStream {
    let mut stream = TcpStream::connect(proxy).await.expect("the proxy");
    let request = b"CONNECT source.example:8443 HTTP/1.1\r\nhost: source.example:8443\r\n\r\n";
    stream.write_all(request).await.expect("the proxy reads");
    let mut head = Vec::new();
    while !head.ends_with(b"\r\n\r\n") {
        head.push(stream.read_u8().await.expect("an answer"));
    }
    assert!(head.starts_with(b"HTTP/1.1 200"), "{}", String::from_utf8_lossy(&head));
    stream
}

/// Returns how many MiB come in a second.
async fn receive(mut stream: TcpStream) -> f64 {
    let mut chunk = vec![0; CHUNK];
    let began = Instant::now();
    let mut got = 0;
    while got < BYTES {
        let read = stream.read(&mut chunk).await.expect("bytes");
        assert!(read > 0 && chunk[read - 1] == 7, "the server ended early");
        got += read;
    }
    #[expect(clippy::cast_precision_loss, reason = "a figure to show")]
    let mebibytes = got as f64 / f64::from(1 << 20);
    mebibytes / began.elapsed().as_secs_f64()
}

fn print(name: &str, value: f64) {
    println!(r#"{{"name": "{name}", "value": {value:.0}, "unit": "MiB/s"}}"#);
}
