//! A simulated runner: it accepts only signed orders for itself, asks for missing blobs, and signs its reports.

use std::collections::{BTreeMap, BTreeSet};

use ed25519_dalek::SigningKey;
use freehold_app::testing::prove;
use freehold_protocol::approval::{CustomerDecision, ProposedPlan};
use freehold_protocol::envelope::PublicKey;
use freehold_protocol::grant::{ArtifactGrant, GrantAnswer};
use freehold_protocol::order::{Artifact, BuildArtifact, Cancel, Order, Retired, Source, Work};
use freehold_protocol::provenance::{BuildFacts, Provenance, ResourceDescriptor, sha256};
use freehold_protocol::report::{
    AttemptEvent, AttemptReport, Block, CallerRequest, ChangeTimes, Fence, Hello, Outcome, Refusal, RefusalReason,
    Report, ReportBody, RoleProof,
};
use freehold_protocol::sealing::SealingKey;
use freehold_protocol::{
    Digest, Envelope, GrantId, InstallId, JobId, Payload as _, RoleKey, TenantName, Timestamp, WorkflowId, names,
};
use freehold_template::Limits;
use serde_json::{Value, json};

use super::doubles::MemoryRegistry;

/// What a runner does with the work of one node.
#[derive(Debug, Clone, PartialEq)]
pub(crate) enum Behaviour {
    /// Ends so.
    Ends(Outcome),
    /// Ends so in this workflow, and succeeds in every other one.
    EndsIn(WorkflowId, Outcome),
    /// Fails until its order has this dispatch number.
    FailsBefore(u32),
    /// Starts, and never ends by itself.
    Hangs,
    /// Never takes the order.
    Ignores,
    /// Ends with this plan, until an order names its approval.
    Proposes(Box<ProposedPlan>),
}

/// The end of a check that is a gate, at a component that is not healthy.
pub(crate) fn sick() -> Behaviour {
    let reason = "component `storage` is not healthy after 60 s: probe `up`: the answer is 503".to_owned();
    Behaviour::Ends(Outcome::Blocked { block: Block::Unhealthy, reason })
}

/// An attempt under way.
#[derive(Debug, Clone)]
pub(crate) struct Attempt {
    pub(crate) order: Order,
    pub(crate) fence: Fence,
    pub(crate) seq: u64,
    pub(crate) waits_for: Option<GrantId>,
    /// What a build has pushed.
    pub(crate) pushed: Option<Artifact>,
}

/// A runner of one install.
#[derive(Clone)]
pub(crate) struct Runner {
    pub(crate) tenant: TenantName,
    pub(crate) install: InstallId,
    pub(crate) queue: String,
    pub(crate) key: SigningKey,
    /// The account and the role of its credentials.
    pub(crate) account: String,
    pub(crate) role: String,
    /// The region that it signs for.
    pub(crate) region: String,
    pub(crate) slots: u32,
    /// What the customer answered in the install stack, by parameter.
    pub(crate) answers: BTreeMap<String, String>,
    /// The terms that the customer agreed to.
    pub(crate) accepted_contract: Option<Digest>,
    /// Whether it announces a key to which values are sealed.
    pub(crate) seals: bool,
    /// When it says that the customer lets changes start.
    pub(crate) changes: Option<ChangeTimes>,
    /// What it says that the customer decided about plans.
    pub(crate) decisions: Vec<CustomerDecision>,
    /// Which roles it says that the customer has switched on.
    pub(crate) roles: Option<BTreeMap<RoleKey, bool>>,
    /// The keyed digests of the app's secrets.
    pub(crate) secrets: Option<BTreeMap<String, Digest>>,
    pub(crate) behaviours: BTreeMap<String, Behaviour>,
    /// Jobs that it started, one entry each time.
    pub(crate) started: Vec<String>,
    pub(crate) attempts: BTreeMap<JobId, Attempt>,
    /// Blobs that the install registry has.
    pub(crate) blobs: BTreeSet<Digest>,
    pub(crate) refused_grants: Vec<String>,
    /// Notices that a key was replaced.
    pub(crate) notices: Vec<Retired>,
    /// Whether the outputs of a component are others when its artifact or its values are.
    pub(crate) outputs_follow_work: bool,
    cancelled: BTreeSet<(JobId, u32)>,
    /// How many messages of its queue it has taken.
    pub(crate) seen: usize,
}

