//! Compares the permissions of roles, and complete terms: does a version need more than the customer agreed to? The
//! control plane and the runner both use this crate. The crate uses no I/O and no clock. Differences that cannot be
//! decided count as widened.

mod allowance;
mod boundary;
mod narrow;
mod pattern;
mod permission;
mod policy_text;
mod stack_policies;
mod statements;
mod terms;

pub use allowance::{Allowance, Answer};
pub use narrow::{Narrowed, Narrowing, narrow};
pub use permission::{Gap, Permission, Powers, compare, permissions, why_wide};
pub use policy_text::{PLAIN_KEYS, inputs_read, may_read_input, rendered_texts};
pub use stack_policies::{Answers, InStack, Refusal, RolePlace};
pub use statements::Effect;
pub use terms::{
    Clause, OrderedCommands, TermsDiff, compare_terms, compare_terms_for, describe_action, describe_answer,
    describe_command, describe_copy, describe_probe, describe_reader, describe_reference, describe_value,
    terms_for_removal,
};
