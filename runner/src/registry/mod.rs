//! The login to Amazon ECR, and the client for granted URLs. The copy engine of `freehold-oci` uses both.

mod ecr;
pub mod granted_urls;

pub use ecr::{login as ecr_login, repository as ecr_repository};
