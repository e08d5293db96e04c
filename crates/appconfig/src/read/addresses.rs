//! Parses the addresses of texts that a config names: `https://...`, `http://...`, `git::...//path?ref=...`,
//! `file://...`.

use std::collections::{BTreeMap, BTreeSet};

/// The texts that the caller fetched, by the address that the config names (`https://...`, `git::...//path?ref=...`).
pub type Fetched = BTreeMap<String, String>;

/// The addresses that a config names: those whose texts are known, and those whose texts are missing.
#[derive(Debug, Default)]
pub(crate) struct Addresses {
    /// For each address whose text is known: the index of the file with that text.
    pub(crate) files: BTreeMap<String, usize>,
    /// The addresses whose texts the caller has to fetch.
    pub(crate) missing: BTreeSet<String>,
}

/// A file of a git repository.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct GitAddress {
    /// The address of the repository, as an argument for `git clone`.
    pub url: String,
    /// The path of the file in the repository, with forward slashes.
    pub path: String,
    /// A branch, tag or commit; `HEAD` when the address has no `ref`.
    pub reference: String,
}

/// Parses an address such as `git::https://host/owner/name//path/of/file?ref=v1`. Returns `None` for any other text.
///
/// All three parts of the result are safe as arguments of `git`: none begins with a dash, and the path stays inside of
/// the repository.
pub fn git_address(text: &str) -> Option<GitAddress> {
    let rest = text.strip_prefix("git::")?;
    let (rest, query) = rest.split_once('?').unwrap_or((rest, ""));
    let after_scheme = rest.find("://").map_or(0, |at| at + 3);
    let at = rest.get(after_scheme..)?.find("//")? + after_scheme;
    let (url, path) = (rest.get(..at)?, rest.get(at + 2..)?);
    let reference = query.split('&').find_map(|pair| pair.strip_prefix("ref=")).unwrap_or("HEAD");
    let remote = ["https://", "ssh://", "http://", "git@"].iter().any(|start| url.starts_with(start));
    let inside = !path.is_empty() && path.split('/').all(|part| !matches!(part, "" | "." | ".."));
    let plain =
        |text: &str| !text.is_empty() && !text.starts_with('-') && !text.contains(|c: char| c.is_control() || c == ' ');
    (remote && inside && plain(url) && plain(path) && plain(reference)).then(|| GitAddress {
        url: url.to_owned(),
        path: path.to_owned(),
        reference: reference.to_owned(),
    })
}

/// The way in which a value names a text that is stored elsewhere.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Naming<'a> {
    /// A path relative to the file or to the app's directory.
    Path(&'a str),
    /// The path of a `file://` address.
    FileAddress(&'a str),
    /// An address whose text the caller has to fetch.
    Remote,
    /// A text that begins with `git::` and is not a valid address.
    Malformed,
}

/// Returns how `text` names another text; `None` when `text` does not name one and is used itself.
pub(crate) fn naming(text: &str) -> Option<Naming<'_>> {
    if text.contains('\n') {
        return None;
    }
    if let Some(path) = text.strip_prefix("file://") {
        return Some(Naming::FileAddress(path));
    }
    if text.starts_with("git::") {
        return Some(if git_address(text).is_some() { Naming::Remote } else { Naming::Malformed });
    }
    if ["https://", "http://"].iter().any(|start| text.starts_with(start)) {
        return Some(Naming::Remote);
    }
    ["./", "../"].iter().any(|start| text.starts_with(start)).then_some(Naming::Path(text))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_git_address_is_taken_apart() {
        let found = git_address("git::https://git.example/acme/app//deploy/crds.yaml?ref=v1.2").unwrap();

        assert_eq!(found.url, "https://git.example/acme/app");
        assert_eq!(found.path, "deploy/crds.yaml");
        assert_eq!(found.reference, "v1.2");
        assert_eq!(git_address("git::git@git.example:acme/app.git//a.sh").unwrap().reference, "HEAD");
        assert_eq!(
            git_address("git::ssh://git@git.example/acme/app//a.sh?depth=1&ref=main").unwrap().reference,
            "main"
        );
    }

    #[test]
    fn an_address_that_git_could_misread_is_refused() {
        for text in [
            "https://git.example/a//b",
            "git::https://git.example/acme/app",
            "git::https://git.example/acme/app//",
            "git::https://git.example/acme/app//../secret",
            "git::https://git.example/acme/app//a?ref=--upload-pack=x",
            "git::https://git.example/acme/app//-a",
            "git::--upload-pack=x//a",
            "git::/etc//passwd",
            "git::ext::sh//a",
        ] {
            assert_eq!(git_address(text), None, "{text}");
        }
    }
}
