//! Parses inputs and stack parameters from arguments.

pub(crate) mod sealing;

use std::collections::BTreeMap;
use std::path::Path;
use std::str::FromStr;

use freehold_protocol::InstallId;
use serde_json::Value;

use crate::error::{Error, Result};

/// One input: `name=text`, `name:=JSON` or `name=@FILE`.
#[derive(Debug, Clone, PartialEq)]
pub(crate) struct Input {
    name: String,
    value: Value,
}

impl FromStr for Input {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        let (name, value) =
            text.split_once('=').ok_or("expected `name=text`, `name:=JSON` or `name=@FILE`, such as `replicas:=3`")?;
        let (name, value) = match (name.strip_suffix(':'), value.strip_prefix('@')) {
            (Some(name), _) => {
                let value = serde_json::from_str(value)
                    .map_err(|e| format!("the text after `:=` is not JSON ({e}); write `{name}={value}` for text"))?;
                (name, value)
            }
            (None, Some(path)) => {
                let way_out =
                    format!("name a text file after `@`, or write `{name}:=\"@...\"` for a text that begins with `@`");
                let text = crate::file::read_text(Path::new(path), &way_out).map_err(|e| e.to_string())?;
                (name, Value::String(text))
            }
            (None, None) => (name, Value::String(value.to_owned())),
        };
        if name.is_empty() {
            return Err("the name before the `=` is missing; write `name=value`".to_owned());
        }
        Ok(Self { name: name.to_owned(), value })
    }
}

/// Refuses the name of the build runner as the name of a new install.
pub(crate) fn refuse_reserved(install: &InstallId) -> Result<()> {
    if install.as_str() == "build" {
        return Err(Error::invalid("`build` is the name of the build runner; choose another name for the install"));
    }
    Ok(())
}

/// Returns all inputs by name. Two values for the same name are an error.
pub(crate) fn by_name(inputs: &[Input]) -> Result<BTreeMap<String, Value>> {
    distinct("input", inputs)
}

/// Returns all facts of a licence by name. They have the form of inputs. Two values for the same name are an error.
pub(crate) fn facts_by_name(facts: &[Input]) -> Result<BTreeMap<String, Value>> {
    distinct("fact", facts)
}

fn distinct(noun: &str, given: &[Input]) -> Result<BTreeMap<String, Value>> {
    let mut all = BTreeMap::new();
    for one in given {
        if all.insert(one.name.clone(), one.value.clone()).is_some() {
            return Err(Error::invalid(format!("{noun} `{}` is given twice; give it once", one.name)));
        }
    }
    Ok(all)
}

/// Returns all inputs by name, each as text, because the inputs of runbooks are texts. Two values for the same name are
/// an error.
pub(crate) fn texts_by_name(inputs: &[Input]) -> Result<BTreeMap<String, String>> {
    let text_of = |value| if let Value::String(text) = value { text } else { value.to_string() };
    Ok(by_name(inputs)?.into_iter().map(|(name, value)| (name, text_of(value))).collect())
}

/// One stack parameter: `Name=value`.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Parameter {
    pub(crate) name: String,
    pub(crate) value: String,
}

impl FromStr for Parameter {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        match text.split_once('=') {
            Some((name, value)) if !name.is_empty() => Ok(Self { name: name.to_owned(), value: value.to_owned() }),
            _ => Err("expected `Name=value`, such as `EnableDeprovision=true`".to_owned()),
        }
    }
}

/// Parses a number from `MIN` to `MAX`.
pub(crate) fn number<const MIN: u32, const MAX: u32>(text: &str) -> Result<u32, String> {
    match text.parse() {
        Ok(number) if (MIN..=MAX).contains(&number) => Ok(number),
        Ok(_) | Err(_) => Err(format!("`{text}` is not a number from {MIN} to {MAX}")),
    }
}

/// Parses a SHA-256, and returns it in lower case, as templates require. An empty text removes the SHA-256.
pub(crate) fn sha256(text: &str) -> Result<String, String> {
    if text.is_empty() || (text.len() == 64 && text.bytes().all(|byte| byte.is_ascii_hexdigit())) {
        Ok(text.to_ascii_lowercase())
    } else {
        Err(format!("`{text}` is not a SHA-256, which has 64 hexadecimal digits; `sha256sum FILE` prints it"))
    }
}

/// Parses the address of a person who gets mail; an empty text means nobody.
pub(crate) fn mail_address(text: &str) -> Result<String, String> {
    let is_part = |part: &str| !part.is_empty() && !part.contains(|c: char| c.is_whitespace() || c == '@');
    match text.rsplit_once('@') {
        Some((person, domain)) if is_part(person) && is_part(domain) && domain.contains('.') => Ok(text.to_owned()),
        _ if text.is_empty() => Ok(String::new()),
        _ => Err(format!("`{text}` is not a mail address, such as ops@acme.example")),
    }
}

/// Parses an OpenID Connect issuer, exactly as the claim `iss` of its tokens has it; an empty text means none. Only an
/// issuer on this machine may have an address with http, for a local cloud.
pub(crate) fn issuer(text: &str) -> Result<String, String> {
    let is_port = |port: &str| !port.is_empty() && port.bytes().all(|byte| byte.is_ascii_digit());
    let local = ["http://localhost:", "http://127.0.0.1:"].iter().find_map(|start| text.strip_prefix(start));
    let is_issuer = match (text.strip_prefix("https://"), local) {
        (Some(rest), _) => !rest.is_empty() && has_only(rest, "._~:/%-"),
        (None, Some(rest)) => {
            let (port, path) = rest.split_once('/').unwrap_or((rest, ""));
            is_port(port) && has_only(path, "._~:/%-")
        }
        (None, None) => text.is_empty(),
    };
    if is_issuer {
        return Ok(text.to_owned());
    }
    Err(format!(
        "`{text}` is not an issuer, which is an https URL without a user name, a query (?) or a fragment (#), such as \
         https://login.acme.example; `iss` in a token of the issuer has it"
    ))
}

