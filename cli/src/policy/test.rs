//! `freehold policy test`: evaluates policies on a recorded plan, objects or an image, as a runner does.

use std::path::PathBuf;

use clap::Args;
use freehold_policy::{Answer, Evaluator, LIMITS, PolicyError, PolicyText, Verdict};
use freehold_protocol::{ComponentName, Digest};
use serde::Serialize;

use super::documents::{Documents, From};
use super::policies::{self, Chosen};
use crate::context::Context;
use crate::error::{Error, Kind, Result};
use crate::output::{Output, Table, plural};

/// Evaluate policies for a recorded plan, objects or an image, without an account.
#[derive(Debug, Args)]
#[command(after_help = "\
Examples:
  freehold policy test ./my-app/policies/no-eip.rego
  terraform show -json plan.bin > plan.json
  freehold policy test ./my-app/policies/no-eip.rego --plan plan.json
  freehold policy test ./my-app --component net --plan plan.json
  freehold policy test ./my-app --objects objects.json --built-in
  freehold policy test ./my-app --image nginx:1.27

A policy is Rego in package `nuon` or `freehold`:

  package freehold

  deny contains msg if {
      some resource in input.plan.resource_changes
      resource.type == \"aws_eip\"
      \"delete\" in resource.change.actions
      msg := sprintf(\"%s must stay\", [resource.address])
  }

Each message of `deny` stops the job between its plan and its apply; messages of `warn` are shown. The command evaluates
policies as a runner does, with the same limits of time and memory. Without a document, it only parses the policies. For
an app config, it evaluates only the policies whose type matches the documents, and prints a note if no policy matches.
Exit code 1 when a policy denies, and 2 when a policy cannot be read.")]
pub(crate) struct Test {
    /// A file with one policy, a directory of such files, or the directory of an app config.
    #[arg(value_name = "PATH")]
    path: PathBuf,
    /// The component of the documents, as `input.freehold.component`. For an app config, evaluate only the policies
    /// that guard this component.
    #[arg(long, value_name = "NAME")]
    component: Option<ComponentName>,
    #[command(flatten)]
    from: From,
    /// Evaluate the built-in policies too, which every install has.
    #[arg(long)]
    built_in: bool,
}

/// The results, as `--json` prints them.
#[derive(Debug, Serialize)]
struct Found {
    /// The number of documents on which each policy was evaluated.
    documents: usize,
    /// Whether a policy denies, or cannot be evaluated.
    denied: bool,
    policies: Vec<Asked>,
    /// The number of policies of the app config that are not in Rego.
    not_asked: usize,
    /// The number of policies in Rego of the app config that guard other components, or other types of documents.
    others: usize,
    /// The note that the result does not apply to the documents, if no policy of the app config guards them.
    #[serde(skip_serializing_if = "Option::is_none")]
    note: Option<String>,
}

/// One policy.
#[derive(Debug, Serialize)]
struct Asked {
    policy: String,
    digest: Digest,
    #[serde(flatten)]
    says: Verdict,
    #[serde(skip_serializing_if = "Option::is_none")]
    failed: Option<String>,
    /// The reason why the policy has no effect, if it has no rule that is evaluated.
    #[serde(skip_serializing_if = "Option::is_none")]
    warning: Option<&'static str>,
}

const NO_RULE: &str = "it has no rule `deny` and no rule `warn`, and no other rule is evaluated";

impl Test {
    pub(super) fn run(&self, context: &Context) -> Result<()> {
        let documents = Documents::read(&self.from, self.component.as_ref())?;
        let chosen = policies::find(&self.path, self.component.as_ref(), &documents)?;
        let note = chosen.texts.is_empty().then(|| self.unguarded(&chosen));
        let Chosen { mut texts, not_in_rego, others } = chosen;
        if self.built_in {
            texts.extend(policies::built_in());
        }
        let answers = ask(&texts, &documents)?;
        let asked: Vec<Asked> = texts.iter().zip(answers).map(|(text, answer)| asked(text, answer)).collect();
        let denied = asked.iter().any(|one| one.failed.is_some() || !one.says.deny.is_empty());
        let found =
            Found { documents: documents.all.len(), denied, policies: asked, not_asked: not_in_rego, others, note };
        context.out.show(&found, |found| text(found, context.out))?;
        ended(&found)
    }

    /// Returns the note that no policy of the app config guards the documents.
    fn unguarded(&self, chosen: &Chosen) -> String {
        let what = self.component.as_ref().map_or_else(|| "this".to_owned(), |name| format!("component `{name}`"));
        match chosen.others {
            0 => format!("no policy guards {what}: the app config has no policy in Rego"),
            others => format!(
                "no policy guards {what}: {} for other components or other documents",
                plural_or_no(others, "policy in Rego of the app config is", "policies in Rego of the app config are")
            ),
        }
    }
}

/// Evaluates all policies. If a policy has to be stopped, its result is an error, and the other policies are still
/// evaluated.
fn ask(texts: &[PolicyText], documents: &Documents) -> Result<Vec<Answer>> {
    let program = std::env::current_exe()
        .map_err(|error| Error::internal(format!("cannot find the program of this process: {error}")))?;
    let evaluator = Evaluator::new(program, LIMITS);
    let mut answers = Vec::new();
    for text in texts {
        if documents.all.is_empty() {
            let read = freehold_policy::check(text).map(|_| Verdict::default());
            answers.push(read.map_or_else(|error| Answer::Failed(error.to_string()), Answer::Says));
            continue;
        }
        answers.push(match evaluator.ask(vec![text.clone()], documents.all.clone()) {
            Ok(mut one) => one.pop().unwrap_or(Answer::Says(Verdict::default())),
            Err(PolicyError::NotStarted(reason)) => {
                return Err(Error::internal(format!("cannot evaluate policies: {reason}")));
            }
            Err(error) => Answer::Failed(error.to_string()),
        });
    }
    Ok(answers)
}

fn asked(text: &PolicyText, answer: Answer) -> Asked {
    let (says, failed) = match answer {
        Answer::Says(verdict) => (verdict, None),
        Answer::Failed(why) => (Verdict::default(), Some(why)),
    };
    let warning = (failed.is_none() && matches!(freehold_policy::check(text), Ok(false))).then_some(NO_RULE);
    Asked { policy: text.file.clone(), digest: Digest::of(text.text.as_bytes()), says, failed, warning }
}

fn text(found: &Found, out: Output) -> String {
    let mut table = Table::new(&["POLICY", "SAYS", "MESSAGE"]);
    for one in &found.policies {
        let rows = [("deny", &one.says.deny), ("warn", &one.says.warn)];
        let messages = rows.iter().flat_map(|(word, all)| all.iter().map(move |message| (*word, message)));
        for (word, message) in messages.chain(one.failed.iter().map(|why| ("cannot be evaluated", why))) {
            table.row([one.policy.clone(), word.to_owned(), message.clone()]);
        }
        if one.failed.is_none() && one.says == Verdict::default() {
            let says = if found.documents == 0 { "can be read" } else { "nothing" };
            table.row([one.policy.clone(), says.to_owned(), one.warning.unwrap_or_default().to_owned()]);
        }
    }
    let mut text = if found.policies.is_empty() { String::new() } else { format!("{}\n\n", out.table(&table)) };
    text.push_str(&format!(
        "{} evaluated on {}",
        plural_or_no(found.policies.len(), "policy", "policies"),
        plural_or_no(found.documents, "document", "documents")
    ));
    if let Some(note) = &found.note {
        text.push_str(&format!("; {note}"));
    }
    if found.not_asked > 0 {
        text.push_str(&format!(
            "; {} of Kyverno, which a cluster evaluates",
            plural_or_no(found.not_asked, "policy is", "policies are")
        ));
    }
    text
}

fn plural_or_no(count: usize, one: &str, many: &str) -> String {
    match count {
        0 => format!("no {many}"),
        1 => format!("1 {one}"),
        _ => format!("{count} {many}"),
    }
}

fn ended(found: &Found) -> Result<()> {
    if let Some(why) = found.policies.iter().find_map(|one| one.failed.as_ref()) {
        return Err(Error::quoting(Kind::Invalid, format!("a policy cannot be evaluated: {why}"))
            .or("correct the policy: until then, a runner stops every job that evaluates it"));
    }
    let count: usize = found.policies.iter().map(|one| one.says.deny.len()).sum();
    if count == 0 {
        return Ok(());
    }
    Err(Error::failed(format!("the policies deny the documents: {}", plural(count, "reason")))
        .or("a runner would stop the job after its plan; change the component, or the policy"))
}
