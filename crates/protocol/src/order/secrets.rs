//! The app's secrets in a cluster.

use serde::{Deserialize, Serialize};

use super::ClusterOf;

/// Copies secrets of the app into a cluster: each as a Kubernetes secret with the key `value`.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct CopySecrets {
    #[serde(default)]
    pub cluster: ClusterOf,
    pub copies: Vec<SecretCopy>,
}

/// One copy of a secret.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct SecretCopy {
    /// The secret, one of the order's.
    pub secret: String,
    /// The namespace, which is created when it is missing; a template.
    pub namespace: String,
    /// The name of the Kubernetes secret; a template.
    pub name: String,
}
