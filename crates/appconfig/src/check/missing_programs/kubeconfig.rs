//! Decides which actions get a kubeconfig: those that ask for it, and those whose scripts call a program that needs it.

use super::shell;
use crate::read::document::Node;
use crate::state::file::Checked;

/// The key that decides about the kubeconfig, in the action and in its steps.
const KEY: &str = "enable_kube_config";
/// The programs that read a kubeconfig.
const READERS: [&str; 2] = ["kubectl", "helm"];

/// Returns whether the steps of an action get a kubeconfig. An app without a sandbox has no cluster unless the action
/// names one.
pub(crate) fn gets_kubeconfig(checked: &Checked, has_sandbox: bool) -> bool {
    let root = &checked.root;
    let nodes = || std::iter::once(root).chain(root.tables("steps"));
    if nodes().any(|node| node.get(KEY).is_some()) {
        return nodes().any(|node| node.flag(KEY));
    }
    let names_cluster = root.text("kubernetes_context").is_some_and(|name| !name.is_empty());
    (has_sandbox || names_cluster) && nodes().any(|node| calls_cluster(checked, node))
}

/// Returns whether the script of a step calls `kubectl` or `helm`, and has no kubeconfig of its own.
pub(crate) fn calls_cluster(checked: &Checked, step: &Node) -> bool {
    let mut scripts = ["command", "inline_contents"].into_iter().filter_map(|key| checked.content(step.get(key)?));
    scripts.any(|text| {
        let starts = |program: &str| {
            let script = shell::read(text);
            script.commands.iter().filter_map(|words| words.first()).any(|(_, word)| *word == program)
        };
        !text.to_ascii_lowercase().contains("kubeconfig") && READERS.into_iter().any(starts)
    })
}
