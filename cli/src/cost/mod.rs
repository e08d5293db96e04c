//! `freehold cost`: what a tenant costs in the vendor's account, by app and install.

mod explorer;
mod forecast;
mod money;
mod period;
mod prices;
mod query;
mod refusal;
mod tenant_bill;
mod tenant_forecast;
mod work;

use clap::Args;
use freehold_client::calls;
use freehold_protocol::AppName;
use freehold_protocol::api::{AppView, TenantView};

pub(crate) use explorer::Explorer;
pub(crate) use forecast::{Part, Prices, Range, about_prices, of_install_stack, table, total};
pub(crate) use money::{Money, shown};
pub(crate) use period::{Days, Period};
pub(crate) use prices::requests_cost;
pub(crate) use query::{Billed, By, COMPONENT, INSTALL, Query, TENANT};

use crate::api::stack_name;
use crate::cloudformation::Stacks;
use crate::context::Context;
use crate::error::Result;
use tenant_bill::TenantBill;
use tenant_forecast::TenantForecast;

/// Show what the tenant costs in your account, by app and install: what AWS billed, and a share of the shared costs.
#[derive(Debug, Args)]
#[command(after_help = "\
Examples:
  freehold cost
  freehold cost --since 2026-10-01 --until 2026-10-31 --app my-app
  freehold cost --forecast

AWS bills by tag. Resources with the tag `freehold:install`, such as the orders queue of an install, are billed to this
install. The table, the functions, the state machines and the key serve all installs, and AWS does not know for which of
them it bills. The command splits their costs by counted work, which is the number of workflows and jobs in these days,
and shows this share as an estimate in a column of its own.

The figures come from AWS Cost Explorer (`ce:GetCostAndUsage`), for which AWS bills 0.01 US dollars for each request:
one for each page of the answer, usually one, and one more when there is no figure. No request is repeated.
A billing administrator has to activate the tags `freehold:tenant` and `freehold:install` as cost allocation tags; when
they are not activated, the error names the command for this.

With `--forecast` the command does not ask Cost Explorer. It calculates from list prices what the counted work of these
days costs in a month, and prints a range.

Exit code 4 when there is no figure: Cost Explorer or the tags are not activated, or AWS has no data yet. Exit code 6
when the credentials may not read the bill.")]
pub(crate) struct Cost {
    #[command(flatten)]
    days: Days,
    /// Show only the installs of this app.
    #[arg(long, value_name = "APP")]
    app: Option<AppName>,
    /// Calculate from list prices and counted work, without Cost Explorer.
    #[arg(long)]
    forecast: bool,
}

impl Cost {
    pub(crate) async fn run(&self, context: &Context) -> Result<()> {
        let period = self.days.period()?;
        let config = context.config().await?;
        let api = context.api().await?;
        let TenantView { tenant, account, .. } = api.send(calls::show_tenant()).await?;
        if let Some(app) = &self.app {
            // The error about an app that does not exist comes before a request that AWS bills.
            let _: AppView = api.send(calls::show_app(app)).await?;
        }
        let work = work::count(&api, &period).await?;
        if self.forecast {
            let resources = Stacks::new(&config).resources(&stack_name(&tenant)).await?;
            let forecast = TenantForecast::of(tenant, &period, &resources, &work, self.app.as_ref());
            return context.out.show(&forecast, |forecast| forecast.text(context.out));
        }
        let query = Query {
            period: &period,
            daily: false,
            tags: vec![(TENANT, tenant.as_str())],
            by: vec![By::Tag(INSTALL), By::Service],
        };
        let mut explorer = Explorer::new(&config);
        let billed = explorer.read_bill(&query).await?;
        let shown = (self.app.as_ref(), explorer.requests());
        let bill = TenantBill::of((tenant.clone(), account), &period, &billed, &work, shown)?;
        context.out.show(&bill, |bill| bill.text(context.out))
    }
}
