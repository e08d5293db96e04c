//! `freehold install set-licence`: sets the licence of an install, or withdraws it.

use clap::Args;
use freehold_client::calls;
use freehold_protocol::api::{InstallView, LicenceView, SetLicenceRequest};
use freehold_protocol::{InstallId, Timestamp};

use crate::context::Context;
use crate::error::{Error, Result};
use crate::inputs::{Input, facts_by_name};
use crate::job::plain;
use crate::output::{clean, time};

/// Set the licence of an install: signed facts that the app reads in the customer's account.
#[derive(Debug, Args)]
#[command(after_help = "\
Examples:
  freehold install set-licence globex --fact plan=team --fact seats:=50 --until 2027-01-31
  freehold install set-licence globex --fact 'features:=[\"sso\", \"audit\"]'
  freehold install set-licence globex --withdraw
  freehold install show globex

The new licence replaces the former one as a whole, and gets the next number. The tenant signs it when the next order
of the install brings it. Templates of components and actions read it as `.nuon.install.licence`, and the app verifies
and judges it. The next deploy deploys the components whose templates read it. An app can also get it without a deploy,
by an action that reads it.

`freehold install show` shows the licence, who set it and when, and with `--json` also the signed text.")]
pub(crate) struct SetLicence {
    /// Name of the install.
    install: InstallId,
    /// A fact of the licence: `name=text`, `name:=JSON` or `name=@FILE`; may be repeated.
    #[arg(long = "fact", value_name = "NAME=VALUE")]
    facts: Vec<Input>,
    /// The end of the licence: a date, which counts to its end in UTC, or a time such as `2027-01-31T12:00:00Z`.
    #[arg(long, value_name = "DATE", value_parser = end)]
    until: Option<Timestamp>,
    /// Withdraw the licence: the next licence has no facts and is over.
    #[arg(long, conflicts_with_all = ["facts", "until"])]
    withdraw: bool,
}

impl SetLicence {
    pub(super) async fn run(&self, context: &Context) -> Result<()> {
        if self.facts.is_empty() && self.until.is_none() && !self.withdraw {
            let message = "neither a fact nor an end of the licence is given";
            return Err(Error::invalid(message).or("pass `--fact NAME=VALUE`, `--until DATE` or `--withdraw`"));
        }
        let facts = facts_by_name(&self.facts)?;
        let request = SetLicenceRequest { facts, not_after: self.until, withdraw: self.withdraw };
        let api = context.api().await?;
        let view: InstallView = api.send(calls::set_licence(&self.install, &request)).await?;
        context.out.show(&view, |view| match &view.licence {
            Some(licence) => format!("install `{}` has licence {}", view.install, licence_text(licence)),
            None => format!("install `{}` has no licence", view.install),
        })
    }
}

/// Parses the end of a licence. A date counts to its last second.
fn end(text: &str) -> Result<Timestamp, String> {
    let whole = if text.len() == "2027-01-31".len() { format!("{text}T23:59:59Z") } else { text.to_owned() };
    let at = whole.parse::<jiff::Timestamp>().ok().and_then(|at| u64::try_from(at.as_millisecond()).ok());
    at.map(Timestamp::from_millis).ok_or_else(|| {
        format!("`{text}` is not a date or a time; write `2027-01-31`, or `2027-01-31T12:00:00Z` for a time in UTC")
    })
}

/// Returns the licence as one line: its number, its facts, its end, who set it, and whether an order has brought it.
pub(super) fn licence_text(licence: &LicenceView) -> String {
    let LicenceView { serial, facts, not_after, withdrawn, issued_at, by, signed } = licence;
    let (issued, unsent) = (time(*issued_at), if signed.is_none() { "; the next order brings it" } else { "" });
    if *withdrawn {
        return format!("{serial}: withdrawn {issued} by {by}{unsent}");
    }
    let facts: Vec<String> = facts.iter().map(|(name, value)| format!("{name}={}", clean(&plain(value)))).collect();
    let facts = if facts.is_empty() { "no facts".to_owned() } else { facts.join(", ") };
    let until = not_after.map_or_else(|| "without an end".to_owned(), |end| format!("until {}", time(end)));
    format!("{serial}: {facts}; {until}; set {issued} by {by}{unsent}")
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn a_date_counts_to_its_end_and_a_time_is_a_time() {
        assert_eq!(end("2027-01-31").unwrap(), Timestamp::from_millis(1_801_439_999_000));
        assert_eq!(end("2027-01-31T12:00:00Z").unwrap(), Timestamp::from_millis(1_801_396_800_000));
        for wrong in ["", "tomorrow", "31.01.2027", "2027-02-30", "1969-12-31", "2027-01-31T12:00:00"] {
            assert!(end(wrong).unwrap_err().contains("is not a date or a time"), "{wrong}");
        }
    }

    #[test]
    fn a_licence_is_one_line_without_control_characters() {
        let licence: LicenceView = serde_json::from_value(json!({
            "serial": 3, "facts": { "note": "a\u{1b}b", "seats": 50 }, "not_after": 1_801_439_999_000_u64,
            "issued_at": 0, "by": { "by": "schedule" }, "signed": "{}",
        }))
        .unwrap();
        let withdrawn = LicenceView { withdrawn: true, signed: None, ..licence.clone() };

        assert_eq!(
            licence_text(&licence),
            "3: note=a?b, seats=50; until 2027-01-31 23:59:59Z; set 1970-01-01 00:00:00Z by schedule"
        );
        assert_eq!(licence_text(&withdrawn), "3: withdrawn 1970-01-01 00:00:00Z by schedule; the next order brings it");
    }
}
