//! Draws a tenant with members in groups and with limits, policies, and requests of these members.

use fastrand::Rng;
use freehold_access::{Class, Principal, Resource, Who, actions};
use freehold_functions::api::routes::{Operation, Route};
use serde_json::json;

use super::rules::{Rule, What, When, Which, Whom};
use super::tenant::{GLOBEX, Ids, Sender, Tenant, UMBRELLA, iam, pipeline};

const PEOPLE: [&str; 4] = ["ana", "anatol", "ben", "cleo"];
const GROUPS: [&str; 3] = ["owner", "developer", "on-call"];
const APPS: [&str; 2] = [GLOBEX.app, UMBRELLA.app];
const INSTALLS: [&str; 2] = [GLOBEX.install, UMBRELLA.install];
const ENVIRONMENTS: [&str; 3] = ["production", "staging", "test"];
/// The role of the sender [`iam`].
const ROLE: &str = "arn:aws:iam::111111111111:role/deployer";
const PIPELINE: &str = "repo:acme/shop:ref:refs/heads/main";

/// Somebody who sends requests, and the principal that they are.
#[derive(Debug)]
pub(crate) struct Caller {
    pub(crate) sender: Sender,
    pub(crate) principal: Principal,
}

/// A tenant with its members, and the environments of its two installs.
pub(crate) struct World {
    pub(crate) tenant: Tenant,
    callers: Vec<Caller>,
    environments: [&'static str; 2],
}

/// A request, and the resource that it is about.
#[derive(Debug)]
pub(crate) struct Asked<'a> {
    pub(crate) caller: &'a Caller,
    pub(crate) route: Route,
    pub(crate) ids: Ids,
    pub(crate) resource: Resource,
}

fn one_of<T: Copy>(all: &[T], draw: &mut Rng) -> T {
    all[draw.usize(..all.len())]
}

fn some_of(all: &[&'static str], draw: &mut Rng) -> Vec<&'static str> {
    all.iter().copied().filter(|_| draw.bool()).collect()
}

impl World {
    pub(crate) async fn draw(draw: &mut Rng) -> Self {
        let tenant = Tenant::new().await;
        let environments = [one_of(&ENVIRONMENTS, draw), one_of(&ENVIRONMENTS, draw)];
        for (install, environment) in INSTALLS.iter().zip(environments) {
            tenant.set_environment(install, environment).await;
        }
        let without_groups = |sender, who| Caller { sender, principal: Principal::without_groups(who) };
        let mut callers = vec![
            without_groups(iam(), Who::Iam { arn: ROLE.to_owned() }),
            without_groups(pipeline(PIPELINE), Who::Pipeline { subject: PIPELINE.to_owned() }),
        ];
        for name in PEOPLE {
            callers.push(member(&tenant, name, draw).await);
        }
        Self { tenant, callers, environments }
    }

    /// Draws a request for an operation about which the policies decide.
    pub(crate) fn request(&self, routes: &[Route], draw: &mut Rng) -> Asked<'_> {
        let (route, number) = (one_of(routes, draw), draw.usize(..INSTALLS.len()));
        let (ids, environment) = ([GLOBEX, UMBRELLA][number], self.environments[number]);
        let resource = resource(route.operation, ids, environment);
        Asked { caller: &self.callers[draw.usize(..self.callers.len())], route, ids, resource }
    }
}

/// Makes a person a member with drawn groups and limits.
async fn member(tenant: &Tenant, name: &str, draw: &mut Rng) -> Caller {
    let (groups, apps, installs) = (some_of(&GROUPS, draw), some_of(&APPS, draw), some_of(&INSTALLS, draw));
    let sender = tenant.join(name, &groups, &json!({ "apps": apps, "installs": installs })).await;
    let mut principal = Principal::without_groups(Who::Person { subject: name.to_owned() });
    principal.groups = groups.iter().map(|group| group.parse().unwrap()).collect();
    principal.apps = apps.iter().map(|app| app.parse().unwrap()).collect();
    principal.installs = installs.iter().map(|install| install.parse().unwrap()).collect();
    Caller { sender, principal }
}

/// Returns the resource of a request whose path and body have these ids, for an install in this environment.
fn resource(operation: Operation, ids: Ids, environment: &str) -> Resource {
    let app = ids.app.parse().unwrap();
    match (super::class(operation).1, operation) {
        ("tenant", _) => Resource::Tenant,
        ("app", _) => Resource::App { app },
        // The body of the request has the name and the labels of the new install.
        (_, Operation::CreateInstall) => {
            let environment = if ids.install == UMBRELLA.install { "staging" } else { "production" };
            let install = format!("{}-2", ids.install).parse().unwrap();
            Resource::Install { install, app, environment: environment.to_owned() }
        }
        _ => Resource::Install { install: ids.install.parse().unwrap(), app, environment: environment.to_owned() },
    }
}

/// Draws policies. The first one lets the IAM principals of the account change the policies, and none forbids it: the
/// API refuses policies that nobody could change.
pub(crate) fn rules(draw: &mut Rng) -> Vec<Rule> {
    let set_policies = actions().iter().find(|action| action.name == "set_policies").unwrap();
    let what = What::One(set_policies);
    let mut rules = vec![Rule { permits: true, whom: Whom::Iam, what, which: Which::All, when: When::Always }];
    let role = Principal::without_groups(Who::Iam { arn: ROLE.to_owned() });
    for _ in 0..draw.usize(2..9) {
        let rule = rule(draw);
        let locks_out = !rule.permits && rule.applies(&role, set_policies, &Resource::Tenant);
        if rule.can_apply() && !locks_out {
            rules.push(rule);
        }
    }
    rules
}

fn rule(draw: &mut Rng) -> Rule {
    let whom = match draw.u8(..7) {
        0 => Whom::Anybody,
        1 => Whom::People,
        2 => Whom::Pipelines,
        3 => Whom::Iam,
        4 | 5 => Whom::InGroup(one_of(&GROUPS, draw)),
        _ => Whom::Named(one_of(&PEOPLE, draw)),
    };
    let what = match draw.u8(..4) {
        0 | 1 => What::Anything,
        2 => What::Of(one_of(&Class::ALL, draw)),
        _ => What::One(&actions()[draw.usize(..actions().len())]),
    };
    let which = match draw.u8(..6) {
        0 | 1 => Which::All,
        2 => Which::Tenant,
        3 => Which::InApp(one_of(&APPS, draw)),
        4 => Which::OneInstall(one_of(&INSTALLS, draw)),
        _ => Which::Installs,
    };
    let when = match draw.u8(..8) {
        0 => When::NameBegins("ana"),
        1 => When::InEnvironment(one_of(&ENVIRONMENTS, draw)),
        2 => When::NotInEnvironment(one_of(&ENVIRONMENTS, draw)),
        3 => When::OwnInstall,
        4 => When::OwnApp,
        _ => When::Always,
    };
    Rule { permits: draw.u8(..4) > 0, whom, what, which, when }
}
