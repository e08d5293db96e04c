//! Decides which request is sent to IAM when a job requests a change.

use crate::answer::Answer;
use crate::clusters::Clusters;
use crate::held_policies;
use crate::install::{Install, RESERVED, SHOWN_BOUNDARY, is_reserved};
use crate::ownership::{self, Lookup};
use crate::query::Query;
use crate::refusal::Refusal;
use crate::rules::Target;
use crate::services;
use crate::trust;
use crate::upstream::Upstream;

/// The decision about a requested change.
#[derive(Debug)]
pub(crate) enum Plan {
    /// The job gets this response: the error of IAM for the request that read the resource.
    Answered(Answer),
    /// This request is sent to IAM.
    Send(Query),
    /// The job gets the response that its change was made, but IAM gets the request `sent`. The text `instead` explains
    /// this in the audit record.
    Hold { sent: Query, instead: String },
}

/// The values on which a decision depends.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Planner<'a> {
    pub(crate) install: &'a Install,
    pub(crate) upstream: &'a Upstream,
    pub(crate) clusters: &'a Clusters,
}

impl Planner<'_> {
    /// Decides about a request to change `target`. A request with other parameters than `parameters` is refused.
    pub(crate) async fn plan(&self, target: Target, parameters: &[&str], mut query: Query) -> Result<Plan, Refusal> {
        if let Some(name) = query.names().find(|name| !parameters.contains(name)) {
            let action = query.action();
            return Err(Refusal::Malformed(format!(
                "`{action}` has no parameter `{name}` that the runner knows, so the request is not passed on; leave \
                the parameter out"
            )));
        }
        if let Some(name) = query.unclear() {
            let reason = format!("IAM could read parameter `{name}` in two ways; write it as the AWS SDKs do");
            return Err(Refusal::Malformed(reason));
        }
        self.without_reserved(&query)?;
        self.note_asked(target, &mut query)?;
        match target {
            Target::NewRole => self.new_role(query).await,
            Target::NewPolicy => self.new_resource("PolicyName", query),
            Target::NewProfile => self.new_resource("InstanceProfileName", query),
            Target::NewProvider => self.new_provider(query).await,
            Target::LinkedRole => self.linked_role(query),
            Target::Role => self.role(query).await,
            Target::Trust => {
                self.trust(query.required("PolicyDocument")?).await?;
                self.role(query).await
            }
            Target::Attachment => self.attachment(query).await,
            Target::Boundary => self.boundary(query).await,
            Target::Policy => ownership::policy(query.required("PolicyArn")?, self.install).map(|()| Plan::Send(query)),
            Target::Profile => self.profile(query).await,
            Target::ProfileRole => self.profile_role(query).await,
            Target::Provider => {
                let look =
                    ownership::provider(query.required("OpenIDConnectProviderArn")?, self.install, self.upstream)
                        .await?;
                Ok(sent_if_own(look, query))
            }
        }
    }

    async fn new_role(&self, mut query: Query) -> Result<Plan, Refusal> {
        self.trust(query.required("AssumeRolePolicyDocument")?).await?;
        let mut notes = Vec::new();
        if let Some(asked) = query.get("PermissionsBoundary") {
            self.own_boundary(asked)?;
            notes.push((SHOWN_BOUNDARY.to_owned(), "true".to_owned()));
        }
        query.set("PermissionsBoundary", self.install.boundary.clone());
        query.set("Path", self.install.real_path(query.required("RoleName")?, query.get("Path")));
        self.mark(&mut query, notes).map(|()| Plan::Send(query))
    }

    fn new_resource(&self, name: &str, mut query: Query) -> Result<Plan, Refusal> {
        query.set("Path", self.install.real_path(query.required(name)?, query.get("Path")));
        self.mark(&mut query, Vec::new()).map(|()| Plan::Send(query))
    }

    async fn new_provider(&self, mut query: Query) -> Result<Plan, Refusal> {
        let url = query.required("Url")?;
        let issuer = url.strip_prefix("https://").filter(|issuer| trust::is_issuer(issuer, &self.install.home()));
        let stranger = || {
            Refusal::Denied(format!(
                "`{url}` is not the issuer of an EKS cluster in {}, so its identities are from outside of the \
                 account; ask the customer to make the identity provider",
                self.install.region
            ))
        };
        self.clusters.check(issuer.ok_or_else(stranger)?, self.upstream).await?;
        self.mark_provider(&mut query).map(|()| Plan::Send(query))
    }

    fn linked_role(&self, query: Query) -> Result<Plan, Refusal> {
        let service = query.required("AWSServiceName")?;
        if services::may_be_linked(service, &self.install.region) {
            return Ok(Plan::Send(query));
        }
        Err(Refusal::Denied(format!(
            "service `{service}` is not among those whose service-linked role a job may make; ask the customer to make it"
        )))
    }

    async fn role(&self, query: Query) -> Result<Plan, Refusal> {
        let look = ownership::role(query.required("RoleName")?, self.install, self.upstream).await?;
        Ok(sent_if_own(look, query))
    }

    async fn attachment(&self, query: Query) -> Result<Plan, Refusal> {
        let (role, policy) = (query.required("RoleName")?, query.required("PolicyArn")?);
        if !self.install.stack_roles.contains(role) {
            return self.role(query).await;
        }
        if !self.install.owns_policy(policy) {
            return Err(Refusal::Denied(format!(
                "role `{role}` belongs to the install stack, and the customer agreed to its permissions; add policy \
                 `{policy}` to the permissions of the app config instead"
            )));
        }
        let instead = format!(
            "policy `{policy}` is not attached: the contract defines what role `{role}` may do; add the policy to the \
             permissions of the app config instead"
        );
        Ok(Plan::Hold { sent: held_policies::request(query.action(), role, policy), instead })
    }

    async fn boundary(&self, query: Query) -> Result<Plan, Refusal> {
        let name = query.required("RoleName")?;
        if let Some(asked) = query.get("PermissionsBoundary") {
            self.own_boundary(asked)?;
        }
        let role = match ownership::role(name, self.install, self.upstream).await? {
            Lookup::Own(role) => role,
            Lookup::Answered(answer) => return Ok(Plan::Answered(answer)),
        };
        let hold = |sent, instead: &str| Ok(Plan::Hold { sent, instead: instead.to_owned() });
        if query.action() == "PutRolePermissionsBoundary" {
            query.required("PermissionsBoundary")?;
            let tag = [("RoleName", name), ("Tags.member.1.Key", SHOWN_BOUNDARY), ("Tags.member.1.Value", "true")];
            return hold(
                Query::new("TagRole", &tag),
                "the role already has this boundary; from now on, IAM's responses about the role contain it",
            );
        }
        if role.shows_boundary {
            let untag = Query::new("UntagRole", &[("RoleName", name), ("TagKeys.member.1", SHOWN_BOUNDARY)]);
            return hold(
                untag,
                "the role keeps its boundary; from now on, IAM's responses about the role do not contain it",
            );
        }
        Err(Refusal::Denied(format!(
            "role `{name}` keeps the install's boundary as long as it exists; delete the role if it is no longer needed"
        )))
    }

    async fn profile(&self, query: Query) -> Result<Plan, Refusal> {
        let look = ownership::profile(query.required("InstanceProfileName")?, self.install, self.upstream).await?;
        Ok(sent_if_own(look, query))
    }

    async fn profile_role(&self, query: Query) -> Result<Plan, Refusal> {
        if query.action() == "AddRoleToInstanceProfile"
            && let Lookup::Answered(answer) =
                ownership::role(query.required("RoleName")?, self.install, self.upstream).await?
        {
            return Ok(Plan::Answered(answer));
        }
        self.profile(query).await
    }

    /// Refuses tags that only the runner may set. The owner tag of the install and the given tags may be set, because the
    /// runner itself makes them default tags of Terraform's provider for AWS.
    fn without_reserved(&self, query: &Query) -> Result<(), Refusal> {
        let given = query.tags()?;
        let set = given.iter().filter(|(key, value)| !self.install.may_be_set(key, value)).map(|(key, _)| key.as_str());
        match set.chain(query.list("TagKeys")).find(|key| is_reserved(key)) {
            None => Ok(()),
            Some(key) => Err(Refusal::Denied(format!(
                "tag `{key}` begins with `{RESERVED}`, which is reserved for the runner; use another key"
            ))),
        }
    }

    /// Adds a note for each tag of every resource of the install that the job itself sets. Reads show these tags:
    /// Terraform would set them again in each apply if they were hidden.
    fn note_asked(&self, target: Target, query: &mut Query) -> Result<(), Refusal> {
        let mut tags = query.tags()?;
        let note = |key: &str| self.install.note_of_asked(key, target == Target::Provider);
        let notes: Vec<(String, String)> = tags.iter().filter_map(|(key, _)| note(key)).collect();
        if !notes.is_empty() {
            tags.extend(notes);
            query.set_tags(&tags);
        }
        Ok(())
    }

    async fn trust(&self, document: &str) -> Result<(), Refusal> {
        let rule = |stranger| {
            Refusal::Denied(format!("a role of an install must trust nobody outside of the account: {stranger}"))
        };
        for issuer in trust::issuers(document, &self.install.home()).map_err(rule)? {
            self.clusters.check(&issuer, self.upstream).await?;
        }
        Ok(())
    }

    /// Refuses a request for a boundary other than the install's. The requested boundary is not silently replaced,
    /// because it may be narrower, and the module's author relies on it.
    fn own_boundary(&self, asked: &str) -> Result<(), Refusal> {
        if asked == self.install.boundary {
            return Ok(());
        }
        Err(Refusal::Denied(format!(
            "a role of this install must have the boundary `{}`, not `{asked}`; leave the boundary out, and write \
             what the role must not do as a `Deny` into its policies",
            self.install.boundary
        )))
    }

    /// Adds the install's tags, and `notes` as further tags, to a new resource. IAM refuses a key that is given twice.
    fn mark(&self, query: &mut Query, notes: Vec<(String, String)>) -> Result<(), Refusal> {
        let given = query.tags()?;
        let missing = self.install.tags.iter().filter(|(key, _)| !given.iter().any(|(known, _)| known == *key));
        let missing = missing.map(|(key, value)| (key.clone(), value.clone()));
        let tags: Vec<(String, String)> = given.iter().cloned().chain(missing).chain(notes).collect();
        query.set_tags(&tags);
        Ok(())
    }

    /// Adds the install's tags and the owner tag to a new identity provider. A provider has no path, so the boundary of
    /// another install recognizes it by the owner tag. Two vendors may each have an install of the same name.
    fn mark_provider(&self, query: &mut Query) -> Result<(), Refusal> {
        let owner = self.install.owner_to_add(&query.tags()?);
        self.mark(query, owner)
    }
}

