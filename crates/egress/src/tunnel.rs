//! Copies bytes between a job and its destination until both have ended or nothing moves.

use std::sync::Arc;
use std::time::Duration;

use tokio::io::{AsyncWriteExt as _, copy_bidirectional_with_sizes};
use tokio::net::TcpStream;

use crate::count::{Counted, Meter};

/// The most bytes of one direction that are held, per connection.
const BUFFER: usize = 128 * 1024;

/// Two connected ends, and what has been read from each before.
pub(crate) struct Tunnel {
    pub(crate) client: TcpStream,
    pub(crate) destination: TcpStream,
    pub(crate) from_client: Vec<u8>,
    pub(crate) from_destination: Vec<u8>,
}

impl Tunnel {
    /// Copies until it ends. Errors end the connection, which both sides see.
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
