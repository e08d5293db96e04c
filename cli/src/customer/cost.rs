//! `freehold customer cost`: what an install costs in the customer's account, by component.

use std::collections::BTreeMap;

use clap::Args;
use freehold_protocol::{AccountId, InstallId, TenantName};
use jiff::civil::Date;
use serde::Serialize;

use super::answer::Answer;
use super::own_install::OwnInstall;
use crate::cloudformation::Stacks;
use crate::context::Context;
use crate::cost::{
    Billed, By, COMPONENT, Days, Explorer, INSTALL, Money, Part, Period, Prices, Query, Range, TENANT, about_prices,
    of_install_stack, requests_cost, shown, table, total,
};
use crate::error::Result;
use crate::output::{Output, Part as AnswerPart, Table, clean};

/// What the forecast leaves out.
const LEFT_OUT: &str = "the resources of the app, what is stored (bucket, registry, logs) and each request, data that \
                        leaves AWS, and the rules of a DNS firewall";

/// For customers: show what an install costs in your account, by component.
#[derive(Debug, Args)]
#[command(after_help = "\
Examples:
  freehold customer cost globex --tenant acme
  freehold customer cost globex --tenant acme --since 2026-09-01 --until 2026-11-30
  freehold customer cost globex --tenant acme --since 2026-11-24 --daily --json
  freehold customer cost globex --tenant acme --forecast

Adds up what AWS billed for resources with the tags `freehold:tenant` and `freehold:install` of this install, in all
regions, by their tag `freehold:component`. Resources of the install stack, such as the runner's machine, the key and
the bucket, may have no component. Costs without these tags, such as data that leaves AWS, are not in the figures.
Each currency has rows and a sum of its own.

The figures come from AWS Cost Explorer (`ce:GetCostAndUsage`), for which AWS bills 0.01 US dollars for each request:
one for each page of the answer, usually one, and one more (`ce:ListCostAllocationTags`) when there is no figure. No
request is repeated. A billing administrator has to activate the three tags as cost allocation tags; when they are not
activated, the error names the command for this. AWS shows a cost within 24 hours, and may change it until the month
is billed.

With `--forecast` the command does not ask Cost Explorer. It lists the resources of the launched stack
(`cloudformation:ListStackResources`), and calculates from list prices what they cost in a month while nothing runs.

Exit code 4 when there is no figure: Cost Explorer or the tags are not activated, or AWS has no data yet. Exit code 6
when the credentials may not read the bill.")]
pub(crate) struct Cost {
    /// Name of the install.
    install: InstallId,
    #[command(flatten)]
    days: Days,
    /// Show each day; otherwise each month.
    #[arg(long, conflicts_with = "forecast")]
    daily: bool,
    /// Calculate from list prices what the install stack costs, without Cost Explorer.
    #[arg(long, conflicts_with_all = ["since", "until"])]
    forecast: bool,
}

/// What AWS billed for an install, as the command prints it.
#[derive(Debug, Serialize)]
struct Bill {
    install: InstallId,
    tenant: TenantName,
    account: AccountId,
    since: String,
    until: String,
    /// Whether AWS changes no amount any more.
    is_final: bool,
    billed: Vec<ComponentCost>,
    total: Money,
    /// The requests to Cost Explorer, which AWS bills.
    requests: u32,
}

/// What AWS billed for a component in a month or on a day.
#[derive(Debug, PartialEq, Eq, Serialize)]
struct ComponentCost {
    since: String,
    until: String,
    /// Empty for resources without the tag of a component.
    component: String,
    billed: Money,
}

/// What an install stack costs in a month by list prices.
#[derive(Debug, Serialize)]
struct Forecast {
    install: InstallId,
    stack: String,
    prices: Prices,
    parts: Vec<Part>,
    total: Range,
    /// The type of the machine, if it has no price here.
    #[serde(skip_serializing_if = "Option::is_none")]
    machine_without_price: Option<String>,
    left_out: &'static str,
}

