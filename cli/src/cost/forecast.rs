//! Forecasts: what counted work and the resources of a stack cost in a month by list prices. A forecast is a range, and
//! no part of it was billed.

use std::collections::BTreeMap;

use rust_decimal::Decimal;
use serde::{Serialize, Serializer};

use super::money::{exact, shown};
use super::prices::{
    ADDRESS_HOUR, ALARM_MONTH, AS_OF, ENDPOINT_HOUR, HOURS_A_MONTH, INVOKE, KEY_MONTH, NAT_GATEWAY_HOUR, QUEUE_REQUEST,
    READ_UNIT, REGION, SECRET_MONTH, TRANSITION, VOLUME_GB_MONTH, WRITE_UNIT, machine_hour,
};
use super::work::Work;
use crate::cloudformation::Resource;
use crate::output::Table;

/// The days of a month, in tenths.
const TENTHS_OF_DAYS: u32 = 304;
/// The states that one execution of a state machine enters, which does not depend on the number of its jobs.
const TRANSITIONS_A_WORKFLOW: Decimal = Decimal::from_parts(6, 0, 0, false, 0);
/// Seconds between two polls of an idle runner.
const POLL_SECS: u32 = 20;
/// Requests to queues for the hello that an idle runner sends once an hour: sent, received and deleted.
const REQUESTS_A_HELLO: u32 = 3;
/// The size of the disk of an install stack's machine, in GB.
const DISK_GB: Decimal = Decimal::from_parts(30, 0, 0, false, 0);
/// The endpoint of an install stack that AWS does not bill.
const GATEWAY_ENDPOINT: &str = "S3Endpoint";

/// What the control plane does for one job, as `tests/bench/run --only counted` counts it for a deploy of a component.
#[derive(Debug, Clone, Copy)]
struct Counted {
    write_units: Decimal,
    read_units: Decimal,
    queue_requests: Decimal,
    invokes: Decimal,
    transitions: Decimal,
}

/// The smallest values that were counted. Three of the invokes are for reports.
const COUNTED: Counted = Counted {
    write_units: tenths(159),
    read_units: tenths(382),
    queue_requests: tenths(45),
    invokes: tenths(40),
    transitions: tenths(0),
};

/// The gates of the benchmark, above which a change of Freehold is refused; where there is no gate, the largest value
/// that was counted.
const GATES: Counted = Counted {
    write_units: tenths(204),
    read_units: tenths(397),
    queue_requests: tenths(80),
    invokes: tenths(50),
    transitions: tenths(30),
};

/// An amount in US dollars for a month, between two limits.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub(crate) struct Range {
    low: Decimal,
    high: Decimal,
}

/// A part of a forecast.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub(crate) struct Part {
    what: String,
    count: u64,
    #[serde(flatten)]
    a_month: Range,
}

/// The prices of a forecast.
#[derive(Debug, Serialize)]
pub(crate) struct Prices {
    region: &'static str,
    as_of: &'static str,
}

impl Range {
    const fn exactly(amount: Decimal) -> Self {
        Self { low: amount, high: amount }
    }

    fn times(self, count: Decimal) -> Self {
        Self { low: self.low.saturating_mul(count), high: self.high.saturating_mul(count) }
    }

    /// Returns the sum of two amounts.
    pub(crate) fn plus(self, other: Self) -> Self {
        Self { low: self.low.saturating_add(other.low), high: self.high.saturating_add(other.high) }
    }

    /// Returns the amount for people: `about 1.0000`, or `1.0000 to 3.0000`.
    pub(crate) fn text(self) -> String {
        let (low, high) = (shown(self.low), shown(self.high));
        if low == high { format!("about {low}") } else { format!("{low} to {high}") }
    }

    /// Returns the cost of work in the vendor's account. `days` are the days in which it was counted.
    pub(crate) fn of_work(work: Work, days: u64) -> Self {
        let of = |counted: &Counted| {
            let jobs = of_job(counted).saturating_mul(Decimal::from(work.jobs));
            let workflows =
                TRANSITIONS_A_WORKFLOW.saturating_mul(TRANSITION).saturating_mul(Decimal::from(work.workflows));
            jobs.saturating_add(workflows)
        };
        Self { low: of(&COUNTED), high: of(&GATES) }.times(month().checked_div(Decimal::from(days)).unwrap_or_default())
    }

    /// Returns the cost of a runner without work in the vendor's account: polls and hellos.
    pub(crate) fn of_idle_runner() -> Self {
        let hours = month().saturating_mul(Decimal::from(24_u32));
        let an_hour =
            Decimal::from(3600 / POLL_SECS + REQUESTS_A_HELLO).saturating_mul(QUEUE_REQUEST).saturating_add(INVOKE);
        Self::exactly(an_hour.saturating_mul(hours))
    }

