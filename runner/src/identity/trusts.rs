//! Looks at the roles that the app made in the customer's account, and finds those that trust somebody outside of it.
//!
//! A role carries its trust from its creation, so no permission can keep a stranger out of it: a module writes it, a template,
//! or a command of an action. The runner looks after each job that could have made or changed a role.

use std::collections::BTreeMap;

use async_trait::async_trait;
use aws_credential_types::provider::SharedCredentialsProvider;
use freehold_iam_proxy::takes_roles;
use freehold_protocol::names;
use percent_encoding::percent_decode_str;
use serde_json::Value;

use crate::aws;
use crate::config::Config;

/// A role and the document that says who may assume it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct AppRole {
    pub arn: String,
    pub trust: String,
}

/// The roles that the app made.
#[async_trait]
pub trait AppRoles: Send + Sync + std::fmt::Debug {
    /// Returns all of them, listed with the credentials of a job.
    ///
    /// # Errors
    /// The reason, when they cannot be listed.
    async fn list(&self, credentials: SharedCredentialsProvider) -> Result<Vec<AppRole>, String>;
}

/// The roles under the install's path in IAM, and those with the install's prefix.
#[derive(Debug)]
pub struct IamRoles {
    region: String,
    path: String,
    prefix: String,
}

impl IamRoles {
    /// Returns the roles of the install of `config`.
    pub fn new(config: &Config) -> Self {
        let (tenant, install) = (&config.tenant, &config.install);
        let (path, prefix) = (names::app_path(tenant, install), names::app_prefix(tenant, install));
        Self { region: config.region.clone(), path, prefix }
    }

    /// Returns whether the app made a role; the customer's own roles may trust whom they like.
    fn is_own(&self, path: &str, name: &str) -> bool {
        path.starts_with(&self.path) || name.starts_with(&self.prefix)
    }
}

#[async_trait]
impl AppRoles for IamRoles {
    async fn list(&self, credentials: SharedCredentialsProvider) -> Result<Vec<AppRole>, String> {
        let client = aws_sdk_iam::Client::new(&aws::sdk_config(&self.region, Some(credentials)).await);
        // IAM lists by path only, so all roles of the account are read.
        let mut pages = client.list_roles().max_items(1_000).into_paginator().send();
        let mut found = Vec::new();
        while let Some(page) = pages.next().await {
            let page =
                page.map_err(|error| format!("{}; allow the mode's role `iam:ListRoles`", aws::explain(&error)))?;
            let own = page.roles().iter().filter(|role| self.is_own(role.path(), role.role_name()));
            found.extend(own.map(|role| {
                AppRole {
                    arn: role.arn().to_owned(),
                    // IAM encodes policies in its answers as RFC 3986 does in URLs.
                    trust: percent_decode_str(role.assume_role_policy_document().unwrap_or_default())
                        .decode_utf8_lossy()
                        .into_owned(),
                }
            }));
        }
        Ok(found)
    }
}

/// Returns the roles that trust somebody outside of their account, each with whom it trusts.
pub fn strangers(roles: &[AppRole]) -> BTreeMap<String, Vec<String>> {
    let found = roles.iter().map(|role| (role.arn.clone(), strangers_of(role)));
    found.filter(|(_, strangers)| !strangers.is_empty()).collect()
}

fn strangers_of(role: &AppRole) -> Vec<String> {
    let account = role.arn.split(':').nth(4).unwrap_or_default();
    let document = serde_json::from_str::<Value>(&role.trust).unwrap_or_default();
    let Some(statements) = document.get("Statement") else {
        return vec!["a document without statements".to_owned()];
    };
    let allowing = listed(statements).filter(|statement| statement.get("Effect").is_none_or(|effect| effect != "Deny"));
    let mut found: Vec<String> = allowing.flat_map(|statement| strangers_in(statement, account)).collect();
    found.sort();
    found.dedup();
    found
}

fn strangers_in(statement: &Value, account: &str) -> Vec<String> {
    let Some(principals) = statement.get("Principal").and_then(Value::as_object) else {
        return vec!["everybody".to_owned()];
    };
    let values = principals.iter().flat_map(|(kind, values)| listed(values).map(move |value| (kind.as_str(), value)));
    let outside = values.filter(|(kind, value)| !value.as_str().is_some_and(|name| is_inside(kind, name, account)));
    outside.map(|(_, value)| value.as_str().map_or_else(|| value.to_string(), str::to_owned)).collect()
}

/// Returns the values of a list, or the one value that stands for a list of one.
fn listed(value: &Value) -> impl Iterator<Item = &Value> {
    value.as_array().map_or(std::slice::from_ref(value), Vec::as_slice).iter()
}

/// Returns whether only the account itself can be the principal `name`.
fn is_inside(kind: &str, name: &str, account: &str) -> bool {
    let of_account = name.split(':').nth(4) == Some(account);
    match kind {
        // A principal that was deleted is shown by its id, which no other one gets.
        "AWS" => name == account || name.starts_with("AIDA") || name.starts_with("AROA") || of_account,
        "Service" => takes_roles(service(name)),
        "Federated" => is_cluster(name) && of_account,
        _ => false,
    }
}

