//! Renders the install stack's template. The same install and app version always give the same bytes.

use std::sync::Arc;

use ed25519_dalek::SigningKey;
use freehold_domain::deployability::undeployable;
use freehold_domain::install::{Install, Serves};
use freehold_protocol::api::InstallStack;
use freehold_protocol::app_version::{AppVersion, network_zones};
use freehold_protocol::envelope::PublicKey;
use freehold_protocol::order::Mode;
use freehold_protocol::{AccountId, AppName, Digest, IdError, InstallId, Partition, TenantName, Timestamp, names};
use serde::Serialize;
use serde_json::Value;

use crate::AppError;
use crate::app_version::install_release::followed;
use crate::app_version::versions::Versions;
use crate::contract::terms;
use crate::ports::{RootKey, Store};
use crate::stack::escape::Quoted;
use crate::stack::named_roles::{self, Role};
use crate::stack::parameters::{self, Questions};
use crate::stack::role_policy::{Granted, granted};
use crate::stack::template::fill;
use crate::stack::title::title_and_description;
use crate::table;

/// The use case that renders an install stack, with its ports and the settings of the tenant.
#[derive(Clone)]
pub struct RenderStack {
    pub tenant: TenantName,
    /// The tenant's own account.
    pub account: AccountId,
    /// The region of the tenant's queues.
    pub region: String,
    /// The URL of the first reports queue. An install that was registered when the tenant had only one such queue uses it.
    pub reports_queue_url: String,
    /// The runner's program for customers' machines, if the tenant publishes a program.
    pub runner: Option<RunnerProgram>,
    pub store: Arc<dyn Store>,
    pub versions: Versions,
    pub root: Arc<dyn RootKey>,
}

/// The URL and the digest of the runner's program.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct RunnerProgram {
    pub url: String,
    /// The SHA-256 digest of the program, in 64 hex digits.
    pub sha256: String,
}

impl RenderStack {
    /// Returns the install's stack, with the roles and the customer's inputs of the version that the install follows.
    ///
    /// # Errors
    /// NotFound, Conflict while the orders queue does not exist yet, Invalid for a role or an input that cannot be
    /// rendered, or the ports' errors.
    pub async fn render_stack(&self, id: &InstallId) -> Result<InstallStack, AppError> {
        self.render(id, None).await
    }

    /// Returns the install's stack, with the roles and the customer's inputs of this version of the app.
    ///
    /// # Errors
    /// The errors of [`Self::render_stack`].
    pub async fn render_stack_of_version(&self, id: &InstallId, version: &Digest) -> Result<InstallStack, AppError> {
        self.render(id, Some(version)).await
    }

    async fn render(&self, id: &InstallId, version: Option<&Digest>) -> Result<InstallStack, AppError> {
        let install = table::install(&*self.store, id).await?.value;
        let app = install.require_app()?;
        let queue = install.orders_queue_url.clone().ok_or_else(|| {
            AppError::not_yet(format!("orders queue of install `{id}` does not exist yet; try again in a moment"))
        })?;
        let version = match version {
            Some(version) => self.versions.load(app, Some(version)).await?,
            None => followed(&self.versions, app, &install.follows).await?.version,
        };
        // An earlier release of Freehold may have synced the version without its terms.
        terms::keep(&*self.store, &version.document).await?;
        let place = Place {
            tenant: self.tenant.clone(),
            account: self.account.clone(),
            region: self.region.clone(),
            orders_queue_url: queue,
            reports_queue_url: install.reports_queue_url.clone().unwrap_or_else(|| self.reports_queue_url.clone()),
            root_key: self.root.public_key().await?,
            second_root_key: self.root.second(),
            runner: self.runner.clone(),
        };
        let template = template(&place, &install, &version.version, &version.document)?;
        let (title, description) = title_and_description(&self.tenant, &install, &version.document);
        Ok(InstallStack {
            install: id.clone(),
            stack_name: names::install_stack(&self.tenant, id),
            title,
            description,
            digest: Digest::of(template.as_bytes()),
            template,
            version: version.version,
        })
    }
}

/// The facts about a tenant that an install's stack contains.
#[derive(Debug, Clone)]
pub struct Place {
    pub tenant: TenantName,
    /// The tenant's own account.
    pub account: AccountId,
    /// The region of the tenant's queues.
    pub region: String,
    pub orders_queue_url: String,
    pub reports_queue_url: String,
    pub root_key: PublicKey,
    /// The only root key that may follow, if one was announced.
    pub second_root_key: Option<PublicKey>,
    pub runner: Option<RunnerProgram>,
}

/// The values for the install stack, in the form that the template reads.
#[derive(Serialize)]
struct Stack<'a> {
    tenant: &'a TenantName,
    tenant_account: &'a AccountId,
    tenant_key: Quoted,
    tenant_second_key: Quoted,
    install: &'a InstallId,
    app: &'a AppName,
    account: &'a AccountId,
    region: &'a str,
    orders_queue_arn: Quoted,
    orders_queue_url: Quoted<&'a str>,
    reports_queue_arn: Quoted,
    reports_queue_url: Quoted<&'a str>,
    /// Whether the template offers VPC endpoints for the queues.
    private_endpoints: bool,
    runner_url: Quoted<&'a str>,
    runner_digest: Quoted<&'a str>,
    machine_type: String,
    /// The numbers of the availability zones that the app's network spans; empty for an app that needs no network.
    network: &'static [u8],
    contract: Digest,
    version: &'a str,
    provision: Granted,
    maintenance: Granted,
    deprovision: Granted,
    /// The roles that the app defines: custom roles and break-glass roles.
    roles: Vec<Role>,
    /// The prefixes of the logical names of the break-glass roles.
    break_glass: Vec<String>,
    #[serde(flatten)]
    questions: Questions,
}

