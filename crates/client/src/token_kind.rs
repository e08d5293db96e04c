//! Who calls the API with a token, and the route for it.

/// Who has the token. The API has a route for each.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum TokenKind {
    /// A person who signed in at the issuer of people.
    Person,
    /// A pipeline, such as a CI job, whose issuer makes a token for each run.
    Pipeline,
}

impl TokenKind {
    /// Returns the first part of the paths that take such tokens.
    pub(crate) const fn route(self) -> &'static str {
        match self {
            Self::Person => "people",
            Self::Pipeline => "pipelines",
        }
    }

    /// Returns who has the token, for messages.
    pub(crate) const fn holder(self) -> &'static str {
        match self {
            Self::Person => "person",
            Self::Pipeline => "pipeline",
        }
    }

    /// Returns what to do when the gateway refuses the token.
    pub(crate) const fn way_out(self) -> &'static str {
        match self {
            Self::Person => "sign in again, and check that the tenant takes logins of this issuer",
            Self::Pipeline => "check its issuer and audience against those of the tenant, and that it has not expired",
        }
    }
}
