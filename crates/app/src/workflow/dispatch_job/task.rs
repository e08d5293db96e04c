//! The contents of an order: the work of its node, the values and the context that the work reads, the tool image, the
//! policies, and the terms.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use freehold_domain::build::{Build, BuildState};
use freehold_domain::inputs::{known_inputs, resolve_inputs, resolve_inputs_for};
use freehold_domain::install::Install;
use freehold_domain::plan::kept_outputs;
use freehold_domain::preflight;
use freehold_domain::runbook::with_defaults;
use freehold_domain::sealed_inputs::take_sealed;
use freehold_domain::workflow::{
    Node, Request, RunTrigger, StepBuild, Target, TeardownParts, Use, Workflow, WorkflowKind,
};
use freehold_permissions::terms_for_removal;
use freehold_protocol::app_version::{Action, AppVersion, Input, Reference, Secret};
use freehold_protocol::approval::ApprovalRule;
use freehold_protocol::contract::{OrderTerms, Terms};
use freehold_protocol::order::{
    Artifact, BuildArtifact, DetectDrift, KeptOutputs, Recipe, RemovePart, ToolImage, Work,
};
use freehold_protocol::policy::OrderPolicy;
use freehold_protocol::preflight::CheckInstall;
use freehold_protocol::terraform::PROVIDER_LAYER;
use freehold_protocol::{AppName, BuildId, ComponentName, Digest};
use serde_json::{Value, json};

use super::DispatchJob;
use super::unread_values::leave_out_unread;
use crate::AppError;
use crate::contract::terms;
use crate::stack::nuon_tree;
use crate::table::{self, Stored, build_key, load};
use crate::workflow::advance;
use crate::workflow::order_work::{
    action_work, approval, component_work, copies_of_secrets, health_work, no_copies_of_secrets, policies,
    sandbox_work, secrets, sensitive_inputs, skips_noops, upgrade_work,
};
use crate::workflow::teardown_install::reads;

/// The values that an order names but does not contain: the sensitive inputs, with the digests of those that are
/// sealed, the secrets, and the sensitive outputs.
#[derive(Default)]
pub(super) struct Hidden {
    pub(super) inputs: Vec<Input>,
    pub(super) sealed: BTreeMap<String, Digest>,
    pub(super) secrets: Vec<Secret>,
    pub(super) outputs: Vec<KeptOutputs>,
}

/// The parts of an order that depend on its node: the work, the context for templates, the values that it names but
/// does not contain, the component of the tool image, and the terms.
pub(super) struct Task {
    pub(super) work: Work,
    pub(super) skip_noops: bool,
    pub(super) context: Value,
    pub(super) hidden: Hidden,
    /// The component that makes the tool image in the task's version; `None` when the version has no tool image.
    pub(super) tools: Option<ComponentName>,
    /// The policies of the task's version that guard the work.
    pub(super) policies: Vec<OrderPolicy>,
    /// Whether somebody at the vendor has to approve the plan.
    pub(super) approval: Option<ApprovalRule>,
    pub(super) terms: Option<Box<OrderTerms>>,
    /// The values that the templates of a removal read; `None` for all other work.
    pub(super) reads_in_removal: Option<BTreeSet<Reference>>,
}

impl Task {
    /// Returns a task that reads no input, no secret and no output.
    fn bare(work: Work, terms: Option<Box<OrderTerms>>) -> Self {
        let context = json!({ "nuon": {} });
        let (hidden, policies) = (Hidden::default(), Vec::new());
        Self {
            work,
            skip_noops: false,
            context,
            hidden,
            tools: None,
            policies,
            approval: None,
            terms,
            reads_in_removal: None,
        }
    }

    /// Leaves out the secrets and the customer's sensitive inputs that none of `terms` names. The customer agreed to a
    /// later version without them, so the account has no values of them, and the runner would refuse the order. An input
    /// that is left out has its default, if it needs no answer.
    fn leave_out_unnamed(&mut self, terms: &[Terms]) {
        self.hidden.secrets.retain(|secret| terms.iter().any(|terms| terms.names_secret(&secret.name)));
        let is_named = |name: &str| terms.iter().any(|terms| terms.names_sensitive_input(name));
        for input in self.hidden.inputs.iter_mut().filter(|input| input.customer && !is_named(&input.name)) {
            // The runner hides the value as it hides those of the vendor, and reads none of the account.
            input.customer = false;
            if let Ok(value) = input.accept(input.usable_default().unwrap_or(&Value::Null)) {
                nuon_tree::add_input(&mut self.context, &input.name, &value);
            }
        }
    }
}

