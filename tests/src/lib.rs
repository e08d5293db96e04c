//! What the tests of whole programs share: a proxy that makes calls fail, a fast queue, and what starts real binaries.

#![expect(clippy::expect_used, clippy::indexing_slicing, clippy::panic, reason = "a test may panic")]

pub mod bench;
pub mod fast_sqs;
pub mod harness;
pub mod http;
pub mod proxy;
pub mod stacks;
pub mod tamper;
pub mod workspace;
