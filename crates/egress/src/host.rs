//! Parses host names, addresses and ports.

use std::fmt;
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr};
use std::str::FromStr;

/// The longest name (RFC 1035 section 2.3.4), in bytes.
const NAME_MAX: usize = 253;
/// The longest label of a name, in bytes.
const LABEL_MAX: usize = 63;

/// A host: a name in lower case without a final dot, or an address.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub enum Host {
    /// A DNS name.
    Name(String),
    /// An address; IPv6 is written in brackets.
    Address(IpAddr),
}

/// A host and a port.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub struct Destination {
    pub host: Host,
    pub port: u16,
}

/// The reason why a text is not a host or has no valid port.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
pub enum HostError {
    #[error("it is not a host name; write letters, digits, hyphens and dots")]
    Name,
    #[error("it is a number that programs read as an address; write an address as four decimal numbers")]
    NumericName,
    #[error("it is not an IPv6 address in brackets; write one such as `[2001:db8::1]`")]
    Address,
    #[error("it has no port from 1 to 65535; write one such as `:443`")]
    Port,
}

impl FromStr for Host {
    type Err = HostError;

    fn from_str(text: &str) -> Result<Self, HostError> {
        if let Some(inner) = text.strip_prefix('[') {
            let address = inner.strip_suffix(']').and_then(|inner| inner.parse::<Ipv6Addr>().ok());
            return address.map(|address| Self::Address(address.into())).ok_or(HostError::Address);
        }
        if let Ok(address) = text.parse::<Ipv4Addr>() {
            return Ok(Self::Address(address.into()));
        }
        let name = text.strip_suffix('.').unwrap_or(text).to_ascii_lowercase();
        if name.len() > NAME_MAX || !name.split('.').all(is_label) {
            return Err(HostError::Name);
        }
        // URL Standard, "ends in a number checker": system resolvers treat `127.1` and `0x7f000001` as addresses.
        let last = name.rsplit('.').next().unwrap_or_default();
        let hex = last.strip_prefix("0x").is_some_and(|rest| rest.bytes().all(|byte| byte.is_ascii_hexdigit()));
        if hex || last.bytes().all(|byte| byte.is_ascii_digit()) {
            return Err(HostError::NumericName);
        }
        Ok(Self::Name(name))
    }
}

fn is_label(label: &str) -> bool {
    let inside = |byte: u8| byte.is_ascii_alphanumeric() || byte == b'-' || byte == b'_';
    (1..=LABEL_MAX).contains(&label.len())
        && label.bytes().all(inside)
        && !label.starts_with('-')
        && !label.ends_with('-')
}

impl fmt::Display for Host {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Name(name) => f.write_str(name),
            Self::Address(IpAddr::V4(address)) => write!(f, "{address}"),
            Self::Address(IpAddr::V6(address)) => write!(f, "[{address}]"),
        }
    }
}

impl Destination {
    /// Parses `host:port`, or only `host` when there is a default port.
    ///
    /// # Errors
    /// When the host is not valid, or there is no valid port.
    pub fn parse(text: &str, default_port: Option<u16>) -> Result<Self, HostError> {
        let (host, port) = split_port(text)?;
        Ok(Self { host: host.parse()?, port: port.or(default_port).ok_or(HostError::Port)? })
    }
}

impl FromStr for Destination {
    type Err = HostError;

    fn from_str(text: &str) -> Result<Self, HostError> {
        Self::parse(text, None)
    }
}

impl fmt::Display for Destination {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}:{}", self.host, self.port)
    }
}

/// Splits `host:port`; the brackets of an IPv6 address stay with the host.
pub(crate) fn split_port(text: &str) -> Result<(&str, Option<u16>), HostError> {
    let after_address = text.rfind(']').map_or(0, |at| at + 1);
    let colon = text.get(after_address..).and_then(|rest| rest.find(':'));
    let Some(colon) = colon.map(|colon| colon + after_address) else {
        return Ok((text, None));
    };
    let (host, port) = text.split_at_checked(colon).ok_or(HostError::Port)?;
    let digits = port.get(1..).filter(|digits| digits.bytes().all(|byte| byte.is_ascii_digit()));
    let port = digits.and_then(|digits| digits.parse().ok()).filter(|port| *port != 0);
    Ok((host, Some(port.ok_or(HostError::Port)?)))
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    #[test]
    fn names_are_compared_in_lower_case_without_a_final_dot() {
        assert_eq!("Example.ORG.".parse(), Ok(Host::Name("example.org".into())));
    }

    #[test]
    fn other_spellings_of_an_address_are_not_names() {
        for text in ["127.1", "2130706433", "0x7f.1", "0x7f000001", "0177.0.0.1", "127.0.0.1.", "1.2.3.256", "a.0x"] {
            assert!(text.parse::<Host>().is_err(), "{text} became {:?}", text.parse::<Host>());
        }
    }

    #[test]
    fn a_text_that_hides_a_second_host_is_not_a_name() {
        for text in [
            "",
            ".",
            "a..b",
            "a b",
            "a/b",
            "a@b",
            "a\0b",
            "a%00.b",
            "-a.b",
            "a:b",
            "[::1",
            "[1.2.3.4]",
            "[fe80::1%eth0]",
            "é.example",
        ] {
            assert!(text.parse::<Host>().is_err(), "{text:?}");
        }
    }

    #[test]
    fn a_port_is_a_number_from_1() {
        assert_eq!("[2001:db8::1]:443".parse::<Destination>().unwrap().to_string(), "[2001:db8::1]:443");
        for text in ["a.b", "a.b:", "a.b:0", "a.b:65536", "a.b:+1", "a.b:1:2", "[::1]", "[::1]x:1"] {
            assert!(text.parse::<Destination>().is_err(), "{text}");
        }
    }

    proptest! {
        #[test]
        fn what_is_read_is_written_and_read_the_same(text in "\\PC{0,40}", port in 1..=u16::MAX) {
            if let Ok(host) = text.parse::<Host>() {
                let to = Destination { host, port };

                prop_assert_eq!(to.to_string().parse(), Ok(to));
            }
        }
    }
}
