//! The fields of a form, or of the query of an address.

use std::collections::BTreeMap;
use std::fmt::Display;
use std::str::FromStr;

use url::form_urlencoded;

use crate::error::{Error, Kind, Result};

/// Names with their values.
#[derive(Debug, Default)]
pub(super) struct Fields(BTreeMap<String, String>);

impl Fields {
    /// Parses `application/x-www-form-urlencoded`. Of two fields with one name, the last one counts.
    pub(super) fn parse(text: &str) -> Self {
        let pairs = form_urlencoded::parse(text.as_bytes());
        Self(pairs.map(|(name, value)| (name.into_owned(), value.into_owned())).collect())
    }

    /// Returns the value of a field.
    pub(super) fn get(&self, name: &str) -> Option<&str> {
        self.0.get(name).map(String::as_str)
    }

    /// Returns the value of a field that may be absent.
    pub(super) fn optional<T: FromStr<Err: Display>>(&self, name: &str) -> Result<Option<T>> {
        let Some(text) = self.get(name) else { return Ok(None) };
        text.parse().map(Some).map_err(|wrong| {
            Error::quoting(Kind::Invalid, format!("field `{name}`: {wrong}")).or("follow a link of the pages")
        })
    }

    /// Returns the value of a field of a form.
    pub(super) fn required<T: FromStr<Err: Display>>(&self, name: &str) -> Result<T> {
        self.optional(name)?.ok_or_else(|| {
            Error::invalid(format!("the form has no field `{name}`")).or("load the page again, and send its form")
        })
    }
}

#[cfg(test)]
mod tests {
    use freehold_protocol::JobId;

    use super::*;

    #[test]
    fn fields_are_decoded_and_their_types_checked() {
        let fields = Fields::parse("job=job_0123456789abcdef0123&reason=a+%26+b&wrong=%3Cb%3E");

        assert_eq!(fields.required::<JobId>("job").unwrap().as_str(), "job_0123456789abcdef0123");
        assert_eq!(fields.get("reason"), Some("a & b"));
        assert!(fields.optional::<JobId>("wrong").unwrap_err().to_string().starts_with("field `wrong`: "));
        assert_eq!(fields.optional::<JobId>("absent").unwrap(), None);
        assert_eq!(fields.required::<JobId>("absent").unwrap_err().kind(), Kind::Invalid);
    }
}
