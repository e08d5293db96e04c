//! Writes the files that the runner adds to a module: the backend and the input variables.

use std::collections::BTreeMap;
use std::path::Path;

use freehold_protocol::order::ApplyTerraform;
use serde_json::{Value, json};

use crate::job::Job;
use crate::job::failure::Failure;
use crate::kinds::templates::Templates;
use crate::state_objects::StateObjects;
use crate::workspace::{self, Kind};

/// The directory of the module in the workspace.
pub(super) const MODULE: &str = "module";
pub(super) const PLAN_FILE: &str = "plan.bin";
/// The file with the backend. Because of `_override` in its name, Terraform uses it instead of the module's own
/// backend.
const BACKEND_FILE: &str = "freehold_backend_override.tf.json";
/// A file without content, in every box.
const EMPTY: &str = "/dev/null";
const VARIABLES_FILE: &str = "freehold.auto.tfvars.json";

/// The variables of a module, as they were written.
#[derive(Debug)]
pub(super) struct Variables {
    /// Terraform's options for the variable files, in order.
    pub(super) options: Vec<String>,
    /// All values, which may be secret.
    pub(super) values: Value,
}

/// Writes the backend and the variables into the module.
pub(super) async fn write(
    job: &Job,
    work: &ApplyTerraform,
    templates: &Templates,
    (bucket, objects): (&str, &StateObjects),
) -> Result<Variables, Failure> {
    put(job, BACKEND_FILE, backend(bucket, objects, &job.config.region).to_string()).await?;
    let vars: BTreeMap<&String, Value> = work
        .vars
        .iter()
        .map(|(name, value)| Ok((name, templates.value(&format!("variable `{name}`"), value)?)))
        .collect::<Result<_, Failure>>()?;
    put(job, VARIABLES_FILE, json!(vars).to_string()).await?;
    let (mut options, mut texts) = (Vec::new(), Vec::new());
    for (index, text) in work.var_files.iter().enumerate() {
        let name = format!("freehold_{index:02}.tfvars");
        let text = templates.text(&format!("variable file {}", index + 1), text)?;
        put(job, &name, text.clone()).await?;
        texts.push(text);
        options.push(format!("-var-file={name}"));
    }
    Ok(Variables { options, values: json!({ "vars": vars, "files": texts }) })
}

/// Returns the backend. Terraform's lock is an object beside the state (`use_lockfile`). Path-style addresses also work
/// where a bucket does not have a host name. `encrypt` is not set, because it would replace the bucket's own key by a
/// key of S3. The backend reads no config of AWS, which may name a program (`credential_process`): an empty file is
/// named, because the backend treats an empty list as if it were absent.
fn backend(bucket: &str, objects: &StateObjects, region: &str) -> Value {
    json!({ "terraform": { "backend": { "s3": {
        "bucket": bucket,
        "key": objects.state(),
        "region": region,
        "shared_config_files": [EMPTY],
        "shared_credentials_files": [EMPTY],
        "use_lockfile": true,
        "use_path_style": true,
    } } } })
}

/// Writes a file into the module. A link of that name in the module is replaced and not followed.
async fn put(job: &Job, name: &str, text: String) -> Result<(), Failure> {
    Ok(workspace::write(&job.workspace, Path::new(MODULE).join(name), text, Kind::Document).await?)
}
