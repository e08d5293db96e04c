//! The reports of this runner about its absence: that it takes no orders, and why. It sends one report for each reason,
//! and announces itself when it takes orders again.

use std::sync::{Mutex, PoisonError};

use freehold_protocol::report::{Away, AwayReason};
use tokio::sync::Notify;
use tracing::{error, info};

use crate::aws;
use crate::wire::report::Reporter;

/// The absence of this runner, as it was reported.
#[derive(Debug, Default)]
pub struct Presence {
    away: Mutex<Option<AwayReason>>,
    back: Notify,
}

impl Presence {
    /// Reports that the runner takes no orders, unless it has reported this for the same reason. The runner still tries
    /// to take orders.
    pub fn leave(&self, reporter: &Reporter, reason: AwayReason, detail: &str) {
        let mut away = self.away.lock().unwrap_or_else(PoisonError::into_inner);
        if *away == Some(reason) {
            return;
        }
        match reporter.away(Away { reason, detail: detail.to_owned() }) {
            Ok(()) => *away = Some(reason),
            Err(error) => error!("Cannot report that this runner takes no orders: {}", aws::explain(&error)),
        }
    }

    /// Returns whether the runner has reported that it takes no orders.
    pub fn is_away(&self) -> bool {
        self.away.lock().unwrap_or_else(PoisonError::into_inner).is_some()
    }

    /// Lets the runner announce itself at once, if it had reported that it takes no orders.
    pub fn come_back(&self) {
        if self.away.lock().unwrap_or_else(PoisonError::into_inner).take().is_some() {
            info!("The runner takes orders again, and announces itself");
            self.back.notify_one();
        }
    }

    /// Waits until the runner takes orders again after it had reported that it takes none.
    pub async fn is_back(&self) {
        self.back.notified().await;
    }
}
