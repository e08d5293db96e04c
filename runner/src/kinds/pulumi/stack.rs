//! Writes the stack's settings file `Pulumi.<stack>.yaml`: its configuration, and the key that encrypts secrets in its
//! state.
//!
//! Pulumi encrypts secrets with a data key, and stores that key encrypted by a key of AWS KMS (Pulumi documentation,
//! "AWS Key Management Service"). The runner makes the data key with the install's key, which stays in the customer's
//! account, and stores it beside the state. So the roles of modes need no permission to encrypt with the key itself.

use std::collections::BTreeMap;
use std::path::Path;

use aws_sdk_kms::types::DataKeySpec;
use aws_types::SdkConfig;
use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use freehold_protocol::names;
use freehold_protocol::order::RunPulumi;
use serde::{Deserialize, Serialize};
use serde_json::{Map, Value, json};

use super::files::PROGRAM;
use crate::job::Job;
use crate::job::bucket::{JobBucket, explain};
use crate::job::failure::Failure;
use crate::kinds::templates::Templates;
use crate::kubernetes::documents;
use crate::state_objects;
use crate::workspace::{self, Kind};

/// The names of the file with the program's project, in the order in which Pulumi looks for them.
const PROJECTS: [&str; 2] = ["Pulumi.yaml", "Pulumi.yml"];
const MAX_BYTES: usize = 64 * 1024;
/// The configuration key with the tags that the AWS provider sets on everything that it makes.
const DEFAULT_TAGS: &str = "aws:defaultTags";

/// The encrypted data key of a stack, as it is stored beside the state. The names are those of the settings file.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
struct StackKey {
    secretsprovider: String,
    encryptedkey: String,
}

/// Returns the name of the stack: each component has a state of its own, so the install's id is enough.
pub(super) fn name(job: &Job) -> String {
    job.order.install.to_string()
}

/// Returns the address of the key that encrypts the data key of the stack.
pub(super) fn secrets_provider(job: &Job) -> String {
    let alias = names::install(&job.order.tenant, &job.order.install);
    format!("awskms://alias/{alias}?region={}", job.config.region)
}

/// Writes the settings file of the stack into the program's directory. A file of that name in the program is replaced.
pub(super) async fn write(job: &Job, work: &RunPulumi, sdk: &SdkConfig, bucket: &JobBucket) -> Result<(), Failure> {
    let project = project(job).await?;
    let config = config(job, work, &project)?;
    let key = key(job, work, sdk, bucket).await?;
    let settings = json!({
        "secretsprovider": key.secretsprovider,
        "encryptedkey": key.encryptedkey,
        "config": config,
    });
    // JSON is YAML too.
    let file = Path::new(PROGRAM).join(format!("Pulumi.{}.yaml", name(job)));
    Ok(workspace::write(&job.workspace, file, settings.to_string(), Kind::Document).await?)
}

/// Returns the name of the program's project.
async fn project(job: &Job) -> Result<String, Failure> {
    for file in PROJECTS {
        if job.workspace.join(PROGRAM).join(file).symlink_metadata().is_err() {
            continue;
        }
        let text = workspace::read_text(&job.workspace, Path::new(PROGRAM).join(file)).await?;
        let documents = documents(&text).map_err(|error| Failure::new(format!("`{file}`, {error}")))?;
        let found = documents.first().and_then(|document| document.get("name")?.as_str());
        return found.map(str::to_owned).ok_or_else(|| Failure::new(format!("`{file}` of the program has no `name`")));
    }
    Err(Failure::new("the program has no `Pulumi.yaml`; build the component again"))
}

/// Returns the configuration of the stack. A key without a namespace belongs to the project. The AWS provider works in
/// the install's region and sets the tags of the order on the resources that it makes: the permissions boundary denies
/// calls that change the code of a resource without the tag of the owner, or run commands on it.
fn config(job: &Job, work: &RunPulumi, project: &str) -> Result<Map<String, Value>, Failure> {
    let templates = Templates::of(job);
    let mut config = Map::new();
    for (key, value) in &work.config {
        let value = templates.value(&format!("configuration `{key}`"), value)?;
        let key = if key.contains(':') { key.clone() } else { format!("{project}:{key}") };
        config.insert(key, value);
    }
    config.entry("aws:region").or_insert_with(|| Value::from(job.config.region.as_str()));
    let tags = tagged(config.remove(DEFAULT_TAGS), job.order.tags()).ok_or_else(|| {
        let owner = crate::kinds::owner(&job.order.work);
        Failure::new(format!("{owner}: configuration `{DEFAULT_TAGS}` must be a table with the table `tags`"))
    })?;
    config.insert(DEFAULT_TAGS.to_owned(), tags);
    Ok(config)
}

