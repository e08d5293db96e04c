//! The same templates through Go's own engine, which `helm` carries with Sprig, and through ours.

pub(crate) mod cases;
mod differences;
mod helm;
pub(crate) mod random;

use freehold_template::{Limits, function_names, render};
use serde_json::{Value, json};

use helm::Helm;

/// One text over one tree, whose root holds `nuon`.
#[derive(Debug, Clone)]
pub(crate) struct Case {
    pub(crate) text: String,
    pub(crate) tree: Value,
}

/// How many random templates are compared.
const RANDOM: usize = 2_000;

#[test]
fn every_function_and_construct_renders_as_in_go() {
    let Some(helm) = Helm::find("every_function_and_construct_renders_as_in_go") else { return };
    let cases: Vec<Case> =
        cases::ALL.iter().map(|text| Case { text: (*text).to_owned(), tree: cases::tree() }).collect();

    let different = compare(&helm, &cases);

    assert!(different.is_empty(), "{} of {} differ:\n{}", different.len(), cases.len(), different.join("\n"));
}

#[test]
fn random_templates_render_as_in_go() {
    let Some(helm) = Helm::find("random_templates_render_as_in_go") else { return };
    let cases: Vec<Case> = (0..RANDOM as u64).map(random::case).collect();

    let different = compare(&helm, &cases);

    let first_ten = different.iter().take(10).cloned().collect::<Vec<_>>().join("\n");
    assert!(different.is_empty(), "{} of {} differ:\n{first_ten}", different.len(), cases.len());
}

#[test]
fn known_differences_from_go_are_as_listed() {
    let Some(helm) = Helm::find("known_differences_from_go_are_as_listed") else { return };

    let wrong: Vec<String> = differences::ALL
        .iter()
        .filter_map(|one| {
            let case = Case { text: one.text.to_owned(), tree: cases::tree() };
            let (go, ours) = (helm.one(&case).ok(), ours(&case).ok());
            let expected = (one.go.map(str::to_owned), one.ours.map(str::to_owned));
            ((go.clone(), ours.clone()) != expected).then(|| format!("{}\n  go   {go:?}\n  ours {ours:?}", one.text))
        })
        .collect();

    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
}

#[test]
fn every_function_is_compared() {
    let missing: Vec<&str> =
        function_names().filter(|name| !cases::ALL.iter().any(|text| words(text).any(|word| word == *name))).collect();

    assert!(missing.is_empty(), "no case of `cases.rs` calls {missing:?}");
}

fn words(text: &str) -> impl Iterator<Item = &str> {
    text.split(|c: char| !c.is_alphanumeric())
}

#[test]
fn yaml_is_read_by_go_as_what_it_was() {
    let Some(helm) = Helm::find("yaml_is_read_by_go_as_what_it_was") else { return };
    let trees: Vec<Value> = (0..400).map(|seed| random::case(seed).tree).collect();

    let written = trees.iter().map(|tree| rendered("{{ toYaml .nuon }}", tree));
    let cases: Vec<Case> = written
        .map(|yaml| Case { text: "{{ .nuon | fromYaml | toJson }}".to_owned(), tree: json!({ "nuon": yaml }) })
        .collect();

    let read = helm.all(&cases);
    for (tree, read) in trees.iter().zip(read) {
        assert_eq!(read, Ok(rendered("{{ toJson .nuon }}", tree)));
    }
}

fn rendered(text: &str, tree: &Value) -> String {
    render(text, tree, &Limits::default()).unwrap()
}

fn ours(case: &Case) -> Result<String, String> {
    render(&case.text, &case.tree, &Limits::default()).map_err(|error| error.to_string())
}

/// Returns what differs, one text for each case.
fn compare(helm: &Helm, cases: &[Case]) -> Vec<String> {
    let go = helm.all(cases);
    assert_eq!(go.len(), cases.len());
    std::iter::zip(cases, go)
        .filter_map(|(case, go)| {
            let ours = ours(case);
            (ours != go).then(|| format!("{}\n  go   {go:?}\n  ours {ours:?}", case.text))
        })
        .collect()
}
