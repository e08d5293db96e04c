//! Keys of actions and runbooks.

use crate::spec::Holds::{
    Any, Duration, File, Flag, Scalars, Table, Tables, Template, TemplateFile, Text, Texts, Whole,
};
use crate::spec::{Key, may, must};

use super::MAX_ACTION_SECS;
use super::components::REPO;

pub(super) const ACTION: &[Key] = &[
    must("name", Text),
    may("description", Text),
    may("timeout", Duration(MAX_ACTION_SECS)),
    // Ours: a second delivery may run the steps again.
    may("idempotent", Flag),
    may("dependencies", Texts),
    may("break_glass_role", Text),
    may("role", Text),
    may("enable_kube_config", Flag),
    may("image", Any),
    may("labels", Any),
    may("inputs", Any),
    may("env_vars", Scalars),
    may(
        "triggers",
        Tables(&[must("type", Text), may("index", Whole), may("cron_schedule", Text), may("component_name", Text)]),
    ),
    must(
        "steps",
        Tables(&[
            must("name", Text),
            may("command", Template),
            may("inline_contents", TemplateFile),
            may("env_vars", Scalars),
            may("enable_kube_config", Flag),
            may("public_repo", Table(REPO)),
            may("connected_repo", Table(REPO)),
        ]),
    ),
];

pub(super) const RUNBOOK: &[Key] = &[
    must("name", Text),
    may("description", Text),
    may("readme", File),
    may("labels", Any),
    may("inputs", Any),
    may(
        "steps",
        Tables(&[
            may("name", Text),
            must("type", Text),
            may("action_name", Text),
            may("component_name", Text),
            may("command", Template),
            may("timeout", Duration(MAX_ACTION_SECS)),
            may("env_vars", Scalars),
        ]),
    ),
];
