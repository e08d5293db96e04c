//! The referrers of an artifact: signatures and statements (OCI distribution specification 1.1, "Listing Referrers").
//! The referrers API of the registry lists them. In a registry without this API, the list is under a fallback tag.

use std::collections::{BTreeMap, BTreeSet};

use bytes::Bytes;
use freehold_protocol::Digest;
use freehold_protocol::order::Descriptor;
use reqwest::Url;
use reqwest::header::LINK;
use serde::{Deserialize, Serialize};
use serde_json::json;

use super::auth::Access;
use super::http::header;
use super::manifest::{EMPTY, EMPTY_TYPE, MANIFEST_TYPE};
use super::push::{Moved, move_blobs, push_by_digest, push_by_own_tag};
use super::repository::found;
use super::retry::transient;
use super::{BlobSource, Manifest, RegistryError, Repository, Version, tree};

const INDEX_TYPE: &str = "application/vnd.oci.image.index.v1+json";

/// The highest number of referrers that is accepted for one artifact; `MAX_PAGES` bounds the pages of the list.
const MAX_REFERRERS: usize = 500;
const MAX_PAGES: usize = 50;
/// The highest number of tries to write the fallback tag while other clients change it.
const TAG_TRIES: usize = 5;

/// A manifest that refers to another manifest, its subject.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct Referrer {
    #[serde(flatten)]
    pub manifest: Descriptor,
    #[serde(default)]
    pub artifact_type: String,
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub annotations: BTreeMap<String, String>,
}

#[derive(Deserialize)]
struct List {
    #[serde(default)]
    manifests: Vec<Referrer>,
}

/// Pushes `bytes` as an artifact of `artifact_type` that refers to `subject`, under its own tag, and makes the registry
/// list it. The same bytes give the same artifact, so a repeated push changes nothing.
///
/// In a registry with immutable tags and without the referrers API, the list cannot change once it is written: it lists
/// only the first referrers of a subject. Other referrers can still be read by their digest or tag.
///
/// # Errors
/// [`RegistryError`].
pub async fn push_referrer(
    repository: &Repository,
    subject: &Descriptor,
    artifact_type: &str,
    bytes: Bytes,
) -> Result<Descriptor, RegistryError> {
    let blob = |media_type: &str, bytes: &[u8]| Descriptor {
        media_type: media_type.to_owned(),
        digest: Digest::of(bytes),
        size: bytes.len() as u64,
    };
    let (config, layer) = (blob(EMPTY_TYPE, EMPTY), blob(artifact_type, &bytes));
    let document = json!({
        "schemaVersion": 2,
        "mediaType": MANIFEST_TYPE,
        "artifactType": artifact_type,
        "config": config,
        "layers": [layer],
        "subject": subject,
    });
    for (blob, bytes) in [(&config, Bytes::from_static(EMPTY)), (&layer, bytes)] {
        repository.place_blob(blob, &BlobSource::Bytes(bytes)).await?;
    }
    let manifest = Manifest::new(Some(MANIFEST_TYPE), Bytes::from(document.to_string()))
        .map_err(|detail| repository.bad("a statement", detail))?;
    if !push_by_own_tag(repository, &manifest).await? {
        list_referrers(repository, &subject.digest, &[referrer(repository, &manifest)?]).await?;
    }
    Ok(manifest.descriptor())
}

/// Returns the referrers of the manifest `digest`. If `artifact_type` is given, returns only those of this type.
///
/// # Errors
/// [`RegistryError`].
pub async fn referrers(
    repository: &Repository,
    digest: &Digest,
    artifact_type: Option<&str>,
) -> Result<Vec<Referrer>, RegistryError> {
    let mut all = match from_api(repository, digest).await? {
        Some(all) => all,
        None => from_tag(repository, digest).await?.unwrap_or_default(),
    };
    // The registry need not filter by type, so this client does.
    all.retain(|one| artifact_type.is_none_or(|wanted| one.artifact_type == wanted));
    let mut named = BTreeSet::new();
    all.retain(|one| named.insert(one.manifest.digest.clone()));
    if all.len() > MAX_REFERRERS {
        let what = format!("the referrers of `{digest}`");
        return Err(repository.bad(&what, format!("there are more than {MAX_REFERRERS}")));
    }
    Ok(all)
}

/// Returns the bytes of the only layer of `referrer`, which were given to [`push_referrer`]. Checks their digest.
///
/// # Errors
/// [`RegistryError`]; also when the manifest does not have exactly one layer, or the layer is larger than 4 MiB.
pub async fn read_referrer(repository: &Repository, referrer: &Descriptor) -> Result<Bytes, RegistryError> {
    let what = format!("manifest `{}`", referrer.digest);
    let manifest = repository.manifest(&Version::Digest(referrer.digest.clone())).await?;
    let parts = manifest.parts().map_err(|detail| repository.bad(&what, detail))?;
    match parts.blobs.as_slice() {
        [_, layer] => repository.small_blob(layer).await,
        _ => Err(repository.bad(&what, "it does not have exactly one layer".to_owned())),
    }
}

