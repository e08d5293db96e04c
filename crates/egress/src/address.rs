//! Decides which addresses no job may reach, whichever name resolves to them.

use std::net::{IpAddr, Ipv4Addr, Ipv6Addr};

/// The reason why no job may reach an address.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, thiserror::Error)]
pub enum Forbidden {
    #[error("a loopback address")]
    Loopback,
    #[error("an address of the instance metadata service or of another service of the machine's hypervisor")]
    Metadata,
    #[error("a link-local address")]
    LinkLocal,
    #[error("the unspecified address")]
    Unspecified,
    #[error("a multicast or broadcast address")]
    Multicast,
    #[error("a reserved address")]
    Reserved,
    #[error("an address of the runner's own machine")]
    OwnMachine,
}

/// The networks in which an address can be.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum Scope {
    /// The internet.
    Public,
    /// A private network, such as the customer's VPC and the networks that it is connected to.
    Private,
}

/// Returns the scope of an address. Refuses addresses that belong to a machine or a link. An IPv6 form that contains an
/// IPv4 address is judged as that address.
///
/// In IPv6, only global unicast and unique local addresses pass (IANA IPv6 address space registry).
///
/// # Errors
/// When no job may reach `address`.
pub fn check_address(address: IpAddr) -> Result<Scope, Forbidden> {
    match address {
        IpAddr::V4(address) => check_v4(address),
        IpAddr::V6(address) => check_v6(address),
    }
}

/// Applies the IANA IPv4 special-purpose address registry. Private are the ranges of RFC 1918, RFC 6598 (also used in
/// VPCs) and RFC 2544.
fn check_v4(address: Ipv4Addr) -> Result<Scope, Forbidden> {
    match address.octets() {
        [0, ..] => Err(Forbidden::Unspecified),
        [127, ..] => Err(Forbidden::Loopback),
        // The addresses of metadata services (instance, ECS task credentials, EKS Pod Identity), of the VPC's DNS
        // resolver and of the Amazon Time Sync Service.
        [169, 254, 169, 254 | 253 | 123] | [169, 254, 170, 2 | 23] => Err(Forbidden::Metadata),
        // The same for a runner outside of AWS: the service of Azure that gives a machine its configuration.
        [168, 63, 129, 16] => Err(Forbidden::Metadata),
        [169, 254, ..] => Err(Forbidden::LinkLocal),
        [192, 0, 0, _] => Err(Forbidden::Reserved),
        [255, 255, 255, 255] | [224..=239, ..] => Err(Forbidden::Multicast),
        [240..=255, ..] => Err(Forbidden::Reserved),
        [10, ..] | [172, 16..=31, ..] | [192, 168, ..] | [100, 64..=127, ..] | [198, 18 | 19, ..] => Ok(Scope::Private),
        _ => Ok(Scope::Public),
    }
}

fn check_v6(address: Ipv6Addr) -> Result<Scope, Forbidden> {
    match address.segments() {
        [0, 0, 0, 0, 0, 0, 0, 0] => Err(Forbidden::Unspecified),
        [0, 0, 0, 0, 0, 0, 0, 1] => Err(Forbidden::Loopback),
        // IPv4 addresses inside IPv6: mapped and translated (RFC 4291, RFC 2765), and NAT64 (RFC 6052), which AWS also
        // supports.
        [0, 0, 0, 0, 0, 0xffff, high, low]
        | [0, 0, 0, 0, 0xffff, 0, high, low]
        | [0x0064, 0xff9b, 0, 0, 0, 0, high, low]
        // 6to4 (RFC 3056).
        | [0x2002, high, low, ..] => check_v4(v4(high, low)),
        // Teredo (RFC 4380): contains the server's address, and the client's address with inverted bits.
        [0x2001, 0, high, low, _, _, client_high, client_low] => {
            Ok(check_v4(v4(high, low))?.max(check_v4(v4(!client_high, !client_low))?))
        }
        // ISATAP (RFC 5214): an IPv4 address in the interface identifier.
        [_, _, _, _, 0 | 0x0200, 0x5efe, high, low] if check_v4(v4(high, low)) != Ok(Scope::Public) => {
            check_v4(v4(high, low))
        }
        // The addresses of instance metadata, the resolver and the clock on Nitro instances.
        [0xfd00, 0x0ec2, ..] => Err(Forbidden::Metadata),
        [0xfe80..=0xfebf, ..] => Err(Forbidden::LinkLocal),
        [0xff00..=0xffff, ..] => Err(Forbidden::Multicast),
        [0x2000..=0x3fff, ..] => Ok(Scope::Public),
        [0xfc00..=0xfdff, ..] => Ok(Scope::Private),
        _ => Err(Forbidden::Reserved),
    }
}

