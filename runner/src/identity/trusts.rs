//! Checks the roles that the app created in the customer's account, and finds those that trust a principal outside it.
//!
//! A role has its trust policy from its creation, so permissions cannot stop a module, a template or an action's
//! command from creating a role that an outsider can assume. So the runner checks after each job that could have
//! created or changed a role.

use std::collections::{BTreeMap, BTreeSet};

use async_trait::async_trait;
use aws_config::SdkConfig;
use aws_config::identity::IdentityCache;
use aws_credential_types::provider::SharedCredentialsProvider;
use freehold_iam_proxy::{Home, Trust, cluster_issuers};
use freehold_protocol::{Arn, names};
use percent_encoding::percent_decode_str;
use tokio::sync::OnceCell;

use crate::aws;
use crate::config::Config;
use crate::identity::job_aws;

/// The text between the account and the issuer in the ARN of an OpenID provider.
const PROVIDER: &str = ":oidc-provider/";

/// An IAM role of the app: its ARN and its trust policy, which decides who may assume it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct AppRole {
    pub arn: String,
    pub trust: String,
}

/// Lists the roles that the app created.
#[async_trait]
pub trait AppRoles: Send + Sync + std::fmt::Debug {
    /// Returns all roles of the app. The call uses the credentials of a job.
    ///
    /// # Errors
    /// The reason, when they cannot be listed.
    async fn list(&self, credentials: SharedCredentialsProvider) -> Result<Vec<AppRole>, String>;

    /// Returns those of the `issuers` of EKS clusters, without `https://`, whose identities IAM admits although the
    /// cluster does not belong to the account. An issuer without an OpenID provider in the account admits nobody: its
    /// cluster was removed. The calls use the credentials of a job.
    ///
    /// # Errors
    /// The reason, when the providers or the clusters of the account cannot be listed.
    async fn foreign(
        &self,
        credentials: SharedCredentialsProvider,
        issuers: BTreeSet<String>,
    ) -> Result<BTreeSet<String>, String>;
}

/// The roles under the install's path in IAM, and the roles whose name or path has the install's prefix.
#[derive(Debug)]
pub struct IamRoles {
    region: String,
    path: String,
    prefix: String,
    /// The settings of the clients for all jobs, without the credentials of a job. Making them reads files.
    settings: OnceCell<SdkConfig>,
}

impl IamRoles {
    /// Returns a lister of the roles that the app of this install created.
    pub fn new(config: &Config) -> Self {
        let (tenant, install) = (&config.tenant, &config.install);
        let (path, prefix) = (names::app_path(tenant, install), names::app_prefix(tenant, install));
        Self { region: config.region.clone(), path, prefix, settings: OnceCell::new() }
    }

    /// Returns a client that uses the credentials of a job. It keeps none of them, because `credentials` keep them while
    /// the job runs.
    async fn client(&self, credentials: SharedCredentialsProvider) -> aws_sdk_iam::Client {
        let settings = self.settings.get_or_init(|| aws::sdk_config(&self.region, None)).await.to_builder();
        let settings = settings.credentials_provider(credentials).identity_cache(IdentityCache::no_cache());
        aws_sdk_iam::Client::new(&settings.build())
    }

    /// Returns whether the app created the role. The customer's own roles are not checked: they may trust anyone. The
    /// boundary compares the path and the name as one text, so the prefix may also be the beginning of the path.
    fn is_own(&self, path: &str, name: &str) -> bool {
        let below_root = path.strip_prefix('/').unwrap_or(path);
        path.starts_with(&self.path) || name.starts_with(&self.prefix) || below_root.starts_with(&self.prefix)
    }
}

