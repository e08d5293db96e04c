//! Who may use the pages: only the browser that exchanged the token of the printed address for a cookie, and only from
//! the pages themselves. Every other program and page on the machine can send requests to the port, too.

use std::cell::RefCell;

use freehold_protocol::Digest;
use freehold_protocol::digest::hex;
use hyper::{HeaderMap, Method, Request};

use super::fields::Fields;
use crate::error::Result;
use crate::random;

/// The name of the token in the printed address.
const TOKEN: &str = "token";

/// The secrets of the pages. They have no debug text.
pub(super) struct Access {
    /// The address and port of the pages. A page of another site whose name resolves to 127.0.0.1 has another `Host`.
    authority: String,
    /// The name of the cookie. Cookies belong to a host with all of its ports, so the name contains the port.
    cookie: String,
    /// The digest of the token, until a browser exchanges it.
    token: RefCell<Option<Digest>>,
    session: String,
    form_token: String,
}

/// The decision about a request.
#[derive(Debug, PartialEq, Eq)]
pub(super) enum Verdict {
    Permitted,
    /// The request has the token; the response sets this cookie.
    Exchanged(String),
    Refused(Refusal),
}

/// The reason why a request is refused.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Refusal {
    Host,
    Origin,
    Token,
    Form,
}

impl Refusal {
    /// Returns the reason and the way out.
    pub(super) const fn text(self) -> &'static str {
        match self {
            Self::Host => "the request names another host; open the address that `freehold customer ui` printed",
            Self::Origin => "another site sent the request; open the address that `freehold customer ui` printed",
            Self::Token => {
                "the address is not valid for this browser: the token in it is missing or wrong, or another browser \
                 has used it; start `freehold customer ui` again for another address"
            }
            Self::Form => "the form is not one of these pages; load the page again, and send its form",
        }
    }
}

impl Access {
    /// Returns the secrets of pages at a port, and the token for the printed address.
    pub(super) fn new(port: u16) -> Result<(Self, String)> {
        let secret = || random::bytes::<32>().map(|bytes| hex(&bytes));
        let token = secret()?;
        let access = Self {
            authority: format!("127.0.0.1:{port}"),
            cookie: format!("freehold-customer-{port}"),
            token: RefCell::new(Some(Digest::of(token.as_bytes()))),
            session: secret()?,
            form_token: secret()?,
        };
        Ok((access, token))
    }

    /// Returns the address and the port of the pages.
    pub(super) fn authority(&self) -> &str {
        &self.authority
    }

    /// Returns the token that each form of the pages has.
    pub(super) fn form_token(&self) -> &str {
        &self.form_token
    }

    /// Returns whether a form has the token of these pages.
    pub(super) fn is_own_form(&self, fields: &Fields) -> bool {
        fields.get("csrf").is_some_and(|token| is_same(token, &self.form_token))
    }

    /// Decides about a request by its address and its headers. The token counts once.
    pub(super) fn check<B>(&self, request: &Request<B>) -> Verdict {
        let headers = request.headers();
        if only(headers, "host") != Some(self.authority.as_str()) || request.uri().authority().is_some() {
            return Verdict::Refused(Refusal::Host);
        }
        let own = format!("http://{}", self.authority);
        let is_own = only(headers, "origin") == Some(own.as_str());
        // Browsers send the origin with each form, and leave it out when a person opens an address.
        let may_lack_origin = request.method() == Method::GET && !headers.contains_key("origin");
        if !is_own && !may_lack_origin {
            return Verdict::Refused(Refusal::Origin);
        }
        if self.has_cookie(headers) {
            return Verdict::Permitted;
        }
        if request.method() == Method::GET && self.takes_token(request.uri().query()) {
            let cookie = format!("{}={}; Path=/; HttpOnly; SameSite=Strict", self.cookie, self.session);
            return Verdict::Exchanged(cookie);
        }
        Verdict::Refused(Refusal::Token)
    }

    fn has_cookie(&self, headers: &HeaderMap) -> bool {
        let lines = headers.get_all("cookie").into_iter().filter_map(|line| line.to_str().ok());
        let mut pairs = lines.flat_map(|line| line.split(';')).filter_map(|pair| pair.trim().split_once('='));
        pairs.any(|(name, value)| name == self.cookie && is_same(value, &self.session))
    }

    /// Returns whether a query has the token. The token is not valid any more afterwards.
    fn takes_token(&self, query: Option<&str>) -> bool {
        let fields = Fields::parse(query.unwrap_or_default());
        let given = fields.get(TOKEN).map(|token| Digest::of(token.as_bytes()));
        let is_valid = given.is_some() && *self.token.borrow() == given;
        if is_valid {
            *self.token.borrow_mut() = None;
        }
        is_valid
    }
}

/// Returns the value of a header that the request has exactly once.
fn only<'a>(headers: &'a HeaderMap, name: &str) -> Option<&'a str> {
    let mut values = headers.get_all(name).into_iter();
    let value = values.next()?;
    if values.next().is_some() { None } else { value.to_str().ok() }
}

