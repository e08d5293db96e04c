//! Checks that a vendor's text keeps its value in the install stack and changes nothing else, with any characters.

use freehold_protocol::Digest;
use freehold_protocol::app_version::AppVersion;
use proptest::collection::vec;
use proptest::prelude::*;
use proptest::sample::select;
use saphyr_parser::{Event, Parser};
use serde_json::json;

use super::escape::{DESCRIPTION_CHARS, TITLE_CHARS, one_line};
use super::render_stack::{example, template};
use crate::contract::terms;

/// Pieces of texts that would end quotes, lines, flows and comments, or name templates, anchors and functions.
const PIECES: [&str; 23] = [
    "\"",
    "'",
    "\\",
    "\\\"",
    "\n",
    "\r",
    "\t",
    "\n\n  Evil: {Type: String}",
    "\n---\n",
    "\u{85}",
    "\u{2028}",
    "\u{2029}",
    "\u{feff}",
    "{{",
    "{{ .tenant }}",
    "}}",
    "!Ref Key",
    "${AWS::AccountId}",
    ": ",
    " #",
    "&a *a",
    "]}, ",
    "%{TENANT}",
];

/// The texts of a vendor, each of them the only one at its place.
#[derive(Debug, Clone)]
struct Texts {
    name: String,
    title: String,
    description: String,
    default: String,
    group: String,
    role: String,
    role_description: String,
    policy: String,
}

impl Texts {
    fn plain() -> Self {
        let text = |at: &str| format!("plain {at}");
        Self {
            name: text("name"),
            title: text("title"),
            description: text("description"),
            default: text("default"),
            group: text("group"),
            role: text("role"),
            role_description: text("role description"),
            policy: text("policy"),
        }
    }

    fn version(&self) -> AppVersion {
        // The key is the last one, whatever the text is.
        let policy = json!({ "Statement": [], "Id": self.policy, format!("~{}", self.policy): [] }).to_string();
        serde_json::from_value(json!({
            "format": 1,
            "app": "demo",
            "inputs": [
                { "name": self.name, "type": "string", "customer": true, "group": "look" },
                { "name": "colour", "type": "string", "customer": true, "group": "look", "display_name": self.title,
                  "description": self.description, "default": self.default },
                { "name": "token", "type": "string", "customer": true, "sensitive": true, "group": "look",
                  "display_name": self.title, "description": self.description },
            ],
            "input_groups": [{ "name": "look", "display_name": self.group }],
            "named_roles": [{ "name": "support", "display_name": self.role, "description": self.role_description,
                              "break_glass": true, "policies": [{ "inline": { "name": "all", "document": policy } }] }],
        }))
        .unwrap()
    }

    /// Returns the texts as the stack shows them.
    fn scalars(&self) -> Vec<String> {
        let answer = format!("Answer to {}", self.title);
        vec![
            one_line(&self.name, TITLE_CHARS),
            self.version().inputs[0].parameter(),
            one_line(&self.title, TITLE_CHARS),
            one_line(&answer, TITLE_CHARS),
            one_line(&self.description, DESCRIPTION_CHARS),
            self.default.clone(),
            one_line(&self.group, TITLE_CHARS),
            one_line(&self.role, TITLE_CHARS),
            one_line(&self.role_description, DESCRIPTION_CHARS),
            self.policy.clone(),
            format!("~{}", self.policy),
        ]
    }
}

fn stack(version: &AppVersion) -> String {
    let (place, install) = example(version).unwrap();
    template(&place, &install, &Digest::of(b""), version).unwrap()
}

/// Returns what a reader of YAML finds, with other words for the scalars.
fn events(yaml: &str, reworded: impl Fn(&str) -> String) -> Vec<Event<'_>> {
    let events = Parser::new_from_str(yaml).map(|found| found.unwrap().0);
    let reworded = events.map(|event| match event {
        Event::Scalar(text, style, anchor, tag) => Event::Scalar(reworded(&text).into(), style, anchor, tag),
        other => other,
    });
    reworded.collect()
}

fn text() -> impl Strategy<Value = String> {
    vec(prop_oneof![any::<char>().prop_map(String::from), select(&PIECES[..]).prop_map(str::to_owned)], 1..12)
        .prop_map(|pieces| pieces.concat())
}

/// Returns a text that is not a template and that has no character which stands for a reference.
fn policy_text() -> impl Strategy<Value = String> {
    text().prop_map(|text| {
        let characters = text.chars().filter(|c| !['\u{f001}', '\u{f002}'].contains(c));
        characters.fold(String::new(), |mut kept, c| {
            if c != '{' || !kept.ends_with('{') {
                kept.push(c);
            }
            kept
        })
    })
}

/// Returns a text that a parameter may have as its default.
fn default_text() -> impl Strategy<Value = String> {
    text().prop_map(|text| text.chars().filter(|c| !c.is_control() || "\n\r\t".contains(*c)).collect())
}

fn texts() -> impl Strategy<Value = Texts> {
    (text(), text(), text(), default_text(), text(), text(), text(), policy_text()).prop_map(
        |(name, title, description, default, group, role, role_description, policy)| Texts {
            name,
            title,
            description,
            default,
            group,
            role,
            role_description,
            policy,
        },
    )
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(64))]

    #[test]
    fn a_text_is_read_as_it_was_written_and_changes_nothing_else(texts in texts()) {
        let (plain, version) = (Texts::plain(), texts.version());
        let (from, to) = (plain.scalars(), texts.scalars());
        let (old, new) = (terms::digest(&plain.version()).unwrap(), terms::digest(&version).unwrap());
        let reworded = |scalar: &str| {
            let at = from.iter().position(|from| from == scalar);
            at.map_or_else(|| scalar.replace(&old.to_string(), &new.to_string()), |at| to[at].clone())
        };

        let (written, unchanged) = (stack(&version), stack(&plain.version()));

        let (found, expected) = (events(&written, str::to_owned), events(&unchanged, reworded));
        for (found, expected) in found.iter().zip(&expected) {
            prop_assert_eq!(found, expected);
        }
        prop_assert_eq!(found.len(), expected.len());
        // A reader of YAML 1.1 ends lines at some of these, and refuses others.
        let bare = |c: char| (c.is_control() && c != '\n') || "\u{2028}\u{2029}\u{feff}\u{fffe}\u{ffff}".contains(c);
        prop_assert!(!written.contains(bare));
    }
}
