//! Renders a lineage as text: a tree of origins, a table of uses and a table of links.

use freehold_protocol::lineage::{Lineage, Made, Used};
use freehold_protocol::order::Source;
use freehold_protocol::provenance::Statement;

use super::verify::Verification;
use crate::output::{Output, Table, time};

/// Returns the tree and the tables.
pub(super) fn render(lineage: &Lineage, verification: Option<&Verification>, out: Output) -> String {
    let mut parts = vec![tree(lineage)];
    if !lineage.uses.is_empty() {
        parts.push(out.table(&uses(lineage)));
    }
    if let Some(verification) = verification {
        parts.push(out.table(&links(verification)));
        let held = verification.links.iter().filter(|link| link.ok).count();
        let all = verification.links.len();
        parts.push(format!("{held} of {all} links are valid under root key {}", verification.root_key));
    }
    parts.join("\n\n")
}

/// One branch of the tree: its line, and the lines below it.
struct Branch {
    line: String,
    leaves: Vec<String>,
}

fn tree(lineage: &Lineage) -> String {
    let branches: Vec<Branch> = lineage.builds.iter().map(made).chain(lineage.uses.iter().map(used)).collect();
    let mut lines = vec![format!("{} of tenant {}", lineage.artifact, lineage.tenant)];
    for (at, branch) in branches.iter().enumerate() {
        let last = at + 1 == branches.len();
        lines.push(format!("{} {}", if last { "└─" } else { "├─" }, branch.line));
        let stem = if last { "   " } else { "│  " };
        for (at, leaf) in branch.leaves.iter().enumerate() {
            let twig = if at + 1 == branch.leaves.len() { "└─" } else { "├─" };
            lines.push(format!("{stem}{twig} {leaf}"));
        }
    }
    lines.join("\n")
}

fn made(made: &Made) -> Branch {
    let statement: Option<Statement> = made.provenance.as_ref().and_then(|found| found.statement.peek().ok());
    let mut leaves = vec![format!("source     {}", source(&made.source))];
    let dependencies = statement.iter().flat_map(|found| &found.predicate.build_definition.resolved_dependencies);
    for one in dependencies {
        let digests: Vec<String> = one.digest.iter().map(|(algorithm, hex)| format!("{algorithm}:{hex}")).collect();
        leaves.push(format!("resolved   {} {}", one.uri, digests.join(" ")));
    }
    let signer = made.provenance.as_ref().and_then(|found| found.statement.signatures.first());
    leaves.push(match signer {
        Some(signer) => format!("statement  signed by key {}", signer.keyid),
        None => "statement  none".to_owned(),
    });
    leaves.push(format!("job        {} attempt {} by runner {}", made.proof.job, made.proof.fence, made.proof.runner));
    if let Some(why) = &made.revoked {
        leaves.push(format!("revoked    {why}"));
    }
    let line = format!("built as {}/{} {} at {}", made.app, made.component, made.build, time(made.proof.at));
    Branch { line, leaves }
}

fn used(used: &Used) -> Branch {
    let proof = &used.proof;
    let signer = proof.order.as_ref().and_then(|order| order.signatures.first());
    let mut leaves = vec![
        match signer {
            Some(signer) => format!("order      {} signed by key {}", used.workflow, signer.keyid),
            None => "order      not recorded".to_owned(),
        },
        format!("build      {}", used.build),
        format!("approval   {}", used.approval.describe()),
        format!("job        {} attempt {} by runner {}", proof.job, proof.fence, proof.runner),
    ];
    if let Some(why) = &used.disabled {
        leaves.push(format!("disabled   {why}"));
    }
    let line =
        format!("deployed to {} (account {}) as {} at {}", proof.install, used.account, used.component, time(proof.at));
    Branch { line, leaves }
}

fn source(source: &Source) -> String {
    match source {
        Source::Directory { digest } => format!("directory {digest}"),
        Source::Git { url, commit, directory, branch } => {
            let branch = if branch.is_empty() { String::new() } else { format!(" ({branch})") };
            let directory = if directory.is_empty() { String::new() } else { format!(" {directory}") };
            format!("{url}{directory} at {commit}{branch}")
        }
        Source::Image { reference } | Source::EcrImage { reference, .. } => reference.clone(),
        Source::Chart { repo_url, chart, version } => format!("{repo_url} {chart} {version}"),
        Source::Version => source.describe().to_owned(),
    }
}

fn uses(lineage: &Lineage) -> Table {
    let mut table =
        Table::new(&["INSTALL", "ACCOUNT", "COMPONENT", "DEPLOYED", "JOB", "ATTEMPT", "RUNNER", "APPROVAL"]);
    for used in &lineage.uses {
        let proof = &used.proof;
        table.row([
            proof.install.to_string(),
            used.account.to_string(),
            used.component.to_string(),
            time(proof.at),
            proof.job.to_string(),
            proof.fence.to_string(),
            proof.runner.as_str().chars().take(12).collect(),
            used.approval.describe().to_owned(),
        ]);
    }
    table
}

fn links(verification: &Verification) -> Table {
    let mut table = Table::new(&["LINK", "STATE", "OF", "SAYS"]);
    for link in &verification.links {
        let state = if link.ok { "ok" } else { "broken" };
        table.row([link.link.as_str().to_owned(), state.to_owned(), link.of.clone(), link.says.clone()]);
    }
    table
}
