//! Why a lie that the runner follows does no harm. `tests/house/tests/rules/lies.rs` checks that the tests named here
//! exist.

/// A reason, and the tests that show it, as the pages of the docs write them.
pub(super) struct Reason {
    pub(super) why: &'static str,
    pub(super) shown_by: &'static str,
}

pub(super) const RELEASE: Reason = Reason {
    why: "each release may change it without a new consent, and the job stays in its role, its hosts and its box",
    shown_by: "`runner/tests/jobs/walls.rs`: `a_host_that_no_contract_names_is_refused_in_the_log`, \
               `nothing_of_the_machines_network_is_reached`, `a_job_has_no_capability_and_can_get_none`",
};
pub(super) const NAMES: Reason = Reason {
    why: "a name for the vendor's own records: the runner decides nothing by it but whether it has had the order",
    shown_by: "`runner/src/work/journal/state.rs`: `a_first_delivery_starts`; \
               `runner/src/work/journal/put_back_tests.rs`: \
               `an_order_that_was_given_back_for_good_starts_nowhere_and_the_next_one_does`",
};
pub(super) const DISPATCH: Reason = Reason {
    why: "it asks for one more try, as an honest retry does",
    shown_by: "`runner/src/work/journal/state.rs`: `a_finished_job_is_reported_again_and_a_new_dispatch_of_it_starts`, \
               `a_superseded_dispatch_is_a_replay`",
};
pub(super) const SERIAL: Reason = Reason {
    why: "a later order of the group; the journal refuses an earlier one",
    shown_by: "`runner/src/work/journal/state.rs`: \
               `an_order_older_than_its_group_is_a_replay_and_the_same_one_is_not`",
};
pub(super) const ISSUED: Reason = Reason {
    why: "a vendor that signs can also sign anew: it gains no time",
    shown_by: "`crates/protocol/src/envelope/mod.rs`: \
               `a_message_counts_by_the_time_at_which_it_was_sent_if_its_certificate_says_until_when`",
};
pub(super) const TIME: Reason = Reason {
    why: "it lengthens or shortens the time of a job that is agreed; SQS ends each lease after 12 hours",
    shown_by: "`runner/src/work/attempt/tests/mod.rs`: `a_job_that_takes_too_long_is_stopped_as_failed`, \
               `a_runner_that_cannot_renew_stops_its_job_before_the_lease_ends_and_says_nothing`",
};
pub(super) const LATE: Reason = Reason {
    why: "a late order starts nothing (0073)",
    shown_by: "`runner/src/work/attempt/tests/waiting.rs`: \
               `an_order_that_waited_too_long_is_given_back_and_the_next_one_is_done_once`",
};
pub(super) const ASKED_BY: Reason = Reason {
    why: "recorded as the vendor's word (0071)",
    shown_by: "`runner/src/work/attempt/tests/mod.rs`: `the_audit_says_who_asked_for_a_job_as_its_signed_order_does`",
};
pub(super) const ASKED_WHY: Reason = Reason {
    why: "kept with the order as the vendor's word (0086)",
    shown_by: "`runner/src/work/attempt/tests/audit.rs`: \
               `the_signed_order_of_a_job_that_starts_is_in_the_bucket_and_without_it_no_job_starts`",
};
pub(super) const AT_ONCE: Reason = Reason {
    why: "the runner lets those pass whom the customer names (0084)",
    shown_by: "`runner/src/work/attempt/tests/change_windows.rs`: \
               `whom_the_customer_names_passes_with_now_and_nobody_passes_a_hold`, \
               `who_asks_for_now_without_being_named_is_told_the_parameter`",
};
pub(super) const APPROVAL: Reason = Reason {
    why: "the vendor's own rule; the customer's is in their stack (0085)",
    shown_by: "`runner/src/approvals/mod.rs`: `both_sides_are_asked_where_both_want_it`",
};
pub(super) const APPROVED: Reason = Reason {
    why: "the runner compares the plan, and reads the customer's approval itself (0085)",
    shown_by: "`runner/src/approvals/decision/tests.rs`: `only_the_customers_word_about_this_plan_counts`, \
               `other_bytes_an_expired_approval_and_one_that_was_used_are_refused`",
};
pub(super) const DEMANDS: Reason = Reason {
    why: "the runner refuses what it does not know",
    shown_by: "`runner/src/wire/verify.rs`: \
               `an_order_that_demands_an_unknown_feature_is_refused_with_its_job_and_the_way_out`",
};
pub(super) const RUNNER: Reason = Reason {
    why: "the runner looks into the audit chain before it starts an order for another key",
    shown_by: "`runner/src/work/attempt/tests/copies.rs`: \
               `a_copy_of_an_order_that_another_machine_did_is_refused_on_an_empty_disk`",
};
pub(super) const NOOPS: Reason = Reason {
    why: "a plan that changes nothing is not applied",
    shown_by: "`runner/tests/jobs/pulumi/mod.rs`: \
               `a_plan_that_changes_nothing_is_not_applied_when_the_order_says_so_and_a_changed_output_is`",
};
pub(super) const CONTEXT: Reason = Reason {
    why: "the vendor's values for templates are not among the terms; roles, hosts and the box hold for every value",
    shown_by: "`runner/tests/jobs/walls.rs`: `a_host_that_no_contract_names_is_refused_in_the_log`; \
               `runner/src/kinds/provenance.rs`: \
               `the_app_of_the_terms_counts_whatever_the_values_for_templates_say`",
};
pub(super) const SEALED: Reason = Reason {
    why: "a value of the vendor's own, which has to match its digest",
    shown_by: "`runner/src/secrets/sensitive_inputs.rs`: \
               `a_sealed_value_that_cannot_be_used_is_named_with_the_way_out_and_not_shown`",
};
pub(super) const RECEIPT: Reason = Reason {
    why: "whoever verifies the audit finds a receipt that the tenant did not sign for this chain (0075)",
    shown_by: "`crates/protocol/src/audit/verify/tests.rs`: \
               `a_receipt_of_another_install_of_another_signer_or_in_the_place_of_another_is_a_problem`",
};
pub(super) const DIRECTORY: Reason = Reason {
    why: "the files of a step are an artifact of a release; a directory counts only with the vendor's statement",
    shown_by: "`runner/tests/jobs/action.rs`: \
               `a_directory_that_is_tampered_with_or_not_attested_is_refused_before_a_step_runs`",
};
pub(super) const STACK_NAME: Reason = Reason {
    why: "a stack that the install did not make is refused by its name and tags before a change",
    shown_by: "`runner/tests/jobs/cloudformation_stack.rs`: `a_stack_that_the_install_did_not_make_is_left_alone`; \
               `runner/src/kinds/cloudformation_stack/ownership.rs`: \
               `only_names_under_the_installs_prefix_are_taken`, `only_stacks_with_the_installs_tags_are_taken`",
};
pub(super) const STACK_ROLES: Reason =
    Reason { why: "roles that a stack makes carry the boundary", shown_by: "`tests/iam/run`" };
