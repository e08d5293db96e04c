//! The two cookies: that of a session, and that of a sign-in which has begun. `__Host-` makes browsers accept them only
//! from this host by HTTPS, and for all of its paths.

/// The cookie of a session.
pub(crate) const SESSION: &str = "__Host-freehold";
/// The cookie of a sign-in that has begun.
pub(crate) const SIGN_IN: &str = "__Host-freehold-sign-in";

// `Lax`, because the issuer's page leads back to the console.
const ATTRIBUTES: &str = "Path=/; Secure; HttpOnly; SameSite=Lax";

/// Returns the header that sets a cookie for `secs` seconds.
pub(crate) fn set(name: &str, value: &str, secs: u64) -> String {
    format!("{name}={value}; {ATTRIBUTES}; Max-Age={secs}")
}

/// Returns the header that removes a cookie.
pub(crate) fn removed(name: &str) -> String {
    set(name, "", 0)
}

/// Returns the value of a cookie; `None` when it is absent, and when the browser sent two of them.
pub(crate) fn value<'a>(cookies: &'a [String], name: &str) -> Option<&'a str> {
    let pairs = cookies.iter().flat_map(|line| line.split(';')).filter_map(|pair| pair.trim().split_once('='));
    let mut values = pairs.filter(|(other, _)| *other == name).map(|(_, value)| value);
    let first = values.next()?;
    values.next().is_none().then_some(first)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_cookie_has_exactly_these_attributes() {
        assert_eq!(
            set(SESSION, "abc", 43_200),
            "__Host-freehold=abc; Path=/; Secure; HttpOnly; SameSite=Lax; Max-Age=43200"
        );
        assert_eq!(removed(SESSION), "__Host-freehold=; Path=/; Secure; HttpOnly; SameSite=Lax; Max-Age=0");
    }

    #[test]
    fn a_value_is_that_of_the_name_and_two_values_are_none() {
        let cookies = |lines: &[&str]| lines.iter().map(|line| (*line).to_owned()).collect::<Vec<_>>();

        assert_eq!(value(&cookies(&["a=1", "__Host-freehold=x=y"]), SESSION), Some("x=y"));
        assert_eq!(value(&cookies(&["a=1; __Host-freehold=x"]), SESSION), Some("x"));
        assert_eq!(value(&cookies(&["__Host-freehold=x", "__Host-freehold=y"]), SESSION), None);
        assert_eq!(value(&cookies(&["freehold=x", "__host-freehold=y"]), SESSION), None);
    }
}
