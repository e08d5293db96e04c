//! Hostile texts in every field of every answer: the elements of a page stay the same, and so do its attributes.
//! Prints the figures `console.xss` and `console.payloads` of docs/figures.md. `FREEHOLD_PAYLOADS` has the number of
//! texts, and `FREEHOLD_SEED` the seed.

use std::num::NonZero;

use serde_json::{Value, json};

use super::document::{dangers, read, skeleton};
use super::examples::{OTHERS, PAGES, caller, examples, made};
use super::payloads::{Payload, payloads};

/// A text without any meaning, to compare with.
const HARMLESS: &str = "harmless";

/// Calls `visit` with a copy of `value` for each text in it, in which `text` replaces that text. Also puts `text` as a
/// new key into each object: in one with free keys, such as labels, it is shown.
fn replaced(value: &Value, text: &str, visit: &mut dyn FnMut(Value)) {
    match value {
        Value::String(_) => visit(text.into()),
        Value::Array(items) => {
            for (at, item) in items.iter().enumerate() {
                replaced(item, text, &mut |item| {
                    let mut items = items.clone();
                    items[at] = item;
                    visit(Value::Array(items));
                });
            }
        }
        Value::Object(fields) => {
            for (name, field) in fields {
                replaced(field, text, &mut |field| {
                    let mut fields = fields.clone();
                    fields.insert(name.clone(), field);
                    visit(Value::Object(fields));
                });
            }
            let mut fields = fields.clone();
            fields.insert(text.to_owned(), text.into());
            visit(Value::Object(fields));
        }
        Value::Null | Value::Bool(_) | Value::Number(_) => {}
    }
}

/// Returns the pages in which one text of the answers is `text`, for each text; `None` where its type does not take
/// `text`.
fn pages_with(text: &str) -> Vec<Option<String>> {
    let (mut pages, caller) = (Vec::new(), caller());
    for (_, names, make) in PAGES {
        let examples = examples(names);
        for (at, example) in examples.iter().enumerate() {
            replaced(example, text, &mut |example| {
                let mut of = examples.clone();
                of[at] = example;
                pages.push(made(make, &caller, &of));
            });
        }
    }
    for (_, make) in OTHERS {
        pages.push(made(make, &caller, &[text.into()]));
        replaced(&caller, text, &mut |other| pages.push(made(make, &other, &["a text".into()])));
    }
    pages
}

/// Returns what a hostile text has changed in a page that has these tags with a harmless text.
fn harm(page: &str, harmless: &[String]) -> Option<String> {
    let elements = match read(page) {
        Ok(elements) => elements,
        Err(error) => return Some(error),
    };
    if skeleton(&elements) != harmless {
        return Some("other elements or attributes".to_owned());
    }
    let dangers = dangers(&elements);
    (!dangers.is_empty()).then(|| format!("{dangers:?}"))
}

/// What was found about some hostile texts.
#[derive(Debug, Default)]
struct Counts {
    payloads: usize,
    /// The texts that change a page which does not escape them.
    powerful: usize,
    pages: usize,
    wrong: Vec<String>,
}

impl Counts {
    fn with(mut self, other: Self) -> Self {
        self.payloads += other.payloads;
        self.powerful += other.powerful;
        self.pages += other.pages;
        self.wrong.extend(other.wrong);
        self
    }

    fn note(&mut self, payload: &Payload, harmless: &[Option<Vec<String>>]) {
        let mut is_powerful = payload.is_address && harm(&payload.as_address(), &["a href".to_owned()]).is_some();
        for (page, harmless) in pages_with(&payload.text).into_iter().zip(harmless) {
            let (Some(page), Some(harmless)) = (page, harmless) else { continue };
            self.pages += 1;
            if let Some(harm) = harm(&page, harmless) {
                self.wrong.push(format!("{}: {harm}: {page}", payload.text));
            }
            let escaped = payload.escaped();
            if !is_powerful && page.contains(&escaped) {
                is_powerful = harm(&page.replace(&escaped, &payload.text), harmless).is_some();
            }
        }
        self.payloads += 1;
        self.powerful += usize::from(is_powerful);
        if !is_powerful {
            eprintln!("no page shows `{}`, or it would do nothing there", payload.text);
        }
    }
}

fn setting(name: &str, usual: usize) -> usize {
    std::env::var(name).map_or(usual, |value| value.parse().unwrap())
}

fn print(counts: &Counts, seed: usize) {
    let (pages, wrong) = (counts.pages, counts.wrong.len());
    for (name, value, attempted, passed) in [
        ("console.xss", wrong, pages, pages - wrong),
        ("console.payloads", counts.powerful, counts.payloads, counts.powerful),
    ] {
        let figure = json!({ "name": name, "value": value, "attempted": attempted, "passed": passed, "seed": seed });
        println!("{figure}");
    }
}

#[test]
fn no_text_of_an_answer_becomes_an_element_an_attribute_or_an_address() {
    let seed = setting("FREEHOLD_SEED", 1);
    let payloads = payloads(setting("FREEHOLD_PAYLOADS", 8), seed as u64);
    let skeleton_of = |page: Option<String>| page.map(|page| skeleton(&read(&page).unwrap()));
    let harmless: Vec<_> = pages_with(HARMLESS).into_iter().map(skeleton_of).collect();
    let share = payloads.len().div_ceil(std::thread::available_parallelism().map_or(1, NonZero::get));

    let counts = std::thread::scope(|scope| {
        let harmless = &harmless;
        let count = move |payloads: &[Payload]| {
            let mut counts = Counts::default();
            payloads.iter().for_each(|payload| counts.note(payload, harmless));
            counts
        };
        let workers: Vec<_> = payloads.chunks(share).map(|some| scope.spawn(move || count(some))).collect();
        workers.into_iter().map(|worker| worker.join().unwrap()).fold(Counts::default(), Counts::with)
    });

    print(&counts, seed);
    assert_eq!(counts.wrong.first(), None);
    assert_eq!(counts.powerful, counts.payloads, "these texts prove nothing");
    assert!(counts.pages > 100 * counts.payloads, "only {} pages have a hostile text", counts.pages);
}

#[test]
fn hostile_texts_reach_the_pages() {
    let shown = |text: &str| pages_with(text).into_iter().flatten().filter(|page| page.contains(text)).count();

    assert!(shown(HARMLESS) > 40, "only {} pages show the text", shown(HARMLESS));
    let escaped = "&lt;script&gt;x&lt;/script&gt;";
    let pages = pages_with("<script>x</script>").into_iter().flatten().filter(|page| page.contains(escaped)).count();
    assert!(pages > 40, "only {pages} pages show the text");
}
