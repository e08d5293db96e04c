//! `freehold install verify-template`: checks a template against security rules; each finding names its line.

use freehold_protocol::Digest;
use freehold_stackcheck::{Finding, RULES, check};
use serde::Serialize;

use super::VerifyTemplate;
use crate::context::Context;
use crate::error::{Error, Result, ResultExt};
use crate::output::{Output, Table};

#[derive(Debug, Serialize)]
struct Verified<'a> {
    file: String,
    sha256: &'a str,
    rules: usize,
    findings: &'a [Finding],
}

impl VerifyTemplate {
    pub(super) fn run(&self, context: &Context) -> Result<()> {
        let shown = self.file.display().to_string();
        let bytes = std::fs::read(&self.file).doing(format!("read `{shown}`"))?;
        let digest = Digest::of(&bytes);
        if let Some(given) = self.sha256.as_deref().filter(|given| !is_sha256(given)) {
            return Err(Error::invalid(format!(
                "`{given}` is not a SHA-256, which has 64 hexadecimal digits; pass the whole value that the vendor published"
            )));
        }
        if let Some(expected) = self.sha256.as_deref().filter(|expected| !expected.eq_ignore_ascii_case(digest.hex())) {
            return Err(Error::failed(format!(
                "`{shown}` has the SHA-256 {}, not {expected}: it is not the template that was published",
                digest.hex()
            )));
        }
        let text = String::from_utf8(bytes).map_err(|_| {
            Error::invalid(format!("`{shown}` is not text; name the template that `install stack` wrote"))
        })?;
        let findings = check(&text).map_err(|wrong| Error::invalid(format!("`{shown}` is not a template: {wrong}")))?;
        let verified = Verified { file: shown.clone(), sha256: digest.hex(), rules: RULES.len(), findings: &findings };
        context.out.show(&verified, |verified| render(verified, context.out))?;
        match findings.as_slice() {
            [] => Ok(()),
            [first, rest @ ..] => {
                let more = if rest.is_empty() { String::new() } else { format!(" ({} more)", rest.len()) };
                Err(Error::failed(format!("{shown}:{}: {}{more}", first.line, first.reason)))
            }
        }
    }
}

fn is_sha256(text: &str) -> bool {
    text.len() == 64 && text.bytes().all(|byte| byte.is_ascii_hexdigit())
}

fn render(verified: &Verified<'_>, out: Output) -> String {
    let hash = format!("SHA-256: {}", verified.sha256);
    if verified.findings.is_empty() {
        let rules: Vec<String> = RULES.iter().map(|(_, asks)| format!("- {asks}")).collect();
        return format!("{} keeps all {} rules:\n{}\n\n{hash}", verified.file, verified.rules, rules.join("\n"));
    }
    let mut table = Table::new(&["LINE", "OF", "RULE", "REASON"]);
    for finding in verified.findings {
        let of = if finding.of.is_empty() { "template" } else { &finding.of };
        table.row([finding.line.to_string(), of.to_owned(), finding.rule.as_str().to_owned(), finding.reason.clone()]);
    }
    format!("{}\n\n{hash}", out.table(&table))
}
