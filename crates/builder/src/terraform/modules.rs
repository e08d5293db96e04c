//! The modules that a module calls: the hosts that they come from, and the directory where Terraform installs them.

use std::collections::BTreeSet;
use std::io::ErrorKind;
use std::path::Path;

use freehold_runner::job::failure::Failure;
use serde::{Deserialize, Serialize};
use serde_json::Value;

use super::plain_files::{read_plain, unreadable};

/// Terraform's own directory in a module.
const DATA: &str = ".terraform";
/// Terraform's list of the installed modules.
const LIST: &str = ".terraform/modules/modules.json";
/// The maximum depth of directories that are searched for Terraform files.
const MAX_DEPTH: usize = 12;

/// The list of installed modules.
#[derive(Serialize, Deserialize)]
struct Installed {
    #[serde(rename = "Modules")]
    modules: Vec<Module>,
}

#[derive(Serialize, Deserialize)]
struct Module {
    #[serde(rename = "Key")]
    key: String,
    #[serde(rename = "Source")]
    source: String,
    #[serde(rename = "Dir")]
    directory: String,
    #[serde(flatten)]
    rest: serde_json::Map<String, Value>,
}

/// Removes the directory that an earlier `terraform init` left in the source.
pub(super) fn clear(directory: &Path) -> Result<(), Failure> {
    let path = directory.join(DATA);
    let is_directory = path.symlink_metadata().map(|data| data.is_dir());
    let removed = match is_directory {
        Ok(true) => std::fs::remove_dir_all(&path),
        Ok(false) => std::fs::remove_file(&path),
        Err(error) if error.kind() == ErrorKind::NotFound => Ok(()),
        Err(error) => Err(error),
    };
    removed.map_err(|error| Failure::because("could not remove `.terraform` from the source", &error))
}

/// Sorts the list of installed modules, so that the same modules give the same artifact. Refuses a module outside of
/// `directory`, because only `directory` is packed.
pub(super) fn tidy(directory: &Path) -> Result<(), Failure> {
    let Some(text) = read_plain(&directory.join(LIST), "the list of modules")? else { return Ok(()) };
    let mut list: Installed = serde_json::from_str(&text).map_err(|error| unreadable("the list of modules", &error))?;
    if let Some(outside) = list.modules.iter().find(|module| module.directory.starts_with("..")) {
        return Err(Failure::new(format!(
            "module `{}` is `{}`, which is outside of the source, and only the source is packed; name a source directory that \
             contains it",
            outside.key, outside.source
        )));
    }
    list.modules.sort_by(|a, b| a.key.cmp(&b.key));
    let text = serde_json::to_vec(&list).map_err(|error| unreadable("the list of modules", &error))?;
    std::fs::write(directory.join(LIST), text).map_err(|error| unreadable("the list of modules", &error))
}

/// Returns the hosts that the files below `directory` name as sources of modules and providers. Sources that are named
/// only inside of a fetched module are not found; most of these are in a public registry.
pub(super) fn hosts(directory: &Path) -> BTreeSet<String> {
    sources(directory).iter().filter_map(|source| host_of(source)).collect()
}

/// Returns the URLs of the Git repositories that the files below `directory` name as sources of modules, as Terraform
/// passes them to Git.
pub(super) fn repositories(directory: &Path) -> BTreeSet<String> {
    sources(directory).iter().filter_map(|source| repository_of(source)).collect()
}

/// Returns the sources that the files below `directory` name.
fn sources(directory: &Path) -> BTreeSet<String> {
    let mut found = BTreeSet::new();
    let mut waiting = vec![(directory.to_owned(), 0)];
    while let Some((path, depth)) = waiting.pop() {
        for entry in std::fs::read_dir(&path).into_iter().flatten().flatten() {
            let name = entry.file_name().to_string_lossy().into_owned();
            let Ok(kind) = entry.file_type() else { continue };
            if kind.is_dir() && depth < MAX_DEPTH && name != ".git" {
                waiting.push((entry.path(), depth + 1));
            } else if kind.is_file() && [".tf", ".tofu", ".tf.json", ".tofu.json"].iter().any(|end| name.ends_with(end))
            {
                let text = std::fs::read_to_string(entry.path()).unwrap_or_default();
                found.extend(text.lines().filter_map(source_of).map(str::to_owned));
            }
        }
    }
    found
}

/// Returns the URL of the Git repository that a source names (Terraform documentation, "Module Sources").
fn repository_of(source: &str) -> Option<String> {
    let source = source.split('?').next()?;
    let (forced, source) = source.strip_prefix("git::").map_or((false, source), |rest| (true, rest));
    // A double slash after the `://` of the scheme begins a directory inside of the repository.
    let repository = |scheme: &str, rest: &str| format!("{scheme}://{}", rest.split("//").next().unwrap_or(rest));
    if let Some((scheme, rest)) = source.split_once("://") {
        return (forced || scheme == "ssh").then(|| repository(scheme, rest));
    }
    if let Some((user_and_host, path)) = source.split_once(':').filter(|(user_and_host, _)| user_and_host.contains('@'))
    {
        return Some(repository("ssh", &format!("{user_and_host}/{path}")));
    }
    let known = ["github.com/", "bitbucket.org/"].iter().any(|host| source.starts_with(host));
    let url = repository("https", source);
    known.then(|| if url.ends_with(".git") { url.clone() } else { format!("{url}.git") })
}

