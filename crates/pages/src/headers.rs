//! The headers of a response: what its page may load and where it may send forms, and that nobody stores or frames it.

/// The content type of a page.
const HTML: &str = "text/html; charset=utf-8";

/// Returns the headers of every response. Forms may be sent to the own origin and to `form_targets`, which are origins
/// such as `https://sign-in.example.com`; anything else in `form_targets` is left out.
pub fn security_headers<'a>(form_targets: impl IntoIterator<Item = &'a str>) -> Vec<(&'static str, String)> {
    let targets = form_targets.into_iter().filter(|target| origin_of(target).as_deref() == Some(*target));
    let targets: String = targets.map(|target| format!(" {target}")).collect();
    let policy = format!(
        "default-src 'none'; style-src 'self'; img-src 'self'; script-src 'self'; connect-src 'self'; \
         form-action 'self'{targets}; frame-ancestors 'none'; base-uri 'none'"
    );
    let fixed = [
        ("x-content-type-options", "nosniff"),
        ("x-frame-options", "DENY"),
        // With `no-referrer`, browsers send `Origin: null` with forms, and the check of the origin would refuse them.
        ("referrer-policy", "same-origin"),
        ("strict-transport-security", "max-age=63072000; includeSubDomains"),
        ("cross-origin-opener-policy", "same-origin"),
        ("cross-origin-resource-policy", "same-origin"),
        ("permissions-policy", "camera=(), geolocation=(), microphone=(), payment=(), usb=()"),
    ];
    let fixed = fixed.map(|(name, value)| (name, value.to_owned()));
    [("content-security-policy", policy)].into_iter().chain(fixed).collect()
}

/// Returns the headers of a page: those of every response, its type, and that it is not stored.
pub fn html_headers<'a>(form_targets: impl IntoIterator<Item = &'a str>) -> Vec<(&'static str, String)> {
    let own = [("content-type", HTML.to_owned()), ("cache-control", "no-store".to_owned())];
    security_headers(form_targets).into_iter().chain(own).collect()
}

/// Returns the origin of an address, such as `https://sign-in.example.com`; `None` for what is not an address of a web
/// server, and for a host with characters that a policy gives a meaning.
pub fn origin_of(address: &str) -> Option<String> {
    let (scheme, rest) =
        ["https://", "http://"].iter().find_map(|scheme| Some((*scheme, address.strip_prefix(scheme)?)))?;
    let host = rest.split(['/', '?', '#']).next().unwrap_or_default();
    let is_plain = host.bytes().all(|byte| byte.is_ascii_alphanumeric() || b".-:".contains(&byte));
    (is_plain && host.starts_with(|first: char| first.is_ascii_alphanumeric())).then(|| format!("{scheme}{host}"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_page_loads_from_its_own_origin_alone_and_sends_forms_to_the_issuer() {
        let headers = html_headers(["https://fh.auth.eu-west-1.amazoncognito.com"]);

        let policy = &headers.iter().find(|(name, _)| *name == "content-security-policy").unwrap().1;
        assert_eq!(
            policy,
            "default-src 'none'; style-src 'self'; img-src 'self'; script-src 'self'; connect-src 'self'; form-action \
             'self' https://fh.auth.eu-west-1.amazoncognito.com; frame-ancestors 'none'; base-uri 'none'"
        );
        assert!(headers.contains(&("cache-control", "no-store".to_owned())));
        assert!(headers.contains(&("x-content-type-options", "nosniff".to_owned())));
    }

    #[test]
    fn a_form_target_cannot_add_a_directive() {
        for target in ["https://a.example; script-src *", "*", "https://*", "https://a.example/path", "'unsafe-inline'"]
        {
            let policy = security_headers([target]).swap_remove(0).1;

            assert!(policy.contains("form-action 'self'; "), "{policy}");
        }
    }

    #[test]
    fn the_origin_of_an_address_has_neither_path_nor_user() {
        assert_eq!(origin_of("https://id.example:8443/a?b#c").as_deref(), Some("https://id.example:8443"));
        assert_eq!(origin_of("http://127.0.0.1:4566/x").as_deref(), Some("http://127.0.0.1:4566"));
        for wrong in ["", "https://", "ftp://a", "https://a@b", "//a", "javascript:alert(1)", "https://-a"] {
            assert_eq!(origin_of(wrong), None, "{wrong}");
        }
    }
}
