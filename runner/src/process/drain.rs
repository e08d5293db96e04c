//! Shuts the runner down: it receives no new orders, lets running jobs end, and sends the spool. A second signal stops
//! it at once.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use tokio::signal::unix::{Signal, SignalKind, signal};
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
pub struct Drain {
    phase: watch::Sender<Phase>,
    /// Whether the runner was asked to end. A runner whose key was replaced drains too, but was not asked to end.
    asked: Arc<AtomicBool>,
}

impl Default for Drain {
    fn default() -> Self {
        Self { phase: watch::Sender::new(Phase::Working), asked: Arc::default() }
    }
}

impl Drain {
    /// Returns the current phase.
    pub fn phase(&self) -> Phase {
        *self.phase.borrow()
    }

    /// Advances to `phase`. An earlier phase than the current one changes nothing.
    pub fn advance(&self, phase: Phase) {
        self.phase.send_if_modified(|now| {
            let later = phase > *now;
            if later {
                *now = phase;
            }
            later
        });
    }

    /// Asks the runner to end. The first call drains the runner: it ends when its jobs have ended. Every later call
    /// stops it at once.
    pub fn ask(&self) {
        if self.asked.swap(true, Ordering::Relaxed) {
            info!("Stopping now");
            self.advance(Phase::Stopping);
        } else {
            info!(
                "Draining: waiting for running jobs, for the open poll (up to 20 s), and then for the last reports and \
                 audit records (up to 20 s); a second signal stops the runner now"
            );
            self.advance(Phase::Draining);
        }
    }

    /// Returns whether the runner was asked to end.
    pub fn is_asked(&self) -> bool {
        self.asked.load(Ordering::Relaxed)
    }

    /// Waits until the shutdown is in `phase` or a later one.
    pub async fn reached(&self, phase: Phase) {
        let mut receiver = self.phase.subscribe();
        // `wait_for` fails only when the sender is dropped, and `self` holds the sender.
        let _ = receiver.wait_for(|now| *now >= phase).await;
    }

    /// Asks the runner to end with each signal. Never returns.
    pub async fn follow(&self, signals: &mut Signals) {
        loop {
            signals.next().await;
            self.ask();
        }
    }
}

/// The signals SIGTERM and SIGINT of this process. After the first [`Signals::listen`], these signals no longer end the
/// process by themselves, and a signal is lost if no value of this type exists. So one value serves all runs of the runner.
#[derive(Debug)]
pub struct Signals {
    terminate: Signal,
    interrupt: Signal,
}

impl Signals {
    /// Begins to listen.
    ///
    /// # Errors
    /// When the signals cannot be listened to.
    pub fn listen() -> std::io::Result<Self> {
        Ok(Self { terminate: signal(SignalKind::terminate())?, interrupt: signal(SignalKind::interrupt())? })
    }

    /// Waits for the next signal, which may have come before this call.
    pub(crate) async fn next(&mut self) {
        tokio::select! {
            _ = self.terminate.recv() => {}
            _ = self.interrupt.recv() => {}
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_runner_that_drains_by_itself_stops_at_the_second_request_only() {
        let drain = Drain::default();
        drain.advance(Phase::Draining);
        assert!(!drain.is_asked());

        drain.ask();
        assert_eq!((drain.phase(), drain.is_asked()), (Phase::Draining, true));
        drain.ask();
        assert_eq!(drain.phase(), Phase::Stopping);
    }

    #[tokio::test]
    async fn a_signal_between_two_runs_reaches_the_second_run() {
        let mut signals = Signals::listen().unwrap();
        let (first, second) = (Drain::default(), Drain::default());
        tokio::select! {
            biased;
            () = first.follow(&mut signals) => {}
            () = std::future::ready(()) => {}
        }

        rustix::process::kill_process(rustix::process::getpid(), rustix::process::Signal::TERM).unwrap();
        tokio::select! {
            () = second.follow(&mut signals) => {}
            () = second.reached(Phase::Draining) => {}
            () = tokio::time::sleep(std::time::Duration::from_secs(20)) => {}
        }

        assert_eq!((first.phase(), second.phase()), (Phase::Working, Phase::Draining));
    }

    #[tokio::test(start_paused = true)]
    async fn phases_only_go_forward() {
        let drain = Drain::default();

        drain.advance(Phase::Stopping);
        drain.advance(Phase::Draining);
        drain.reached(Phase::Draining).await;

        assert_eq!(drain.phase(), Phase::Stopping);
    }
}
