//! One parameter of the install stack, in the form that the template reads.

use serde::Serialize;

use crate::stack::escape::Quoted;

/// A stack parameter with which the customer answers a question.
#[derive(Serialize)]
pub(crate) struct Parameter {
    pub(super) id: String,
    pub(super) label: Quoted,
    #[serde(rename = "type")]
    pub(super) of: &'static str,
    pub(super) description: Quoted,
    pub(super) sensitive: bool,
    pub(super) allowed_pattern: Option<Quoted<&'static str>>,
    pub(super) allowed_values: Vec<Quoted<&'static str>>,
    pub(super) min_length: Option<u32>,
    pub(super) default: Option<Quoted>,
    pub(super) constraint: Option<Quoted<&'static str>>,
}
