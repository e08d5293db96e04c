//! Renders a difference as text. It begins with the changes that need attention and ends with the jobs that a deploy
//! runs.

use console::{Alignment, Style, measure_text_width, pad_str};
use freehold_domain::diff::{Answer, Cause, Change, Diff, Egress, Items, Presence, Question, RoleDiff, Run};
use freehold_protocol::app_version::AppVersion;

use crate::output::{clean, plural, styled};

/// One line below a section's title.
struct Line {
    mark: Mark,
    /// The depth of indentation, in steps of four spaces.
    level: usize,
    /// The columns of the line. They are aligned with the columns of neighbouring lines on the same level.
    cells: Vec<String>,
}

/// The kind of a line, which decides its sign and colour.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Mark {
    Added,
    Removed,
    Changed,
    /// The line needs the user's attention.
    Attention,
    None,
}

impl Mark {
    const fn sign(self) -> char {
        match self {
            Self::Added => '+',
            Self::Removed => '-',
            Self::Changed => '~',
            Self::Attention => '!',
            Self::None => ' ',
        }
    }

    const fn style(self) -> Style {
        match self {
            Self::Added => Style::new().green(),
            Self::Removed => Style::new().red(),
            Self::Changed => Style::new().yellow(),
            Self::Attention => Style::new().magenta(),
            Self::None => Style::new(),
        }
    }
}

struct Section {
    title: &'static str,
    lines: Vec<Line>,
}

/// Returns the difference as text; `to` is the second version.
pub(super) fn render(diff: &Diff, to: &AppVersion, colours: bool) -> String {
    if diff.is_empty() {
        return "no differences".into();
    }
    let sections = [
        Section { title: "needs a value", lines: diff.answers.iter().map(answer).collect() },
        Section { title: "roles", lines: diff.roles.iter().flat_map(role).collect() },
        Section { title: "hosts contacted", lines: hosts(&diff.egress.added, &diff.egress.removed) },
        Section { title: "components", lines: items(&diff.components, "stays deployed in installs that have it") },
        Section { title: "actions", lines: items(&diff.actions, "") },
        Section { title: "inputs", lines: items(&diff.inputs, "") },
        Section { title: "secrets", lines: items(&diff.secrets, "") },
        Section { title: "runbooks", lines: items(&diff.runbooks, "") },
        Section { title: "policies", lines: items(&diff.policies, "") },
        Section { title: "settings", lines: items(&diff.settings, "") },
        Section { title: "texts", lines: diff.texts.iter().map(|one| change(one, 0)).collect() },
        Section { title: "a deploy runs", lines: diff.deploy.iter().map(run).collect() },
    ];
    let mut parts: Vec<String> =
        sections.iter().filter(|one| !one.lines.is_empty()).map(|one| section(one, colours)).collect();
    parts.push(summary(diff, to));
    parts.join("\n\n")
}

fn section(section: &Section, colours: bool) -> String {
    let mut out = styled(section.title, Style::new().bold(), colours);
    for (at, line) in section.lines.iter().enumerate() {
        let widths = widths(&section.lines, at);
        let mut text = String::new();
        for (column, cell) in line.cells.iter().enumerate() {
            let width = widths.get(column).copied().unwrap_or(0);
            text.push_str(&format!("{}  ", pad_str(&clean(cell), width, Alignment::Left, None)));
        }
        let indent = "    ".repeat(line.level);
        let text = format!("  {indent}{} {}", line.mark.sign(), text.trim_end());
        out.push('\n');
        out.push_str(&styled(text.trim_end(), line.mark.style(), colours));
    }
    out
}

/// Returns the column widths for the line at `at`, from all lines that are aligned with it: on the top level all lines
/// of this level, on a deeper level only the neighbouring lines of the same level.
fn widths(lines: &[Line], at: usize) -> Vec<usize> {
    let Some(level) = lines.get(at).map(|line| line.level) else { return Vec::new() };
    let before = lines.iter().take(at).rev().take_while(|line| level == 0 || line.level == level);
    let after = lines.iter().skip(at).take_while(|line| level == 0 || line.level == level);
    let mut widths: Vec<usize> = Vec::new();
    for line in before.chain(after).filter(|line| line.level == level) {
        // The last cell of a line needs no padding.
        let padded = line.cells.len().saturating_sub(1);
        for (column, cell) in line.cells.iter().take(padded).enumerate() {
            let width = measure_text_width(&clean(cell));
            match widths.get_mut(column) {
                Some(known) => *known = (*known).max(width),
                None => widths.push(width),
            }
        }
    }
    widths
}

