//! The limits of a job's connections: their number, their duration and the size of their requests.

use std::time::Duration;

/// The limits of one job's outgoing connections.
#[derive(Debug, Clone, Copy)]
pub struct Limits {
    /// The maximum number of open connections, over all listeners of the job.
    pub connections: usize,
    /// The longest wait for the head of a request, also of a later request on the same connection.
    pub head: Duration,
    /// The longest wait for the TLS ClientHello after the response to `CONNECT`.
    pub hello: Duration,
    /// The longest time to resolve a name.
    pub resolve: Duration,
    /// The longest time to connect to one address.
    pub connect: Duration,
    /// The time without a moved byte after which a connection is closed.
    pub idle: Duration,
    /// The largest head of a request or a response, in bytes.
    pub head_bytes: usize,
    /// The largest body of an `http://` request, in bytes. A tunnel has no limit.
    pub body_bytes: u64,
}

impl Default for Limits {
    fn default() -> Self {
        Self {
            connections: 512,
            head: Duration::from_secs(30),
            hello: Duration::from_secs(10),
            resolve: Duration::from_secs(10),
            connect: Duration::from_secs(10),
            // This is longer than any known pause between two bytes while a job's tool polls or watches.
            idle: Duration::from_secs(15 * 60),
            head_bytes: 64 * 1024,
            // The largest object that a single request can put into S3.
            body_bytes: 5 * 1024 * 1024 * 1024,
        }
    }
}
