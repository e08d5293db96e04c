//! Private sources of a tenant: the address that a credential is for, and the document that Secrets Manager keeps for
//! it.

mod address;
mod credential;

pub use address::{AddressError, Scheme, SourceAddress};
pub use credential::{CredentialError, Hidden, MAX_CREDENTIAL_BYTES, SourceCredential};