#[async_trait]
impl AppRoles for IamRoles {
    async fn list(&self, credentials: SharedCredentialsProvider) -> Result<Vec<AppRole>, String> {
        let client = self.client(credentials).await;
        // IAM can filter by path only, so this reads all roles of the account.
        let mut pages = client.list_roles().max_items(1_000).into_paginator().send();
        let mut found = Vec::new();
        while let Some(page) = pages.next().await {
            let page =
                page.map_err(|error| format!("{}; allow the job's role `iam:ListRoles`", aws::explain(&error)))?;
            let own = page.roles().iter().filter(|role| self.is_own(role.path(), role.role_name()));
            found.extend(own.map(|role| {
                AppRole {
                    arn: role.arn().to_owned(),
                    // IAM percent-encodes policies in its responses (RFC 3986).
                    trust: percent_decode_str(role.assume_role_policy_document().unwrap_or_default())
                        .decode_utf8_lossy()
                        .into_owned(),
                }
            }));
        }
        Ok(found)
    }

    async fn foreign(
        &self,
        credentials: SharedCredentialsProvider,
        issuers: BTreeSet<String>,
    ) -> Result<BTreeSet<String>, String> {
        if issuers.is_empty() {
            return Ok(issuers);
        }
        let client = self.client(credentials.clone()).await;
        let listed = client.list_open_id_connect_providers().send().await.map_err(|error| {
            format!("{}; allow the job's role `iam:ListOpenIDConnectProviders`", aws::explain(&error))
        })?;
        let arns = listed.open_id_connect_provider_list().iter().filter_map(|provider| provider.arn());
        let known: BTreeSet<&str> = arns.filter_map(|arn| Some(arn.split_once(PROVIDER)?.1)).collect();
        let admitted: BTreeSet<String> = issuers.into_iter().filter(|issuer| known.contains(issuer.as_str())).collect();
        if admitted.is_empty() {
            return Ok(admitted);
        }
        let upstream = job_aws::upstream(&self.region, credentials).map_err(|error| error.to_string())?;
        let own = cluster_issuers(&upstream).await?;
        Ok(admitted.difference(&own).cloned().collect())
    }
}

/// Returns the issuers of EKS clusters, without `https://`, whose identities a role trusts.
pub fn issuers(roles: &[AppRole], region: &str) -> BTreeSet<String> {
    roles.iter().flat_map(|role| trust(role, region).issuers).collect()
}

/// Returns the roles that trust a principal outside their account, or one of the `foreign` issuers, each with these
/// principals. The same code checks a trust policy that a job sends to IAM (`freehold_iam_proxy`), so a policy that
/// passes there passes here too.
pub fn strangers(roles: &[AppRole], region: &str, foreign: &BTreeSet<String>) -> BTreeMap<String, Vec<String>> {
    let found = roles.iter().map(|role| (role.arn.clone(), strangers_of(role, region, foreign)));
    found.filter(|(_, strangers)| !strangers.is_empty()).collect()
}

fn trust(role: &AppRole, region: &str) -> Trust {
    let (partition, account) = Arn::parse(&role.arn).map_or(("", ""), |arn| (arn.partition, arn.account));
    freehold_iam_proxy::trust(&role.trust, &Home { partition, account, region })
}

fn strangers_of(role: &AppRole, region: &str, foreign: &BTreeSet<String>) -> Vec<String> {
    let trust = trust(role, region);
    let names = trust.strangers.into_iter().map(|stranger| stranger.name).filter(|name| !is_deleted(name));
    let mut found: Vec<String> = names.chain(trust.issuers.intersection(foreign).cloned()).collect();
    found.sort();
    found.dedup();
    found
}

/// Returns whether `name` is the id of a deleted principal. IAM shows such an id, which is never reused, instead of an
/// ARN.
fn is_deleted(name: &str) -> bool {
    let is_id = name.bytes().all(|byte| byte.is_ascii_alphanumeric());
    is_id && ["AIDA", "AROA"].iter().any(|kind| name.starts_with(kind))
}

#[cfg(test)]
mod tests {
    use freehold_iam_proxy::Install;
    use proptest::prelude::*;
    use serde_json::{Value, json};

    use super::*;

    const ACCOUNT: &str = "222222222222";
    const REGION: &str = "eu-west-1";

