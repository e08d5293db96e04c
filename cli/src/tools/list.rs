//! The list of programs, `tools.toml`: the contents of an image, with their origins and checksums.

use std::collections::{BTreeMap, BTreeSet};
use std::path::{Component, Path, PathBuf};

use freehold_protocol::Digest;
use serde::Deserialize;

use super::LIST;
use crate::error::{Error, Result, ResultExt};

/// The default directory of a program in the image.
const PROGRAMS: &str = "/usr/local/bin";
/// The platforms of the machines that a runner supports.
const PLATFORMS: [&str; 2] = ["linux/amd64", "linux/arm64"];

/// The list.
#[derive(Debug, Clone, Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct List {
    /// The platforms of the image, such as `linux/arm64`.
    pub(super) platforms: BTreeSet<String>,
    /// Variables that programs in the image get.
    #[serde(default)]
    pub(super) env: BTreeMap<String, String>,
    /// The items in the order of the list: a later file replaces an earlier one.
    pub(super) item: Vec<Item>,
}

/// One program, file or archive of files.
#[derive(Debug, Clone, Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct Item {
    pub(super) name: String,
    /// The platform that the item is for; absent for all platforms.
    pub(super) platform: Option<String>,
    /// The address from which the item is fetched; absent if `file` names a file beside the list.
    pub(super) url: Option<String>,
    pub(super) file: Option<PathBuf>,
    /// SHA-256 of the fetched bytes, in hex.
    #[serde(default)]
    pub(super) sha256: String,
    #[serde(default)]
    pub(super) kind: Kind,
    /// The path of the program inside a zip or a gzipped tar.
    pub(super) member: Option<String>,
    /// The path of the program in the image.
    pub(super) path: Option<String>,
}

/// The content of an item.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "lowercase")]
pub(super) enum Kind {
    /// One file.
    #[default]
    Program,
    /// A gzipped tar of a root file system or of a part of one; it becomes a layer unchanged.
    Tree,
}

/// The origin of an item's bytes.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum Origin {
    Url(String),
    File(PathBuf),
}

impl List {
    /// Reads the list in `dir`.
    pub(super) fn read(dir: &Path) -> Result<Self> {
        let path = dir.join(LIST);
        let text = crate::file::read_text(
            &path,
            "pass the directory of the list; `freehold tools init APP` writes one to start from",
        )?;
        Self::parse(&text).map_err(|error| error.within(format!("`{}`", path.display())))
    }

    fn parse(text: &str) -> Result<Self> {
        let list: Self =
            toml_edit::de::from_str(text).map_err(|error| Error::invalid(error.to_string().trim_end().to_owned()))?;
        let known = |platform: &String| PLATFORMS.contains(&platform.as_str());
        if list.platforms.is_empty() || !list.platforms.iter().all(known) {
            return Err(Error::invalid(format!(
                "`platforms` must name one or more of `{}`",
                PLATFORMS.join("` and `")
            )));
        }
        for item in &list.item {
            item.check(&list.platforms).map_err(|error| error.within(format!("item `{}`", item.name)))?;
        }
        Ok(list)
    }

    /// Returns the items of one platform.
    pub(super) fn of<'a>(&'a self, platform: &'a str) -> impl Iterator<Item = &'a Item> {
        self.item.iter().filter(move |item| item.platform.as_deref().is_none_or(|own| own == platform))
    }
}

impl Item {
    fn check(&self, platforms: &BTreeSet<String>) -> Result<()> {
        self.origin()?;
        if let Some(platform) = &self.platform
            && !platforms.contains(platform)
        {
            return Err(Error::invalid(format!(
                "platform `{platform}` is not in `platforms`; add it, or remove the item"
            )));
        }
        if self.kind == Kind::Tree && (self.member.is_some() || self.path.is_some()) {
            return Err(Error::invalid("an item of kind `tree` is added unchanged; remove `member` and `path`"));
        }
        let path = self.path();
        let plain = Path::new(&path).components().skip(1).all(|part| matches!(part, Component::Normal(_)));
        if !path.starts_with('/') || path.ends_with('/') || !plain || self.name.contains('/') {
            return Err(Error::invalid(format!(
                "`{path}` is not the path of a file in the image; write it as `/usr/local/bin/NAME`"
            )));
        }
        if self.sha256.is_empty() { Ok(()) } else { self.digest().map(drop) }
    }

