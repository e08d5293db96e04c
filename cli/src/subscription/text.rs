//! Subscriptions as text.

use freehold_protocol::api::SubscriptionView;
use freehold_protocol::notification::{Endpoint, NotificationFilter};

use crate::output::{Output, Table};

/// Returns the text about an added subscription, and what its owner has to do.
pub(super) fn added(one: &SubscriptionView) -> String {
    if one.pending {
        return format!(
            "the owner of {} has to confirm it: SNS has sent a message there, and sends nothing else before the \
             confirmation\n\nnext: freehold subscription list",
            one.endpoint
        );
    }
    format!("{} gets {}\n\nnext: freehold subscription test", one.endpoint, choice(one))
}

/// Returns the subscriptions as a table.
pub(super) fn list(all: &[SubscriptionView], out: Output) -> String {
    if all.is_empty() {
        return "there are no subscriptions; `freehold subscription add ENDPOINT` subscribes a mailbox, a URL or a queue"
            .to_owned();
    }
    let mut table = Table::new(&["ENDPOINT", "STATE", "GETS"]);
    for one in all {
        let state = if one.pending { "to be confirmed" } else { "confirmed" };
        table.row([one.endpoint.clone(), state.to_owned(), choice(one)]);
    }
    out.table(&table)
}

/// Returns the text about a removal, with the remaining subscriptions.
pub(super) fn removed(endpoint: &Endpoint, left: &[SubscriptionView], out: Output) -> String {
    format!("{endpoint} gets no more notifications\n\n{}", list(left, out))
}

/// Returns the notifications that a subscriber chose, as text.
fn choice(one: &SubscriptionView) -> String {
    match &one.filter {
        Some(filter) => phrase(filter),
        None if one.pending => String::new(),
        None => "notifications by a filter that Freehold did not write".to_owned(),
    }
}

fn phrase(NotificationFilter { app, install, only }: &NotificationFilter) -> String {
    let kinds: Vec<&str> = only.iter().map(|kind| kind.as_str()).collect();
    let mut phrase = if kinds.is_empty() { "all kinds".to_owned() } else { kinds.join(", ") };
    for (what, name) in
        [("app", app.as_ref().map(ToString::to_string)), ("install", install.as_ref().map(ToString::to_string))]
    {
        if let Some(name) = name {
            phrase.push_str(&format!(" about {what} {name}"));
        }
    }
    phrase
}
