//! The nodes of a workflow that copy secrets into clusters, and remove copies.

use std::collections::BTreeSet;

use freehold_protocol::Digest;

use crate::workflow::{Node, Target};

/// The name of the node that copies secrets. No other node can have it: a component's name has no colon.
pub(crate) const NODE: &str = "secrets:copies";

/// The name of the node that removes copies after the components that may use them were deployed again or removed.
pub(crate) const UNWANTED: &str = "secrets:unwanted";

/// The time limit of a node that copies secrets, in seconds. Copying usually takes a few seconds.
const TIMEOUT_SECS: u32 = 300;

/// Adds to a teardown a node that removes all copies of secrets. The node runs after the components are removed, and
/// before the sandbox with the cluster is.
pub(super) fn remove_copies(nodes: &mut Vec<Node>, serial: u64) {
    let is_sandbox = |node: &Node| matches!(node.target, Target::Teardown { sandbox: true, .. });
    let components = nodes.iter().filter(|node| !is_sandbox(node)).map(|node| node.name.clone()).collect();
    for node in nodes.iter_mut().filter(|node| is_sandbox(node)) {
        node.dependencies.insert(NODE.to_owned());
    }
    nodes.push(Node { serial, ..node(NODE, Digest::of(b"no copies"), false, components) });
}

/// Returns a node that updates the copies to the state with `fingerprint`.
pub(super) fn node(name: &str, fingerprint: Digest, keeps_others: bool, dependencies: BTreeSet<String>) -> Node {
    let target = Target::Secrets { fingerprint, keeps_others };
    Node { dependencies, ..Node::waiting(name.to_owned(), target, TIMEOUT_SECS) }
}