/// Copies the referrers of `subject` from `from` to `to`, and makes `to` list them.
pub(crate) async fn copy_referrers(
    from: &Repository,
    to: &Repository,
    subject: &Descriptor,
    moved: &mut Moved,
) -> Result<Vec<Descriptor>, RegistryError> {
    let all = referrers(from, &subject.digest, None).await?;
    if all.is_empty() {
        return Ok(Vec::new());
    }
    let listed: BTreeSet<Digest> =
        referrers(to, &subject.digest, None).await?.into_iter().map(|one| one.manifest.digest).collect();
    let mut unlisted = Vec::new();
    for one in &all {
        if listed.contains(&one.manifest.digest) {
            continue;
        }
        let top = from.manifest(&Version::Digest(one.manifest.digest.clone())).await?;
        check_subject(from, &top, &subject.digest)?;
        let tree = tree::read(from, top).await?;
        move_blobs(from, to, &tree.artifact.blobs, moved).await?;
        let mut by_itself = false;
        for manifest in &tree.manifests {
            by_itself = push_by_digest(to, manifest).await?;
        }
        if let (false, Some(top)) = (by_itself, tree.manifests.last()) {
            unlisted.push(referrer(to, top)?);
        }
    }
    // One write lists all referrers, because an immutable fallback tag can be written only once.
    list_referrers(to, &subject.digest, &unlisted).await?;
    Ok(all.into_iter().map(|one| one.manifest).collect())
}

/// Checks that the manifest itself names `listed` as its subject, because nobody signs a list of referrers.
fn check_subject(from: &Repository, manifest: &Manifest, listed: &Digest) -> Result<(), RegistryError> {
    let what = format!("manifest `{}`", manifest.digest);
    let purpose = manifest.purpose().map_err(|detail| from.bad(&what, detail))?;
    match purpose.subject {
        Some(subject) if subject.digest == *listed => Ok(()),
        Some(subject) => {
            let found = subject.digest;
            Err(from.bad(
                &what,
                format!("it is in the list of manifests that refer to `{listed}`, but refers to `{found}`"),
            ))
        }
        None => {
            Err(from
                .bad(&what, format!("it is in the list of manifests that refer to `{listed}`, but refers to nothing")))
        }
    }
}

fn referrer(repository: &Repository, manifest: &Manifest) -> Result<Referrer, RegistryError> {
    let what = format!("manifest `{}`", manifest.digest);
    let purpose = manifest.purpose().map_err(|detail| repository.bad(&what, detail))?;
    let artifact_type = purpose.artifact_type();
    Ok(Referrer { manifest: manifest.descriptor(), artifact_type, annotations: purpose.annotations })
}

/// Makes the registry list `new` as referrers of `subject`. A registry with the referrers API lists them automatically.
/// Otherwise this client updates the list under the fallback tag, which other clients may write at the same time.
async fn list_referrers(repository: &Repository, subject: &Digest, new: &[Referrer]) -> Result<(), RegistryError> {
    if new.is_empty() || from_api(repository, subject).await?.is_some() {
        return Ok(());
    }
    let mut before = from_tag(repository, subject).await?;
    for _ in 0..TAG_TRIES {
        let Some(list) = with(before.as_ref(), new) else { return Ok(()) };
        let refused = push_list(repository, subject, &list).await?;
        let after = from_tag(repository, subject).await?;
        if let Some(error) = refused
            && after == before
        {
            // The tag is immutable. A referrer that the list lacks can still be read by its digest.
            return if after.is_some() { Ok(()) } else { Err(error) };
        }
        // Another client may have replaced the list in the meantime; the next attempt adds to its list.
        before = after;
    }
    if with(before.as_ref(), new).is_none() {
        return Ok(());
    }
    let what = format!("the list of referrers of `{subject}`");
    Err(repository.bad(&what, format!("other writers changed tag `{}` on every try", fallback(subject))))
}

/// Returns `listed` together with the referrers of `new` that it lacks; `None` when it already has all of them.
fn with(listed: Option<&Vec<Referrer>>, new: &[Referrer]) -> Option<Vec<Referrer>> {
    let mut list = listed.cloned().unwrap_or_default();
    let before = list.len();
    for one in new {
        if !list.iter().any(|listed| listed.manifest.digest == one.manifest.digest) {
            list.push(one.clone());
        }
    }
    (list.len() > before).then_some(list)
}

