//! Copies, pushes and reads artifacts with the copy engine while a registry lies about them.

use bytes::Bytes;
use freehold_fuzz::Draw;
use freehold_oci::{
    BlobSource, CopyOptions, Manifest, RegistryError, Version, copy, push_missing_blobs, read_referrer, referrers,
};
use freehold_protocol::Digest;
use freehold_protocol::order::Descriptor;
use freehold_protocol::provenance::REFERRER_TYPE;
use serde_json::Value;

use super::bytes::change;
use super::images::{Image, TAG};
use super::registry::{Held, Lie, Registry, entry};
use super::statements::Signed;

/// A copy from a registry that lies, or into one.
pub(super) struct CopyCase {
    pub(super) what: String,
    pub(super) of: usize,
    from: Option<Lie>,
    to: Option<Lie>,
    by_tag: bool,
    /// Whether it is about what refers to the artifact, which itself is good then.
    referrer: bool,
    /// An artifact that the source holds too.
    beside: Option<usize>,
}

/// How the bytes of a blob are given.
#[derive(Debug, Clone, Copy)]
enum Given {
    Url,
    Memory,
    File,
}

/// Pushes of blobs from granted URLs, files and memory.
pub(super) struct PushCase {
    pub(super) what: String,
    pub(super) of: usize,
    blob: Descriptor,
    given: Given,
    lie: Option<Lie>,
}

/// What a reader of an artifact's statements is told.
pub(super) struct ReadCase {
    pub(super) what: String,
    pub(super) of: usize,
    lie: Option<Lie>,
    /// An artifact that the registry holds too.
    beside: Option<usize>,
}

/// The two registries.
pub(super) struct Registries {
    pub(super) from: Registry,
    pub(super) to: Registry,
}

/// What became of bytes that were given as good.
pub(super) enum Ended {
    Refused(String),
    Accepted,
    /// Refused, but not as it should be.
    Wrong(String),
}

/// Returns why the engine refused; none when it did so for a reason that has nothing to do with the bytes.
fn reason(error: &RegistryError) -> Option<&'static str> {
    match error {
        RegistryError::WrongDigest { .. } => Some("wrong digest"),
        RegistryError::WrongSize { .. } => Some("wrong size"),
        RegistryError::Short { .. } => Some("short"),
        RegistryError::Transport { .. } => Some("broken off"),
        RegistryError::BadAnswer { .. } => Some("not usable"),
        RegistryError::TagTaken { .. } => Some("tag of another"),
        _ => None,
    }
}

fn ended(error: &RegistryError, held_wrong: Option<String>) -> Ended {
    match (held_wrong, reason(error)) {
        (Some(wrong), _) => Ended::Wrong(format!("the target {wrong} after `{error}`")),
        (None, Some(reason)) => Ended::Refused(reason.to_owned()),
        (None, None) => Ended::Wrong(format!("refused for another reason: {error}")),
    }
}

impl Registries {
    /// Copies the artifact; then looks at what the target holds.
    pub(super) async fn copy(&self, images: &[Image], case: &CopyCase) -> Ended {
        let image = &images[case.of];
        let from = self.from.open(held(images, case.of, case.beside), case.from.clone());
        let to = self.to.open(Default::default(), case.to.clone());
        let version = if case.by_tag { Version::Tag(TAG.into()) } else { Version::Digest(image.top().clone()) };
        let (source, target) = (self.from.repository(&from), self.to.repository(&to));
        let copied = copy(&source, &version, &target, &CopyOptions::default()).await;
        self.from.close(&from);
        let held = self.to.close(&to);
        let error = match copied {
            Ok(copied) if copied.artifact == image.artifact && is_whole(&held, image) => return Ended::Accepted,
            Ok(_) => return Ended::Wrong("said to be copied, and is not what was asked for".to_owned()),
            Err(error) => error,
        };
        // What a target itself changes is its own; the copy only may not be called done.
        let own = case.to.is_some();
        let wrong = held.wrong().filter(|_| !own);
        let complete = held.manifests.contains_key(image.top().as_str()) && !case.referrer && !own;
        ended(&error, wrong.or_else(|| complete.then(|| "holds the top manifest".to_owned())))
    }

