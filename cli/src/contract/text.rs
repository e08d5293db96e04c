//! Renders contracts and differences between contracts as text.

use std::collections::{BTreeMap, BTreeSet};

use console::Style;
use freehold_permissions::{
    Permission, TermsDiff, describe_action, describe_answer, describe_copy, describe_probe, describe_reader,
    describe_value, permissions, why_wide,
};
use freehold_protocol::app_version::{PolicyEngine, Reference};
use freehold_protocol::contract::{ActionTerms, Contract, Reader, RoleTerms, Terms};
use freehold_protocol::{ActionName, Digest};

use crate::output::{Output, Table, clean, styled};

type Hosts = BTreeMap<String, BTreeSet<String>>;

/// Returns a contract as text; `signed` describes the signature.
pub(super) fn contract(
    head: &str,
    contract: &Contract,
    terms: &Digest,
    hosts: Option<&Hosts>,
    signed: &str,
    out: Output,
) -> String {
    let title = |text: &str| styled(text, Style::new().bold(), out.colours());
    let mut parts = vec![format!(
        "{}\n  version  {}\n  terms    {terms}\n  signed   {signed}",
        title(&format!("contract of {head}")),
        contract.version
    )];
    let terms = &contract.terms;
    let mut lines = vec![title("roles")];
    lines.extend(terms.roles.iter().flat_map(|one| role(one, out)));
    lines.extend(terms.policy_inputs.iter().map(|(name, value)| {
        format!(
            "  input `{}` is used in policies; its value is {value} unless the vendor or the customer sets another value",
            clean(name)
        )
    }));
    parts.push(lines.join("\n"));
    parts.extend(inputs(terms, out));
    parts.push(hosts_contacted(title("hosts contacted"), terms, hosts));
    if let Some(component) = &terms.tool_image {
        parts.push(format!("{}\n  run in the image of component `{component}`", title("programs of jobs")));
    }
    parts.extend(actions(contract, out));
    parts.extend(probes(terms, out));
    parts.extend(policies(terms, out));
    let mut table = Table::new(&["COMPONENT", "ARTIFACT"]);
    for (component, artifact) in &contract.artifacts {
        table.row([component.to_string(), artifact.to_string()]);
    }
    parts.push(out.table(&table));
    parts.join("\n\n")
}

/// Returns the hosts that jobs contact.
fn hosts_contacted(title: String, terms: &Terms, hosts: Option<&Hosts>) -> String {
    let mut lines = vec![title];
    lines.extend(terms.hosts.iter().map(|host| {
        let places = hosts.and_then(|hosts| hosts.get(host));
        let by = places.map(|places| format!("  by {}", places.iter().cloned().collect::<Vec<_>>().join(", ")));
        let inside = if terms.inside_hosts.contains(host) { "  may be in a private network" } else { "" };
        format!("  {}{inside}{}", clean(host), clean(&by.unwrap_or_default()))
    }));
    lines.join("\n")
}

/// Returns tables of the actions and of their schedules.
fn actions(contract: &Contract, out: Output) -> Vec<String> {
    let terms = &contract.terms;
    let mut tables = Vec::new();
    if !terms.actions.is_empty() {
        let mut table = Table::new(&["ACTION", "DOES", "STEPS"]);
        for action in &terms.actions {
            // These are the steps that the customer accepts. Terms of an earlier version do not name steps; then the
            // table shows the steps of this release.
            let steps = action
                .steps
                .as_ref()
                .or_else(|| contract.steps.get(&action.name))
                .map(|digest| digest.short().to_owned())
                .unwrap_or_default();
            table.row([action.name.to_string(), clean(&does(action)), steps]);
        }
        tables.push(out.table(&table));
    }
    if terms.actions.iter().any(|action| !action.schedules.is_empty()) {
        let mut table = Table::new(&["RUNS ON A SCHEDULE", "SCHEDULE (UTC)", "ROLE"]);
        for action in &terms.actions {
            for schedule in &action.schedules {
                table.row([action.name.to_string(), clean(schedule), clean(&action.role)]);
            }
        }
        tables.push(out.table(&table));
    }
    tables
}

