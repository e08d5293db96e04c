//! Sends the signed order for a queued job, or a signed cancel, to the install's orders queue.

mod sending;

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use freehold_domain::build::{Build, BuildState};
use freehold_domain::inputs::{known_inputs, resolve_inputs, resolve_inputs_for};
use freehold_domain::install::{BUILD_INSTALL, Install};
use freehold_domain::job::{Job, JobState};
use freehold_domain::plan::kept_outputs;
use freehold_domain::preflight;
use freehold_domain::sealed_inputs::take_sealed;
use freehold_domain::workflow::{Node, Request, Target, Use, Workflow, WorkflowKind};
use freehold_protocol::app_version::{AppVersion, Input, Reference, Secret};
use freehold_protocol::contract::OrderTerms;
use freehold_protocol::limits::{CLAIM_WINDOW_SECS, MAX_INLINE_PAYLOAD_BYTES};
use freehold_protocol::order::{
    Artifact, BuildArtifact, Cancel, KeptOutputs, Order, Recipe, RemovePart, Retired, ToolImage, Work,
};
use freehold_protocol::preflight::CheckInstall;
use freehold_protocol::terraform::PROVIDER_LAYER;
use freehold_protocol::{
    AppName, BuildId, ComponentName, Digest, Envelope, InstallId, JobId, KeyId, TenantName, Timestamp,
};
use serde_json::json;

use crate::AppError;
use crate::app_version::versions::Versions;
use crate::contract::sign_contract::SignContract;
use crate::contract::terms;
use crate::messages::DispatchMessage;
use crate::ports::{BuildMachine, Clock, DelegateKey, OrdersQueue, Signer, Store, Write};
use crate::stack::nuon_tree;
use crate::table::evidence;
use crate::table::{self, Contact, NOTICE_SECS, Stored, build_key, load};
use crate::workflow::order_work::{
    action_work, component_work, copies_of_secrets, no_copies_of_secrets, sandbox_work, secrets, sensitive_inputs,
    skips_noops,
};
use crate::workflow::teardown_install::reads;
use crate::workflow::{advance, attempted_part};

/// The use case that dispatches jobs, with its ports and the settings of the tenant.
#[derive(Clone)]
pub struct DispatchJob {
    pub tenant: TenantName,
    /// The repository of the tenant registry to which builds push.
    pub repository: String,
    pub store: Arc<dyn Store>,
    pub versions: Versions,
    pub orders: Arc<dyn OrdersQueue>,
    pub signer: Arc<dyn Signer>,
    /// The machine of the build runner; `None` when the build runner has a machine of its own.
    pub build_machine: Option<Arc<dyn BuildMachine>>,
    pub clock: Arc<dyn Clock>,
}

impl DispatchJob {
    /// Handles one message of the dispatch queue. A redelivery sends the same message with the same deduplication id. A
    /// job whose order can never be sent ends as failed with the reason. Returns whether the build runner got an order:
    /// after all messages of a batch, [`Self::wake_builder`] asks for its machine.
    ///
    /// # Errors
    /// Transient when a service does not answer or the install's queue does not exist yet; Internal for broken records.
    pub async fn perform(&self, message: &DispatchMessage) -> Result<bool, AppError> {
        match message {
            DispatchMessage::Order { job, dispatch } => {
                let Some(job) = self.job(job).await? else { return Ok(false) };
                let current = matches!(&job.state, JobState::Queued { dispatch: d } if d == dispatch);
                if !current || job.cancel_requested.is_some() {
                    tracing::info!(job.id = %job.id, "Job `{}` is {}: no order was sent", job.id, job.state.as_str());
                    return Ok(false);
                }
                match self.send_order(&job, *dispatch).await {
                    Err(error) if error.kind == crate::Kind::Invalid => {
                        self.end_undeliverable(&job, *dispatch, error).await.map(|()| false)
                    }
                    Err(error) => Err(error),
                    Ok(sent) => Ok(sent && job.install.as_str() == BUILD_INSTALL),
                }
            }
            DispatchMessage::Cancel { job, dispatch, receive, runner } => {
                let Some(job) = self.job(job).await? else { return Ok(false) };
                let cancel = Cancel {
                    tenant: self.tenant.clone(),
                    install: job.install.clone(),
                    job: job.id.clone(),
                    dispatch: *dispatch,
                    receive: *receive,
                    runner: runner.clone(),
                    issued_at: self.clock.now(),
                    not_after: self.clock.now().plus_secs(CLAIM_WINDOW_SECS),
                };
                self.send_cancel(&cancel).await.map(|()| false)
            }
            DispatchMessage::Retired { install, runner, at } => {
                self.send_retired(install, runner, *at).await.map(|()| false)
            }
            DispatchMessage::Contract { app, version } => self.signing().sign(app, version).await.map(|()| false),
        }
    }

