//! Which of the two runners a process is.

/// The role of a runner process: `freehold-runner` has the role `Install`, `freehold-builder` has the role `Build`.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Role {
    /// The runner deploys in a customer's account.
    Install,
    /// The runner makes artifacts in the tenant's account.
    Build,
}
