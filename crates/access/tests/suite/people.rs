//! Three people of a vendor, with the policies of a new tenant.

use freehold_access::Resource;

use super::{app, person, production, ready_made, staging};

#[test]
fn a_developer_reads_production_and_has_staging() {
    let (policies, ana) = (ready_made(), person(&["developer"]));
    let may = |action, resource| policies.decide(&ana, action, &resource).is_allowed;

    for action in ["show_install", "list_logs", "list_drift", "show_inputs"] {
        assert!(may(action, production()) && may(action, staging()), "{action}");
    }
    for action in ["deploy_components", "run_action", "set_inputs", "approve_job", "create_install", "teardown_install"]
    {
        assert!(may(action, staging()), "{action}");
        assert!(!may(action, production()), "{action}");
    }
    assert!(may("sync_app", app()) && may("create_release", app()));
    assert!(!may("move_channel", app()), "an install in production may follow the channel");
    assert!(!may("invite_member", Resource::Tenant));
}

#[test]
fn an_administrator_manages_members_and_policies() {
    let (policies, ben) = (ready_made(), person(&["owner"]));

    for action in ["invite_member", "set_member", "remove_member", "set_policies", "add_webhook"] {
        assert!(policies.decide(&ben, action, &Resource::Tenant).is_allowed, "{action}");
        for others in ["operator", "developer", "data_scientist", "auditor", "customer"] {
            assert!(!policies.decide(&person(&[others]), action, &Resource::Tenant).is_allowed, "{others} {action}");
        }
    }
}

#[test]
fn a_data_scientist_runs_reports_and_changes_nothing() {
    let (policies, chen) = (ready_made(), person(&["data_scientist"]));

    assert!(policies.decide_run(&chen, "run_action", "report-usage", &production()).is_allowed);
    for action in ["show_install", "show_job", "list_logs"] {
        assert!(policies.decide(&chen, action, &production()).is_allowed, "{action}");
    }
    for action in ["deploy_components", "set_inputs", "approve_job", "show_inputs", "run_runbook"] {
        assert!(!policies.decide(&chen, action, &production()).is_allowed, "{action}");
    }
}