impl Cost {
    pub(crate) async fn run(&self, context: &Context) -> Result<()> {
        let period = self.days.period()?;
        let own = OwnInstall::find(context, &self.install).await?;
        if self.forecast {
            return forecast(&own).await?.print(context.out);
        }
        let query = Query {
            period: &period,
            daily: self.daily,
            tags: vec![(TENANT, own.tenant.as_str()), (INSTALL, own.install.as_str())],
            by: vec![By::Tag(COMPONENT)],
        };
        let mut explorer = Explorer::new(&own.config);
        let billed = explorer.read_bill(&query).await?;
        let bill = Bill::of(&own.install, (&own.tenant, &own.account), &period, &billed, explorer.requests())?;
        context.out.show(&bill, |bill| bill.text(context.out))
    }
}

/// Returns what the install stack costs in a month by list prices.
pub(super) async fn forecast(own: &OwnInstall) -> Result<Answer> {
    let stack = own.stack().await?;
    let resources = Stacks::new(&own.config).resources(&stack.name).await?;
    let (parts, machine_without_price) = of_install_stack(&resources, &stack.parameters);
    let forecast = Forecast {
        install: own.install.clone(),
        stack: stack.name,
        prices: Prices::USED,
        total: total(&parts),
        parts,
        machine_without_price,
        left_out: LEFT_OUT,
    };
    Answer::new(&forecast, forecast.shown())
}

impl Bill {
    fn of(
        install: &InstallId,
        (tenant, account): (&TenantName, &AccountId),
        period: &Period,
        billed: &[Billed],
        requests: u32,
    ) -> Result<Self> {
        let mut total = Money::default();
        let mut sums: BTreeMap<(&str, &str, &str), Money> = BTreeMap::new();
        for one in billed {
            let component = one.keys.first().map(String::as_str).unwrap_or_default();
            sums.entry((one.start.as_str(), one.end.as_str(), component))
                .or_default()
                .add(&one.currency, one.amount)?;
            total.add(&one.currency, one.amount)?;
        }
        let costs = sums.into_iter().map(|((start, end, component), billed)| ComponentCost {
            since: start.to_owned(),
            until: day_before(end),
            component: component.to_owned(),
            billed,
        });
        Ok(Self {
            install: install.clone(),
            tenant: tenant.clone(),
            account: account.clone(),
            since: period.since.to_string(),
            until: period.until.to_string(),
            is_final: billed.iter().all(|one| one.is_final),
            billed: costs.collect(),
            total,
            requests,
        })
    }

    fn text(&self, out: Output) -> String {
        let Self { install, tenant, account, since, until, .. } = self;
        let mut table = Table::new(&["FROM", "TO", "COMPONENT", "BILLED", "CURRENCY"]).with_numbers(&["BILLED"]);
        for one in &self.billed {
            let component = if one.component.is_empty() { "(none)".to_owned() } else { clean(&one.component) };
            for (currency, amount) in one.billed.amounts() {
                let (since, until) = (clean(&one.since), clean(&one.until));
                table.row([since, until, component.clone(), shown(amount), clean(currency)]);
            }
        }
        let state = if self.is_final { "" } else { "; AWS may still change these amounts" };
        let totals = self.total.amounts().map(|(currency, amount)| format!("{} {}", shown(amount), clean(currency)));
        let mut lines = vec![
            format!("install `{install}` of vendor `{tenant}` in account {account}, {since} to {until}{state}"),
            out.table(&table),
            format!("billed in all: {}", totals.collect::<Vec<_>>().join(" and ")),
        ];
        if self.billed.iter().any(|one| one.component.is_empty()) {
            lines.push(format!(
                "(none) is what has no tag `{COMPONENT}`: the install stack itself, and everything if this tag is not activated"
            ));
        }
        lines.push(format!("AWS bills {} to Cost Explorer", requests_cost(self.requests)));
        lines.join("\n\n")
    }
}