    /// Pushes the blob; then looks at what the target holds.
    pub(super) async fn push(&self, images: &[Image], case: &PushCase) -> anyhow::Result<Ended> {
        let held = images[case.of].held.clone();
        let good = || held.blobs.get(case.blob.digest.as_str()).map(|bytes| bytes.to_vec()).unwrap_or_default();
        let bytes = match &case.lie {
            Some(Lie::Bytes { bytes, .. }) => bytes.clone(),
            _ => good(),
        };
        let file = tempfile::NamedTempFile::new()?;
        let from = self.from.open(held.clone(), case.lie.clone());
        let to = self.to.open(Default::default(), None);
        let target = self.to.repository(&to);
        let source = match case.given {
            Given::Url => {
                BlobSource::Url { http: target.http().clone(), url: self.from.blob_url(&from, &case.blob.digest) }
            }
            Given::Memory => BlobSource::Bytes(Bytes::from(bytes)),
            Given::File => {
                std::fs::write(file.path(), bytes)?;
                BlobSource::File(file.path().to_owned())
            }
        };
        let pushed = push_missing_blobs(&target, vec![(case.blob.clone(), source)]).await;
        self.from.close(&from);
        let held = self.to.close(&to);
        let there = held.blobs.contains_key(case.blob.digest.as_str());
        Ok(match pushed {
            Ok(()) if there && held.wrong().is_none() => Ended::Accepted,
            Ok(()) => Ended::Wrong("said to be pushed, and is not what was named".to_owned()),
            Err(error) => ended(&error, there.then(|| "holds the blob".to_owned())),
        })
    }

    /// Reads the artifact's statements as a verifier does: found by the registry, believed by the signature alone.
    pub(super) async fn read(&self, images: &[Image], signed: &Signed, case: &ReadCase) -> Ended {
        let image = &images[case.of];
        let from = self.from.open(held(images, case.of, case.beside), case.lie.clone());
        let source = self.from.repository(&from);
        let mut refused = "none is listed".to_owned();
        let found = referrers(&source, image.top(), Some(REFERRER_TYPE)).await;
        let mut all = Vec::new();
        match found {
            Ok(found) => all = found,
            Err(error) => match reason(&error) {
                Some(reason) => refused = reason.to_owned(),
                None => return Ended::Wrong(format!("refused for another reason: {error}")),
            },
        }
        let mut accepted = false;
        for one in all {
            match read_referrer(&source, &one.manifest).await {
                Ok(text) => match signed.read(&text) {
                    Ok(_) => accepted = true,
                    Err(reason) => refused = reason,
                },
                Err(error) => match reason(&error) {
                    Some(reason) => refused = reason.to_owned(),
                    None => return Ended::Wrong(format!("refused for another reason: {error}")),
                },
            }
        }
        self.from.close(&from);
        if accepted { Ended::Accepted } else { Ended::Refused(refused) }
    }
}

/// Returns what one artifact is made of, or two of them.
fn held(images: &[Image], of: usize, beside: Option<usize>) -> Held {
    let mut held = images[of].held.clone();
    if let Some(other) = beside.and_then(|other| images.get(other)) {
        held.add_all(&other.held);
    }
    held
}

fn is_whole(held: &Held, image: &Image) -> bool {
    let manifests = image.manifests.iter().chain(image.referrers.iter().map(|(manifest, _)| manifest));
    held.wrong().is_none()
        && image.artifact.blobs.iter().all(|blob| held.blobs.contains_key(blob.digest.as_str()))
        && manifests.into_iter().all(|manifest| held.manifests.contains_key(manifest.digest.as_str()))
}

/// Returns the untampered copies, by digest and by tag.
pub(super) fn original_copies(images: &[Image]) -> Vec<CopyCase> {
    let case = |of, by_tag| CopyCase {
        what: "nothing".into(),
        of,
        from: None,
        to: None,
        by_tag,
        referrer: false,
        beside: None,
    };
    (0..images.len()).flat_map(|of| [case(of, false), case(of, true)]).collect()
}

