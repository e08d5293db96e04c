//! A TCP proxy that counts bytes and cuts connections.

use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex};

use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
use tokio::net::tcp::{OwnedReadHalf, OwnedWriteHalf};
use tokio::net::{TcpListener, TcpStream};

/// Which bytes are counted and cut.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Way {
    /// From the client to the registry.
    Up,
    /// From the registry to the client.
    Down,
}

pub(crate) struct Proxy {
    pub(crate) address: String,
    passed: Arc<AtomicU64>,
    cuts: Arc<Mutex<Vec<u64>>>,
}

impl Proxy {
    /// Passes connections on to `target`; cuts the one that carries the byte of each of `cuts`, all connections taken
    /// together. `cuts` are in order.
    pub(crate) async fn start(target: &str, way: Way, cuts: Vec<u64>) -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let address = listener.local_addr().unwrap().to_string();
        let (passed, cuts) = (Arc::new(AtomicU64::new(0)), Arc::new(Mutex::new(cuts)));
        let proxy = Self { address, passed: Arc::clone(&passed), cuts: Arc::clone(&cuts) };
        let target = target.to_owned();
        tokio::spawn(async move {
            while let Ok((client, _)) = listener.accept().await {
                let (target, passed, cuts) = (target.clone(), Arc::clone(&passed), Arc::clone(&cuts));
                tokio::spawn(async move {
                    let Ok(server) = TcpStream::connect(target).await else { return };
                    let ((from_client, to_client), (from_server, to_server)) =
                        (client.into_split(), server.into_split());
                    let ((a, b), (c, d)) = match way {
                        Way::Up => ((from_client, to_server), (from_server, to_client)),
                        Way::Down => ((from_server, to_client), (from_client, to_server)),
                    };
                    // Whichever ends first ends both.
                    tokio::select! {
                        () = carry(a, b, &passed, &cuts) => {}
                        () = pass(c, d) => {}
                    }
                });
            }
        });
        proxy
    }

    pub(crate) fn passed(&self) -> u64 {
        self.passed.load(Ordering::SeqCst)
    }

    /// Returns how many cuts did not happen.
    pub(crate) fn left(&self) -> usize {
        self.cuts.lock().unwrap().len()
    }
}

async fn carry(mut from: OwnedReadHalf, mut to: OwnedWriteHalf, passed: &AtomicU64, cuts: &Mutex<Vec<u64>>) {
    let mut chunk = vec![0; 4096];
    while let Ok(read @ 1..) = from.read(&mut chunk).await {
        let now = passed.fetch_add(read as u64, Ordering::SeqCst) + read as u64;
        {
            let mut cuts = cuts.lock().unwrap();
            if cuts.first().is_some_and(|cut| now > *cut) {
                cuts.remove(0);
                return;
            }
        }
        if to.write_all(&chunk[..read]).await.is_err() {
            return;
        }
    }
}

async fn pass(mut from: OwnedReadHalf, mut to: OwnedWriteHalf) {
    let _ = tokio::io::copy(&mut from, &mut to).await;
}
