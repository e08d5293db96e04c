//! Makes the artifact of a Pulumi program: one layer with the files as they are in the source. Nothing of the program
//! runs, and nothing is fetched: the dependencies of the program are in its source (such as `vendor` of Go) or in the
//! tool image, or the runner's machine fetches them from the hosts that the contract names.

use std::path::Path;

use freehold_protocol::order::{Artifact, BuildArtifact, PROGRAM_ARTIFACT, PROGRAM_LAYER};
use freehold_runner::job::Job;
use freehold_runner::job::failure::{Failure, until_stopped};
use serde_json::Value;

use crate::chart::yaml;
use crate::package::push_layer;
use crate::{source, step};

/// The files in which Pulumi looks for a project, in its order.
const PROJECTS: [&str; 2] = ["Pulumi.yaml", "Pulumi.yml"];
/// The largest project file, in bytes.
const MAX_PROJECT: u64 = 1024 * 1024;
/// The largest tar of a program, in bytes. A runner unpacks only tars smaller than 1 GiB.
const MAX_BYTES: u64 = 1024 * 1024 * 1024 - 1;

/// Builds the program and pushes it.
pub(crate) async fn build(job: &Job, work: &BuildArtifact) -> Result<Artifact, Failure> {
    let directory = source::fetch(job, &work.source).await?;
    check(&directory).map_err(Failure::new)?;
    let layer = step::pack(job, directory, MAX_BYTES).await?;
    until_stopped(job, push_layer(job, work, &layer, PROGRAM_LAYER, PROGRAM_ARTIFACT)).await
}

/// Refuses a directory that is not a Pulumi project with a name and a runtime.
fn check(directory: &Path) -> Result<(), String> {
    let found = PROJECTS.into_iter().find(|name| directory.join(name).symlink_metadata().is_ok());
    let Some(name) = found else {
        return Err("the source has no `Pulumi.yaml`; name the directory of the program in `directory`".to_owned());
    };
    let path = directory.join(name);
    // A link may point outside of the source.
    let data = path.symlink_metadata().map_err(|error| format!("could not read `{name}`: {error}"))?;
    if !data.is_file() || data.len() > MAX_PROJECT {
        return Err(format!("`{name}` is not a regular file of at most {MAX_PROJECT} bytes"));
    }
    let text = std::fs::read_to_string(&path).map_err(|error| format!("could not read `{name}`: {error}"))?;
    let project = yaml::read(&text).map_err(|error| format!("`{name}`, {error}"))?;
    let is_text = |key: &str| project.get(key).and_then(Value::as_str).is_some_and(|text| !text.is_empty());
    if !is_text("name") {
        return Err(format!("`{name}` has no `name`; write the name of the project, such as `name: network`"));
    }
    // `config` with a text in place of a table is the older name of `stackConfigDir`.
    let moved = ["stackConfigDir", "config"].into_iter().find(|key| project.get(key).is_some_and(Value::is_string));
    if let Some(key) = moved {
        return Err(format!(
            "`{name}` has `{key}`, so Pulumi would not read the settings of the stack that the runner writes beside \
             `{name}`; remove the key"
        ));
    }
    if !is_text("runtime") && project.pointer("/runtime/name").and_then(Value::as_str).is_none() {
        return Err(format!("`{name}` has no `runtime`; write the language of the program, such as `runtime: go`"));
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn checked(files: &[(&str, &str)]) -> Result<(), String> {
        let directory = tempfile::tempdir().unwrap();
        for (name, text) in files {
            std::fs::write(directory.path().join(name), text).unwrap();
        }
        check(directory.path())
    }

    #[test]
    fn a_program_needs_a_project_with_a_name_and_a_runtime() {
        assert_eq!(checked(&[("Pulumi.yaml", "name: net\nruntime: go\n")]), Ok(()));
        let with_schema = "name: net\nruntime: go\nconfig:\n  size: 3\n";
        assert_eq!(checked(&[("Pulumi.yaml", with_schema)]), Ok(()));
        assert_eq!(checked(&[("Pulumi.yml", "name: net\nruntime:\n  name: nodejs\n")]), Ok(()));
        for (files, expected) in [
            (vec![("main.go", "package main")], "the source has no `Pulumi.yaml`"),
            (vec![("Pulumi.yaml", "runtime: go\n")], "`Pulumi.yaml` has no `name`"),
            (vec![("Pulumi.yaml", "name: net\n")], "`Pulumi.yaml` has no `runtime`"),
            (vec![("Pulumi.yaml", "name: [\n")], "`Pulumi.yaml`, "),
            (
                vec![("Pulumi.yaml", "name: net\nruntime: go\nstackConfigDir: c\n")],
                "`Pulumi.yaml` has `stackConfigDir`",
            ),
            (vec![("Pulumi.yaml", "name: net\nruntime: go\nconfig: c\n")], "`Pulumi.yaml` has `config`"),
        ] {
            let found = checked(&files).unwrap_err();
            assert!(found.starts_with(expected), "{found}");
        }
    }

    #[test]
    fn a_project_that_is_a_link_is_refused() {
        let directory = tempfile::tempdir().unwrap();
        std::os::unix::fs::symlink("/etc/hostname", directory.path().join("Pulumi.yaml")).unwrap();

        assert!(check(directory.path()).unwrap_err().contains("is not a regular file"));
    }
}
