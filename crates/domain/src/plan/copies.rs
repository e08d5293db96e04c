//! The node of a workflow that copies secrets into clusters, and removes copies.

use std::collections::BTreeSet;

use freehold_protocol::Digest;

use crate::workflow::{Node, Target};

/// The name of the node that copies secrets. No other node can have it: a component's name has no colon.
pub(crate) const NODE: &str = "secrets:copies";

/// The time limit of the node that copies secrets, in seconds. Copying usually takes a few seconds.
const TIMEOUT_SECS: u32 = 300;

/// Adds a node to a teardown that removes all copies: after the components, and before the sandbox that has the
/// cluster.
pub(super) fn remove_copies(nodes: &mut Vec<Node>, serial: u64) {
    let is_sandbox = |node: &Node| matches!(node.target, Target::Teardown { sandbox: true, .. });
    let components = nodes.iter().filter(|node| !is_sandbox(node)).map(|node| node.name.clone()).collect();
    for node in nodes.iter_mut().filter(|node| is_sandbox(node)) {
        node.dependencies.insert(NODE.to_owned());
    }
    nodes.push(Node { serial, ..node(Digest::of(b"no copies"), components) });
}

/// Returns the node that changes the copies to the state that `fingerprint` describes.
pub(super) fn node(fingerprint: Digest, dependencies: BTreeSet<String>) -> Node {
    Node { dependencies, ..Node::waiting(NODE.to_owned(), Target::Secrets { fingerprint }, TIMEOUT_SECS) }
}
