//! Handles the IAM requests of one job. Changes the responses to reads for the job. Decides about writes, records them
//! and then sends them to IAM.

use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

use crate::answer::Answer;
use crate::clusters::Clusters;
use crate::conceal::conceal;
use crate::held_policies;
use crate::install::Install;
use crate::plan::{Plan, Planner};
use crate::query::Query;
use crate::record::{Change, Recorder, Stage, Usage};
use crate::refusal::Refusal;
use crate::rules::{Rule, rule};
use crate::upstream::Upstream;

/// Prefixes of paths of resources that AWS or the runner made. A request for such a path is passed on unchanged.
const REAL_PATHS: [&str; 3] = ["/aws-", "/service-role/", "/freehold/"];
/// The parameters that can name the resource of a request. The first parameter in this list that a request has is used.
const NAMES: [&str; 9] = [
    "RoleName",
    "PolicyArn",
    "PolicyName",
    "InstanceProfileName",
    "OpenIDConnectProviderArn",
    "Url",
    "AWSServiceName",
    "UserName",
    "Name",
];
/// The maximum length of a resource's name or of a reason in a record, in characters, because a job can send texts of
/// any length.
const LONGEST: usize = 512;
/// The maximum length of a recorded action name, in characters. IAM's longest name has 45 characters.
const LONGEST_ACTION: usize = 64;
/// The maximum number of refusals of one job that are recorded one by one. All refusals are counted.
const MOST_REFUSALS: usize = 1_000;

/// The owner of a cluster of the account.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum ClusterOwner {
    /// The install of the job: the cluster has its owner tag.
    Install,
    /// Somebody else in the account, or unknown: the cluster does not have this tag.
    Other,
}

/// The IAM proxy of one job.
#[derive(Debug)]
pub struct Proxy {
    install: Install,
    upstream: Upstream,
    recorder: Arc<dyn Recorder>,
    clusters: Clusters,
    usage: Usage,
    refusals: AtomicUsize,
}

impl Proxy {
    /// Returns the proxy for a job of `install`.
    pub fn new(install: Install, upstream: Upstream, recorder: Arc<dyn Recorder>) -> Self {
        Self {
            install,
            upstream,
            recorder,
            clusters: Clusters::default(),
            usage: Usage::default(),
            refusals: AtomicUsize::new(0),
        }
    }

    /// Records the actions that the job used, if there were any.
    ///
    /// # Errors
    /// The recorder's error.
    pub async fn finish(&self) -> Result<(), String> {
        let used = self.usage.all();
        if used.is_empty() { Ok(()) } else { self.recorder.record_used(used).await }
    }

    /// Returns the owner of the EKS cluster whose endpoint is the host `name`, or `None` when no cluster of the account
    /// has this endpoint.
    ///
    /// # Errors
    /// When EKS does not list the clusters of the account; the text says how to fix the problem.
    pub async fn owner_of_cluster_at(&self, name: &str) -> Result<Option<ClusterOwner>, String> {
        let found = self.clusters.at(name, &self.upstream).await.map_err(|refusal| refusal.to_string())?;
        Ok(found.map(|cluster| {
            let of_install = cluster.tags.iter().any(|(key, value)| self.install.is_owner_tag(key, value));
            if of_install { ClusterOwner::Install } else { ClusterOwner::Other }
        }))
    }

    /// Returns the response to a request, which is the form in `body`.
    pub(crate) async fn answer(&self, body: &[u8]) -> Answer {
        let query = match Query::parse(body) {
            Ok(query) => query,
            Err(refusal) => return refusal.answer(),
        };
        let (action, resource) = (shorten(query.action(), LONGEST_ACTION), resource(&query));
        let answer = match self.decide(query, &resource).await {
            Ok(answer) => answer,
            Err(refusal) => {
                self.record_refusal(&action, &resource, &refusal).await;
                refusal.answer()
            }
        };
        self.usage.count(&action, answer.is_success());
        answer
    }

