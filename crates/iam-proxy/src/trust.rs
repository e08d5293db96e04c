//! Reads from a trust policy who may assume a role, and finds the strangers among them: principals that do not belong
//! to the account, to a permitted service or to an EKS cluster of the account.

use std::collections::{BTreeMap, BTreeSet};

use crate::home::Home;
use crate::json::Json;
use crate::services;

/// The elements that a statement of a trust policy may have. Every other element is refused, also in another spelling,
/// because IAM may read it differently.
const ELEMENTS: [&str; 5] = ["Sid", "Effect", "Principal", "Action", "Condition"];
/// The elements that a trust policy may have at its top level.
const AROUND: [&str; 3] = ["Version", "Id", "Statement"];
const ANYONE: &str = "principal `*` is everybody; name who may assume the role";

/// The principals that a role trusts, as far as they must be refused or checked.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Trust {
    /// The strangers. A part of the policy that cannot be read counts as a stranger too.
    pub strangers: Vec<Stranger>,
    /// The issuers of EKS clusters, without `https://`, whose identities the role trusts. The caller must check that
    /// each belongs to a cluster of the account.
    pub issuers: BTreeSet<String>,
}

/// A principal outside of the account that could assume the role.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Stranger {
    /// The principal, or a text such as `everybody`.
    pub name: String,
    /// A sentence with the reason why the principal is a stranger.
    pub why: String,
}

impl Stranger {
    fn new(name: impl Into<String>, why: impl Into<String>) -> Self {
        Self { name: name.into(), why: why.into() }
    }
}

/// Returns the issuers of EKS clusters, without `https://`, whose identities a role would trust. The caller must check
/// that each belongs to a cluster of the account.
///
/// # Errors
/// A sentence that names the stranger, or the part of the policy that cannot be read.
pub fn issuers(document: &str, home: &Home<'_>) -> Result<BTreeSet<String>, String> {
    let trust = trust(document, home);
    trust.strangers.into_iter().next().map_or(Ok(trust.issuers), |stranger| Err(stranger.why))
}

/// Reads the trust policy of a role in `home`. The runner uses it both for the policies that jobs request and for the
/// policies of existing roles.
pub fn trust(document: &str, home: &Home<'_>) -> Trust {
    let statements = match statements(document) {
        Ok(statements) => statements,
        Err(stranger) => return Trust { strangers: vec![stranger], issuers: BTreeSet::new() },
    };
    let mut found = Trust::default();
    for statement in &statements {
        if let Err(stranger) = found.add_statement(statement, home) {
            found.strangers.push(stranger);
        }
    }
    found
}

fn statements(document: &str) -> Result<Vec<Json>, Stranger> {
    let unreadable = |why: String| Stranger::new("a document that cannot be read", why);
    let document =
        Json::parse(document).map_err(|error| unreadable(format!("the trust policy cannot be read: {error}")))?;
    let Json::Object(mut around) = document else {
        return Err(unreadable("the trust policy is not an object".to_owned()));
    };
    only(&around, &AROUND).map_err(unreadable)?;
    match around.remove("Statement") {
        Some(Json::List(all)) => Ok(all),
        Some(one @ Json::Object(_)) => Ok(vec![one]),
        Some(Json::Null | Json::Bool | Json::Number | Json::Text(_)) | None => {
            Err(Stranger::new("a document without statements", "the trust policy has no statement"))
        }
    }
}

