//! Registries as the runner meets them: the engine of `freehold-oci`, and the login of Amazon ECR.

mod ecr;

pub use ecr::{login as ecr_login, repository as ecr_repository};
