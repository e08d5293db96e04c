//! Prepares the image of a job before a program of the job starts: copies the image into the install registry, verifies
//! it and unpacks it.

use std::path::PathBuf;
use std::sync::Arc;

use freehold_oci::{BlobSource, Manifest, RegistryError, Repository, Version, fetch, manifest_for};
use freehold_protocol::Digest;
use freehold_protocol::order::{Descriptor, Order, RunAction, ToolImage as Ordered, Work};
use freehold_protocol::terraform::own_platform;
use tokio::sync::Mutex;

use crate::config::SandboxKind;
use crate::job::Job;
use crate::job::failure::{Failure, until_stopped};
use crate::kinds::provenance;
use crate::kinds::sync_artifact::sync_artifact_of;
use crate::kinds::templates::{Templates, owner};
use crate::registry::ecr_repository;
use crate::tool_image::{self, CONFIG, ImageConfig, Layer, LayerError, MAX_PACKED, ROOT, ToolImage};

/// The total size of the unpacked images that stay on the machine while no job uses them, in bytes.
const KEPT: u64 = 8 << 30;
/// The maximum size of an image's config, in bytes, and the maximum number of its layers.
const MAX_CONFIG: u64 = 1 << 20;
const MAX_LAYERS: usize = 128;

/// Lets only one job at a time fetch an image. The next job then finds the image on disk.
static PULL: Mutex<()> = Mutex::const_new(());

/// The image that a job runs in.
enum Wanted<'a> {
    /// The image of a component, which the order names.
    Component(&'a Ordered),
    /// An image of the install registry that an action names.
    Named { digest: Digest, reference: String },
}

/// Unpacks the image that the order or its action names, if programs of the job run in a box.
pub(super) async fn prepare(job: &Job) -> Result<(), Failure> {
    if !runs_programs(job.order.work.made_by()) {
        return Ok(());
    }
    let wanted = wanted(job)?;
    check_agreed(&job.order, wanted.as_ref())?;
    let Some(wanted) = wanted else { return Ok(()) };
    if job.config.sandbox == SandboxKind::None {
        return without_box(job, &wanted);
    }
    let about = match &wanted {
        Wanted::Component(_) => wanted.describe(),
        Wanted::Named { .. } => format!("{}, {}", owner(&job.order.work), wanted.describe()),
    };
    let image = ready(job, &wanted).await.map_err(|failure| failure.of(&about))?;
    job.log.line(&format!("programs run in image {}", image.digest()));
    // INVARIANT: an attempt prepares its image once.
    let _ = job.image.set(image);
    Ok(())
}

impl Wanted<'_> {
    const fn digest(&self) -> &Digest {
        match self {
            Self::Component(ordered) => &ordered.artifact.digest,
            Self::Named { digest, .. } => digest,
        }
    }

    fn describe(&self) -> String {
        match self {
            Self::Component(ordered) => format!("the tool image of component `{}`", ordered.component),
            Self::Named { reference, .. } => format!("image `{reference}`"),
        }
    }
}

fn wanted(job: &Job) -> Result<Option<Wanted<'_>>, Failure> {
    if let Work::Action(action) = job.order.work.made_by()
        && !action.image.is_empty()
    {
        return named(job, action).map(Some);
    }
    Ok(job.order.tool_image.as_deref().map(Wanted::Component))
}

/// Returns whether programs of the app run in a box for `work`.
fn runs_programs(work: &Work) -> bool {
    match work {
        Work::Health(work) => work.runs_commands(),
        Work::Action(_)
        | Work::TerraformModule(_)
        | Work::Sandbox(_)
        | Work::Pulumi(_)
        | Work::PulumiSandbox(_)
        | Work::HelmChart(_)
        | Work::KubernetesManifest(_)
        | Work::Preflight(_)
        | Work::DetectDrift(_)
        | Work::Remove(_) => true,
        Work::ContainerImage(_)
        | Work::CloudformationStack(_)
        | Work::KubernetesJob(_)
        | Work::CopySecrets(_)
        | Work::Build(_)
        | Work::Leftovers(_)
        | Work::Upgrade(_) => false,
    }
}

