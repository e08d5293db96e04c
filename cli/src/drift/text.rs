//! The output of the commands about drift, for people.

use freehold_protocol::api::{DriftRuleView, DriftView, DriftedView, InstallDrift, PartDrift};
use freehold_protocol::approval::ChangeKind;

use crate::api::{IN_A_TABLE, brief};
use crate::output::{Output, Table, plural, time};

/// Returns the differences in an install, and its rules.
pub(super) fn list(found: &InstallDrift, out: Output) -> String {
    let install = &found.install;
    if found.parts.is_empty() && found.rules.is_empty() {
        return format!("no drift check of `{install}` has ended; `freehold drift detect {install}` starts one");
    }
    let has_resources = found.parts.iter().any(|part| count(&part.drift) > 0);
    let repair = found.parts.iter().find(|part| part.drift.state == "drifted").map(|part| &part.component);
    let next = repair.map(|name| {
        format!(
            "next: `freehold deploy {install} --component {name}` repairs it, `freehold drift acknowledge {install} \
             ADDRESS --reason TEXT` accepts it for now"
        )
    });
    let paragraphs = [
        (!found.parts.is_empty()).then(|| out.table(&table_of_parts(&found.parts))),
        has_resources.then(|| out.table(&table_of_resources(&found.parts))),
        (!found.rules.is_empty()).then(|| out.table(&table_of_rules(&found.rules))),
        next,
    ];
    paragraphs.into_iter().flatten().map(|text| text.trim_end().to_owned()).collect::<Vec<_>>().join("\n\n")
}

fn table_of_parts(parts: &[PartDrift]) -> Table {
    let mut table = Table::new(&["COMPONENT", "STATE", "CHECKED", "DIFFERS", "REASON"]);
    for part in parts {
        table.row([
            part.component.to_string(),
            part.drift.state.clone(),
            time(part.drift.checked_at),
            count(&part.drift).to_string(),
            brief(&part.drift.reason, IN_A_TABLE),
        ]);
    }
    table
}

fn table_of_resources(parts: &[PartDrift]) -> Table {
    let mut table = Table::new(&["COMPONENT", "RESOURCE", "DIFFERS IN", "SINCE", "NOTE"]);
    for part in parts {
        for one in &part.drift.resources {
            table.row([
                part.component.to_string(),
                one.resource.address.clone(),
                differs_in(one),
                time(one.since),
                note(one),
            ]);
        }
        if part.drift.more > 0 {
            let more = format!("and {} more", part.drift.more);
            table.row([part.component.to_string(), more, String::new(), String::new(), String::new()]);
        }
    }
    table
}

fn table_of_rules(rules: &[DriftRuleView]) -> Table {
    let mut table = Table::new(&["RULE", "COMPONENT", "ATTRIBUTES", "REASON", "BY"]);
    for rule in rules {
        table.row([
            rule.address.clone(),
            rule.component.as_ref().map_or_else(|| "all".to_owned(), ToString::to_string),
            if rule.attributes.is_empty() { "all".to_owned() } else { names(rule.attributes.iter()) },
            rule.reason.clone(),
            rule.by.to_string(),
        ]);
    }
    table
}

/// Returns the sentence about the drift of one component, for `freehold install show`.
pub(crate) fn state_text(drift: &DriftView, out: Output) -> String {
    let checked = time(drift.checked_at);
    let state = out.state(&drift.state);
    match drift.state.as_str() {
        "drifted" | "acknowledged" => {
            let since = drift.resources.iter().map(|one| one.since).min().map(time).unwrap_or_default();
            let dots = if count(drift) > 3 { ", ..." } else { "" };
            let addresses = names(drift.resources.iter().take(3).map(|one| &one.resource.address)) + dots;
            format!("{state} since {since}: {} ({addresses}); checked {checked}", differing(drift))
        }
        "unknown" => format!("{state}: {}; checked {checked}", brief(&drift.reason, IN_A_TABLE)),
        "unchecked" => format!("{state} since its last deploy"),
        _ => format!("{state}; checked {checked}"),
    }
}

fn differing(drift: &DriftView) -> String {
    plural(usize::try_from(count(drift)).unwrap_or(usize::MAX), "resource")
}

fn count(drift: &DriftView) -> u64 {
    drift.resources.len() as u64 + drift.more
}

