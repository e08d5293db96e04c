//! Pushes an OCI image layout (OCI image specification 1.1, "Image Layout") into the tenant registry.

use std::path::{Path, PathBuf};

use bytes::Bytes;
use freehold_oci::{
    BlobSource, MAX_MANIFESTS, Manifest, Repository, missing_blobs, push_manifests, push_missing_blobs,
};
use freehold_protocol::Digest;
use freehold_protocol::order::{Artifact, Descriptor};
use freehold_runner::job::failure::Failure;
use serde::Deserialize;

/// The largest manifest that is read, in bytes.
const MAX_MANIFEST_BYTES: u64 = 4 * 1024 * 1024;

#[derive(Deserialize)]
struct Index {
    manifests: Vec<Descriptor>,
}

/// Pushes the one image that the layout in `directory` lists.
pub(crate) async fn push(repository: &Repository, directory: &Path) -> Result<Artifact, Failure> {
    let (manifests, blobs) = read(directory)?;
    let top = manifests.last().ok_or_else(|| Failure::new("image layout is empty"))?.descriptor();
    let missing = missing_blobs(repository, &blobs).await?;
    let sources = missing.into_iter().map(|blob| {
        let file = BlobSource::File(path_of(directory, &blob.digest));
        (blob, file)
    });
    push_missing_blobs(repository, sources.collect()).await?;
    push_manifests(repository, &manifests).await?;
    Ok(Artifact {
        digest: top.digest,
        media_type: top.media_type,
        manifests: manifests.iter().map(Manifest::descriptor).collect(),
        blobs,
        provenance: None,
    })
}

/// Reads the manifests of the layout, children before parents, and the descriptors of their blobs, without duplicates.
fn read(directory: &Path) -> Result<(Vec<Manifest>, Vec<Descriptor>), Failure> {
    let index = std::fs::read(plain_file(directory, "index.json")?)
        .map_err(|error| Failure::because("image layout has no readable `index.json`", &error))?;
    let index: Index = serde_json::from_slice(&index)
        .map_err(|error| Failure::because("`index.json` of the image layout is not an index", &error))?;
    let [top] = index.manifests.as_slice() else {
        let count = index.manifests.len();
        return Err(Failure::new(format!("image layout lists {count} images; expected exactly one")));
    };
    let (mut manifests, mut blobs) = (Vec::<Manifest>::new(), Vec::<Descriptor>::new());
    let mut queue = vec![top.clone()];
    while let Some(descriptor) = queue.pop() {
        if manifests.iter().any(|known| known.digest == descriptor.digest) {
            continue;
        }
        if manifests.len() >= MAX_MANIFESTS {
            return Err(Failure::new(format!("image layout has more than {MAX_MANIFESTS} manifests")));
        }
        let manifest = manifest(directory, &descriptor)?;
        let parts = manifest.parts().map_err(|detail| unusable(&descriptor.digest, &detail))?;
        blobs.extend(parts.blobs.into_iter().filter(|blob| blob.digest != descriptor.digest));
        queue.extend(parts.manifests);
        manifests.push(manifest);
    }
    manifests.reverse();
    let mut named = std::collections::BTreeSet::new();
    blobs.retain(|blob| named.insert(blob.digest.clone()));
    blobs.iter().try_for_each(|blob| plain_file(directory, &name_of(&blob.digest)).map(drop))?;
    Ok((manifests, blobs))
}

fn manifest(directory: &Path, descriptor: &Descriptor) -> Result<Manifest, Failure> {
    let digest = &descriptor.digest;
    if descriptor.size > MAX_MANIFEST_BYTES {
        return Err(unusable(digest, "it is too large"));
    }
    let bytes = std::fs::read(plain_file(directory, &name_of(digest))?)
        .map_err(|error| Failure::because(&format!("image layout lacks manifest `{digest}`"), &error))?;
    let manifest =
        Manifest::new(Some(&descriptor.media_type), Bytes::from(bytes)).map_err(|detail| unusable(digest, &detail))?;
    if manifest.digest != *digest {
        return Err(unusable(digest, &format!("its bytes have digest `{}`", manifest.digest)));
    }
    Ok(manifest)
}

fn unusable(digest: &Digest, detail: &str) -> Failure {
    Failure::new(format!("manifest `{digest}` of the image layout cannot be used: {detail}"))
}

fn path_of(directory: &Path, digest: &Digest) -> PathBuf {
    directory.join(name_of(digest))
}

fn name_of(digest: &Digest) -> String {
    format!("blobs/sha256/{}", digest.hex())
}