    /// Returns the origin of the item's bytes.
    pub(super) fn origin(&self) -> Result<Origin> {
        match (&self.url, &self.file) {
            (Some(url), None) if url.starts_with("https://") => Ok(Origin::Url(url.clone())),
            (Some(url), None) => Err(Error::invalid(format!("`{url}` must begin with `https://`"))),
            (None, Some(file))
                if file.components().all(|part| matches!(part, Component::Normal(_) | Component::CurDir)) =>
            {
                Ok(Origin::File(file.clone()))
            }
            (None, Some(file)) => Err(Error::invalid(format!(
                "`{}` is not a file below the directory of the list; copy it there",
                file.display()
            ))),
            (Some(_), Some(_)) => Err(Error::invalid("it has both `url` and `file`; remove one of them")),
            (None, None) => Err(Error::invalid("it has no `url` and no `file`; write one of them")),
        }
    }

    /// Returns the item's checksum.
    pub(super) fn digest(&self) -> Result<Digest> {
        if self.sha256.is_empty() {
            return Err(Error::invalid("it has no `sha256`; write the publisher's, or run `freehold tools pin`"));
        }
        let digest = format!("sha256:{}", self.sha256).parse();
        digest
            .map_err(|_| Error::invalid(format!("`{}` is not a SHA-256; write its 64 hexadecimal digits", self.sha256)))
    }

    /// Returns the path of the item's program in the image.
    pub(super) fn path(&self) -> String {
        self.path.clone().unwrap_or_else(|| format!("{PROGRAMS}/{}", self.name))
    }

    /// Returns whether the item's file may be executed: whether it is in a directory for programs.
    pub(super) fn is_program(&self) -> bool {
        let path = self.path();
        path.split('/').any(|part| part == "bin" || part == "sbin" || part == "libexec")
    }
}

/// Writes the checksums of items into the list in `dir`, and changes nothing else.
pub(super) fn write_checksums(dir: &Path, found: &BTreeMap<usize, Digest>) -> Result<()> {
    let path = dir.join(LIST);
    let doing = || format!("write the checksums into `{}`", path.display());
    let text = std::fs::read_to_string(&path).doing(doing())?;
    let mut document: toml_edit::DocumentMut =
        text.parse().map_err(|error: toml_edit::TomlError| Error::invalid(error.to_string()))?;
    let items = document.get_mut("item").and_then(toml_edit::Item::as_array_of_tables_mut);
    let items = items.ok_or_else(|| Error::invalid("`item` is not a list of tables; write each item as `[[item]]`"))?;
    for (index, table) in items.iter_mut().enumerate() {
        if let Some(digest) = found.get(&index) {
            table.insert("sha256", toml_edit::value(digest.hex()));
        }
    }
    crate::file::replace(&path, &document.to_string())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn wrong(item: &str) -> String {
        let text = format!("platforms = [\"linux/amd64\"]\n[[item]]\nname = \"helm\"\n{item}");
        List::parse(&text).unwrap_err().to_string()
    }

    #[test]
    fn a_mistake_names_the_item_and_the_way_out() {
        assert_eq!(wrong(""), "item `helm`: it has no `url` and no `file`; write one of them");
        assert_eq!(
            wrong("url = \"http://a.example/b\""),
            "item `helm`: `http://a.example/b` must begin with `https://`"
        );
        assert_eq!(
            wrong("file = \"a\"\nsha256 = \"12\""),
            "item `helm`: `12` is not a SHA-256; write its 64 hexadecimal digits"
        );
        for path in ["bin/helm", "/bin/../helm", "/bin/", "/"] {
            assert!(wrong(&format!("file = \"a\"\npath = \"{path}\"")).contains("is not the path of a file"), "{path}");
        }
        for file in ["/etc/passwd", "../a", "a/../../b"] {
            assert!(wrong(&format!("file = \"{file}\"")).contains("is not a file below the directory"), "{file}");
        }
        assert!(wrong("file = \"a\"\nplatform = \"linux/arm64\"").contains("is not in `platforms`"));
        assert!(wrong("file = \"a\"\nsum = \"b\"").contains("unknown field `sum`"));
        assert!(List::parse("platforms = [\"linux/s390x\"]\nitem = []").is_err());
    }

    #[test]
    fn checksums_are_written_and_the_rest_stays() {
        let directory = tempfile::tempdir().unwrap();
        let list = "# mine\nplatforms = [\"linux/amd64\"]\n\n[[item]] # first\nname = \"a\"\nfile = \"a\"\n\n[[item]]\nname = \"b\"\nfile = \"b\"\n";
        std::fs::write(directory.path().join(LIST), list).unwrap();
        let digest = Digest::of(b"x");

        write_checksums(directory.path(), &BTreeMap::from([(1, digest.clone())])).unwrap();

        let written = std::fs::read_to_string(directory.path().join(LIST)).unwrap();
        assert_eq!(written, format!("{list}sha256 = \"{}\"\n", digest.hex()));
    }
}
