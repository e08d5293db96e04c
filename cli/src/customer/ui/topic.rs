//! The pages: the path and the title of each, and the answers that it shows.

use freehold_pages::{Link, Tone, code, notice};
use freehold_protocol::{Digest, JobId};
use maud::{Markup, html};

use super::super::answer::Answer;
use super::super::log::evidence::Evidence;
use super::super::log::{approvals, asked, audit, licence, origin, ran, sent};
use super::super::question::Question;
use super::super::{cost, stopped, windows};
use super::fields::Fields;
use super::html::Section;
use super::source::Source;
use super::{forms, overview};
use crate::clock;
use crate::error::Result;

/// A page about the install.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Topic {
    Overview,
    Permissions,
    Changes,
    Approvals,
    Windows,
    Stop,
    Ran,
    Asked,
    Origin,
    Sent,
    Log,
    Licence,
    Cost,
}

impl Topic {
    const ALL: [Self; 13] = [
        Self::Overview,
        Self::Permissions,
        Self::Changes,
        Self::Approvals,
        Self::Windows,
        Self::Stop,
        Self::Ran,
        Self::Asked,
        Self::Origin,
        Self::Sent,
        Self::Log,
        Self::Licence,
        Self::Cost,
    ];

    /// Returns the page at a path.
    pub(super) fn at(path: &str) -> Option<Self> {
        Self::ALL.into_iter().find(|topic| topic.path() == path)
    }

    /// Returns the links to all pages.
    pub(super) fn links() -> Vec<Link<'static>> {
        Self::ALL.map(|topic| Link::new(topic.title(), topic.path())).into()
    }

    pub(super) const fn path(self) -> &'static str {
        match self {
            Self::Overview => "/",
            Self::Permissions => "/permissions",
            Self::Changes => "/changes",
            Self::Approvals => "/approvals",
            Self::Windows => "/windows",
            Self::Stop => "/stop",
            Self::Ran => "/ran",
            Self::Asked => "/asked",
            Self::Origin => "/origin",
            Self::Sent => "/sent",
            Self::Log => "/log",
            Self::Licence => "/licence",
            Self::Cost => "/cost",
        }
    }

    pub(super) const fn title(self) -> &'static str {
        match self {
            Self::Overview => "Overview",
            Self::Permissions => "Permissions",
            Self::Changes => "Contract changes",
            Self::Approvals => "Approvals",
            Self::Windows => "Windows and holds",
            Self::Stop => "Pause and stop",
            Self::Ran => "What ran",
            Self::Asked => "Who asked",
            Self::Origin => "Lineage",
            Self::Sent => "What left",
            Self::Log => "Audit log",
            Self::Licence => "Licence",
            Self::Cost => "Cost",
        }
    }

    /// Returns what the page shows below its title. `csrf` is the token of its forms.
    pub(super) async fn content(self, source: &Source, fields: &Fields, csrf: &str) -> Markup {
        let section = self.section(source, fields).await.render();
        match self {
            Self::Overview => {
                let overview = overview::content(source).await;
                html! { (overview) (section) }
            }
            Self::Permissions | Self::Changes => html! { (section) (consent(source)) },
            Self::Approvals => {
                let forms = match fields.optional::<Digest>("plan") {
                    Ok(wanted) => forms::of_approvals(source, wanted.as_ref(), csrf).await,
                    Err(error) => notice(Tone::Bad, error.to_string()),
                };
                html! { (forms) (section) }
            }
            Self::Windows => html! { (section) (forms::of_windows(csrf)) },
            Self::Stop => {
                let forms = forms::of_stop(source, csrf).await;
                html! { (section) (forms) }
            }
            Self::Ran | Self::Asked | Self::Origin | Self::Sent | Self::Log | Self::Licence | Self::Cost => section,
        }
    }

    /// Returns the answer of the page.
    async fn section(self, source: &Source, fields: &Fields) -> Section {
        let of = |question: Question, words: &str, more: &str, answer: Result<Answer>| Section {
            title: question.text(),
            command: source.command(words, more),
            question: Some(question),
            answer,
        };
        let without = |title: &'static str, words: &str, more: &str, answer: Result<Answer>| Section {
            title,
            command: source.command(words, more),
            question: None,
            answer,
        };
        match self {
            Self::Overview | Self::Log => {
                of(Question::Whole, "audit verify", "", with_records(source, audit::answer).await)
            }
            Self::Permissions => {
                of(Question::MayDo, "permissions", &source.contract_option(), source.permissions().await)
            }
            Self::Changes => of(Question::Changed, "changes", &source.changes_options(), source.changes().await),
            Self::Approvals => of(Question::Approved, "approvals", "", approvals_of(source).await),
            Self::Windows => without("When may changes start?", "windows", "", windows_of(source).await),
            Self::Stop => of(Question::IsStopped, "stopped", "", stopped::answer(&source.own).await),
            Self::Ran => of(Question::Ran, "ran", &option("job", fields), ran_of(source, fields).await),
            Self::Asked => of(Question::Asked, "asked", &option("job", fields), asked_of(source, fields).await),
            Self::Origin => {
                of(Question::Origin, "origin", &option("artifact", fields), origin_of(source, fields).await)
            }
            Self::Sent => of(Question::Sent, "sent", &option("report", fields), sent_of(source, fields).await),
            Self::Licence => {
                let answer = licence_of(source).await;
                let command = "freehold customer verify-licence FILE --root-key KEY".to_owned();
                Section { title: "What licence does the app have?", command, question: None, answer }
            }
            Self::Cost => {
                without("What does the install stack cost?", "cost", " --forecast", cost::forecast(&source.own).await)
            }
        }
    }
}