    async fn decide(&self, query: Query, resource: &str) -> Result<Answer, Refusal> {
        match rule(query.action()) {
            Rule::Read => self.read(query).await,
            Rule::Refused(reason) => {
                Err(Refusal::Denied(format!("a job must not call `{}`: {reason}", query.action())))
            }
            Rule::Write(target, parameters) => {
                let action = query.action().to_owned();
                let planner = Planner { install: &self.install, upstream: &self.upstream, clusters: &self.clusters };
                match planner.plan(target, parameters, query).await? {
                    Plan::Answered(answer) => Ok(answer),
                    Plan::Send(query) => self.send(&query, resource).await,
                    Plan::Hold { sent, instead } => self.hold(&action, resource, &sent, instead).await,
                }
            }
        }
    }

    async fn read(&self, mut query: Query) -> Result<Answer, Refusal> {
        if let Some(prefix) = query.get("PathPrefix").filter(|prefix| *prefix != "/")
            && !REAL_PATHS.iter().any(|real| prefix.starts_with(real))
        {
            let real = self.install.below(prefix);
            query.set("PathPrefix", real);
        }
        let answer = conceal(self.upstream.iam(&query).await?, &self.install);
        let role = query.get("RoleName").filter(|role| self.install.stack_roles.contains(*role));
        match (query.action(), role) {
            ("ListAttachedRolePolicies", Some(role)) => {
                held_policies::add(answer, role, &self.install, &self.upstream).await
            }
            _ => Ok(answer),
        }
    }

    async fn send(&self, query: &Query, resource: &str) -> Result<Answer, Refusal> {
        self.record(query.action(), resource, Stage::Announced).await?;
        let sent = self.upstream.iam(query).await;
        self.record_calmly(query.action(), resource, stage(&sent)).await;
        Ok(conceal(sent?, &self.install))
    }

    async fn hold(&self, action: &str, resource: &str, sent: &Query, instead: String) -> Result<Answer, Refusal> {
        self.record(action, resource, Stage::Held { instead: shorten(&instead, 2 * LONGEST) }).await?;
        let noted = self.upstream.iam(sent).await;
        if let failed @ Stage::Failed { .. } = stage(&noted) {
            self.record_calmly(action, resource, failed).await;
        }
        noted.map(|answer| if answer.is_success() { Answer::done(action) } else { answer })
    }

    async fn record_refusal(&self, action: &str, resource: &str, refusal: &Refusal) {
        match refusal {
            Refusal::Malformed(reason) | Refusal::Denied(reason) => {
                if self.refusals.fetch_add(1, Ordering::Relaxed) < MOST_REFUSALS {
                    let reason = shorten(reason, LONGEST);
                    self.record_calmly(action, resource, Stage::Refused { reason }).await;
                }
            }
            // The request failed and was not refused, and the client retries it. If its change was announced, its
            // failure has already been recorded.
            Refusal::Unavailable(_) => {}
        }
    }

    async fn record(&self, action: &str, resource: &str, stage: Stage) -> Result<(), Refusal> {
        let change = Change { action: action.to_owned(), resource: resource.to_owned(), stage };
        self.recorder.record(change).await.map_err(|error| {
            tracing::warn!("A change of IAM was not made, because it could not be recorded: {error}");
            Refusal::Unavailable("the runner cannot record the change, so it is not made; try again".to_owned())
        })
    }

    /// Records the last stage of a change. An error of the recorder is logged and does not change the response to the
    /// job.
    async fn record_calmly(&self, action: &str, resource: &str, stage: Stage) {
        let change = Change { action: action.to_owned(), resource: resource.to_owned(), stage };
        if let Err(error) = self.recorder.record(change).await {
            tracing::warn!("The result of `{action}` on `{resource}` could not be recorded: {error}");
        }
    }
}

/// Returns the final stage of a change.
fn stage(sent: &Result<Answer, Refusal>) -> Stage {
    match sent {
        Ok(answer) if answer.is_success() => Stage::Made,
        Ok(answer) => Stage::Failed { code: answer.code() },
        Err(refusal) => Stage::Failed { code: refusal.code().to_owned() },
    }
}

fn resource(query: &Query) -> String {
    shorten(NAMES.iter().find_map(|name| query.get(name)).unwrap_or_default(), LONGEST)
}

fn shorten(text: &str, characters: usize) -> String {
    text.chars().take(characters).collect()
}