/// Compares two secrets by their digests, so that the time of the comparison does not depend on where they differ.
fn is_same(one: &str, other: &str) -> bool {
    Digest::of(one.as_bytes()) == Digest::of(other.as_bytes())
}

#[cfg(test)]
mod tests {
    use hyper::header::{COOKIE, HOST, HeaderName, ORIGIN};

    use super::*;

    const OWN: &str = "127.0.0.1:8799";
    const ORIGIN_OF_PAGES: &str = "http://127.0.0.1:8799";

    fn request(method: Method, path: &str, headers: &[(HeaderName, &str)]) -> Request<()> {
        let mut request = Request::builder().method(method).uri(path);
        for (name, value) in headers {
            request = request.header(name, *value);
        }
        request.body(()).unwrap()
    }

    fn get(path: &str, headers: &[(HeaderName, &str)]) -> Request<()> {
        request(Method::GET, path, headers)
    }

    /// Returns the pages of a browser that has exchanged the token, and its cookie.
    fn signed_in() -> (Access, String) {
        let (access, token) = Access::new(8799).unwrap();
        let Verdict::Exchanged(cookie) = access.check(&get(&format!("/?token={token}"), &[(HOST, OWN)])) else {
            panic!("the token is refused");
        };
        (access, cookie.split(';').next().unwrap().to_owned())
    }

    #[test]
    fn the_token_counts_once_and_its_cookie_counts_from_then_on() {
        let (access, token) = Access::new(8799).unwrap();
        let address = format!("/?token={token}");

        let wrong = access.check(&get("/?token=0000", &[(HOST, OWN)]));
        let first = access.check(&get(&address, &[(HOST, OWN)]));
        let second = access.check(&get(&address, &[(HOST, OWN)]));

        assert_eq!(wrong, Verdict::Refused(Refusal::Token));
        assert_eq!(second, Verdict::Refused(Refusal::Token));
        let Verdict::Exchanged(cookie) = first else { panic!("{first:?}") };
        assert!(cookie.ends_with("; Path=/; HttpOnly; SameSite=Strict") && !cookie.contains(&token), "{cookie}");
        let pair = format!("other=1; {}", cookie.split(';').next().unwrap());
        assert_eq!(access.check(&get("/asked", &[(HOST, OWN), (COOKIE, &pair)])), Verdict::Permitted);
    }

    #[test]
    fn a_cookie_that_is_missing_or_wrong_is_refused() {
        let (access, cookie) = signed_in();
        let (name, _) = cookie.split_once('=').unwrap();

        for wrong in
            [String::new(), format!("{name}="), format!("{name}=0"), format!("x{cookie}"), format!("{cookie}0")]
        {
            let verdict = access.check(&get("/", &[(HOST, OWN), (COOKIE, &wrong)]));

            assert_eq!(verdict, Verdict::Refused(Refusal::Token), "{wrong}");
        }
    }

    #[test]
    fn a_request_to_another_host_is_refused_also_with_the_cookie() {
        let (access, cookie) = signed_in();

        for host in ["localhost:8799", "127.0.0.1", "127.0.0.1:80", "evil.example:8799", "127.0.0.1:8799.evil.example"]
        {
            let verdict = access.check(&get("/", &[(HOST, host), (COOKIE, &cookie)]));

            assert_eq!(verdict, Verdict::Refused(Refusal::Host), "{host}");
        }
        let twice = access.check(&get("/", &[(HOST, OWN), (HOST, "evil.example"), (COOKIE, &cookie)]));
        let none = access.check(&get("/", &[(COOKIE, &cookie)]));
        let absolute = access.check(&get("http://evil.example/", &[(HOST, OWN), (COOKIE, &cookie)]));
        assert_eq!([twice, none, absolute], [const { Verdict::Refused(Refusal::Host) }; 3]);
    }

    #[test]
    fn a_form_comes_from_the_own_origin_and_has_the_token_of_the_pages() {
        let (access, cookie) = signed_in();
        let post = |origin: Option<&str>| {
            let mut headers = vec![(HOST, OWN), (COOKIE, cookie.as_str())];
            headers.extend(origin.map(|origin| (ORIGIN, origin)));
            access.check(&request(Method::POST, "/pause", &headers))
        };

        assert_eq!(post(Some(ORIGIN_OF_PAGES)), Verdict::Permitted);
        for origin in [None, Some("null"), Some("https://127.0.0.1:8799"), Some("http://127.0.0.1:8798")] {
            assert_eq!(post(origin), Verdict::Refused(Refusal::Origin), "{origin:?}");
        }
        assert!(access.is_own_form(&Fields::parse(&format!("csrf={}", access.form_token()))));
        assert!(!access.is_own_form(&Fields::parse("csrf=0")) && !access.is_own_form(&Fields::parse("")));
    }

    #[test]
    fn a_script_of_another_site_reads_no_page() {
        let (access, cookie) = signed_in();

        let read = access.check(&get("/", &[(HOST, OWN), (COOKIE, &cookie), (ORIGIN, "https://evil.example")]));

        assert_eq!(read, Verdict::Refused(Refusal::Origin));
    }
}