    fn trusting(principal: Value) -> AppRole {
        let trust = json!({ "Version": "2012-10-17", "Statement": { "Effect": "Allow", "Principal": principal } });
        AppRole { arn: format!("arn:aws:iam::{ACCOUNT}:role/freehold/acme--globex-prod/api"), trust: trust.to_string() }
    }

    #[test]
    fn the_accounts_own_principals_and_services_are_not_strangers() {
        for principal in [
            json!({ "AWS": ACCOUNT }),
            json!({ "AWS": ["arn:aws:iam::222222222222:root", "arn:aws:iam::222222222222:role/x", "AROAEXAMPLEID"] }),
            json!({ "Service": ["ec2.amazonaws.com", "states.eu-west-1.amazonaws.com", "pods.eks.amazonaws.com"] }),
            json!({ "Federated": "arn:aws:iam::222222222222:oidc-provider/oidc.eks.eu-west-1.amazonaws.com/id/A1" }),
        ] {
            assert_eq!(
                strangers_of(&trusting(principal.clone()), REGION, &BTreeSet::new()),
                Vec::<String>::new(),
                "{principal}"
            );
        }
        let chinese = AppRole {
            arn: format!("arn:aws-cn:iam::{ACCOUNT}:role/api"),
            ..trusting(json!({ "Service": "ec2.amazonaws.com.cn", "AWS": format!("arn:aws-cn:iam::{ACCOUNT}:root") }))
        };
        assert_eq!(strangers_of(&chinese, "cn-north-1", &BTreeSet::new()), Vec::<String>::new());
    }

    /// The names of the issuers of all accounts in a region have one form.
    #[test]
    fn the_issuer_of_a_cluster_of_another_account_is_a_stranger() {
        let issuer = "oidc.eks.eu-west-1.amazonaws.com/id/A1";
        let role = trusting(json!({ "Federated": format!("arn:aws:iam::{ACCOUNT}:oidc-provider/{issuer}") }));
        let foreign = BTreeSet::from([issuer.to_owned()]);

        let asked = issuers(std::slice::from_ref(&role), REGION);

        assert_eq!(asked, foreign);
        assert_eq!(strangers(std::slice::from_ref(&role), REGION, &foreign)[&role.arn], [issuer]);
        assert_eq!(strangers(&[role], REGION, &BTreeSet::new()), BTreeMap::new());
    }

    /// Modules write such a trust for roles that take themselves.
    #[test]
    fn everybody_under_a_condition_on_the_account_is_not_a_stranger() {
        let under = |condition: Value| {
            let statement = json!({ "Effect": "Allow", "Principal": { "AWS": "*" }, "Condition": condition });
            AppRole { trust: json!({ "Statement": [statement] }).to_string(), ..trusting(json!({})) }
        };

        let own = under(json!({ "ArnLike": { "aws:PrincipalArn": format!("arn:aws:iam::{ACCOUNT}:role/ebs-*") } }));
        let others = under(json!({ "StringEquals": { "aws:PrincipalAccount": "111111111111" } }));

        assert_eq!(strangers_of(&own, REGION, &BTreeSet::new()), Vec::<String>::new());
        assert_eq!(strangers_of(&others, REGION, &BTreeSet::new()), ["*"]);
    }

    fn install() -> Install {
        Install {
            partition: "aws".into(),
            account: ACCOUNT.into(),
            region: REGION.into(),
            path: "/freehold/acme--globex-prod/".into(),
            prefix: "acme--globex-prod--".into(),
            boundary: format!("arn:aws:iam::{ACCOUNT}:policy/b"),
            tags: BTreeMap::new(),
            given_tags: BTreeMap::new(),
            stack_roles: Default::default(),
        }
    }

