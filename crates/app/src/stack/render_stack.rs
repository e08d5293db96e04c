//! Fills the install stack's template: the same install and app version give the same bytes.

use std::collections::BTreeMap;
use std::sync::Arc;

use freehold_domain::deployable::undeployable;
use freehold_domain::install::{Install, Serves};
use freehold_protocol::api::InstallStack;
use freehold_protocol::app_version::AppVersion;
use freehold_protocol::envelope::{PublicKey, enrolment_key};
use freehold_protocol::order::Mode;
use freehold_protocol::{AccountId, Digest, IdError, InstallId, TenantName, Timestamp};
use serde_json::Value;

use crate::AppError;
use crate::app_version::versions::Versions;
use crate::contract::terms;
use crate::ports::{RootKey, Store};
use crate::stack::named_roles;
use crate::stack::parameters;
use crate::stack::role_policy::granted;
use crate::stack::template::{TEMPLATE, fill};
use crate::table;

/// What rendering needs.
#[derive(Clone)]
pub struct RenderStack {
    pub tenant: TenantName,
    /// The tenant's own account.
    pub account: AccountId,
    /// The region of the tenant's queues.
    pub region: String,
    pub reports_queue_url: String,
    /// The program that customers' machines run, if the tenant publishes one.
    pub runner: Option<RunnerProgram>,
    pub store: Arc<dyn Store>,
    pub versions: Versions,
    pub root: Arc<dyn RootKey>,
}

/// Where the runner's program is, and which one it is.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct RunnerProgram {
    pub url: String,
    /// 64 hex digits.
    pub sha256: String,
}

impl RenderStack {
    /// Returns the install's stack, with the roles and the customer's inputs that a version asks for, the app's latest
    /// unless another is named.
    ///
    /// # Errors
    /// NotFound, Conflict before the orders queue is made, Invalid for a role or an input that cannot be rendered, or a
    /// port's.
    pub async fn render(&self, id: &InstallId, version: Option<&Digest>) -> Result<InstallStack, AppError> {
        let install = table::install(&*self.store, id).await?.value;
        let app = install.app().ok_or_else(|| AppError::invalid(format!("install `{id}` runs no app")))?;
        let queue = install.orders_queue_url.clone().ok_or_else(|| {
            AppError::not_yet(format!("orders queue of install `{id}` is being made; try again in a moment"))
        })?;
        let version = self.versions.load(app, version).await?;
        // A version that was synced before there were terms has them from now on.
        terms::keep(&*self.store, &version.document).await?;
        let place = Place {
            tenant: self.tenant.clone(),
            account: self.account.clone(),
            region: self.region.clone(),
            orders_queue_url: queue,
            reports_queue_url: self.reports_queue_url.clone(),
            root_key: self.root.public_key().await?,
            runner: self.runner.clone(),
        };
        let template = template(&place, &install, &version.version, &version.document)?;
        Ok(InstallStack {
            install: id.clone(),
            stack_name: format!("freehold-{id}"),
            digest: Digest::of(template.as_bytes()),
            template,
            version: version.version,
        })
    }
}

/// The tenant as an install's stack names it.
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
    pub runner: Option<RunnerProgram>,
}

