//! The runner's own keys, and the root keys of the tenant that the runner trusts.

pub mod enrolment_marker;
pub mod known_roots;
pub mod renewal;
pub mod runner_key;
pub mod sealing_key;
