//! Policies: what the ready-made ones permit, which mistakes are found in others, and every decision against a second
//! evaluation.

#![cfg(test)]

mod evaluation;
mod groups;
mod hostile_names;
mod lock_out;
mod mistakes;
mod operations;
mod page;
mod people;
mod rules;

use std::sync::LazyLock;

use freehold_access::{Policies, Principal, Resource, Who};

static READY_MADE: LazyLock<Policies> = LazyLock::new(|| Policies::parse(Policies::ready_made()).unwrap());

/// The policies of a new tenant.
fn ready_made() -> &'static Policies {
    &READY_MADE
}

/// A person in these groups, without limits.
fn person(groups: &[&str]) -> Principal {
    let mut person = Principal::without_groups(Who::Person { subject: "5f2c-11".to_owned() });
    person.name = "ana@example.com".to_owned();
    person.groups = groups.iter().map(|group| group.parse().unwrap()).collect();
    person
}

/// The role `ci` of the tenant's account.
fn iam() -> Principal {
    Principal::without_groups(Who::Iam { arn: "arn:aws:iam::111122223333:role/ci".to_owned() })
}

fn app() -> Resource {
    Resource::App { app: "web".parse().unwrap() }
}

/// An install of the app `web`.
fn install(name: &str, environment: &str) -> Resource {
    Resource::Install {
        install: name.parse().unwrap(),
        app: "web".parse().unwrap(),
        environment: environment.to_owned(),
    }
}

fn staging() -> Resource {
    install("initech", "staging")
}

fn production() -> Resource {
    install("globex", "production")
}
