//! Checks the images of pod specs before the objects reach a cluster (decision 0070). The install registry has every
//! image of the app by digest; any other image comes from a registry that the customer does not own, and may change.

mod admission_policy;

use std::collections::BTreeMap;

use freehold_protocol::Digest;
use serde_json::Value;

pub(super) use admission_policy::{admit, withdraw, withdraw_unwanted};

use crate::config::ClusterImages;
use crate::job::Job;
use crate::job::failure::Failure;
use crate::kubernetes::images;

/// The beginning of the tag by which the install registry names an image. Only the runner writes there, and a tag
/// cannot be changed, so such a tag identifies an image as reliably as a digest.
const DIGEST_TAG: &str = "sha256-";
/// The maximum number of log lines about the images of one plan.
const LINES: usize = 50;

/// The images that objects name: those of the install registry, and all others.
#[derive(Debug, Default, PartialEq, Eq)]
struct Found {
    /// The number of images of the install registry.
    own: usize,
    /// For each image of another registry, the objects that name it.
    others: BTreeMap<String, Vec<String>>,
}

impl Found {
    fn of<'a>(objects: impl Iterator<Item = &'a Value>, registry: &str) -> Self {
        let (mut own, mut others) = (std::collections::BTreeSet::new(), BTreeMap::<String, Vec<String>>::new());
        for object in objects {
            for image in images(object) {
                if is_pinned(image, registry) {
                    own.insert(image);
                } else {
                    others.entry(image.to_owned()).or_default().push(name(object));
                }
            }
        }
        Self { own: own.len(), others }
    }

    fn lines(&self) -> Vec<String> {
        if self.own == 0 && self.others.is_empty() {
            return Vec::new();
        }
        let mut lines = vec![format!("images: {} of the install registry, {} others", self.own, self.others.len())];
        lines.extend(self.named().take(LINES).map(|one| format!("  {one}")));
        let left = self.others.len().saturating_sub(LINES);
        lines.extend((left > 0).then(|| format!("  and {left} more")));
        lines
    }

    /// Returns a text for each image that is not in the install registry, such as `` `nginx:1` (Deployment web) ``.
    fn named(&self) -> impl Iterator<Item = String> {
        self.others.iter().map(|(image, objects)| format!("`{image}` ({})", objects.join(", ")))
    }
}

/// Writes the images that are not in the install registry into the log. Refuses them if the parameter `ClusterImages`
/// of the customer's install stack requires this. `registry` is the address of the install registry.
pub(super) fn look<'a>(
    job: &Job,
    component: &str,
    registry: &str,
    objects: impl Iterator<Item = &'a Value>,
) -> Result<(), Failure> {
    let found = Found::of(objects, registry);
    for line in found.lines() {
        job.log.line(&line);
    }
    match job.config.cluster_images {
        ClusterImages::InstallRegistry if !found.others.is_empty() => Err(Failure::new(format!(
            "component `{component}`: its pods name images that are not in the install registry: {}; the customer \
             lets no other image into a cluster (`ClusterImages` of the install stack); add each image to the app as \
             a component of type `container_image`, and write the outputs `image.repository` and `image.tag` of that \
             component into the values of the chart or into the manifest",
            found.named().take(LINES).collect::<Vec<_>>().join(", ")
        ))),
        ClusterImages::InstallRegistry | ClusterImages::Any => Ok(()),
    }
}

/// Returns whether `image` names a digest of the repository `registry`.
fn is_pinned(image: &str, registry: &str) -> bool {
    let Some(rest) = image.strip_prefix(registry) else { return false };
    match rest.split_once('@') {
        Some((tag, digest)) => (tag.is_empty() || tag.starts_with(':')) && digest.parse::<Digest>().is_ok(),
        None => rest
            .strip_prefix(':')
            .and_then(|tag| tag.strip_prefix(DIGEST_TAG))
            .is_some_and(|hex| !hex.is_empty() && hex.bytes().all(|byte| byte.is_ascii_hexdigit())),
    }
}

fn name(object: &Value) -> String {
    let text = |path: &str| object.pointer(path).and_then(Value::as_str);
    let name = text("/metadata/name").or_else(|| text("/metadata/generateName")).unwrap_or("without a name");
    format!("{} {name}", text("/kind").unwrap_or("object"))
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;
    use serde_json::json;

    use super::*;

    const REGISTRY: &str = "222222222222.dkr.ecr.eu-west-1.amazonaws.com/fh-acme/globex";

    #[test]
    fn only_a_digest_of_the_install_registry_is_pinned() {
        let digest = Digest::of(b"image");
        for own in [format!("@{digest}"), ":sha256-0123456789ab".into(), format!(":1@{digest}")] {
            assert!(is_pinned(&format!("{REGISTRY}{own}"), REGISTRY), "{own}");
        }
        for other in [
            REGISTRY.to_owned(),
            format!("{REGISTRY}:latest"),
            format!("{REGISTRY}:sha256-"),
            format!("{REGISTRY}:sha256-latest"),
            format!("{REGISTRY}x@{digest}"),
            format!("{REGISTRY}/more@{digest}"),
            format!("{REGISTRY}@sha256:12"),
            format!("docker.io/nginx@{digest}"),
            format!("evil.example/{REGISTRY}@{digest}"),
        ] {
            assert!(!is_pinned(&other, REGISTRY), "{other}");
        }
    }

    #[test]
    fn the_log_names_each_other_image_with_its_objects() {
        let pod = |name: &str, images: &[&str]| {
            let containers: Vec<Value> = images.iter().map(|image| json!({ "image": image })).collect();
            json!({ "kind": "Pod", "metadata": { "name": name }, "spec": { "containers": containers } })
        };
        let own = format!("{REGISTRY}@{}", Digest::of(b"image"));
        let objects = [
            pod("a", &["nginx:1", &own]),
            pod("b", &["nginx:1", "redis"]),
            json!({ "kind": "Job",
            "metadata": { "generateName": "c-" }, "spec": { "template": { "spec": { "containers": [{ "image": own }] } } } }),
        ];

        let found = Found::of(objects.iter(), REGISTRY);

        assert_eq!(
            found.lines(),
            ["images: 1 of the install registry, 2 others", "  `nginx:1` (Pod a, Pod b)", "  `redis` (Pod b)"]
        );
        assert!(Found::of([json!({ "kind": "ConfigMap" })].iter(), REGISTRY).lines().is_empty());
    }

    proptest! {
        /// An image of any other repository is never taken for one of the install registry.
        #[test]
        fn no_other_repository_is_the_install_registry(prefix in "[a-z0-9./-]{0,30}", suffix in "[a-z0-9/._-]{0,10}") {
            let image = format!("{prefix}{suffix}@{}", Digest::of(b"image"));
            prop_assume!(!(prefix.is_empty() && suffix.is_empty()));
            let nested = format!("{REGISTRY}{suffix}@{}", Digest::of(b"image"));

            prop_assert!(!is_pinned(&image, REGISTRY));
            prop_assert_eq!(is_pinned(&nested, REGISTRY), suffix.is_empty());
        }
    }
}
