//! The proxies of a world: one between the functions and the cloud, one between the runners and the cloud.

use std::net::TcpListener;

use anyhow::Context as _;

use crate::proxy::Proxy;

/// Two proxies in front of a local cloud that need not be up yet. They pass everything on until faults are set.
#[derive(Debug)]
pub struct Proxies {
    pub functions: Proxy,
    pub runners: Proxy,
    /// Where the cloud has to listen.
    pub(super) port: u16,
}

impl Proxies {
    /// Starts both; `seed` is the seed of their faults.
    ///
    /// # Errors
    /// When no port is free.
    pub async fn start(seed: u64) -> anyhow::Result<Self> {
        let port = free_port()?;
        let cloud = format!("http://127.0.0.1:{port}");
        let functions = Proxy::start("127.0.0.1:0", &cloud, seed, Vec::new()).await?;
        let runners = Proxy::start("127.0.0.1:0", &cloud, seed, Vec::new()).await?;
        Ok(Self { functions, runners, port })
    }
}

/// Returns a free port below those of clusters (`localstack/kubernetes/ports.py`) and those that the kernel gives to
/// connections: nobody takes it by chance before the cloud listens.
fn free_port() -> anyhow::Result<u16> {
    let mut ports = std::iter::repeat_with(|| fastrand::u16(10_000..20_000)).take(1000);
    ports.find(|port| TcpListener::bind(("127.0.0.1", *port)).is_ok()).context("no port is free")
}