impl Runner {
    pub(crate) fn new(tenant: &TenantName, install: &str, queue: String, seed: u8) -> Self {
        Self {
            tenant: tenant.clone(),
            install: install.parse().unwrap(),
            queue,
            key: SigningKey::from_bytes(&[seed; 32]),
            account: if install == "build" { "111111111111" } else { "222222222222" }.into(),
            role: if install == "build" {
                names::tenant_part(tenant, "build-runner")
            } else {
                names::install_part(tenant, &install.parse().unwrap(), "runner")
            },
            region: "eu-west-1".into(),
            slots: 2,
            answers: BTreeMap::new(),
            secrets: None,
            seals: true,
            changes: None,
            decisions: Vec::new(),
            roles: None,
            accepted_contract: None,
            behaviours: BTreeMap::new(),
            started: Vec::new(),
            attempts: BTreeMap::new(),
            blobs: BTreeSet::new(),
            refused_grants: Vec::new(),
            notices: Vec::new(),
            outputs_follow_work: false,
            cancelled: BTreeSet::new(),
            seen: 0,
        }
    }

    /// Returns the key to which values are sealed. Nothing here is opened, so any bytes are a key.
    pub(crate) fn sealing_key(&self) -> SealingKey {
        SealingKey::from_bytes(self.key.to_bytes())
    }

    pub(crate) fn report(&self, body: ReportBody, at: Timestamp) -> Report {
        let key: PublicKey = self.key.verifying_key().into();
        Report {
            tenant: self.tenant.clone(),
            install: self.install.clone(),
            runner: key.key_id(),
            at,
            head: None,
            body,
        }
    }

    pub(crate) fn sign(&self, report: &Report) -> String {
        Envelope::seal(report, &[&self.key]).unwrap().to_json().unwrap()
    }

    /// Returns the same machine with the credentials of another role.
    pub(crate) fn with_role(self, account: &str, role: &str) -> Self {
        Self { account: account.into(), role: role.into(), ..self }
    }

    /// Returns the request to STS that is bound to this runner's key.
    pub(crate) fn caller_request(&self) -> CallerRequest {
        CallerRequest::new(&self.region, &self.tenant, &self.install, &self.key.verifying_key().into()).unwrap()
    }

    pub(crate) fn hello(&self, at: Timestamp) -> String {
        self.hello_with(Some(prove(&self.account, &self.role, &self.caller_request(), at)), at)
    }

    pub(crate) fn hello_with(&self, proof: Option<RoleProof>, at: Timestamp) -> String {
        let public_key = self.key.verifying_key().into();
        let inputs = self.answers.clone();
        let hello = Hello {
            public_key,
            version: "0.1.0".into(),
            slots: self.slots,
            host: "i-1".into(),
            inputs,
            secrets: self.secrets.clone(),
            accepted_contract: self.accepted_contract.clone(),
            proof,
            sealing_key: self.seals.then(|| self.sealing_key()),
            changes: self.changes.clone(),
            decisions: self.decisions.clone(),
            roles: self.roles.clone(),
        };
        let report = self.report(ReportBody::Hello(hello), at);
        self.sign(&report)
    }

    pub(crate) fn says(&self, job: &JobId, fence: Fence, seq: u64, event: AttemptEvent, at: Timestamp) -> String {
        let attempt = AttemptReport { job: job.clone(), fence, seq, event };
        self.sign(&self.report(ReportBody::Attempt(attempt), at))
    }

    /// Takes what is new in its queue and returns the reports that follow.
    pub(crate) fn take(
        &mut self,
        orders: &[(String, String, String, String)],
        root: &PublicKey,
        registry: &MemoryRegistry,
        now: Timestamp,
    ) -> Vec<String> {
        let mine: Vec<String> =
            orders.iter().filter(|(queue, ..)| *queue == self.queue).map(|(_, _, _, body)| body.clone()).collect();
        let mut reports = Vec::new();
        for body in mine.iter().skip(self.seen) {
            let envelope = Envelope::parse(body.as_bytes()).unwrap();
            let tenant = self.tenant.clone();
            if envelope.payload_type == Order::TYPE {
                let order: Order = envelope.open_delegated(root, &tenant, now).unwrap();
                assert_eq!(order.install, self.install);
                reports.extend(self.on_order(order, registry, now));
            } else if envelope.payload_type == Cancel::TYPE {
                let cancel: Cancel = envelope.open_delegated(root, &tenant, now).unwrap();
                reports.extend(self.on_cancel(&cancel, now));
            } else if envelope.payload_type == Retired::TYPE {
                self.notices.push(envelope.open_delegated(root, &tenant, now).unwrap());
            } else {
                let grant: ArtifactGrant = envelope.open_delegated(root, &tenant, now).unwrap();
                reports.extend(self.on_grant(grant, now));
            }
        }
        self.seen = mine.len();
        reports
    }

