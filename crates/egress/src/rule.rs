//! The rules that name the hosts that a job may reach.

use std::fmt;
use std::net::IpAddr;
use std::str::FromStr;

use crate::host::{Destination, Host, HostError, split_port};

/// How a job requests a host. It decides the port that a rule without a port permits.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Protocol {
    /// `CONNECT`, the tunnel that TLS uses.
    Connect,
    /// An `http://` request in absolute form.
    Http,
}

impl Protocol {
    /// Returns the port that a rule without a port permits.
    pub const fn default_port(self) -> u16 {
        match self {
            Self::Connect => 443,
            Self::Http => 80,
        }
    }
}

/// One permission: `example.org`, `*.example.org` or `?.example.org`, each optionally with `:port`; or an address with
/// its port.
///
/// `*.example.org` permits every name below `example.org`, at any depth, but not `example.org` itself. `?.example.org`
/// permits only names with exactly one more label.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Rule {
    hosts: Hosts,
    port: Option<u16>,
}

#[derive(Debug, Clone, PartialEq, Eq)]
enum Hosts {
    Name(String),
    /// Any name below a suffix. Holds the suffix with its leading dot.
    Below(String),
    /// A name with exactly one label before a suffix. Holds the suffix with its leading dot.
    DirectlyBelow(String),
    Address(IpAddr),
}

/// The reason why a text is not a rule.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum RuleError {
    #[error("`{0}` does not name a host")]
    Host(String, #[source] HostError),
    #[error("`{0}` is an address without a port; write the port after it")]
    AddressWithoutPort(String),
    #[error("`{0}` permits all of a top-level domain; name at least two labels after the `*` or `?`")]
    TooWide(String),
}

impl Rule {
    /// Returns whether a job may reach `to` by `protocol`.
    pub fn permits(&self, to: &Destination, protocol: Protocol) -> bool {
        self.names(&to.host) && to.port == self.port.unwrap_or(protocol.default_port())
    }

    /// Returns whether an exception names `to`. An exception without a port names a host on every port.
    fn excludes(&self, to: &Destination) -> bool {
        self.names(&to.host) && self.port.is_none_or(|port| port == to.port)
    }

    fn names(&self, host: &Host) -> bool {
        match (&self.hosts, host) {
            (Hosts::Name(name), Host::Name(asked)) => asked == name,
            (Hosts::Below(suffix), Host::Name(asked)) => asked.len() > suffix.len() && asked.ends_with(suffix),
            (Hosts::DirectlyBelow(suffix), Host::Name(asked)) => {
                asked.strip_suffix(suffix.as_str()).is_some_and(|label| !label.is_empty() && !label.contains('.'))
            }
            (Hosts::Address(address), Host::Address(asked)) => asked == address,
            (Hosts::Name(_) | Hosts::Below(_) | Hosts::DirectlyBelow(_), Host::Address(_))
            | (Hosts::Address(_), Host::Name(_)) => false,
        }
    }
}

impl FromStr for Rule {
    type Err = RuleError;

    fn from_str(text: &str) -> Result<Self, RuleError> {
        let wrong = |error| RuleError::Host(text.to_owned(), error);
        let (host, port) = split_port(text).map_err(wrong)?;
        let below = host.strip_prefix("*.");
        let directly_below = host.strip_prefix("?.");
        let wildcard = below.is_some() || directly_below.is_some();
        let name = below.or(directly_below).unwrap_or(host);
        let hosts = match name.parse().map_err(wrong)? {
            Host::Name(name) if wildcard && !name.contains('.') => return Err(RuleError::TooWide(text.to_owned())),
            Host::Name(name) if below.is_some() => Hosts::Below(format!(".{name}")),
            Host::Name(name) if wildcard => Hosts::DirectlyBelow(format!(".{name}")),
            Host::Name(name) => Hosts::Name(name),
            Host::Address(_) if wildcard => return Err(wrong(HostError::Name)),
            Host::Address(_) if port.is_none() => return Err(RuleError::AddressWithoutPort(text.to_owned())),
            Host::Address(address) => Hosts::Address(address),
        };
        Ok(Self { hosts, port })
    }
}

impl fmt::Display for Rule {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match &self.hosts {
            Hosts::Name(name) => f.write_str(name)?,
            Hosts::Below(suffix) => write!(f, "*{suffix}")?,
            Hosts::DirectlyBelow(suffix) => write!(f, "?{suffix}")?,
            Hosts::Address(address) => write!(f, "{}", Host::Address(*address))?,
        }
        self.port.map_or(Ok(()), |port| write!(f, ":{port}"))
    }
}