/// A part of an app that a node deploys, removes or checks for drift.
#[derive(Clone, Copy)]
enum Part<'a> {
    Component(&'a ComponentName),
    Sandbox,
}

impl<'a> Part<'a> {
    const fn named(name: &'a ComponentName, is_sandbox: bool) -> Self {
        if is_sandbox { Self::Sandbox } else { Self::Component(name) }
    }
}

impl DispatchJob {
    /// Returns the workflow's tool image for a task whose version has the tool image `tools`; `None` if these are
    /// different components. They can differ in a teardown: its tasks use the versions that were deployed, and such a
    /// version may have another tool image or none.
    pub(super) async fn tool_image(
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

    /// Returns the task of a node.
    ///
    /// # Errors
    /// Invalid for work that can never be sent, Internal for records that contradict each other, or the ports' errors.
    pub(super) async fn task(&self, workflow: &Workflow, node: &Node, install: &Install) -> Result<Task, AppError> {
        match &node.target {
            Target::Build { component, build } => self.build_task(workflow, component, build).await,
            Target::Component { component, build, .. } => {
                self.deploy_task(workflow, Part::Component(component), build, install).await
            }
            Target::Sandbox { build, .. } => self.deploy_task(workflow, Part::Sandbox, build, install).await,
            Target::Secrets { keeps_others, .. } => self.secrets_task(workflow, *keeps_others, install).await,
            Target::Teardown { part, version, build: Some(build), sandbox, .. } => {
                let part = Part::named(part, *sandbox);
                let (version, what) = self.part_work(Some(version), part, build, install).await?;
                let reads = reads(&version, &node.target);
                self.removal_task(workflow, what, &version, reads, install).await
            }
            Target::Teardown { part, build: None, .. } => {
                Err(AppError::internal(format!("the build of component `{part}` is not known")))
            }
            Target::DetectDrift { part, version, build, sandbox, .. } => {
                let checked = Part::named(part, *sandbox);
                let (version, what) = self.part_work(Some(version), checked, build, install).await?;
                let reads = version.part(part).map(|part| part.references.clone());
                let work = Work::DetectDrift(DetectDrift { what: Box::new(what) });
                self.install_task(work, install, &version, reads).await
            }
            Target::Action { action, directories } => {
                let (app, version) = self.app_version(workflow.version.as_ref(), install).await?;
                let work = action_work(&version, action, &self.directories(app, directories).await?)?;
                let reads = reads(&version, &node.target);
                let mut task = self.install_task(work, install, &version, reads).await?;
                add_inputs(&mut task.context, workflow, version.action(action));
                if let Some(change) = workflow.request.trigger().and_then(RunTrigger::role_change) {
                    nuon_tree::add_action_role(&mut task.context, change, &self.tenant, install);
                }
                Ok(task)
            }
            Target::Preflight => {
                let (app, version) = self.app_version(workflow.version.as_ref(), install).await?;
                let work = Work::Preflight(self.preflight(workflow, app, &version).await?);
                self.install_task(work, install, &version, None).await
            }
            Target::Health { component, version, .. } => {
                self.health_task(workflow, component, version.as_ref(), install).await
            }
            Target::Leftovers => Ok(Task::bare(Work::Leftovers(Default::default()), agreed_terms(install))),
            // The upgrade belongs to no version of the app. The runner asks the customer's stack whether the upgrade is
            // permitted.
            Target::Upgrade => Ok(Task::bare(upgrade_work(workflow)?, None)),
        }
    }

    /// Returns the task that deploys a part from a build, as the version of the workflow describes the part.
    async fn deploy_task(
        &self,
        workflow: &Workflow,
        part: Part<'_>,
        build: &BuildId,
        install: &Install,
    ) -> Result<Task, AppError> {
        let (version, work) = self.part_work(workflow.version.as_ref(), part, build, install).await?;
        self.install_task(work, install, &version, None).await
    }

    /// Returns the task that copies secrets into the cluster of the app's sandbox. In a teardown it removes all copies.
    async fn secrets_task(&self, workflow: &Workflow, keeps_others: bool, install: &Install) -> Result<Task, AppError> {
        let (_, version) = self.app_version(workflow.version.as_ref(), install).await?;
        if workflow.kind != WorkflowKind::TeardownInstall {
            return self.install_task(copies_of_secrets(&version, keeps_others)?, install, &version, None).await;
        }
        let deployed = table::deployed(&*self.store, &install.id).await?;
        let context = nuon_tree::tree(&self.tenant, install, &version, &BTreeMap::new(), &deployed);
        Ok(Task { context, ..Task::bare(no_copies_of_secrets(), agreed_terms(install)) })
    }

    /// Returns the task that removes what the work `what` deploys.
    async fn removal_task(
        &self,
        workflow: &Workflow,
        what: Work,
        version: &AppVersion,
        reads: Option<BTreeSet<Reference>>,
        install: &Install,
    ) -> Result<Task, AppError> {
        let work = Work::Remove(RemovePart {
            what: Box::new(what),
            destroy_data: destroys_data(workflow),
            removes_policies: removes_everything(workflow),
        });
        let mut task = self.install_task(work, install, version, reads.clone()).await?;
        let terms = terms::for_removal(&*self.store, install, version).await?;
        let naming = terms_for_removal(&terms, install.accepted_contract.as_ref());
        if !naming.is_empty() {
            task.leave_out_unnamed(&naming);
        } else if let Some(reads) = &reads {
            leave_out_unread(&mut task.hidden.secrets, &mut task.hidden.inputs, reads);
        }
        (task.terms, task.reads_in_removal) = (Some(Box::new(terms)), reads);
        Ok(task)
    }

    /// Returns the task that checks the health of a component: for a component that `workflow` deploys, or, outside of
    /// a deploy, with the config of the version `alone_by`.
    async fn health_task(
        &self,
        workflow: &Workflow,
        component: &ComponentName,
        alone_by: Option<&Digest>,
        install: &Install,
    ) -> Result<Task, AppError> {
        let (_, version) = self.app_version(alone_by.or(workflow.version.as_ref()), install).await?;
        let alone = alone_by.is_some();
        let part = version.part(component).filter(|_| alone);
        let reads = part.map(|part| part.references.clone());
        self.install_task(health_work(&version, component, alone)?, install, &version, reads).await
    }

    /// Returns a version, and the work that deploys a part from a build as this version describes the part.
    async fn part_work(
        &self,
        version: Option<&Digest>,
        part: Part<'_>,
        build: &BuildId,
        install: &Install,
    ) -> Result<(Arc<AppVersion>, Work), AppError> {
        let (app, version) = self.app_version(version, install).await?;
        let artifact = self.artifact(app, build).await?;
        let work = match part {
            Part::Component(name) => component_work(&version, name, artifact)?,
            Part::Sandbox => sandbox_work(&version, artifact)?,
        };
        Ok((version, work))
    }

    /// Returns the artifacts of the directories that the steps of an action run in, by name.
    async fn directories(
        &self,
        app: &AppName,
        builds: &[StepBuild],
    ) -> Result<BTreeMap<ComponentName, Artifact>, AppError> {
        let mut artifacts = BTreeMap::new();
        for one in builds {
            artifacts.insert(one.component.clone(), self.artifact(app, &one.build).await?);
        }
        Ok(artifacts)
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
        let policies = policies(version, &work)?;
        let approval = approval(install.approval_option, version, &work);
        let (terms, reads_in_removal) = (Some(Box::new(terms)), None);
        Ok(Task { work, skip_noops, context, hidden, tools, policies, approval, terms, reads_in_removal })
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

/// Adds the inputs of a run of an action, and of the run of the runbook that it belongs to, to the values that templates
/// read.
fn add_inputs(context: &mut Value, workflow: &Workflow, action: Option<&Action>) {
    let mut given = BTreeMap::new();
    if let Request::Action { inputs, run_inputs, .. } = &workflow.request {
        given.clone_from(inputs);
        nuon_tree::add_run_inputs(context, run_inputs);
    }
    if let Some(action) = action {
        nuon_tree::add_action_inputs(context, &with_defaults(action, &given));
    }
}

/// Returns the terms for an order that runs nothing of a version: the terms that the customer agreed to. With the terms
/// of a version, a runner would refuse the order if the version asks for more than the customer agreed to.
fn agreed_terms(install: &Install) -> Option<Box<OrderTerms>> {
    install.accepted_contract.clone().map(|digest| Box::new(OrderTerms { digest, change: None, document: None }))
}

/// Returns whether the workflow removes everything that the app has deployed.
const fn removes_everything(workflow: &Workflow) -> bool {
    matches!(workflow.request, Request::Teardown { what: TeardownParts::All, .. })
}

/// Returns whether the request for a teardown permits it to destroy data.
const fn destroys_data(workflow: &Workflow) -> bool {
    matches!(workflow.request, Request::Teardown { destroy_data: true, .. })
}
