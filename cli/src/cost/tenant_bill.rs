//! What AWS billed for a tenant: by install where a resource has the tag of one, and shared. Shared costs are split by
//! counted work. The two never stand in one number.

use std::collections::BTreeMap;

use freehold_protocol::{AccountId, AppName, TenantName};
use serde::Serialize;

use super::money::{Money, shown};
use super::period::Period;
use super::prices::requests_cost;
use super::query::{Billed, INSTALL};
use super::work::{InstallWork, Work};
use crate::error::Result;
use crate::output::{Output, Table, clean};

/// The bill of a tenant, as the command prints it.
#[derive(Debug, Serialize)]
pub(super) struct TenantBill {
    tenant: TenantName,
    account: AccountId,
    since: String,
    until: String,
    /// Whether AWS changes no amount any more.
    is_final: bool,
    /// Whether the shared costs are split by counted work; otherwise no work was counted.
    is_split: bool,
    /// Whether an amount has the tag of an install; otherwise the tag may not be activated.
    is_tagged: bool,
    installs: Vec<InstallCost>,
    apps: Vec<AppCost>,
    /// What AWS billed for resources without the tag of an install, by service.
    shared: BTreeMap<String, Money>,
    /// All that AWS billed for the tenant, also for installs of other apps than the one that the user chose.
    total: Money,
    /// The requests to Cost Explorer, which AWS bills.
    requests: u32,
}

/// The cost of one install in the vendor's account.
#[derive(Debug, PartialEq, Eq, Serialize)]
struct InstallCost {
    install: String,
    /// Absent for an install that was forgotten.
    app: Option<AppName>,
    #[serde(flatten)]
    cost: Cost,
}

/// The cost of all installs of one app in the vendor's account.
#[derive(Debug, PartialEq, Eq, Serialize)]
struct AppCost {
    /// Absent for installs that were forgotten.
    app: Option<AppName>,
    #[serde(flatten)]
    cost: Cost,
}

/// Two amounts that are not added: one was billed, one is estimated.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize)]
struct Cost {
    workflows: u64,
    jobs: u64,
    /// What AWS billed for resources with the tag of the install.
    billed: Money,
    /// The part of the shared costs by counted work.
    estimated_share: Money,
}

impl Cost {
    fn add(&mut self, other: &Self) -> Result<()> {
        self.workflows = self.workflows.saturating_add(other.workflows);
        self.jobs = self.jobs.saturating_add(other.jobs);
        self.billed.add_all(&other.billed)?;
        self.estimated_share.add_all(&other.estimated_share)
    }
}

impl TenantBill {
    /// Returns the bill from the amounts by install and service. With `app`, only its installs are shown.
    pub(super) fn of(
        (tenant, account): (TenantName, AccountId),
        period: &Period,
        billed: &[Billed],
        work: &[InstallWork],
        (app, requests): (Option<&AppName>, u32),
    ) -> Result<Self> {
        let (mut tagged, mut shared): (BTreeMap<&str, Money>, BTreeMap<String, Money>) = Default::default();
        let mut total = Money::default();
        for one in billed {
            let key = |at: usize| one.keys.get(at).map(String::as_str).unwrap_or_default();
            let sum = match key(0) {
                "" => shared.entry(key(1).to_owned()).or_default(),
                install => tagged.entry(install).or_default(),
            };
            sum.add(&one.currency, one.amount)?;
            total.add(&one.currency, one.amount)?;
        }
        let is_tagged = !tagged.is_empty();
        let mut installs = split(&shared, work)?;
        for (install, billed) in tagged {
            match installs.iter_mut().find(|one| one.install == install) {
                Some(one) => one.cost.billed = billed,
                None => {
                    let cost = Cost { billed, ..Cost::default() };
                    installs.push(InstallCost { install: install.to_owned(), app: None, cost });
                }
            }
        }
        installs.retain(|one| app.is_none() || one.app.as_ref() == app);
        let mut apps: BTreeMap<Option<AppName>, Cost> = BTreeMap::new();
        for one in &installs {
            apps.entry(one.app.clone()).or_default().add(&one.cost)?;
        }
        Ok(Self {
            tenant,
            account,
            since: period.since.to_string(),
            until: period.until.to_string(),
            is_final: billed.iter().all(|one| one.is_final),
            is_split: work.iter().any(|one| one.work.weight() > 0),
            is_tagged,
            installs,
            apps: apps.into_iter().map(|(app, cost)| AppCost { app, cost }).collect(),
            shared,
            total,
            requests,
        })
    }

    /// Returns the bill for people.
    pub(super) fn text(&self, out: Output) -> String {
        let Self { tenant, account, since, until, .. } = self;
        let state = if self.is_final { "" } else { "; AWS may still change these amounts" };
        let totals = self.total.amounts().map(|(currency, amount)| format!("{} {}", shown(amount), clean(currency)));
        let totals: Vec<String> = totals.collect();
        [
            format!("tenant `{tenant}` in account {account}, {since} to {until}{state}"),
            out.table(&self.installs()),
            out.table(&self.apps()),
            out.table(&self.shared()),
            format!("billed in all: {}", totals.join(" and ")),
            self.about_shares(),
            format!("AWS bills {} to Cost Explorer", requests_cost(self.requests)),
        ]
        .join("\n\n")
    }