fn v4(high: u16, low: u16) -> Ipv4Addr {
    Ipv4Addr::from((u32::from(high) << 16) | u32::from(low))
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    const FORBIDDEN: [&str; 39] = [
        "0.0.0.0",
        "0.1.2.3",
        "127.0.0.1",
        "127.255.255.255",
        "169.254.0.1",
        "169.254.169.254",
        "169.254.170.2",
        "169.254.169.253",
        "169.254.170.23",
        "169.254.169.123",
        "168.63.129.16",
        "192.0.0.192",
        "224.0.0.1",
        "239.255.255.255",
        "240.0.0.1",
        "255.255.255.255",
        "::",
        "::1",
        "::7f00:1",
        "::ffff:127.0.0.1",
        "::ffff:169.254.169.254",
        "::ffff:0.0.0.0",
        "::ffff:0:127.0.0.1",
        "64:ff9b::7f00:1",
        "64:ff9b::169.254.169.254",
        "64:ff9b:1::1",
        "2002:7f00:1::",
        "2002:a9fe:a9fe::1",
        "2001:0:7f00:1::1",
        "2001::5601:5601",
        "2001:db8::5efe:127.0.0.1",
        "fd00:ec2::254",
        "fd00:ec2::253",
        "fe80::1",
        "febf::1",
        "fec0::1",
        "ff02::1",
        "100::1",
        "5f00::1",
    ];

    #[test]
    fn addresses_of_a_machine_or_a_link_are_refused_in_every_form() {
        for text in FORBIDDEN {
            assert!(check_address(text.parse().unwrap()).is_err(), "{text}");
        }
    }

    #[test]
    fn public_addresses_are_told_from_those_of_a_private_network() {
        for text in [
            "52.95.1.1",
            "198.51.100.1",
            "172.32.0.1",
            "100.128.0.1",
            "2600:1f18::1",
            "64:ff9b::52.95.1.1",
            "2001:db8::1",
        ] {
            assert_eq!(check_address(text.parse().unwrap()), Ok(Scope::Public), "{text}");
        }
        for text in [
            "10.0.0.1",
            "172.16.0.1",
            "172.31.255.255",
            "192.168.1.1",
            "100.64.0.1",
            "198.18.0.1",
            "fc00::1",
            "fd12::1",
            "fd00:ec3::1",
            "::ffff:10.0.0.1",
            "64:ff9b::10.0.0.1",
            "2002:a00:1::1",
            "2001:db8::5efe:10.0.0.1",
        ] {
            assert_eq!(check_address(text.parse().unwrap()), Ok(Scope::Private), "{text}");
        }
    }

    proptest! {
        #[test]
        fn an_embedded_address_is_judged_as_the_address_itself(bits: u32, prefix: [u16; 2]) {
            let plain = Ipv4Addr::from(bits);
            let [a, b, c, d] = plain.octets();
            let (high, low) = (u16::from_be_bytes([a, b]), u16::from_be_bytes([c, d]));
            let forms = [
                plain.to_ipv6_mapped(),
                Ipv6Addr::new(0, 0, 0, 0, 0xffff, 0, high, low),
                Ipv6Addr::new(0x64, 0xff9b, 0, 0, 0, 0, high, low),
                Ipv6Addr::new(0x2002, high, low, prefix[0], 0, 0, 0, prefix[1]),
                Ipv6Addr::new(0x2001, 0, 0x3456, 0x789a, prefix[0], prefix[1], !high, !low),
            ];

            for form in forms {
                prop_assert_eq!(check_address(form.into()), check_address(plain.into()), "{} in {}", plain, form);
            }
        }

        #[test]
        fn nothing_passes_that_the_standard_library_knows_as_local(bits: u128, short: u32) {
            for address in [IpAddr::from(bits.to_be_bytes()), IpAddr::from(short.to_be_bytes())] {
                let local = address.is_loopback() || address.is_unspecified() || address.is_multicast();
                let private = match address {
                    IpAddr::V4(address) => address.is_private(),
                    IpAddr::V6(address) => address.is_unique_local(),
                };

                prop_assert!(!local || check_address(address).is_err(), "{}", address);
                prop_assert!(!private || check_address(address) != Ok(Scope::Public), "{}", address);
            }
        }
    }
}
