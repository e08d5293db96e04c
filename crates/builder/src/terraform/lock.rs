//! Reads the dependency lock file of a module (Terraform documentation, "Dependency Lock File").

use std::path::Path;

use freehold_runner::job::failure::Failure;
use hcl_edit::expr::Expression;
use hcl_edit::structure::{Block, Body};

use super::plain_files::read_plain;

pub(super) const LOCK: &str = ".terraform.lock.hcl";

/// A provider in a lock file.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Locked {
    /// The provider's source address: `host/namespace/type`.
    pub(super) address: String,
    pub(super) version: String,
    /// The hashes of the packages for several platforms: `h1:` for the files in a package, `zh:` for its zip file.
    pub(super) hashes: Vec<String>,
}

impl Locked {
    /// Returns whether this entry of a lock file limits the packages of `other`: both name the same provider and
    /// version, and this entry has hashes.
    pub(super) fn pins(&self, other: &Self) -> bool {
        self.address == other.address && self.version == other.version && !self.hashes.is_empty()
    }
}

/// Returns the providers in the lock file of the module in `directory`, sorted by address.
pub(super) fn read(directory: &Path) -> Result<Vec<Locked>, Failure> {
    let Some(text) = read_plain(&directory.join(LOCK), &format!("`{LOCK}`"))? else { return Ok(Vec::new()) };
    parse(&text).map_err(|why| {
        Failure::new(format!(
            "`{LOCK}` of the module {why}; remove it and let `terraform providers lock` write it again"
        ))
    })
}

fn parse(text: &str) -> Result<Vec<Locked>, String> {
    let body: Body = text.parse().map_err(|error: hcl_edit::parser::Error| format!("is not a lock file: {error}"))?;
    let mut all: Vec<Locked> = body.get_blocks("provider").map(provider).collect::<Result<_, _>>()?;
    all.sort_by(|a, b| a.address.cmp(&b.address));
    Ok(all)
}

fn provider(block: &Block) -> Result<Locked, String> {
    let address = block.labels.first().ok_or("has a provider without a name")?.as_str().to_owned();
    let value = |key: &str| block.body.get_attribute(key).map(|attribute| &attribute.value);
    let version = value("version").and_then(Expression::as_str).map(str::to_owned);
    let hashes = value("hashes").and_then(Expression::as_array).into_iter().flatten();
    let hashes = hashes.filter_map(Expression::as_str).map(str::to_owned).collect();
    let version = version.ok_or_else(|| format!("names no version of provider `{address}`"))?;
    Ok(Locked { address, version, hashes })
}

/// Returns a log line for each provider that the module's own lock file did not pin, or pinned for only some platforms
/// of runners.
pub(super) fn choices(before: &[Locked], after: &[Locked]) -> Vec<String> {
    let line = |now: &Locked| {
        let name = format!("{}@{}", now.address, now.version);
        match before.iter().find(|one| one.address == now.address) {
            None => Some(format!(
                "`{LOCK}` of the module does not pin provider {name}; this build chose the newest version that the \
                 module permits, and the artifact pins it: {}",
                now.hashes.join(" ")
            )),
            Some(then) => {
                let is_new = |hash: &&String| hash.starts_with("h1:") && !then.hashes.contains(hash);
                let added: Vec<&str> = now.hashes.iter().filter(is_new).map(String::as_str).collect();
                let line =
                    format!("`{LOCK}` of the module lacks platforms of provider {name}; added {}", added.join(" "));
                (!added.is_empty()).then_some(line)
            }
        }
    };
    after.iter().filter_map(line).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    const TEXT: &str = r#"# This file is maintained automatically by "terraform init".
provider "registry.terraform.io/hashicorp/random" {
  version     = "3.7.1"
  constraints = "~> 3.0"
  hashes = [
    "h1:one=",
    "zh:two",
  ]
}
provider "registry.example:8443/acme/note" {
  version = "1.0.0"
}
"#;

    #[test]
    fn providers_are_read_with_their_versions_and_hashes() {
        let found = parse(TEXT).unwrap();

        let note =
            Locked { address: "registry.example:8443/acme/note".into(), version: "1.0.0".into(), hashes: Vec::new() };
        let random = Locked {
            address: "registry.terraform.io/hashicorp/random".into(),
            version: "3.7.1".into(),
            hashes: vec!["h1:one=".into(), "zh:two".into()],
        };
        assert_eq!(found, [note, random]);
        assert!(parse("provider {").unwrap_err().starts_with("is not a lock file"));
        assert!(parse("provider \"a\" {}").unwrap_err().contains("names no version of provider `a`"));
    }

    #[test]
    fn the_log_says_which_provider_the_build_chose_and_whose_platforms_it_added() {
        let after = parse(TEXT).unwrap();
        let mut before = after.clone();
        for one in &mut before {
            one.hashes.retain(|hash| hash.starts_with("zh:"));
        }

        let unpinned = choices(&before[..1], &after);
        let other_platforms = choices(&before, &after);

        assert!(unpinned[0].contains("does not pin provider registry.terraform.io/hashicorp/random@3.7.1"));
        assert_eq!(other_platforms.len(), 1);
        assert!(other_platforms[0].ends_with("random@3.7.1; added h1:one="), "{other_platforms:?}");
        assert!(choices(&after, &after).is_empty());
    }
}
