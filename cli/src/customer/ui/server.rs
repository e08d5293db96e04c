//! Serves the pages over HTTP on loopback, until ctrl-c or until no request has come for some time.

use std::convert::Infallible;
use std::rc::Rc;
use std::sync::Arc;
use std::time::Duration;

use hyper::server::conn::http1;
use hyper::service::service_fn;
use hyper_util::rt::{TokioIo, TokioTimer};
use tokio::net::{TcpListener, TcpStream};
use tokio::sync::Semaphore;
use tokio::task::LocalSet;

use super::site::CustomerSite;

/// The maximum size of the head of a request, in bytes.
const LARGEST_HEAD: usize = 16 * 1024;
/// The maximum time for the browser to send the head of a request.
const HEAD_TIME: Duration = Duration::from_secs(10);
/// The maximum number of open connections. A browser opens six.
const MOST_CONNECTIONS: usize = 32;
/// The pause after a connection could not be accepted.
const PAUSE: Duration = Duration::from_millis(100);

/// Serves the pages. Returns after ctrl-c, or when no permitted request has come for the time `idle`.
pub(super) async fn serve(listener: TcpListener, site: Rc<CustomerSite>, idle: Duration) {
    // Dropping the set ends all connections, and a change that this command waits for.
    LocalSet::new().run_until(accept(listener, site, idle)).await;
}

async fn accept(listener: TcpListener, site: Rc<CustomerSite>, idle: Duration) {
    let turns = Arc::new(Semaphore::new(MOST_CONNECTIONS));
    let stop = tokio::signal::ctrl_c();
    tokio::pin!(stop);
    loop {
        let end = site.last_request() + idle;
        tokio::select! {
            accepted = listener.accept() => match accepted {
                Ok((stream, _)) => {
                    // A connection above the maximum number is closed.
                    if let Ok(turn) = Arc::clone(&turns).try_acquire_owned() {
                        let site = Rc::clone(&site);
                        tokio::task::spawn_local(async move {
                            converse(stream, site).await;
                            drop(turn);
                        });
                    }
                }
                // The process may have no free file descriptor, for example.
                Err(_) => tokio::time::sleep(PAUSE).await,
            },
            () = tokio::time::sleep_until(end) => {
                // A connection that was open before may have brought a request meanwhile.
                if site.last_request() <= end - idle {
                    return;
                }
            }
            _ = &mut stop => return,
        }
    }
}

/// Answers the requests of one connection. An error needs no handling: the browser sends the request again.
async fn converse(stream: TcpStream, site: Rc<CustomerSite>) {
    let service = service_fn(move |request| {
        let site = Rc::clone(&site);
        async move { Ok::<_, Infallible>(site.answer(request).await) }
    });
    let _ = http1::Builder::new()
        .max_buf_size(LARGEST_HEAD)
        .timer(TokioTimer::new())
        .header_read_timeout(HEAD_TIME)
        .serve_connection(TokioIo::new(stream), service)
        .await;
}

#[cfg(test)]
mod tests {
    use aws_config::SdkConfig;
    use tokio::time::Instant;

    use super::super::super::changes::ChangedFiles;
    use super::super::super::log::evidence::KnownRecords;
    use super::super::super::own_install::OwnInstall;
    use super::super::access::Access;
    use super::super::source::Source;
    use super::*;

    fn site() -> Rc<CustomerSite> {
        let own = OwnInstall {
            config: SdkConfig::builder().build(),
            tenant: "acme".parse().unwrap(),
            install: "globex".parse().unwrap(),
            account: "222222222222".parse().unwrap(),
        };
        let source = Source::new(own, KnownRecords::default(), (None, Vec::new()), ChangedFiles::default());
        Rc::new(CustomerSite::new(source, Access::new(8799).unwrap().0))
    }

    #[tokio::test(start_paused = true)]
    async fn the_pages_end_when_no_request_has_come_for_the_idle_time() {
        let listener = TcpListener::bind(("127.0.0.1", 0)).await.unwrap();
        let (begin, idle) = (Instant::now(), Duration::from_secs(1800));

        serve(listener, site(), idle).await;

        assert_eq!(begin.elapsed().as_secs(), idle.as_secs());
    }
}