    fn on_order(&mut self, order: Order, registry: &MemoryRegistry, now: Timestamp) -> Vec<String> {
        let fence = Fence { dispatch: order.dispatch, receive: 1 };
        if self.cancelled.contains(&(order.job.clone(), order.dispatch)) {
            let refusal = Refusal {
                reason: RefusalReason::Cancelled,
                detail: "the job was cancelled before it started".into(),
                message: Digest::of(order.job.as_str().as_bytes()),
                job: Some((order.job, fence)),
                given_back: false,
                until: None,
            };
            return vec![self.sign(&self.report(ReportBody::Refused(refusal), now))];
        }
        let name = subject(&order.work);
        if self.behaviours.get(&name) == Some(&Behaviour::Ignores) {
            return Vec::new();
        }
        self.started.push(name);
        let job = order.job.clone();
        let mut reports = vec![self.says(&job, fence, 1, AttemptEvent::Started, now)];
        let mut attempt = Attempt { order, fence, seq: 1, waits_for: None, pushed: None };
        if let Some(artifact) = attempt.order.work.artifact() {
            let missing: Vec<Digest> =
                artifact.blobs.iter().map(|b| b.digest.clone()).filter(|b| !self.blobs.contains(b)).collect();
            if !missing.is_empty() {
                let grant = GrantId::derive(&job, fence.dispatch, fence.receive, &artifact.digest);
                let event = AttemptEvent::GrantRequest {
                    grant: grant.clone(),
                    artifact: artifact.digest.clone(),
                    missing,
                    round: 0,
                };
                attempt.seq = 2;
                attempt.waits_for = Some(grant);
                reports.push(self.says(&job, fence, 2, event, now));
            }
        }
        if let Work::Upgrade(work) = &attempt.order.work {
            let grant = GrantId::of_round(&job, fence, &work.archive, 0);
            let (artifact, missing) = (work.archive.clone(), vec![work.archive.clone()]);
            attempt.seq = 2;
            attempt.waits_for = Some(grant.clone());
            reports.push(self.says(
                &job,
                fence,
                2,
                AttemptEvent::GrantRequest { grant, artifact, missing, round: 0 },
                now,
            ));
        }
        if let (Work::Build(work), None) = (&attempt.order.work, self.behaviours.get(&subject(&attempt.order.work))) {
            let artifact = registry.push(&format!("{:?}", work.source));
            let grant = GrantId::of_statement(&job, fence, &artifact.digest);
            let facts = facts(work, &artifact, now);
            attempt.pushed = Some(artifact.clone());
            attempt.seq = 2;
            attempt.waits_for = Some(grant.clone());
            reports.push(self.says(&job, fence, 2, AttemptEvent::AttestRequest { grant, artifact, facts }, now));
        }
        let waits = attempt.waits_for.is_some();
        self.attempts.insert(job.clone(), attempt);
        assert!(self.attempts.len() <= self.slots as usize, "more jobs than slots");
        if !waits {
            reports.extend(self.end(&job, now));
        }
        reports
    }

    fn on_grant(&mut self, grant: ArtifactGrant, now: Timestamp) -> Vec<String> {
        match grant.answer {
            GrantAnswer::Granted { manifests, blobs } => {
                let of = self.attempts.get(&grant.job).map(|attempt| &attempt.order.work);
                assert_eq!(manifests.is_empty(), matches!(of, Some(Work::Upgrade(_))));
                self.blobs.extend(blobs.into_iter().map(|blob| blob.digest));
            }
            GrantAnswer::Attested { statement } => {
                let referrer = Digest::of(statement.payload.as_bytes());
                let pushed = self.attempts.get_mut(&grant.job).and_then(|attempt| attempt.pushed.as_mut());
                if let Some(pushed) = pushed {
                    pushed.provenance = Some(Box::new(Provenance { statement, referrer }));
                }
            }
            GrantAnswer::Refused { reason, .. } => self.refused_grants.push(reason),
        }
        let waits = self.attempts.get(&grant.job).is_some_and(|a| a.waits_for.as_ref() == Some(&grant.grant));
        if waits { self.end(&grant.job, now) } else { Vec::new() }
    }

    fn on_cancel(&mut self, cancel: &Cancel, now: Timestamp) -> Vec<String> {
        if cancel.receive.is_some() {
            return Vec::new();
        }
        self.cancelled.insert((cancel.job.clone(), cancel.dispatch));
        self.finish(&cancel.job, Outcome::Cancelled, now)
    }