/// Writes the list under the fallback tag. Returns `Ok(Some(error))` when the registry refuses to overwrite the tag.
async fn push_list(
    repository: &Repository,
    subject: &Digest,
    list: &[Referrer],
) -> Result<Option<RegistryError>, RegistryError> {
    let document = json!({ "schemaVersion": 2, "mediaType": INDEX_TYPE, "manifests": list });
    let index = Manifest::new(Some(INDEX_TYPE), Bytes::from(document.to_string()))
        .map_err(|detail| repository.bad("a list of referrers", detail))?;
    match repository.push_manifest(&index, &fallback(subject)).await {
        Ok(()) => Ok(None),
        // A registry with immutable tags refuses to overwrite the tag: ECR returns status 400, other registries 409 or
        // 412.
        Err(error @ RegistryError::Status { status: 400 | 409 | 412, .. }) => Ok(Some(error)),
        Err(error) => Err(error),
    }
}

/// Returns the fallback tag of `subject` (distribution specification, "Referrers Tag Schema").
fn fallback(subject: &Digest) -> Version {
    Version::Tag(format!("sha256-{}", subject.hex()))
}

/// Returns the referrers that are listed under the fallback tag; `None` when the tag does not exist.
async fn from_tag(repository: &Repository, subject: &Digest) -> Result<Option<Vec<Referrer>>, RegistryError> {
    let Some(index) = found(repository.manifest(&fallback(subject)).await)? else { return Ok(None) };
    let what = format!("manifest `{}`", fallback(subject));
    let list: List = serde_json::from_slice(&index.bytes).map_err(|error| repository.bad(&what, error.to_string()))?;
    Ok(Some(list.manifests))
}

/// Returns the referrers that the API lists; `None` when the registry does not have this API.
async fn from_api(repository: &Repository, subject: &Digest) -> Result<Option<Vec<Referrer>>, RegistryError> {
    let what = format!("the referrers of `{subject}`");
    let mut url = repository.url(&format!("referrers/{subject}"))?;
    let mut all: Vec<Referrer> = Vec::new();
    for _ in 0..MAX_PAGES {
        let asked = transient(repository.retry_policy(), || async {
            let answer = repository.send(&what, &Access::Pull, || repository.http().get(url.clone())).await?;
            let next = header(&answer, LINK.as_str()).and_then(next_page).map(str::to_owned);
            Ok((next, repository.small_body(answer, &what).await?))
        });
        let (next, body) = match asked.await {
            Ok(page) => page,
            // A registry without the referrers API returns status 404 or, in some implementations, another status.
            Err(
                RegistryError::NotFound { .. }
                | RegistryError::Denied { .. }
                | RegistryError::Status { status: 400 | 405 | 406 | 501, .. },
            ) if all.is_empty() => return Ok(None),
            Err(error) => return Err(error),
        };
        let list: List = serde_json::from_slice(&body).map_err(|error| repository.bad(&what, error.to_string()))?;
        all.extend(list.manifests);
        match next {
            Some(next) if all.len() <= MAX_REFERRERS => url = page_of(repository, &url, &next, &what)?,
            Some(_) | None => return Ok(Some(all)),
        }
    }
    Err(repository.bad(&what, format!("the registry lists them on more than {MAX_PAGES} pages")))
}

/// Returns the URL of the next page. It must be on the same registry, because the request carries the login.
fn page_of(repository: &Repository, url: &Url, next: &str, what: &str) -> Result<Url, RegistryError> {
    let next = url.join(next).map_err(|error| repository.bad(what, error.to_string()))?;
    if next.origin() == repository.base().origin() {
        Ok(next)
    } else {
        Err(repository.bad(what, "its next page is on another host".to_owned()))
    }
}

/// Returns the URL from the value of a `Link` header, `<address>; rel="next"` (RFC 8288).
fn next_page(link: &str) -> Option<&str> {
    let (address, rest) = link.trim().strip_prefix('<')?.split_once('>')?;
    rest.contains("rel=\"next\"").then_some(address)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_next_page_is_read_from_the_link() {
        assert_eq!(next_page(r#"</v2/a/referrers/x?n=1>; rel="next""#), Some("/v2/a/referrers/x?n=1"));
        assert_eq!(next_page(r#"</v2>; rel="prev""#), None);
    }

    #[test]
    fn a_referrer_of_the_specification_is_read_and_written_alike() {
        let text = r#"{"mediaType":"application/vnd.oci.image.manifest.v1+json","digest":"sha256:44136fa355b3678a1146ad16f7e8649e94fb4fc21fe77e8310c060f61caaff8a","size":7,"artifactType":"a","annotations":{"b":"c"}}"#;

        let referrer: Referrer = serde_json::from_str(text).expect("referrer");

        assert_eq!(serde_json::to_string(&referrer).expect("text"), text);
    }
}
