//! Reads where the images that components copy come from, and which signatures the images need.

use freehold_protocol::Digest;
use freehold_protocol::app_version::{ComponentSpec, Verification};
use freehold_protocol::order::Source;
use freehold_protocol::pem;
use serde_json::Value;

use super::builder::{Builder, Subject};
use super::specs::reference;
use crate::read::document::{Entry, Node};
use crate::read::paths::join;
use crate::report::draft::Draft;
use crate::state::file::Checked;

/// The keys that name the source of an image.
const PLACES: [&str; 5] = ["public", "aws_ecr", "gcp_gar", "azure_acr", "oci_layout"];

impl Builder<'_> {
    pub(super) fn image(&mut self, subject: Subject<'_>) -> Option<(Source, ComponentSpec)> {
        let Subject { checked, .. } = subject;
        let verification = checked.root.get("verification").map(|node| self.verification(checked, node));
        let entry = self.sources.one_of(checked, &checked.root, &PLACES, &subject.owner(), "image")?;
        if let ("oci_layout", Some(Verification { require_signature: true, .. })) = (entry.key.as_str(), &verification)
        {
            let place = checked.root.get("verification").map(|node| checked.place_of(node, "require_signature"));
            self.sources.error(
                place.unwrap_or_else(|| checked.key_place(entry)),
                "the signatures of an image on disk cannot be checked, because they are in the image's registry",
                "take the image from its registry, with `public` or `aws_ecr`, or remove `require_signature`",
            );
        }
        let source = match entry.key.as_str() {
            "oci_layout" => self.layout(subject, entry)?,
            "aws_ecr" => {
                let text = |key: &str| entry.value.text(key).unwrap_or_default().to_owned();
                let reference = self.reference(checked, entry)?;
                Source::EcrImage { reference, region: text("region"), role_arn: text("iam_role_arn") }
            }
            _ => Source::Image { reference: self.reference(checked, entry)? },
        };
        Some((source, ComponentSpec::ContainerImage { verification }))
    }

    fn layout(&mut self, subject: Subject<'_>, entry: &Entry) -> Option<Source> {
        let Subject { checked, .. } = subject;
        let node = entry.value.get("path")?;
        let word = node.as_text()?;
        let path = self.sources.inside(self.files, checked, node, word)?;
        if self.files.tree().is_file(&join(&path, "index.json")) {
            return self.sources.directory(self.files, checked, node, word, &subject.owner());
        }
        // A layout is often created just before a sync, so a check only warns when the layout is missing.
        let message =
            format!("`{word}` is not an OCI image layout: there is no `index.json` in it, so a sync refuses the app");
        let draft = Draft::new(self.sources.unsupported, checked.place(node), message);
        self.sources.drafts.push(draft.help(self.how_to_make(checked, word)));
        // The component stays in the version, so that a comparison shows a change of its source.
        Some(Source::Directory { digest: Digest::of(b"") })
    }

    /// Returns how to make the layout `word`: `freehold tools build` makes it when a list of programs is beside it.
    fn how_to_make(&self, checked: &Checked, word: &str) -> String {
        let directory = word.trim_end_matches('/').rsplit_once('/').map_or(".", |(directory, _)| directory);
        let list = self.files.named(checked.file, &format!("{directory}/tools.toml"));
        match list.filter(|list| self.files.tree().is_file(list)) {
            Some(list) => {
                let directory = list.rsplit_once('/').map_or("", |(directory, _)| directory);
                format!("make it with `freehold tools build {}`", self.files.locate(directory).display())
            }
            None => "make a layout, for example with `skopeo copy docker://IMAGE oci:DIRECTORY`".to_owned(),
        }
    }

    /// Returns the image reference, `host/name:tag` or `host/name@digest`.
    fn reference(&mut self, checked: &Checked, entry: &Entry) -> Option<String> {
        let url = entry.value.text("image_url")?;
        let tag = entry.value.text("tag")?;
        if url.contains("{{") || tag.contains("{{") {
            self.sources.error(
                checked.place(&entry.value),
                "the image and its tag cannot be templates: an image is copied at build time, when no install is known",
                "write the image and its tag without templates",
            );
            return None;
        }
        Some(reference(url, tag))
    }

    fn verification(&mut self, checked: &Checked, node: &Node) -> Verification {
        let require_signature = node.flag("require_signature");
        let authorities = node.tables("authorities");
        if require_signature && authorities.is_empty() {
            let place = checked.place_of(node, "require_signature");
            let help = "add `[[verification.authorities]]` with a `public_key`, or `issuer` and `subject`";
            self.sources.error(place, "the image needs a signature, but no authority is named", help);
        }
        for authority in authorities {
            self.authority(checked, authority);
        }
        if let (true, Some(keyless)) = (require_signature, authorities.iter().find(|node| is_keyless(node))) {
            self.not_checked(checked, keyless, authorities.iter().all(is_keyless));
        }
        let authorities = authorities.iter().map(|node| with_key_text(checked, node)).collect();
        Verification { require_signature, authorities }
    }

    /// Warns that builds do not check keyless signatures. `all` is true when every authority is keyless.
    fn not_checked(&mut self, checked: &Checked, node: &Node, all: bool) {
        let message = if all {
            "builds cannot check keyless signatures, so every build of this image fails"
        } else {
            "builds do not check keyless signatures, so the image needs a signature by a `public_key`"
        };
        let draft = Draft::warning(checked.place_of(node, "issuer"), message);
        self.sources
            .drafts
            .push(draft.help("sign the image with `cosign sign --key` and name that key as `public_key`"));
    }

    /// Reports mistakes in an authority, which is a key or an identity that an issuer confirms.
    fn authority(&mut self, checked: &Checked, node: &Node) {
        let has = |key: &str| node.get(key).is_some();
        let identity = ["issuer", "subject", "subject_regexp"].into_iter().find_map(|key| node.entry(key));
        if let Some((key, text)) = node.get("public_key").and_then(|key| Some((key, checked.content(key)?)))
            && !checked.is_unfetched(key)
            && let Err(wrong) = pem::public_key(text)
        {
            let help = "give the text of `cosign.pub`, as `cosign public-key --key cosign.key` writes it";
            self.sources.error(checked.place(key), wrong.to_string(), help);
        }
        let mistake = match (is_keyless(node), identity, node.entry("public_key")) {
            (true, _, Some(entry)) | (false, Some(entry), _) => {
                let message = format!("`{}` does not belong to this kind of signature", entry.key);
                Some((checked.key_place(entry), message))
            }
            (false, None, None) => Some((checked.place(node), "the authority has no `public_key`".to_owned())),
            (true, _, None) if !has("issuer") => {
                Some((checked.place(node), "the authority has neither `issuer` nor `public_key`".to_owned()))
            }
            (true, _, None) if has("subject") == has("subject_regexp") => {
                let message = "the authority needs one of `subject` and `subject_regexp`".to_owned();
                Some((checked.place(node), message))
            }
            (true, _, None) | (false, None, Some(_)) => None,
        };
        if let Some((place, message)) = mistake {
            let help = "give either `public_key`, or `issuer` with `subject` or `subject_regexp`";
            self.sources.error(place, message, help);
        }
    }
}

/// The names of the type of keyless signatures; an app version has the first.
const KEYLESS: [&str; 2] = ["sigstore_keyless", "keyless"];

/// Returns whether an authority is keyless: by its `type`, or else by the absence of a key.
fn is_keyless(authority: &Node) -> bool {
    match authority.text("type") {
        Some(word) => KEYLESS.contains(&word),
        None => authority.get("public_key").is_none(),
    }
}

/// Returns an authority from the config. If its `public_key` names a file, the result has the text of that file
/// instead. The type of a keyless signature has its own name.
fn with_key_text(checked: &Checked, node: &Node) -> Value {
    let mut value = node.to_json();
    if let (Some(key), Some(slot)) = (node.get("public_key"), value.get_mut("public_key")) {
        *slot = Value::from(checked.content(key).unwrap_or_default());
    }
    if let Some(word) = value.get_mut("type").filter(|word| word.as_str().is_some_and(|word| KEYLESS.contains(&word))) {
        let [own, _] = KEYLESS;
        *word = Value::from(own);
    }
    value
}
