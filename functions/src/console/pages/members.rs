//! The members of the tenant, the page after an invitation, and the account of the person who is signed in.

use freehold_pages::{Facts, Field, Page, Table, Tone, badge, code, encoded, notice, pagination, time};
use freehold_protocol::api::{MemberInvited, MemberView, Page as List};
use maud::{Markup, html};

use super::view::{View, maybe_time, next_path};

const GROUPS: &str = "Separated by commas, such as: developer, auditor";

/// Returns the page with the list of members.
pub(crate) fn list(view: &View<'_>, members: &List<MemberView>) -> String {
    let mut table = Table::new("Members", ["Member", "Groups", "Assigned to", "Invited", "Accepted"]);
    for member in &members.items {
        table.row([
            html! { a href={ "/members/" (encoded(member.member.as_str())) } { (member.member.to_string()) } },
            html! { (joined(&member.groups)) },
            html! { (joined(&member.apps)) " " (joined(&member.installs)) },
            html! { (time(member.invited_at)) " by " (member.invited_by.to_string()) },
            accepted(member),
        ]);
    }
    let content = html! {
        (table.render_or("The tenant has no members."))
        (pagination(next_path("/members", members.next.as_deref()).as_deref()))
        @if view.may("invite_member") { h2 { "Invite" } (invitation(view)) }
    };
    view.document(Page::new("Members", content).at(view.path))
}

fn accepted(member: &MemberView) -> Markup {
    html! {
        @if member.accepted_at.is_some() || member.who.is_some() {
            (maybe_time(member.accepted_at))
        } @else {
            (badge("waiting")) " until " (maybe_time(member.expires_at))
        }
    }
}

fn invitation(view: &View<'_>) -> Markup {
    let name = "Such as an e-mail address. The console sends no e-mail.";
    let form = view.form("/members", "Invite");
    let form = form.field(text("member", "Name", "", name, true)).field(text("groups", "Groups", "", GROUPS, true));
    let form = form.field(text("apps", "Apps", "", "Only for policies that ask about them", false));
    form.field(text("installs", "Installs", "", "Only for policies that ask about them", false)).render()
}

/// Returns the page of one member.
pub(crate) fn show(view: &View<'_>, member: &MemberView) -> String {
    let title = format!("Member {}", member.member);
    let path = format!("/members/{}", encoded(member.member.as_str()));
    let (set, remove) = (format!("{path}/groups"), format!("{path}/remove"));
    let (groups, apps, installs) = (joined(&member.groups), joined(&member.apps), joined(&member.installs));
    let facts = Facts::new()
        .with("Groups", &groups)
        .maybe("Who", member.who.as_ref().map(code))
        .with("Invited", html! { (time(member.invited_at)) " by " (member.invited_by.to_string()) })
        .with("Accepted", accepted(member));
    let content = html! {
        (facts.render())
        @if view.may("set_member") {
            h2 { "Change" }
            (view.form(&set, "Change").field(text("groups", "Groups", &groups, GROUPS, true))
                .field(text("apps", "Apps", &apps, "", false)).field(text("installs", "Installs", &installs, "", false))
                .render())
        }
        @if view.may("remove_member") {
            h2 { "Remove" }
            (view.form(&remove, "Remove")
                .confirmed("Remove this member; all of their requests are refused at once").render())
        }
    };
    view.document(Page::new(&title, content).at(view.path).below("Members", "/members"))
}

/// Returns the page after an invitation. It is the only one that shows the code.
pub(crate) fn invited(view: &View<'_>, invited: &MemberInvited) -> String {
    let content = html! {
        p { (invited.member.member.to_string()) " is invited with the groups " (joined(&invited.member.groups)) "." }
        @if let Some(secret) = &invited.code {
            (notice(Tone::Good, "Give this code to this person alone. It is shown once and is good for seven days."))
            p { (code(secret)) }
            p { "They sign in to this console and enter it, or run " (code("freehold member accept CODE")) "." }
        }
        p { a href="/members" { "All members" } }
    };
    view.document(Page::new("Invitation", content).at(view.path).below("Members", "/members"))
}

/// Returns the page of the person who is signed in.
pub(crate) fn account(view: &View<'_>) -> String {
    let caller = view.caller;
    let facts = Facts::new()
        .with("Name", &caller.name)
        .with("Known to the tenant as", code(&caller.who))
        .with("Groups", caller.groups.join(", "))
        .with("Apps", joined(&caller.apps))
        .with("Installs", joined(&caller.installs))
        .with("May on the whole tenant", caller.permissions.join(", "));
    let content = html! {
        (facts.render())
        @if !caller.is_member {
            (notice(Tone::Warning, "You are not a member of this tenant yet. Ask a member for an invitation."))
        }
        h2 { "Accept an invitation" }
        (view.form("/invitation", "Accept").field(text("code", "Code of the invitation", "", "", true)).render())
        h2 { "Sessions" }
        (view.form("/sign-out/everywhere", "Sign out everywhere")
            .confirmed("End all of my sessions in this console").render())
    };
    view.document(Page::new("Account", content).at(view.path))
}

fn text<'a>(name: &'a str, label: &'a str, value: &'a str, hint: &'a str, is_required: bool) -> Field<'a> {
    Field::Text { name, label, value, hint, is_required }
}

fn joined<T: ToString>(names: &std::collections::BTreeSet<T>) -> String {
    names.iter().map(ToString::to_string).collect::<Vec<_>>().join(", ")
}
