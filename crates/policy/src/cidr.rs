//! Rego's functions about ranges of addresses: `net.cidr_contains`, `net.cidr_intersects` and `net.cidr_is_valid` (OPA, "Policy
//! Reference", "Net").

use std::net::IpAddr;

use anyhow::{Result, anyhow};
use regorus::{Engine, Value};

/// A range of addresses of one family.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
struct Range {
    is_v4: bool,
    first: u128,
    last: u128,
}

impl Range {
    /// Reads a range with its length, such as `10.0.0.0/8`.
    fn of(text: &str) -> Option<Self> {
        let (address, length) = text.split_once('/')?;
        let address: IpAddr = address.parse().ok()?;
        let length: u32 = length.parse().ok().filter(|_| length.bytes().all(|byte| byte.is_ascii_digit()))?;
        let (number, bits) = number(address);
        let free = bits.checked_sub(length)?;
        let mask = if free == 128 { u128::MAX } else { (1 << free) - 1 };
        Some(Self { is_v4: bits == 32, first: number & !mask, last: number | mask })
    }

    /// Reads a range, or an address.
    fn of_either(text: &str) -> Option<Self> {
        Self::of(text).or_else(|| {
            let (number, bits) = number(text.parse().ok()?);
            Some(Self { is_v4: bits == 32, first: number, last: number })
        })
    }

    const fn contains(self, other: Self) -> bool {
        self.is_v4 == other.is_v4 && self.first <= other.first && other.last <= self.last
    }

    const fn intersects(self, other: Self) -> bool {
        self.is_v4 == other.is_v4 && self.first <= other.last && other.first <= self.last
    }
}

fn number(address: IpAddr) -> (u128, u32) {
    match address {
        IpAddr::V4(address) => (u128::from(u32::from(address)), 32),
        IpAddr::V6(address) => (u128::from(address), 128),
    }
}

/// Adds the functions to an engine.
pub(crate) fn add_to(engine: &mut Engine) -> Result<()> {
    let is_valid = |arguments: Vec<Value>| {
        let text = arguments.first().and_then(|value| value.as_string().ok());
        Ok(Value::from(text.is_some_and(|text| Range::of(text).is_some())))
    };
    engine.add_extension("net.cidr_is_valid".to_owned(), 1, Box::new(is_valid))?;
    let contains = |arguments: Vec<Value>| {
        let (range, other) = (text(&arguments, 0)?, text(&arguments, 1)?);
        Ok(Value::from(range_of(range)?.contains(either_of(other)?)))
    };
    engine.add_extension("net.cidr_contains".to_owned(), 2, Box::new(contains))?;
    let intersects = |arguments: Vec<Value>| {
        let (range, other) = (text(&arguments, 0)?, text(&arguments, 1)?);
        Ok(Value::from(range_of(range)?.intersects(range_of(other)?)))
    };
    engine.add_extension("net.cidr_intersects".to_owned(), 2, Box::new(intersects))
}

fn text(arguments: &[Value], at: usize) -> Result<&str> {
    let value = arguments.get(at).ok_or_else(|| anyhow!("an argument is missing"))?;
    Ok(value.as_string()?)
}

fn range_of(text: &str) -> Result<Range> {
    Range::of(text).ok_or_else(|| anyhow!("`{text}` is not a range of addresses, such as 10.0.0.0/8"))
}

fn either_of(text: &str) -> Result<Range> {
    Range::of_either(text).ok_or_else(|| anyhow!("`{text}` is neither an address nor a range of addresses"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn ranges_contain_what_is_in_them() {
        let contains = |range: &str, other: &str| Range::of(range).unwrap().contains(Range::of_either(other).unwrap());

        for (range, other) in [
            ("10.0.0.0/8", "10.1.2.0/24"),
            ("10.0.0.0/8", "10.255.255.255"),
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
        for text in ["10.0.0.0", "10.0.0.0/33", "10.0.0/8", "x/8", "10.0.0.0/+8", "::/129", ""] {
            assert_eq!(Range::of(text), None, "{text}");
        }
    }
}