/// Returns the untampered pushes.
pub(super) fn original_pushes(images: &[Image]) -> Vec<PushCase> {
    let blobs =
        images.iter().enumerate().flat_map(|(of, image)| image.artifact.blobs.iter().map(move |blob| (of, blob)));
    let case = |(of, blob): (usize, &Descriptor)| {
        [Given::Url, Given::Memory, Given::File].map(|given| PushCase {
            what: "nothing".into(),
            of,
            blob: blob.clone(),
            given,
            lie: None,
        })
    };
    blobs.flat_map(case).collect()
}

/// Returns the untampered reads.
pub(super) fn original_reads(images: &[Image]) -> Vec<ReadCase> {
    (0..images.len()).map(|of| ReadCase { what: "nothing".into(), of, lie: None, beside: None }).collect()
}

/// Draws a copy in which a blob is another.
pub(super) fn draw_blob(draw: &mut Draw, images: &[Image]) -> CopyCase {
    let of = draw.below(images.len());
    let image = &images[of];
    let digest = draw.pick(&image.artifact.blobs).digest.clone();
    let (what, lie) = blob_lie(draw, images, of, &digest);
    let what = format!("blob {digest} of artifact {of}: {what}");
    CopyCase { what, of, from: Some(lie), to: None, by_tag: draw.one_in(3), referrer: false, beside: None }
}

fn blob_lie(draw: &mut Draw, images: &[Image], of: usize, digest: &Digest) -> (String, Lie) {
    let bytes = images[of].held.blobs[digest.as_str()].to_vec();
    let of = digest.clone();
    match draw.below(5) {
        0 if bytes.len() > 1 => {
            let at = 1 + draw.below(bytes.len() - 1);
            let (rest, what) = change(draw, &bytes[at..], &[]);
            let bytes = [&bytes[..at], &rest].concat();
            (format!("cut at byte {at}, then {what}"), Lie::Later { of, at, bytes })
        }
        1 if !bytes.is_empty() => {
            let (at, announced) = (draw.below(bytes.len()), draw.one_in(2));
            (format!("ends at byte {at} of {}, announced: {announced}", bytes.len()), Lie::Ends { of, at, announced })
        }
        _ => {
            let other = another(draw, images, &bytes);
            let (bytes, what) = change(draw, &bytes, &other);
            (what, Lie::Bytes { of, bytes, named: None })
        }
    }
}

/// Returns a good blob of some artifact; of the same size when there is one.
fn another(draw: &mut Draw, images: &[Image], bytes: &[u8]) -> Vec<Vec<u8>> {
    let held = &draw.pick(images).held.blobs;
    let all: Vec<_> = held.values().collect();
    let like = all.iter().find(|other| other.len() == bytes.len() && other.as_slice() != bytes);
    let other = like.copied().unwrap_or_else(|| all[draw.below(all.len())]);
    vec![other.to_vec()]
}

/// Draws a copy in which a manifest is another: of an index, below one, or what refers to the artifact.
pub(super) fn draw_manifest(draw: &mut Draw, images: &[Image]) -> CopyCase {
    let of = draw.below(images.len());
    match draw.below(10) {
        0 => listed_copy(draw, images, of),
        1 => kept_copy(draw, images, of),
        2 => manifest_copy(draw, images, of, &images[of].referrers[0].0, true),
        _ => {
            let manifest = draw.pick(&images[of].manifests);
            manifest_copy(draw, images, of, manifest, false)
        }
    }
}

fn manifest_copy(draw: &mut Draw, images: &[Image], of: usize, manifest: &Manifest, referrer: bool) -> CopyCase {
    let digest = manifest.digest.clone();
    let others = other_manifests(draw, images, manifest);
    let (bytes, what) = change(draw, &manifest.bytes, &others);
    // The header says what was asked for, what is there, or nothing.
    let named = match draw.below(3) {
        0 => Some(digest.clone()),
        1 => Some(Digest::of(&bytes)),
        _ => None,
    };
    // A tag may name anything: only a header that does not fit is a lie about the top one.
    let fits = digest == *images[of].top() && named.as_ref() != Some(&digest);
    let by_tag = !fits && draw.one_in(3);
    let place = if referrer { "referrer" } else { "manifest" };
    let what = format!("{place} {digest} of artifact {of}: {what}, named {named:?}");
    let from = Some(Lie::Bytes { of: digest, bytes, named });
    CopyCase { what, of, from, to: None, by_tag, referrer, beside: None }
}