impl Trust {
    /// Adds the principals that `statement` allows to assume the role.
    ///
    /// # Errors
    /// A [`Stranger`] that represents all principals of the statement, because the statement cannot be read, or allows
    /// everybody to assume the role.
    fn add_statement(&mut self, statement: &Json, home: &Home<'_>) -> Result<(), Stranger> {
        let everybody = |why: &str| Stranger::new("everybody", why);
        let statement =
            statement.object().ok_or_else(|| everybody("a statement of the trust policy is not an object"))?;
        only(statement, &ELEMENTS).map_err(|why| everybody(&why))?;
        match statement.get("Effect") {
            // A `Deny` lets no principal assume the role.
            Some(Json::Text(effect)) if effect == "Deny" => return Ok(()),
            Some(Json::Text(effect)) if effect == "Allow" => {}
            Some(_) | None => return Err(everybody("a statement of the trust policy has neither `Allow` nor `Deny`")),
        }
        let among_own = is_limited_to(statement.get("Condition"), home);
        let principals = match statement.get("Principal") {
            Some(Json::Text(text)) if text == "*" => return if among_own { Ok(()) } else { Err(everybody(ANYONE)) },
            Some(Json::Object(principals)) => principals,
            Some(_) | None => {
                return Err(everybody("a statement of the trust policy has no principal that can be read"));
            }
        };
        for (kind, named) in principals {
            let Some(named) = named.texts() else {
                let why = format!("principals of `{kind}` are not strings");
                self.strangers.push(Stranger::new(why.clone(), why));
                continue;
            };
            for one in named {
                match one_principal(kind, one, among_own, home) {
                    Ok(issuer) => self.issuers.extend(issuer),
                    Err(why) => self.strangers.push(Stranger::new(one, why)),
                }
            }
        }
        Ok(())
    }
}

fn one_principal(kind: &str, one: &str, among_own: bool, home: &Home<'_>) -> Result<Option<String>, String> {
    match kind {
        "AWS" if one == "*" && among_own => Ok(None),
        "AWS" if one == "*" => Err(ANYONE.to_owned()),
        "AWS" if is_of_account(one, home) => Ok(None),
        "AWS" => Err(format!(
            "principal `{one}` is not a role, user or root of account {}; trust a principal of this account",
            home.account
        )),
        "Service" if services::may_take_roles(one, home.region) => Ok(None),
        "Service" => Err(format!(
            "service `{one}` is not among those that may assume a role of an install; remove it from \
             the trust policy"
        )),
        "Federated" => {
            let provider = format!("{}oidc-provider/", home.arn_prefix());
            let issuer = one.strip_prefix(&provider).filter(|issuer| is_issuer(issuer, home));
            let stranger = || {
                format!(
                    "identity provider `{one}` does not belong to an EKS cluster of account {} in {}; trust the \
                     provider of such a cluster, or remove this provider from the trust policy",
                    home.account, home.region
                )
            };
            issuer.map(|issuer| Some(issuer.to_owned())).ok_or_else(stranger)
        }
        other => Err(format!(
            "principals of kind `{other}` may be from outside of the account; name a role, a user or a service"
        )),
    }
}

fn only(object: &BTreeMap<String, Json>, known: &[&str]) -> Result<(), String> {
    match object.keys().find(|name| !known.contains(&name.as_str())) {
        Some(name) => {
            Err(format!("a trust policy of an install must not have `{name}`; it may have {}", known.join(", ")))
        }
        None => Ok(()),
    }
}

/// Returns whether a URL, without `https://`, has the form of the issuer of an EKS cluster in the region.
pub(crate) fn is_issuer(issuer: &str, home: &Home<'_>) -> bool {
    let id = issuer.strip_prefix(&home.issuer_prefix());
    id.is_some_and(|id| !id.is_empty() && id.bytes().all(|byte| byte.is_ascii_alphanumeric()))
}

fn is_of_account(principal: &str, home: &Home<'_>) -> bool {
    if principal == home.account {
        return true;
    }
    let session = format!("arn:{}:sts::{}:assumed-role/", home.partition, home.account);
    let iam = principal.strip_prefix(&home.arn_prefix());
    let named = iam.is_some_and(|rest| rest == "root" || rest.starts_with("role/") || rest.starts_with("user/"));
    (named || principal.starts_with(&session)) && !principal.contains(['*', '?'])
}