    /// Returns the cost of the function that runs once a minute.
    pub(crate) fn of_sweep() -> Self {
        let minutes = month().saturating_mul(Decimal::from(24_u32 * 60));
        Self::exactly(INVOKE.saturating_mul(minutes))
    }
}

impl Serialize for Range {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.collect_map([("low_usd", exact(self.low)), ("high_usd", exact(self.high))])
    }
}

impl Part {
    pub(crate) fn new(what: impl Into<String>, count: u64, each: Range) -> Self {
        Self { what: what.into(), count, a_month: each.times(Decimal::from(count)) }
    }
}

impl Prices {
    pub(crate) const USED: Self = Self { region: REGION, as_of: AS_OF };
}

/// Returns the sum of the parts.
pub(crate) fn total(parts: &[Part]) -> Range {
    parts.iter().fold(Range::default(), |sum, part| sum.plus(part.a_month))
}

/// Returns the parts as a table.
pub(crate) fn table(parts: &[Part]) -> Table {
    let mut table = Table::new(&["PART", "COUNT", "USD A MONTH"]).with_numbers(&["COUNT"]);
    for part in parts {
        table.row([part.what.clone(), part.count.to_string(), part.a_month.text()]);
    }
    table
}

/// Returns the sentence about the prices.
pub(crate) fn about_prices() -> String {
    format!(
        "a forecast from list prices of {REGION} ({AS_OF}), without free tiers, discounts and taxes; nothing of it was \
         billed"
    )
}

/// Returns the resources of a tenant's stack that cost something while nobody uses them.
pub(crate) fn of_tenant_stack(resources: &[Resource]) -> Vec<Part> {
    let parts = [
        Part::new("key of KMS", count(resources, "AWS::KMS::Key"), Range::exactly(KEY_MONTH)),
        Part::new("alarm of CloudWatch", count(resources, "AWS::CloudWatch::Alarm"), Range::exactly(ALARM_MONTH)),
    ];
    parts.into_iter().filter(|part| part.count > 0).collect()
}

/// Returns the resources of an install stack that cost something while nothing runs, and the machine if its type has no
/// price here.
pub(crate) fn of_install_stack(
    resources: &[Resource],
    parameters: &BTreeMap<String, String>,
) -> (Vec<Part>, Option<String>) {
    let hourly = |price: Decimal| Range::exactly(price.saturating_mul(HOURS_A_MONTH));
    let of = |kind| count(resources, kind);
    let is_interface = |one: &&Resource| one.kind == "AWS::EC2::VPCEndpoint" && one.name != GATEWAY_ENDPOINT;
    let endpoints = u64::try_from(resources.iter().filter(is_interface).count()).unwrap_or(u64::MAX);
    let zones = parameters.get("SubnetIds").filter(|ids| !ids.is_empty()).map_or(1, |ids| ids.split(',').count());
    let endpoint = hourly(ENDPOINT_HOUR).times(Decimal::from(zones));
    let rotated = Range { low: KEY_MONTH, high: KEY_MONTH.saturating_mul(Decimal::from(3_u32)) };
    let mut parts = vec![
        Part::new("key of KMS, with up to two rotations", of("AWS::KMS::Key"), rotated),
        Part::new("secret of Secrets Manager", of("AWS::SecretsManager::Secret"), Range::exactly(SECRET_MONTH)),
        Part::new("interface endpoint of the VPC", endpoints, endpoint),
        Part::new("NAT gateway, without its traffic", of("AWS::EC2::NatGateway"), hourly(NAT_GATEWAY_HOUR)),
        Part::new("public address of the NAT gateway", of("AWS::EC2::EIP"), hourly(ADDRESS_HOUR)),
    ];
    let has_machine = of("AWS::AutoScaling::AutoScalingGroup") > 0
        && parameters.get("EnableRunner").is_none_or(|enabled| enabled == "true");
    let machine = parameters.get("InstanceType").filter(|_| has_machine);
    let price = machine.and_then(|machine| machine_hour(machine));
    if let (Some(machine), Some(price)) = (machine, price) {
        parts.push(Part::new(format!("machine {machine} of the runner"), 1, hourly(price)));
        let disk = Range::exactly(DISK_GB.saturating_mul(VOLUME_GB_MONTH));
        parts.push(Part::new("disk of the machine, 30 GB", 1, disk));
        let address = Range { low: Decimal::ZERO, high: hourly(ADDRESS_HOUR).high };
        parts.push(Part::new("public address of the machine, if it has one", 1, address));
    }
    parts.retain(|part| part.count > 0);
    (parts, machine.filter(|_| price.is_none()).cloned())
}

fn count(resources: &[Resource], kind: &str) -> u64 {
    u64::try_from(resources.iter().filter(|one| one.kind == kind).count()).unwrap_or(u64::MAX)
}

/// Returns the days of a month.
const fn month() -> Decimal {
    tenths(TENTHS_OF_DAYS)
}

const fn tenths(count: u32) -> Decimal {
    Decimal::from_parts(count, 0, 0, false, 1)
}

