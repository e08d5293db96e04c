//! The double of Step Functions, which records started executions, resumed states and heartbeats; and the double of the
//! build runner's machine, which records whether each call requested the machine.

use async_trait::async_trait;
use freehold_domain::workflow::WorkflowKind;
use freehold_protocol::{InstallId, WorkflowId};
use serde_json::Value;

use super::lock::lock;
use super::memory::Memory;
use crate::ports::{BuildMachine, Callbacks, Machines, PortError};

#[async_trait]
impl Machines for Memory {
    async fn start(
        &self,
        kind: WorkflowKind,
        workflow: &WorkflowId,
        _: &InstallId,
        attempt: u32,
    ) -> Result<(), PortError> {
        self.faults.run("start", || {
            if attempt > 0 {
                lock(&self.continued).insert((workflow.clone(), attempt), kind);
                return;
            }
            let mut started = lock(&self.started);
            if !started.iter().any(|(_, known)| known == workflow) {
                started.push((kind, workflow.clone()));
            }
        })
    }
}

#[async_trait]
impl Callbacks for Memory {
    async fn succeed(&self, token: &str, output: &Value) -> Result<(), PortError> {
        self.faults.run("succeed", || lock(&self.resumed).push((token.to_owned(), output.clone())))
    }

    async fn heartbeat(&self, token: &str) -> Result<(), PortError> {
        self.faults.run("heartbeat", || lock(&self.beats).push(token.to_owned()))
    }
}

#[async_trait]
impl BuildMachine for Memory {
    async fn wake(&self) -> Result<(), PortError> {
        self.faults.run("wake", || lock(&self.woken).push(true))
    }

    async fn rest(&self) -> Result<(), PortError> {
        self.faults.run("rest", || lock(&self.woken).push(false))
    }
}