/// Returns whether a condition admits only principals of the account. All operators of a condition must hold, so one
/// operator that ensures this is enough. IAM ignores the case of keys, so a key that is given twice in different cases
/// may have the values of both.
fn is_limited_to(condition: Option<&Json>, home: &Home<'_>) -> bool {
    let Some(operators) = condition.and_then(Json::object) else { return false };
    operators.iter().filter(|(operator, _)| is_once(operator, operators)).any(|(operator, keys)| {
        let Some(keys) = keys.object() else { return false };
        keys.iter().any(|(key, values)| is_once(key, keys) && limits(operator, key, values, home))
    })
}

/// Returns whether an object has `name` in only one spelling of upper and lower case.
fn is_once(name: &str, object: &BTreeMap<String, Json>) -> bool {
    object.keys().filter(|other| other.eq_ignore_ascii_case(name)).count() == 1
}

fn limits(operator: &str, key: &str, values: &Json, home: &Home<'_>) -> bool {
    // A list without values admits nobody or everybody, depending on the operator, so it counts as no limit.
    let Some(values) = values.texts().filter(|values| !values.is_empty()) else { return false };
    match (operator, key.to_ascii_lowercase().as_str()) {
        ("StringEquals", "aws:principalaccount") => values.iter().all(|value| *value == home.account),
        ("ArnEquals" | "ArnLike" | "StringEquals" | "StringLike", "aws:principalarn") => {
            values.iter().all(|value| value.starts_with(&home.arn_prefix()))
        }
        _ => false,
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;
    use crate::install::sample;

    fn allow(principal: &str) -> String {
        format!(
            r#"{{"Version":"2012-10-17","Statement":[{{"Effect":"Allow","Principal":{principal},"Action":"sts:AssumeRole"}}]}}"#
        )
    }

    #[test]
    fn principals_of_the_account_services_and_clusters_are_not_strangers() {
        for principal in [
            r#"{"Service":"ec2.amazonaws.com"}"#,
            r#"{"Service":["eks.amazonaws.com","ec2.amazonaws.com"],"AWS":"222222222222"}"#,
            r#"{"AWS":"arn:aws:iam::222222222222:root"}"#,
            r#"{"AWS":["arn:aws:iam::222222222222:role/fh-acme--globex--maintenance"]}"#,
        ] {
            assert_eq!(issuers(&allow(principal), &sample().home()), Ok(BTreeSet::new()), "{principal}");
        }
        let cluster =
            r#"{"Federated":"arn:aws:iam::222222222222:oidc-provider/oidc.eks.eu-west-1.amazonaws.com/id/AB12"}"#;
        let found = BTreeSet::from(["oidc.eks.eu-west-1.amazonaws.com/id/AB12".to_owned()]);
        assert_eq!(issuers(&allow(cluster), &sample().home()), Ok(found));
    }

    #[test]
    fn strangers_are_found_in_every_place() {
        for principal in [
            r#""*""#,
            r#"{"AWS":"*"}"#,
            r#"{"AWS":"333333333333"}"#,
            r#"{"AWS":["222222222222","arn:aws:iam::333333333333:root"]}"#,
            r#"{"AWS":"arn:aws:iam::222222222222:role/*"}"#,
            r#"{"AWS":"arn:aws-cn:iam::222222222222:root"}"#,
            r#"{"AWS":"AROAEXAMPLE"}"#,
            r#"{"Service":"ec2.amazonaws.com","AWS":"333333333333"}"#,
            r#"{"Service":"rolesanywhere.amazonaws.com"}"#,
            r#"{"Federated":"accounts.google.com"}"#,
            r#"{"Federated":"cognito-identity.amazonaws.com"}"#,
            r#"{"Federated":"arn:aws:iam::222222222222:oidc-provider/token.actions.githubusercontent.com"}"#,
            r#"{"Federated":"arn:aws:iam::333333333333:oidc-provider/oidc.eks.eu-west-1.amazonaws.com/id/AB12"}"#,
            r#"{"Federated":"arn:aws:iam::222222222222:oidc-provider/oidc.eks.us-east-1.amazonaws.com/id/AB12"}"#,
            r#"{"Federated":"arn:aws:iam::222222222222:saml-provider/okta"}"#,
            r#"{"CanonicalUser":"79a59df900b949e55d96a1e698fbacedfd6e09d98eacf8f8d5218e7cd47ef2be"}"#,
            "{\"AWS\":7}",
            "7",
        ] {
            assert!(issuers(&allow(principal), &sample().home()).is_err(), "{principal}");
        }
    }

    #[test]
    fn what_iam_could_read_otherwise_is_refused() {
        let statement = |text: &str| {
            format!(r#"{{"Version":"2012-10-17","Statement":{{"Effect":"Allow",{text}"Action":"sts:AssumeRole"}}}}"#)
        };
        for text in [
            r#""NotPrincipal":{"AWS":"222222222222"},"#,
            r#""Principal":{"AWS":"222222222222"},"principal":{"AWS":"*"},"#,
            r#""Principal":{"AWS":"*"},"Principal":{"AWS":"222222222222"},"#,
            r#""Principal":{"AWS":"*","AWS":"222222222222"},"#,
            "",
        ] {
            assert!(issuers(&statement(text), &sample().home()).is_err(), "{text}");
        }
        assert!(issuers("{}", &sample().home()).is_err());
        assert!(issuers("not json", &sample().home()).is_err());
    }

    #[test]
    fn everybody_under_a_condition_on_the_account_is_the_account() {
        let with = |condition: &str| {
            format!(
                r#"{{"Statement":[{{"Effect":"Allow","Principal":{{"AWS":"*"}},"Action":"sts:AssumeRole","Condition":{condition}}}]}}"#
            )
        };
        for good in [
            r#"{"ArnLike":{"aws:PrincipalArn":"arn:aws:iam::222222222222:role/ebs-csi-*"}}"#,
            r#"{"StringEquals":{"aws:principalaccount":["222222222222"]}}"#,
        ] {
            assert!(issuers(&with(good), &sample().home()).is_ok(), "{good}");
        }
        for bad in [
            r#"{"ArnLike":{"aws:PrincipalArn":["arn:aws:iam::222222222222:role/a","arn:aws:iam::*:role/a"]}}"#,
            r#"{"ArnLikeIfExists":{"aws:PrincipalArn":"arn:aws:iam::222222222222:role/a"}}"#,
            r#"{"ArnNotLike":{"aws:PrincipalArn":"arn:aws:iam::222222222222:role/a"}}"#,
            r#"{"StringEquals":{"sts:ExternalId":"222222222222"}}"#,
            r#"{"StringEquals":{"aws:PrincipalAccount":[]}}"#,
            r#"{"ArnLike":{"aws:PrincipalArn":[]}}"#,
            r#"{"StringEquals":{"aws:PrincipalAccount":"222222222222","aws:principalaccount":"333333333333"}}"#,
            r#"{"StringEquals":{"aws:PrincipalAccount":"222222222222"},"stringEquals":{"aws:PrincipalAccount":"333333333333"}}"#,
            "{}",
        ] {
            assert!(issuers(&with(bad), &sample().home()).is_err(), "{bad}");
        }
    }

    #[test]
    fn whoever_is_denied_is_not_a_stranger() {
        let document = r#"{"Statement":[{"Effect":"Deny","Principal":"*","Action":"sts:AssumeRole"}]}"#;

        assert_eq!(issuers(document, &sample().home()), Ok(BTreeSet::new()));
    }

    proptest! {
        #[test]
        fn no_other_account_gets_in(account in "[0-9]{12}", kind in "(root|role/[a-z]{1,9}|user/[a-z]{1,9})") {
            prop_assume!(account != "222222222222");
            let principal = format!(r#"{{"AWS":["222222222222","arn:aws:iam::{account}:{kind}"]}}"#);

            prop_assert!(issuers(&allow(&principal), &sample().home()).is_err());
        }

        #[test]
        fn no_document_makes_the_reader_panic(document in ".{0,200}") {
            let _ = issuers(&document, &sample().home());
        }
    }
}
