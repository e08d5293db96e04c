//! `freehold install leftovers`: lists what exists of an install in the customer's account, with the customer's own
//! credentials and without the tenant's API.

use std::collections::BTreeSet;

use aws_config::SdkConfig;
use aws_sdk_resourcegroupstagging::Client;
use aws_sdk_resourcegroupstagging::types::TagFilter;
use freehold_protocol::order::leftovers::type_and_name;
use freehold_protocol::{InstallId, TenantName, names};
use serde::Serialize;

use super::FindLeftovers;
use crate::context::Context;
use crate::error::{Error, Result, ResultExt};
use crate::output::{Output, Table, plural};

/// The resources of an install that exist, by their ARNs.
#[derive(Debug, Serialize)]
struct Found {
    /// Made by the app's modules and stacks.
    app: BTreeSet<String>,
    /// Made by the install stack. The bucket, the registry and the key stay when the stack is deleted.
    install_stack: BTreeSet<String>,
}

impl FindLeftovers {
    pub(super) async fn run(&self, context: &Context) -> Result<()> {
        let tenant = context.named_tenant()?.ok_or_else(|| {
            Error::invalid("the vendor of the install is not given")
                .or("pass `--tenant NAME` with the vendor's name, as the template gives it")
        })?;
        let config = context.config().await?;
        let found = find(&config, &tenant, &self.install).await?;
        let place = crate::aws::place(&config).await?;
        context.out.show(&found, |found| render(found, &self.install, &place, context.out))
    }
}

async fn find(config: &SdkConfig, tenant: &TenantName, install: &InstallId) -> Result<Found> {
    let owner = names::owner(tenant, install);
    let mut app = tagged(config, &[("freehold:owner", &owner)]).await?;
    let both = [("freehold:tenant", tenant.as_str()), ("freehold:install", install.as_str())];
    let mut install_stack = tagged(config, &both).await?;
    let (path, prefix) = (names::app_path(tenant, install), names::app_prefix(tenant, install));
    let of_stack = names::install_part(tenant, install, "");
    // The search by tag does not cover roles.
    let mut pages = aws_sdk_iam::Client::new(config).list_roles().max_items(1_000).into_paginator().send();
    while let Some(page) = pages.next().await {
        for role in page.doing("list roles")?.roles() {
            if role.path().starts_with(&path) || role.role_name().starts_with(&prefix) {
                app.insert(role.arn().to_owned());
            } else if role.role_name().starts_with(&of_stack) {
                install_stack.insert(role.arn().to_owned());
            }
        }
    }
    let install_stack = install_stack.difference(&app).cloned().collect();
    Ok(Found { app, install_stack })
}

/// Returns the ARNs of the resources that have all these tags.
async fn tagged(config: &SdkConfig, tags: &[(&str, &str)]) -> Result<BTreeSet<String>> {
    let filters = tags.iter().map(|(key, value)| TagFilter::builder().key(*key).values(*value).build()).collect();
    let mut pages = Client::new(config).get_resources().set_tag_filters(Some(filters)).into_paginator().send();
    let mut found = BTreeSet::new();
    while let Some(page) = pages.next().await {
        let page = page.doing("search by tag")?;
        found.extend(page.resource_tag_mapping_list().iter().filter_map(|one| one.resource_arn().map(str::to_owned)));
    }
    Ok(found)
}

fn render(found: &Found, install: &InstallId, place: &str, out: Output) -> String {
    let count = found.app.len() + found.install_stack.len();
    if count == 0 {
        return format!(
            "nothing with the tags or names of install `{install}` exists in {place}; resources without tags, such as log \
             groups that a function made itself, are not found"
        );
    }
    let mut table = Table::new(&["MADE BY", "TYPE", "NAME"]);
    for (made_by, arns) in [("the app", &found.app), ("the install stack", &found.install_stack)] {
        for arn in arns {
            let (kind, name) = type_and_name(arn);
            table.row([made_by.to_owned(), kind, name.to_owned()]);
        }
    }
    format!(
        "{}\n\n{} of install `{install}` in {place}; AWS may list a resource for some time after its deletion, and does not \
         list resources without tags",
        out.table(&table),
        plural(count, "resource")
    )
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_exists_is_listed_by_who_made_it() {
        let arns = |names: &[&str]| names.iter().map(|name| (*name).to_owned()).collect();
        let found = Found {
            app: arns(&[
                "arn:aws:ec2:eu-west-1:222222222222:volume/vol-1",
                "arn:aws:iam::222222222222:role/acme--globex--web",
            ]),
            install_stack: arns(&["arn:aws:s3:::fh-acme--globex--222222222222"]),
        };
        let none = Found { app: BTreeSet::new(), install_stack: BTreeSet::new() };
        let (install, place) = ("globex".parse().unwrap(), "account 222222222222, eu-west-1");
        let said = |found| {
            let lines = render(found, &install, place, Output::plain());
            lines.lines().map(|line| line.split_whitespace().collect::<Vec<_>>().join(" ")).collect::<Vec<_>>()
        };

        let listed = said(&found);

        assert_eq!(
            listed[..4],
            [
                "MADE BY TYPE NAME",
                "the app ec2 volume vol-1",
                "the app iam role acme--globex--web",
                "the install stack s3 fh-acme--globex--222222222222",
            ]
        );
        assert!(
            listed[5].starts_with("3 resources of install `globex` in account 222222222222, eu-west-1; "),
            "{listed:?}"
        );
        assert!(said(&none)[0].starts_with("nothing with the tags or names of install `globex` exists in account 222"));
    }
}
