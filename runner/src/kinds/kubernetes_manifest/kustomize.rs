//! Renders a kustomization with `kustomize` or, where that is missing, with `kubectl kustomize`, in the job's box.

use std::path::{Component, Path, PathBuf};

use freehold_aws_errors::chain;
use freehold_protocol::order::ApplyManifest;
use serde_json::{Value, json};

use crate::job::Job;
use crate::job::failure::Failure;
use crate::kinds::templates::Templates;
use crate::sandbox::{self, Ended, Output, Printed, Program};
use crate::workspace::{self, Kind, MAX_DOCUMENT, WorkspaceError};

/// The directory in the workspace for the unpacked layer, which holds the source and the settings of the config.
pub(super) const DIRECTORY: &str = "packed";
const SOURCE: &str = "packed/kustomization";
const OPTIONS: &str = "packed/options.json";
/// The directory of the kustomization by which the runner adds the patches of the config to the source.
const OVERLAY: &str = "overlay";

/// Renders the unpacked kustomization with the patches of the config.
pub(super) async fn render(job: &Job, work: &ApplyManifest, templates: &Templates) -> Result<String, Failure> {
    let failed = |why: String| Failure::new(format!("component `{}`, `kustomize`: {why}", work.component));
    let unreadable = |error: &dyn std::error::Error| failed(format!("its settings cannot be read: {}", chain(error)));
    let options = workspace::read(&job.workspace, OPTIONS, MAX_DOCUMENT).await.map_err(|error| unreadable(&error))?;
    let options: Value = serde_json::from_slice(&options).map_err(|error| unreadable(&error))?;
    let options = templates.value("`kustomize`", &options)?;
    let directory = options.get("path").and_then(Value::as_str).unwrap_or_default();
    let source = plain(directory).ok_or_else(|| failed(format!("`{directory}` is outside of the source")))?;
    let base = Path::new(SOURCE).join(&source);
    let patches = patches(&job.workspace, &base, options.get("patches")).await.map_err(failed)?;
    let target = if patches.is_empty() { base } else { overlay(job, &base, &patches).await? };
    let words = arguments(&options);
    run(job, target, words).await.map_err(|failure| match failure {
        Failure::Failed { reason, .. } => failed(reason),
        other @ (Failure::Stopped { .. } | Failure::Waits(_) | Failure::NotApproved { .. }) => other,
    })
}

/// Returns `directory` as a path relative to the source, or `None` when it leads out of the source.
fn plain(directory: &str) -> Option<PathBuf> {
    let parts = Path::new(directory.trim_start_matches('/')).components();
    parts
        .filter(|part| *part != Component::CurDir)
        .map(|part| matches!(part, Component::Normal(_)).then_some(part))
        .collect()
}

/// Returns the patches in the form that Kustomize reads. A patch in a file below `base` becomes inline text, because the
/// overlay cannot name files in the source.
async fn patches(workspace: &Path, base: &Path, written: Option<&Value>) -> Result<Vec<Value>, String> {
    let written = match written {
        None | Some(Value::Null) => return Ok(Vec::new()),
        Some(Value::Array(all)) => all.as_slice(),
        Some(one) => std::slice::from_ref(one),
    };
    let mut patches = Vec::new();
    for patch in written {
        patches.push(one_patch(workspace, base, patch).await?);
    }
    Ok(patches)
}

async fn one_patch(workspace: &Path, base: &Path, patch: &Value) -> Result<Value, String> {
    match patch {
        Value::String(text) if text.contains('\n') => Ok(json!({ "patch": text })),
        Value::String(path) => Ok(json!({ "patch": file(workspace, base, path).await? })),
        Value::Object(map) => {
            let mut map = map.clone();
            if let Some(Value::String(path)) = map.remove("path") {
                map.insert("patch".to_owned(), Value::from(file(workspace, base, &path).await?));
            }
            Ok(Value::Object(map))
        }
        Value::Null | Value::Bool(_) | Value::Number(_) | Value::Array(_) => {
            Err(format!("`{patch}` is not a patch; write its text, the path of its file, or a table with `target`"))
        }
    }
}

/// Returns the text of a patch in a file of the source. No link is followed: the runner reads the file itself, and not the
/// job's box.
async fn file(workspace: &Path, base: &Path, path: &str) -> Result<String, String> {
    let inside = plain(path).ok_or_else(|| format!("patch `{path}` is outside of the source"))?;
    let text = workspace::read_text(workspace, base.join(inside)).await;
    text.map_err(|error| match error {
        WorkspaceError::Gone(_) => format!("there is no patch `{path}` in the source"),
        WorkspaceError::NotPlain(_) => {
            format!(
                "patch `{path}`, or a directory on the way to it, is a link or not a file; write its text, or name \
                 the file itself"
            )
        }
        other @ (WorkspaceError::TooLarge { .. } | WorkspaceError::Io { .. }) => {
            format!("patch `{path}` cannot be read: {}", chain(&other))
        }
    })
}

