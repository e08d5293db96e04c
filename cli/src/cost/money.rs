//! Sums of money: exact decimals, which are added only to amounts of the same currency.

use std::collections::BTreeMap;

use rust_decimal::Decimal;
use serde::{Serialize, Serializer};

use crate::error::{Error, Result};

/// The number of decimal places that people see. JSON has all of them.
const SHOWN_PLACES: u32 = 4;
/// The number of decimal places of the parts of an amount that is split; the last part has the rest.
const PART_PLACES: u32 = 10;

/// A sum for each currency, by its code, such as `USD`.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(crate) struct Money(BTreeMap<String, Decimal>);

impl Money {
    /// Adds an amount to the sum of its currency.
    pub(crate) fn add(&mut self, currency: &str, amount: Decimal) -> Result<()> {
        let sum = self.0.entry(currency.to_owned()).or_default();
        *sum = sum.checked_add(amount).ok_or_else(too_large)?;
        Ok(())
    }

    /// Adds all sums of `other`.
    pub(crate) fn add_all(&mut self, other: &Self) -> Result<()> {
        other.amounts().try_for_each(|(currency, amount)| self.add(currency, amount))
    }

    /// Returns the currencies with their sums.
    pub(crate) fn amounts(&self) -> impl Iterator<Item = (&str, Decimal)> {
        self.0.iter().map(|(currency, amount)| (currency.as_str(), *amount))
    }

    /// Returns the sum of a currency; zero if there is none.
    pub(crate) fn of(&self, currency: &str) -> Decimal {
        self.0.get(currency).copied().unwrap_or_default()
    }

    /// Splits the sums by weights. The parts add up to exactly the sums. All parts are empty if all weights are zero.
    pub(crate) fn split(&self, weights: &[u64]) -> Result<Vec<Self>> {
        let mut parts = vec![Self::default(); weights.len()];
        if weights.iter().all(|weight| *weight == 0) {
            return Ok(parts);
        }
        for (currency, amount) in self.amounts() {
            let shares = shares(amount, weights).ok_or_else(too_large)?;
            for (part, share) in parts.iter_mut().zip(shares) {
                part.add(currency, share)?;
            }
        }
        Ok(parts)
    }
}

impl Serialize for Money {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.collect_map(self.amounts().map(|(currency, amount)| (currency, exact(amount))))
    }
}

/// Returns the amount that AWS writes as `text`, such as `12.3456789` or `3.1E-7`.
pub(crate) fn parse(text: &str) -> Result<Decimal> {
    text.parse::<Decimal>().map_err(|_| {
        Error::internal(format!("Cost Explorer returned the amount `{text}`, which is not a number; update `freehold`"))
    })
}

/// Returns an amount with the decimal places that people see. A smaller amount than these places can show is not zero.
pub(crate) fn shown(amount: Decimal) -> String {
    let rounded = amount.round_dp(SHOWN_PLACES);
    match (rounded.is_zero(), amount.is_zero(), amount.is_sign_negative()) {
        (true, false, false) => "<0.0001".to_owned(),
        (true, false, true) => ">-0.0001".to_owned(),
        (true, true, _) => "0.0000".to_owned(),
        (false, ..) => format!("{rounded:.4}"),
    }
}

/// Returns an amount with all of its decimal places.
pub(crate) fn exact(amount: Decimal) -> String {
    amount.normalize().to_string()
}

/// Returns the share of each weight, or `None` if a number is too large. Each share is the difference between two
/// rounded sums, so that no rounding error is lost.
fn shares(amount: Decimal, weights: &[u64]) -> Option<Vec<Decimal>> {
    let total = weights.iter().try_fold(0_u64, |sum, weight| sum.checked_add(*weight))?;
    let (mut seen, mut given) = (0_u64, Decimal::ZERO);
    let share = |weight: &u64| {
        seen = seen.checked_add(*weight)?;
        let up_to_here = if seen == total {
            amount
        } else {
            amount.checked_mul(Decimal::from(seen))?.checked_div(Decimal::from(total))?.round_dp(PART_PLACES)
        };
        let share = up_to_here.checked_sub(given)?;
        given = up_to_here;
        Some(share)
    };
    weights.iter().map(share).collect()
}