fn sent_if_own<T>(look: Lookup<T>, query: Query) -> Plan {
    match look {
        Lookup::Own(_) => Plan::Send(query),
        Lookup::Answered(answer) => Plan::Answered(answer),
    }
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeMap;
    use std::sync::LazyLock;

    use aws_credential_types::Credentials;
    use aws_credential_types::provider::SharedCredentialsProvider;
    use proptest::prelude::*;

    use super::*;
    use crate::install::sample;
    use crate::rules::{Rule, rule};
    use crate::upstream::Endpoint;

    const TRUST: &str =
        r#"{"Statement":[{"Effect":"Allow","Principal":{"Service":"ec2.amazonaws.com"},"Action":"sts:AssumeRole"}]}"#;

    /// Made once: a client reads the machine's certificates.
    static UPSTREAM: LazyLock<Upstream> = LazyLock::new(|| Upstream {
        http: freehold_oci::client().unwrap(),
        iam: Endpoint::iam("eu-west-1").unwrap(),
        eks: Endpoint::eks("eu-west-1").unwrap(),
        credentials: SharedCredentialsProvider::new(Credentials::new("a", "b", None, None, "test")),
    });

    /// Plans a request for which nothing has to be looked at.
    fn plan(query: Query) -> Result<Plan, Refusal> {
        let (install, clusters) = (sample(), Clusters::default());
        let planner = Planner { install: &install, upstream: &UPSTREAM, clusters: &clusters };
        let Rule::Write(target, parameters) = rule(query.action()) else { panic!("{} is not a write", query.action()) };
        let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap();
        runtime.block_on(planner.plan(target, parameters, query))
    }

    fn sent(plan: Result<Plan, Refusal>) -> Query {
        match plan {
            Ok(Plan::Send(query)) => query,
            other => panic!("{other:?}"),
        }
    }

    proptest! {
        #[test]
        fn every_new_role_carries_boundary_path_and_tags(
            path in proptest::option::of("/([a-z]{1,8}/){0,3}"),
            tags in proptest::collection::btree_map("[A-Za-z/.]{1,12}", "[a-z ]{0,12}", 0..6),
            named in any::<bool>(),
        ) {
            let mut query = Query::new("CreateRole", &[("RoleName", "a"), ("AssumeRolePolicyDocument", TRUST)]);
            let given: Vec<(String, String)> = tags.into_iter().collect();
            query.set_tags(&given);
            if let Some(path) = &path {
                query.set("Path", path.clone());
            }
            if named {
                query.set("PermissionsBoundary", sample().boundary);
            }

            let query = sent(plan(query));

            let carried: BTreeMap<String, String> = query.tags().unwrap().into_iter().collect();
            prop_assert_eq!(query.get("PermissionsBoundary").map(str::to_owned), Some(sample().boundary));
            prop_assert_eq!(query.get("Path").and_then(|real| sample().shown_path("a", real)), Some(path.unwrap_or("/".into())));
            prop_assert!(sample().tags.iter().chain(given.iter().map(|(key, value)| (key, value))).all(|(key, value)| carried.get(key) == Some(value)));
            prop_assert_eq!(carried.contains_key(SHOWN_BOUNDARY), named);
        }

        #[test]
        fn no_other_boundary_gets_through(boundary in "[ -~]{0,80}") {
            prop_assume!(boundary != sample().boundary);
            let parameters = [("RoleName", "a"), ("AssumeRolePolicyDocument", TRUST), ("PermissionsBoundary", &boundary)];

            let refused = plan(Query::new("CreateRole", &parameters));

            prop_assert!(matches!(refused, Err(Refusal::Denied(_))));
        }
    }

    #[test]
    fn a_parameter_that_is_not_known_is_not_passed_on() {
        let parameters = [("RoleName", "a"), ("AssumeRolePolicyDocument", TRUST), ("permissionsBoundary", "none")];

        let refused = plan(Query::new("CreateRole", &parameters)).unwrap_err();

        assert!(refused.to_string().contains("no parameter `permissionsBoundary`"), "{refused}");
    }

    #[test]
    fn a_parameter_that_iam_could_read_in_two_ways_is_not_passed_on() {
        let parameters =
            [("RoleName", "a"), ("AssumeRolePolicyDocument", TRUST), ("PermissionsBoundary.member.1", "none")];

        let refused = plan(Query::new("CreateRole", &parameters)).unwrap_err();

        assert!(refused.to_string().contains("could read parameter `PermissionsBoundary.member.1`"), "{refused}");
    }

    #[test]
    fn of_the_reserved_tags_only_the_own_owner_is_passed_on() {
        let new = |value: &str| {
            let parameters = [
                ("RoleName", "a"),
                ("AssumeRolePolicyDocument", TRUST),
                ("Tags.member.1.Key", "freehold:owner"),
                ("Tags.member.1.Value", value),
            ];
            plan(Query::new("CreateRole", &parameters))
        };

        let sent = new("acme--globex").unwrap();
        let refused = new("acme--globex-2").unwrap_err();

        assert!(
            matches!(&sent, Plan::Send(query) if query.tags().unwrap().iter().any(|(key, _)| key == "freehold:owner"))
        );
        assert!(refused.to_string().contains("is reserved for the runner"), "{refused}");
    }

    #[test]
    fn a_tag_of_the_install_that_a_job_sets_itself_is_sent_once_with_a_note() {
        let parameters = [
            ("RoleName", "a"),
            ("AssumeRolePolicyDocument", TRUST),
            ("Tags.member.1.Key", "freehold:install"),
            ("Tags.member.1.Value", "globex"),
        ];

        let query = sent(plan(Query::new("CreateRole", &parameters)));

        let mut tags = query.tags().unwrap();
        tags.sort();
        let expected =
            [("freehold:asked:freehold:install", "true"), ("freehold:install", "globex"), ("freehold:tenant", "acme")];
        assert_eq!(tags, expected.map(|(key, value)| (key.to_owned(), value.to_owned())));
    }

    /// Returns the tags of a request after `change`, sorted. `given` are its tags before.
    fn tags_after(
        action: &str,
        given: &[(&str, &str)],
        change: impl Fn(&Planner<'_>, &mut Query) -> Result<(), Refusal>,
    ) -> Vec<(String, String)> {
        let (install, clusters) = (sample(), Clusters::default());
        let planner = Planner { install: &install, upstream: &UPSTREAM, clusters: &clusters };
        let mut query = Query::new(action, &[]);
        let given: Vec<(String, String)> = given.iter().map(|(key, value)| ((*key).into(), (*value).into())).collect();
        query.set_tags(&given);
        change(&planner, &mut query).unwrap();
        let mut tags = query.tags().unwrap();
        tags.sort();
        tags
    }

    #[test]
    fn a_new_provider_has_one_owner_and_a_note_if_the_job_did_not_set_it() {
        let marked = |given: &[(&str, &str)]| {
            tags_after("CreateOpenIDConnectProvider", given, |planner, query| planner.mark_provider(query))
        };
        let (ours, owner) =
            ([("freehold:install", "globex"), ("freehold:tenant", "acme")], ("freehold:owner", "acme--globex"));
        let expected = |more: &[(&str, &str)]| {
            let mut tags: Vec<(String, String)> =
                ours.iter().chain(more).map(|(key, value)| ((*key).to_owned(), (*value).to_owned())).collect();
            tags.sort();
            tags
        };

        assert_eq!(marked(&[]), expected(&[owner, ("freehold:added:freehold:owner", "true")]));
        assert_eq!(marked(&[owner]), expected(&[owner]));
    }

    #[test]
    fn an_owner_that_a_job_sets_on_a_provider_is_noted_and_on_a_role_is_not() {
        let owner = ("freehold:owner", "acme--globex");
        let keys = |action: &str, target: Target| -> Vec<String> {
            let tags = tags_after(action, &[owner], |planner, query| planner.note_asked(target, query));
            tags.into_iter().map(|(key, _)| key).collect()
        };

        assert_eq!(
            keys("TagOpenIDConnectProvider", Target::Provider),
            ["freehold:asked:freehold:owner", "freehold:owner"]
        );
        assert_eq!(keys("TagRole", Target::Role), ["freehold:owner"]);
    }

    #[test]
    fn a_policy_for_a_role_of_the_stack_is_held() {
        let policy = "arn:aws:iam::222222222222:policy/freehold/acme--globex/ecr-access";
        let parameters = [("RoleName", "fh-acme--globex--maintenance"), ("PolicyArn", policy)];

        let Ok(Plan::Hold { sent, .. }) = plan(Query::new("AttachRolePolicy", &parameters)) else { panic!("not held") };

        assert_eq!((sent.action(), sent.get("PolicyArn")), ("TagPolicy", Some(policy)));
        assert_eq!(sent.get("Tags.member.1.Key"), Some("freehold:held:fh-acme--globex--maintenance"));
    }
}
