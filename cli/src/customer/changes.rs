//! `freehold customer changes`: compares the agreed contract and the launched template with the vendor's new contract
//! and template.

use std::path::PathBuf;

use clap::Args;
use freehold_permissions::{TermsDiff, compare_terms};
use freehold_protocol::envelope::PublicKey;
use freehold_protocol::{Digest, InstallId};
use freehold_stackcheck::Names;
use serde::Serialize;
use similar::{ChangeTag, TextDiff};

use super::answer::Answer;
use super::permissions::Launched;
use super::question::Question;
use crate::cloudformation::ACCEPTED_CONTRACT;
use crate::context::Context;
use crate::contract;
use crate::error::{Error, Result};
use crate::output::{Output, Part, clean, plural};

/// The maximum length of a shown line, in characters; a template has lines with whole policies and programs.
const MOST_SHOWN: usize = 200;
/// The number of characters that are shown before the place where a long line differs.
const BEFORE: usize = 40;

/// For customers: show what changed since you agreed to the contract.
#[derive(Debug, Args)]
#[command(after_help = Question::Changed.help("\
Examples:
  freehold customer changes globex --tenant acme --new-template new.yaml
  freehold customer changes globex --tenant acme --agreed my-app.contract.json \\
      --new-template new.yaml --new-contract new.contract.json
  freehold customer changes --template globex.yaml --new-template new.yaml

`+` marks lines that only the new version has, `-` lines that only the agreed version has. Exit code 1 when the new
contract allows more, and when the vendor must explain something: for example, the new template is not one that Freehold
renders, or names another contract than the new one."))]
pub(crate) struct Changes {
    /// Name of the install, whose stack is read with your own AWS credentials; `--tenant` names the vendor's tenant.
    #[arg(conflicts_with = "template")]
    install: Option<InstallId>,
    /// The template that you launched, which is read instead of the stack.
    #[arg(long, value_name = "FILE")]
    template: Option<PathBuf>,
    #[command(flatten)]
    files: ChangedFiles,
}

/// The files that are compared.
#[derive(Debug, Default, Args)]
pub(super) struct ChangedFiles {
    /// The template that the vendor sent now; without it, only the contracts are compared.
    #[arg(long, value_name = "FILE")]
    new_template: Option<PathBuf>,
    /// The contract that you agreed to.
    #[arg(long, value_name = "FILE", requires = "new_contract")]
    agreed: Option<PathBuf>,
    /// The contract that the vendor sent now.
    #[arg(long, value_name = "FILE", requires = "agreed")]
    new_contract: Option<PathBuf>,
}

/// The differences, as `--json` prints them.
#[derive(Debug, Serialize)]
struct Differences {
    question: &'static str,
    /// The lines of the template that are new or gone; absent without a new template.
    #[serde(skip_serializing_if = "Option::is_none")]
    template: Option<Vec<Line>>,
    #[serde(skip_serializing_if = "Option::is_none")]
    contract: Option<Terms>,
    /// The facts that contradict the vendor's statements.
    doubts: Vec<String>,
    rests_on: &'static str,
}

#[derive(Debug, Serialize)]
struct Terms {
    agreed: Digest,
    new: Digest,
    /// Whether the new terms allow more.
    wider: bool,
    #[serde(flatten)]
    diff: TermsDiff,
}

#[derive(Debug, PartialEq, Eq, Serialize)]
struct Line {
    sign: char,
    text: String,
}

impl Changes {
    pub(crate) async fn run(&self, context: &Context) -> Result<()> {
        if self.files.are_absent() {
            return Err(Error::invalid("no new template and no new contract is given")
                .or("pass `--new-template FILE`, or `--agreed FILE` and `--new-contract FILE`, or all three"));
        }
        let launched = Launched::read(context, self.install.as_ref(), self.template.as_ref()).await?;
        self.files.answer(&launched, context.out)?.print(context.out)
    }
}

impl ChangedFiles {
    /// Returns whether no file is given.
    pub(super) const fn are_absent(&self) -> bool {
        self.new_template.is_none() && self.new_contract.is_none()
    }

