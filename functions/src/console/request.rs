//! A request of a browser, parsed once.

use std::collections::BTreeMap;

use aws_lambda_events::event::apigw::ApiGatewayV2httpRequest;
use freehold_app::{AppError, Kind};
use freehold_protocol::envelope::decode_base64;
use http::HeaderMap;

/// The largest form, in bytes: the text of all policies has 64 KiB, and up to three times as much percent-encoded.
const MAX_FORM_BYTES: usize = 224 * 1024;

/// A request of a browser.
#[derive(Debug, Default)]
pub(crate) struct Request {
    pub(crate) is_post: bool,
    /// The path, as the browser sent it.
    pub(crate) path: String,
    /// The query, as the browser sent it.
    pub(crate) raw_query: String,
    pub(crate) query: Fields,
    pub(crate) form: Fields,
    /// The lines of the header `cookie`.
    pub(crate) cookies: Vec<String>,
    origin: Option<String>,
    fetch_site: Option<String>,
}

/// The fields of a query or of a form, by name.
#[derive(Debug, Default)]
pub(crate) struct Fields(BTreeMap<String, String>);

impl Fields {
    fn parse(text: &str) -> Self {
        Self(url::form_urlencoded::parse(text.as_bytes()).into_owned().collect())
    }

    /// Returns a field without the spaces around it; empty if it is absent.
    pub(crate) fn get(&self, name: &str) -> &str {
        self.0.get(name).map(|value| value.trim()).unwrap_or_default()
    }

    /// Returns a field, unless it is absent or empty.
    pub(crate) fn given(&self, name: &str) -> Option<&str> {
        Some(self.get(name)).filter(|value| !value.is_empty())
    }

    /// Returns the field `name` as a value of a type.
    pub(crate) fn parsed<T: std::str::FromStr<Err: std::fmt::Display>>(&self, name: &str) -> Result<T, AppError> {
        self.get(name).parse::<T>().map_err(|error| AppError::invalid(error.to_string()))
    }

    /// Returns the values of the field `name`, which commas, spaces or lines separate.
    pub(crate) fn list<T>(&self, name: &str) -> Result<std::collections::BTreeSet<T>, AppError>
    where
        T: std::str::FromStr<Err: std::fmt::Display> + Ord,
    {
        let parts = self.get(name).split([',', ' ', '\n', '\r', '\t']).filter(|part| !part.is_empty());
        parts.map(|part| part.parse::<T>().map_err(|error| AppError::invalid(error.to_string()))).collect()
    }
}

impl Request {
    /// Returns the request of an event of the HTTP API (payload format 2.0).
    pub(crate) fn parse(event: ApiGatewayV2httpRequest) -> Result<Self, AppError> {
        let method = event.request_context.http.method.as_str().to_owned();
        let is_post = match method.as_str() {
            "POST" => true,
            "GET" | "HEAD" => false,
            other => return Err(AppError::invalid(format!("method `{other}` is not known here; use GET or POST"))),
        };
        let (origin, fetch_site) = (header(&event.headers, "origin"), header(&event.headers, "sec-fetch-site"));
        let raw_query = event.raw_query_string.unwrap_or_default();
        let query = Fields::parse(&raw_query);
        let (path, cookies) = (event.raw_path.unwrap_or_default(), event.cookies.unwrap_or_default());
        let form = match event.body {
            Some(body) if is_post => Fields::parse(&form_text(body, event.is_base64_encoded)?),
            _ => Fields::default(),
        };
        Ok(Self { is_post, path, raw_query, query, form, cookies, origin, fetch_site })
    }

    /// Refuses a form that a page of another origin sends.
    ///
    /// # Errors
    /// Unauthorized, with what the browser sent.
    pub(crate) fn check_origin(&self, own: &str) -> Result<(), AppError> {
        let is_own = match (self.origin.as_deref(), self.fetch_site.as_deref()) {
            (Some(origin), None | Some("same-origin")) => origin == own,
            (None, Some("same-origin")) => true,
            _ => false,
        };
        if is_own {
            return Ok(());
        }
        Err(AppError::new(
            Kind::Unauthorized,
            "this form was not sent by a page of the console; open the page in the console and send the form again",
        ))
    }
}

fn form_text(body: String, is_base64: bool) -> Result<String, AppError> {
    if body.len() > MAX_FORM_BYTES * 4 / 3 + 4 {
        return Err(AppError::invalid(format!("the form has more than {MAX_FORM_BYTES} bytes; send less")));
    }
    if !is_base64 {
        return Ok(body);
    }
    let bytes = decode_base64(&body).map_err(|_| AppError::invalid("the form cannot be decoded; send it again"))?;
    String::from_utf8(bytes).map_err(|_| AppError::invalid("the form is not text in UTF-8; send it again"))
}

/// Returns the only value of a header; `None` when it is missing, repeated or not text.
fn header(headers: &HeaderMap, name: &str) -> Option<String> {
    let mut values = headers.get_all(name).iter();
    let only = values.next().filter(|_| values.next().is_none());
    only.and_then(|value| value.to_str().ok()).map(str::to_owned)
}

#[cfg(test)]
mod tests {
    use super::*;

    const OWN: &str = "https://console.example";

    fn from(origin: Option<&str>, fetch_site: Option<&str>) -> bool {
        let (origin, fetch_site) = (origin.map(str::to_owned), fetch_site.map(str::to_owned));
        Request { origin, fetch_site, ..Request::default() }.check_origin(OWN).is_ok()
    }

    #[test]
    fn only_a_page_of_the_same_origin_sends_forms() {
        assert!(from(Some(OWN), Some("same-origin")));
        assert!(from(Some(OWN), None));
        assert!(from(None, Some("same-origin")));

        assert!(!from(None, None));
        for origin in ["null", "https://evil.example", "https://console.example.evil", "http://console.example", ""] {
            assert!(!from(Some(origin), Some("same-origin")) && !from(Some(origin), None), "{origin}");
        }
        for site in ["cross-site", "same-site", "none", ""] {
            assert!(!from(Some(OWN), Some(site)) && !from(None, Some(site)), "{site}");
        }
    }

    #[test]
    fn fields_are_decoded_and_lists_split() {
        let fields = Fields::parse("a=1%20%2B+2&b=&groups=owner%2C+developer%0D%0Aauditor");

        assert_eq!(fields.get("a"), "1 + 2");
        assert_eq!((fields.given("b"), fields.given("c")), (None, None));
        let groups: Vec<String> = fields.list::<String>("groups").unwrap().into_iter().collect();
        assert_eq!(groups, ["auditor", "developer", "owner"]);
    }
}
