//! The limits of one rendering.

/// The limits of one rendering.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Limits {
    /// The maximum number of steps. Each evaluated part of the template is one step; functions add steps for the bytes
    /// that they read and make.
    pub max_steps: u64,
    /// The maximum size of the result, in bytes. An intermediate value may be at most eight times as large.
    pub max_output_bytes: usize,
}

impl Default for Limits {
    fn default() -> Self {
        Self { max_steps: 1_000_000, max_output_bytes: 4 * 1024 * 1024 }
    }
}