fn names<'a>(names: impl Iterator<Item = &'a String>) -> String {
    names.map(String::as_str).collect::<Vec<_>>().join(", ")
}

fn differs_in(one: &DriftedView) -> String {
    let resource = &one.resource;
    let more =
        if resource.more_attributes > 0 { format!(" and {} more", resource.more_attributes) } else { String::new() };
    match resource.change {
        ChangeKind::Create => "missing".to_owned(),
        ChangeKind::Delete => "should not exist".to_owned(),
        ChangeKind::Update | ChangeKind::Replace | ChangeKind::Run => {
            let replaces = if resource.change == ChangeKind::Replace { " (a deploy replaces it)" } else { "" };
            format!("{}{more}{replaces}", names(resource.attributes.iter()))
        }
    }
}

fn note(one: &DriftedView) -> String {
    match &one.acknowledged {
        Some(known) => format!("acknowledged by {}: {}", known.by, known.reason),
        None if one.ignored => "ignored by a rule".to_owned(),
        None => String::new(),
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn found() -> InstallDrift {
        let arn = "arn:aws:sts::111111111111:assumed-role/ops/ada";
        serde_json::from_value(json!({
            "install": "globex",
            "parts": [
                { "component": "web", "state": "drifted", "checked_at": 9000, "workflow": "wf_00000000000000000002", "more": 2,
                  "resources": [
                    { "address": "aws_sqs_queue.jobs", "change": "update", "attributes": ["delay_seconds", "tags.Owner"],
                      "since": 1000 },
                    { "address": "aws_sqs_queue.old", "change": "create", "since": 9000,
                      "acknowledged": { "by": { "by": "caller", "arn": arn }, "reason": "gone on purpose", "at": 9500 } },
                    { "address": "aws_sqs_queue.z", "change": "replace", "attributes": ["name"], "more_attributes": 3,
                      "since": 9000, "ignored": true },
                  ] },
                { "component": "net", "state": "unknown", "reason": "job `job_1` is blocked", "checked_at": 9000,
                  "workflow": "wf_00000000000000000002" },
            ],
            "rules": [{ "address": "*.z", "attributes": ["name"], "reason": "renamed by hand", "at": 1,
                        "by": { "by": "caller", "arn": arn } }],
        }))
        .unwrap()
    }

    #[test]
    fn a_list_says_what_differs_since_when_and_who_knows() {
        insta::assert_snapshot!(list(&found(), Output::plain()), @r"
        COMPONENT  STATE    CHECKED               DIFFERS  REASON
        web        drifted  1970-01-01 00:00:09Z  5
        net        unknown  1970-01-01 00:00:09Z  0        job `job_1` is blocked

        COMPONENT  RESOURCE            DIFFERS IN                              SINCE                 NOTE
        web        aws_sqs_queue.jobs  delay_seconds, tags.Owner               1970-01-01 00:00:01Z
        web        aws_sqs_queue.old   missing                                 1970-01-01 00:00:09Z  acknowledged by arn:aws:sts::111111111111:assumed-role/ops/ada: gone on purpose
        web        aws_sqs_queue.z     name and 3 more (a deploy replaces it)  1970-01-01 00:00:09Z  ignored by a rule
        web        and 2 more

        RULE  COMPONENT  ATTRIBUTES  REASON           BY
        *.z   all        name        renamed by hand  arn:aws:sts::111111111111:assumed-role/ops/ada

        next: `freehold deploy globex --component web` repairs it, `freehold drift acknowledge globex ADDRESS --reason TEXT` accepts it for now
        ");
    }

    #[test]
    fn an_install_without_a_check_names_the_command() {
        let none = InstallDrift { parts: Vec::new(), rules: Vec::new(), ..found() };

        assert_eq!(
            list(&none, Output::plain()),
            "no drift check of `globex` has ended; `freehold drift detect globex` starts one"
        );
    }

    #[test]
    fn one_sentence_is_enough_for_the_install() {
        let found = found();
        let text = |at: usize| state_text(&found.parts[at].drift, Output::plain());

        assert_eq!(
            text(0),
            "drifted since 1970-01-01 00:00:01Z: 5 resources (aws_sqs_queue.jobs, aws_sqs_queue.old, aws_sqs_queue.z, ...); \
             checked 1970-01-01 00:00:09Z"
        );
        assert_eq!(text(1), "unknown: job `job_1` is blocked; checked 1970-01-01 00:00:09Z");
    }
}
