//! Warns about parts of an app whose jobs start a program that the machine of an install stack does not have.

mod kubeconfig;
mod shell;

use std::collections::BTreeMap;

use freehold_protocol::app_version::{AppVersion, ComponentSpec, Platform, SandboxTool};

pub(crate) use kubeconfig::{calls_cluster, gets_kubeconfig};

use crate::kinds::Kind;
use crate::read::files::Place;
use crate::report::draft::Draft;
use crate::state::app::App;
use crate::state::file::Checked;

/// The programs that are searched in the scripts of actions. The machine has other programs, such as `bash` and `curl`.
const PROGRAMS: [&str; 6] = ["terraform", "tofu", "helm", "kubectl", "kustomize", "pulumi"];
/// The programs of which a deploy of a kustomization needs one.
const KUSTOMIZATION: &str = "kustomize or kubectl";
/// The commands that check whether a program exists.
const LOOKS: [&str; 4] = ["command", "hash", "type", "which"];
/// Words of commands that install programs, such as `dnf install`.
const INSTALLS: [&str; 2] = ["add", "install"];
/// The maximum number of parts that one warning names.
const NAMED: usize = 3;

/// A part of the app that needs a program, such as ``component `web` ``, and the place that a warning marks.
struct Need {
    part: String,
    place: Place,
}

/// Warns once for each program, at the first part that needs it. Does nothing if jobs have an image of their own, or
/// run in another cloud.
pub(crate) fn check(app: &mut App, version: &AppVersion) {
    let has_image = app.of(Kind::Runner).any(|checked| checked.root.get("tool_image").is_some());
    let elsewhere = version.stack.as_ref().is_some_and(|stack| stack.platform != Platform::AwsCloudformation)
        || version.runner.as_ref().is_some_and(|runner| runner.runner_type != "aws");
    if has_image || elsewhere || app.broken.contains(&Kind::Runner) {
        return;
    }
    let mut needs: BTreeMap<&'static str, Vec<Need>> = BTreeMap::new();
    for (program, need) in
        of_sandbox(app, version).into_iter().chain(of_components(app, version)).chain(of_actions(app))
    {
        needs.entry(program).or_default().push(need);
    }
    app.drafts.extend(needs.into_iter().filter_map(|(program, needs)| warning(program, &needs)));
}

fn warning(program: &str, needs: &[Need]) -> Option<Draft> {
    let first = needs.first()?;
    let parts: Vec<&str> = needs.iter().take(NAMED).map(|need| need.part.as_str()).collect();
    let more = needs.len().saturating_sub(NAMED);
    let (verb, parts) = match (parts.as_slice(), more) {
        ([one], _) => ("needs", (*one).to_owned()),
        ([rest @ .., last], 0) => ("need", format!("{} and {last}", rest.join(", "))),
        (all, more) => ("need", format!("{} and {more} more", all.join(", "))),
    };
    let program = program.replace(" or ", "` or `");
    let message = format!(
        "{parts} {verb} `{program}`, which the machine of the install stack does not have, and the app has no `tool_image`"
    );
    Some(Draft::warning(first.place.clone(), message).help(
        "run `freehold tools init DIR`, which adds an image with programs and names it in `runner.toml`; without an \
         image, jobs fail at each customer whose machine lacks the program",
    ))
}

fn of_sandbox(app: &App, version: &AppVersion) -> Option<(&'static str, Need)> {
    let program = match version.sandbox.as_ref()?.tool {
        SandboxTool::Terraform { .. } => "terraform",
        SandboxTool::Pulumi { .. } => "pulumi",
    };
    let checked = app.of(Kind::Sandbox).next()?;
    Some((program, Need { part: "the sandbox".to_owned(), place: checked.place_of(&checked.root, "type") }))
}

fn of_components(app: &App, version: &AppVersion) -> Vec<(&'static str, Need)> {
    let files: BTreeMap<&str, &Checked> =
        app.of(Kind::Component).filter_map(|checked| Some((checked.root.text("name")?, checked))).collect();
    let needs = version.components.iter().filter_map(|component| {
        let checked = files.get(component.name.as_str())?;
        let need =
            Need { part: format!("component `{}`", component.name), place: checked.place_of(&checked.root, "type") };
        Some((program_of(&component.spec)?, need))
    });
    needs.collect()
}

/// Returns the program that a deploy of a component starts on the runner's machine.
const fn program_of(spec: &ComponentSpec) -> Option<&'static str> {
    match spec {
        ComponentSpec::TerraformModule { .. } => Some("terraform"),
        ComponentSpec::HelmChart { .. } => Some("helm"),
        ComponentSpec::KubernetesManifest { kustomize: Some(_), .. } => Some(KUSTOMIZATION),
        ComponentSpec::Pulumi { .. } => Some("pulumi"),
        ComponentSpec::KubernetesManifest { kustomize: None, .. }
        | ComponentSpec::CloudformationStack { .. }
        | ComponentSpec::ContainerImage { .. }
        | ComponentSpec::DockerBuild { .. }
        | ComponentSpec::Job { .. } => None,
    }
}