/// Returns a table of the commands that health checks run, if there are any.
fn probes(terms: &Terms, out: Output) -> Option<String> {
    if terms.probes.is_empty() {
        return None;
    }
    let mut table = Table::new(&["HEALTH CHECK OF", "RUNS"]);
    for probe in &terms.probes {
        table.row([probe.component.to_string(), clean(&describe_probe(probe))]);
    }
    Some(out.table(&table))
}

/// Returns a table of the policies, if there are any.
fn policies(terms: &Terms, out: Output) -> Option<String> {
    if terms.policies.is_empty() {
        return None;
    }
    let mut table = Table::new(&["POLICY", "JUDGES", "ENGINE", "CONTENTS"]);
    for policy in &terms.policies {
        let engine = match policy.engine {
            PolicyEngine::Kyverno => "kyverno",
            PolicyEngine::Opa => "opa",
        };
        table.row([clean(&policy.name), clean(&policy.kind), engine.to_owned(), policy.contents.short().to_owned()]);
    }
    Some(out.table(&table))
}

/// Returns tables of the customer's inputs and of the secrets.
fn inputs(terms: &Terms, out: Output) -> Vec<String> {
    let mut tables = Vec::new();
    if !terms.customer_inputs.is_empty() {
        let mut table = Table::new(&["INPUT OF THE CUSTOMER", "ANSWER", "READ BY"]);
        for (name, input) in &terms.customer_inputs {
            let readers = readers(terms, &input.read_by, &[Reference::Input(name.clone())]);
            table.row([clean(name), describe_answer(input).to_owned(), clean(&readers)]);
        }
        tables.push(out.table(&table));
    }
    if !terms.secrets.is_empty() {
        let mut table = Table::new(&["SECRET", "VALUE", "READ BY"]);
        for (name, secret) in &terms.secrets {
            let shared = secret.shared.then(|| "can be read by roles of the app".to_owned());
            let copy = secret.kubernetes.as_ref().map(describe_copy);
            let says: Vec<String> =
                std::iter::once(describe_value(secret).to_owned()).chain(shared).chain(copy).collect();
            let read = [Reference::Secret(name.clone()), Reference::InstallStack(format!("{name}_arn"))];
            let readers = readers(terms, &secret.read_by, &read);
            table.row([clean(name), clean(&says.join(", ")), clean(&readers)]);
        }
        tables.push(out.table(&table));
    }
    tables
}

/// Returns the parts of the app that read an input or a secret. An action is such a part if its terms contain one of
/// `references`.
fn readers(terms: &Terms, read_by: &BTreeSet<Reader>, references: &[Reference]) -> String {
    let reads = |action: &&ActionTerms| references.iter().any(|one| action.reads.contains(one));
    let actions = terms.actions.iter().filter(reads);
    let actions = actions.map(|action| format!("action `{}`", action.name));
    let all: Vec<String> = read_by.iter().map(describe_reader).chain(actions).collect();
    if all.is_empty() { "nothing".to_owned() } else { all.join(", ") }
}

/// Returns the description of an action without its schedules, which have a table of their own.
fn does(action: &ActionTerms) -> String {
    describe_action(&ActionTerms { schedules: BTreeSet::new(), ..action.clone() })
}