/// Returns the image that an action names. The name must have the install registry and a digest: any other name could
/// lead to an image that was not built for this app.
fn named<'a>(job: &'a Job, action: &RunAction) -> Result<Wanted<'a>, Failure> {
    let reference = Templates::of(job).text("image", &action.image)?;
    let parts = reference.split_once('@');
    let digest = parts.and_then(|(place, digest)| {
        let own = place.strip_suffix(&job.config.repository).is_some_and(|host| host.ends_with('/'));
        digest.parse().ok().filter(|_| own && !job.config.repository.is_empty())
    });
    match digest {
        Some(digest) => Ok(Wanted::Named { digest, reference }),
        None => Err(Failure::new(format!(
            "action `{}`: image `{reference}` is not an image of the install registry by digest; add it to the app as a \
             component of type `container_image`, and write `{{{{ .nuon.components.NAME.outputs.reference }}}}`",
            action.action
        ))),
    }
}

/// Checks that the order's terms name the image of the job. For a job without an image, whose programs see the file
/// system of the machine, checks that the terms name no image. The runner has already compared these terms with the
/// accepted terms. An order without the document of its terms passes (decision 0049).
fn check_agreed(order: &Order, wanted: Option<&Wanted<'_>>) -> Result<(), Failure> {
    let asked = order.terms.as_ref().map_or(Ok(None), |terms| terms.asked());
    let unread = |error| Failure::because("the contract of the order cannot be read; report it to the vendor", &error);
    let Some(terms) = asked.map_err(unread)? else { return Ok(()) };
    let action = if let Work::Action(action) = order.work.made_by() { Some(action) } else { None };
    let known = action.and_then(|action| terms.actions.iter().find(|known| known.name == action.action));
    let in_image_of_all = known.is_none_or(|known| known.image.is_empty());
    let agreed = match wanted {
        Some(Wanted::Named { .. }) => {
            known.is_some_and(|known| Some(&known.image) == action.map(|action| &action.image))
        }
        Some(Wanted::Component(ordered)) => terms.tool_image.as_ref() == Some(&ordered.component) && in_image_of_all,
        // The order of a teardown or a drift check has no image if the version that deployed the component or sandbox
        // names another image than the version that the install has.
        None => {
            matches!(order.work, Work::Remove(_) | Work::DetectDrift(_))
                || terms.tool_image.is_none() && in_image_of_all
        }
    };
    if agreed {
        return Ok(());
    }
    let what = wanted.map_or_else(|| "a job without an image".to_owned(), Wanted::describe);
    Err(Failure::new(format!("the contract of the order does not allow {what}; report it to the vendor")))
}

/// Refuses the image of an action, or logs that the image of a component is not used: without a box, programs see only
/// the machine's root file system.
fn without_box(job: &Job, wanted: &Wanted<'_>) -> Result<(), Failure> {
    let about = wanted.describe();
    if matches!(wanted, Wanted::Named { .. }) {
        return Err(Failure::new(format!(
            "{about} needs a box, and this runner has `sandbox = \"none\"`; write `sandbox = \"bubblewrap\"` into its config"
        )));
    }
    job.log.line(&format!("{about} is not used: this runner has `sandbox = \"none\"`"));
    Ok(())
}

async fn ready(job: &Job, wanted: &Wanted<'_>) -> Result<ToolImage, Failure> {
    if let Wanted::Component(ordered) = wanted {
        provenance::verify(job, &ordered.component, &ordered.artifact)?;
    }
    if let Some(image) = find(job, wanted.digest()).await? {
        return Ok(image);
    }
    let _alone = until_stopped(job, async { Ok(PULL.lock().await) }).await?;
    if let Some(image) = find(job, wanted.digest()).await? {
        return Ok(image);
    }
    // A runner that ended while it unpacked an image has left a part of the image, which may fill the disk.
    prune(job).await?;
    let image = until_stopped(job, pull(job, wanted)).await?;
    prune(job).await?;
    Ok(image)
}

async fn prune(job: &Job) -> Result<(), Failure> {
    let store = tool_image::store(&job.config.state_dir).map_err(|error| unkept(&error))?;
    let pruned = tokio::task::spawn_blocking(move || store.prune(KEPT)).await;
    pruned.map_err(|error| unkept(&error))?.map_err(|error| unkept(&error))
}

async fn find(job: &Job, digest: &Digest) -> Result<Option<ToolImage>, Failure> {
    let (state_dir, digest) = (job.config.state_dir.clone(), digest.clone());
    let found = tokio::task::spawn_blocking(move || ToolImage::find(&state_dir, &digest)).await;
    found.map_err(|error| unkept(&error))?.map_err(|error| unkept(&error))
}

