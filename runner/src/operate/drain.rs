//! Shuts the runner down: it receives no new orders, lets running jobs end, and sends the spool. A second signal stops
//! it at
//! once.

use tokio::signal::unix::{SignalKind, signal};
use tokio::sync::watch;
use tracing::info;

/// The phases of a shutdown, in their order.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum Phase {
    Working,
    /// No new order is received; running jobs may end.
    Draining,
    /// Running jobs are stopped, and the runner ends.
    Stopping,
}

/// Publishes the phase of the shutdown to all loops.
#[derive(Debug, Clone)]
pub struct Drain(watch::Sender<Phase>);

impl Default for Drain {
    fn default() -> Self {
        Self(watch::Sender::new(Phase::Working))
    }
}

impl Drain {
    /// Returns the current phase.
    pub fn phase(&self) -> Phase {
        *self.0.borrow()
    }

    /// Advances to `phase`. An earlier phase than the current one changes nothing.
    pub fn advance(&self, phase: Phase) {
        self.0.send_if_modified(|now| {
            let later = phase > *now;
            if later {
                *now = phase;
            }
            later
        });
    }

    /// Waits until the shutdown is in `phase` or a later one.
    pub async fn reached(&self, phase: Phase) {
        let mut receiver = self.0.subscribe();
        // `wait_for` fails only when the sender is dropped, and `self` holds the sender.
        let _ = receiver.wait_for(|now| *now >= phase).await;
    }

    /// Advances one phase with each SIGTERM or SIGINT.
    ///
    /// # Errors
    /// When the signals cannot be listened to.
    pub async fn follow_signals(&self) -> std::io::Result<()> {
        let (mut terminate, mut interrupt) = (signal(SignalKind::terminate())?, signal(SignalKind::interrupt())?);
        loop {
            tokio::select! {
                _ = terminate.recv() => {}
                _ = interrupt.recv() => {}
            }
            match self.phase() {
                Phase::Working => {
                    info!(
                        "Draining: waiting for running jobs and for the open poll (up to 20 s); a second signal stops \
                         the runner now"
                    );
                    self.advance(Phase::Draining);
                }
                Phase::Draining | Phase::Stopping => {
                    info!("Stopping now");
                    self.advance(Phase::Stopping);
                }
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[tokio::test(start_paused = true)]
    async fn phases_only_go_forward() {
        let drain = Drain::default();

        drain.advance(Phase::Stopping);
        drain.advance(Phase::Draining);
        drain.reached(Phase::Draining).await;

        assert_eq!(drain.phase(), Phase::Stopping);
    }
}
