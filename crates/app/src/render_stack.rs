//! Fills the install stack's template: the same install and app version give the same bytes.

use std::collections::BTreeMap;
use std::sync::Arc;

use freehold_domain::install::Install;
use freehold_protocol::api::InstallStack;
use freehold_protocol::app_version::{AppVersion, ModeRole, RolePolicy};
use freehold_protocol::envelope::PublicKey;
use freehold_protocol::order::Mode;
use freehold_protocol::{AccountId, Digest, InstallId, TenantName};
use serde_json::{Value, json};

use crate::ports::{RootKey, Store};
use crate::records;
use crate::versions::Versions;
use crate::{AppError, role_policy, stack_inputs};

/// The template, with `%{...}` placeholders.
pub(crate) const TEMPLATE: &str = include_str!("../../../infra/install.yaml");

/// What rendering needs.
#[derive(Clone)]
pub struct RenderStack {
    pub tenant: TenantName,
    /// The tenant's own account.
    pub account: AccountId,
    /// The region of the tenant's queues.
    pub region: String,
    pub reports_queue_url: String,
    pub store: Arc<dyn Store>,
    pub versions: Versions,
    pub root: Arc<dyn RootKey>,
}

impl RenderStack {
    /// Returns the install's stack, with the roles and the customer's inputs that the app's latest version asks for.
    ///
    /// # Errors
    /// NotFound, Conflict before the orders queue is made, Invalid for a role or an input that cannot be rendered, or a
    /// port's.
    pub async fn render(&self, id: &InstallId) -> Result<InstallStack, AppError> {
        let install = records::install(&*self.store, id).await?.value;
        let app = install.app().ok_or_else(|| AppError::invalid(format!("install `{id}` runs no app")))?;
        let queue = install.orders_queue_url.clone().ok_or_else(|| {
            AppError::not_yet(format!("orders queue of install `{id}` is being made; try again in a moment"))
        })?;
        let version = self.versions.load(app, None).await?;
        let place = Place {
            tenant: self.tenant.clone(),
            account: self.account.clone(),
            region: self.region.clone(),
            orders_queue_url: queue,
            reports_queue_url: self.reports_queue_url.clone(),
            root_key: self.root.public_key().await?,
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
        ("VERSION".to_owned(), digest.hex().get(..12).unwrap_or_default().to_owned()),
    ]);
    for (mode, word) in
        [(Mode::Provision, "PROVISION"), (Mode::Maintenance, "MAINTENANCE"), (Mode::Deprovision, "DEPROVISION")]
    {
        let (policies, managed) = role(version, mode, install)?;
        words.insert(format!("{word}_POLICIES"), policies.to_string());
        words.insert(format!("{word}_MANAGED"), managed.to_string());
    }
    words.extend(stack_inputs::words(version, tenant, id)?);
    let template = fill(TEMPLATE, &words)?;
    stack_inputs::check_size(version, template.len())?;
    Ok(template)
}

/// Replaces every `%{WORD}` of `template` in one pass, so that a placeholder inside a value stays a text.
fn fill(template: &str, words: &BTreeMap<String, String>) -> Result<String, AppError> {
    let mut pieces = template.split("%{");
    let mut filled = pieces.next().unwrap_or_default().to_owned();
    for piece in pieces {
        let (word, rest) = piece.split_once('}').unwrap_or((piece, ""));
        let value = words.get(word).ok_or_else(|| {
            // INVARIANT: the template is part of this crate, and a test renders it.
            AppError::internal(format!("install template has an unknown placeholder `{word}`"))
        })?;
        filled.push_str(value);
        filled.push_str(rest);
    }
    Ok(filled)
}

/// Returns the inline policies and managed policy ARNs of a mode's role.
fn role(version: &AppVersion, mode: Mode, install: &Install) -> Result<(Value, Value), AppError> {
    let (mut inline, mut managed) = (Vec::new(), Vec::new());
    let wanted = version.roles.iter().filter(|role| role.mode == mode);
    for (at, policy) in wanted.flat_map(|role: &ModeRole| &role.policies).enumerate() {
        match policy {
            RolePolicy::Managed(name) => managed.push(Value::from(format!("arn:aws:iam::aws:policy/{name}"))),
            RolePolicy::Inline { name, document } => inline.push(json!({
                "PolicyName": policy_name(name, at),
                "PolicyDocument": role_policy::document(document, mode, version, install)?,
            })),
            // INVARIANT: an app with such a role cannot be installed (`deployable`).
            RolePolicy::GcpPredefined(role) => {
                return Err(AppError::internal(format!("role `{role}` of Google Cloud cannot be rendered")));
            }
        }
    }
    Ok((Value::Array(inline), Value::Array(managed)))
}

fn policy_name(name: &str, at: usize) -> String {
    let kept: String = name.chars().filter(|c| c.is_ascii_alphanumeric() || "+=,.@_-".contains(*c)).take(100).collect();
    if kept.is_empty() { format!("policy-{at}") } else { kept }
}
