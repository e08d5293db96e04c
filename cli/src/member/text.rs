//! Members and the caller as text.

use freehold_protocol::Timestamp;
use freehold_protocol::api::{CallerView, MemberInvited, MemberView};

use crate::output::{Output, Table, time};

/// Returns the members as a table.
pub(super) fn list(all: &[MemberView], now: Timestamp, out: Output) -> String {
    if all.is_empty() {
        return "there are no members; `freehold member invite` invites one".to_owned();
    }
    let mut table = Table::new(&["MEMBER", "GROUPS", "APPS", "INSTALLS", "STATE", "WHO", "INVITED BY"]);
    for one in all {
        table.row([
            one.member.to_string(),
            joined(&one.groups),
            joined(&one.apps),
            joined(&one.installs),
            state(one, now),
            one.who.clone().unwrap_or_default(),
            one.invited_by.to_string(),
        ]);
    }
    out.table(&table.without_empty(&["APPS", "INSTALLS", "WHO"]))
}

fn state(member: &MemberView, now: Timestamp) -> String {
    match (member.accepted_at, member.expires_at) {
        (Some(at), _) => format!("member since {}", time(at)),
        (None, Some(at)) if at <= now => format!("invitation expired at {}", time(at)),
        (None, Some(at)) => format!("invited until {}", time(at)),
        (None, None) => "invited".to_owned(),
    }
}

/// Returns the text about an invitation, with what the invited person does.
pub(super) fn invited(invited: &MemberInvited) -> String {
    let text = member(&invited.member);
    let (Some(code), until) = (&invited.code, invited.member.expires_at) else { return text };
    let until = until.map(|at| format!(" It is valid until {}.", time(at))).unwrap_or_default();
    format!(
        "{text}\n\nSend this code over a channel that only this person reads; it is not shown again.{until}\n\n  {code}\n\
         \n\
         next, by this person, once signed in: freehold member accept {code}"
    )
}

/// Returns a member on one line.
pub(super) fn member(view: &MemberView) -> String {
    let MemberView { member, groups, apps, installs, accepted_at, .. } = view;
    let is = if accepted_at.is_some() { "member" } else { "invitation of" };
    let parts = [("groups", joined(groups)), ("apps", joined(apps)), ("installs", joined(installs))];
    let parts = parts.iter().filter(|(_, names)| !names.is_empty()).map(|(what, names)| format!("; {what}: {names}"));
    format!("{is} `{member}`{}", parts.collect::<String>())
}

/// Returns who the caller is, and what the caller may do.
pub(super) fn caller(caller: &CallerView) -> String {
    let CallerView { who, name, groups, apps, installs, is_member, permissions } = caller;
    let title = match is_member {
        true => format!("{name}, a member of the tenant"),
        false => format!("{name}, not a member of the tenant"),
    };
    let permitted = match permissions.is_empty() {
        true => "nothing on the whole tenant".to_owned(),
        false => permissions.join(", "),
    };
    let lines = [
        ("authenticated as", who.clone()),
        ("groups", groups.join(", ")),
        ("apps", joined(apps)),
        ("installs", joined(installs)),
        ("may", permitted),
    ];
    let lines = lines.iter().filter(|(_, text)| !text.is_empty()).map(|(what, text)| format!("{what}: {text}"));
    let mut text: Vec<String> = std::iter::once(title).chain(lines).collect();
    if !is_member && permissions.is_empty() {
        text.push("ask for an invitation, and accept it with `freehold member accept CODE`".to_owned());
    }
    text.join("\n")
}

fn joined<'a, T: ToString + 'a>(names: impl IntoIterator<Item = &'a T>) -> String {
    names.into_iter().map(ToString::to_string).collect::<Vec<_>>().join(", ")
}

#[cfg(test)]
mod tests {
    use freehold_protocol::order::AskedBy;

    use super::*;

    fn ana() -> MemberView {
        MemberView {
            member: "ana@example.com".parse().unwrap(),
            who: None,
            groups: ["developer".to_owned(), "auditor".to_owned()].into(),
            apps: ["shop".parse().unwrap()].into(),
            installs: [].into(),
            invited_at: Timestamp::from_millis(0),
            invited_by: AskedBy::Sweep,
            accepted_at: None,
            expires_at: Some(Timestamp::from_millis(604_800_000)),
        }
    }

    #[test]
    fn the_state_of_a_member_is_that_of_the_invitation_until_it_is_accepted() {
        let member = MemberView { accepted_at: Some(Timestamp::from_millis(1000)), expires_at: None, ..ana() };
        let at = Timestamp::from_millis;

        assert_eq!(state(&ana(), at(1000)), "invited until 1970-01-08 00:00:00Z");
        assert_eq!(state(&ana(), at(604_800_000)), "invitation expired at 1970-01-08 00:00:00Z");
        assert_eq!(state(&member, at(2000)), "member since 1970-01-01 00:00:01Z");
    }

    #[test]
    fn an_invitation_shows_its_code_once_and_what_to_do_with_it() {
        let text = invited(&MemberInvited { member: ana(), code: Some("0f".repeat(32)) });

        insta::assert_snapshot!(text, @r"
        invitation of `ana@example.com`; groups: auditor, developer; apps: shop

        Send this code over a channel that only this person reads; it is not shown again. It is valid until 1970-01-08 00:00:00Z.

          0f0f0f0f0f0f0f0f0f0f0f0f0f0f0f0f0f0f0f0f0f0f0f0f0f0f0f0f0f0f0f0f

        next, by this person, once signed in: freehold member accept 0f0f0f0f0f0f0f0f0f0f0f0f0f0f0f0f0f0f0f0f0f0f0f0f0f0f0f0f0f0f0f0f
        ");
        assert!(!invited(&MemberInvited { member: ana(), code: None }).contains("code"));
    }

    #[test]
    fn a_caller_who_may_do_nothing_is_shown_the_way_in() {
        let nobody = CallerView {
            who: "person:1234".to_owned(),
            name: "1234".to_owned(),
            groups: Vec::new(),
            apps: [].into(),
            installs: [].into(),
            is_member: false,
            permissions: Vec::new(),
        };

        insta::assert_snapshot!(caller(&nobody), @r"
        1234, not a member of the tenant
        authenticated as: person:1234
        may: nothing on the whole tenant
        ask for an invitation, and accept it with `freehold member accept CODE`
        ");
    }
}