    /// Returns the options that name these files.
    pub(super) fn options(&self) -> String {
        let named =
            [("new-template", &self.new_template), ("agreed", &self.agreed), ("new-contract", &self.new_contract)];
        let options = named.iter().filter_map(|(name, file)| {
            let file = file.as_ref()?;
            Some(format!(" --{name} {}", file.display()))
        });
        options.collect()
    }

    /// Returns the differences between the launched template and these files.
    pub(super) fn answer(&self, launched: &Launched, out: Output) -> Result<Answer> {
        let was = launched.check(None)?;
        let names = was.names.ok_or_else(|| {
            Error::failed(format!("{} does not name its vendor and its contract", launched.name))
                .or("`freehold customer permissions` lists what is wrong with the template")
        })?;
        let key = launched.vendors_key(&names)?;
        let (template, new_names) = match &self.new_template {
            Some(path) => {
                let new = Launched::of_file(path)?;
                (Some(lines(&launched.template, &new.template)), new.check(None)?.names)
            }
            None => (None, None),
        };
        let contract = match (&self.agreed, &self.new_contract) {
            (Some(agreed), Some(new)) => Some(terms(agreed, new, &key)?),
            (_, _) => None,
        };
        let mut doubts = Vec::new();
        if template.is_some() {
            doubts.extend(doubt_about_template(&names, new_names.as_ref()));
        }
        if let Some(terms) = &contract {
            let accepted = launched.parameters.get(ACCEPTED_CONTRACT).map_or(names.contract.as_str(), String::as_str);
            doubts.extend(doubts_about_contract(terms, accepted, new_names.as_ref()));
        }
        let found = Differences {
            question: Question::Changed.text(),
            template,
            contract,
            doubts,
            rests_on: Question::Changed.rests_on(),
        };
        Ok(Answer::new(&found, vec![Part::Verbatim(render(&found, out))])?.with_verdict(found.verdict()))
    }
}

impl Differences {
    /// Returns an error for a doubt, and for a contract that allows more.
    fn verdict(&self) -> Result<()> {
        let wider = self.contract.as_ref().map_or(0, |terms| terms.diff.widened.len());
        match (self.doubts.first(), wider) {
            (Some(first), _) => {
                Err(Error::failed(first.clone()).or("do not launch the template; ask the vendor about the difference"))
            }
            (None, 0) => Ok(()),
            (None, count) => Err(Error::failed(format!("the new contract allows more: {}", plural(count, "addition")))
                .or("accept the contract with `freehold install launch --accept-contract`, or do not launch the new \
                     template")),
        }
    }
}

/// Returns the doubt about the new template. `new` are the names in it; `None` if Freehold does not render the
/// template.
fn doubt_about_template(launched: &Names, new: Option<&Names>) -> Option<String> {
    let Some(new) = new else { return Some("the new template is not one that Freehold renders".to_owned()) };
    let is_known = [&launched.tenant_key, &launched.tenant_second_key].contains(&&new.tenant_key);
    (!is_known).then(|| format!("the new template trusts another key, {}", new.tenant_key))
}

/// Returns the doubts about two contracts. `accepted` is the contract that the stack has accepted, and `new` are the
/// names in the new template, among them its contract.
fn doubts_about_contract(terms: &Terms, accepted: &str, new: Option<&Names>) -> Vec<String> {
    let mut doubts = Vec::new();
    if accepted != terms.agreed.as_str() {
        doubts.push(format!("the stack has accepted {accepted}, and you passed {} as agreed", terms.agreed));
    }
    if let Some(new) = new.filter(|new| new.contract != terms.new) {
        doubts.push(format!("the new template names the contract {}, and you passed {}", new.contract, terms.new));
    }
    doubts
}