    /// Asks for the machine of the build runner. This comes after the orders were sent, because a machine that is about
    /// to end first leaves its group and then looks at the queue once more: it sees the orders, or the group starts
    /// another machine. A failure is not returned, because the orders would be sent again. `sweep` asks for the machine
    /// once a minute while a build waits.
    pub async fn wake_builder(&self) {
        if let Some(machine) = &self.build_machine
            && let Err(error) = machine.wake().await
        {
            tracing::error!("Could not start the machine of the build runner: {error}");
        }
    }

    /// Returns a job; `None` if its install was forgotten before this message arrived.
    async fn job(&self, id: &JobId) -> Result<Option<Job>, AppError> {
        let job: Option<Stored<Job>> = load(&*self.store, &table::job_key(id)).await?;
        if job.is_none() {
            tracing::info!(job.id = %id, "Job `{id}` is gone: nothing was sent");
        }
        Ok(job.map(|job| job.value))
    }

    /// Returns an install; `None` if it is being forgotten.
    async fn install(&self, id: &InstallId) -> Result<Option<Install>, AppError> {
        let found: Option<Stored<Install>> = load(&*self.store, &table::install_key(id)).await?;
        let kept = found.map(|found| found.value).filter(|install| install.forgetting.is_none());
        if kept.is_none() {
            tracing::info!(install.id = %id, "Install `{id}` is gone: nothing was sent");
        }
        Ok(kept)
    }

    fn signing(&self) -> SignContract {
        SignContract {
            tenant: self.tenant.clone(),
            store: Arc::clone(&self.store),
            versions: self.versions.clone(),
            signer: Arc::clone(&self.signer),
            clock: Arc::clone(&self.clock),
        }
    }

    /// Makes the order of a job, and stores it. The order is stored before it is sent: it is then a proof, and a
    /// redelivery sends the same bytes.
    async fn new_order(
        &self,
        job: &Job,
        install: &Install,
        dispatch: u32,
        now: Timestamp,
    ) -> Result<Envelope, AppError> {
        let (mut order, part) = self.order(job, install, dispatch).await?;
        let delegate = self.signer.delegate(order.not_after).await?;
        order.receipt = self.receipt(install, &delegate, now).await?;
        let mut envelope = Envelope::seal_delegated(&order, &delegate.key, &delegate.certificate)?;
        let too_large = |envelope: &Envelope| envelope.payload.len() / 4 * 3 > MAX_INLINE_PAYLOAD_BYTES;
        // The order can be sent without the documents of its terms: a runner that needs them reports that. The order
        // cannot be sent without its work.
        if too_large(&envelope) && order.terms.as_mut().is_some_and(|terms| terms.drop_documents()) {
            envelope = Envelope::seal_delegated(&order, &delegate.key, &delegate.certificate)?;
        }
        if too_large(&envelope) {
            return Err(AppError::invalid(format!(
                "order of job `{}` has {} bytes, more than the {MAX_INLINE_PAYLOAD_BYTES} that fit into a message; \
                 shorten the component's values or outputs",
                job.id,
                envelope.payload.len() / 4 * 3
            )));
        }
        evidence::keep_order(&*self.store, (&job.id, dispatch, now), &envelope, &order.work, part).await?;
        Ok(envelope)
    }

    /// Returns the receipt for the newest audit record that the install's runners reported.
    async fn receipt(
        &self,
        install: &Install,
        delegate: &DelegateKey,
        now: Timestamp,
    ) -> Result<Option<Box<Envelope>>, AppError> {
        let contact: Option<Stored<Contact>> = load(&*self.store, &table::contact_key(&install.id)).await?;
        let Some(head) = contact.and_then(|contact| contact.value.head) else { return Ok(None) };
        let receipt = head.receipt(self.tenant.clone(), install.id.clone(), now);
        Ok(Some(Box::new(Envelope::seal_delegated(&receipt, &delegate.key, &delegate.certificate)?)))
    }

    async fn send_cancel(&self, cancel: &Cancel) -> Result<(), AppError> {
        let Some(install) = self.install(&cancel.install).await? else { return Ok(()) };
        let url = queue_url(&install)?;
        let delegate = self.signer.delegate(cancel.not_after).await?;
        let envelope = Envelope::seal_delegated(cancel, &delegate.key, &delegate.certificate)?;
        let receive = cancel.receive.map(|receive| format!(".{receive}")).unwrap_or_default();
        let dedup = format!("cancel.{}.{}{receive}", cancel.job, cancel.dispatch);
        self.orders.send(url, "control", &dedup, &envelope.to_json()?).await?;
        Ok(())
    }