/// Returns the programs that actions start in steps without an image of their own, each program once per action.
fn of_actions(app: &App) -> Vec<(&'static str, Need)> {
    let mut found = Vec::new();
    let bare = app.of(Kind::Action).filter(|checked| checked.root.text("image").is_none_or(str::is_empty));
    for checked in bare {
        let Some(name) = checked.root.text("name") else { continue };
        let steps = checked.root.tables("steps").iter();
        let scripts: Vec<_> =
            steps.flat_map(|step| ["command", "inline_contents"].into_iter().filter_map(|key| step.get(key))).collect();
        for program in PROGRAMS {
            let started = scripts.iter().find_map(|node| Some((node, start_of(checked.content(node)?, program)?)));
            let Some((node, offset)) = started else { continue };
            let mut place = checked.place_in(&app.files, node, offset);
            place.span.end = place.span.start + program.len();
            found.push((program, Need { part: format!("action `{name}`"), place }));
        }
    }
    found
}

/// Returns the position of the first command of a shell script that starts `program`; `None` for a script that may
/// bring the program itself, or checks whether it exists.
fn start_of(text: &str, program: &str) -> Option<usize> {
    let interpreter = text.strip_prefix("#!").map_or("sh", |rest| rest.lines().next().unwrap_or_default());
    let is_for_a_shell = interpreter.split_whitespace().any(|word| word.ends_with("sh"));
    // A path or a URL of the program.
    if !is_for_a_shell || text.contains(&format!("/{program}")) {
        return None;
    }
    let script = shell::read(text);
    let is_handled = script.functions.contains(&program) || script.commands.iter().any(|words| handles(words, program));
    let starts = script.commands.iter().filter_map(|words| words.first());
    starts.filter(|_| !is_handled).find(|(_, word)| *word == program).map(|(at, _)| *at)
}

/// Returns whether a command looks for `program`, installs it, defines it, or sets where programs are looked for.
fn handles(words: &[(usize, &str)], program: &str) -> bool {
    let words: Vec<&str> = words.iter().map(|(_, word)| word.trim_matches(['"', '\''])).collect();
    let is_about = |verbs: &[&str], at: &[&str]| at.iter().any(|word| verbs.contains(word)) && words.contains(&program);
    is_about(&LOOKS, words.get(..1).unwrap_or_default())
        || is_about(&INSTALLS, &words)
        || words.first() == Some(&"alias") && words.iter().any(|word| word.starts_with(&format!("{program}=")))
        || words.iter().any(|word| word.starts_with("PATH="))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_program_is_found_where_a_script_starts_it() {
        let starts = [
            "kubectl get pods",
            "set -e\n  kubectl get pods\n",
            "#!/usr/bin/env sh\nif ! kubectl get ns; then exit 1; fi\n",
            "#!/bin/bash\nNAMES=$(kubectl get ns -o name)\n",
            "A=1 kubectl get ns",
            "echo x | kubectl apply -f -",
            "true && kubectl get ns",
            "#!/bin/bash -eu\nfor n in a b; do kubectl get ns $n; done",
            "cat <<END | kubectl apply -f -\na: 1\nEND\n",
            "case $1 in get) kubectl get ns;; esac",
            "MY_PATH=/a kubectl get ns",
        ];

        for script in starts {
            let at = start_of(script, "kubectl").unwrap_or_else(|| panic!("{script}"));
            assert!(script.get(at..).is_some_and(|rest| rest.starts_with("kubectl ")), "{script}");
        }
    }

    #[test]
    fn a_script_that_names_a_program_and_does_not_need_it_is_left_alone() {
        let others = [
            "echo kubectl",
            "# kubectl get pods",
            "#!/usr/bin/env python3\nkubectl = 1\n",
            "command -v kubectl || exit 0\nkubectl get ns",
            "curl -o /tmp/kubectl https://dl.example/kubectl\nkubectl get ns",
            "type kubectl > nothing\nkubectl get ns",
            "if [ -x \"$(command -v 'kubectl')\" ]; then kubectl get ns; fi",
            "which helm kubectl && kubectl get ns",
            "sudo dnf install -y kubectl\nkubectl get ns",
            "export PATH=\"$PWD/bin:$PATH\"\nkubectl get ns",
            "alias kubectl=echo\nkubectl get ns",
            "kubectl () {\n  echo\n}\nkubectl get ns",
            "function kubectl { echo; }\nkubectl get ns",
            "cat <<END\nkubectl get ns\nEND\n",
            "cat <<-'END'\n\tkubectl get ns\n\tEND\n",
            "echo 'first\nkubectl get ns'",
            "echo \"first; kubectl get ns\"",
            "echo first # then | kubectl get ns",
            "echo \\\n  kubectl get ns",
            "TOOLS=(kubectl helm)",
            "case $1 in\n  helm|kubectl) echo;;\n  kubectl) echo;;\nesac\n",
            "echo > kubectl",
            "bin/kubectl get ns; kubectl get ns",
            "kubectl() { curl \"$@\"; }\nkubectl get ns",
            "./kubectl get ns",
            "kubectl-neat",
            "",
        ];

        for script in others {
            assert_eq!(start_of(script, "kubectl"), None, "{script}");
        }
    }
}