fn too_large() -> Error {
    Error::internal("an amount is too large for this version; update `freehold`")
}

#[cfg(test)]
mod tests {
    use super::*;

    fn money(amounts: &[(&str, &str)]) -> Money {
        let mut money = Money::default();
        for (currency, amount) in amounts {
            money.add(currency, parse(amount).unwrap()).unwrap();
        }
        money
    }

    #[test]
    fn ten_dimes_are_one_dollar_and_currencies_stay_apart() {
        let mut sum = money(&[("USD", "0.1"); 10]);
        sum.add_all(&money(&[("EUR", "2.50"), ("USD", "-0.0000000001")])).unwrap();

        assert_eq!(serde_json::to_string(&sum).unwrap(), r#"{"EUR":"2.5","USD":"0.9999999999"}"#);
        assert_eq!((sum.of("EUR"), sum.of("GBP")), (parse("2.5").unwrap(), Decimal::ZERO));
    }

    #[test]
    fn amounts_are_read_as_aws_writes_them() {
        for (text, exactly) in [
            ("0", "0"),
            ("12.3456789012", "12.3456789012"),
            ("3.1E-7", "0.00000031"),
            ("-0.0000000002", "-0.0000000002"),
            ("1234567890.12", "1234567890.12"),
        ] {
            assert_eq!(exact(parse(text).unwrap()), exactly, "{text}");
        }
        for text in ["", "1,5", "12 USD", "NaN", "\u{1b}[31m1"] {
            let error = parse(text).unwrap_err();
            assert!(error.to_string().contains("which is not a number"), "{text}: {error}");
        }
    }

    #[test]
    fn an_amount_that_is_too_small_to_be_seen_is_not_shown_as_zero() {
        let shown = |text: &str| shown(parse(text).unwrap());

        assert_eq!(["0", "0.00004", "-0.00004", "0.00006"].map(shown), ["0.0000", "<0.0001", ">-0.0001", "0.0001"]);
        assert_eq!(["1.2", "-3", "1234.56785"].map(shown), ["1.2000", "-3.0000", "1234.5678"]);
    }

    #[test]
    fn a_sum_that_is_too_large_is_an_error() {
        let mut sum = money(&[("USD", "79228162514264337593543950335")]);

        assert_eq!(sum.add("USD", Decimal::ONE).unwrap_err().kind().exit_code(), 70);
    }

    #[test]
    fn nothing_is_split_when_nothing_was_counted() {
        let parts = money(&[("USD", "1")]).split(&[0, 0]).unwrap();

        assert_eq!(parts, [Money::default(), Money::default()]);
    }

    #[test]
    fn parts_add_up_to_the_whole_and_a_weight_of_zero_gets_nothing() {
        let weights: [&[u64]; 6] =
            [&[1], &[1, 1, 1], &[0, 7, 0], &[5000, 1, 0, 3], &[3, 0, 0], &[1, 2, 3, 5, 8, 13, 21]];
        for text in ["0", "0.0000000001", "1", "-3.3333333333", "99999.9999999999", "0.00000000000000000000001"] {
            for weights in weights {
                let parts = money(&[("USD", text)]).split(weights).unwrap();

                let sum: Decimal = parts.iter().map(|part| part.of("USD")).sum();
                assert_eq!(sum, parse(text).unwrap(), "{text} by {weights:?}");
                let mut of_zero = parts.iter().zip(weights).filter(|(_, weight)| **weight == 0);
                assert!(of_zero.all(|(part, _)| part.of("USD").is_zero()), "{text} by {weights:?}");
            }
        }
        let thirds = money(&[("USD", "1")]).split(&[1, 1, 1]).unwrap();
        assert_eq!(
            thirds.iter().map(|part| exact(part.of("USD"))).collect::<Vec<_>>(),
            ["0.3333333333", "0.3333333334", "0.3333333333"]
        );
    }
}
