//! Reads the server name (SNI) of a TLS ClientHello, so that a tunnel to one host cannot be used to reach another host
//! behind it.

use std::io;
use std::str::FromStr as _;
use std::time::Duration;

use rustls::server::Acceptor;
use tokio::io::{AsyncRead, AsyncReadExt as _};

use crate::host::{Destination, Host};
use crate::refusal::Reason;

/// The longest ClientHello including its TLS records, in bytes. A hello with post-quantum keys has about 2,000.
const HELLO_MAX: usize = 64 * 1024;
/// A fatal TLS alert `access_denied` (RFC 8446 section 6). Clients show its name in their error message.
pub(crate) const DENIED: [u8; 7] = [0x15, 0x03, 0x03, 0x00, 0x02, 0x02, 0x31];

/// Reads from `client` until `bytes` holds a whole ClientHello. Its server name must be absent or equal to the host of
/// `to`.
pub(crate) async fn check_hello(
    client: &mut (impl AsyncRead + Unpin),
    bytes: &mut Vec<u8>,
    to: &Destination,
    within: Duration,
) -> Result<(), Reason> {
    let name = match tokio::time::timeout(within, read(client, bytes)).await {
        Ok(Ok(name)) => name,
        Ok(Err(_)) | Err(_) => return Err(Reason::NoHello(to.clone())),
    };
    match name {
        Some(name) if Host::from_str(&name).as_ref() != Ok(&to.host) => {
            Err(Reason::OtherServerName { to: to.clone(), name })
        }
        Some(_) | None => Ok(()),
    }
}

async fn read(client: &mut (impl AsyncRead + Unpin), bytes: &mut Vec<u8>) -> io::Result<Option<String>> {
    let mut acceptor = Acceptor::default();
    let mut fed = 0;
    loop {
        while let Some(mut rest) = bytes.get(fed..).filter(|rest| !rest.is_empty()) {
            fed += acceptor.read_tls(&mut rest)?;
            // The alert of this error is not sent: the caller sends its own alert, which names the refusal.
            if let Some(accepted) = acceptor.accept().map_err(|(error, _alert)| io::Error::other(error))? {
                return Ok(accepted.client_hello().server_name().map(str::to_owned));
            }
        }
        if bytes.len() > HELLO_MAX || client.read_buf(bytes).await? == 0 {
            return Err(io::ErrorKind::UnexpectedEof.into());
        }
    }
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;

    use proptest::prelude::*;
    use rustls::pki_types::ServerName;
    use rustls::{ClientConfig, ClientConnection, RootCertStore};

    use super::*;

    fn hello(name: &str) -> Vec<u8> {
        let provider = Arc::new(rustls::crypto::ring::default_provider());
        let builder = ClientConfig::builder_with_provider(provider).with_safe_default_protocol_versions().unwrap();
        let config = builder.with_root_certificates(RootCertStore::empty()).with_no_client_auth();
        let mut client =
            ClientConnection::new(Arc::new(config), ServerName::try_from(name.to_owned()).unwrap()).unwrap();
        let mut bytes = Vec::new();
        client.write_tls(&mut bytes).unwrap();
        bytes
    }

    async fn check(mut sent: &[u8], to: &str) -> Result<Vec<u8>, Reason> {
        let mut bytes = Vec::new();
        check_hello(&mut sent, &mut bytes, &to.parse().unwrap(), Duration::from_secs(5)).await.map(|()| bytes)
    }

    #[tokio::test]
    async fn the_name_must_be_the_host_of_the_tunnel() {
        let sent = hello("front.example");

        assert_eq!(check(&sent, "front.example:443").await.unwrap(), sent, "what was read is passed on");
        let refused = check(&sent, "other.example:443").await;
        assert!(
            matches!(&refused, Err(Reason::OtherServerName { name, .. }) if name == "front.example"),
            "{refused:?}"
        );
    }

    #[tokio::test]
    async fn a_hello_without_a_name_passes() {
        assert!(check(&hello("192.0.2.7"), "other.example:443").await.is_ok());
    }

    #[tokio::test]
    async fn what_is_not_a_hello_does_not_pass() {
        let cut = hello("front.example");
        let cut = &cut[..cut.len() - 1];
        for sent in [&b"GET / HTTP/1.1\r\nhost: a\r\n\r\n"[..], b"SSH-2.0-x\r\n", b"", &[0x16, 3, 1, 0xff, 0xff], cut] {
            assert!(matches!(check(sent, "front.example:443").await, Err(Reason::NoHello(_))), "{sent:?}");
        }
    }

    proptest! {
        #[test]
        fn a_changed_hello_never_passes_for_another_host(at in 0_usize..400, byte: u8) {
            let mut sent = hello("front.example");
            let at = at % sent.len();
            sent[at] = byte;
            let runtime = tokio::runtime::Builder::new_current_thread().enable_time().build().unwrap();

            let passed = runtime.block_on(check(&sent, "other.example:443"));

            // A changed type of extension or of name hides the name from servers too.
            let hidden = runtime.block_on(check(&sent, "front.example:443")).is_ok();
            prop_assert!(passed.is_err() || hidden);
        }
    }
}