/// Returns the default tags of the app with those of the order. `None` when they are not a table with the table `tags`.
fn tagged(tags: Option<Value>, ours: BTreeMap<&str, String>) -> Option<Value> {
    // A table in the configuration of a stack may be written as JSON text.
    let mut tags = match tags {
        None => json!({}),
        Some(Value::String(text)) => serde_json::from_str(&text).ok()?,
        Some(other) => other,
    };
    let all = tags.as_object_mut()?.entry("tags").or_insert_with(|| json!({}));
    all.as_object_mut()?.extend(ours.into_iter().map(|(key, value)| (key.to_owned(), Value::from(value))));
    Some(tags)
}

/// Returns the encrypted data key of the stack. The first attempt makes it and stores it, before anything is encrypted.
async fn key(job: &Job, work: &RunPulumi, sdk: &SdkConfig, bucket: &JobBucket) -> Result<StackKey, Failure> {
    let object = format!("{}stack.json", state_objects::pulumi(&work.component));
    if let Some(bytes) = bucket.get(&object, MAX_BYTES).await? {
        return serde_json::from_slice(&bytes)
            .map_err(|error| Failure::because(&format!("could not read the object `{object}`"), &error));
    }
    let alias = format!("alias/{}", names::install(&job.order.tenant, &job.order.install));
    let call = aws_sdk_kms::Client::new(sdk).generate_data_key().key_id(&alias);
    let made = call.key_spec(DataKeySpec::Aes256).send().await;
    let made = made.map_err(|error| {
        Failure::new(format!("could not make a data key with KMS key `{alias}`: {}", explain(&error)))
    })?;
    let sealed = made.ciphertext_blob().map(|blob| STANDARD.encode(blob.as_ref()));
    let encryptedkey = sealed.ok_or_else(|| Failure::new(format!("AWS KMS returned no data key for `{alias}`")))?;
    let key = StackKey { secretsprovider: secrets_provider(job), encryptedkey };
    let bytes =
        serde_json::to_vec(&key).map_err(|error| Failure::because("could not write the stack's key", &error))?;
    bucket.put(&object, bytes).await?;
    Ok(key)
}

/// Returns the environment variables of the component, without those of Pulumi itself: the state, the plan and the
/// options are the runner's.
pub(super) fn own_variables(job: &Job, work: &RunPulumi) -> Result<BTreeMap<String, String>, Failure> {
    let mut own = Templates::of(job).map("environment variable", &work.env_vars)?;
    let dropped: Vec<String> = own.keys().filter(|name| name.starts_with("PULUMI_")).cloned().collect();
    if !dropped.is_empty() {
        job.log.line(&format!(
            "environment variables `{}` are ignored, because the runner sets the variables of Pulumi",
            dropped.join("`, `")
        ));
    }
    own.retain(|name, _| !dropped.contains(name));
    Ok(own)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_tags_of_the_order_join_those_of_the_app() {
        let ours =
            || BTreeMap::from([("freehold:owner", "acme--globex".to_owned()), ("freehold:app", "shop".to_owned())]);
        let both = json!({ "tags": { "team": "data", "freehold:owner": "acme--globex", "freehold:app": "shop" } });
        let of_app = json!({ "tags": { "team": "data", "freehold:app": "other" } });

        let only_ours = json!({ "tags": { "freehold:owner": "acme--globex", "freehold:app": "shop" } });
        assert_eq!(tagged(None, ours()), Some(only_ours));
        assert_eq!(tagged(Some(of_app), ours()), Some(both.clone()));
        assert_eq!(tagged(Some(json!("{\"tags\":{\"team\":\"data\"}}")), ours()), Some(both));
        for wrong in [json!("team=data"), json!(["team"]), json!({ "tags": "team" })] {
            assert_eq!(tagged(Some(wrong), ours()), None);
        }
    }
}
