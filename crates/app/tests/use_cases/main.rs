//! The use cases against a simulated control plane, one file each, in the directories of `src`.

#![cfg(test)]

#[path = "../support/mod.rs"]
mod support;

mod access {
    mod accept_invitation;
    mod authorize;
    mod invite_member;
    mod remove_member;
    mod set_member;
    mod set_policies;
    mod test_access;
}

mod app_config {
    mod sync_app;
    mod upload_source;
}

mod app_version {
    mod show_version;
    mod versions;
}

mod artifact {
    mod grant_artifact;
    mod list_artifacts;
    mod prune_artifacts;
    mod revoke_artifact;
    mod show_lineage;
}

mod continuation {
    mod resume_workflow;
    mod retry_job;
    mod skip_node;
}

mod contract {
    mod terms;
}

mod drift {
    mod acknowledge_drift;
    mod detect_drift;
    mod ignore_drift;
    mod sandbox;
}

mod health {
    mod check_health;
    mod gates;
    mod histories;
    mod record;
    pub(crate) mod report_check;
    mod roll_back_deploy;
}

mod install {
    mod create_install;
    mod delete_install;
    mod disable_install;
    mod enable_install;
    mod enrol_build_runner;
    mod forget_install;
    mod register_install;
    mod sealed_inputs;
    mod set_approvals;
    mod set_inputs;
    mod set_labels;
    mod set_licence;
    mod set_release;
    mod set_toggles;
    mod upgrade_runner;
}

mod notification {
    mod add_subscription;
    mod health_checks;
    mod notifier;
    mod remove_subscription;
    mod required_checks;
    mod strangers;
    mod test_subscriptions;
}

mod release {
    mod create_release;
    mod move_channel;
}

mod runbook {
    mod cancel_run;
    mod resume_run;
    mod run_after_deploy;
    mod run_runbook;
}

mod stack {
    mod names_apart;
    mod network;
    mod plain_stack;
    mod render_stack;
}

mod table {
    mod graph;
    mod previous_rows;
}

mod workflow {
    mod accept_report;
    mod admit_report;
    mod build_components;
    mod cancel_job;
    mod cancel_workflow;
    mod deploy_components;
    mod dispatch_job;
    mod every_trigger;
    mod finish_workflow;
    mod late_reports;
    mod plan_workflow;
    mod retries;
    mod run_action;
    mod sandbox;
    mod secrets;
    mod step_directories;
    mod teardown_install;
    mod tool_image;
    mod triggers;
}

mod webhook {
    mod add_webhook;
    mod call_webhook;
    mod remove_webhook;
}

mod approval {
    pub(crate) mod approve_job;
    mod reject_job;
}

mod asked_by;
mod change_windows;
mod deprovision;
mod faults;
mod idempotency;
mod metrics;
mod read;
mod sweep;
mod waiting;
mod whole_path;
