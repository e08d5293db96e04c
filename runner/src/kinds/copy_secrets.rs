//! `secrets`: copies secrets of the app into a cluster (server-side apply). Each becomes a Kubernetes secret with the
//! key `value`. Earlier copies that are not wanted any more are removed, unless the order keeps them.
//!
//! A redelivery starts again from the beginning: applying a copy is idempotent, and the inventory names each copy that
//! an earlier attempt may have made.

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use freehold_aws_errors::chain;
use freehold_protocol::app_version::{Secret, SecretFormat};
use freehold_protocol::order::{CopySecrets, Mode, SecretCopy};
use serde_json::{Value, json};

use crate::job::bucket::JobBucket;
use crate::job::failure::{Failure, until_stopped};
use crate::job::{Job, sdk_config};
use crate::kinds::inventory::Inventory;
use crate::kinds::result::Done;
use crate::kinds::templates::Templates;
use crate::kubernetes::{
    Api, Applied, COMPONENT, Change, ClusterAccess, ClusterError, Id, MANAGER, Object, Plan, annotation,
};
use crate::state_objects;

/// Copies the secrets that the order names. Removes earlier copies that the order does not name, unless the order keeps
/// them.
pub(super) async fn run(job: &Job, work: &CopySecrets) -> Result<Done, Failure> {
    let templates = Templates::of(job);
    let mut copies = Vec::new();
    for copy in &work.copies {
        copies.extend(object(job, &templates, copy)?);
    }
    let bucket = JobBucket::of(job, &sdk_config(job).await)?;
    let change = match until_stopped(job, async { Ok(prepare(job, work, &bucket, &copies).await) }).await? {
        Ok(change) => change,
        Err(Trouble::Cluster(error)) if copies.is_empty() && may_be_left(job, &error) => {
            job.log.line(&format!("copies of secrets were not removed: {}", chain(&error)));
            return Ok(Done::default());
        }
        Err(Trouble::Cluster(error)) => return Err(Failure::because("the copies of secrets", &error)),
        Err(Trouble::Other(failure)) => return Err(failure),
    };
    until_stopped(job, change.make(job, &bucket, &copies)).await.map_err(Failure::after_change)?;
    let names = change.ids.iter().map(|id| Value::from(id.to_string())).collect();
    Ok(Done { outputs: [("copies".to_owned(), Value::Array(names))].into(), ..Done::default() })
}

/// The reason why copies were not changed.
enum Trouble {
    /// The cluster does not exist, does not answer, or does not accept the job's role.
    Cluster(ClusterError),
    Other(Failure),
}

impl From<ClusterError> for Trouble {
    fn from(error: ClusterError) -> Self {
        Self::Cluster(error)
    }
}

impl From<Failure> for Trouble {
    fn from(failure: Failure) -> Self {
        Self::Other(failure)
    }
}

/// Returns whether a job that only removes copies succeeds despite `error`. Copies in a cluster that no longer exists
/// need no removal, and a teardown continues if it cannot use the cluster.
fn may_be_left(job: &Job, error: &ClusterError) -> bool {
    let tears_down = matches!(job.order.mode, Mode::Deprovision);
    match error {
        ClusterError::Absent { .. } | ClusterError::Unnamed { .. } => true,
        ClusterError::NotActive { .. }
        | ClusterError::NotDescribed { .. }
        | ClusterError::Silent { .. }
        | ClusterError::Unauthorized { .. }
        | ClusterError::Forbidden { .. } => tears_down,
        ClusterError::Name(_)
        | ClusterError::NoToken { .. }
        | ClusterError::Kubeconfig { .. }
        | ClusterError::Refused { .. }
        | ClusterError::Malformed { .. } => false,
    }
}

/// The changes that the job makes in the cluster.
struct ChangeOfCopies {
    api: Api,
    /// The ids of the copies that are wanted.
    ids: Vec<Id>,
    /// Earlier copies that are not wanted any more, and that the order removes.
    gone: Vec<Id>,
    /// The inventory after the change.
    after: Inventory,
}

