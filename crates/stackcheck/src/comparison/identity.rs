//! Reads the names in a template, such as the vendor, the install and the queues, from the places where the renderer
//! writes them.

use std::str::FromStr;

use freehold_protocol::envelope::PublicKey;
use freehold_protocol::shape::Shape;
use freehold_protocol::{AccountId, AppName, Arn, Digest, DownloadUrl, InstallId, Partition, TenantName, names};
use serde::Serialize;

use super::difference::finding;
use crate::finding::Finding;
use crate::node::Node;

/// The names in a template. Only the people who launch the template know whether these names are the right ones.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct Names {
    /// The name of the vendor's tenant.
    pub tenant: TenantName,
    /// The vendor's account, whose two queues the runner uses.
    pub tenant_account: AccountId,
    /// The region of the queues.
    pub tenant_region: String,
    /// The vendor's public root key. The chain of signatures of every order leads to it.
    pub tenant_key: String,
    /// The only root key that may follow `tenant_key`; `none` when the vendor announced no such key.
    pub tenant_second_key: String,
    pub app: AppName,
    /// The first 12 hex digits of the digest of the app version.
    pub version: String,
    pub install: InstallId,
    /// The account to which the stack is bound.
    pub account: AccountId,
    pub region: String,
    pub orders_queue_url: String,
    pub reports_queue_url: String,
    /// The digest of the terms that the template asks the customer to accept.
    pub contract: Digest,
    /// The URL from which the machine downloads the runner; empty when the vendor publishes no runner.
    pub runner_url: String,
    /// The SHA-256 of the runner that the machine starts, in hex; empty when the vendor publishes no runner.
    pub runner_sha256: String,
}

/// Reads the names of a template.
///
/// # Errors
/// Findings about names that are missing or do not have the right form.
pub(super) fn read(root: &Node) -> Result<Names, Vec<Finding>> {
    let mut source = Source { root, wrong: Vec::new() };
    let names = source.names();
    names.filter(|_| source.wrong.is_empty()).ok_or(source.wrong)
}

struct Source<'t> {
    root: &'t Node,
    wrong: Vec<Finding>,
}

impl Source<'_> {
    fn names(&mut self) -> Option<Names> {
        let tenant = self.tenant();
        let app = self.parsed(&["Metadata", "Freehold", "App"]);
        let install: Option<InstallId> = self.parsed(&["Metadata", "Freehold", "Install"]);
        let version = self.text(&["Metadata", "Freehold", "Version"], |text| is_hex(text, 12));
        let bound = self.bound();
        let contract = self.parsed(&["Parameters", "AcceptedContract", "Default"]);
        let key: Option<PublicKey> = self.parsed(&["Outputs", "TenantKey", "Value"]);
        let is_key = |text: &str| text == "none" || text.parse::<PublicKey>().is_ok();
        let second = self.text(&["Outputs", "TenantSecondKey", "Value"], is_key);
        let runner = self.runner();
        let (tenant, install) = (tenant?, install?);
        let (tenant_region, tenant_account) = self.vendor(&tenant, &install)?;
        let is_queue = |url: &str, name: &str| is_queue(&tenant_region, &tenant_account, name, url);
        let orders_queue = names::orders_queue(&tenant, &install);
        let orders = self.text(&["Outputs", "OrdersQueueUrl", "Value"], |url| is_queue(url, &orders_queue));
        let reports = self.text(&["Outputs", "ReportsQueueUrl", "Value"], |url| {
            let name = names::queue_of(url);
            names::is_reports_queue(&tenant, name) && is_queue(url, name)
        });
        let (region, account) = bound?;
        let (runner_url, runner_sha256) = runner?;
        Some(Names {
            tenant,
            tenant_account,
            tenant_region,
            tenant_key: key?.to_string(),
            tenant_second_key: second?,
            app: app?,
            version: version?,
            install,
            account,
            region,
            orders_queue_url: orders?,
            reports_queue_url: reports?,
            contract: contract?,
            runner_url,
            runner_sha256,
        })
    }

    /// Returns the name of the tenant. Refuses a name with which the app of one tenant, such as `fh-acme`, could make
    /// roles that have the names of those in the install stacks of another tenant, `acme`.
    fn tenant(&mut self) -> Option<TenantName> {
        let path = ["Metadata", "Freehold", "Tenant"];
        let tenant: TenantName = self.parsed(&path)?;
        if tenant.as_str() == "fh" || tenant.as_str().starts_with("fh-") {
            self.refuse(
                &path,
                "no tenant may be called `fh` or `fh-...`, because stacks of other tenants have such names",
            );
            return None;
        }
        Some(tenant)
    }

    /// Returns the region and the account to which the template is bound.
    fn bound(&mut self) -> Option<(String, AccountId)> {
        let bound = self.root.at(&["Mappings", "BoundTo"]).and_then(|regions| regions.entries().first());
        let place = bound.and_then(|(region, accounts)| {
            let (account, _) = accounts.entries().first()?;
            Some((Some(region.clone()).filter(|region| Shape::Region.accepts(region))?, account.parse().ok()?))
        });
        if place.is_none() {
            let line = bound.map_or(self.root.line, |(_, accounts)| accounts.line);
            self.wrong.push(finding(
                line,
                "BoundTo",
                "`Mappings.BoundTo` does not name a region and an account".to_owned(),
            ));
        }
        place
    }

    /// Returns the region and the account of the vendor's queues. Takes them from the ARN of the orders queue, which
    /// the runner's permission to receive orders names.
    fn vendor(&mut self, tenant: &TenantName, install: &InstallId) -> Option<(String, AccountId)> {
        let orders = names::orders_queue(tenant, install);
        let role = self.root.at(&["Resources", "RunnerRole"]);
        let queue = role.and_then(receives_orders).and_then(|statement| statement.get("Resource"));
        let found = queue.and_then(Node::text).and_then(Arn::parse).and_then(|queue| {
            let is_orders = queue.service == "sqs" && queue.resource == orders && Shape::Region.accepts(queue.region);
            Some((queue.region.to_owned(), queue.account.parse().ok()?)).filter(|_| is_orders)
        });
        if found.is_none() {
            let reason =
                format!("the runner's role is not allowed to receive orders from the vendor's queue `{orders}`");
            let line = queue.or(role).map_or(self.root.line, |at| at.line);
            self.wrong.push(finding(line, "RunnerRole", reason));
        }
        found
    }

    /// Returns the URL and the SHA-256 of the runner's program; both are empty when the vendor publishes no runner.
    fn runner(&mut self) -> Option<(String, String)> {
        let url = self.parsed(&["Parameters", "RunnerUrl", "Default"]).map(|url: DownloadUrl| url.to_string());
        let sha256 = self.text(&["Parameters", "RunnerSha256", "Default"], |text| text.is_empty() || is_hex(text, 64));
        let (url, sha256) = (url?, sha256?);
        if url.is_empty() != sha256.is_empty() {
            let reason = "`RunnerUrl` and `RunnerSha256` belong together, and one of them is empty".to_owned();
            let line = self.root.at(&["Parameters", "RunnerSha256", "Default"]).map_or(1, |node| node.line);
            self.wrong.push(finding(line, "RunnerSha256", reason));
        }
        Some((url, sha256))
    }

    fn parsed<T: FromStr<Err: ToString>>(&mut self, path: &[&str]) -> Option<T> {
        let text = self.text(path, |_| true)?;
        text.parse().map_err(|error: T::Err| self.refuse(path, &error.to_string())).ok()
    }

    fn text(&mut self, path: &[&str], fits: impl Fn(&str) -> bool) -> Option<String> {
        let found = self.root.at(path).and_then(Node::text);
        let fitting = found.filter(|text| fits(text)).map(str::to_owned);
        if fitting.is_none() {
            let what = if found.is_some() { "is not what Freehold renders here" } else { "is missing" };
            self.refuse(path, what);
        }
        fitting
    }

    /// Reports the value at `path`. The finding has the line of the deepest existing part of `path`.
    fn refuse(&mut self, path: &[&str], what: &str) {
        let nearest = (0..=path.len()).rev().find_map(|parts| self.root.at(path.get(..parts)?));
        let line = nearest.map_or(1, |node| node.line);
        let of = path.get(1).copied().unwrap_or_default();
        self.wrong.push(finding(line, of, format!("`{}`: {what}", path.join("."))));
    }
}