fn role(role: &RoleTerms, out: Output) -> Vec<String> {
    let switch =
        if role.on { "on unless the customer switches it off" } else { "off until the customer switches it on" };
    let mut lines = vec![format!("  {}  {switch}", clean(&role.role))];
    let stated = permissions(&role.policies, role.boundary.as_deref());
    if stated.is_empty() {
        lines.push("      has no permissions of its own".to_owned());
    }
    for one in &stated {
        let why = match one {
            Permission::Managed { name } => why_wide(name),
            Permission::Statement { .. }
            | Permission::Other { .. }
            | Permission::GcpPredefined { .. }
            | Permission::Boundary
            | Permission::SwitchedOn
            | Permission::Undecided { .. } => None,
        };
        let text = clean(&one.stated());
        lines.push(match why {
            None => format!("      {text}"),
            Some(why) => styled(&format!("    ! {text}: {why}"), Style::new().magenta(), out.colours()),
        });
    }
    lines
}

/// Returns a difference as text. `steps` are the actions whose steps differ. `same` is true when the terms are
/// identical.
pub(super) fn diff(head: &str, diff: &TermsDiff, steps: &[ActionName], same: bool, out: Output) -> String {
    let line =
        |sign: char, style: Style, text: String| styled(&format!("  {sign} {}", clean(&text)), style, out.colours());
    let widened = diff.widened.iter().map(|clause| line('+', Style::new().green(), clause.to_string()));
    let narrowed = diff.narrowed.iter().map(|clause| line('-', Style::new().red(), clause.to_string()));
    let steps =
        steps.iter().map(|action| line('~', Style::new().yellow(), format!("action `{action}` runs different steps")));
    let lines: Vec<String> = widened.chain(narrowed).chain(steps).collect();
    let verdict = match (same, diff.widened.len()) {
        (true, _) => "the terms are the same; no new consent is needed".to_owned(),
        (false, 0) => "nothing more is allowed; no new consent is needed".to_owned(),
        (false, 1) => "there is 1 addition; the customer has to agree to it".to_owned(),
        (false, count) => format!("there are {count} additions; the customer has to agree to them"),
    };
    if lines.is_empty() {
        format!("{head}\n\n{verdict}")
    } else {
        format!("{head}\n\n{}\n\n{verdict}", lines.join("\n"))
    }
}

/// Returns the additions of a difference as text.
pub(super) fn additions(head: &str, diff: &TermsDiff, out: Output) -> String {
    let lines = diff
        .widened
        .iter()
        .map(|clause| styled(&format!("  + {}", clean(&clause.to_string())), Style::new().green(), out.colours()));
    format!("{head}\n\n{}", lines.collect::<Vec<_>>().join("\n"))
}

#[cfg(test)]
mod tests {
    use freehold_permissions::compare_terms;
    use serde_json::json;

    use super::*;

