//! Webhooks as text.

use std::path::Path;

use freehold_protocol::api::{WebhookCalled, WebhookTask, WebhookView};
use url::Url;

use crate::output::{Output, Table, time};

/// An added webhook, and the file with its key.
pub(super) struct Added<'a> {
    pub(super) view: &'a WebhookView,
    pub(super) api: &'a Url,
    pub(super) key_file: &'a Path,
    /// Whether the key file was made by this command.
    pub(super) is_new: bool,
}

impl Added<'_> {
    /// Returns the text about an added webhook, and the command that calls it.
    pub(super) fn text(&self) -> String {
        let Self { view, api, key_file, is_new } = self;
        let WebhookView { webhook, starts, path, .. } = view;
        let (file, url) = (key_file.display(), format!("{}{path}", api.as_str().trim_end_matches('/')));
        let secret = match is_new {
            true => format!("\n`{file}` has its private key: give it as a secret to the program that calls"),
            false => String::new(),
        };
        let release = if matches!(starts, WebhookTask::MoveChannel { .. }) { " --release RELEASE" } else { "" };
        format!("webhook `{webhook}` {starts}{secret}\n\nnext: freehold webhook call {url} --key-file {file}{release}")
    }
}

/// Returns the webhooks as a table.
pub(super) fn list(all: &[WebhookView], out: Output) -> String {
    if all.is_empty() {
        return "there are no webhooks; `freehold webhook add` adds one".to_owned();
    }
    let mut table = Table::new(&["WEBHOOK", "A CALL", "ADDED", "BY", "PATH"]);
    for one in all {
        table.row([
            one.webhook.to_string(),
            one.starts.to_string(),
            time(one.added_at),
            one.added_by.to_string(),
            one.path.clone(),
        ]);
    }
    out.table(&table)
}

/// Returns the text about the work that a call started.
pub(super) fn called(called: &WebhookCalled) -> String {
    match called {
        WebhookCalled::Workflow { workflow } => format!("workflow {workflow} started"),
        WebhookCalled::Run { run } => format!("run {run} started"),
        WebhookCalled::Channel { app, channel, release } => {
            format!("channel `{channel}` of app `{app}` has release `{release}`")
        }
    }
}
