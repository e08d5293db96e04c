//! The login to Amazon ECR. The copy engine of `freehold-oci` uses it.

mod ecr;

pub use ecr::{login as ecr_login, repository as ecr_repository};
