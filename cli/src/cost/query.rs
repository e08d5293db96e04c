//! A question about a bill, and an amount of the answer.

use rust_decimal::Decimal;

use super::period::Period;

/// The tags of everything that Freehold makes.
pub(crate) const TENANT: &str = "freehold:tenant";
pub(crate) const INSTALL: &str = "freehold:install";
pub(crate) const COMPONENT: &str = "freehold:component";

/// What costs are added up by.
#[derive(Debug, Clone, Copy)]
pub(crate) enum By {
    Tag(&'static str),
    Service,
}

/// A question to Cost Explorer.
#[derive(Debug)]
pub(crate) struct Query<'a> {
    pub(crate) period: &'a Period,
    /// Whether each day has its own amounts; otherwise each month.
    pub(crate) daily: bool,
    /// The tags that a resource must have, with their values.
    pub(crate) tags: Vec<(&'static str, &'a str)>,
    /// At most two, which is the limit of AWS.
    pub(crate) by: Vec<By>,
}

/// An amount that AWS billed.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Billed {
    /// The first day, and the day after the last one.
    pub(crate) start: String,
    pub(crate) end: String,
    /// Whether AWS changes the amount no more.
    pub(crate) is_final: bool,
    /// A value for each part of [`Query::by`]; empty for resources without the tag.
    pub(crate) keys: Vec<String>,
    pub(crate) currency: String,
    pub(crate) amount: Decimal,
}