/// All rules of a job. A destination is permitted when any rule permits it and no exception names it.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Rules {
    permitted: Vec<Rule>,
    exceptions: Vec<Rule>,
    labels: Vec<Labelled>,
    inside: Vec<Rule>,
}

/// The names below a domain that have a label.
#[derive(Debug, Clone, PartialEq, Eq)]
struct Labelled {
    label: String,
    /// The domain with its leading dot.
    suffix: String,
}

impl Labelled {
    fn names(&self, host: &Host) -> bool {
        let Host::Name(name) = host else { return false };
        name.strip_suffix(&self.suffix).is_some_and(|before| before.split('.').any(|label| label == self.label))
    }
}

impl Rules {
    /// Parses rules, one per text.
    ///
    /// # Errors
    /// For the first text that is not a rule.
    pub fn parse<'a>(texts: impl IntoIterator<Item = &'a str>) -> Result<Self, RuleError> {
        texts.into_iter().map(str::parse).collect()
    }

    /// Excludes the hosts that `rules` name, whichever other rule permits them; by a rule without a port, on every port.
    #[must_use]
    pub fn except(mut self, rules: impl IntoIterator<Item = Rule>) -> Self {
        self.exceptions.extend(rules);
        self
    }

    /// Excludes every name below one of `domains` that has one of `labels` before the domain, on every port.
    #[must_use]
    pub fn except_labelled(mut self, labels: &[&str], domains: &[&str]) -> Self {
        let pairs = domains.iter().flat_map(|domain| labels.iter().map(move |label| (domain, label)));
        let labelled =
            pairs.map(|(domain, label)| Labelled { label: (*label).to_owned(), suffix: format!(".{domain}") });
        self.labels.extend(labelled);
        self
    }

    /// Marks the hosts that `rules` name as inside: they may resolve to addresses of a private network. A mark alone
    /// does not permit a host.
    #[must_use]
    pub fn inside(mut self, rules: impl IntoIterator<Item = Rule>) -> Self {
        self.inside.extend(rules);
        self
    }

    /// Returns whether a rule permits `to`.
    pub fn permit(&self, to: &Destination, protocol: Protocol) -> bool {
        any(&self.permitted, to, protocol) && !self.excludes(to)
    }

    /// Returns whether an exception names `to`.
    pub(crate) fn excludes(&self, to: &Destination) -> bool {
        self.exceptions.iter().any(|rule| rule.excludes(to))
            || self.labels.iter().any(|labelled| labelled.names(&to.host))
    }

    /// Returns whether `to` may be in a private network.
    pub(crate) fn may_be_inside(&self, to: &Destination, protocol: Protocol) -> bool {
        any(&self.inside, to, protocol)
    }
}

fn any(rules: &[Rule], to: &Destination, protocol: Protocol) -> bool {
    rules.iter().any(|rule| rule.permits(to, protocol))
}

