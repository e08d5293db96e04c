//! How much of a connection's time, size and number a job gets.

use std::time::Duration;

/// Limits of one job's way out.
#[derive(Debug, Clone, Copy)]
pub struct Limits {
    /// The most connections that are open at once, over all listeners of the job.
    pub connections: usize,
    /// The longest that a request's head may take to come, or the next request of a connection.
    pub head: Duration,
    /// The longest that the TLS ClientHello may take to come after `CONNECT` was answered.
    pub hello: Duration,
    /// The longest that resolving a name may take.
    pub resolve: Duration,
    /// The longest that connecting to one address may take.
    pub connect: Duration,
    /// A connection over which no byte moves for this long is closed.
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
            // Longer than the longest silence in a poll or watch that tools of a job are known to make.
            idle: Duration::from_secs(15 * 60),
            head_bytes: 64 * 1024,
            // The largest object that one request can put into S3.
            body_bytes: 5 * 1024 * 1024 * 1024,
        }
    }
}