/// Returns what one job costs.
fn of_job(counted: &Counted) -> Decimal {
    let priced = [
        (counted.write_units, WRITE_UNIT),
        (counted.read_units, READ_UNIT),
        (counted.queue_requests, QUEUE_REQUEST),
        (counted.invokes, INVOKE),
        (counted.transitions, TRANSITION),
    ];
    priced.iter().fold(Decimal::ZERO, |sum, (count, price)| sum.saturating_add(count.saturating_mul(*price)))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn resources(kinds: &[(&str, &str)]) -> Vec<Resource> {
        kinds.iter().map(|(kind, name)| Resource { kind: (*kind).to_owned(), name: (*name).to_owned() }).collect()
    }

    fn lines(parts: &[Part]) -> Vec<String> {
        parts.iter().map(|part| format!("{} x {}: {}", part.count, part.what, part.a_month.text())).collect()
    }

    #[test]
    fn the_high_limits_are_the_gates_of_the_benchmark() {
        let rows = include_str!("../../../tests/bench/rows.py");

        for (row, gate) in [
            (r#"f"{each}, all write units", "#, GATES.write_units),
            (r#"f"{each}, transitions", "#, GATES.transitions),
            (r#"f"{each}, queue requests", "#, GATES.queue_requests),
            // Three more are for reports.
            (r#"f"{each}, invokes beside reports", "#, GATES.invokes - tenths(30)),
        ] {
            let found = rows.split(row).nth(1).and_then(|rest| rest.split(',').next()).unwrap();
            assert_eq!(found.parse::<Decimal>().unwrap(), gate, "{row}");
        }
    }

    #[test]
    fn a_deploy_of_ten_components_costs_what_the_benchmark_counts() {
        let a_month = Range::of_work(Work { workflows: 1, jobs: 10 }, 1);

        // 0.000033 US dollars for each component, 30.4 times a month.
        assert_eq!(exact(a_month.low.round_dp(6)), "0.01");
        assert_eq!(exact((a_month.low / month()).round_dp(6)), "0.000329");
        assert!(a_month.high / month() <= Decimal::from_parts(2, 0, 0, false, 3), "above the gate: {a_month:?}");
    }

    #[test]
    fn an_idle_runner_costs_as_much_as_the_benchmark_says() {
        assert_eq!(Range::of_idle_runner().text(), "about 0.0669");
        assert_eq!(Range::of_work(Work::default(), 30), Range::default());
    }

    #[test]
    fn a_tenant_pays_for_its_key_and_its_alarms() {
        let stack =
            resources(&[("AWS::KMS::Key", "Key"), ("AWS::CloudWatch::Alarm", "A"), ("AWS::CloudWatch::Alarm", "B")]);

        let parts = of_tenant_stack(&stack);

        assert_eq!(lines(&parts), ["1 x key of KMS: about 1.0000", "2 x alarm of CloudWatch: about 0.2000"]);
        assert_eq!(total(&parts).text(), "about 1.2000");
        assert!(of_tenant_stack(&[]).is_empty());
    }

    #[test]
    fn an_install_pays_for_its_machine_its_endpoints_and_what_it_keeps() {
        let stack = resources(&[
            ("AWS::KMS::Key", "Key"),
            ("AWS::SecretsManager::Secret", "Secret"),
            ("AWS::EC2::VPCEndpoint", "SqsEndpoint"),
            ("AWS::EC2::VPCEndpoint", "S3Endpoint"),
            ("AWS::AutoScaling::AutoScalingGroup", "Group"),
            ("AWS::IAM::Role", "Role"),
        ]);
        let parameters = |pairs: &[(&str, &str)]| -> BTreeMap<String, String> {
            pairs.iter().map(|(key, value)| ((*key).to_owned(), (*value).to_owned())).collect()
        };
        let with = |pairs: &[(&str, &str)]| of_install_stack(&stack, &parameters(pairs));

        let (parts, unknown) = with(&[("InstanceType", "t4g.small"), ("EnableRunner", "true"), ("SubnetIds", "a,b")]);

        assert_eq!(
            lines(&parts),
            [
                "1 x key of KMS, with up to two rotations: 1.0000 to 3.0000",
                "1 x secret of Secrets Manager: about 0.4000",
                "1 x interface endpoint of the VPC: about 14.6000",
                "1 x machine t4g.small of the runner: about 12.2640",
                "1 x disk of the machine, 30 GB: about 2.4000",
                "1 x public address of the machine, if it has one: 0.0000 to 3.6500",
            ]
        );
        assert_eq!(unknown, None);
        let (parts, unknown) = with(&[("InstanceType", "x9g.huge")]);
        assert_eq!((parts.len(), unknown.as_deref()), (3, Some("x9g.huge")));
        let (parts, unknown) = with(&[("InstanceType", "t4g.small"), ("EnableRunner", "false")]);
        assert_eq!((parts.len(), unknown), (3, None));
    }
}