    /// Tells a runner that its key was replaced. The notice has a message group of its own: the runner with the current
    /// key leaves it in the queue, and there it must not delay other messages.
    async fn send_retired(&self, install: &InstallId, runner: &KeyId, at: Timestamp) -> Result<(), AppError> {
        let Some(install) = self.install(install).await? else { return Ok(()) };
        let Some(living) = install.runner.as_ref().filter(|_| install.retired.contains(runner)) else { return Ok(()) };
        let notice = Retired {
            tenant: self.tenant.clone(),
            install: install.id.clone(),
            runner: runner.clone(),
            replaced_by: living.public_key.key_id(),
            replaced_at: living.announced_at,
            issued_at: at,
            not_after: at.plus_secs(NOTICE_SECS),
        };
        let delegate = self.signer.delegate(notice.not_after).await?;
        let envelope = Envelope::seal_delegated(&notice, &delegate.key, &delegate.certificate)?;
        let dedup = format!("retired.{runner}.{}", at.as_millis());
        self.orders.send(queue_url(&install)?, "retired", &dedup, &envelope.to_json()?).await?;
        Ok(())
    }

    /// Returns the order for a job, and the write of the record of a part that the job may be the first to make. The same
    /// job and dispatch give the same order unless the records that the order refers to change.
    async fn order(&self, job: &Job, install: &Install, dispatch: u32) -> Result<(Order, Option<Write>), AppError> {
        let workflow = table::workflow(&*self.store, &job.workflow).await?.value;
        let node = workflow.nodes.iter().find(|node| node.name == job.node).ok_or_else(|| {
            // INVARIANT: every job is created for a node of its workflow, and nodes are never removed.
            AppError::internal(format!("workflow `{}` has no node `{}`", workflow.id, job.node))
        })?;
        let Task { work, skip_noops, context, hidden, tools, terms } = self.task(&workflow, node, install).await?;
        let tool_image = self.tool_image(&workflow, tools.as_ref(), install).await?;
        let part = attempted_part::ordered(&*self.store, job, &workflow, &node.target, self.clock.now()).await?;
        let order = Order {
            tenant: self.tenant.clone(),
            install: install.id.clone(),
            workflow: workflow.id.clone(),
            job: job.id.clone(),
            dispatch,
            group: job.group.clone(),
            serial: job.serial,
            issued_at: job.created_at,
            not_after: job.not_after,
            timeout_secs: job.timeout_secs,
            mode: job.mode,
            role: job.role.clone(),
            asked_by: workflow.asked_by.clone(),
            runner: install.runner.as_ref().map(|runner| runner.public_key.key_id()),
            redelivery: work.redelivery(),
            skip_noops,
            work,
            context,
            sensitive_inputs: hidden.inputs,
            sealed_inputs: hidden.sealed,
            secrets: hidden.secrets,
            kept_outputs: hidden.outputs,
            tool_image,
            terms,
            receipt: None,
        };
        Ok((order, part))
    }

    /// Returns the workflow's tool image for a task whose version has the tool image `tools`; `None` if these are
    /// different components. They can differ in a teardown: its tasks use the versions that were deployed, and such a
    /// version may have another tool image or none.
    async fn tool_image(
        &self,
        workflow: &Workflow,
        tools: Option<&ComponentName>,
        install: &Install,
    ) -> Result<Option<Box<ToolImage>>, AppError> {
        let (Some(image), Some(app)) = (&workflow.tool_image, install.app()) else { return Ok(None) };
        if tools != Some(&image.component) {
            return Ok(None);
        }
        let artifact = self.artifact(app, &image.build).await?;
        Ok(Some(Box::new(ToolImage { component: image.component.clone(), artifact })))
    }

