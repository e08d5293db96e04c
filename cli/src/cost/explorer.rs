//! Asks AWS Cost Explorer what was billed. AWS bills each request, so each is counted, and none is repeated.

use aws_config::SdkConfig;
use aws_sdk_costexplorer::Client;
use aws_sdk_costexplorer::error::ProvideErrorMetadata as _;
use aws_sdk_costexplorer::types::{
    CostAllocationTagStatus, DateInterval, Expression, Granularity, GroupDefinition, GroupDefinitionType, ResultByTime,
    TagValues,
};
use aws_smithy_types::retry::RetryConfig;

use super::money;
use super::period::Period;
use super::query::{Billed, By, Query};
use super::refusal::{Nothing, describe_nothing, describe_refusal};
use crate::error::{Error, Result, ResultExt};

/// The cost that a bill has: with discounts of the account, before it is averaged over an organization.
const METRIC: &str = "UnblendedCost";
const SERVICE: &str = "SERVICE";

/// The client of Cost Explorer, with the number of its requests.
#[derive(Debug)]
pub(crate) struct Explorer {
    client: Client,
    requests: u32,
}

impl Explorer {
    pub(crate) fn new(config: &SdkConfig) -> Self {
        let settings = aws_sdk_costexplorer::config::Builder::from(config).retry_config(RetryConfig::disabled());
        Self { client: Client::from_conf(settings.build()), requests: 0 }
    }

    /// Returns the number of requests so far, each of which AWS bills.
    pub(crate) const fn requests(&self) -> u32 {
        self.requests
    }

    /// Returns what was billed. The error about an empty bill says why it is empty.
    pub(crate) async fn read_bill(&mut self, query: &Query<'_>) -> Result<Vec<Billed>> {
        let mut billed = Vec::new();
        let mut token: Option<String> = None;
        loop {
            self.requests += 1;
            let page = self.request(query)?.set_next_page_token(token.clone()).send().await;
            let page = match page {
                Ok(page) => page,
                Err(error) => {
                    let known = describe_refusal(error.code(), error.message(), "ce:GetCostAndUsage");
                    return match known {
                        Some(known) => Err(known),
                        None => Err(error).doing("ask Cost Explorer what was billed"),
                    };
                }
            };
            for result in page.results_by_time() {
                read(result, query, &mut billed)?;
            }
            let next = page.next_page_token().filter(|next| !next.is_empty()).map(str::to_owned);
            if next.is_none() {
                break;
            }
            if next == token {
                return Err(Error::failed("Cost Explorer returned the same page twice; try again"));
            }
            token = next;
        }
        if billed.is_empty() { Err(self.explain_nothing(query).await) } else { Ok(billed) }
    }

    fn request(
        &self,
        query: &Query<'_>,
    ) -> Result<aws_sdk_costexplorer::operation::get_cost_and_usage::builders::GetCostAndUsageFluentBuilder> {
        let Period { since, end, .. } = query.period;
        let interval = DateInterval::builder().start(since.to_string()).end(end.to_string()).build();
        let interval = interval.map_err(|e| Error::internal(format!("cannot name the days to Cost Explorer: {e}")))?;
        let tag = |(key, value): &(&str, &str)| {
            let values = TagValues::builder().key(*key).values(*value).build();
            Expression::builder().tags(values).build()
        };
        // AWS refuses an `And` of one.
        let filter = match query.tags.as_slice() {
            [only] => tag(only),
            all => Expression::builder().set_and(Some(all.iter().map(tag).collect())).build(),
        };
        let group = |by: &By| {
            let group = GroupDefinition::builder();
            match by {
                By::Tag(key) => group.r#type(GroupDefinitionType::Tag).key(*key).build(),
                By::Service => group.r#type(GroupDefinitionType::Dimension).key(SERVICE).build(),
            }
        };
        let granularity = if query.daily { Granularity::Daily } else { Granularity::Monthly };
        let request = self.client.get_cost_and_usage().time_period(interval).granularity(granularity);
        let groups = query.by.iter().map(group).collect();
        Ok(request.metrics(METRIC).filter(filter).set_group_by(Some(groups)))
    }

    /// Returns the error about a bill without an amount. One more request finds out whether the tags are activated.
    async fn explain_nothing(&mut self, query: &Query<'_>) -> Error {
        let by = query.by.iter().filter_map(|by| match by {
            By::Tag(key) => Some(*key),
            By::Service => None,
        });
        let keys: Vec<&'static str> = query.tags.iter().map(|(key, _)| *key).chain(by).collect();
        let names = keys.iter().map(|key| (*key).to_owned()).collect();
        self.requests += 1;
        let known = match self.client.list_cost_allocation_tags().set_tag_keys(Some(names)).send().await {
            Ok(known) => known,
            Err(error) => {
                let refused = error.message().unwrap_or_default().to_owned();
                return describe_nothing(Nothing::Unknown { refused }, &keys, query, self.requests);
            }
        };
        let (mut unseen, mut inactive) = (Vec::new(), Vec::new());
        for key in &keys {
            let tag = known.cost_allocation_tags().iter().find(|tag| tag.tag_key() == *key);
            match tag.map(|tag| *tag.status() == CostAllocationTagStatus::Active) {
                None => unseen.push(*key),
                Some(false) => inactive.push(*key),
                Some(true) => {}
            }
        }
        let nothing = match (unseen.is_empty(), inactive.is_empty()) {
            (_, false) => Nothing::Inactive(inactive),
            (false, true) => Nothing::Unseen(unseen),
            (true, true) => Nothing::NoCost,
        };
        describe_nothing(nothing, &keys, query, self.requests)
    }
}

/// Adds the amounts of one day or month.
fn read(result: &ResultByTime, query: &Query<'_>, billed: &mut Vec<Billed>) -> Result<()> {
    let (start, end) = result.time_period().map_or(("", ""), |period| (period.start(), period.end()));
    for group in result.groups() {
        let Some(value) = group.metrics().and_then(|metrics| metrics.get(METRIC)) else { continue };
        billed.push(Billed {
            start: start.to_owned(),
            end: end.to_owned(),
            is_final: !result.estimated(),
            keys: query.by.iter().zip(group.keys()).map(|(by, key)| value_of(*by, key)).collect(),
            currency: value.unit().unwrap_or_default().to_owned(),
            amount: money::parse(value.amount().unwrap_or_default())?,
        });
    }
    Ok(())
}

/// Returns the value in a key of a group. That of a tag is `freehold:install$globex`, and the value may have a `$` too.
fn value_of(by: By, key: &str) -> String {
    let value = match by {
        By::Tag(tag) => key.strip_prefix(tag).and_then(|rest| rest.strip_prefix('$')),
        By::Service => None,
    };
    value.unwrap_or(key).to_owned()
}

#[cfg(test)]
mod tests {
    use super::super::query::COMPONENT;
    use super::*;

    #[test]
    fn the_value_of_a_tag_is_all_that_follows_its_key() {
        for (key, value) in [
            ("freehold:component$web", "web"),
            ("freehold:component$", ""),
            ("freehold:component$a$b", "a$b"),
            ("freehold:component$freehold:component$x", "freehold:component$x"),
            ("$", "$"),
        ] {
            assert_eq!(value_of(By::Tag(COMPONENT), key), value, "{key}");
        }
        assert_eq!(value_of(By::Service, "Amazon$S3"), "Amazon$S3");
    }
}
