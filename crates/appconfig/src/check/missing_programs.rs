//! Warns about parts of an app whose jobs start a program that the machine of an install stack does not have.

use std::collections::BTreeMap;

use freehold_protocol::app_version::{AppVersion, ComponentSpec, Platform, SandboxTool};

use crate::kinds::Kind;
use crate::read::files::Place;
use crate::report::draft::Draft;
use crate::state::app::App;
use crate::state::file::Checked;

/// The programs that are looked for in the scripts of actions. The machine has others, such as `bash` and `curl`.
const PROGRAMS: [&str; 6] = ["terraform", "tofu", "helm", "kubectl", "kustomize", "pulumi"];
/// Words of a shell after which a command follows.
const BEFORE_A_COMMAND: [&str; 12] =
    ["if", "then", "else", "elif", "while", "until", "do", "!", "exec", "sudo", "time", "nohup"];
/// The maximum number of parts that one warning names.
const NAMED: usize = 3;

/// A part of the app that needs a program, such as ``component `web` ``, and the place that a warning marks.
struct Need {
    part: String,
    place: Place,
}

/// Warns once for each program, at the first part that needs it. Does nothing if jobs have an image of their own.
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
    let program = if program == "kustomize" { "`kustomize` or `kubectl`".to_owned() } else { format!("`{program}`") };
    let message = format!(
        "{parts} {verb} {program}, which the machine of the install stack does not have, and the app has no `tool_image`"
    );
    Some(Draft::warning(first.place.clone(), message).help(
        "run `freehold tools init DIR`, which adds an image with programs and names it in `runner.toml`; without one, jobs \
         fail at each customer whose machine has no such program",
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
        ComponentSpec::KubernetesManifest { kustomize: Some(_), .. } => Some("kustomize"),
        ComponentSpec::Pulumi { .. } => Some("pulumi"),
        ComponentSpec::KubernetesManifest { kustomize: None, .. }
        | ComponentSpec::CloudformationStack { .. }
        | ComponentSpec::ContainerImage { .. }
        | ComponentSpec::DockerBuild { .. }
        | ComponentSpec::Job { .. } => None,
    }
}

/// Returns the programs that the steps of actions without an image of their own start, each once for an action.
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

/// Returns the position of the first command of a shell script that starts `program`; `None` for a script that brings the
/// program itself, or looks whether it exists.
fn start_of(script: &str, program: &str) -> Option<usize> {
    let is_for_a_shell = !script.starts_with("#!") || script.lines().next().is_some_and(|line| line.ends_with("sh"));
    let is_handled =
        [format!("/{program}"), format!("-v {program}"), format!("which {program}"), format!("{program}()")];
    if !is_for_a_shell || is_handled.iter().any(|text| script.contains(text)) {
        return None;
    }
    let mut at = 0;
    for line in script.split_inclusive('\n') {
        let start = at;
        at += line.len();
        if line.trim_start().starts_with('#') {
            continue;
        }
        let mut from = start;
        for command in line.split_inclusive(['|', ';', '&', '(', ')', '`']) {
            let word = first_word(command);
            if word == Some(program) {
                return Some(from + command.find(program).unwrap_or_default());
            }
            from += command.len();
        }
    }
    None
}

/// Returns the program of a command: its first word that is neither a word of the shell nor sets a variable.
fn first_word(command: &str) -> Option<&str> {
    let ends = |c: char| c.is_whitespace() || "|;&()`\"'{}".contains(c);
    command.split(ends).find(|word| !word.is_empty() && !BEFORE_A_COMMAND.contains(word) && !word.contains('='))
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
