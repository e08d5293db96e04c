//! How a job hands the runner over to another program: the runner drains, this process ends, and the launcher starts
//! the other program.

use std::sync::Arc;

use async_trait::async_trait;

use crate::job::HandOver;
use crate::process::drain::Phase;
use crate::work::agent::Agent;
use crate::work::in_flight::HeldOrder;

/// The hand-over of the runner that holds the order of an upgrade.
#[derive(Debug)]
pub struct RunnerHandOver {
    pub agent: Arc<Agent>,
    pub held: Arc<HeldOrder>,
}

#[async_trait]
impl HandOver for RunnerHandOver {
    fn begin(&self) {
        self.agent.hand_over();
        self.held.rest();
        self.agent.in_flight.look_again();
        self.agent.drain.advance(Phase::Draining);
    }

    async fn announced(&self) {
        self.agent.enrolled.announced().await;
    }
}