/// Returns the value in a line such as `source = "..."` or `"source": "..."`.
fn source_of(line: &str) -> Option<&str> {
    let (_, rest) = line.split_once("source")?;
    let rest = rest.trim_start_matches('"').trim_start().strip_prefix(['=', ':'])?;
    rest.trim_start().strip_prefix('"')?.split('"').next()
}

/// Returns the host of a source, if the source names one (Terraform documentation, "Module Sources", "Provider
/// Requirements").
fn host_of(source: &str) -> Option<String> {
    let source = source.rsplit("::").next()?;
    let rest = source.split_once("://").map_or(source, |(_, rest)| rest);
    let authority = rest.split(['/', '?']).next()?;
    let host = authority.rsplit('@').next()?.split(':').next()?;
    let is_host = host.contains('.')
        && !host.starts_with('.')
        && host.bytes().all(|byte| byte.is_ascii_alphanumeric() || matches!(byte, b'.' | b'-'));
    is_host.then(|| host.to_ascii_lowercase())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn sources_name_their_hosts() {
        let directory = tempfile::tempdir().unwrap();
        let text = r#"
module "a" { source = "git::https://user@Git.example.com/net.git?ref=v1" }
module "b" {
  source  = "app.registry.example/acme/vpc/aws"
  version = "1.0.0"
}
module "c" { source = "./modules/c" }
module "d" { source = "terraform-aws-modules/vpc/aws" }
module "e" { source = "git@code.example.org:acme/net.git" }
terraform { required_providers { note = { source = "providers.example:8443/acme/note" } } }
"#;
        std::fs::create_dir(directory.path().join("c")).unwrap();
        std::fs::write(directory.path().join("c/main.tf"), text).unwrap();
        let json = "{\"module\": {\"f\": {\n\"source\": \"https://files.example/f.zip\"}}}";
        std::fs::write(directory.path().join("f.tf.json"), json).unwrap();

        let found: Vec<String> = hosts(directory.path()).into_iter().collect();

        assert_eq!(
            found,
            ["app.registry.example", "code.example.org", "files.example", "git.example.com", "providers.example"]
        );
    }

    #[test]
    fn sources_name_their_git_repositories() {
        for (source, url) in [
            ("git::https://user@git.example.com/net.git//vpc?ref=v1", Some("https://user@git.example.com/net.git")),
            ("git::ssh://git@git.example.com/net.git", Some("ssh://git@git.example.com/net.git")),
            ("git@code.example.org:acme/net.git//vpc", Some("ssh://git@code.example.org/acme/net.git")),
            ("github.com/acme/net//vpc?ref=v1", Some("https://github.com/acme/net.git")),
            ("https://files.example/f.zip", None),
            ("terraform-aws-modules/vpc/aws", None),
            ("providers.example:8443/acme/note", None),
            ("./modules/c", None),
        ] {
            assert_eq!(repository_of(source).as_deref(), url, "{source}");
        }
    }

    #[test]
    fn the_list_of_modules_is_in_order_and_names_no_module_outside() {
        let directory = tempfile::tempdir().unwrap();
        std::fs::create_dir_all(directory.path().join(".terraform/modules")).unwrap();
        let list = directory.path().join(LIST);
        let module =
            |key: &str, dir: &str| format!(r#"{{"Key":"{key}","Source":"x","Version":"1.0.0","Dir":"{dir}"}}"#);
        let write =
            |one: String, two: String| std::fs::write(&list, format!(r#"{{"Modules":[{one},{two}]}}"#)).unwrap();

        write(module("b", ".terraform/modules/b"), module("", "."));
        tidy(directory.path()).unwrap();
        let one = std::fs::read(&list).unwrap();
        write(module("", "."), module("b", ".terraform/modules/b"));
        tidy(directory.path()).unwrap();

        assert_eq!(std::fs::read(&list).unwrap(), one);
        assert!(String::from_utf8(one).unwrap().contains(r#""Version":"1.0.0""#));
        write(module("", "."), module("shared", "../shared"));
        let Err(Failure::Failed { reason, .. }) = tidy(directory.path()) else { panic!("accepted") };
        assert!(reason.contains("module `shared` is `x`, which is outside"), "{reason}");
    }

    #[test]
    fn what_an_earlier_init_left_is_removed() {
        let directory = tempfile::tempdir().unwrap();
        let elsewhere = tempfile::tempdir().unwrap();
        std::fs::write(elsewhere.path().join("kept"), "").unwrap();
        std::os::unix::fs::symlink(elsewhere.path(), directory.path().join(DATA)).unwrap();

        clear(directory.path()).unwrap();
        clear(directory.path()).unwrap();

        assert!(!directory.path().join(DATA).exists() && elsewhere.path().join("kept").exists());
    }
}
