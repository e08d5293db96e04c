//! Keys of what an app says of itself: metadata, inputs, secrets, and its installs.

use crate::spec::Holds::{Any, File, Flag, Tables, Template, Text, Word};
use crate::spec::{Key, may, must};

pub(super) const METADATA: &[Key] = &[
    must("version", Text),
    may("display_name", Text),
    may("description", Text),
    may("slack_webhook_url", Text),
    may("readme", File),
    may("label_colors", Any),
    may("onboarding", Any),
    may("kubernetes_context", Tables(&[must("name", Text), must("component", Text)])),
];

pub(super) const GROUP: &[Key] = &[must("name", Text), may("description", Text), may("display_name", Text)];

pub(super) const INPUT_TYPES: &[&str] = &["string", "number", "list", "json", "bool", "yaml", "hcl"];

pub(super) const INPUT: &[Key] = &[
    must("name", Text),
    must("display_name", Text),
    must("description", Text),
    must("group", Text),
    may("default", Any),
    may("required", Flag),
    may("sensitive", Flag),
    may("type", Word(INPUT_TYPES)),
    may("internal", Flag),
    may("user_configurable", Flag),
];

pub(super) const INPUTS: &[Key] = &[may("group", Tables(GROUP)), may("input", Tables(INPUT)), may("sources", Any)];

pub(super) const SECRET: &[Key] = &[
    must("name", Text),
    may("display_name", Text),
    must("description", Text),
    may("required", Flag),
    may("auto_generate", Flag),
    may("format", Word(&["", "base64"])),
    may("default", Text),
    may("user_configurable", Flag),
    may("kubernetes_sync", Flag),
    may("kubernetes_secret_namespace", Template),
    may("kubernetes_secret_name", Template),
];

pub(super) const SECRETS: &[Key] = &[may("secret", Tables(SECRET))];

pub(super) const INSTALL: &[Key] = &[
    must("name", Text),
    may("approval_option", Word(&["approve-all", "prompt"])),
    may("aws_account", Any),
    may("azure_account", Any),
    may("gcp_account", Any),
    may("inputs", Any),
    may("component_toggles", Any),
];