/// Compares two contracts that the vendor signed.
fn terms(agreed: &std::path::Path, new: &std::path::Path, key: &PublicKey) -> Result<Terms> {
    let digest = |terms: &freehold_protocol::contract::Terms| {
        terms.digest().map_err(|error| Error::internal(format!("cannot make the digest of terms: {error}")))
    };
    let (was, is) = (contract::signed(agreed, key)?.contract.terms, contract::signed(new, key)?.contract.terms);
    let diff = compare_terms(&was, &is);
    Ok(Terms { agreed: digest(&was)?, new: digest(&is)?, wider: !diff.widened.is_empty(), diff })
}

fn lines(was: &str, is: &str) -> Vec<Line> {
    let diff = TextDiff::from_lines(was, is);
    let changed = diff.iter_all_changes().filter_map(|change| {
        let sign = match change.tag() {
            ChangeTag::Equal => return None,
            ChangeTag::Insert => '+',
            ChangeTag::Delete => '-',
        };
        Some(Line { sign, text: change.value().trim_end().to_owned() })
    });
    changed.collect()
}

/// Returns the part of a long line that differs from the corresponding line of the other version.
fn excerpt(lines: &[Line], at: usize, line: &Line) -> String {
    let signs: Vec<char> = line.text.chars().collect();
    if signs.len() <= MOST_SHOWN {
        return line.text.clone();
    }
    let key = |text: &str| text.split(':').next().unwrap_or_default().to_owned();
    let other = lines.iter().enumerate().filter(|(_, one)| one.sign != line.sign && key(&one.text) == key(&line.text));
    let other = other.min_by_key(|(place, _)| place.abs_diff(at)).map(|(_, one)| one.text.as_str()).unwrap_or_default();
    let same = signs.iter().zip(other.chars()).take_while(|(one, other)| **one == *other).count();
    let from = if same == signs.len() { 0 } else { same.saturating_sub(BEFORE) };
    let part: String = signs.iter().skip(from).take(MOST_SHOWN).collect();
    let before = if from == 0 { "" } else { "..." };
    let after = if from + MOST_SHOWN < signs.len() { "..." } else { "" };
    format!("{before}{part}{after}")
}

fn render(answer: &Differences, out: Output) -> String {
    // The doubts that the vendor must explain come first, because the rest of the output may be about the wrong files.
    let mut parts: Vec<String> =
        answer.doubts.iter().map(|doubt| format!("ask the vendor to explain: {}", clean(doubt))).collect();
    if let Some(terms) = &answer.contract {
        parts.push(contract::difference(&terms.diff, terms.agreed == terms.new, out));
    }
    if let Some(lines) = &answer.template {
        let title = match lines.len() {
            0 => "the templates are the same".to_owned(),
            count => format!("{} of the template differ", plural(count, "line")),
        };
        let shown = lines.iter().enumerate();
        let shown = shown.map(|(at, line)| format!("  {} {}", line.sign, clean(&excerpt(lines, at, line))));
        parts.push(std::iter::once(title).chain(shown).collect::<Vec<_>>().join("\n"));
        if lines.iter().any(|line| line.text.chars().count() > MOST_SHOWN) {
            parts.push("Long lines are cut to the part that differs; `--json` prints the whole lines.".to_owned());
        }
    }
    parts.join("\n\n")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_long_line_is_cut_to_where_it_differs_from_the_line_that_it_replaces() {
        let (a, z) = ("a".repeat(700), "z".repeat(700));
        let was = format!("Script: {a}old{z}\n");
        let found = lines(&was, &was.replace("old", "new"));

        let excerpts: Vec<String> = found.iter().enumerate().map(|(at, line)| excerpt(&found, at, line)).collect();

        let expected = |word: &str| format!("...{}{word}{}...", "a".repeat(40), "z".repeat(157));
        assert_eq!(excerpts, [expected("old"), expected("new")]);
        assert_eq!(found.len(), 2);
    }

    #[test]
    fn only_the_lines_that_differ_are_listed_with_their_side() {
        let line = |sign, text: &str| Line { sign, text: text.to_owned() };

        assert_eq!(lines("a\nb\n", "a\nc\n"), [line('-', "b"), line('+', "c")]);
        assert_eq!(lines("a\n", "a\n"), []);
    }
}
