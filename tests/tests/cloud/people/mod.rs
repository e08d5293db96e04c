//! People and pipelines: accounts, invitations, and what they may do with tokens instead of AWS credentials.

mod invitations;
mod permissions;
mod person;
mod tokens;

use freehold_tests::harness::{Capability, Needs};

const NEEDS: Needs =
    Needs { cloud: &[Capability::HttpApi, Capability::IamEnforced, Capability::EmptyAccounts], programs: &[] };