impl Forecast {
    fn shown(&self) -> Vec<AnswerPart> {
        let mut left_out = LEFT_OUT.to_owned();
        if let Some(machine) = &self.machine_without_price {
            left_out = format!("the machine `{}`, whose price this version does not know; {left_out}", clean(machine));
        }
        vec![
            AnswerPart::Text(format!("stack `{}` while nothing runs: {}", self.stack, about_prices())),
            AnswerPart::Table(table(&self.parts)),
            AnswerPart::Text(format!("in all: {} US dollars a month", self.total.text())),
            AnswerPart::Text(format!("left out: {left_out}")),
        ]
    }
}

/// Returns the last day of a time that AWS ends with the day after it.
fn day_before(end: &str) -> String {
    let day = end.parse::<Date>().and_then(Date::yesterday);
    day.map_or_else(|_| end.to_owned(), |day| day.to_string())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn line(start: &str, end: &str, component: &str, amount: &str, currency: &str) -> Billed {
        Billed {
            start: start.to_owned(),
            end: end.to_owned(),
            is_final: true,
            keys: vec![component.to_owned()],
            currency: currency.to_owned(),
            amount: amount.parse().unwrap(),
        }
    }

    fn bill(billed: &[Billed]) -> Bill {
        let period = Days::between("2026-10-15", "2026-11-29");
        let (tenant, account) = ("acme".parse().unwrap(), "222222222222".parse().unwrap());
        Bill::of(&"globex".parse().unwrap(), (&tenant, &account), &period, billed, 2).unwrap()
    }

    #[test]
    fn each_component_has_a_row_for_each_month_and_the_sum_is_exact() {
        let bill = bill(&[
            line("2026-11-01", "2026-11-30", "web", "0.1", "USD"),
            line("2026-10-15", "2026-11-01", "web", "120.2", "USD"),
            line("2026-10-15", "2026-11-01", "", "12.0000000003", "USD"),
            line("2026-10-15", "2026-11-01", "web", "0.1", "USD"),
        ]);

        insta::assert_snapshot!(bill.text(Output::plain()), @r"
        install `globex` of vendor `acme` in account 222222222222, 2026-10-15 to 2026-11-29

        FROM        TO          COMPONENT    BILLED  CURRENCY
        2026-10-15  2026-10-31  (none)      12.0000  USD
        2026-10-15  2026-10-31  web        120.3000  USD
        2026-11-01  2026-11-29  web          0.1000  USD

        billed in all: 132.4000 USD

        (none) is what has no tag `freehold:component`: the install stack itself, and everything if this tag is not activated

        AWS bills 0.02 US dollars for 2 requests to Cost Explorer
        ");
        let json = serde_json::to_value(&bill).unwrap();
        assert_eq!(json["total"]["USD"], "132.4000000003");
        assert_eq!(json["billed"][1]["billed"]["USD"], "120.3");
        assert_eq!((json["is_final"].as_bool(), json["requests"].as_u64()), (Some(true), Some(2)));
    }

    #[test]
    fn currencies_are_not_added_and_a_hostile_component_cannot_control_the_terminal() {
        let bill = bill(&[
            line("2026-11-01", "2026-11-30", "a\u{1b}[2Jb\nTO", "1", "USD"),
            line("2026-11-01", "2026-11-30", "web", "2", "CNY"),
        ]);

        let text = bill.text(Output::plain());
        assert!(text.contains("billed in all: 2.0000 CNY and 1.0000 USD"), "{text}");
        assert!(text.contains("a?[2Jb?TO") && !text.contains('\u{1b}'), "{text}");
    }

    #[test]
    fn a_day_that_cannot_be_read_is_shown_as_aws_wrote_it() {
        assert_eq!(day_before("2026-03-01"), "2026-02-28");
        assert_eq!(day_before("soon"), "soon");
    }
}
