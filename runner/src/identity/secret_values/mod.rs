//! Steps in the life of a secret value: it is read from Secrets Manager, put where templates look it up, and reported as a
//! keyed digest. Which values a job may read is decided in the modules beside this one.

pub(super) mod keyed_digest;
pub(super) mod stored_secret;
pub(super) mod tree;