fn answer(answer: &Answer) -> Line {
    let what = match (answer.what, answer.customer) {
        (Question::Input, true) => "input, by the customer",
        (Question::Input, false) => "input, by the vendor",
        (Question::Secret, _) => "secret, by the customer",
    };
    let cells = vec![answer.name.clone(), what.into(), answer.reason().into()];
    Line { mark: Mark::Attention, level: 0, cells }
}

fn role(role: &RoleDiff) -> Vec<Line> {
    let (mark, presence) = match role.presence {
        Presence::Added => (Mark::Added, "new"),
        Presence::Removed => (Mark::Removed, "gone"),
        Presence::Kept => (Mark::Changed, ""),
    };
    let way = match (role.presence, role.widened.is_empty(), role.narrowed.is_empty()) {
        (Presence::Added | Presence::Removed, _, _) => presence,
        (Presence::Kept, false, false) => "widened in one part and narrowed in another part",
        (Presence::Kept, false, true) => "widened",
        (Presence::Kept, true, false) => "narrowed",
        (Presence::Kept, true, true) => "unchanged",
    };
    let below = |mark: Mark, text: String| Line { mark, level: 1, cells: vec![text] };
    let mut lines = vec![Line { mark, level: 0, cells: vec![role.role.clone(), way.into()] }];
    lines.extend(role.widened.iter().map(|one| below(Mark::Added, one.describe(true))));
    lines.extend(role.narrowed.iter().map(|one| below(Mark::Removed, one.describe(false))));
    lines.extend(role.changes.iter().map(|one| change(one, 1)));
    lines
}

fn hosts(added: &[Egress], removed: &[Egress]) -> Vec<Line> {
    let line = |mark: Mark| {
        move |one: &Egress| Line {
            mark,
            level: 0,
            cells: vec![one.host.clone(), format!("by {}", one.places.join(", "))],
        }
    };
    added.iter().map(line(Mark::Added)).chain(removed.iter().map(line(Mark::Removed))).collect()
}

fn items(items: &Items, of_removed: &str) -> Vec<Line> {
    let mut lines = Vec::new();
    for one in &items.added {
        lines.push(Line { mark: Mark::Added, level: 0, cells: vec![one.name.clone(), one.what.clone()] });
    }
    for one in &items.removed {
        let cells = vec![one.name.clone(), one.what.clone(), of_removed.to_owned()];
        lines.push(Line { mark: Mark::Removed, level: 0, cells });
    }
    for one in &items.changed {
        lines.push(Line { mark: Mark::Changed, level: 0, cells: vec![one.name.clone(), one.what.clone()] });
        lines.extend(one.changes.iter().map(|one| change(one, 1)));
    }
    lines
}

fn change(change: &Change, level: usize) -> Line {
    let key = change.key.clone();
    let (mark, text) = match (&change.from, &change.to) {
        (None, Some(to)) => (Mark::Added, to.clone()),
        (Some(from), None) => (Mark::Removed, from.clone()),
        (Some(from), Some(to)) => (Mark::Changed, format!("{from} -> {to}")),
        (None, None) => (Mark::Changed, String::new()),
    };
    Line { mark, level, cells: vec![key, text] }
}

fn run(run: &Run) -> Line {
    let list = |components: &std::collections::BTreeSet<String>| {
        components.iter().map(String::as_str).collect::<Vec<_>>().join(", ")
    };
    let why = match &run.cause {
        Cause::New => "new".to_owned(),
        Cause::Changed => "changed".to_owned(),
        Cause::DependsOn { components } => format!("depends on {}", list(components)),
        Cause::TriggeredBy { components } => format!("triggered by {}", list(components)),
        Cause::Precedes { components } => format!("runs before {}", list(components)),
    };
    Line { mark: Mark::None, level: 0, cells: vec![run.node.clone(), why] }
}

