//! What jobs do to the world, as they say it themselves: a job posts a line to the proxy that its box leads to.

use std::sync::{Mutex, MutexGuard, PoisonError};

use tokio::sync::watch;

/// The lines that jobs wrote, in the order of their arrival: `begin NAME ROUND ID` when a job begins, and `end NAME ROUND ID` for
/// its effect. While jobs are held, no job gets an answer to its first line, so it stands still there.
#[derive(Debug)]
pub struct Effects {
    lines: Mutex<Vec<String>>,
    held: watch::Sender<bool>,
    written: watch::Sender<usize>,
}

impl Default for Effects {
    fn default() -> Self {
        Self { lines: Mutex::default(), held: watch::Sender::new(false), written: watch::Sender::new(0) }
    }
}

impl Effects {
    /// Returns the lines so far.
    pub fn lines(&self) -> Vec<String> {
        self.lock().clone()
    }

    /// Lets jobs stand still after their first line (`true`), or continue.
    pub fn hold(&self, held: bool) {
        self.held.send_replace(held);
    }

    /// Returns when there are more than `count` lines.
    pub async fn more_than(&self, count: usize) {
        // The sender lives as long as this value.
        drop(self.written.subscribe().wait_for(|written| *written > count).await);
    }

    /// Writes a line, and returns when its job may continue.
    pub(crate) async fn write(&self, line: &str) {
        let written = {
            let mut lines = self.lock();
            lines.push(line.replace("%20", " "));
            lines.len()
        };
        self.written.send_replace(written);
        if line.starts_with("begin") {
            drop(self.held.subscribe().wait_for(|held| !held).await);
        }
    }

    fn lock(&self) -> MutexGuard<'_, Vec<String>> {
        self.lines.lock().unwrap_or_else(PoisonError::into_inner)
    }
}
