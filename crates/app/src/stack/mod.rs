//! The install stack: the template that a customer launches.

pub(crate) mod app_secrets;
pub(crate) mod escape;
#[cfg(test)]
mod hostile_texts;
pub(crate) mod named_roles;
pub mod nuon_tree;
mod parameter;
pub(crate) mod parameters;
pub mod render_stack;
pub(crate) mod role_policy;
pub(crate) mod sandbox_reads;
mod template;
mod title;