    fn installs(&self) -> Table {
        let headings = ["INSTALL", "APP", "WORKFLOWS", "JOBS", "BILLED", "ESTIMATED SHARE", "CURRENCY"];
        let mut table = Table::new(&headings).with_numbers(&["WORKFLOWS", "JOBS", "BILLED", "ESTIMATED SHARE"]);
        for one in &self.installs {
            for (currency, _) in self.total.amounts() {
                let [workflows, jobs, billed, share, currency] = cells(&one.cost, currency);
                table.row([clean(&one.install), app(one.app.as_ref()), workflows, jobs, billed, share, currency]);
            }
        }
        table
    }

    fn apps(&self) -> Table {
        let headings = ["APP", "WORKFLOWS", "JOBS", "BILLED", "ESTIMATED SHARE", "CURRENCY"];
        let mut table = Table::new(&headings).with_numbers(&["WORKFLOWS", "JOBS", "BILLED", "ESTIMATED SHARE"]);
        for one in &self.apps {
            for (currency, _) in self.total.amounts() {
                let [workflows, jobs, billed, share, currency] = cells(&one.cost, currency);
                table.row([app(one.app.as_ref()), workflows, jobs, billed, share, currency]);
            }
        }
        table
    }

    fn shared(&self) -> Table {
        let mut table = Table::new(&["SHARED SERVICE", "BILLED", "CURRENCY"]).with_numbers(&["BILLED"]);
        for (service, money) in &self.shared {
            for (currency, amount) in money.amounts() {
                table.row([clean(service), shown(amount), clean(currency)]);
            }
        }
        table
    }

    /// Returns the sentences about which amounts were billed and which are estimated.
    fn about_shares(&self) -> String {
        let billed =
            format!("BILLED is what AWS billed for resources with the tag `{INSTALL}`, such as the orders queue.");
        let share = if self.is_split {
            "ESTIMATED SHARE is a part of the shared costs (table, functions, state machines, key): no tag says for \
             which install AWS billed them, so they are split by the counted workflows and jobs of these days."
        } else {
            "No workflow began in these days, so the shared costs are not split."
        };
        let untagged = if self.is_tagged {
            String::new()
        } else {
            format!(
                " No amount has this tag. If it is not activated as a cost allocation tag, a billing administrator activates \
                 it with `aws ce update-cost-allocation-tags-status --cost-allocation-tags-status \
                 TagKey={INSTALL},Status=Active`."
            )
        };
        format!("{billed}{untagged} {share} Builds count for no install.")
    }
}

/// Returns the installs with their parts of the shared costs.
fn split(shared: &BTreeMap<String, Money>, work: &[InstallWork]) -> Result<Vec<InstallCost>> {
    let mut whole = Money::default();
    shared.values().try_for_each(|money| whole.add_all(money))?;
    let weights: Vec<u64> = work.iter().map(|one| one.work.weight()).collect();
    let parts = whole.split(&weights)?;
    let costs = work.iter().zip(parts).map(|(one, estimated_share)| {
        let Work { workflows, jobs } = one.work;
        let cost = Cost { workflows, jobs, estimated_share, ..Cost::default() };
        InstallCost { install: one.install.to_string(), app: one.app.clone(), cost }
    });
    Ok(costs.collect())
}

fn cells(cost: &Cost, currency: &str) -> [String; 5] {
    let (billed, share) = (cost.billed.of(currency), cost.estimated_share.of(currency));
    [cost.workflows.to_string(), cost.jobs.to_string(), shown(billed), shown(share), clean(currency)]
}

/// Returns the name of an app; an install that was forgotten has none.
pub(super) fn app(app: Option<&AppName>) -> String {
    app.map_or_else(|| "(forgotten)".to_owned(), ToString::to_string)
}

#[cfg(test)]
mod tests {
    use super::super::money::parse;
    use super::super::period::Days;
    use super::*;

    fn billed(install: &str, service: &str, amount: &str, currency: &str) -> Billed {
        Billed {
            start: "2026-11-01".to_owned(),
            end: "2026-11-30".to_owned(),
            is_final: false,
            keys: vec![install.to_owned(), service.to_owned()],
            currency: currency.to_owned(),
            amount: parse(amount).unwrap(),
        }
    }

    fn work(install: &str, app: &str, workflows: u64, jobs: u64) -> InstallWork {
        let work = Work { workflows, jobs };
        InstallWork { install: install.parse().unwrap(), app: Some(app.parse().unwrap()), has_runner: true, work }
    }

