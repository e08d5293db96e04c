//! A job's access to a Kubernetes cluster: finding the cluster, tokens, a kubeconfig for programs, the API, and
//! objects.
//!
//! The modules in `kinds` decide what a component's release or manifest contains.

mod access;
mod api;
mod change;
mod cluster;
mod discovery;
mod error;
mod health;
mod kubeconfig;
mod namespace;
mod object;
pub(crate) mod pod;
mod pod_spec;
mod retry;
mod signature;
mod token;
mod yaml;

pub(crate) use access::{ClusterAccess, apis_of};
pub(crate) use api::{Api, Applied, MANAGER};
pub(crate) use change::{Change, Plan, attributes_of_drift, is_marked_to_stay};
pub(crate) use cluster::part_with_cluster;
pub(crate) use error::ClusterError;
pub(crate) use health::{Health, health};
pub(crate) use object::{COMPONENT, Id, Object, annotation, read as read_objects, read_except};
pub(crate) use pod_spec::images;
pub(crate) use yaml::documents;