    fn end(&mut self, job: &JobId, now: Timestamp) -> Vec<String> {
        let Attempt { order, pushed, .. } = self.attempts[job].clone();
        let Order { work, dispatch, approved, workflow, .. } = &order;
        let outcome = match self.behaviours.get(&subject(work)) {
            Some(Behaviour::Ends(outcome)) => outcome.clone(),
            Some(Behaviour::EndsIn(of, outcome)) if of == workflow => outcome.clone(),
            Some(Behaviour::Hangs | Behaviour::Ignores) => return Vec::new(),
            Some(Behaviour::FailsBefore(wanted)) if dispatch < wanted => {
                Outcome::Failed { reason: "exit status 1".into(), partial: true }
            }
            Some(Behaviour::Proposes(plan)) if approved.is_none() => Outcome::NeedsApproval { plan: plan.clone() },
            Some(Behaviour::FailsBefore(_) | Behaviour::Proposes(_) | Behaviour::EndsIn(..)) | None => {
                self.success(&order, pushed)
            }
        };
        self.finish(job, outcome, now)
    }

    fn success(&self, order: &Order, pushed: Option<Artifact>) -> Outcome {
        match success(&order.work, pushed) {
            Outcome::Succeeded { mut outputs, sensitive, artifact } if self.outputs_follow_work => {
                if let Some(Value::String(name)) = outputs.get_mut("name") {
                    *name = format!("{name}-{}", Digest::of(rendered(order).to_string().as_bytes()).hex());
                }
                Outcome::Succeeded { outputs, sensitive, artifact }
            }
            outcome => outcome,
        }
    }

    /// Ends an attempt that is under way.
    pub(crate) fn finish(&mut self, job: &JobId, outcome: Outcome, now: Timestamp) -> Vec<String> {
        let Some(attempt) = self.attempts.remove(job) else { return Vec::new() };
        let event = AttemptEvent::finished(outcome, "done\n");
        vec![self.says(job, attempt.fence, attempt.seq + 1, event, now)]
    }
}

/// What work is about: a component's, action's or build's name.
pub(crate) fn subject(work: &Work) -> String {
    match work {
        Work::ContainerImage(work) => work.component.to_string(),
        Work::TerraformModule(work) | Work::Sandbox(work) => work.component.to_string(),
        Work::Pulumi(work) | Work::PulumiSandbox(work) => work.component.to_string(),
        Work::CloudformationStack(work) => work.component.to_string(),
        Work::HelmChart(work) => work.component.to_string(),
        Work::KubernetesManifest(work) => work.component.to_string(),
        Work::KubernetesJob(work) => work.component.to_string(),
        Work::Remove(work) => format!("remove:{}", subject(&work.what)),
        Work::DetectDrift(work) => format!("drift:{}", subject(&work.what)),
        Work::Action(work) => format!("action:{}", work.action),
        Work::Build(work) => format!("build:{}", work.component),
        Work::CopySecrets(_) => "secrets".to_owned(),
        Work::Preflight(_) => "preflight".to_owned(),
        Work::Leftovers(_) => "leftovers".to_owned(),
        Work::Health(work) => format!("health:{}", work.component),
        Work::Upgrade(_) => "runner".to_owned(),
    }
}

/// Returns the work of an order with the values of its templates, which the runner fills in before it starts a program.
pub(crate) fn rendered(order: &Order) -> Value {
    let work = serde_json::to_value(&order.work).unwrap();
    freehold_template::render_value(&work, &order.context, &Limits::default()).unwrap()
}

/// What a build runner knows of the build.
fn facts(work: &BuildArtifact, artifact: &Artifact, now: Timestamp) -> BuildFacts {
    let resolved = match &work.source {
        Source::Git { url, commit, .. } => {
            let digest = [("gitCommit".to_owned(), commit.clone())].into();
            ResourceDescriptor { uri: format!("git+{url}"), digest }
        }
        _ => ResourceDescriptor { uri: format!("oci://{}", work.component), digest: sha256(&artifact.digest) },
    };
    BuildFacts {
        resolved: vec![resolved],
        versions: [("freehold-runner".to_owned(), "0.1.0".to_owned())].into(),
        started_at: now,
        finished_at: now,
    }
}

fn success(work: &Work, artifact: Option<Artifact>) -> Outcome {
    if matches!(work, Work::Leftovers(_)) {
        let found = json!({ "resources": ["arn:aws:ec2:eu-west-1:222222222222:volume/vol-1"] });
        let outputs = [("leftovers".to_owned(), found)].into();
        return Outcome::Succeeded { outputs, sensitive: Default::default(), artifact };
    }
    if matches!(work, Work::DetectDrift(_)) {
        let outputs = [("drift".to_owned(), json!({ "resources": [] }))].into();
        return Outcome::Succeeded { outputs, sensitive: Default::default(), artifact };
    }
    if matches!(work, Work::Health(_)) {
        let outputs = [("health".to_owned(), json!({ "state": "healthy" }))].into();
        return Outcome::Succeeded { outputs, sensitive: Default::default(), artifact };
    }
    let outputs = [("name".to_owned(), json!(format!("{}-out", subject(work))))].into();
    Outcome::Succeeded { outputs, sensitive: Default::default(), artifact }
}