/// Parses the name for which an issuer gives tokens: the id of a client, or an audience. An empty text means none.
pub(crate) fn audience(text: &str) -> Result<String, String> {
    if text.len() <= 255 && has_only(text, "._~:/-") {
        return Ok(text.to_owned());
    }
    Err(format!(
        "`{text}` is not the id of a client or an audience, which has letters, digits and `._~:/-`, at most 255"
    ))
}

/// Returns whether a text has only letters and digits of ASCII and these characters.
fn has_only(text: &str, also: &str) -> bool {
    text.chars().all(|letter| letter.is_ascii_alphanumeric() || also.contains(letter))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_issuer_is_an_https_url_or_on_this_machine() {
        let given = [
            "",
            "https://login.acme.example/oauth2/default",
            "http://localhost:4566/eu-west-1_a",
            "http://127.0.0.1:1",
        ];
        for text in given {
            assert_eq!(issuer(text).unwrap(), text);
        }
        for wrong in [
            "login.acme.example",
            "https://",
            "http://login.acme.example",
            "http://localhost",
            "http://localhost:x",
            "http://localhost:80@login.acme.example",
            "https://me@login.acme.example",
            "https://login.acme.example?tenant=1",
            "https://login.acme.example/a b",
        ] {
            assert!(issuer(wrong).unwrap_err().contains("such as https://login.acme.example"), "{wrong}");
        }
    }

    #[test]
    fn an_audience_is_a_name_and_may_be_a_url() {
        for text in ["", "freehold-acme", "https://github.com/acme", "0oa1:b_c~d"] {
            assert_eq!(audience(text).unwrap(), text);
        }
        for wrong in ["a b", "a,b", "a*", "a".repeat(256).as_str()] {
            assert!(audience(wrong).is_err(), "{wrong}");
        }
    }

    /// The parameters of the stack refuse what these functions refuse.
    #[test]
    fn the_template_has_the_same_patterns() {
        let template = include_str!("../../../infra/tenant.yaml");
        let issuers = concat!(
            r"^(https://[A-Za-z0-9._~:/%-]+|http://(localhost|127[.]0[.]0[.]1):[0-9]+",
            r"(/[A-Za-z0-9._~:/%-]*)?)?$"
        );

        for (names, pattern) in [
            (["PeopleIssuer", "PipelineIssuer"], issuers),
            (["PeopleClientId", "PipelineAudience"], "^[A-Za-z0-9._~:/-]{0,255}$"),
        ] {
            for name in names {
                let (_, rest) = template.split_once(&format!("\n  {name}:\n")).unwrap();
                let (_, rest) = rest.split_once("    AllowedPattern: ").unwrap();
                assert_eq!(rest.lines().next(), Some(pattern), "{name}");
            }
        }
    }

    #[test]
    fn a_word_is_not_a_mail_address() {
        for wrong in ["nix", "@acme.example", "ops@", "ops@acme", "a b@acme.example", "a@b@acme.example"] {
            assert!(mail_address(wrong).unwrap_err().contains("such as ops@acme.example"), "{wrong}");
        }
        assert_eq!(mail_address("ops@acme.example").unwrap(), "ops@acme.example");
        assert_eq!(mail_address("").unwrap(), "");
    }

    use serde_json::json;

    fn value(text: &str) -> Value {
        text.parse::<Input>().unwrap().value
    }

    #[test]
    fn an_input_is_text_unless_it_says_json() {
        assert_eq!(value("replicas=3"), json!("3"));
        assert_eq!(value("replicas:=3"), json!(3));
        assert_eq!(value("zones:=[\"a\",\"b\"]"), json!(["a", "b"]));
        assert_eq!(value("query=a=b"), json!("a=b"));
        assert_eq!(value("empty="), json!(""));
    }

    #[test]
    fn an_input_is_read_from_a_file() {
        let file = tempfile::NamedTempFile::new().unwrap();
        std::fs::write(file.path(), "line 1\nline 2\n").unwrap();

        assert_eq!(value(&format!("script=@{}", file.path().display())), json!("line 1\nline 2\n"));
    }

    #[test]
    fn broken_inputs_say_what_was_expected() {
        let problem = |text: &str| text.parse::<Input>().unwrap_err();

        assert!(problem("replicas").contains("`replicas:=3`"));
        assert!(problem("replicas:=three").contains("`replicas=three`"));
        assert!(problem("=3").contains("name before"));
        assert_eq!(
            problem("x=@/nowhere/at/all"),
            "there is no file `/nowhere/at/all`; name a text file after `@`, or write `x:=\"@...\"` for a text that begins \
             with `@`"
        );
    }

    #[test]
    fn numbers_and_checksums_that_are_refused_say_what_is_expected() {
        assert_eq!(number::<1, 64>("64"), Ok(64));
        for wrong in ["0", "65", "-1", "four", ""] {
            assert_eq!(number::<1, 64>(wrong), Err(format!("`{wrong}` is not a number from 1 to 64")));
        }
        assert_eq!(sha256(&"AB".repeat(32)), Ok("ab".repeat(32)));
        assert!(sha256("4b5e57f6eb2f...").unwrap_err().contains("has 64 hexadecimal digits"));
    }

    #[test]
    fn one_name_has_one_value() {
        let inputs = ["a=1".parse().unwrap(), "a=2".parse().unwrap()];

        assert_eq!(by_name(&inputs).unwrap_err().to_string(), "input `a` is given twice; give it once");
    }
}
