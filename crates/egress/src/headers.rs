//! Decides which headers of a request are passed on, and whether a request names exactly one host.

use hyper::HeaderMap;
use hyper::header::{
    CONNECTION, CONTENT_LENGTH, EXPECT, HOST, HeaderName, PROXY_AUTHENTICATE, PROXY_AUTHORIZATION, TE, TRAILER,
    TRANSFER_ENCODING, UPGRADE,
};

use crate::host::Destination;

/// Headers for the next hop only (RFC 9110 section 7.6.1, and older headers that clients still send).
const HOP_BY_HOP: [HeaderName; 10] = [
    CONNECTION,
    HeaderName::from_static("keep-alive"),
    HeaderName::from_static("proxy-connection"),
    PROXY_AUTHENTICATE,
    PROXY_AUTHORIZATION,
    TE,
    TRAILER,
    TRANSFER_ENCODING,
    UPGRADE,
    // The proxy itself answers `Expect`.
    EXPECT,
];

/// Removes the headers for the next hop only, and the headers that `Connection` names.
pub(crate) fn strip_hop_by_hop(headers: &mut HeaderMap) {
    let named: Vec<HeaderName> = headers
        .get_all(CONNECTION)
        .iter()
        .filter_map(|value| value.to_str().ok())
        .flat_map(|value| value.split(','))
        .filter_map(|name| name.trim().parse().ok())
        .collect();
    for name in named.iter().chain(&HOP_BY_HOP) {
        headers.remove(name);
    }
}

/// Returns whether there is exactly one `Host` header, and it names `to`.
pub(crate) fn names_host(headers: &HeaderMap, to: &Destination, default_port: u16) -> bool {
    let mut hosts = headers.get_all(HOST).iter();
    let (Some(host), None) = (hosts.next(), hosts.next()) else { return false };
    let named = host.to_str().ok().and_then(|text| Destination::parse(text.trim(), Some(default_port)).ok());
    named.as_ref() == Some(to)
}

/// Returns whether the head announces a body.
pub(crate) fn has_body(headers: &HeaderMap) -> bool {
    headers.contains_key(TRANSFER_ENCODING)
        || headers.get(CONTENT_LENGTH).is_some_and(|length| length.as_bytes().trim_ascii() != b"0")
}

#[cfg(test)]
mod tests {
    use super::*;

    fn headers(lines: &[(&'static str, &'static str)]) -> HeaderMap {
        lines.iter().map(|(name, value)| (HeaderName::from_static(name), value.parse().unwrap())).collect()
    }

    #[test]
    fn what_is_meant_for_the_proxy_is_not_passed_on() {
        let mut given = headers(&[
            ("accept", "*/*"),
            ("connection", "close, X-Own"),
            ("x-own", "1"),
            ("proxy-authorization", "Basic c2VjcmV0"),
            ("proxy-connection", "keep-alive"),
            ("te", "trailers"),
            ("upgrade", "websocket"),
        ]);

        strip_hop_by_hop(&mut given);

        assert_eq!(given, headers(&[("accept", "*/*")]));
    }

    #[test]
    fn a_request_names_one_host_and_it_is_the_urls() {
        let to: Destination = "example.org:80".parse().unwrap();

        assert!(names_host(&headers(&[("host", "Example.org")]), &to, 80));
        assert!(names_host(&headers(&[("host", "example.org:80")]), &to, 80));
        for hosts in [&[][..], &[("host", "other.org")], &[("host", "example.org:81")], &[("host", "")]] {
            assert!(!names_host(&headers(hosts), &to, 80), "{hosts:?}");
        }
        let mut twice = headers(&[("host", "example.org")]);
        twice.append(HOST, "example.org".parse().unwrap());
        assert!(!names_host(&twice, &to, 80));
    }
}
