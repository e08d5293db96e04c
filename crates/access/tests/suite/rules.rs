//! Policies of a small grammar: their text, and what they mean by a second evaluation, which has nothing of Cedar.

use std::collections::BTreeSet;

use freehold_access::{About, ActionInfo, Class, Principal, Resource, Who, actions};

/// The principals of a policy.
#[derive(Debug, Clone, Copy)]
pub(crate) enum Whom {
    Anybody,
    People,
    Pipelines,
    Iam,
    InGroup(&'static str),
    Named(&'static str),
}

#[derive(Debug, Clone, Copy)]
pub(crate) enum What {
    Anything,
    Of(Class),
    One(&'static ActionInfo),
}

/// The resources of a policy.
#[derive(Debug, Clone, Copy)]
pub(crate) enum Which {
    All,
    Tenant,
    InApp(&'static str),
    OneInstall(&'static str),
    Installs,
}

#[derive(Debug, Clone, Copy)]
pub(crate) enum When {
    Always,
    NameBegins(&'static str),
    InEnvironment(&'static str),
    NotInEnvironment(&'static str),
    OwnInstall,
    OwnApp,
}

/// A policy.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Rule {
    pub(crate) permits: bool,
    pub(crate) whom: Whom,
    pub(crate) what: What,
    pub(crate) which: Which,
    pub(crate) when: When,
}

impl Rule {
    /// Returns the policy as text, with the name `p` and its number.
    pub(crate) fn text(&self, number: usize) -> String {
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
    pub(crate) fn can_apply(&self) -> bool {
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
    pub(crate) fn applies(&self, principal: &Principal, asked: &ActionInfo, resource: &Resource) -> bool {
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
pub(crate) fn evaluated(
    rules: &[Rule],
    principal: &Principal,
    asked: &ActionInfo,
    resource: &Resource,
) -> (bool, Vec<String>) {
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
