//! Sources: the directories that are not packed, the address that a credential of a private source is for, and the
//! document that Secrets Manager stores for this address.

mod address;
mod credential;

pub use address::{AddressError, Scheme, SourceAddress};
pub use credential::{CredentialError, Hidden, MAX_CREDENTIAL_BYTES, SourceCredential};

/// The names of directories that are not packed: git's and Terraform's. The command that packs a source and the build
/// runner that packs its archive leave out the same ones.
pub const LEFT_OUT: [&str; 2] = [".git", ".terraform"];