/// Returns the template of an install's stack, with the roles and the customer's inputs of an app version.
///
/// # Errors
/// Invalid for a role or an input that cannot be rendered, or for a template that is too large.
pub fn template(place: &Place, install: &Install, digest: &Digest, version: &AppVersion) -> Result<String, AppError> {
    let template = fill(&stack(place, install, digest, version)?)?;
    parameters::check_count(version, &template)?;
    parameters::check_size(version, template.len())?;
    Ok(template)
}

fn stack<'a>(
    place: &'a Place,
    install: &'a Install,
    digest: &'a Digest,
    version: &'a AppVersion,
) -> Result<Stack<'a>, AppError> {
    let (tenant, id) = (&place.tenant, &install.id);
    let partition = Partition::of_region(&place.region).name;
    let arn = |name: String| Quoted(format!("arn:{partition}:sqs:{}:{}:{name}", place.region, place.account));
    let runner = place.runner.as_ref();
    let roles = named_roles::roles(tenant, version, install)?;
    Ok(Stack {
        tenant,
        tenant_account: &place.account,
        tenant_key: Quoted(place.root_key.to_string()),
        tenant_second_key: Quoted(
            place.second_root_key.as_ref().map_or_else(|| "none".to_owned(), PublicKey::to_string),
        ),
        install: id,
        app: &version.app,
        account: &install.account,
        region: &install.region,
        orders_queue_arn: arn(names::orders_queue(tenant, id)),
        orders_queue_url: Quoted(&place.orders_queue_url),
        reports_queue_arn: arn(names::queue_of(&place.reports_queue_url).to_owned()),
        reports_queue_url: Quoted(&place.reports_queue_url),
        // VPC endpoints reach only the queues in their own region.
        private_endpoints: install.region == place.region,
        runner_url: Quoted(runner.map_or("", |runner| &runner.url)),
        runner_digest: Quoted(runner.map_or("", |runner| &runner.sha256)),
        machine_type: version.machine_type(),
        network: if version.needs_network() { network_zones(&install.region) } else { &[] },
        contract: terms::digest(version)?,
        version: digest.hex().get(..12).unwrap_or_default(),
        provision: granted_to(Mode::Provision, tenant, version, install)?,
        maintenance: granted_to(Mode::Maintenance, tenant, version, install)?,
        deprovision: granted_to(Mode::Deprovision, tenant, version, install)?,
        break_glass: named_roles::break_glass(&roles),
        roles,
        questions: parameters::questions(version)?,
    })
}

/// Returns the permissions of the role for a mode.
fn granted_to(mode: Mode, tenant: &TenantName, version: &AppVersion, install: &Install) -> Result<Granted, AppError> {
    let role = version.roles.iter().find(|role| role.mode == mode);
    let policies = role.map(|role| role.policies.as_slice()).unwrap_or_default();
    let boundary = role.and_then(|role| role.boundary.as_deref());
    granted(policies, boundary, &format!("role `{}`", mode.as_str()), tenant, version, install)
}

/// Checks that the install stack of `version` can be rendered and is not larger than CloudFormation accepts, for any
/// tenant and install: the check uses the longest names.
///
/// # Errors
/// Invalid, for the reasons of [`template`]. A version with parts that cannot be deployed has no stack to check.
pub fn check(version: &AppVersion) -> Result<(), AppError> {
    if !undeployable(version).is_empty() {
        return Ok(());
    }
    let (place, install) = example(version).map_err(|error| AppError::internal(error.to_string()))?;
    template(&place, &install, &Digest::of(b""), version).map(drop)
}

/// Returns a tenant and an install that exist only for this check. The install has a value for each input that the
/// vendor must answer.
pub(super) fn example(version: &AppVersion) -> Result<(Place, Install), IdError> {
    let tenant: TenantName = "t".repeat(16).parse()?;
    let id: InstallId = "i".repeat(20).parse()?;
    let account: AccountId = "0".repeat(12).parse()?;
    let root_key = PublicKey::from(SigningKey::from_bytes(&[0; 32]).verifying_key());
    let region = "ap-southeast-1".to_owned();
    let queue = format!("https://sqs.{region}.amazonaws.com/{account}/fh-{tenant}--");
    let place = Place {
        tenant,
        account: account.clone(),
        region: region.clone(),
        orders_queue_url: format!("{queue}{id}.fifo"),
        reports_queue_url: format!("{queue}reports"),
        second_root_key: Some(root_key.clone()),
        root_key,
        runner: None,
    };
    let given = version.inputs.iter().filter(|input| !input.customer && input.default.is_none());
    let inputs = given.map(|input| (input.name.clone(), Value::from("example"))).collect();
    let serves = Serves::App { app: version.app.clone(), version: None };
    let install = Install { inputs, ..Install::new(id, serves, account, region, Timestamp::default()) };
    Ok((place, install))
}
