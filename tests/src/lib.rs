//! Shared code of the tests of whole programs: a fault proxy, a fast queue, and a harness that starts real binaries.

#![expect(clippy::expect_used, clippy::indexing_slicing, clippy::panic, reason = "a test may panic")]

pub mod audit;
mod audit_records;
pub mod bench;
pub mod canaries;
pub mod drift;
pub mod fast_sqs;
pub mod faults;
pub mod harness;
pub mod http;
pub mod proxy;
pub mod releases;
pub mod stacks;
pub mod tamper;
pub mod workspace;