pub(super) const IN_CLUSTER: Reason = Reason {
    why: "each release may change it without a new consent; the access entries of the cluster decide what the role may \
          do there",
    shown_by: "`runner/tests/jobs/cluster/access.rs`: `who_has_an_access_entry_gets_in_and_no_token_is_seen`, \
               `a_cluster_that_is_not_named_or_not_there_is_said`",
};
pub(super) const JOB_IMAGE: Reason = Reason {
    why: "an image that is not in the install registry is refused before the job is made",
    shown_by: "`runner/src/kinds/kubernetes_job/image.rs`: `only_images_of_the_install_registry_have_a_version`",
};
pub(super) const COPIES: Reason = Reason {
    why: "copies that the customer agreed to stay",
    shown_by: "`runner/tests/jobs/copy_secrets.rs`: \
               `copies_that_an_order_keeps_stay_until_an_order_that_does_not_keep_them`",
};
pub(super) const REMOVAL: Reason = Reason {
    why: "what a removal may delete is in the policies of its role, which the customer agreed to and can switch off",
    shown_by: "`tests/iam/run`; `runner/src/identity/mode.rs`: `a_mode_that_the_stack_has_off_is_off`",
};
pub(super) const OWN_POLICIES: Reason = Reason {
    why: "the policies are the vendor's own, which a new version may leave out",
    shown_by: "`runner/tests/jobs/cluster/policies.rs`: \
               `policies_are_in_the_cluster_before_a_component_and_as_long_as_the_app`",
};
pub(super) const DRIFT: Reason = Reason {
    why: "a drift check changes nothing: its session only reads",
    shown_by: "`runner/src/identity/mode.rs`: \
               `a_drift_check_and_a_command_that_asks_for_health_have_a_session_that_only_reads`; \
               `runner/src/identity/session_policy.rs`: `a_drift_check_only_reads_and_reads_no_plan`",
};
pub(super) const PREFLIGHT: Reason = Reason {
    why: "a preflight reads and changes nothing",
    shown_by: "`runner/tests/jobs/preflight.rs`: `all_is_well_and_what_cannot_be_asked_is_a_warning`; \
               `runner/src/kinds/preflight/simulation.rs`: `what_jobs_need_fails_and_what_an_app_asks_for_warns`",
};
pub(super) const HEALTH: Reason = Reason {
    why: "a health check only reads",
    shown_by: "`runner/tests/jobs/health.rs`: `a_stack_is_healthy_while_its_last_change_succeeded`, \
               `a_manifest_is_as_healthy_as_its_objects`; `runner/src/identity/mode.rs`: \
               `a_drift_check_and_a_command_that_asks_for_health_have_a_session_that_only_reads`",
};
pub(super) const PROBE_HOST: Reason = Reason {
    why: "the runner connects only to the hosts of the accepted contract",
    shown_by: "`runner/tests/jobs/health.rs`: `a_probe_reaches_no_host_that_the_contract_does_not_name`",
};
pub(super) const GATE: Reason = Reason {
    why: "a job that asks for longer changes no more, and what waits for it is the vendor's own order of jobs",
    shown_by: "`runner/tests/jobs/health.rs`: \
               `a_gate_waits_until_the_component_has_stayed_healthy_and_closes_when_its_time_is_over`",
};
pub(super) const PROGRAM: Reason = Reason {
    why: "the runner takes only the program that the signed checksums list, and none of an older version",
    shown_by: "`runner/tests/jobs/upgrade.rs`: `an_archive_with_another_program_than_the_order_names_is_not_used`, \
               `bytes_that_are_not_the_archive_are_refused`, \
               `an_archive_that_is_too_large_is_refused_before_it_is_granted`, \
               `an_older_version_is_refused_before_it_is_downloaded`; `runner/src/kinds/upgrade.rs`: \
               `a_program_that_does_not_start_or_says_another_version_is_not_tried`",
};
pub(super) const TRIAL: Reason = Reason {
    why: "the time of the trial has limits, and a program that does not prove its health is not used",
    shown_by: "`runner/tests/jobs/upgrade.rs`: \
               `a_program_that_cannot_write_its_proof_ends_so_that_the_old_one_works_again`",
};
