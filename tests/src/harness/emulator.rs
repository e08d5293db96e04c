//! A cloud that emulates AWS: each number is an account, and the account's number is the administrator's access key.

use std::fmt;

use aws_credential_types::Credentials;

use super::cloud::{Capability, Cloud};

/// What differs between two emulators.
pub(super) trait Emulator: Send + Sync + fmt::Debug {
    /// Returns the name and version for results.
    fn name(&self) -> String;

    /// Returns its endpoint.
    fn endpoint(&self) -> &str;

    /// Returns its capabilities.
    fn capabilities(&self) -> &[Capability];
}

impl<E: Emulator> Cloud for E {
    fn name(&self) -> String {
        Emulator::name(self)
    }

    fn endpoint(&self) -> Option<&str> {
        Some(Emulator::endpoint(self))
    }

    fn capabilities(&self) -> &[Capability] {
        Emulator::capabilities(self)
    }

    fn tenant_account(&self) -> &str {
        "111111111111"
    }

    fn customer_account(&self, number: u32) -> anyhow::Result<String> {
        Ok(format!("{:012}", 222_222_222_222_u64 + u64::from(number)))
    }

    fn administrator(&self, account: &str) -> anyhow::Result<Credentials> {
        Ok(Credentials::new(account, "local", None, None, "administrator"))
    }
}
