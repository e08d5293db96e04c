//! Names that look like policies: they are values, so that no name changes a decision.

use freehold_access::{Policies, Principal, Resource, Who};
use proptest::prelude::*;

use super::{app, install, person, production, ready_made, staging};

const HOSTILE: [&str; 8] = [
    "\"",
    "x\"); permit (principal, action, resource); //",
    "production\" || true || \"",
    "*",
    "a\nb\r\0",
    "\u{202e}renwo",
    "Freehold::Group::\"owner\"",
    "owner",
];

/// A person with this subject, name and environment of the install, who is in one group.
fn asked(text: &str, group: &str) -> (Principal, Resource) {
    let mut principal = person(&[group]);
    principal.who = Who::Person { subject: text.to_owned() };
    principal.name = text.to_owned();
    (principal, install("globex", text))
}

#[test]
fn a_hostile_name_gives_no_permission() {
    let policies = ready_made();

    for text in HOSTILE {
        let (principal, resource) = asked(text, "auditor");
        for resource in [resource, Resource::Tenant, app(), production(), staging()] {
            for action in ["deploy_components", "set_policies", "move_channel"] {
                assert!(!policies.decide(&principal, action, &resource).is_allowed, "{text:?} {action}");
            }
        }
    }
}

#[test]
fn a_policy_about_one_name_permits_exactly_this_name() {
    let policies = Policies::parse(
        "@id(\"ana\") permit (principal, action, resource) when { principal.name == \"ana*\" };\n\
         @id(\"main\") permit (principal is Freehold::Pipeline, action, resource)\n\
         when { principal.subject like \"repo:acme/web:ref:refs/heads/*\" };",
    )
    .unwrap();
    let pipeline = |subject: &str| Principal::without_groups(Who::Pipeline { subject: subject.to_owned() });
    let may = |principal: &Principal| policies.decide(principal, "show_tenant", &Resource::Tenant).is_allowed;

    for (name, expected) in [("ana*", true), ("ana", false), ("anab", false), ("ana*\n", false)] {
        let mut ana = person(&[]);
        ana.name = name.to_owned();
        assert_eq!(may(&ana), expected, "{name:?}");
    }
    assert!(may(&pipeline("repo:acme/web:ref:refs/heads/main")));
    assert!(!may(&pipeline("repo:acme/website:ref:refs/heads/main")));
    assert!(!may(&pipeline("repo:evil/x:repo:acme/web:ref:refs/heads/main")));
    let mut person = person(&[]);
    person.who = Who::Person { subject: "repo:acme/web:ref:refs/heads/main".to_owned() };
    assert!(!may(&person), "a person is not a pipeline");
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(32))]

    #[test]
    fn any_text_is_only_a_name(text in any::<String>()) {
        let policies = ready_made();
        let (developer, resource) = asked(&text, "developer");
        let (auditor, _) = asked(&text, "auditor");

        let decision = policies.decide(&developer, "deploy_components", &resource);

        prop_assert_eq!(decision.is_allowed, text != "production");
        prop_assert!(decision.errors.is_empty(), "{:?}", decision.errors);
        prop_assert!(!policies.decide(&auditor, "deploy_components", &resource).is_allowed);
        let run = policies.decide_run(&person(&["data_scientist"]), "run_action", &text, &production());
        prop_assert_eq!(run.is_allowed, text.starts_with("report-"));
    }

    #[test]
    fn any_text_is_read_as_policies_or_refused(text in "(permit|forbid|@id|[(){};\"=:. a-z]){0,40}") {
        let error = Policies::parse(&text).err().map(|error| error.to_string());

        prop_assert!(error.is_none_or(|error| error.starts_with("line ")), "{}", text);
    }
}