/// Returns the statement with which the runner's role receives orders.
fn receives_orders(role: &Node) -> Option<&Node> {
    let policies = role.at(&["Properties", "Policies"])?.items();
    let documents = policies.iter().filter_map(|policy| policy.at(&["PolicyDocument", "Statement"]));
    let mut statements = documents.flat_map(Node::items);
    statements.find(|statement| statement.get("Sid").and_then(Node::text) == Some("ReceiveOrders"))
}

fn is_hex(text: &str, digits: usize) -> bool {
    text.len() == digits && text.bytes().all(|byte| matches!(byte, b'0'..=b'9' | b'a'..=b'f'))
}

/// Returns whether a text is the URL of the queue `name`, in SQS or in a cloud on this machine.
fn is_queue(region: &str, account: &AccountId, name: &str, url: &str) -> bool {
    let domain = Partition::of_region(region).dns_suffix;
    let (aws, path) = (format!("https://sqs.{region}.{domain}"), format!("/{account}/{name}"));
    let Some(host) = url.strip_suffix(&path) else { return false };
    let port = ["http://localhost:", "http://127.0.0.1:"].iter().find_map(|local| host.strip_prefix(local));
    host == aws || port.is_some_and(|port| port.parse::<u16>().is_ok_and(|number| number.to_string() == port))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_queue_is_in_sqs_or_on_this_machine() {
        let account = "111111111111".parse().unwrap();
        let fits = |url| is_queue("eu-west-1", &account, "q", url);

        for url in [
            "https://sqs.eu-west-1.amazonaws.com/111111111111/q",
            "http://localhost:4566/111111111111/q",
            "http://127.0.0.1:4566/111111111111/q",
        ] {
            assert!(fits(url), "{url}");
        }
        for url in [
            "https://sqs.eu-west-2.amazonaws.com/111111111111/q",
            "https://sqs.eu-west-1.amazonaws.com.example/111111111111/q",
            "https://sqs.eu-west-1.amazonaws.com/999999999999/q",
            "https://sqs.eu-west-1.amazonaws.com/111111111111/other",
            "http://localhost:4566@example.com/111111111111/q",
            "http://127.0.0.1:+80/111111111111/q",
            "https://example.com/111111111111/q",
        ] {
            assert!(!fits(url), "{url}");
        }
        let is_chinese = |url| is_queue("cn-north-1", &account, "q", url);
        assert!(is_chinese("https://sqs.cn-north-1.amazonaws.com.cn/111111111111/q"));
        assert!(!is_chinese("https://sqs.cn-north-1.amazonaws.com/111111111111/q"));
    }
}