    /// Own and strange principals, and values of conditions, of every kind.
    const NAMES: [&str; 14] = [
        "*",
        ACCOUNT,
        "111111111111",
        "arn:aws:iam::222222222222:root",
        "arn:aws:iam::222222222222:role/a",
        "arn:aws:iam::222222222222:role/*",
        "arn:aws:iam::111111111111:root",
        "arn:aws:sts::222222222222:assumed-role/a/b",
        "arn:aws-cn:iam::222222222222:root",
        "ec2.amazonaws.com",
        "rolesanywhere.amazonaws.com",
        "arn:aws:iam::222222222222:oidc-provider/oidc.eks.eu-west-1.amazonaws.com/id/A1",
        "arn:aws:iam::222222222222:oidc-provider/oidc.eks.us-east-1.amazonaws.com/id/A1",
        "accounts.google.com",
    ];

    fn statement() -> impl Strategy<Value = Value> {
        let one_of = |words: &'static [&'static str]| prop::sample::select(words);
        let kind = one_of(&["AWS", "Service", "Federated", "CanonicalUser"]);
        let principal = prop_oneof![
            Just(json!("*")),
            (kind, prop::collection::vec(one_of(&NAMES), 1..4)).prop_map(|(kind, names)| json!({ kind: names })),
        ];
        let operator = one_of(&["StringEquals", "StringLike", "ArnLike", "ArnLikeIfExists", "ArnNotLike"]);
        let key = one_of(&["aws:PrincipalAccount", "aws:principalarn", "sts:ExternalId"]);
        let condition = prop::option::of((operator, key, one_of(&NAMES)));
        let effect = one_of(&["Allow", "Allow", "Deny", "Perhaps"]);
        (effect, principal, condition).prop_map(|(effect, principal, condition)| {
            let mut statement = json!({ "Effect": effect, "Principal": principal, "Action": "sts:AssumeRole" });
            if let Some((operator, key, value)) = condition {
                statement["Condition"] = json!({ operator: { key: value } });
            }
            statement
        })
    }

    proptest! {
        #[test]
        fn what_a_job_may_ask_iam_for_is_what_no_look_finds_fault_with(
            statements in prop::collection::vec(statement(), 0..4),
        ) {
            let role = AppRole { trust: json!({ "Statement": statements }).to_string(), ..trusting(json!({})) };

            let asked = freehold_iam_proxy::issuers(&role.trust, &install().home());

            prop_assert_eq!(asked.is_ok(), strangers_of(&role, REGION, &BTreeSet::new()).is_empty(), "{:?}", asked);
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
            (json!({ "AWS": 7 }), "principals of `AWS` are not strings"),
        ] {
            assert_eq!(strangers_of(&trusting(principal), REGION, &BTreeSet::new()), [stranger]);
        }
        let excluding = json!({ "Statement": [{ "Effect": "Allow", "NotPrincipal": { "AWS": ACCOUNT } }] });
        assert_eq!(
            strangers_of(&AppRole { trust: excluding.to_string(), ..trusting(json!({})) }, REGION, &BTreeSet::new()),
            ["everybody"]
        );
        assert_eq!(
            strangers_of(&AppRole { trust: "?".into(), ..trusting(json!({})) }, REGION, &BTreeSet::new()),
            ["a document that cannot be read"]
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

    /// The boundary lets a template of CloudFormation make a role of any name whose path begins with the prefix.
    #[test]
    fn a_role_whose_path_has_the_prefix_is_looked_at() {
        let roles = IamRoles::new(&crate::testing::config("/state", crate::config::Role::Install));

        assert!(roles.is_own("/acme--globex-prod--x/", "api") && roles.is_own("/acme--globex-prod--x/team/", "api"));
        for path in ["/acme--globex-prod/", "/acme--globex-prod-eu--x/", "/team/acme--globex-prod--x/"] {
            assert!(!roles.is_own(path, "api"), "{path}");
        }
    }

    #[test]
    fn a_statement_that_denies_lets_nobody_in() {
        let denying = json!({ "Statement": [{ "Effect": "Deny", "Principal": "*" }] });

        assert_eq!(
            strangers(&[AppRole { trust: denying.to_string(), ..trusting(json!({})) }], REGION, &BTreeSet::new()),
            BTreeMap::new()
        );
    }
}
