//! What the members of each ready-made group may do, by class of actions and by resource.

use freehold_access::{Class, Group, Policies, Principal, Resource, actions, groups_with};

use super::{app, iam, person, production, ready_made, staging};

/// Returns the classes whose actions are permitted: all that can be about the resource, or those in parentheses.
fn classes(policies: &Policies, principal: &Principal, resource: &Resource) -> String {
    let permitted = policies.permitted_actions(principal, resource);
    let of_class = |class: Class| {
        let all = actions().iter().filter(|action| action.class == class && action.is_about(resource.about()));
        let all: Vec<&str> = all.map(|action| action.name).collect();
        let some: Vec<&str> = all.iter().copied().filter(|name| permitted.contains(name)).collect();
        match some.len() {
            0 => None,
            count if count == all.len() => Some(class.as_str().to_owned()),
            _ => Some(format!("{}({})", class.as_str(), some.join(" "))),
        }
    };
    Class::ALL.into_iter().filter_map(of_class).collect::<Vec<_>>().join(" ")
}

/// What a principal may do with the tenant, an app, an install in staging and an install in production.
fn table(principal: &Principal) -> [String; 4] {
    let policies = ready_made();
    [Resource::Tenant, app(), staging(), production()].map(|resource| classes(policies, principal, &resource))
}

#[test]
fn owners_and_iam_principals_may_do_everything() {
    let everything = [
        "read operate approve administer",
        "read operate change approve",
        "read operate change approve administer",
        "read operate change approve administer",
    ];

    assert_eq!(table(&person(&["owner"])), everything);
    assert_eq!(table(&iam()), everything);
}

#[test]
fn operators_operate_everything_and_change_nothing() {
    assert_eq!(table(&person(&["operator"])), ["read operate approve"; 4]);
}

#[test]
fn developers_read_production_and_work_in_staging() {
    assert_eq!(
        table(&person(&["developer"])),
        [
            "read",
            "read operate(cancel_workflow resume_workflow cancel_job retry_job) change",
            "read operate change approve",
            "read",
        ]
    );
}

#[test]
fn data_scientists_read_results_of_installs() {
    let results = "read(show_install show_history list_workflows show_workflow show_job list_logs)";

    assert_eq!(table(&person(&["data_scientist"])), ["", "", results, results]);
}

#[test]
fn data_scientists_run_the_actions_whose_names_say_report() {
    let (policies, chen) = (ready_made(), person(&["data_scientist"]));
    let decide = |run| policies.decide_run(&chen, "run_action", run, &production());

    assert!(decide("report-usage").is_allowed);
    assert_eq!(decide("report-usage").policies, ["data-scientists-run-reports"]);
    for run in ["", "migrate", "report", "my-report-usage"] {
        assert!(!decide(run).is_allowed, "{run}");
    }
    assert!(!policies.decide_run(&chen, "run_runbook", "report-usage", &production()).is_allowed);
}

#[test]
fn auditors_read_everything() {
    assert_eq!(table(&person(&["auditor"])), ["read"; 4]);
}

#[test]
fn customers_read_their_own_installs() {
    let mut customer = person(&["customer"]);
    assert_eq!(table(&customer), [""; 4]);

    customer.installs.insert("globex".parse().unwrap());

    assert_eq!(table(&customer), ["", "", "", "read"]);
}

#[test]
fn who_has_no_group_may_do_nothing() {
    assert_eq!(table(&person(&[])), [""; 4]);
    assert_eq!(table(&person(&["on-call"])), [""; 4]);
}

#[test]
fn a_member_with_apps_or_installs_is_limited_to_them() {
    let mut developer = person(&["developer"]);
    developer.installs.insert("initech".parse().unwrap());
    assert_eq!(table(&developer), ["", "", "read operate change approve", ""]);

    developer.apps.insert("web".parse().unwrap());
    assert_eq!(table(&developer)[0], "");
    assert_eq!(table(&developer)[1..], table(&person(&["developer"]))[1..]);

    let mut owner = person(&["owner"]);
    owner.apps.insert("other".parse().unwrap());
    assert_eq!(table(&owner), [""; 4]);
}

#[test]
fn a_decision_names_the_policies_that_decided() {
    let policies = ready_made();
    let mut limited = person(&["owner"]);
    limited.apps.insert("other".parse().unwrap());

    let permitted = policies.decide(&person(&["owner", "operator"]), "deploy_components", &production());
    let forbidden = policies.decide(&limited, "deploy_components", &production());
    let denied = policies.decide(&person(&["auditor"]), "deploy_components", &production());

    assert_eq!(permitted.policies, ["operators-operate-and-approve", "owners-do-everything"]);
    assert!(permitted.is_allowed);
    assert_eq!(forbidden.policies, ["limits-of-members"]);
    assert!(!forbidden.is_allowed);
    assert!(denied.policies.is_empty() && !denied.is_allowed && denied.errors.is_empty());
}

#[test]
fn a_forbid_wins_over_every_permit() {
    let frozen = "\n@id(\"freeze\")\nforbid (principal, action in Freehold::Action::\"operate\", resource)\n\
                  when { resource is Freehold::Install && resource.environment == \"production\" };\n";
    let policies = Policies::parse(&(Policies::ready_made().to_owned() + frozen)).unwrap();

    let decision = policies.decide(&person(&["owner"]), "deploy_components", &production());

    assert!(!decision.is_allowed);
    assert_eq!(decision.policies, ["freeze"]);
    assert!(policies.decide(&person(&["owner"]), "deploy_components", &staging()).is_allowed);
    assert!(policies.decide(&person(&["owner"]), "set_inputs", &production()).is_allowed);
}

#[test]
fn an_action_that_does_not_exist_or_fits_no_such_resource_is_denied() {
    let policies = ready_made();

    let unknown = policies.decide(&person(&["owner"]), "read", &Resource::Tenant);
    let elsewhere = policies.decide(&person(&["owner"]), "deploy_components", &Resource::Tenant);

    assert!(!unknown.is_allowed && !elsewhere.is_allowed);
    assert_eq!(unknown.errors, ["there is no such action; docs/access.md lists the actions"]);
    assert_eq!(elsewhere.errors, ["`deploy_components` is not an action of a resource of kind tenant"]);
}

#[test]
fn the_groups_that_may_do_something_are_listed() {
    let policies = ready_made();

    assert_eq!(groups_with(policies, "deploy_components", &production()), [Group::OPERATOR, Group::OWNER]);
    assert_eq!(
        groups_with(policies, "deploy_components", &staging()),
        [Group::DEVELOPER, Group::OPERATOR, Group::OWNER]
    );
    assert_eq!(
        groups_with(policies, "list_runs", &production()),
        [Group::AUDITOR, Group::CUSTOMER, Group::DEVELOPER, Group::OPERATOR, Group::OWNER]
    );
    assert_eq!(groups_with(policies, "set_policies", &Resource::Tenant), [Group::OWNER]);
    assert!(groups_with(policies, "read", &Resource::Tenant).is_empty());
}

#[test]
fn a_group_that_only_a_policy_names_is_listed_too() {
    let policies = Policies::parse(
        "@id(\"on-call\") permit (principal in Freehold::Group::\"on-call\", action, resource is Freehold::Install);",
    )
    .unwrap();

    let groups = groups_with(&policies, "retry_job", &production());

    assert_eq!(groups, ["on-call".parse::<Group>().unwrap()]);
}
