//! Checks the inputs that policies of roles read: no answer and no default may give a role more than the contract shows.

use std::collections::{BTreeMap, BTreeSet};
use std::ops::Range;

use freehold_domain::inputs::{parameter_default, refused_default};
use freehold_permissions::{Answers, InStack, Refusal, RolePlace, inputs_read};
use freehold_protocol::app_version::{Input, RolePolicy};
use freehold_protocol::{AccountId, AppName, InstallId, TenantName};
use serde_json::value::RawValue;

use crate::check::policy_document;
use crate::kinds::Kind;
use crate::read::document::Node;
use crate::read::files::Place;
use crate::report::draft::Draft;
use crate::state::app::App;
use crate::state::file::Checked;
use crate::state::roles::{boundaries_in, policies_in};

/// Reports values of policies, and defaults of the customer's inputs, that an install stack cannot have.
pub(crate) fn check(app: &mut App, inputs: &[Input]) {
    let Some(example) = Example::new() else { return };
    let answers = answers(inputs);
    let mut drafts = Vec::new();
    let mut read = BTreeSet::new();
    for checked in &app.checked {
        for policies in policies_in(checked) {
            drafts.extend(same_names(checked, policies, &example));
            for contents in policies.iter().filter_map(|policy| policy.get("contents")) {
                let Some(text) = checked.content(contents) else { continue };
                read.extend(inputs_read(text));
                let refusals = example.place().refusals(text, &answers);
                drafts.extend(refusals.into_iter().map(|one| draft(app, checked, contents, text, one)));
            }
        }
    }
    for checked in &app.checked {
        for boundary in boundaries_in(checked) {
            let text = checked.content(boundary).filter(|text| !policy_document::is_empty(text));
            // A text that is not a policy document, such as an ARN, is reported elsewhere.
            let text = text.filter(|text| !text.starts_with("arn:"));
            let Some(text) = text.filter(|text| policy_document::flaws(text).is_empty()) else { continue };
            read.extend(inputs_read(text));
            let refusals = example.place().refusals(text, &answers);
            let is_refused = !refusals.is_empty();
            drafts.extend(refusals.into_iter().map(|one| draft(app, checked, boundary, text, one)));
            if let Err(reason) = InStack::of(&[], Some(text), example.place(), &answers)
                && !is_refused
            {
                drafts.push(described(checked.place(boundary), &reason));
            }
        }
    }
    for (checked, node) in input_nodes(app) {
        let input = inputs.iter().find(|input| node.text("name") == Some(input.name.as_str()));
        if let (Some(input), Some(default)) = (input, node.get("default")) {
            let flaw = of_default(input, &read);
            let draft = |(message, help): (String, String)| {
                Draft::error(checked.place(default), message).help(help).secret_if(input.sensitive)
            };
            drafts.extend(flaw.map(draft));
        }
    }
    app.drafts.extend(drafts);
}

/// The names of an example install, for a policy that is rendered before an install exists.
struct Example {
    tenant: TenantName,
    app: AppName,
    install: InstallId,
    account: AccountId,
}

impl Example {
    fn new() -> Option<Self> {
        Some(Self {
            tenant: "vendor".parse().ok()?,
            app: "app".parse().ok()?,
            install: "install".parse().ok()?,
            account: "111122223333".parse().ok()?,
        })
    }

    fn place(&self) -> RolePlace<'_> {
        let Self { tenant, app, install, account } = self;
        RolePlace { tenant, app, install, account, region: "us-east-1" }
    }
}

/// Returns the answers to the inputs: a reference for an input that the customer answers, and for any other input that
/// is not sensitive its default, or the text `word` if it has none.
fn answers(inputs: &[Input]) -> Answers {
    let mut answers = Answers::default();
    for input in inputs {
        match (input.sensitive, input.customer) {
            (true, _) => answers.sensitive(&input.name),
            (false, true) => answers.asked(&input.name, &input.parameter()),
            (false, false) => answers.known(&input.name, input.default.clone().unwrap_or_else(|| "word".into())),
        }
    }
    answers
}

/// Reports two policies of a role that would have the same name in AWS.
fn same_names(checked: &Checked, policies: &[Node], example: &Example) -> Option<Draft> {
    let named = |node: &Node| Some(RolePolicy::Inline { name: node.text("name")?.to_owned(), document: "{}".into() });
    let mut before = Vec::new();
    for node in policies.iter().filter(|node| node.get("contents").is_some()) {
        before.extend(named(node));
        if let Err(reason) = InStack::of(&before, None, example.place(), &Answers::default()) {
            return Some(described(checked.place_of(node, "name"), &reason));
        }
    }
    None
}

fn draft(app: &App, checked: &Checked, contents: &Node, text: &str, Refusal { path, reason }: Refusal) -> Draft {
    let place = match range_of(text, &path) {
        Some(range) => {
            let mut place = checked.place_in(&app.files, contents, range.start);
            place.span.end = checked.place_in(&app.files, contents, range.end).span.start;
            place
        }
        None => checked.place(contents),
    };
    described(place, &reason)
}

/// Returns an error from a reason with two parts: the problem, and after a semicolon how to fix it.
fn described(place: Place, reason: &str) -> Draft {
    match reason.split_once("; ") {
        Some((message, help)) => Draft::error(place, message).help(help),
        None => Draft::error(place, reason),
    }
}

/// Returns the place of the value to which `path` leads in a JSON text, in bytes.
fn range_of(text: &str, path: &[String]) -> Option<Range<usize>> {
    let mut found: &RawValue = serde_json::from_str(text).ok()?;
    for step in path {
        found = match serde_json::from_str::<Vec<&RawValue>>(found.get()) {
            Ok(items) => *items.get(step.parse::<usize>().ok()?)?,
            Err(_) => {
                let entries = serde_json::from_str::<BTreeMap<String, &RawValue>>(found.get());
                *entries.ok()?.get(step)?
            }
        };
    }
    let start = found.get().as_ptr().addr().checked_sub(text.as_ptr().addr())?;
    Some(start..start + found.get().len())
}

fn input_nodes(app: &App) -> impl Iterator<Item = (&Checked, &Node)> {
    app.checked.iter().flat_map(|checked| {
        let nodes: &[Node] = match checked.kind {
            Kind::Inputs => checked.root.tables("input"),
            Kind::Input => std::slice::from_ref(&checked.root),
            _ => &[],
        };
        nodes.iter().map(move |node| (checked, node))
    })
}

/// Returns the mistake in the default of an input that the customer answers, and the help. `read` are the inputs that
/// policies read.
fn of_default(input: &Input, read: &BTreeSet<String>) -> Option<(String, String)> {
    let text = parameter_default(input).ok()?.filter(|_| input.customer)?;
    let name = &input.name;
    if let Some(reason) = refused_default(&text) {
        let (why, help) = reason.split_once("; ").unwrap_or((&reason, "leave it out"));
        return Some((format!("the default of input `{name}` {why}"), help.to_owned()));
    }
    let is_pattern = text.contains(['*', '?']) || text.contains("${");
    (is_pattern && read.contains(name)).then(|| {
        let message =
            format!("the default of input `{name}` has a wildcard or a variable of IAM, and a policy reads this input");
        let help = "write a default without `*`, `?` and `${`: `freehold customer verify-template` refuses the install stack \
                    otherwise, because a role could do more than the contract says";
        (message, help.to_owned())
    })
}
