//! The decision about one request, and questions that are answered by such decisions.

use std::collections::{BTreeSet, HashMap, HashSet};

use cedar_policy::{Context, Entities, Entity, EntityUid, Request, RestrictedExpression};

use crate::actions::{About, actions};
use crate::policies::Policies;
use crate::principal::{Group, Principal, Resource};
use crate::vocabulary::{Vocabulary, uid};
use crate::who::Who;

/// The id of the only entity of type `Tenant`.
const TENANT: &str = "tenant";
/// The action that whoever administers the tenant may do.
const ADMINISTERS: &str = "set_policies";
/// An IAM principal that stands for any of the account: only a policy about all of them permits it something.
const ANY_ARN: &str = "arn:aws:iam::000000000000:role/any";

/// The stack that an evaluation needs, and the one that it gets when less is left. Cedar denies what it has no stack for.
const LEAST_STACK_BYTES: usize = 1024 * 1024;
const STACK_BYTES: usize = 8 * 1024 * 1024;

/// What the policies decide about one request.
#[derive(Debug, Clone, PartialEq, Eq)]
#[must_use]
pub struct Decision {
    pub is_allowed: bool,
    /// The names of the policies that decided, sorted: those that permit, or those that forbid.
    pub policies: Vec<String>,
    /// The reasons why the request or a policy could not be evaluated. Each of them denies the request.
    pub errors: Vec<String>,
}

impl Policies {
    /// Decides whether `principal` may do `action` with `resource`.
    pub fn decide(&self, principal: &Principal, action: &str, resource: &Resource) -> Decision {
        self.decide_run(principal, action, "", resource)
    }

    /// Decides as [`Policies::decide`] about `run_action` or `run_runbook`, whose policies may depend on the name of
    /// the action or runbook that would run. Other actions have no such name.
    pub fn decide_run(&self, principal: &Principal, action: &str, run: &str, resource: &Resource) -> Decision {
        let decision = Case::new(principal, resource).and_then(|case| case.decide(self, action, run));
        decision.unwrap_or_else(|error| Decision { is_allowed: false, policies: Vec::new(), errors: vec![error] })
    }

    /// Returns the actions that `principal` may do with `resource`, in the order of [`actions`].
    pub fn permitted_actions(&self, principal: &Principal, resource: &Resource) -> Vec<&'static str> {
        // INVARIANT: the case can be made; if it cannot, nothing is permitted.
        let Ok(case) = Case::new(principal, resource) else { return Vec::new() };
        let about = actions().iter().filter(|action| action.is_about(resource.about()));
        about
            .filter(|action| case.decide(self, action.name, "").is_ok_and(|decision| decision.is_allowed))
            .map(|action| action.name)
            .collect()
    }

    /// Returns whether somebody can change the policies: one of `members`, or every IAM principal of the account.
    pub fn somebody_administers(&self, members: &[Principal]) -> bool {
        let any = Principal::without_groups(Who::Iam { arn: ANY_ARN.to_owned() });
        let mut all = members.iter().chain([&any]);
        all.any(|member| self.decide(member, ADMINISTERS, &Resource::Tenant).is_allowed)
    }

    /// Returns the groups that the policies name.
    fn groups(&self) -> BTreeSet<Group> {
        let Ok(vocabulary) = Vocabulary::get() else { return BTreeSet::new() };
        let literals = self.set.policies().flat_map(cedar_policy::Policy::entity_literals);
        let groups = literals.filter(|entity| entity.type_name() == &vocabulary.group);
        groups.filter_map(|group| group.id().unescaped().parse().ok()).collect()
    }
}

/// Returns the groups whose members may do `action` with `resource`, sorted. The ready-made groups and those that the
/// policies name are tried. A member who is limited to apps or installs needs this resource among them.
pub fn groups_with(policies: &Policies, action: &str, resource: &Resource) -> Vec<Group> {
    let mut groups = policies.groups();
    groups.extend(Group::READY_MADE);
    let may = |group: &Group| policies.decide(&member_of(group, resource), action, resource).is_allowed;
    groups.into_iter().filter(may).collect()
}

/// Returns a person in `group` with `resource` among the apps or installs.
fn member_of(group: &Group, resource: &Resource) -> Principal {
    let mut member = Principal::without_groups(Who::Person { subject: String::new() });
    member.groups.insert(group.clone());
    match resource {
        Resource::Tenant => {}
        Resource::App { app } => {
            member.apps.insert(app.clone());
        }
        Resource::Install { install, .. } => {
            member.installs.insert(install.clone());
        }
    }
    member
}

/// A principal and a resource as entities.
struct Case {
    vocabulary: &'static Vocabulary,
    principal: EntityUid,
    resource: EntityUid,
    about: About,
    entities: Entities,
}