/// Plans the change, and writes the inventory. The inventory names every copy before it is made, so it also names the
/// copies of an attempt that is killed.
async fn prepare(
    job: &Job,
    work: &CopySecrets,
    bucket: &JobBucket,
    copies: &[Object],
) -> Result<ChangeOfCopies, Trouble> {
    let access = ClusterAccess::of(job, &work.cluster).await?;
    let api = access.api()?;
    let before = Inventory::read_at(bucket, &state_objects::copies(), access.arn()).await?;
    let ids: Vec<Id> = copies.iter().map(|copy| copy.id.clone()).collect();
    let gone = if work.keeps_others { Vec::new() } else { before.without(&ids) };
    let mut plan = plan(job, &api, copies).await?;
    for id in &gone {
        let change = if is_ours(job, &api, id).await? { Change::Delete } else { Change::Keep };
        plan.changes.push((change, id.clone()));
    }
    job.log.line(&format!("plan: {plan}"));
    plan.lines().for_each(|line| job.log.line(&line));
    let all = before.with(&ids);
    all.write_at(bucket, &state_objects::copies()).await?;
    let after = if work.keeps_others { all } else { Inventory::new(access.arn(), ids.clone()) };
    Ok(ChangeOfCopies { api, ids, gone, after })
}

impl ChangeOfCopies {
    async fn make(&self, job: &Job, bucket: &JobBucket, copies: &[Object]) -> Result<(), Failure> {
        for copy in copies {
            make_namespace(job, &self.api, copy).await?;
            let applied = self.api.apply(copy, Applied::Done).await;
            applied.map_err(|error| Failure::because(&copy.place, &error))?;
        }
        for id in &self.gone {
            let removed = remove(job, &self.api, id).await;
            removed.map_err(|error| Failure::because(&format!("the copies of secrets: {id}"), &error))?;
        }
        self.after.write_at(bucket, &state_objects::copies()).await
    }
}

/// Removes a copy that is not wanted any more. A copy that another field manager has taken over stays.
async fn remove(job: &Job, api: &Api, id: &Id) -> Result<(), ClusterError> {
    if is_ours(job, api, id).await? {
        return api.delete(id).await;
    }
    job.log.line(&format!("did not remove {id}: it does not exist any more, or it belongs to somebody else"));
    Ok(())
}

/// Returns whether a Kubernetes secret is a copy of this install, whose value no other field manager has set.
async fn is_ours(job: &Job, api: &Api, id: &Id) -> Result<bool, ClusterError> {
    let live = api.get(id).await?;
    let is_copy = live.as_ref().and_then(part) == Some(&owner(job));
    let managers = live.as_ref().and_then(|live| live.get("metadata")?.get("managedFields")?.as_array());
    let of_data = managers.into_iter().flatten().filter(|one| one.pointer("/fieldsV1/f:data").is_some());
    let mut others = of_data.filter(|one| one.get("manager").and_then(Value::as_str) != Some(MANAGER));
    Ok(is_copy && others.next().is_none())
}

/// Returns the install and the part of the app to which an object belongs.
fn part(live: &Value) -> Option<&str> {
    annotation(live, COMPONENT)
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
            "labels": job.order.labels(),
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

/// Returns the annotation of a copy. The colon distinguishes it from a component's annotation. It names the tenant,
/// because two vendors may have installs of the same name in one cluster.
fn owner(job: &Job) -> String {
    format!("{}/secrets:copies", freehold_protocol::names::owner(&job.order.tenant, &job.order.install))
}

/// Returns the changes that the copies would make. Fails if a Kubernetes secret with a copy's name belongs to another
/// part of the app.
async fn plan(job: &Job, api: &Api, copies: &[Object]) -> Result<Plan, Trouble> {
    let mut changes = Vec::new();
    for copy in copies {
        let live = api.get(&copy.id).await?;
        let other = live.as_ref().and_then(part);
        if let Some(other) = other.filter(|other| *other != owner(job)) {
            return Err(Failure::new(format!(
                "{}: {} belongs to `{other}`; remove it from `{other}` and deploy `{other}` first, or give the copy \
                 another name",
                copy.place, copy.id
            ))
            .into());
        }
        let change = api.change(copy, live.as_ref()).await;
        changes.push((change.map_err(|error| Failure::because(&copy.place, &error))?, copy.id.clone()));
    }
    Ok(Plan { changes })
}

/// Makes the namespace of a copy if it is missing. No job removes the namespace, because components use it.
async fn make_namespace(job: &Job, api: &Api, copy: &Object) -> Result<(), Failure> {
    let name = copy.id.namespace.as_deref().unwrap_or_default();
    let labels = job.order.shared_labels();
    if api.make_namespace(name, &labels).await.map_err(|error| Failure::because(&copy.place, &error))? {
        job.log.line(&format!("created namespace `{name}`"));
    }
    Ok(())
}
