//! Accepts the connections of one box, and limits how many are open.

use std::sync::Arc;
use std::time::Duration;

use tokio::net::{TcpListener, TcpStream};
use tokio::sync::Semaphore;
use tokio::task::JoinSet;

/// The maximum number of open connections. Each connection over SSH has processes outside of the box.
const MOST_CONNECTIONS: usize = 16;
/// The pause after a connection could not be accepted.
const PAUSE: Duration = Duration::from_millis(50);

/// Serves each connection to `listener` with `converse`, and never returns. Dropping the future ends all connections. A
/// connection above the limit waits until another one ends.
pub(super) async fn accept_each<S, F>(listener: TcpListener, server: &S, converse: impl Fn(S, TcpStream) -> F)
where
    S: Clone,
    F: Future<Output = ()> + Send + 'static,
{
    let (mut open, permits) = (JoinSet::new(), Arc::new(Semaphore::new(MOST_CONNECTIONS)));
    loop {
        while open.try_join_next().is_some() {}
        // INVARIANT: the semaphore is never closed, so waiting for a permit cannot fail.
        let permit = Arc::clone(&permits).acquire_owned().await;
        let Ok((stream, _)) = listener.accept().await else {
            tokio::time::sleep(PAUSE).await;
            continue;
        };
        let conversation = converse(server.clone(), stream);
        open.spawn(async move {
            conversation.await;
            drop(permit);
        });
    }
}

#[cfg(test)]
mod tests {
    use std::sync::atomic::{AtomicUsize, Ordering};

    use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};

    use super::*;

    /// A server that returns each byte which it gets, and counts its connections.
    async fn echo(opened: Arc<AtomicUsize>, mut stream: TcpStream) {
        opened.fetch_add(1, Ordering::SeqCst);
        while let Ok(byte) = stream.read_u8().await {
            let _ = stream.write_u8(byte).await;
        }
    }

    async fn answered(stream: &mut TcpStream) -> Option<u8> {
        stream.write_u8(7).await.ok()?;
        stream.read_u8().await.ok()
    }

    #[tokio::test]
    async fn a_connection_above_the_limit_waits_for_the_end_of_another_one() {
        let opened = Arc::new(AtomicUsize::new(0));
        let listener = TcpListener::bind(("127.0.0.1", 0)).await.unwrap();
        let address = listener.local_addr().unwrap();
        let server = opened.clone();
        let accepting = tokio::spawn(async move { accept_each(listener, &server, echo).await });
        let mut open = Vec::new();
        for _ in 0..MOST_CONNECTIONS {
            let mut stream = TcpStream::connect(address).await.unwrap();
            assert_eq!(answered(&mut stream).await, Some(7));
            open.push(stream);
        }
        let mut last = TcpStream::connect(address).await.unwrap();
        last.write_u8(8).await.unwrap();
        assert_eq!(opened.load(Ordering::SeqCst), MOST_CONNECTIONS);

        drop(open.pop());

        assert_eq!(last.read_u8().await.unwrap(), 8);
        assert_eq!(opened.load(Ordering::SeqCst), MOST_CONNECTIONS + 1);
        accepting.abort();
        assert!(last.read_u8().await.is_err(), "the connection outlives its server");
    }
}