/// A target that keeps another top manifest than was pushed, or says so.
fn kept_copy(draw: &mut Draw, images: &[Image], of: usize) -> CopyCase {
    let Some(top) = images[of].manifests.last() else { unreachable!("every artifact has a manifest") };
    let others = other_manifests(draw, images, top);
    let (bytes, what) = change(draw, &top.bytes, &others);
    let (what, lie) = match draw.one_in(2) {
        true => (format!("kept with {what}"), Lie::Keeps { of: top.digest.clone(), bytes }),
        false => {
            let lie = Lie::Stored { of: top.digest.clone(), named: Digest::of(&bytes) };
            ("said to be kept as another".to_owned(), lie)
        }
    };
    let what = format!("top manifest of artifact {of} in the target: {what}");
    CopyCase { what, of, from: None, to: Some(lie), by_tag: draw.one_in(3), referrer: false, beside: None }
}

/// A source that lists what refers to another artifact.
fn listed_copy(draw: &mut Draw, images: &[Image], of: usize) -> CopyCase {
    let (other, entry) = foreign(draw, images, of);
    let what = format!("what refers to artifact {other} listed for artifact {of}");
    let by_tag = draw.one_in(3);
    CopyCase { what, of, from: Some(entry), to: None, by_tag, referrer: true, beside: Some(other) }
}

/// Returns another artifact, and a list with what refers to it.
fn foreign(draw: &mut Draw, images: &[Image], of: usize) -> (usize, Lie) {
    let other = (of + 1 + draw.below(images.len() - 1)) % images.len();
    let manifest = &images[other].referrers[0].0;
    (other, Lie::Listed(entry(&manifest.media_type, &manifest.bytes, None).into_iter().collect()))
}

fn other_manifests(draw: &mut Draw, images: &[Image], manifest: &Manifest) -> Vec<Vec<u8>> {
    let other = draw.pick(images);
    vec![draw.pick(&other.manifests).bytes.to_vec(), retyped(&manifest.bytes)]
}

/// Returns the same JSON written anew: what a careless mirror does.
fn retyped(bytes: &[u8]) -> Vec<u8> {
    let value: Value = serde_json::from_slice(bytes).expect("a manifest");
    serde_json::to_vec_pretty(&value).expect("JSON")
}

/// Draws a push of a blob that is another.
pub(super) fn draw_push(draw: &mut Draw, images: &[Image]) -> PushCase {
    let of = draw.below(images.len());
    let blob = draw.pick(&images[of].artifact.blobs).clone();
    let given = *draw.pick(&[Given::Url, Given::Url, Given::Memory, Given::File]);
    let (what, lie) = match given {
        Given::Url => blob_lie(draw, images, of, &blob.digest),
        Given::Memory | Given::File => {
            let bytes = images[of].held.blobs[blob.digest.as_str()].to_vec();
            let other = another(draw, images, &bytes);
            let (bytes, what) = change(draw, &bytes, &other);
            (what, Lie::Bytes { of: blob.digest.clone(), bytes, named: None })
        }
    };
    let what = format!("blob {} of artifact {of}, given as {given:?}: {what}", blob.digest);
    PushCase { what, of, blob, given, lie: Some(lie) }
}

/// Draws what a reader of statements is told: other bytes, or another artifact's statement.
pub(super) fn draw_read(draw: &mut Draw, images: &[Image]) -> ReadCase {
    let of = draw.below(images.len());
    let (manifest, statement) = &images[of].referrers[0];
    let (what, lie, beside) = match draw.below(3) {
        0 => {
            let (bytes, what) = change(draw, &manifest.bytes, &[retyped(&manifest.bytes)]);
            (format!("manifest: {what}"), Lie::Bytes { of: manifest.digest.clone(), bytes, named: None }, None)
        }
        1 => {
            let (what, lie) = blob_lie(draw, images, of, &Digest::of(statement));
            (format!("layer: {what}"), lie, None)
        }
        _ => {
            let (other, entry) = foreign(draw, images, of);
            (format!("the statement of artifact {other}"), entry, Some(other))
        }
    };
    ReadCase { what: format!("statement of artifact {of}: {what}"), of, lie: Some(lie), beside }
}
