//! Wrong evaluations of policies, each with one mistake. The decisions of the API have to differ from each of them.

use freehold_access::{ActionInfo, Class, Principal, Resource, Who, actions};

use super::rules::{Rule, When, Which, Whom, evaluated};

/// Returns whether the policies permit the request, with one mistake.
type Evaluation = fn(&[Rule], Principal, &ActionInfo, &Resource) -> bool;

/// The wrong evaluations, each with the name of its mistake.
pub(crate) const MUTANTS: [(&str, Evaluation); 13] = [
    ("the groups of the member are dropped", |rules, mut principal, asked, resource| {
        principal.groups.clear();
        evaluated(rules, &principal, asked, resource).0
    }),
    ("the name of the member is dropped", |rules, mut principal, asked, resource| {
        principal.name.clear();
        evaluated(rules, &principal, asked, resource).0
    }),
    ("the apps of the member are dropped", |rules, mut principal, asked, resource| {
        principal.apps.clear();
        evaluated(rules, &principal, asked, resource).0
    }),
    ("the installs of the member are dropped", |rules, mut principal, asked, resource| {
        principal.installs.clear();
        evaluated(rules, &principal, asked, resource).0
    }),
    ("everybody is a person", |rules, mut principal, asked, resource| {
        principal.who = Who::Person { subject: principal.who.id().to_owned() };
        evaluated(rules, &principal, asked, resource).0
    }),
    ("the environment of the install is ignored", |rules, principal, asked, resource| {
        let mut resource = resource.clone();
        if let Resource::Install { environment, .. } = &mut resource {
            *environment = Resource::PRODUCTION.to_owned();
        }
        evaluated(rules, &principal, asked, &resource).0
    }),
    ("the app of the install is ignored", |rules, principal, asked, resource| {
        let mut resource = resource.clone();
        if let Resource::Install { app, .. } = &mut resource {
            *app = "another-app".parse().unwrap();
        }
        evaluated(rules, &principal, asked, &resource).0
    }),
    ("each action is one that reads", |rules, principal, asked, resource| {
        let reads = |action: &&ActionInfo| action.about == asked.about && action.class == Class::Read;
        let read = actions().iter().find(reads).unwrap();
        let read = ActionInfo { has_builds: asked.has_builds, ..*read };
        evaluated(rules, &principal, &read, resource).0
    }),
    ("forbid is ignored", |rules, principal, asked, resource| {
        rules.iter().any(|rule| rule.permits && rule.applies(&principal, asked, resource))
    }),
    ("the first policy that applies decides", |rules, principal, asked, resource| {
        rules.iter().find(|rule| rule.applies(&principal, asked, resource)).is_some_and(|rule| rule.permits)
    }),
    ("what no policy forbids is permitted", |rules, principal, asked, resource| {
        !rules.iter().any(|rule| !rule.permits && rule.applies(&principal, asked, resource))
    }),
    ("conditions are ignored", |rules, principal, asked, resource| {
        evaluated(&changed(rules, |rule| rule.when = When::Always), &principal, asked, resource).0
    }),
    ("the scopes of principals and resources are ignored", |rules, principal, asked, resource| {
        let changed = changed(rules, |rule| (rule.whom, rule.which) = (Whom::Anybody, Which::All));
        evaluated(&changed, &principal, asked, resource).0
    }),
];

fn changed(rules: &[Rule], change: impl Fn(&mut Rule)) -> Vec<Rule> {
    let mut rules = rules.to_vec();
    rules.iter_mut().for_each(change);
    rules
}
