//! The licence that the vendor sets for an install: its facts and its end, and the serial by which a later licence is
//! newer.

use std::collections::BTreeMap;

use freehold_protocol::api::SetLicenceRequest;
use freehold_protocol::licence::Licence;
use freehold_protocol::limits::MAX_FACTS_BYTES;
use freehold_protocol::order::AskedBy;
use freehold_protocol::{AppName, InstallId, TenantName, Timestamp};
use serde::{Deserialize, Serialize};
use serde_json::Value;

/// The maximum length of the name of a fact, in bytes.
const MAX_NAME_BYTES: usize = 64;
/// The largest integer that every reader of JSON reads exactly, 2^53 - 1 (RFC 8259 section 6).
const MAX_INTEGER: u64 = 9_007_199_254_740_991;
/// The distance between the first serials of two installs of the same name. No install gets so many licences.
const SERIALS_OF_INSTALL: u64 = 1_000_000;
/// The number of licences before the newest one that [`InstallLicence::serials`] returns.
const FORMER_SERIALS: usize = 1_000;

/// The newest licence of an install, as the vendor set or withdrew it.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct InstallLicence {
    /// The number of the licence. Each later licence of the install has the next number.
    pub serial: u64,
    pub issued_at: Timestamp,
    /// Who set or withdrew the licence.
    pub by: AskedBy,
    /// The time after which the licence is over; absent for a licence without an end.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub not_after: Option<Timestamp>,
    /// Whether the licence was withdrawn. It then has no facts.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub withdrawn: bool,
    #[serde(default)]
    pub facts: BTreeMap<String, Value>,
}

/// The reason why a licence cannot be set.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum LicenceError {
    #[error("a licence needs a fact or an end; give it one, or withdraw the licence")]
    Empty,
    #[error("a licence that is withdrawn has neither facts nor an end; leave them out")]
    WithdrawnWithFacts,
    #[error("the end of the licence has passed; give it a later end, or withdraw the licence")]
    Over,
    #[error(
        "the name `{}` of a fact is not valid; use up to {MAX_NAME_BYTES} lower-case letters, digits, `_`, `-` and \
         `.`, beginning with a letter",
        .0.escape_debug()
    )]
    Name(String),
    #[error(
        "fact `{0}` is not a text, a boolean, an integer of at most 2^53 - 1 or a list of texts; write another value as \
         a text"
    )]
    Fact(String),
    #[error("the facts have {0} bytes as JSON, more than the {MAX_FACTS_BYTES} of a licence; shorten them")]
    TooLarge(usize),
}

impl InstallLicence {
    /// Returns the serial that all licences of an install of this generation exceed. A runner or an app that served a
    /// forgotten install of the same name knows the highest serial of that install, and refuses lower ones.
    pub fn floor(generation: u32) -> u64 {
        u64::from(generation) * SERIALS_OF_INSTALL
    }

    /// Returns the serials of this licence and of former licences of the install above `floor`, newest first.
    pub fn serials(&self, floor: u64) -> impl Iterator<Item = u64> {
        (floor + 1..=self.serial).rev().take(FORMER_SERIALS)
    }

    /// Returns the licence that follows `former` when `by` sends `request` at `now`; `None` if the request changes
    /// nothing. Its serial is higher than `floor`.
    ///
    /// # Errors
    /// [`LicenceError`].
    pub fn next(
        former: Option<&Self>,
        floor: u64,
        request: &SetLicenceRequest,
        by: &AskedBy,
        now: Timestamp,
    ) -> Result<Option<Self>, LicenceError> {
        let SetLicenceRequest { facts, not_after, withdraw } = request;
        let standing = former.filter(|former| !former.withdrawn);
        let (serial, by) = (former.map_or(floor, |former| former.serial.max(floor)) + 1, by.clone());
        if *withdraw {
            if !facts.is_empty() || not_after.is_some() {
                return Err(LicenceError::WithdrawnWithFacts);
            }
            // The end lets an app that reads only the end see that nothing is licensed any more.
            let (facts, not_after) = (BTreeMap::new(), Some(now));
            return Ok(standing.map(|_| Self { serial, issued_at: now, by, not_after, withdrawn: true, facts }));
        }
        if standing.is_some_and(|standing| standing.facts == *facts && standing.not_after == *not_after) {
            return Ok(None);
        }
        check(facts, *not_after, now)?;
        let (facts, not_after) = (facts.clone(), *not_after);
        Ok(Some(Self { serial, issued_at: now, by, not_after, withdrawn: false, facts }))
    }

    /// Returns the statement that the tenant signs at `now`.
    pub fn statement(&self, tenant: &TenantName, install: &InstallId, app: &AppName, now: Timestamp) -> Licence {
        Licence {
            tenant: tenant.clone(),
            install: install.clone(),
            app: app.clone(),
            serial: self.serial,
            issued_at: self.issued_at,
            signed_at: now,
            not_after: self.not_after,
            withdrawn: self.withdrawn,
            facts: self.facts.clone(),
        }
    }
}

fn check(facts: &BTreeMap<String, Value>, end: Option<Timestamp>, now: Timestamp) -> Result<(), LicenceError> {
    if facts.is_empty() && end.is_none() {
        return Err(LicenceError::Empty);
    }
    if end.is_some_and(|end| end <= now) {
        return Err(LicenceError::Over);
    }
    for (name, value) in facts {
        if !is_name(name) {
            return Err(LicenceError::Name(name.clone()));
        }
        if !is_fact(value) {
            return Err(LicenceError::Fact(name.clone()));
        }
    }
    // INVARIANT: facts whose names are texts are always JSON.
    let bytes = serde_json::to_vec(facts).map_or(usize::MAX, |bytes| bytes.len());
    if bytes > MAX_FACTS_BYTES { Err(LicenceError::TooLarge(bytes)) } else { Ok(()) }
}

