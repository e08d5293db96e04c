//! Every decision against a second evaluation: policies that are drawn from a small grammar mean what their text means.

use freehold_access::{Class, Policies, Principal, Resource, Who, actions};
use proptest::prelude::*;
use proptest::sample::{select, subsequence};

use super::rules::{Rule, What, When, Which, Whom, evaluated};

const GROUPS: [&str; 3] = ["owner", "developer", "on-call"];
const APPS: [&str; 2] = ["web", "queue"];
/// Installs and their apps.
const INSTALLS: [(&str, &str); 3] = [("globex", "web"), ("initech", "web"), ("hooli", "queue")];
const ENVIRONMENTS: [&str; 3] = ["production", "staging", ""];
const NAMES: [&str; 3] = ["ana", "anatol", "ben"];

fn rules() -> impl Strategy<Value = Vec<Rule>> {
    let whom = prop_oneof![
        Just(Whom::Anybody),
        Just(Whom::People),
        Just(Whom::Pipelines),
        Just(Whom::Iam),
        select(GROUPS.to_vec()).prop_map(Whom::InGroup),
        select(NAMES.to_vec()).prop_map(Whom::Named),
    ];
    let what = prop_oneof![
        Just(What::Anything),
        select(Class::ALL.to_vec()).prop_map(What::Of),
        (0..actions().len()).prop_map(|number| What::One(&actions()[number])),
    ];
    let which = prop_oneof![
        Just(Which::All),
        Just(Which::Tenant),
        select(APPS.to_vec()).prop_map(Which::InApp),
        select(INSTALLS.to_vec()).prop_map(|(install, _)| Which::OneInstall(install)),
        Just(Which::Installs),
    ];
    let when = prop_oneof![
        3 => Just(When::Always),
        1 => Just(When::NameBegins("ana")),
        1 => select(ENVIRONMENTS.to_vec()).prop_map(When::InEnvironment),
        1 => select(ENVIRONMENTS.to_vec()).prop_map(When::NotInEnvironment),
        1 => Just(When::OwnInstall),
        1 => Just(When::OwnApp),
    ];
    let permits = prop_oneof![3 => Just(true), 1 => Just(false)];
    let rule = (permits, whom, what, which, when);
    let rule = rule.prop_map(|(permits, whom, what, which, when)| Rule { permits, whom, what, which, when });
    prop::collection::vec(rule, 0..6)
}

fn principals() -> impl Strategy<Value = Principal> {
    let limits = (subsequence(APPS.to_vec(), 0..=2), subsequence(INSTALLS.to_vec(), 0..=3));
    let groups = subsequence(GROUPS.to_vec(), 0..=3);
    (0..3_u8, select(NAMES.to_vec()), groups, limits).prop_map(|(kind, name, groups, (apps, installs))| {
        let id = format!("id-of-{name}");
        let who = match kind {
            0 => Who::Iam { arn: id },
            1 => Who::Person { subject: id },
            _ => Who::Pipeline { subject: id },
        };
        let mut principal = Principal::without_groups(who);
        principal.name = name.to_owned();
        principal.groups = groups.into_iter().map(|group| group.parse().unwrap()).collect();
        principal.apps = apps.into_iter().map(|app| app.parse().unwrap()).collect();
        principal.installs = installs.into_iter().map(|(install, _)| install.parse().unwrap()).collect();
        principal
    })
}

fn resources() -> impl Strategy<Value = Resource> {
    prop_oneof![
        1 => Just(Resource::Tenant),
        1 => select(APPS.to_vec()).prop_map(|app| Resource::App { app: app.parse().unwrap() }),
        3 => (select(INSTALLS.to_vec()), select(ENVIRONMENTS.to_vec())).prop_map(|((install, app), environment)| {
            let (install, app) = (install.parse().unwrap(), app.parse().unwrap());
            Resource::Install { install, app, environment: environment.to_owned() }
        }),
    ]
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(32))]

    #[test]
    fn a_decision_is_that_of_a_second_evaluation(
        mut rules in rules(),
        requests in prop::collection::vec((principals(), 0..actions().len(), resources()), 24),
    ) {
        rules.retain(Rule::can_apply);
        let text: String = rules.iter().enumerate().map(|(number, rule)| rule.text(number)).collect();
        let policies = Policies::parse(&text).unwrap();

        for (principal, number, resource) in &requests {
            let asked = &actions()[*number];
            let decision = policies.decide(principal, asked.name, resource);

            let expected = evaluated(&rules, principal, asked, resource);
            let found = (decision.is_allowed, decision.policies);
            prop_assert_eq!(found, expected, "{:?} {} {:?}\n{}", principal, asked.name, resource, text);
        }
    }

    #[test]
    fn the_permitted_actions_are_those_that_a_decision_permits(
        mut rules in rules(), principal in principals(), resource in resources(),
    ) {
        rules.retain(Rule::can_apply);
        let text: String = rules.iter().enumerate().map(|(number, rule)| rule.text(number)).collect();
        let policies = Policies::parse(&text).unwrap();

        let permitted = policies.permitted_actions(&principal, &resource);

        let all = actions().iter().filter(|action| evaluated(&rules, &principal, action, &resource).0);
        let expected: Vec<&str> = all.map(|action| action.name).collect();
        prop_assert_eq!(permitted, expected, "{}", text);
    }

    #[test]
    fn a_policy_that_cannot_apply_is_refused(rules in rules()) {
        for rule in rules.iter().filter(|rule| !rule.can_apply()) {
            let error = Policies::parse(&rule.text(0)).unwrap_err().to_string();
            prop_assert!(error.contains("the policy never applies"), "{}: {}", rule.text(0), error);
        }
    }
}