fn summary(diff: &Diff, to: &AppVersion) -> String {
    let is_action = |run: &&Run| matches!(run.cause, Cause::TriggeredBy { .. } | Cause::Precedes { .. });
    let actions = diff.deploy.iter().filter(is_action).count();
    let components = diff.deploy.len() - actions;
    let widened = diff.roles.iter().filter(|role| !role.widened.is_empty()).count();
    let mut parts = vec![match diff.deploy.is_empty() {
        true => "a deploy has nothing to run".to_owned(),
        false => format!("a deploy runs {components} of {}", plural(to.components.len(), "component")),
    }];
    if actions > 0 {
        parts.push(plural(actions, "action"));
    }
    if !diff.answers.is_empty() {
        parts.push(format!("needs {} first", plural(diff.answers.len(), "answer")));
    }
    if widened > 0 {
        parts.push(format!("widens {}", plural(widened, "role")));
    }
    if !diff.egress.added.is_empty() {
        parts.push(format!("allows {}", plural(diff.egress.added.len(), "new host")));
    }
    parts.join(", ")
}

#[cfg(test)]
mod tests {
    use freehold_domain::diff::diff;
    use serde_json::{Value, json};

    use super::*;

    fn version(document: &Value) -> AppVersion {
        let mut all = json!({ "format": 1, "app": "demo" });
        all.as_object_mut().unwrap().extend(document.as_object().unwrap().clone());
        serde_json::from_value(all).unwrap()
    }

    fn component(name: &str, vars: &Value, after: &Value) -> Value {
        json!({
            "name": name, "deploy_timeout_secs": 600, "source": { "from": "version" }, "dependencies": after,
            "spec": { "kind": "terraform_module", "terraform_version": "1.11.3", "vars": vars },
        })
    }

    fn two() -> (AppVersion, AppVersion) {
        let role = |action: &str| {
            let statement = json!({ "Effect": "Allow", "Action": action, "Resource": "*" });
            let document = json!({ "Statement": [statement] }).to_string();
            json!([{ "mode": "maintenance", "policies": [{ "inline": { "name": "p", "document": document } }] }])
        };
        let from = json!({
            "components": [
                component("api", &json!({ "size": 1, "legacy_mode": true }), &json!([])),
                component("old", &json!({}), &json!([])),
                component("web", &json!({}), &json!(["api"])),
            ],
            "roles": role("s3:Get*"),
        });
        let to = json!({
            "components": [
                component("api", &json!({ "size": 2, "url": "https://api.example/" }), &json!([])),
                component("cache", &json!({}), &json!([])),
                component("web", &json!({}), &json!(["api"])),
            ],
            "inputs": [{ "name": "region\u{1b}[31m", "type": "string", "required": true, "customer": true }],
            "roles": role("s3:*"),
            "actions": [{ "name": "check", "timeout_secs": 60, "steps": [], "triggers": [
                { "on": "post_deploy_all_components" },
            ] }],
        });
        (version(&from), version(&to))
    }

    #[test]
    fn sections_are_aligned_and_say_what_matters_first() {
        let (from, to) = two();

        let text = render(&diff(&from, &to), &to, false);

        insta::assert_snapshot!(text, @r#"
        needs a value
          ! region?[31m  input, by the customer  new and required

        roles
          ~ mode maintenance  widened
              + allows s3:* on *

        hosts contacted
          + api.example  by component `api` vars.url

        components
          + cache  terraform_module
          - old    terraform_module  stays deployed in installs that have it
          ~ api    terraform_module
              - vars.legacy_mode  true
              ~ vars.size         1 -> 2
              + vars.url          "https://api.example/"

        actions
          + check

        inputs
          + region?[31m  string

        a deploy runs
            api           changed
            cache         new
            web           depends on api
            action:check  triggered by api, cache, web

        a deploy runs 3 of 3 components, 1 action, needs 1 answer first, widens 1 role, allows 1 new host
        "#);
    }

    #[test]
    fn colours_add_nothing_but_colours() {
        let (from, to) = two();
        let diff = diff(&from, &to);

        let coloured = render(&diff, &to, true);

        let codes = [0, 1, 31, 32, 33, 35];
        let plain = codes.iter().fold(coloured.clone(), |text, code| text.replace(&format!("\u{1b}[{code}m"), ""));
        assert_eq!(plain, render(&diff, &to, false));
        assert_ne!(plain, coloured);
    }

    #[test]
    fn an_unchanged_app_is_reported_in_one_short_line() {
        let (from, _) = two();

        assert_eq!(render(&diff(&from, &from), &from, true), "no differences");
    }
}