impl Case {
    fn new(principal: &Principal, resource: &Resource) -> Result<Self, String> {
        let vocabulary = Vocabulary::get()?;
        let (principal, who) = principal_entity(vocabulary, principal)?;
        let (resource_uid, mut entities) = resource_entities(vocabulary, resource)?;
        entities.push(who);
        let entities =
            Entities::from_entities(entities, Some(vocabulary.schema())).map_err(|error| error.to_string())?;
        Ok(Self { vocabulary, principal, resource: resource_uid, about: resource.about(), entities })
    }

    fn decide(&self, policies: &Policies, action: &str, run: &str) -> Result<Decision, String> {
        let known = actions().iter().find(|known| known.name == action);
        let known = known.ok_or_else(|| "there is no such action; docs/access.md lists the actions".to_owned())?;
        if !known.is_about(self.about) {
            return Err(format!("`{}` is not an action of a resource of kind {}", known.name, self.about.as_str()));
        }
        let request = Request::new(
            self.principal.clone(),
            uid(&self.vocabulary.action, known.name),
            self.resource.clone(),
            context(known.name, run)?,
            Some(self.vocabulary.schema()),
        );
        let request = request.map_err(|error| error.to_string())?;
        let authorizer = &self.vocabulary.authorizer;
        let response = stacker::maybe_grow(LEAST_STACK_BYTES, STACK_BYTES, || {
            authorizer.is_authorized(&request, &policies.set, &self.entities)
        });
        let mut deciding: Vec<String> = response.diagnostics().reason().map(ToString::to_string).collect();
        deciding.sort();
        // A policy that fails is left out, also if it is a `forbid`; so each failure denies.
        let errors: Vec<String> = response.diagnostics().errors().map(ToString::to_string).collect();
        let is_allowed = response.decision() == cedar_policy::Decision::Allow && errors.is_empty();
        Ok(Decision { is_allowed, policies: deciding, errors })
    }
}

/// Returns the context of a request: the name of what runs, for the two actions that run something.
fn context(action: &str, run: &str) -> Result<Context, String> {
    let name = match action {
        "run_action" => "action",
        "run_runbook" => "runbook",
        _ => return Ok(Context::empty()),
    };
    let pair = (name.to_owned(), RestrictedExpression::new_string(run.to_owned()));
    Context::from_pairs([pair]).map_err(|error| error.to_string())
}

fn principal_entity(vocabulary: &Vocabulary, principal: &Principal) -> Result<(EntityUid, Entity), String> {
    let (kind, id) = vocabulary.principal(&principal.who);
    let text = |text: &str| RestrictedExpression::new_string(text.to_owned());
    let apps = principal.apps.iter().map(|app| uid(&vocabulary.app, app.as_str()));
    let installs = principal.installs.iter().map(|install| uid(&vocabulary.install, install.as_str()));
    let attributes = HashMap::from([
        ("name".to_owned(), text(&principal.name)),
        (id.to_owned(), text(principal.who.id())),
        ("apps".to_owned(), RestrictedExpression::new_set(apps.map(RestrictedExpression::new_entity_uid))),
        ("installs".to_owned(), RestrictedExpression::new_set(installs.map(RestrictedExpression::new_entity_uid))),
    ]);
    let groups = principal.groups.iter().map(|group| uid(&vocabulary.group, group.as_str())).collect();
    let own = uid(kind, principal.who.id());
    let entity = Entity::new(own.clone(), attributes, groups).map_err(|error| error.to_string())?;
    Ok((own, entity))
}

/// Returns the resource, and its entity with those that it is in.
fn resource_entities(vocabulary: &Vocabulary, resource: &Resource) -> Result<(EntityUid, Vec<Entity>), String> {
    let tenant = uid(&vocabulary.tenant, TENANT);
    let mut entities = vec![Entity::with_uid(tenant.clone())];
    let app_entity = |app: &EntityUid| Entity::new_no_attrs(app.clone(), HashSet::from([tenant.clone()]));
    let own = match resource {
        Resource::Tenant => tenant.clone(),
        Resource::App { app } => {
            let app = uid(&vocabulary.app, app.as_str());
            entities.push(app_entity(&app));
            app
        }
        Resource::Install { install, app, environment } => {
            let app = uid(&vocabulary.app, app.as_str());
            entities.push(app_entity(&app));
            let own = uid(&vocabulary.install, install.as_str());
            let environment = RestrictedExpression::new_string(environment.clone());
            let attributes = HashMap::from([("environment".to_owned(), environment)]);
            let install = Entity::new(own.clone(), attributes, HashSet::from([app, tenant.clone()]));
            entities.push(install.map_err(|error| error.to_string())?);
            own
        }
    };
    Ok((own, entities))
}
