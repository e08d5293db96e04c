//! A Kubernetes cluster as a job reaches it: who it is, a token for it, a kubeconfig for programs, its API, and its objects.
//!
//! Nothing here decides what a component's release or manifest should be; that is in `kinds`.

mod access;
mod api;
mod change;
mod cluster;
mod discovery;
mod error;
mod health;
mod kubeconfig;
mod object;
mod signature;
mod token;
mod yaml;

pub(crate) use access::ClusterAccess;
pub(crate) use api::{Api, Applied};
pub(crate) use change::{Change, Plan};
pub(crate) use error::ClusterError;
pub(crate) use health::{Health, health};
pub(crate) use object::{Id, Object, read as read_objects};
pub(crate) use yaml::documents;
