//! The forecast of a tenant: what its stack, its idle runners and its counted work cost in a month by list prices.

use std::collections::BTreeMap;

use freehold_protocol::{AppName, InstallId, TenantName};
use serde::Serialize;

use super::forecast::{Part, Prices, Range, about_prices, of_tenant_stack, table, total};
use super::period::Period;
use super::tenant_bill::app;
use super::work::{InstallWork, Work};
use crate::cloudformation::Resource;
use crate::output::{Output, Table};

/// What the forecast leaves out.
const LEFT_OUT: &str = "what is stored (table, registry, bucket, logs), builds and the machine of the build runner, what \
                        the sweep reads, notifications, data that leaves AWS, and everything in the customers' accounts";

/// The forecast of a tenant, as the command prints it.
#[derive(Debug, Serialize)]
pub(super) struct TenantForecast {
    tenant: TenantName,
    since: String,
    until: String,
    prices: Prices,
    /// What the tenant costs without any install.
    parts: Vec<Part>,
    installs: Vec<InstallForecast>,
    apps: Vec<AppForecast>,
    /// The sum of the parts and of the shown installs.
    total: Range,
    left_out: &'static str,
}

#[derive(Debug, Serialize)]
struct InstallForecast {
    install: InstallId,
    app: Option<AppName>,
    workflows: u64,
    jobs: u64,
    #[serde(flatten)]
    a_month: Range,
}

#[derive(Debug, Serialize)]
struct AppForecast {
    app: Option<AppName>,
    workflows: u64,
    jobs: u64,
    #[serde(flatten)]
    a_month: Range,
}

impl TenantForecast {
    /// Returns the forecast from the tenant's stack and the work of a period. With `app`, only its installs count.
    pub(super) fn of(
        tenant: TenantName,
        period: &Period,
        resources: &[Resource],
        work: &[InstallWork],
        app: Option<&AppName>,
    ) -> Self {
        let mut parts = of_tenant_stack(resources);
        parts.push(Part::new("function `sweep`, once a minute", 1, Range::of_sweep()));
        let counted = work.iter().filter(|one| app.is_none() || one.app.as_ref() == app);
        let installs: Vec<InstallForecast> = counted.map(|one| install(one, period)).collect();
        let mut apps: BTreeMap<Option<AppName>, (Work, Range)> = BTreeMap::new();
        for one in &installs {
            let (work, a_month) = apps.entry(one.app.clone()).or_default();
            *work = work.plus(Work { workflows: one.workflows, jobs: one.jobs });
            *a_month = a_month.plus(one.a_month);
        }
        let total = installs.iter().fold(total(&parts), |sum, one| sum.plus(one.a_month));
        let apps = apps.into_iter().map(|(app, (work, a_month))| {
            let Work { workflows, jobs } = work;
            AppForecast { app, workflows, jobs, a_month }
        });
        Self {
            tenant,
            since: period.since.to_string(),
            until: period.until.to_string(),
            prices: Prices::USED,
            parts,
            installs,
            apps: apps.collect(),
            total,
            left_out: LEFT_OUT,
        }
    }

    /// Returns the forecast for people.
    pub(super) fn text(&self, out: Output) -> String {
        let Self { tenant, since, until, .. } = self;
        let mut installs = Table::new(&["INSTALL", "APP", "WORKFLOWS", "JOBS", "USD A MONTH"]);
        for one in &self.installs {
            let (workflows, jobs) = (one.workflows.to_string(), one.jobs.to_string());
            installs.row([one.install.to_string(), app(one.app.as_ref()), workflows, jobs, one.a_month.text()]);
        }
        let mut apps = Table::new(&["APP", "WORKFLOWS", "JOBS", "USD A MONTH"]);
        for one in &self.apps {
            let (workflows, jobs) = (one.workflows.to_string(), one.jobs.to_string());
            apps.row([app(one.app.as_ref()), workflows, jobs, one.a_month.text()]);
        }
        let numbers = ["WORKFLOWS", "JOBS"];
        [
            format!("tenant `{tenant}`, by the work of {since} to {until}: {}", about_prices()),
            out.table(&table(&self.parts)),
            out.table(&installs.with_numbers(&numbers)),
            out.table(&apps.with_numbers(&numbers)),
            format!("in all: {} US dollars a month", self.total.text()),
            format!("left out: {LEFT_OUT}"),
        ]
        .join("\n\n")
    }
}

fn install(one: &InstallWork, period: &Period) -> InstallForecast {
    let idle = if one.has_runner { Range::of_idle_runner() } else { Range::default() };
    let Work { workflows, jobs } = one.work;
    let a_month = idle.plus(Range::of_work(one.work, period.days()));
    InstallForecast { install: one.install.clone(), app: one.app.clone(), workflows, jobs, a_month }
}

#[cfg(test)]
mod tests {
    use super::super::period::Days;
    use super::*;

    fn work(install: &str, app: &str, has_runner: bool, (workflows, jobs): (u64, u64)) -> InstallWork {
        let work = Work { workflows, jobs };
        InstallWork { install: install.parse().unwrap(), app: Some(app.parse().unwrap()), has_runner, work }
    }

    fn forecast(app: Option<&str>) -> TenantForecast {
        let period = Days::between("2026-11-01", "2026-11-30");
        let resources = [Resource { kind: "AWS::KMS::Key".to_owned(), name: "Key".to_owned() }];
        let work = [work("globex", "web-shop", true, (30, 300)), work("initech", "wiki", false, (0, 0))];
        let app = app.map(|app| app.parse().unwrap());
        TenantForecast::of("acme".parse().unwrap(), &period, &resources, &work, app.as_ref())
    }

    #[test]
    fn a_forecast_is_a_range_that_names_its_prices_and_what_it_leaves_out() {
        insta::assert_snapshot!(forecast(None).text(Output::plain()), @r"
        tenant `acme`, by the work of 2026-11-01 to 2026-11-30: a forecast from list prices of us-east-1 (2025-07), without free tiers, discounts and taxes; nothing of it was billed

        PART                             COUNT  USD A MONTH
        key of KMS                           1  about 1.0000
        function `sweep`, once a minute      1  about 0.0102

        INSTALL  APP       WORKFLOWS  JOBS  USD A MONTH
        globex   web-shop         30   300  0.0769 to 0.1012
        initech  wiki              0     0  about 0.0000

        APP       WORKFLOWS  JOBS  USD A MONTH
        web-shop         30   300  0.0769 to 0.1012
        wiki              0     0  about 0.0000

        in all: 1.0871 to 1.1115 US dollars a month

        left out: what is stored (table, registry, bucket, logs), builds and the machine of the build runner, what the sweep reads, notifications, data that leaves AWS, and everything in the customers' accounts
        ");
    }

    #[test]
    fn the_forecast_of_an_app_counts_its_installs_alone() {
        let json = serde_json::to_value(forecast(Some("wiki"))).unwrap();

        assert_eq!(json["installs"].as_array().unwrap().len(), 1);
        assert_eq!((&json["installs"][0]["low_usd"], &json["parts"][0]["high_usd"]), (&"0".into(), &"1".into()));
        assert_eq!(json["prices"]["as_of"], "2025-07");
        assert_eq!(json["total"]["low_usd"], json["total"]["high_usd"]);
    }
}
