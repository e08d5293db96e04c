//! Finds secrets in output and replaces them, in all forms in which programs print them.
//!
//! Escapes (percent, backslash, XML entities) are decoded before the search, so that any mixture of them is found. For
//! credentials, parts are found too, even with separators inside: hex dumps, wrapped lines, quotes. The search does not
//! find compressed or encrypted text, base64 of base64, or parts with fewer than 15 letters or digits.

mod forms;
mod fragments;
mod secrets;
mod shape;
mod spans;
mod views;

pub use secrets::{SHORTEST, Secrets};
pub use shape::{Redacted, redact_by_shape, redact_json_by_shape};
