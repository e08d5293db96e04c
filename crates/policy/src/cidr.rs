//! Rego's functions about ranges of addresses: `net.cidr_contains`, `net.cidr_intersects` and `net.cidr_is_valid` (OPA, "Policy
//! Reference", "Net").

use std::net::IpAddr;

use anyhow::{Result, anyhow};
use ipnet::IpNet;
use regorus::{Engine, Value};

/// Adds the functions to an engine.
pub(crate) fn add_to(engine: &mut Engine) -> Result<()> {
    let is_valid = |arguments: Vec<Value>| {
        let text = arguments.first().and_then(|value| value.as_string().ok());
        Ok(Value::from(text.is_some_and(|text| range(text).is_ok())))
    };
    engine.add_extension("net.cidr_is_valid".to_owned(), 1, Box::new(is_valid))?;
    let contains = |arguments: Vec<Value>| {
        Ok(Value::from(range(text(&arguments, 0)?)?.contains(&range_or_address(text(&arguments, 1)?)?)))
    };
    engine.add_extension("net.cidr_contains".to_owned(), 2, Box::new(contains))?;
    let intersects = |arguments: Vec<Value>| {
        let (one, other) = (range(text(&arguments, 0)?)?, range(text(&arguments, 1)?)?);
        Ok(Value::from(one.contains(&other) || other.contains(&one)))
    };
    engine.add_extension("net.cidr_intersects".to_owned(), 2, Box::new(intersects))
}

fn text(arguments: &[Value], at: usize) -> Result<&str> {
    let value = arguments.get(at).ok_or_else(|| anyhow!("an argument is missing"))?;
    Ok(value.as_string()?)
}

/// Reads a range with its length, such as `10.0.0.0/8`. The standard library parses the address, because `ipnet`
/// accepts numbers with leading zeros.
fn range(text: &str) -> Result<IpNet> {
    let is_number = |length: &&str| length.bytes().all(|byte| byte.is_ascii_digit());
    let found = text.split_once('/').and_then(|(address, length)| {
        let length = Some(length).filter(is_number)?.parse().ok()?;
        IpNet::new(address.parse().ok()?, length).ok()
    });
    found.ok_or_else(|| anyhow!("`{text}` is not a range of addresses, such as 10.0.0.0/8"))
}

fn range_or_address(text: &str) -> Result<IpNet> {
    let address = text.parse::<IpAddr>().map(IpNet::from).ok();
    address
        .or_else(|| range(text).ok())
        .ok_or_else(|| anyhow!("`{text}` is neither an address nor a range of addresses"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn ranges_contain_what_is_in_them() {
        let contains =
            |range: &str, other: &str| super::range(range).unwrap().contains(&range_or_address(other).unwrap());

        for (range, other) in [
            ("10.0.0.0/8", "10.1.2.0/24"),
            ("10.0.0.0/8", "10.255.255.255"),
            ("10.1.2.3/8", "10.0.0.0/9"),
            ("0.0.0.0/0", "1.2.3.4"),
            ("::/0", "fd00::1"),
        ] {
            assert!(contains(range, other), "{range} {other}");
        }
        for (range, other) in
            [("10.0.0.0/8", "11.0.0.0/24"), ("10.1.0.0/16", "10.0.0.0/8"), ("::/0", "1.2.3.4"), ("0.0.0.0/0", "::1")]
        {
            assert!(!contains(range, other), "{range} {other}");
        }
    }

    #[test]
    fn what_is_no_range_is_refused() {
        for text in
            ["10.0.0.0", "10.0.0.0/33", "10.0.0/8", "010.0.0.0/8", "x/8", "10.0.0.0/+8", "10.0.0.0/", "::/129", ""]
        {
            assert!(range(text).is_err(), "{text}");
        }
    }
}