/// Returns the template of an install's stack, with the roles and the customer's inputs of an app version.
///
/// # Errors
/// Invalid for a role or an input that cannot be rendered, or for a template that is too large.
pub fn template(place: &Place, install: &Install, digest: &Digest, version: &AppVersion) -> Result<String, AppError> {
    let (tenant, id) = (&place.tenant, &install.id);
    let arn = |name: String| format!("arn:aws:sqs:{}:{}:{name}", place.region, place.account);
    let mut words = BTreeMap::from([
        ("TENANT".to_owned(), tenant.to_string()),
        ("TENANT_ACCOUNT".to_owned(), place.account.to_string()),
        ("TENANT_KEY".to_owned(), place.root_key.to_string()),
        ("INSTALL".to_owned(), id.to_string()),
        ("APP".to_owned(), version.app.to_string()),
        ("ACCOUNT".to_owned(), install.account.to_string()),
        ("REGION".to_owned(), install.region.clone()),
        ("ORDERS_QUEUE_ARN".to_owned(), arn(format!("fh-{tenant}-{id}.fifo"))),
        ("ORDERS_QUEUE_URL".to_owned(), place.orders_queue_url.clone()),
        ("REPORTS_QUEUE_ARN".to_owned(), arn(format!("fh-{tenant}-reports"))),
        ("REPORTS_QUEUE_URL".to_owned(), place.reports_queue_url.clone()),
        // Endpoints of a VPC reach the queues of their own region only.
        (
            "PRIVATE_VALUES".to_owned(),
            if install.region == place.region { r#""true", "false""# } else { r#""false""# }.to_owned(),
        ),
        ("RUNNER_URL".to_owned(), place.runner.as_ref().map(|runner| runner.url.clone()).unwrap_or_default()),
        ("RUNNER_DIGEST".to_owned(), place.runner.as_ref().map(|runner| runner.sha256.clone()).unwrap_or_default()),
        ("CONTRACT".to_owned(), terms::digest(version)?.to_string()),
        ("VERSION".to_owned(), digest.hex().get(..12).unwrap_or_default().to_owned()),
    ]);
    for (mode, word) in
        [(Mode::Provision, "PROVISION"), (Mode::Maintenance, "MAINTENANCE"), (Mode::Deprovision, "DEPROVISION")]
    {
        let role = version.roles.iter().find(|role| role.mode == mode);
        let policies = role.map(|role| role.policies.as_slice()).unwrap_or_default();
        let (policies, managed) = granted(policies, &format!("role `{}`", mode.as_str()), version, install)?;
        words.insert(format!("{word}_POLICIES"), policies);
        words.insert(format!("{word}_MANAGED"), managed);
    }
    let named = named_roles::words(version, install, &words)?;
    words.extend(named);
    words.extend(parameters::words(version, tenant, id)?);
    let template = fill(TEMPLATE, &words)?;
    parameters::check_size(version, template.len())?;
    Ok(template)
}

/// Checks that the install stack of `version` can be rendered and is not larger than CloudFormation takes, for whichever
/// tenant and install: with names as long as can be.
///
/// # Errors
/// Invalid, as [`template`]. A version that cannot be deployed here yet has no stack to check.
pub fn check(version: &AppVersion) -> Result<(), AppError> {
    if !undeployable(version).is_empty() {
        return Ok(());
    }
    let (place, install) = example(version).map_err(|error| AppError::internal(error.to_string()))?;
    template(&place, &install, &Digest::of(b""), version).map(drop)
}

/// Returns a tenant and an install that no app knows, with a value for whatever the vendor has to give.
fn example(version: &AppVersion) -> Result<(Place, Install), IdError> {
    let tenant: TenantName = "t".repeat(20).parse()?;
    let id: InstallId = "i".repeat(30).parse()?;
    let account: AccountId = "0".repeat(12).parse()?;
    let key = PublicKey::from(enrolment_key(&tenant, &id, "").verifying_key());
    let region = "ap-southeast-1".to_owned();
    let queue = format!("https://sqs.{region}.amazonaws.com/{account}/fh-{tenant}-");
    let place = Place {
        tenant,
        account: account.clone(),
        region: region.clone(),
        orders_queue_url: format!("{queue}{id}.fifo"),
        reports_queue_url: format!("{queue}reports"),
        root_key: key.clone(),
        runner: None,
    };
    let given = version.inputs.iter().filter(|input| !input.customer && input.default.is_none());
    let inputs = given.map(|input| (input.name.clone(), Value::from("example"))).collect();
    let serves = Serves::App { app: version.app.clone(), version: None };
    let install = Install { inputs, ..Install::new(id, serves, account, region, Timestamp::default(), key) };
    Ok((place, install))
}
