//! The limits of one rendering.

/// The limits of one rendering.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Limits {
    /// Evaluated nodes, plus one for each 256 bytes that a function makes.
    pub max_steps: u64,
    /// Bytes of the result, and of each intermediate value.
    pub max_output_bytes: usize,
}

impl Default for Limits {
    fn default() -> Self {
        Self { max_steps: 1_000_000, max_output_bytes: 4 * 1024 * 1024 }
    }
}
