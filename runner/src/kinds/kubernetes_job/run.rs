//! Starts a Kubernetes Job, waits for its end, and reads the messages and logs of its pods.

use std::time::{Duration, Instant};

use freehold_aws_errors::chain;
use freehold_protocol::order::RunKubernetesJob;
use serde_json::Value;

use super::object::{is_of, owner};
use crate::job::Job;
use crate::job::failure::Failure;
use crate::kinds::inventory::Inventory;
use crate::kubernetes::{
    Api, Applied, COMPONENT, Change, ClusterError, Health, Id, Object, Plan, annotation, health, pod,
};

/// The time between two polls of a Kubernetes Job.
const POLL_INTERVAL: Duration = Duration::from_secs(1);
/// The part of the attempt's time limit that is reserved for the work after the wait.
const REST: Duration = Duration::from_secs(15);

/// One attempt at a program.
pub(super) struct Run<'a> {
    pub(super) job: &'a Job,
    pub(super) work: &'a RunKubernetesJob,
    pub(super) api: &'a Api,
    pub(super) started: Instant,
}

impl Run<'_> {
    /// Returns the Kubernetes Job that an earlier attempt at this job has started, unless it has failed in an earlier
    /// dispatch. A new dispatch after a failure is a retry, and runs the program again.
    pub(super) async fn earlier(&self, before: &Inventory, wanted: &Id) -> Result<Option<Id>, Failure> {
        let mut of_job = before.without(&[]);
        of_job.retain(|id| is_of(id, self.work, &self.job.order.job));
        for id in of_job {
            match self.live(&id).await?.as_ref().map(health) {
                None => {}
                Some(Health::Failed(_)) if id.name != wanted.name => {}
                Some(Health::Failed(_) | Health::Healthy | Health::Waiting(_)) => return Ok(Some(id)),
            }
        }
        Ok(None)
    }

    /// Returns the live object, or `None` when it is gone or belongs to another component.
    async fn live(&self, id: &Id) -> Result<Option<Value>, Failure> {
        let live = self.api.get(id).await?;
        Ok(live.filter(|live| annotation(live, COMPONENT) == Some(&owner(self.job, self.work))))
    }

    /// Returns the changes that the attempt would make. The API server checks the Kubernetes Job `wanted` in a dry run.
    pub(super) async fn plan(&self, wanted: Option<&Object>, gone: &[Id]) -> Result<Plan, Failure> {
        let mut changes = Vec::new();
        if let Some(wanted) = wanted {
            let live = self.api.get(&wanted.id).await?;
            let change = self.api.change(wanted, live.as_ref()).await;
            changes.push((change.map_err(|error| self.refused(&error))?, wanted.id.clone()));
        }
        for id in gone {
            let change = if self.live(id).await?.is_some() { Change::Delete } else { Change::Keep };
            changes.push((change, id.clone()));
        }
        Ok(Plan { changes })
    }

    /// Makes the Kubernetes Job, and its namespace if that is missing.
    pub(super) async fn create(&self, wanted: &Object) -> Result<(), Failure> {
        let namespace = wanted.id.namespace.as_deref().unwrap_or_default();
        let labels = self.job.order.shared_labels();
        if self.api.make_namespace(namespace, &labels).await.map_err(|error| self.refused(&error))? {
            self.job.log.line(&format!("created namespace `{namespace}`"));
        }
        self.api.apply(wanted, Applied::Done).await.map_err(|error| self.refused(&error))?;
        self.job.log.line(&format!("started {}", wanted.id));
        Ok(())
    }

    /// Deletes Kubernetes Jobs of the component and waits until they and their pods are gone. So no program of an
    /// earlier deploy runs beside the next one.
    pub(super) async fn delete(&self, gone: &[Id]) -> Result<(), Failure> {
        for id in gone {
            if self.live(id).await?.is_some() {
                self.api.delete_after_dependents(id).await?;
            }
        }
        let until = self.deadline();
        for id in gone {
            while self.live(id).await?.is_some() {
                if Instant::now() >= until {
                    return Err(
                        self.failure(format!("{id} still exists: a finalizer or a running pod prevents its deletion"))
                    );
                }
                tokio::time::sleep(POLL_INTERVAL).await;
            }
        }
        Ok(())
    }

    /// Waits until the Kubernetes Job has ended, and copies the last lines of its log into the log of the job. Returns
    /// the program's termination message.
    pub(super) async fn wait(&self, id: &Id) -> Result<Option<Value>, Failure> {
        let mut last_line = String::new();
        loop {
            let why = match self.live(id).await?.as_ref().map(health) {
                Some(Health::Healthy) => {
                    let pods = self.pods(id).await?;
                    self.log(id, &pods).await;
                    return Ok(pods.iter().find_map(pod::message).map(parsed));
                }
                Some(Health::Failed(why)) => return Err(self.failed(id, &why).await?),
                Some(Health::Waiting(why)) => why,
                None => return Err(self.failure(format!("{id} was deleted before its end"))),
            };
            let why = self.pods(id).await?.iter().find_map(pod::reason).unwrap_or(why);
            if Instant::now() >= self.deadline() {
                self.api.delete_after_dependents(id).await?;
                return Err(self.failure(format!("{id} has not ended in time: {why}")));
            }
            let line = format!("waiting for {id}: {why}");
            if line != last_line {
                self.job.log.line(&line);
                last_line = line;
            }
            tokio::time::sleep(POLL_INTERVAL).await;
        }
    }

    /// Returns the failure of an ended Kubernetes Job, with the reasons of its pods.
    async fn failed(&self, id: &Id, why: &str) -> Result<Failure, Failure> {
        let pods = self.pods(id).await?;
        self.log(id, &pods).await;
        let reasons: Vec<String> =
            pods.iter().filter_map(|pod| Some(format!("; pod `{}`: {}", pod::name(pod), pod::reason(pod)?))).collect();
        Ok(self.failure(format!("{id} has failed: {why}{}", reasons.concat())))
    }

    /// Deletes the Kubernetes Jobs of this job with their pods, so that the program ends. Does not wait for the end.
    pub(super) async fn stop(&self, before: &Inventory) -> Result<(), Failure> {
        for id in before.without(&[]).iter().filter(|id| is_of(id, self.work, &self.job.order.job)) {
            if self.live(id).await?.is_some() {
                self.api.delete_after_dependents(id).await?;
                self.job.log.line(&format!("deleted {id}, so that its program ends"));
            }
        }
        Ok(())
    }

    async fn pods(&self, id: &Id) -> Result<Vec<Value>, Failure> {
        let namespace = id.namespace.as_deref().unwrap_or_default();
        Ok(self.api.list("pods", namespace, &format!("job-name={}", id.name)).await?)
    }

    /// Writes the last lines of each pod's log. If the cluster has no log, writes the pod's message instead.
    async fn log(&self, id: &Id, pods: &[Value]) {
        let namespace = id.namespace.as_deref().unwrap_or_default();
        for one in pods {
            let name = pod::name(one);
            let text = match self.api.log(namespace, name).await {
                Ok(text) => text,
                Err(error) => {
                    self.job.log.line(&format!("could not read the log of pod `{name}`: {}", chain(&error)));
                    String::new()
                }
            };
            let message = pod::message(one).filter(|_| text.trim().is_empty());
            message.unwrap_or(&text).lines().for_each(|line| self.job.log.line(line));
        }
    }

    fn deadline(&self) -> Instant {
        self.job.deadline(self.started, REST)
    }

    fn refused(&self, error: &ClusterError) -> Failure {
        self.failure(chain(error))
    }

    fn failure(&self, why: impl std::fmt::Display) -> Failure {
        Failure::of_component(&self.work.component, why)
    }
}

/// Returns a message as JSON, or as a text when it is not JSON.
fn parsed(message: &str) -> Value {
    serde_json::from_str(message).unwrap_or_else(|_| Value::from(message.trim_end()))
}
