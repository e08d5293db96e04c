//! `secrets`: copies secrets of the app into a cluster (server-side apply). Each becomes a Kubernetes secret with the
//! key `value`.
//!
//! A redelivery starts again from the beginning, because applying a copy is idempotent.

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use freehold_protocol::app_version::{Secret, SecretFormat};
use freehold_protocol::order::{CopySecrets, SecretCopy};
use serde_json::{Value, json};

use crate::kinds::failure::Failure;
use crate::kinds::result::{Done, until_stopped};
use crate::kinds::templates::Templates;
use crate::kubernetes::{Api, Applied, ClusterAccess, Object, Plan};
use crate::work::job::Job;

/// The annotation that names the install and the part of the app to which an object belongs.
const COMPONENT: &str = "freehold/component";

/// Copies the secrets that the order names.
pub(super) async fn run(job: &Job, work: &CopySecrets) -> Result<Done, Failure> {
    let templates = Templates::of(job);
    let mut copies = Vec::new();
    for copy in &work.copies {
        copies.extend(object(job, &templates, copy)?);
    }
    let access = until_stopped(job, async { Ok(ClusterAccess::of(job, &work.cluster).await?) }).await?;
    let api = access.api()?;
    let plan = until_stopped(job, plan(job, &api, &copies)).await?;
    job.log.line(&format!("plan: {plan}"));
    plan.lines().for_each(|line| job.log.line(&line));
    let applied = async {
        for copy in &copies {
            make_namespace(job, &api, copy).await?;
            let applied = api.apply(copy, Applied::Done).await;
            applied.map_err(|error| Failure::because(&copy.place, &error))?;
        }
        Ok(())
    };
    until_stopped(job, applied).await.map_err(Failure::after_change)?;
    let names = copies.iter().map(|copy| Value::from(copy.id.to_string())).collect();
    Ok(Done { outputs: [("copies".to_owned(), Value::Array(names))].into(), artifact: None })
}

/// Returns the Kubernetes secret for a copy, or `None` when the customer left the app's secret empty.
fn object(job: &Job, templates: &Templates, copy: &SecretCopy) -> Result<Option<Object>, Failure> {
    let SecretCopy { secret: name, .. } = copy;
    let secret = job.order.secrets.iter().find(|secret| secret.name == *name);
    let value = job.order.context.pointer("/nuon/secrets").and_then(|all| all.get(name)).and_then(Value::as_str);
    let (Some(secret), Some(value)) = (secret, value) else {
        job.log.line(&format!("secret `{name}` was left empty in the install stack: the cluster gets no copy"));
        return Ok(None);
    };
    let place = format!("copy of secret `{name}`");
    let [namespace, called] = [("namespace", &copy.namespace), ("name", &copy.name)]
        .map(|(key, text)| templates.text(&format!("`kubernetes_secret_{key}` of secret `{name}`"), text));
    let value = json!({
        "apiVersion": "v1",
        "kind": "Secret",
        "type": "Opaque",
        "metadata": {
            "name": called?,
            "namespace": namespace?,
            "annotations": { COMPONENT: owner(job) },
        },
        "data": { "value": data(secret, value)? },
    });
    Object::new(place, value).map(Some).map_err(Failure::new)
}

/// Returns the data of the Kubernetes secret, in base64.
fn data(secret: &Secret, value: &str) -> Result<String, Failure> {
    match secret.format {
        SecretFormat::Plain => Ok(STANDARD.encode(value)),
        SecretFormat::Base64 => {
            let packed: String = value.split_whitespace().collect();
            let bytes = STANDARD.decode(&packed).map_err(|_| {
                Failure::new(format!(
                    "secret `{}` has `format = \"base64\"`, and its value is not base64; enter it again as parameter `{}` \
                     of the install stack",
                    secret.name,
                    secret.parameter()
                ))
            })?;
            Ok(STANDARD.encode(bytes))
        }
    }
}

fn owner(job: &Job) -> String {
    format!("{}/secrets", job.order.install)
}

/// Returns the changes that the copies would make. Fails if a Kubernetes secret with a copy's name belongs to another
/// part of the app.
async fn plan(job: &Job, api: &Api, copies: &[Object]) -> Result<Plan, Failure> {
    let mut changes = Vec::new();
    for copy in copies {
        let live = api.get(&copy.id).await?;
        let other = live.as_ref().and_then(|live| live.get("metadata")?.get("annotations")?.get(COMPONENT)?.as_str());
        if let Some(other) = other.filter(|other| *other != owner(job)) {
            return Err(Failure::new(format!(
                "{}: {} belongs to `{other}`; remove it from `{other}` and deploy `{other}` first, or give the copy \
                 another name",
                copy.place, copy.id
            )));
        }
        let change = api.change(copy, live.as_ref()).await;
        changes.push((change.map_err(|error| Failure::because(&copy.place, &error))?, copy.id.clone()));
    }
    Ok(Plan { changes })
}

/// Makes the namespace of a copy if it is missing. No job removes the namespace, because components use it.
async fn make_namespace(job: &Job, api: &Api, copy: &Object) -> Result<(), Failure> {
    let name = copy.id.namespace.as_deref().unwrap_or_default();
    if api.make_namespace(name).await.map_err(|error| Failure::because(&copy.place, &error))? {
        job.log.line(&format!("created namespace `{name}`"));
    }
    Ok(())
}
