//! Every decision against a second evaluation: policies that are drawn from a small grammar mean what their text means.

use std::collections::BTreeSet;

use freehold_access::{About, ActionInfo, Class, Policies, Principal, Resource, Who, actions};
use proptest::prelude::*;
use proptest::sample::{select, subsequence};

const GROUPS: [&str; 3] = ["owner", "developer", "on-call"];
const APPS: [&str; 2] = ["web", "queue"];
/// Installs and their apps.
const INSTALLS: [(&str, &str); 3] = [("globex", "web"), ("initech", "web"), ("hooli", "queue")];
const ENVIRONMENTS: [&str; 3] = ["production", "staging", ""];
const NAMES: [&str; 3] = ["ana", "anatol", "ben"];

/// The principals of a policy.
#[derive(Debug, Clone, Copy)]
enum Whom {
    Anybody,
    People,
    Pipelines,
    Iam,
    InGroup(&'static str),
    Named(&'static str),
}

#[derive(Debug, Clone, Copy)]
enum What {
    Anything,
    Of(Class),
    One(&'static ActionInfo),
}

/// The resources of a policy.
#[derive(Debug, Clone, Copy)]
enum Which {
    All,
    Tenant,
    InApp(&'static str),
    OneInstall(&'static str),
    Installs,
}

#[derive(Debug, Clone, Copy)]
enum When {
    Always,
    NameBegins(&'static str),
    InEnvironment(&'static str),
    NotInEnvironment(&'static str),
    OwnInstall,
    OwnApp,
}

#[derive(Debug, Clone, Copy)]
struct Rule {
    permits: bool,
    whom: Whom,
    what: What,
    which: Which,
    when: When,
}

impl Rule {
    /// Returns the policy as text, with the name `p` and its number.
    fn text(&self, number: usize) -> String {
        let effect = if self.permits { "permit" } else { "forbid" };
        let principal = match self.whom {
            Whom::Anybody | Whom::Named(_) => "principal".to_owned(),
            Whom::People => "principal is Freehold::Person".to_owned(),
            Whom::Pipelines => "principal is Freehold::Pipeline".to_owned(),
            Whom::Iam => "principal is Freehold::Iam".to_owned(),
            Whom::InGroup(group) => format!("principal in Freehold::Group::\"{group}\""),
        };
        let action = match self.what {
            What::Anything => "action".to_owned(),
            What::Of(class) => format!("action in Freehold::Action::\"{}\"", class.as_str()),
            What::One(action) => format!("action == Freehold::Action::\"{}\"", action.name),
        };
        let resource = match self.which {
            Which::All => "resource".to_owned(),
            Which::Tenant => "resource is Freehold::Tenant".to_owned(),
            Which::InApp(app) => format!("resource in Freehold::App::\"{app}\""),
            Which::OneInstall(install) => format!("resource == Freehold::Install::\"{install}\""),
            Which::Installs => "resource is Freehold::Install".to_owned(),
        };
        let name = match self.whom {
            Whom::Named(name) => format!(" when {{ principal.name == \"{name}\" }}"),
            _ => String::new(),
        };
        let install = "resource is Freehold::Install && ";
        let condition = match self.when {
            When::Always => String::new(),
            When::NameBegins(start) => format!(" when {{ principal.name like \"{start}*\" }}"),
            When::InEnvironment(one) => format!(" when {{ {install}resource.environment == \"{one}\" }}"),
            When::NotInEnvironment(one) => format!(" when {{ {install}resource.environment != \"{one}\" }}"),
            When::OwnInstall => format!(" when {{ {install}principal.installs.contains(resource) }}"),
            When::OwnApp => " when { resource in principal.apps }".to_owned(),
        };
        format!("@id(\"p{number}\") {effect} ({principal}, {action}, {resource}){name}{condition};\n")
    }

    /// Returns whether the policy can apply to any request; a text with another policy is refused.
    fn can_apply(&self) -> bool {
        [About::Tenant, About::App, About::Install].into_iter().any(|about| {
            let has_action = actions().iter().any(|action| action.is_about(about) && self.is_about_action(action));
            let has_resource = match self.which {
                Which::All => true,
                Which::Tenant => about == About::Tenant,
                Which::InApp(_) => about != About::Tenant,
                Which::OneInstall(_) | Which::Installs => about == About::Install,
            };
            let has_condition = match self.when {
                When::Always | When::NameBegins(_) => true,
                When::InEnvironment(_) | When::NotInEnvironment(_) | When::OwnInstall => about == About::Install,
                When::OwnApp => about != About::Tenant,
            };
            has_action && has_resource && has_condition
        })
    }

    fn is_about_action(&self, asked: &ActionInfo) -> bool {
        match self.what {
            What::Anything => true,
            What::Of(class) => asked.class == class,
            What::One(action) => asked.name == action.name,
        }
    }

    /// Returns whether the policy applies to this request.
    fn applies(&self, principal: &Principal, asked: &ActionInfo, resource: &Resource) -> bool {
        let whom = match self.whom {
            Whom::Anybody => true,
            Whom::People => matches!(principal.who, Who::Person { .. }),
            Whom::Pipelines => matches!(principal.who, Who::Pipeline { .. }),
            Whom::Iam => matches!(principal.who, Who::Iam { .. }),
            Whom::InGroup(group) => principal.groups.iter().any(|own| own.as_str() == group),
            Whom::Named(name) => principal.name == name,
        };
        let (install, app, environment) = match resource {
            Resource::Tenant => (None, None, None),
            Resource::App { app } => (None, Some(app), None),
            Resource::Install { install, app, environment } => (Some(install), Some(app), Some(environment.as_str())),
        };
        let which = match self.which {
            Which::All => true,
            Which::Tenant => app.is_none(),
            Which::InApp(name) => app.is_some_and(|app| app.as_str() == name),
            Which::OneInstall(name) => install.is_some_and(|install| install.as_str() == name),
            Which::Installs => install.is_some(),
        };
        let when = match self.when {
            When::Always => true,
            When::NameBegins(start) => principal.name.starts_with(start),
            When::InEnvironment(one) => environment == Some(one),
            When::NotInEnvironment(one) => environment.is_some_and(|environment| environment != one),
            When::OwnInstall => install.is_some_and(|install| principal.installs.contains(install)),
            When::OwnApp => app.is_some_and(|app| principal.apps.contains(app)),
        };
        whom && self.is_about_action(asked) && which && when
    }
}

/// Returns whether the rules permit the request, and the names of the rules that decide.
fn evaluated(rules: &[Rule], principal: &Principal, asked: &ActionInfo, resource: &Resource) -> (bool, Vec<String>) {
    if !asked.is_about(resource.about()) {
        return (false, Vec::new());
    }
    let named = rules.iter().enumerate().filter(|(_, rule)| rule.applies(principal, asked, resource));
    let (permits, forbids): (Vec<_>, Vec<_>) = named.partition(|(_, rule)| rule.permits);
    let is_allowed = forbids.is_empty() && !permits.is_empty();
    let deciding = if forbids.is_empty() { permits } else { forbids };
    let names: BTreeSet<String> = deciding.into_iter().map(|(number, _)| format!("p{number}")).collect();
    (is_allowed, names.into_iter().collect())
}

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