    async fn task(&self, workflow: &Workflow, node: &Node, install: &Install) -> Result<Task, AppError> {
        match &node.target {
            Target::Build { component, build } => self.build_task(workflow, component, build).await,
            Target::Component { component, build, .. } => {
                let (app, version) = self.app_version(workflow.version.as_ref(), install).await?;
                let artifact = self.artifact(app, build).await?;
                self.install_task(component_work(&version, component, artifact)?, install, &version, None).await
            }
            Target::Sandbox { build, .. } => {
                let (app, version) = self.app_version(workflow.version.as_ref(), install).await?;
                let artifact = self.artifact(app, build).await?;
                self.install_task(sandbox_work(&version, artifact)?, install, &version, None).await
            }
            Target::Secrets { keeps_others, .. } => {
                let (_, version) = self.app_version(workflow.version.as_ref(), install).await?;
                if workflow.kind == WorkflowKind::TeardownInstall {
                    let deployed = table::deployed(&*self.store, &install.id).await?;
                    let context = nuon_tree::tree(&self.tenant, install, &version, &BTreeMap::new(), &deployed);
                    return Ok(Task { context, ..Task::bare(no_copies_of_secrets(), agreed_terms(install)) });
                }
                self.install_task(copies_of_secrets(&version, *keeps_others)?, install, &version, None).await
            }
            Target::Teardown { part, version, build, sandbox, .. } => {
                let (app, document) = self.app_version(Some(version), install).await?;
                let artifact = match build {
                    Some(build) => self.artifact(app, build).await?,
                    None => return Err(AppError::internal(format!("the build of component `{part}` is not known"))),
                };
                let what = if *sandbox {
                    sandbox_work(&document, artifact)
                } else {
                    component_work(&document, part, artifact)
                };
                let work = Work::Remove(RemovePart { what: Box::new(what?), destroy_data: destroys_data(workflow) });
                let reads = reads(&document, &node.target);
                let mut task = self.install_task(work, install, &document, reads).await?;
                task.terms = Some(Box::new(terms::for_removal(&*self.store, install, &document).await?));
                Ok(task)
            }
            Target::Action { action, directories } => {
                let (app, version) = self.app_version(workflow.version.as_ref(), install).await?;
                let mut artifacts = BTreeMap::new();
                for one in directories {
                    artifacts.insert(one.component.clone(), self.artifact(app, &one.build).await?);
                }
                let reads = reads(&version, &node.target);
                self.install_task(action_work(&version, action, &artifacts)?, install, &version, reads).await
            }
            Target::Preflight => {
                let (app, version) = self.app_version(workflow.version.as_ref(), install).await?;
                let work = Work::Preflight(self.preflight(workflow, app, &version).await?);
                self.install_task(work, install, &version, None).await
            }
            Target::Leftovers => Ok(Task::bare(Work::Leftovers(Default::default()), agreed_terms(install))),
        }
    }

    /// Returns the task for the build runner. It has neither inputs nor terms, because the build runner serves no
    /// customer's install.
    async fn build_task(
        &self,
        workflow: &Workflow,
        component: &ComponentName,
        build: &BuildId,
    ) -> Result<Task, AppError> {
        let app = advance::build_app(workflow)
            .ok_or_else(|| AppError::internal(format!("workflow `{}` names no app to build", workflow.id)))?;
        let record = self.build(app, build).await?;
        let work = BuildArtifact {
            build: build.clone(),
            component: component.clone(),
            package: record.package,
            source: record.source,
            recipe: self.recipe(workflow, app, component).await?,
            repository: self.repository.clone(),
        };
        Ok(Task::bare(Work::Build(work), None))
    }

    /// Returns the task for an install's runner, with the context for its templates. With `reads`, sensitive inputs that
    /// the templates do not read need no value.
    async fn install_task(
        &self,
        work: Work,
        install: &Install,
        version: &AppVersion,
        reads: Option<BTreeSet<Reference>>,
    ) -> Result<Task, AppError> {
        let given = known_inputs(version, &install.inputs);
        let (answers, sealing) = (&install.answers, install.sealing());
        let mut inputs = match &reads {
            Some(reads) => resolve_inputs_for(version, &given, answers, sealing, reads)?,
            None => resolve_inputs(version, &given, answers, sealing)?,
        };
        let sealed = take_sealed(version, &given, &mut inputs);
        let deployed = table::deployed(&*self.store, &install.id).await?;
        let context = nuon_tree::tree(&self.tenant, install, version, &inputs, &deployed);
        let terms = terms::for_order(&*self.store, install, version).await?;
        let outputs = kept_outputs(version, &work, &deployed);
        let hidden = Hidden { inputs: sensitive_inputs(version, &sealed), sealed, secrets: secrets(version), outputs };
        let tools = version.tool_image().map(|component| component.name.clone());
        let skip_noops = skips_noops(version, &work);
        Ok(Task { work, skip_noops, context, hidden, tools, terms: Some(Box::new(terms)) })
    }

