//! List prices in US dollars, for the forecasts. Every price of this command is here.
//!
//! They are the prices of on-demand use in us-east-1, without free tiers, discounts and taxes. They come from AWS's
//! pricing pages of DynamoDB, Step Functions, SQS, Lambda, KMS, CloudWatch, Secrets Manager, VPC, EC2, EBS and Cost
//! Management (`https://aws.amazon.com/<service>/pricing/`), as of [`AS_OF`]. No program compares them with these pages. Those of
//! requests are also in `tests/src/bin/bench-cloud.rs`, and a test below compares them.

use rust_decimal::Decimal;

use super::money;

/// The month in which the prices were taken from the pages.
pub(super) const AS_OF: &str = "2025-07";
pub(super) const REGION: &str = "us-east-1";

/// A write request unit of DynamoDB on demand.
pub(super) const WRITE_UNIT: Decimal = usd(625, 9);
/// A read request unit of DynamoDB on demand.
pub(super) const READ_UNIT: Decimal = usd(125, 9);
/// A transition of a Standard workflow of Step Functions.
pub(super) const TRANSITION: Decimal = usd(25, 6);
/// A request to a FIFO queue of SQS, up to 64 KiB.
pub(super) const QUEUE_REQUEST: Decimal = usd(5, 7);
/// An invoke of a function on arm64 with 128 MB, for 20 ms: the request (0.0000002) and 0.0025 GB-seconds.
pub(super) const INVOKE: Decimal = usd(2_333_335, 13);
/// A request to the Cost Explorer API.
const EXPLORER_REQUEST: Decimal = usd(1, 2);

/// A GB of a gp3 volume, for a month.
pub(super) const VOLUME_GB_MONTH: Decimal = usd(8, 2);
/// The hours of a month, as AWS's calculator counts them.
pub(super) const HOURS_A_MONTH: Decimal = usd(730, 0);
/// A public IPv4 address, for an hour.
pub(super) const ADDRESS_HOUR: Decimal = usd(5, 3);
/// An interface endpoint in one zone, for an hour.
pub(super) const ENDPOINT_HOUR: Decimal = usd(1, 2);
pub(super) const NAT_GATEWAY_HOUR: Decimal = usd(45, 3);
/// A key of KMS, for a month. Each of the first two rotations costs the same again.
pub(super) const KEY_MONTH: Decimal = usd(1, 0);
pub(super) const SECRET_MONTH: Decimal = usd(4, 1);
pub(super) const ALARM_MONTH: Decimal = usd(1, 1);

/// Linux instances with a Graviton processor, for an hour.
const MACHINE_HOURS: [(&str, Decimal); 9] = [
    ("t4g.nano", usd(42, 4)),
    ("t4g.micro", usd(84, 4)),
    ("t4g.small", usd(168, 4)),
    ("t4g.medium", usd(336, 4)),
    ("t4g.large", usd(672, 4)),
    ("t4g.xlarge", usd(1344, 4)),
    ("t4g.2xlarge", usd(2688, 4)),
    ("m7g.medium", usd(408, 4)),
    ("m7g.large", usd(816, 4)),
];

/// Returns the price of a machine for an hour, if the table has it.
pub(super) fn machine_hour(machine: &str) -> Option<Decimal> {
    MACHINE_HOURS.iter().find(|(name, _)| *name == machine).map(|(_, price)| *price)
}

/// Returns what this number of requests to Cost Explorer costs, such as `0.03 US dollars for 3 requests`.
pub(crate) fn requests_cost(requests: u32) -> String {
    let cost = EXPLORER_REQUEST.saturating_mul(Decimal::from(requests));
    let count = usize::try_from(requests).unwrap_or(usize::MAX);
    format!("{} US dollars for {}", money::exact(cost), crate::output::plural(count, "request"))
}

/// Returns `digits` with the last `places` of them behind the point.
const fn usd(digits: u32, places: u32) -> Decimal {
    Decimal::from_parts(digits, 0, 0, false, places)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_prices_of_requests_are_those_of_the_benchmark() {
        let bench = include_str!("../../../tests/src/bin/bench-cloud.rs");
        let price = |name: &str| {
            let line = bench.lines().find_map(|line| line.strip_prefix(&format!("const {name}: f64 = ")[..])).unwrap();
            let parse = |text: &str| text.trim().replace('_', "").parse::<Decimal>().unwrap();
            let product = |text: &str| text.split('*').map(parse).product::<Decimal>();
            line.trim_end_matches(';').split('+').map(product).sum::<Decimal>()
        };

        assert_eq!(price("WRITE_PRICE"), WRITE_UNIT);
        assert_eq!(price("READ_PRICE"), READ_UNIT);
        assert_eq!(price("TRANSITION_PRICE"), TRANSITION);
        assert_eq!(price("SQS_PRICE"), QUEUE_REQUEST);
        assert_eq!(price("INVOKE_PRICE"), INVOKE);
    }

    #[test]
    fn a_request_to_cost_explorer_costs_a_cent() {
        assert_eq!(requests_cost(1), "0.01 US dollars for 1 request");
        assert_eq!(requests_cost(12), "0.12 US dollars for 12 requests");
    }

    #[test]
    fn a_machine_that_the_table_lacks_has_no_price() {
        assert_eq!(machine_hour("t4g.small"), Some(usd(168, 4)));
        assert_eq!(machine_hour("x8g.metal-48xl"), None);
    }
}
