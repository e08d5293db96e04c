//! Makes the result of a policy: what the vendor may see of it, and what stays in the customer's account.

use freehold_policy::{Answer, Verdict, redacted};
use freehold_protocol::Digest;
use freehold_protocol::policy::PolicyResult;
use serde_json::{Value, json};

use super::guard::{Guard, Text};

/// The maximum number of messages of one policy that leave the account.
const MOST: usize = 50;
/// The maximum length of one message that leaves the account, in characters.
const LONGEST: usize = 500;

/// The documents on which policies were evaluated, and how secrets are taken out of a text.
pub(super) struct Asked<'a> {
    pub(super) documents: &'a [Value],
    pub(super) redact: &'a (dyn Fn(&str) -> String + Sync),
}

/// Returns the result of a policy twice: without the values of its documents, and with them. Neither result contains a
/// secret.
pub(super) fn result(guard: &Guard, answer: Answer, asked: &Asked<'_>) -> (PolicyResult, Value) {
    let text = match &guard.text {
        Text::Known(text) => text.as_str(),
        Text::Unreadable(_) => "",
    };
    let (verdict, failed) = match answer {
        Answer::Says(verdict) if guard.is_loosened => (loosened(verdict), None),
        Answer::Says(verdict) => (verdict, None),
        Answer::Failed(why) => (Verdict::default(), Some(why)),
    };
    let without_secrets = |all: &[String]| all.iter().map(|message| (asked.redact)(message)).collect::<Vec<_>>();
    let (deny, warn) = (without_secrets(&verdict.deny), without_secrets(&verdict.warn));
    let seen = |all: &[String]| seen(all, asked.documents, text);
    let result = PolicyResult {
        name: guard.name.clone(),
        origin: guard.origin,
        contents: Digest::of(text.as_bytes()),
        deny: seen(&deny),
        warn: seen(&warn),
        failed: failed.as_deref().map(asked.redact).map(|why| shortened(&why)),
    };
    let full = json!({ "name": result.name, "origin": result.origin, "contents": result.contents,
        "deny": deny, "warn": warn, "failed": result.failed, "text": text });
    (result, full)
}

/// Returns the verdict of a policy that the customer has loosened.
fn loosened(verdict: Verdict) -> Verdict {
    let mut all = Verdict { deny: Vec::new(), warn: verdict.deny };
    all.extend(Verdict { deny: Vec::new(), warn: verdict.warn });
    all
}

fn seen(messages: &[String], documents: &[Value], policy: &str) -> Vec<String> {
    let mut seen: Vec<String> =
        messages.iter().take(MOST).map(|message| shortened(&redacted(message, documents, policy))).collect();
    let left = messages.len().saturating_sub(MOST);
    seen.extend((left > 0).then(|| format!("and {left} more")));
    seen
}

fn shortened(text: &str) -> String {
    match text.char_indices().nth(LONGEST) {
        Some((at, _)) => format!("{}…", text.get(..at).unwrap_or_default()),
        None => text.to_owned(),
    }
}

#[cfg(test)]
mod tests {
    use freehold_protocol::policy::PolicyOrigin;

    use super::*;

    fn guard(is_loosened: bool) -> Guard {
        let text = Text::Known("package freehold".to_owned());
        Guard { name: "a".into(), origin: PolicyOrigin::BuiltIn, text, is_loosened }
    }

    fn asked(guard: &Guard, answer: Answer) -> (PolicyResult, Value) {
        let documents = [json!({ "plan": { "cidr": "10.0.0.0/8" } })];
        let redact = |text: &str| text.replace("s3cret", "[redacted]");
        result(guard, answer, &Asked { documents: &documents, redact: &redact })
    }

    #[test]
    fn the_vendor_sees_no_value_and_the_customer_sees_no_secret() {
        let verdict = Verdict { deny: vec!["10.0.0.0/8 has s3cret".into()], warn: vec!["10.0.0.0/8".into()] };

        let (seen, full) = asked(&guard(false), Answer::Says(verdict));

        assert_eq!((seen.deny, seen.warn), (vec!["[value] has [redacted]".into()], vec!["[value]".into()]));
        assert_eq!(full["deny"], json!(["10.0.0.0/8 has [redacted]"]));
    }

    #[test]
    fn a_loosened_policy_warns_and_does_not_deny() {
        let verdict = Verdict { deny: vec!["a".into()], warn: vec!["b".into()] };

        let (seen, _) = asked(&guard(true), Answer::Says(verdict.clone()));
        let (strict, _) = asked(&guard(false), Answer::Says(verdict));

        assert_eq!((seen.stops(), seen.warn), (false, vec!["a".into(), "b".into()]));
        assert!(strict.stops());
    }

    #[test]
    fn a_policy_that_cannot_be_asked_stops_also_when_it_is_loosened() {
        for is_loosened in [false, true] {
            let (seen, _) = asked(&guard(is_loosened), Answer::Failed("a:1:2: why".into()));

            assert!(seen.stops());
            assert_eq!(seen.failed.as_deref(), Some("a:1:2: why"));
        }
    }
}
