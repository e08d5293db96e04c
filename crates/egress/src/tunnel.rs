//! Copies bytes between a job and its destination until both sides ended or the connection is idle for too long.

use std::sync::Arc;
use std::time::Duration;

use tokio::io::{AsyncWriteExt as _, copy_bidirectional_with_sizes};
use tokio::net::TcpStream;

use crate::count::{Counted, Meter};

/// The buffer for one direction of a connection, in bytes.
const BUFFER: usize = 128 * 1024;

/// The two ends of a tunnel, and the bytes that were already read from each of them.
pub(crate) struct Tunnel {
    pub(crate) client: TcpStream,
    pub(crate) destination: TcpStream,
    pub(crate) from_client: Vec<u8>,
    pub(crate) from_destination: Vec<u8>,
}

impl Tunnel {
    /// Copies until both sides end, one fails, or the connection is idle for `idle`. Both sides then see a closed
    /// connection.
    pub(crate) async fn run(mut self, meter: &Arc<Meter>, idle: Duration) {
        let mut destination = Counted::new(self.destination, Arc::clone(meter));
        let copy = async {
            destination.write_all(&self.from_client).await?;
            meter.received(self.from_destination.len());
            self.client.write_all(&self.from_destination).await?;
            copy_bidirectional_with_sizes(&mut self.client, &mut destination, BUFFER, BUFFER).await
        };
        let _ = meter.unless_idle(idle, copy).await;
    }
}