async fn overlay(job: &Job, base: &Path, patches: &[Value]) -> Result<PathBuf, Failure> {
    let text = json!({
        "apiVersion": "kustomize.config.k8s.io/v1beta1",
        "kind": "Kustomization",
        "resources": [Path::new("..").join(base)],
        "patches": patches,
    });
    let name = Path::new(OVERLAY).join("kustomization.yaml");
    workspace::write(&job.workspace, name, text.to_string(), Kind::Document).await?;
    Ok(OVERLAY.into())
}

/// Returns the options for Kustomize. Omits options with the default value, because the oldest versions do not know
/// them.
fn arguments(options: &Value) -> Vec<String> {
    let mut words = Vec::new();
    if options.get("enable_helm").and_then(Value::as_bool) == Some(true) {
        words.push("--enable-helm".to_owned());
    }
    if options.get("load_restrictor").and_then(Value::as_str) == Some("none") {
        words.push("--load-restrictor=LoadRestrictionsNone".to_owned());
    }
    words
}

async fn run(job: &Job, target: PathBuf, words: Vec<String>) -> Result<String, Failure> {
    let (executable, command) = match sandbox::find_program_of(job, &["kustomize"]) {
        Some(kustomize) => (kustomize, "build"),
        None => (
            sandbox::find_program_of(job, &["kubectl"]).ok_or_else(|| {
                let none = "there is neither `kustomize` nor `kubectl` on this runner's `PATH`; install one";
                Failure::new(sandbox::lacks_program(job, &["kustomize", "kubectl"], none))
            })?,
            "kustomize",
        ),
    };
    let unreadable = |error| Failure::because("could not read the output of kustomize", &error);
    let printed = Printed::new(job).map_err(unreadable)?;
    let arguments = [command.to_owned(), target.display().to_string()].into_iter().chain(words).collect();
    let program = Program {
        output: Output::Kept(printed.clone()),
        ..Program::new(&executable, arguments, sandbox::base_environment(job))
    };
    match sandbox::run(job, program).await? {
        Ended::Code { code: 0, .. } => printed.text().await.map_err(unreadable),
        Ended::Code { code, last_words } => {
            let words = last_words.lines().next_back().unwrap_or_default().trim_start_matches("error: ");
            Err(Failure::new(format!("it does not render (exit code {code}): {words}")))
        }
        Ended::Stopped(reason) => Err(Failure::stopped(reason)),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn nothing_leads_out_of_the_source() {
        assert_eq!(plain("./a/b"), Some("a/b".into()));
        assert_eq!(plain("/a"), Some("a".into()));
        assert_eq!(plain(""), Some(PathBuf::new()));
        assert_eq!(plain("a/../../b"), None);
    }

    #[tokio::test]
    async fn patches_are_texts_or_files_of_the_source() {
        let workspace = tempfile::tempdir().unwrap();
        let base = workspace.path().join("base");
        std::fs::create_dir(&base).unwrap();
        std::fs::write(base.join("p.yaml"), "kind: A\n").unwrap();
        std::fs::write(workspace.path().join("secret"), "kind: Secret\n").unwrap();
        std::os::unix::fs::symlink("/etc/hostname", base.join("out.yaml")).unwrap();
        std::os::unix::fs::symlink("..", base.join("up")).unwrap();
        std::os::unix::fs::symlink("base", workspace.path().join("linked")).unwrap();
        let of = async |base: &str, written: Value| patches(workspace.path(), Path::new(base), Some(&written)).await;

        assert_eq!(of("base", json!(["p.yaml"])).await.unwrap(), [json!({ "patch": "kind: A\n" })]);
        assert_eq!(of("base", json!(["kind: B\na: 1\n"])).await.unwrap(), [json!({ "patch": "kind: B\na: 1\n" })]);
        assert_eq!(
            of("base", json!([{ "target": { "kind": "A" }, "path": "p.yaml" }])).await.unwrap(),
            [json!({ "target": { "kind": "A" }, "patch": "kind: A\n" })]
        );
        assert!(of("base", json!(["../secret"])).await.unwrap_err().contains("is outside of the source"));
        assert!(of("base", json!(["none.yaml"])).await.unwrap_err().contains("no patch `none.yaml`"));
        assert!(of("base", json!([1])).await.unwrap_err().contains("not a patch"));
        for (base, path) in [("base", "out.yaml"), ("base", "up/secret"), ("linked", "p.yaml"), ("base", ".")] {
            let refused = of(base, json!([path])).await;
            assert!(refused.is_err(), "{base}/{path}: {refused:?}");
        }
    }
}