/// Returns how a customer agrees to a contract.
fn consent(source: &Source) -> Markup {
    let launch = format!("freehold install launch {} --template FILE --accept-contract", source.own.install);
    html! {
        h2 { "Consent" }
        p {
            "You agree to a contract by launching its template. Nothing on these pages agrees to one: "
            (code(launch)) " accepts the contract of a new template."
        }
    }
}

/// Returns the option of a command that a field of the address stands for. People copy the command into a shell, so a
/// value that is not an id or a digest is left out.
fn option(name: &str, fields: &Fields) -> String {
    let is_plain = |value: &&str| value.bytes().all(|byte| byte.is_ascii_alphanumeric() || b"_-:".contains(&byte));
    fields.get(name).filter(is_plain).map(|value| format!(" --{name} {value}")).unwrap_or_default()
}

async fn with_records(source: &Source, of: impl FnOnce(&Evidence) -> Result<Answer>) -> Result<Answer> {
    let records = source.records().await?;
    of(&records)
}

async fn approvals_of(source: &Source) -> Result<Answer> {
    let now = clock::now()?;
    with_records(source, |evidence| approvals::answer(evidence, now)).await
}

async fn windows_of(source: &Source) -> Result<Answer> {
    windows::answer(&source.own.stack().await?, clock::now()?)
}

async fn ran_of(source: &Source, fields: &Fields) -> Result<Answer> {
    let job = fields.optional::<JobId>("job")?;
    let records = source.records().await?;
    ran::answer(&records, job.as_ref()).await
}

async fn asked_of(source: &Source, fields: &Fields) -> Result<Answer> {
    let job = fields.optional::<JobId>("job")?;
    with_records(source, |evidence| asked::answer(evidence, job.as_ref())).await
}

async fn origin_of(source: &Source, fields: &Fields) -> Result<Answer> {
    let artifact = fields.optional::<Digest>("artifact")?;
    with_records(source, |evidence| origin::answer(evidence, artifact.as_ref())).await
}

async fn sent_of(source: &Source, fields: &Fields) -> Result<Answer> {
    let report = fields.optional::<Digest>("report")?;
    with_records(source, |evidence| sent::answer(evidence, report.as_ref())).await
}

async fn licence_of(source: &Source) -> Result<Answer> {
    let now = clock::now()?;
    with_records(source, |evidence| licence::answer(evidence, now)).await
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_an_id_or_a_digest_becomes_a_part_of_the_command() {
        let shown = |text: &str| option("job", &Fields::parse(text));

        assert_eq!(shown("job=job_0123456789abcdef0123"), " --job job_0123456789abcdef0123");
        assert_eq!(shown("job=a%3B+rm") + &shown("other=a"), "");
    }

    #[test]
    fn each_page_has_a_path_of_its_own() {
        for topic in Topic::ALL {
            assert_eq!(Topic::at(topic.path()), Some(topic), "{topic:?}");
        }
        assert_eq!(Topic::at("/nothing"), None);
        assert_eq!(Topic::links().len(), Topic::ALL.len());
    }
}
