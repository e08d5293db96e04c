//! The login of Amazon ECR, for the copy engine of `freehold-oci`.

mod ecr;

pub use ecr::{login as ecr_login, repository as ecr_repository};