    fn terms(hosts: &[&str]) -> Terms {
        let document = r#"{"Statement": [
            {"Effect": "Allow", "Action": ["s3:GetObject", "s3:PutObject"], "Resource": "arn:aws:s3:::x/*"},
            {"Effect": "Deny", "Action": "s3:*", "Resource": "*", "Condition": {"Bool": {"aws:SecureTransport": "false"}}}
        ]}"#;
        serde_json::from_value(json!({
            "format": 1, "app": "shop", "hosts": hosts,
            "roles": [
                { "role": "provision", "on": true, "policies": [{ "managed": "PowerUserAccess" }, { "inline": { "name": "own", "document": document } }] },
                { "role": "break-glass", "on": false, "policies": [] },
            ],
            "actions": [{ "name": "dump", "role": "maintenance", "schedules": ["0 3 * * *", "30 12 * * 1"], "reads": [{ "to": "secret", "name": "tok\u{1b}en" }] }],
            "tool_image": "tools",
            "probes": [{ "component": "web", "command": ["check", "a b", "\u{1b}"] }],
            "customer_inputs": {
                "domain": { "read_by": [{ "part": "component", "name": "web" }, { "part": "role", "name": "provision" }] },
                "license": { "sensitive": true },
            },
            "secrets": {
                "session": { "generated": true, "read_by": [{ "part": "sandbox" }] },
                "tok\u{1b}en": { "shared": true, "kubernetes": { "namespace": "shop", "name": "token" } },
            },
        }))
        .unwrap()
    }

    #[test]
    fn a_contract_says_in_words_who_may_do_what() {
        let mut terms = terms(&["*.amazonaws.com", "db.example:5432", "x.example"]);
        terms.inside_hosts.insert("db.example:5432".to_owned());
        let digest = terms.digest().unwrap();
        let contract_of = Contract {
            format: 1,
            app: "shop".parse().unwrap(),
            version: Digest::of(b"v"),
            terms,
            artifacts: [("web".parse().unwrap(), Digest::of(b"a"))].into(),
            steps: [("dump".parse().unwrap(), Digest::of(b"s"))].into(),
        };
        let hosts = [("x.example".to_owned(), BTreeSet::from(["component `web` URL".to_owned()]))].into();

        let text = contract("app shop, version 3", &contract_of, &digest, Some(&hosts), "not yet", Output::plain());

        insta::assert_snapshot!(text.replace(digest.as_str(), "TERMS"), @r#"
        contract of app shop, version 3
          version  sha256:4c94485e0c21ae6c41ce1dfe7b6bfaceea5ab68e40a2476f50208e526f506080
          terms    TERMS
          signed   not yet

        roles
          provision  on unless the customer switches it off
              allows s3:GetObject, s3:PutObject on arn:aws:s3:::x/*
            ! managed policy PowerUserAccess: allows everything but IAM, as far as the boundary does not deny it
              denies s3:* on * when {"Bool":{"aws:SecureTransport":["false"]}}
          break-glass  off until the customer switches it on
              has no permissions of its own

        INPUT OF THE CUSTOMER  ANSWER                            READ BY
        domain                 is sent to the vendor             component `web`, policies of role `provision`
        license                stays in the account as a secret  nothing

        SECRET   VALUE                                                                                                                      READ BY
        session  is generated by the install stack                                                                                          the sandbox
        tok?en   is entered by the customer, can be read by roles of the app, is copied into Kubernetes secret `token` of namespace `shop`  action `dump`

        hosts contacted
          *.amazonaws.com
          db.example:5432  may be in a private network
          x.example  by component `web` URL

        programs of jobs
          run in the image of component `tools`

        ACTION  DOES                                          STEPS
        dump    runs as `maintenance`, reads secret `tok?en`  043a718774c5

        RUNS ON A SCHEDULE  SCHEDULE (UTC)  ROLE
        dump                0 3 * * *       maintenance
        dump                30 12 * * 1     maintenance

        HEALTH CHECK OF  RUNS
        web              command `["check","a b","\u001b"]` as `maintenance`, or as `provision` in the first deploy

        COMPONENT  ARTIFACT
        web        sha256:ca978112ca1bbdcafac231b39a23dc4da786eff8147c4e72b9807785afee48bb
        "#);
    }

    #[test]
    fn a_difference_ends_with_what_it_means_for_the_customer() {
        let (narrow, wide) = (terms(&["a.example"]), terms(&["a.example", "b.example"]));
        let text_of =
            |from: &Terms, to: &Terms| diff("head", &compare_terms(from, to), &[], from == to, Output::plain());
        let steps = |from: &Terms| {
            diff("head", &compare_terms(from, from), &["whoami".parse().unwrap()], true, Output::plain())
        };

        insta::assert_snapshot!(text_of(&narrow, &wide), @r"
        head

          + host `b.example` is contacted

        there is 1 addition; the customer has to agree to it
        ");
        insta::assert_snapshot!(text_of(&wide, &narrow), @r"
        head

          - host `b.example` is no longer contacted

        nothing more is allowed; no new consent is needed
        ");
        insta::assert_snapshot!(text_of(&wide, &wide), @r"
        head

        the terms are the same; no new consent is needed
        ");
        insta::assert_snapshot!(steps(&wide), @r"
        head

          ~ action `whoami` runs different steps

        the terms are the same; no new consent is needed
        ");
    }
}
