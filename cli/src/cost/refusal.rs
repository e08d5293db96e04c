//! The errors about a bill that cannot be read, or that has no amount: what is missing, who can change this, and how.

use freehold_aws_errors::Meaning;

use super::prices::requests_cost;
use super::query::Query;
use crate::error::{Error, Kind};

/// What a person can do without a bill.
const FORECAST: &str = "`--forecast` calculates from list prices instead, without Cost Explorer";

/// Why a bill has no amount.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum Nothing {
    /// These tags are not activated as cost allocation tags.
    Inactive(Vec<&'static str>),
    /// AWS has not seen these tags on a resource yet.
    Unseen(Vec<&'static str>),
    /// All tags are activated.
    NoCost,
    /// AWS refused to list the tags.
    Unknown { refused: String },
}

/// Returns the error about a refusal of Cost Explorer that needs more than a repeated request; `None` for any other.
/// `action` is the permission that the request needs.
pub(super) fn describe_refusal(code: Option<&str>, message: Option<&str>, action: &str) -> Option<Error> {
    let (code, message) = (code?, message.unwrap_or_default());
    let answer = if message.is_empty() { code.to_owned() } else { format!("{code}: {message}") };
    let is_denied = Meaning::of(Some(code)) == Meaning::Denied;
    if is_denied && message.to_lowercase().contains("not enabled for cost explorer") {
        let wrong = Error::quoting(Kind::Conflict, format!("Cost Explorer is not enabled for this account ({answer})"));
        return Some(wrong.or(format!(
            "open Cost Explorer once in the Billing and Cost Management console, in the management account if the account \
             is in an organization; it has the first figures after about 24 hours; until then, {FORECAST}"
        )));
    }
    if is_denied {
        let wrong = Error::quoting(Kind::Denied, format!("these credentials may not read the bill ({answer})"));
        return Some(wrong.or(format!(
            "allow `{action}`; in a member account of an organization, the management account must also permit linked \
             accounts to read their costs (Cost Management preferences); {FORECAST}"
        )));
    }
    match code {
        "DataUnavailableException" => {
            let wrong = Error::quoting(Kind::Conflict, format!("Cost Explorer has no data yet ({answer})"));
            Some(wrong.or(format!("try again 24 hours after Cost Explorer was enabled; until then, {FORECAST}")))
        }
        // The name is that of a quota, and the meaning is throttling.
        "LimitExceededException" => {
            let wrong = Error::quoting(Kind::Transient, format!("Cost Explorer gets too many requests ({answer})"));
            Some(wrong.or("try again in a minute"))
        }
        _ => None,
    }
}

/// Returns the error about a bill without an amount, after this number of requests. `keys` are all tags of the query.
pub(super) fn describe_nothing(nothing: Nothing, keys: &[&str], query: &Query<'_>, requests: u32) -> Error {
    let (days, since) = (query.period.text(), query.period.since);
    let tags: Vec<String> = query.tags.iter().map(|(key, value)| format!("`{key}` = `{value}`")).collect();
    let (why, way_out) = match nothing {
        Nothing::Inactive(inactive) => (
            format!(": {} as cost allocation tags", are_not_activated(&inactive)),
            format!(
                "{}; costs of earlier days come with `aws ce start-cost-allocation-tag-backfill --backfill-from \
                 {since}T00:00:00Z`",
                activate(&inactive)
            ),
        ),
        Nothing::Unseen(unseen) => (
            format!(
                ": AWS does not know the {} {} yet, which it lists within 24 hours after a resource got it",
                crate::output::noun_for(unseen.len(), "tag"),
                listed(&unseen)
            ),
            format!("check the account; when AWS lists the tags, {}", activate(keys)),
        ),
        Nothing::NoCost => (
            ", although these tags are activated".to_owned(),
            "check the account, the names and the days; a cost comes within 24 hours, and only for days after the tags \
             were activated"
                .to_owned(),
        ),
        Nothing::Unknown { refused } => (
            format!(", and AWS does not tell whether these tags are activated ({refused})").replace(" ()", ""),
            format!(
                "allow `ce:ListCostAllocationTags`; in an organization, only the management account has the answer, and \
                 there {}",
                activate(keys)
            ),
        ),
    };
    let wrong = format!("Cost Explorer has no cost of {days} with the tags {}{why}", tags.join(" and "));
    let paid = format!("AWS bills {} for this answer", requests_cost(requests));
    Error::quoting(Kind::Conflict, wrong).or(format!("{way_out}; {paid}; until then, {FORECAST}"))
}

/// Returns how to activate tags, and who may.
fn activate(keys: &[&str]) -> String {
    let status: Vec<String> = keys.iter().map(|key| format!("TagKey={key},Status=Active")).collect();
    format!(
        "a billing administrator (`ce:UpdateCostAllocationTagsStatus`; in an organization, of its management account) \
         activates them under Cost allocation tags in the Billing console, or with `aws ce \
         update-cost-allocation-tags-status --cost-allocation-tags-status {}`; the figures come within 24 hours",
        status.join(" ")
    )
}

fn are_not_activated(keys: &[&str]) -> String {
    format!("{} {} not activated", listed(keys), if keys.len() == 1 { "is" } else { "are" })
}

fn listed(keys: &[&str]) -> String {
    let quoted: Vec<String> = keys.iter().map(|key| format!("`{key}`")).collect();
    quoted.join(", ")
}