fn unkept(error: &dyn std::error::Error) -> Failure {
    Failure::because("could not store it on this machine", error)
}

/// Fetches the image from the install registry. First copies the order's image there if the install registry lacks it.
async fn pull(job: &Job, wanted: &Wanted<'_>) -> Result<ToolImage, Failure> {
    let repository = match wanted {
        Wanted::Component(ordered) => sync_artifact_of(job, &ordered.component, &ordered.artifact).await?,
        Wanted::Named { .. } => {
            ecr_repository(&crate::aws::sdk_config(&job.config.region, None).await, &job.config.repository).await?
        }
    };
    let digest = wanted.digest();
    let manifest = manifest(&repository, digest).await?;
    let parts = manifest.parts().map_err(Failure::new)?;
    let Some((config, layers)) = parts.blobs.split_first().filter(|(_, layers)| !layers.is_empty()) else {
        return Err(Failure::new(
            "the image has no layers; name a component of type `container_image` or `docker_build`",
        ));
    };
    let packed = layers.iter().fold(0_u64, |packed, layer| packed.saturating_add(layer.size));
    if config.size > MAX_CONFIG || layers.len() > MAX_LAYERS || packed > MAX_PACKED {
        return Err(Failure::new(format!(
            "the image has {} layers with {packed} bytes, more than the limit of {MAX_LAYERS} layers or {MAX_PACKED} \
            bytes",
            layers.len()
        )));
    }
    job.log.line(&format!("unpacking image {digest}: {} layers, {packed} bytes", layers.len()));
    let config = fetch_blob(job, &repository, config, "config").await?;
    check_platform(&config)?;
    let mut fetched_layers = Vec::new();
    for (number, layer) in layers.iter().enumerate() {
        let file = fetch_blob(job, &repository, layer, &format!("layer-{number}")).await?;
        fetched_layers.push(Layer { file, media_type: layer.media_type.clone() });
    }
    unpack(job, digest, config, fetched_layers).await
}

/// Returns the manifest of the image for this machine.
async fn manifest(repository: &Repository, digest: &Digest) -> Result<Manifest, Failure> {
    let top = repository.manifest(&Version::Digest(digest.clone())).await.map_err(|error| match error {
        RegistryError::NotFound { .. } => {
            Failure::new(format!("{error}; deploy the component with this image first, then start the job again"))
        }
        error => error.into(),
    })?;
    if !top.is_index() {
        return Ok(top);
    }
    let cannot = |error: &dyn std::error::Error| Failure::because("it has no image for this machine", error);
    let own = slashed().parse().map_err(|error| cannot(&error))?;
    let image = manifest_for(&top, &own).map_err(|error| cannot(&error))?;
    Ok(repository.manifest(&Version::Digest(image)).await?)
}

fn is_own(platform: &ImageConfig) -> bool {
    format!("{}_{}", platform.os, platform.architecture) == own_platform()
}

fn slashed() -> String {
    own_platform().replace('_', "/")
}

fn check_platform(config: &std::path::Path) -> Result<(), Failure> {
    let unreadable = |error: &dyn std::error::Error| Failure::because("could not read its config", error);
    let bytes = std::fs::read(config).map_err(|error| unreadable(&error))?;
    let config: ImageConfig = serde_json::from_slice(&bytes).map_err(|error| unreadable(&error))?;
    if is_own(&config) {
        return Ok(());
    }
    let found = format!("{}/{}", config.os, config.architecture);
    Err(Failure::new(format!(
        "it is for `{found}`, and this machine is `{}`; build it for the platform of this machine too",
        slashed()
    )))
}

async fn fetch_blob(job: &Job, repository: &Repository, blob: &Descriptor, name: &str) -> Result<PathBuf, Failure> {
    let path = job.workspace.join(format!("image-{name}"));
    fetch(&BlobSource::Repository(repository.clone()), blob, &path).await?;
    Ok(path)
}

