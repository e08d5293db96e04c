//! The result of a look into the customer's account.

/// What a part has in the customer's account.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(super) struct Content {
    /// The value that the last deploy gave it; nothing before the first one.
    pub(super) value: Option<String>,
    /// How often the part was changed, as its tool counts.
    pub(super) changes: usize,
}