    fn bill(billed: &[Billed], work: &[InstallWork], app: Option<&str>) -> TenantBill {
        let period = Days::between("2026-11-01", "2026-11-29");
        let tenant = ("acme".parse().unwrap(), "111111111111".parse().unwrap());
        let app = app.map(|app| app.parse().unwrap());
        TenantBill::of(tenant, &period, billed, work, (app.as_ref(), 1)).unwrap()
    }

    fn november() -> Vec<Billed> {
        vec![
            billed("globex", "Amazon Simple Queue Service", "0.0650000001", "USD"),
            billed("", "AWS Key Management Service", "1", "USD"),
            billed("", "AWS Lambda", "0.5", "USD"),
            // The second page has the same group again.
            billed("globex", "Amazon Simple Queue Service", "0.01", "USD"),
            billed("umbrella", "Amazon Simple Queue Service", "0.02", "USD"),
        ]
    }

    #[test]
    fn billed_amounts_and_estimated_shares_stand_apart() {
        let bill = bill(&november(), &[work("globex", "web-shop", 1, 8), work("initech", "web-shop", 1, 5)], None);

        insta::assert_snapshot!(bill.text(Output::plain()), @r"
        tenant `acme` in account 111111111111, 2026-11-01 to 2026-11-29; AWS may still change these amounts

        INSTALL   APP          WORKFLOWS  JOBS  BILLED  ESTIMATED SHARE  CURRENCY
        globex    web-shop             1     8  0.0750           0.9000  USD
        initech   web-shop             1     5  0.0000           0.6000  USD
        umbrella  (forgotten)          0     0  0.0200           0.0000  USD

        APP          WORKFLOWS  JOBS  BILLED  ESTIMATED SHARE  CURRENCY
        (forgotten)          0     0  0.0200           0.0000  USD
        web-shop             2    13  0.0750           1.5000  USD

        SHARED SERVICE              BILLED  CURRENCY
        AWS Key Management Service  1.0000  USD
        AWS Lambda                  0.5000  USD

        billed in all: 1.5950 USD

        BILLED is what AWS billed for resources with the tag `freehold:install`, such as the orders queue. ESTIMATED SHARE is a part of the shared costs (table, functions, state machines, key): no tag says for which install AWS billed them, so they are split by the counted workflows and jobs of these days. Builds count for no install.

        AWS bills 0.01 US dollars for 1 request to Cost Explorer
        ");
        let json = serde_json::to_value(&bill).unwrap();
        assert_eq!(json["installs"][0]["billed"]["USD"], "0.0750000001");
        assert_eq!(json["installs"][0]["estimated_share"]["USD"], "0.9");
        assert_eq!(json["total"]["USD"], "1.5950000001");
    }

    #[test]
    fn shared_costs_without_work_are_not_split() {
        let bill = bill(&november(), &[work("globex", "web-shop", 0, 0)], None);

        let text = bill.text(Output::plain());
        assert!(text.contains("No workflow began in these days, so the shared costs are not split."), "{text}");
        assert_eq!(bill.installs[0].cost.estimated_share, Money::default());
    }

    #[test]
    fn a_bill_without_the_tag_of_an_install_says_how_to_activate_it() {
        let all = [work("globex", "web-shop", 1, 2)];

        let untagged = bill(&[billed("", "AWS Lambda", "1", "USD")], &all, None).text(Output::plain());
        let tagged = bill(&november(), &all, Some("wiki")).text(Output::plain());

        let way_out = "--cost-allocation-tags-status TagKey=freehold:install,Status=Active`.";
        assert!(untagged.contains("No amount has this tag.") && untagged.contains(way_out), "{untagged}");
        assert!(!tagged.contains("No amount has this tag."), "{tagged}");
    }

    #[test]
    fn the_share_of_an_app_does_not_depend_on_which_apps_are_shown() {
        let all = [work("globex", "web-shop", 1, 2), work("initech", "wiki", 2, 4)];

        let (whole, one) = (bill(&november(), &all, None), bill(&november(), &all, Some("wiki")));

        assert_eq!((one.installs.as_slice(), &one.total), (&whole.installs[1..2], &whole.total));
        assert_eq!((one.installs[0].install.as_str(), one.apps.len()), ("initech", 1));
    }

    #[test]
    fn several_currencies_have_rows_of_their_own_and_hostile_texts_cannot_control_the_terminal() {
        let lines = [
            billed("globex", "SQS", "1", "USD"),
            billed("globex", "SQS", "2", "EUR"),
            billed("\u{1b}[31mevil\n$", "SQS", "3", "USD"),
        ];

        let bill = bill(&lines, &[work("globex", "web-shop", 1, 1)], None);

        let text = bill.text(Output::plain());
        assert!(text.contains("billed in all: 2.0000 EUR and 4.0000 USD"), "{text}");
        assert_eq!(text.matches("\nglobex ").count(), 2, "{text}");
        assert!(text.contains("?[31mevil?$") && !text.contains('\u{1b}'), "{text}");
    }
}
