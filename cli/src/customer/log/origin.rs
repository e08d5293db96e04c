//! `freehold customer origin`: what an artifact was built from, by the signed statements in the orders.

use clap::Args;
use freehold_protocol::order::{Artifact, Order, Work};
use freehold_protocol::provenance::{Expected, Predicate, Statement};
use freehold_protocol::{AppName, ComponentName, Digest};
use serde::Serialize;

use super::super::answer::Answer;
use super::super::question::Question;
use super::answer::of_log;
use super::evidence::{Evidence, Records};
use super::history::{Run, runs};
use crate::context::Context;
use crate::error::{Error, Result};
use crate::output::{Part, Table, clean, time};

/// For customers: show what an artifact was built from, and which jobs used it.
#[derive(Debug, Args)]
#[command(after_help = Question::Origin.help("\
Examples:
  freehold customer origin globex --tenant acme \\
      --artifact sha256:05b3abf2579a5eb66403cd78be557fd860633a1fe2103c7642030defe32c657f
  freehold customer origin --copy globex-bucket --root-key 11qYAYKxCrfVS/7TyWQHOg7hcvPapiMlrwIaaPcHURo=

Without `--artifact`, the output lists every artifact that a job used. The digest of an image is the digest that the
cluster or the registry shows."))]
pub(crate) struct Origin {
    #[command(flatten)]
    records: Records,
    /// Show only this artifact.
    #[arg(long, value_name = "DIGEST")]
    artifact: Option<Digest>,
}

/// An artifact with the statement of its build.
#[derive(Debug, Serialize)]
struct Made {
    artifact: Digest,
    component: ComponentName,
    /// The statement that the vendor's root key signed; absent when the statement is missing or not valid.
    #[serde(skip_serializing_if = "Option::is_none")]
    statement: Option<Predicate>,
    /// The numbers of the records of the attempts that used the artifact.
    used_by: Vec<u64>,
}

impl Origin {
    pub(crate) async fn run(&self, context: &Context) -> Result<()> {
        answer(&self.records.read(context).await?, self.artifact.as_ref())?.print(context.out)
    }
}

/// Returns what all artifacts that a job used, or only `artifact`, were built from.
pub(in crate::customer) fn answer(evidence: &Evidence, artifact: Option<&Digest>) -> Result<Answer> {
    let runs = runs(&evidence.copy, evidence.roots.as_ref());
    let (made, doubts) = made(&runs, evidence, artifact);
    if let (Some(artifact), true) = (artifact, made.is_empty()) {
        return Err(Error::not_found(format!("no signed order in {} names artifact {artifact}", evidence.whose))
            .or("`freehold customer origin` without `--artifact` lists all artifacts that signed orders name"));
    }
    of_log(Question::Origin, evidence, (&made, &doubts), part(&made))
}

/// Returns the artifacts that attempts used, and the doubts about them. `wanted` is the only artifact to return.
fn made(runs: &[Run], evidence: &Evidence, wanted: Option<&Digest>) -> (Vec<Made>, Vec<String>) {
    let (mut made, mut doubts) = (Vec::<Made>::new(), Vec::new());
    for run in runs {
        if let Some(why) = &run.doubt {
            doubts.push(format!("record {}, job {}: {why}", run.record, run.job));
        }
        let Some(order) = &run.signed else { continue };
        for (component, artifact) in named(order) {
            if wanted.is_some_and(|wanted| *wanted != artifact.digest) {
                continue;
            }
            let known = made.iter_mut().find(|one| one.artifact == artifact.digest && one.component == *component);
            if let Some(known) = known {
                known.used_by.push(run.record);
                continue;
            }
            let statement = match statement(order, component, artifact, evidence) {
                Ok(statement) => Some(statement.predicate),
                Err(why) => {
                    doubts.push(format!("artifact {} of `{component}`: {why}", artifact.digest));
                    None
                }
            };
            let (artifact, component) = (artifact.digest.clone(), component.clone());
            made.push(Made { artifact, component, statement, used_by: vec![run.record] });
        }
    }
    (made, doubts)
}

/// Returns the artifacts that an order names, with their components.
fn named(order: &Order) -> Vec<(&ComponentName, &Artifact)> {
    let work = order.work.made_by();
    let own = work.component().zip(work.artifact());
    let image = order.tool_image.as_ref().map(|image| (&image.component, &image.artifact));
    let directories = if let Work::Action(action) = work { action.directories.as_slice() } else { &[] };
    own.into_iter().chain(image).chain(directories.iter().map(|one| (&one.component, &one.artifact))).collect()
}

fn statement(
    order: &Order,
    component: &ComponentName,
    artifact: &Artifact,
    evidence: &Evidence,
) -> Result<Statement, String> {
    let provenance = artifact.provenance.as_ref().ok_or("the order has no statement of its build")?;
    let app = order.context.pointer("/nuon/app/name").and_then(serde_json::Value::as_str);
    let app = app.and_then(|name| name.parse::<AppName>().ok());
    let app = app.as_ref().map(AppName::as_str);
    let Some(roots) = &evidence.roots else {
        return provenance.statement.peek().map_err(|error| error.to_string());
    };
    let expected = Expected { tenant: &order.tenant, artifact: &artifact.digest, app, component };
    provenance
        .verify(roots.signer(&provenance.statement), &expected)
        .map_err(|error| freehold_aws_errors::chain(&error))
}

fn part(all: &[Made]) -> Part {
    let mut table = Table::new(&["ARTIFACT", "COMPONENT", "BUILT AT", "FROM", "USED BY RECORDS"]);
    for one in all {
        let (at, from) = match &one.statement {
            Some(built) => {
                let sources = built.build_definition.resolved_dependencies.iter().map(|source| {
                    let digests = source.digest.iter().map(|(kind, hex)| format!("{kind}:{hex}"));
                    format!("{} {}", clean(&source.uri), digests.collect::<Vec<_>>().join(" "))
                });
                (time(built.run_details.metadata.finished_on), sources.collect::<Vec<_>>().join("\n"))
            }
            None => (String::new(), "unknown".to_owned()),
        };
        let used = one.used_by.iter().map(ToString::to_string).collect::<Vec<_>>().join(", ");
        table.row([one.artifact.to_string(), one.component.to_string(), at, from, used]);
    }
    if all.is_empty() { Part::Text("no job has used an artifact".to_owned()) } else { Part::Table(table) }
}