    /// Returns the install's app and the given version of the app.
    async fn app_version<'a>(
        &self,
        version: Option<&Digest>,
        install: &'a Install,
    ) -> Result<(&'a AppName, Arc<AppVersion>), AppError> {
        let app = install.require_app().map_err(|error| AppError::internal(error.to_string()))?;
        Ok((app, self.versions.load(app, version).await?.document))
    }

    /// Returns the checks that the runner makes before the workflow's other nodes.
    async fn preflight(
        &self,
        workflow: &Workflow,
        app: &AppName,
        version: &AppVersion,
    ) -> Result<CheckInstall, AppError> {
        let mut artifacts = BTreeMap::new();
        for node in &workflow.nodes {
            for (part, Use { build, .. }) in node.target.uses() {
                let BuildState::Built { artifact, .. } = self.build(app, build).await?.state else { continue };
                // Terraform providers are left out, because components share them and the runner has an estimate of
                // their size.
                let own = artifact.blobs.iter().filter(|blob| blob.media_type != PROVIDER_LAYER);
                artifacts.insert(part, own.map(|blob| blob.size).sum());
            }
        }
        Ok(preflight::needs(version, workflow, &artifacts))
    }

    async fn artifact(&self, app: &AppName, build: &BuildId) -> Result<Artifact, AppError> {
        match self.build(app, build).await?.state {
            BuildState::Built { artifact, .. } => Ok(artifact),
            BuildState::Removed { .. } => Err(AppError::invalid(format!(
                "the artifact of build `{build}` was removed; build the app again, and start the workflow again"
            ))),
            BuildState::Building { .. } | BuildState::Failed { .. } => Err(AppError::invalid(format!(
                "build `{build}` has no artifact; start the workflow again when it is built"
            ))),
        }
    }

    async fn build(&self, app: &AppName, build: &BuildId) -> Result<Build, AppError> {
        let record: Option<Stored<Build>> = load(&*self.store, &build_key(app, build)).await?;
        Ok(record.ok_or_else(|| AppError::internal(format!("build `{build}` does not exist")))?.value)
    }

    /// Returns the recipe of a component's build, from the workflow's app version; `None` if the component has no
    /// recipe.
    async fn recipe(
        &self,
        workflow: &Workflow,
        app: &AppName,
        component: &ComponentName,
    ) -> Result<Option<Recipe>, AppError> {
        let Request::Build { version: Some(version), .. } = &workflow.request else {
            return Ok(None);
        };
        let document = self.versions.load(app, Some(version)).await?.document;
        let found = document
            .build_input(component)
            .ok_or_else(|| AppError::internal(format!("version has no component `{component}`")))?;
        let packed = found.recipe.map(Recipe::packed).transpose();
        packed.map_err(|error| AppError::internal(format!("could not pack a manifest: {error}")))
    }
}

/// The values that an order names but does not contain: the sensitive inputs, with the digests of those that are
/// sealed, the secrets, and the sensitive outputs.
#[derive(Default)]
struct Hidden {
    inputs: Vec<Input>,
    sealed: BTreeMap<String, Digest>,
    secrets: Vec<Secret>,
    outputs: Vec<KeptOutputs>,
}

/// The parts of an order that depend on its node: the work, the context for templates, the values that it names but
/// does not contain, the component of the tool image, and the terms.
struct Task {
    work: Work,
    skip_noops: bool,
    context: serde_json::Value,
    hidden: Hidden,
    /// The component that makes the tool image in the task's version; `None` when the version has no tool image.
    tools: Option<ComponentName>,
    terms: Option<Box<OrderTerms>>,
}

impl Task {
    /// Returns a task that reads no input, no secret and no output.
    fn bare(work: Work, terms: Option<Box<OrderTerms>>) -> Self {
        let context = json!({ "nuon": {} });
        Self { work, skip_noops: false, context, hidden: Hidden::default(), tools: None, terms }
    }
}

/// Returns the terms for an order that runs nothing of a version: the terms that the customer agreed to. With the terms
/// of a version, a runner would refuse the order if the version asks for more than the customer agreed to.
fn agreed_terms(install: &Install) -> Option<Box<OrderTerms>> {
    install.accepted_contract.clone().map(|digest| Box::new(OrderTerms { digest, change: None, document: None }))
}

/// Returns whether the request for a teardown permits it to destroy data.
const fn destroys_data(workflow: &Workflow) -> bool {
    matches!(workflow.request, Request::Teardown { destroy_data: true, .. })
}

fn queue_url(install: &Install) -> Result<&str, AppError> {
    install.orders_queue_url.as_deref().ok_or_else(|| {
        let message = format!("orders queue of install `{}` does not exist yet; try again", install.id);
        AppError::new(crate::Kind::Transient, message)
    })
}
