//! The number of an attempt.

/// Which attempt speaks: compared as (dispatch, receive).
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Fence {
    pub dispatch: u8,
    pub receive: u8,
}