impl FromIterator<Rule> for Rules {
    fn from_iter<I: IntoIterator<Item = Rule>>(rules: I) -> Self {
        Self { permitted: rules.into_iter().collect(), ..Self::default() }
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn permits(rule: &str, to: &str, protocol: Protocol) -> bool {
        rule.parse::<Rule>().unwrap().permits(&to.parse().unwrap(), protocol)
    }

    #[test]
    fn a_rule_without_a_port_permits_the_default_port_of_each_protocol() {
        assert!(permits("example.org", "EXAMPLE.org.:443", Protocol::Connect));
        assert!(permits("example.org", "example.org:80", Protocol::Http));
        assert!(
            !permits("example.org", "example.org:80", Protocol::Connect),
            "a tunnel would pass by the check of `Host`"
        );
        assert!(!permits("example.org", "example.org:443", Protocol::Http));
        assert!(!permits("example.org", "www.example.org:443", Protocol::Connect));
    }

    #[test]
    fn a_rule_with_a_port_permits_that_port_alone() {
        assert!(permits("*.example.org:8443", "a.b.example.org:8443", Protocol::Connect));
        assert!(!permits("*.example.org:8443", "a.b.example.org:443", Protocol::Connect));
    }

    #[test]
    fn a_wildcard_permits_names_below_it_and_neither_itself_nor_a_longer_name() {
        for other in ["example.org:443", "badexample.org:443", "a.example.org.evil.test:443"] {
            assert!(!permits("*.example.org", other, Protocol::Connect), "{other}");
        }
    }

    #[test]
    fn an_exception_takes_a_host_out_of_a_wildcard() {
        let rules = Rules::parse(["?.example.org"]).unwrap().except(["iam.example.org".parse().unwrap()]);
        let permitted = |host: &str| rules.permit(&format!("{host}:443").parse().unwrap(), Protocol::Connect);

        assert!(permitted("ec2.example.org") && !permitted("iam.example.org"));
    }

    #[test]
    fn an_exception_without_a_port_is_one_on_every_port() {
        let rules = |except: &str| {
            let permitted = Rules::parse(["iam.example.org", "iam.example.org:80", "iam.example.org:8443"]).unwrap();
            permitted.except([except.parse().unwrap()])
        };
        let ports = |rules: Rules| {
            let permitted =
                |port: &&u16| rules.permit(&format!("iam.example.org:{port}").parse().unwrap(), Protocol::Connect);
            [443, 80, 8443].iter().filter(permitted).copied().collect::<Vec<u16>>()
        };

        assert_eq!(ports(rules("iam.example.org")), Vec::<u16>::new());
        assert_eq!(ports(rules("iam.example.org:80")), [443, 8443]);
    }

    #[test]
    fn a_label_before_a_domain_excludes_a_name_and_one_in_another_place_does_not() {
        let hosts = ["*.example.org", "iam.test", "*.example.org:8443"];
        let rules = Rules::parse(hosts).unwrap().except_labelled(&["iam"], &["example.org"]);
        let permitted = |to: &str| rules.permit(&to.parse().unwrap(), Protocol::Connect);

        for to in ["iam.example.org:443", "x.iam.eu.vpce.example.org:443", "iam.eu.example.org:8443"] {
            assert!(!permitted(to), "{to}");
        }
        for to in ["ec2.example.org:443", "iam-x.example.org:443", "iamb.example.org:443", "iam.test:443"] {
            assert!(permitted(to), "{to}");
        }
    }

    #[test]
    fn a_question_mark_is_one_label() {
        assert!(permits("?.example.org", "a.example.org:443", Protocol::Connect));
        for other in ["example.org:443", "a.b.example.org:443", ".example.org:443", "badexample.org:443"] {
            assert!(
                !other
                    .parse()
                    .is_ok_and(|to| { "?.example.org".parse::<Rule>().unwrap().permits(&to, Protocol::Connect) }),
                "{other}"
            );
        }
    }

    #[test]
    fn an_address_needs_a_rule_with_that_address_and_that_port() {
        assert!(permits("10.1.2.3:5432", "10.1.2.3:5432", Protocol::Connect));
        assert!(!permits("10.1.2.3:5432", "10.1.2.3:443", Protocol::Connect));
        assert!(permits("[2001:db8::1]:443", "[2001:DB8:0::1]:443", Protocol::Connect));
    }

    #[test]
    fn what_would_permit_too_much_is_not_a_rule() {
        for text in [
            "*",
            "*.",
            "*.com",
            "?.com",
            "?.*.example.org",
            "*.*.com",
            "a.*.com",
            "10.1.2.3",
            "[::1]",
            "*.1.2.3",
            "https://a.b",
            "a.b/c",
            "",
        ] {
            assert!(text.parse::<Rule>().is_err(), "{text}");
        }
    }

    fn name() -> impl Strategy<Value = String> {
        "[a-c]{1,2}(\\.[a-c]{1,2}){1,3}"
    }

    proptest! {
        #[test]
        fn no_name_rule_permits_an_address(name in name(), address: IpAddr, wildcard: bool, port in 1..=u16::MAX) {
            let rule: Rule = format!("{}{name}:{port}", if wildcard { "*." } else { "" }).parse().unwrap();
            let to = Destination { host: Host::Address(address), port };

            prop_assert!(!rule.permits(&to, Protocol::Connect));
        }

        #[test]
        fn a_wildcard_is_a_comparison_of_whole_labels(suffix in name(), asked in name()) {
            let rule: Rule = format!("*.{suffix}").parse().unwrap();
            let to = Destination { host: Host::Name(asked.clone()), port: 443 };
            let (suffix, asked): (Vec<_>, Vec<_>) = (suffix.split('.').collect(), asked.split('.').collect());

            prop_assert_eq!(rule.permits(&to, Protocol::Connect), asked.len() > suffix.len() && asked.ends_with(&suffix));
        }

        #[test]
        fn a_rule_is_written_as_it_is_read(text in "([*?]\\.)?[a-z]{1,3}\\.[a-z]{1,3}(:[1-9][0-9]{0,3})?") {
            prop_assert_eq!(text.parse::<Rule>().unwrap().to_string(), text);
        }
    }
}
