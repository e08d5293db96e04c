//! Reads a manifest and all manifests below it, each once, and puts them into the order in which they are pushed.

use std::collections::{BTreeMap, BTreeSet};

use freehold_protocol::Digest;
use freehold_protocol::order::{Artifact, Descriptor};
use futures_util::stream::{self, StreamExt as _, TryStreamExt as _};

use super::{BLOBS_AT_ONCE, Manifest, RegistryError, Repository, Version};

/// The highest number of manifests in one artifact, attestations included.
pub const MAX_MANIFESTS: usize = 500;
/// The largest total size of an artifact's manifests, in bytes. All manifests are held in memory. Those of a real
/// artifact have several hundred KiB together.
const MAX_TOTAL: usize = 4 * 1024 * 1024;
/// The highest number of levels of manifests, from the top index down to the image manifests.
const MAX_DEPTH: usize = 4;

/// The manifests of an artifact, children before parents, and the description of the artifact.
pub(crate) struct Tree {
    pub(crate) manifests: Vec<Manifest>,
    pub(crate) artifact: Artifact,
}

type Known = BTreeMap<Digest, (Manifest, Vec<Digest>)>;

/// Reads all manifests below `top` from the repository `from`.
pub(crate) async fn read(from: &Repository, top: Manifest) -> Result<Tree, RegistryError> {
    let (digest, media_type) = (top.digest.clone(), top.media_type.clone());
    let what = format!("manifest `{digest}`");
    let mut blobs: BTreeMap<Digest, Vec<Descriptor>> = BTreeMap::new();
    let (mut known, mut level, mut total) = (Known::new(), vec![top], 0);
    for _ in 0..MAX_DEPTH {
        let mut next: BTreeMap<Digest, Descriptor> = BTreeMap::new();
        for manifest in std::mem::take(&mut level) {
            total += manifest.bytes.len();
            let parts =
                manifest.parts().map_err(|detail| from.bad(&format!("manifest `{}`", manifest.digest), detail))?;
            blobs.insert(manifest.digest.clone(), parts.blobs);
            let children = parts.manifests.iter().map(|child| child.digest.clone()).collect();
            next.extend(parts.manifests.into_iter().map(|child| (child.digest.clone(), child)));
            known.insert(manifest.digest.clone(), (manifest, children));
        }
        next.retain(|digest, _| !known.contains_key(digest));
        if known.len() + next.len() > MAX_MANIFESTS {
            return Err(from.bad(&what, format!("it has more than {MAX_MANIFESTS} manifests")));
        }
        if total > MAX_TOTAL {
            return Err(from.bad(&what, format!("its manifests have more than {MAX_TOTAL} bytes together")));
        }
        if next.is_empty() {
            return Ok(arrange(digest, media_type, &mut known, &mut blobs));
        }
        level = stream::iter(next.into_values())
            .map(|child| child_of(from, child))
            .buffered(BLOBS_AT_ONCE)
            .try_collect()
            .await?;
    }
    Err(from.bad(&what, format!("its indexes are nested deeper than {MAX_DEPTH}")))
}

async fn child_of(from: &Repository, child: Descriptor) -> Result<Manifest, RegistryError> {
    let manifest = from.manifest(&Version::Digest(child.digest.clone())).await?;
    let found = manifest.bytes.len() as u64;
    if found != child.size {
        return Err(RegistryError::WrongSize { host: from.host(), digest: child.digest, expected: child.size, found });
    }
    Ok(manifest)
}

fn arrange(
    digest: Digest,
    media_type: String,
    known: &mut Known,
    blobs: &mut BTreeMap<Digest, Vec<Descriptor>>,
) -> Tree {
    let (mut order, mut seen) = (Vec::new(), BTreeSet::new());
    below(&digest, known, &mut seen, &mut order);
    let mut named = BTreeSet::new();
    let blobs = order.iter().filter_map(|digest| blobs.remove(digest)).flatten();
    let blobs = blobs.filter(|blob| named.insert(blob.digest.clone())).collect();
    let manifests: Vec<Manifest> = order.iter().filter_map(|digest| known.remove(digest)).map(|(one, _)| one).collect();
    let artifact = Artifact {
        digest,
        media_type,
        manifests: manifests.iter().map(Manifest::descriptor).collect(),
        blobs,
        provenance: None,
    };
    Tree { manifests, artifact }
}

/// Appends all manifests below `digest` to `order`, and then `digest` itself. Visits each manifest once, so the
/// recursion is at most as deep as the number of manifests.
fn below(digest: &Digest, known: &Known, seen: &mut BTreeSet<Digest>, order: &mut Vec<Digest>) {
    if !seen.insert(digest.clone()) {
        return;
    }
    for child in known.get(digest).into_iter().flat_map(|(_, children)| children) {
        below(child, known, seen, order);
    }
    order.push(digest.clone());
}