fn is_name(name: &str) -> bool {
    let is_part = |c: char| c.is_ascii_lowercase() || c.is_ascii_digit() || matches!(c, '_' | '-' | '.');
    name.len() <= MAX_NAME_BYTES && name.starts_with(|c: char| c.is_ascii_lowercase()) && name.chars().all(is_part)
}

fn is_fact(value: &Value) -> bool {
    match value {
        Value::String(_) | Value::Bool(_) => true,
        Value::Number(number) => {
            let magnitude = number.as_u64().or_else(|| number.as_i64().map(i64::unsigned_abs));
            magnitude.is_some_and(|magnitude| magnitude <= MAX_INTEGER)
        }
        Value::Array(items) => items.iter().all(Value::is_string),
        Value::Null | Value::Object(_) => false,
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;
    use serde_json::json;

    use super::*;

    const NOW: Timestamp = Timestamp::from_millis(1_000_000);

    fn request(facts: Value) -> SetLicenceRequest {
        SetLicenceRequest { facts: serde_json::from_value(facts).unwrap(), ..SetLicenceRequest::default() }
    }

    fn next(former: Option<&InstallLicence>, request: &SetLicenceRequest) -> Option<InstallLicence> {
        InstallLicence::next(former, 0, request, &AskedBy::Schedule, NOW).unwrap()
    }

    fn refused(request: &SetLicenceRequest) -> String {
        InstallLicence::next(None, 0, request, &AskedBy::Schedule, NOW).unwrap_err().to_string()
    }

    #[test]
    fn each_licence_has_the_next_serial_and_the_same_again_changes_nothing() {
        let team = request(json!({ "plan": "team", "seats": 50, "sso": true, "features": ["audit"] }));
        let withdraw = SetLicenceRequest { withdraw: true, ..SetLicenceRequest::default() };

        let first = next(None, &team).unwrap();
        let second = next(Some(&first), &request(json!({ "plan": "free" }))).unwrap();
        let withdrawn = next(Some(&second), &withdraw).unwrap();
        let again = next(Some(&withdrawn), &team).unwrap();

        assert_eq!([&first, &second, &withdrawn, &again].map(|one| one.serial), [1, 2, 3, 4]);
        assert!(withdrawn.withdrawn && withdrawn.facts.is_empty() && withdrawn.not_after == Some(NOW));
        assert_eq!(
            (next(Some(&first), &team), next(Some(&withdrawn), &withdraw), next(None, &withdraw)),
            (None, None, None)
        );
    }

    #[test]
    fn a_later_install_of_the_name_and_a_row_that_lost_its_licence_get_higher_serials() {
        let serial = |former: Option<&InstallLicence>, floor| {
            let request = request(json!({ "seats": 1 }));
            InstallLicence::next(former, floor, &request, &AskedBy::Schedule, NOW).unwrap().unwrap()
        };

        let (first, second) = (serial(None, InstallLicence::floor(0)), serial(None, InstallLicence::floor(2)));
        let after_loss = serial(None, 7);

        assert_eq!([first.serial, second.serial, after_loss.serial], [1, 2_000_001, 8]);
        assert_eq!(InstallLicence { serial: 5, ..first.clone() }.serials(2).collect::<Vec<_>>(), [5, 4, 3]);
        assert_eq!(first.serials(1).next(), None);
    }

    #[test]
    fn a_licence_that_says_nothing_or_is_over_or_is_withdrawn_with_facts_is_refused() {
        let end = |not_after| SetLicenceRequest { not_after: Some(not_after), ..SetLicenceRequest::default() };
        let both = SetLicenceRequest { withdraw: true, ..request(json!({ "seats": 1 })) };

        assert!(refused(&SetLicenceRequest::default()).starts_with("a licence needs a fact or an end"));
        assert!(refused(&end(NOW)).starts_with("the end of the licence has passed"));
        assert!(refused(&both).starts_with("a licence that is withdrawn has neither facts nor an end"));
        assert!(next(None, &end(NOW.plus_secs(1))).is_some());
    }

    #[test]
    fn names_and_values_that_readers_could_read_differently_are_refused() {
        for name in ["", "Seats", "1st", "a b", "a\n", "sitz\u{e4}", &"a".repeat(65)] {
            assert!(refused(&request(json!({ name: 1 }))).contains("of a fact is not valid"), "{name}");
        }
        for value in [json!(null), json!(1.5), json!(9_007_199_254_740_992_u64), json!({ "a": 1 }), json!([1])] {
            assert!(refused(&request(json!({ "seats": value }))).starts_with("fact `seats` is not a text"), "{value}");
        }
        let large = request(json!({ "note": "x".repeat(MAX_FACTS_BYTES) }));
        assert!(refused(&large).starts_with("the facts have 4107 bytes as JSON"), "{}", refused(&large));
        assert!(next(None, &request(json!({ "a.b-c_1": -9_007_199_254_740_991_i64, "none": [] }))).is_some());
    }

    proptest! {
        /// Whatever requests come, no licence has the serial of an earlier one.
        #[test]
        fn serials_only_rise(requests in proptest::collection::vec((0_u8..3, any::<bool>()), 0..20)) {
            let mut licence: Option<InstallLicence> = None;
            for (seats, withdraw) in requests {
                let facts = if withdraw { json!({}) } else { json!({ "seats": seats }) };
                let later = next(licence.as_ref(), &SetLicenceRequest { withdraw, ..request(facts) });
                if let Some(later) = later {
                    prop_assert_eq!(later.serial, licence.map_or(0, |licence| licence.serial) + 1);
                    licence = Some(later);
                }
            }
        }
    }
}