async fn unpack(job: &Job, digest: &Digest, config: PathBuf, layers: Vec<Layer>) -> Result<ToolImage, Failure> {
    let files: Vec<PathBuf> = layers.iter().map(|layer| layer.file.clone()).chain([config.clone()]).collect();
    let (state_dir, digest) = (job.config.state_dir.clone(), digest.clone());
    // When this value is dropped, because the job no longer waits, the thread that unpacks stops.
    let waits = Arc::new(());
    let waiting = Arc::downgrade(&waits);
    let unpacked = tokio::task::spawn_blocking(move || {
        let tree = tool_image::store(&state_dir)?.find_or_unpack(&digest, |into| {
            std::fs::create_dir(into.join(ROOT))?;
            tool_image::unpack(&layers, &into.join(ROOT), || waiting.strong_count() > 0)?;
            std::fs::copy(&config, into.join(CONFIG))?;
            Ok::<_, LayerError>(())
        })?;
        Ok::<_, LayerError>(ToolImage::open(&digest, tree)?)
    });
    let unpacked = unpacked.await.map_err(|error| unkept(&error))?;
    drop(waits);
    for file in files {
        // Files that cannot be removed here are removed with the workspace.
        let _ = std::fs::remove_file(file);
    }
    unpacked.map_err(|error| Failure::because("could not unpack it", &error))
}

#[cfg(test)]
mod tests {
    use freehold_protocol::canonical;
    use freehold_protocol::contract::{OrderTerms, PackedTerms};
    use freehold_protocol::order::Artifact;
    use serde_json::{Value, json};

    use super::*;

    /// An order of an action that names `image`, with terms that name `tools` for all jobs and `agreed` for the action.
    fn order(image: &str, tools: &Value, agreed: &str) -> Order {
        let mut order = crate::testing::order(1, 7);
        let Work::Action(action) = &mut order.work else { panic!("{:?}", order.work) };
        action.image = image.to_owned();
        let actions = json!([{ "name": action.action, "role": "maintenance", "image": agreed }]);
        let mut terms = json!({ "format": 1, "app": "demo", "roles": [], "hosts": [], "actions": actions });
        if !tools.is_null() {
            terms["tool_image"] = tools.clone();
        }
        let document = Some(PackedTerms::of(&canonical::to_vec(&terms).unwrap()).unwrap());
        let digest = canonical::digest(&terms).unwrap();
        order.terms = Some(Box::new(OrderTerms { digest, change: None, document }));
        order
    }

    #[test]
    fn an_order_brings_the_image_of_its_terms_and_leaves_none_out() {
        let artifact = Artifact {
            digest: Digest::of(b"image"),
            media_type: String::new(),
            manifests: Vec::new(),
            blobs: Vec::new(),
            provenance: None,
        };
        let ordered = Ordered { component: "tools".parse().unwrap(), artifact };
        let other = Ordered { component: "other".parse().unwrap(), ..ordered.clone() };
        let named = || Wanted::Named { digest: Digest::of(b"image"), reference: "x".to_owned() };
        let agreed = |order: &Order, wanted: Option<Wanted<'_>>| check_agreed(order, wanted.as_ref()).is_ok();
        let (of_all, own) = (order("", &json!("tools"), ""), order("{{ .own }}", &json!("tools"), "{{ .own }}"));

        assert!(agreed(&of_all, Some(Wanted::Component(&ordered))) && agreed(&own, Some(named())));
        assert!(agreed(&order("", &Value::Null, ""), None), "terms without an image");
        assert!(!agreed(&of_all, None), "the file system of the machine");
        assert!(!agreed(&of_all, Some(Wanted::Component(&other))), "the image of another component");
        assert!(
            !agreed(&order("{{ .own }}", &json!("tools"), ""), Some(named())),
            "an image that an action may not name"
        );
        let mut removes = of_all.clone();
        let what = Box::new(removes.work.clone());
        removes.work =
            Work::Remove(freehold_protocol::order::RemovePart { what, destroy_data: false, removes_policies: false });
        assert!(agreed(&removes, None), "a teardown by an older version");
        let left_out = order("", &json!("tools"), "{{ .own }}");
        assert!(!agreed(&left_out, Some(Wanted::Component(&ordered))) && !agreed(&left_out, None));
        let mut unread = of_all;
        unread.terms.as_mut().unwrap().digest = Digest::of(b"other terms");
        let refused = check_agreed(&unread, Some(&Wanted::Component(&ordered))).unwrap_err();
        assert!(matches!(&refused, Failure::Failed { reason, .. } if reason.contains("cannot be read")), "{refused:?}");
    }
}
