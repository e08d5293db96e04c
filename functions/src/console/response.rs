//! The responses of the console, all with the headers of `freehold_pages`.

use aws_lambda_events::encodings::Body;
use aws_lambda_events::event::apigw::ApiGatewayV2httpResponse;
use freehold_pages::{html_headers, security_headers};
use http::{HeaderName, HeaderValue};

/// A browser may keep a file for a year, because its path has the digest of its text.
const KEPT: &str = "public, max-age=31536000, immutable";

/// A response to a browser.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Response {
    pub(crate) status: u16,
    pub(crate) headers: Vec<(&'static str, String)>,
    pub(crate) cookies: Vec<String>,
    pub(crate) body: String,
}

impl Response {
    /// Returns a page.
    pub(crate) fn page(status: u16, body: String) -> Self {
        Self { status, headers: html_headers([]), cookies: Vec::new(), body }
    }

    /// Returns a redirect to a path of the console, or to the page of the issuer. The browser asks for it with GET.
    pub(crate) fn redirect(to: impl Into<String>) -> Self {
        let mut redirect = Self::page(303, String::new());
        redirect.headers.push(("location", to.into()));
        redirect
    }

    /// Returns a part of a page for the script.
    pub(crate) fn json(body: String) -> Self {
        let own = [("content-type", "application/json".to_owned()), ("cache-control", "no-store".to_owned())];
        let headers = security_headers([]).into_iter().chain(own).collect();
        Self { status: 200, headers, cookies: Vec::new(), body }
    }

    /// Returns the stylesheet or the script.
    pub(crate) fn asset(kind: &str, text: &str) -> Self {
        let own = [("content-type", kind.to_owned()), ("cache-control", KEPT.to_owned())];
        let headers = security_headers([]).into_iter().chain(own).collect();
        Self { status: 200, headers, cookies: Vec::new(), body: text.to_owned() }
    }

    /// Adds a header that sets or removes a cookie.
    #[must_use]
    pub(crate) fn with_cookie(mut self, cookie: String) -> Self {
        self.cookies.push(cookie);
        self
    }
}

impl From<Response> for ApiGatewayV2httpResponse {
    fn from(response: Response) -> Self {
        let mut answer = Self::default();
        answer.status_code = i64::from(response.status);
        for (name, value) in response.headers {
            // The values are ours or percent-encoded addresses. An invalid value is left out.
            if let Ok(value) = HeaderValue::from_str(&value) {
                answer.headers.insert(HeaderName::from_static(name), value);
            }
        }
        answer.cookies = response.cookies;
        answer.body = Some(Body::Text(response.body));
        answer
    }
}