/// Returns the name of a service without its domain and its region: `states` of `states.eu-west-1.amazonaws.com`.
fn service(name: &str) -> &str {
    let name = name.strip_suffix(".cn").unwrap_or(name);
    let name = name.strip_suffix(".amazonaws.com").unwrap_or(name);
    match name.rsplit_once('.') {
        Some((service, region)) if region.ends_with(|c: char| c.is_ascii_digit()) && region.contains('-') => service,
        _ => name,
    }
}

/// Returns whether an identity provider is one that IAM has for a cluster of EKS.
fn is_cluster(arn: &str) -> bool {
    let provider = arn.split_once(":oidc-provider/").map(|(_, provider)| provider);
    let host = provider.and_then(|provider| provider.split_once("/id/")).map(|(host, _)| host);
    host.is_some_and(|host| host.starts_with("oidc.eks.") && host.trim_end_matches(".cn").ends_with(".amazonaws.com"))
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    const ACCOUNT: &str = "222222222222";

    fn trusting(principal: Value) -> AppRole {
        let trust = json!({ "Version": "2012-10-17", "Statement": { "Effect": "Allow", "Principal": principal } });
        AppRole { arn: format!("arn:aws:iam::{ACCOUNT}:role/freehold/acme--globex-prod/api"), trust: trust.to_string() }
    }

    #[test]
    fn the_accounts_own_principals_and_services_are_no_strangers() {
        for principal in [
            json!({ "AWS": ACCOUNT }),
            json!({ "AWS": ["arn:aws:iam::222222222222:root", "arn:aws:iam::222222222222:role/x", "AROAEXAMPLEID"] }),
            json!({ "Service": ["ec2.amazonaws.com", "states.eu-west-1.amazonaws.com", "pods.eks.amazonaws.com"] }),
            json!({ "Service": "ec2.amazonaws.com.cn" }),
            json!({ "Federated": "arn:aws:iam::222222222222:oidc-provider/oidc.eks.eu-west-1.amazonaws.com/id/A1" }),
        ] {
            assert_eq!(strangers_of(&trusting(principal.clone())), Vec::<String>::new(), "{principal}");
        }
    }

    #[test]
    fn everybody_else_is_a_stranger() {
        for (principal, stranger) in [
            (json!("*"), "everybody"),
            (json!({ "AWS": "*" }), "*"),
            (json!({ "AWS": "111111111111" }), "111111111111"),
            (json!({ "AWS": ["222222222222", "arn:aws:iam::111111111111:root"] }), "arn:aws:iam::111111111111:root"),
            (
                json!({ "AWS": "arn:aws:sts::111111111111:assumed-role/a/b" }),
                "arn:aws:sts::111111111111:assumed-role/a/b",
            ),
            (json!({ "Service": "rolesanywhere.amazonaws.com" }), "rolesanywhere.amazonaws.com"),
            (json!({ "Service": "ec2.example.com" }), "ec2.example.com"),
            (json!({ "Federated": "accounts.google.com" }), "accounts.google.com"),
            (
                json!({ "Federated": "arn:aws:iam::222222222222:oidc-provider/token.actions.githubusercontent.com" }),
                "arn:aws:iam::222222222222:oidc-provider/token.actions.githubusercontent.com",
            ),
            (
                json!({ "Federated": "arn:aws:iam::222222222222:oidc-provider/oidc.eks.example.com/id/A" }),
                "arn:aws:iam::222222222222:oidc-provider/oidc.eks.example.com/id/A",
            ),
            (
                json!({ "Federated": "arn:aws:iam::222222222222:saml-provider/x" }),
                "arn:aws:iam::222222222222:saml-provider/x",
            ),
            (json!({ "CanonicalUser": "79a5" }), "79a5"),
            (json!({ "AWS": 7 }), "7"),
        ] {
            assert_eq!(strangers_of(&trusting(principal)), [stranger]);
        }
        let excluding = json!({ "Statement": [{ "Effect": "Allow", "NotPrincipal": { "AWS": ACCOUNT } }] });
        assert_eq!(strangers_of(&AppRole { trust: excluding.to_string(), ..trusting(json!({})) }), ["everybody"]);
        assert_eq!(
            strangers_of(&AppRole { trust: "?".into(), ..trusting(json!({})) }),
            ["a document without statements"]
        );
    }

    #[test]
    fn only_roles_that_the_app_made_are_looked_at() {
        let roles = IamRoles::new(&crate::testing::config("/state", crate::config::Role::Install));

        assert!(roles.is_own("/freehold/acme--globex-prod/", "api") && roles.is_own("/", "acme--globex-prod--api"));
        for (path, name) in
            [("/", "OrganizationAccountAccessRole"), ("/freehold/acme--globex-prod-eu/", "api"), ("/", "api")]
        {
            assert!(!roles.is_own(path, name), "{path}{name}");
        }
    }

    #[test]
    fn a_statement_that_denies_lets_nobody_in() {
        let denying = json!({ "Statement": [{ "Effect": "Deny", "Principal": "*" }] });

        assert_eq!(strangers(&[AppRole { trust: denying.to_string(), ..trusting(json!({})) }]), BTreeMap::new());
    }
}