/// Returns the path of a file of the layout. Refuses a link, which could lead to any file that the runner can read, and
/// a pipe, which might never end: the layout was written by a program that is not trusted.
fn plain_file(directory: &Path, name: &str) -> Result<PathBuf, Failure> {
    let refused = |what: &str| Failure::new(format!("image layout has no regular file `{name}`: {what}"));
    let mut path = directory.to_owned();
    let is_directory = |path: &Path| path.symlink_metadata().is_ok_and(|data| data.is_dir());
    for part in Path::new(name) {
        if !is_directory(&path) {
            return Err(refused("a directory in its path is absent or a link"));
        }
        path.push(part);
    }
    match path.symlink_metadata() {
        Ok(data) if data.is_file() => Ok(path),
        Ok(_) => Err(refused("it is a link, a directory or a device")),
        Err(_) => Err(refused("the file does not exist")),
    }
}

#[cfg(test)]
mod tests {
    use serde_json::{Value, json};

    use super::*;

    fn put(directory: &Path, media_type: &str, document: &Value) -> Value {
        let bytes = document.to_string();
        let digest = Digest::of(bytes.as_bytes());
        std::fs::create_dir_all(directory.join("blobs/sha256")).unwrap();
        std::fs::write(path_of(directory, &digest), &bytes).unwrap();
        json!({ "mediaType": media_type, "digest": digest, "size": bytes.len() })
    }

    fn image(directory: &Path, name: &str) -> Value {
        let media_type = "application/vnd.oci.image.manifest.v1+json";
        let config = put(directory, "application/vnd.oci.image.config.v1+json", &json!({ "name": name }));
        let layer = put(directory, "application/vnd.oci.image.layer.v1.tar", &json!("shared"));
        let document = json!({ "schemaVersion": 2, "mediaType": media_type, "config": config, "layers": [layer] });
        put(directory, media_type, &document)
    }

    #[test]
    fn children_come_before_their_index_and_every_blob_once() {
        let layout = tempfile::tempdir().unwrap();
        let media_type = "application/vnd.oci.image.index.v1+json";
        let children = [image(layout.path(), "amd64"), image(layout.path(), "arm64")];
        let index = json!({ "schemaVersion": 2, "mediaType": media_type, "manifests": children });
        let top = put(layout.path(), media_type, &index);
        std::fs::write(layout.path().join("index.json"), json!({ "manifests": [top] }).to_string()).unwrap();

        let (manifests, blobs) = read(layout.path()).unwrap();

        assert_eq!(manifests.len(), 3);
        assert_eq!(manifests.last().unwrap().digest.as_str(), top["digest"]);
        assert_eq!(blobs.len(), 3, "two configs and one shared layer");
    }

    #[test]
    fn a_layout_with_links_is_refused() {
        let parent = tempfile::tempdir().unwrap();
        let (layout, secret) = (parent.path().join("image"), parent.path().join("secret"));
        std::fs::create_dir(&layout).unwrap();
        let top = image(&layout, "one");
        std::fs::write(layout.join("index.json"), json!({ "manifests": [top] }).to_string()).unwrap();
        let (manifests, blobs) = read(&layout).unwrap();
        let assert_refused = |what: &str| {
            let error = read(&layout).unwrap_err();
            assert!(
                matches!(&error, Failure::Failed { reason, .. } if reason.contains("no regular file")),
                "{what}: {error:?}"
            );
        };

        for (what, path) in [
            ("a layer", path_of(&layout, &blobs[1].digest)),
            ("a manifest", path_of(&layout, &manifests[0].digest)),
            ("the index", layout.join("index.json")),
            ("all blobs", layout.join("blobs")),
            ("the layout", layout.clone()),
        ] {
            std::fs::rename(&path, &secret).unwrap();
            std::os::unix::fs::symlink(&secret, &path).unwrap();
            assert_refused(what);
            std::fs::remove_file(&path).unwrap();
            std::fs::rename(&secret, &path).unwrap();
        }
    }

    #[test]
    fn changed_bytes_and_a_second_image_are_refused() {
        let layout = tempfile::tempdir().unwrap();
        let top = image(layout.path(), "one");
        let digest: Digest = top["digest"].as_str().unwrap().parse().unwrap();
        let write = |manifests: Value| {
            std::fs::write(layout.path().join("index.json"), json!({ "manifests": manifests }).to_string()).unwrap();
        };

        write(json!([top, top]));
        assert!(matches!(read(layout.path()), Err(Failure::Failed { reason, .. }) if reason.contains("exactly one")));
        write(json!([top]));
        let changed = format!("{} ", std::fs::read_to_string(path_of(layout.path(), &digest)).unwrap());
        std::fs::write(path_of(layout.path(), &digest), changed).unwrap();

        assert!(
            matches!(read(layout.path()), Err(Failure::Failed { reason, .. }) if reason.contains("its bytes have digest"))
        );
    }
}
