//! The policies of the tenant, and the form that replaces them.

use freehold_pages::{Facts, Field, Page, code, lines};
use freehold_protocol::api::PoliciesView;
use maud::html;

use super::view::{View, maybe_time};

/// Returns the page of the policies.
pub(crate) fn show(view: &View<'_>, policies: &PoliciesView) -> String {
    let facts = Facts::new()
        .with("Digest", code(&policies.digest))
        .with("Changes", policies.number)
        .with("Changed", maybe_time(policies.changed_at))
        .maybe("By", policies.changed_by.as_ref().map(ToString::to_string));
    let text = Field::Lines { name: "policies", label: "Policies in Cedar", value: &policies.policies };
    let content = html! {
        p { "Policies decide who may do what. The API evaluates them for each request." }
        (facts.render())
        @if view.may("set_policies") {
            (view.form("/policies", "Replace").hidden("expected", policies.digest.to_string()).field(text)
                .confirmed("Replace the policies of the tenant").render())
        } @else {
            (lines("Policies", &policies.policies))
        }
    };
    view.document(Page::new("Policies", content).at(view.path))
}
