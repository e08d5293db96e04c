//! A small app config in a fresh directory, with files replaced, added or removed.

use std::path::{Path, PathBuf};

use freehold_appconfig::Diagnostics;
use freehold_appconfig::Fetched;
use freehold_appconfig::Loaded;
use freehold_appconfig::check;
use freehold_appconfig::load;
use freehold_appconfig::load_with;
use tempfile::TempDir;

const METADATA: &str = "version = \"v2\"\n";

const INPUTS: &str = r#"[[group]]
name = "main"

[[input]]
name = "region"
display_name = "Region"
description = "where"
group = "main"
default = "eu-west-1"
"#;

const WEB: &str = r#"name = "web"
type = "container_image"

[public]
image_url = "registry.example/web"
tag = "1.0"
"#;

const NET: &str = r#"name = "net"
type = "terraform_module"
terraform_version = "1.11.3"
source = "./modules/net"

[vars]
region = "{{ .nuon.inputs.inputs.region }}"
"#;

/// Declares the values that tests give.
const MODULE: &str = r#"variable "region" {
  default = "eu-west-1"
}
variable "a" { default = "" }
variable "b" { default = "" }
variable "x" { default = "" }
"#;

/// A sandbox that may have a cluster: its module is in a repository.
const SANDBOX: &str = "terraform_version = \"1.11.3\"\n[public_repo]\nrepo = \"acme/sandboxes\"\n\
                       branch = \"0123456789abcdef0123456789abcdef01234567\"\n";

/// An app config on disk.
pub(crate) struct Config {
    _home: TempDir,
    pub(crate) dir: PathBuf,
}

/// Returns a config without mistakes and with two components, `web` and `net`.
pub(crate) fn good() -> Config {
    let home = TempDir::new().unwrap();
    let dir = home.path().join("shop");
    let config = Config { _home: home, dir };
    config
        .with("metadata.toml", METADATA)
        .with("inputs.toml", INPUTS)
        .with("components/web.toml", WEB)
        .with("components/net.toml", NET)
        .with("modules/net/main.tf", MODULE)
}

impl Config {
    /// Writes a file.
    pub(crate) fn with(self, path: &str, text: &str) -> Self {
        write(&self.dir.join(path), text);
        self
    }

    /// Adds roles that may do everything.
    pub(crate) fn with_roles(self) -> Self {
        ["provision", "maintenance"].into_iter().fold(self, |config, mode| {
            let role = format!("type = \"{mode}\"\nname = \"{mode}\"\ndescription = \"d\"\n");
            let all = "[[policies]]\nmanaged_policy_name = \"AdministratorAccess\"\n";
            config.with(&format!("permissions/{mode}.toml"), &(role + all))
        })
    }

    /// Adds a sandbox that may have a cluster.
    pub(crate) fn with_sandbox(self) -> Self {
        self.with("sandbox.toml", SANDBOX)
    }

    /// Removes a file.
    pub(crate) fn without(self, path: &str) -> Self {
        std::fs::remove_file(self.dir.join(path)).unwrap();
        self
    }

    pub(crate) fn load(&self) -> Loaded {
        let loaded = load(&self.dir).unwrap_or_else(|found| panic!("{found}"));
        Loaded { warnings: mistakes(loaded.warnings), ..loaded }
    }

    /// Returns what `load` refuses, or the warnings that it gives.
    pub(crate) fn faults(&self) -> Diagnostics {
        mistakes(self.all())
    }

    /// As [`Self::faults`], with the warnings about what has no effect.
    pub(crate) fn all(&self) -> Diagnostics {
        load(&self.dir).map_or_else(|found| found, |loaded| loaded.warnings)
    }

    /// As [`Self::faults`], with the texts behind addresses.
    pub(crate) fn faults_with(&self, fetched: &[(&str, &str)]) -> Diagnostics {
        mistakes(load_with(&self.dir, &texts(fetched)).map_or_else(|found| found, |loaded| loaded.warnings))
    }

    /// As [`Self::load`], with the texts behind addresses.
    pub(crate) fn load_with(&self, fetched: &[(&str, &str)]) -> Loaded {
        let loaded = load_with(&self.dir, &texts(fetched)).unwrap_or_else(|found| panic!("{found}"));
        Loaded { warnings: mistakes(loaded.warnings), ..loaded }
    }

    pub(crate) fn check(&self) -> Diagnostics {
        mistakes(check(&self.dir))
    }
}

/// Leaves out the warnings about what has no effect, and about an app without a tool image or without a role for
/// removals: they have tests of their own, in `effects`, `missing_programs` and `missing_permissions`, and the other tests
/// do not change when a part gets its effect.
fn mistakes(found: Diagnostics) -> Diagnostics {
    let has_own_tests = |message: &str| {
        message.starts_with('`') && message.ends_with("` has no effect")
            || message.starts_with("the app cannot be deployed yet: ")
            || message.starts_with("the app has no role for mode `deprovision`")
            || is_of_programs(message)
    };
    found.filter(|one| !has_own_tests(&one.message))
}

/// Returns whether a message is about a program that the machine of an install stack does not have.
pub(crate) fn is_of_programs(message: &str) -> bool {
    message.contains(", which the machine of the install stack does not have, ")
}

fn texts(fetched: &[(&str, &str)]) -> Fetched {
    fetched.iter().map(|(address, text)| ((*address).to_owned(), (*text).to_owned())).collect()
}

fn write(path: &Path, text: &str) {
    std::fs::create_dir_all(path.parent().unwrap()).unwrap();
    std::fs::write(path, text).unwrap();
}
