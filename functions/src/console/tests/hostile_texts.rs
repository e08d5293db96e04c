//! Hostile texts in every field of every answer: the elements of a page stay the same, and so do its attributes.

use serde_json::Value;

use super::document::{dangers, elements, skeleton};
use super::examples::{OTHERS, PAGES, caller, examples, made};

/// A text without any meaning, to compare with.
const HARMLESS: &str = "harmless";

/// Returns texts that leave every place in which a page could put a text and then begin a script, and texts that are
/// addresses of other hosts.
fn payloads() -> Vec<String> {
    let ways_out = ["\"", "' ", "\">", "'>", "</title>", "</textarea>", "</pre>", "</script>", "-->", "]]>"].concat();
    let scripts = ["<script>x</script>", "<img src=x onerror=x>", "<svg/onload=x>", "<style>*{}</style>", "<!--"];
    let breaking = [format!("{ways_out}{}", scripts.concat()), format!("{ways_out} onmouseover=x autofocus ")];
    let addresses = ["javascript:x", "//evil.example/x"].map(str::to_owned);
    breaking.into_iter().chain(addresses).collect()
}

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

#[test]
fn no_text_of_an_answer_becomes_an_element_an_attribute_or_an_address() {
    let skeleton_of = |page: &Option<String>| page.as_deref().map(|page| skeleton(&elements(page)));
    let harmless: Vec<_> = pages_with(HARMLESS).iter().map(skeleton_of).collect();
    let mut checked = 0;

    for payload in payloads() {
        for (page, harmless) in pages_with(&payload).into_iter().zip(&harmless) {
            let (Some(page), Some(harmless)) = (page, harmless) else { continue };
            let elements = elements(&page);
            checked += 1;

            assert_eq!(&skeleton(&elements), harmless, "{payload} changed the page {page}");
            assert_eq!(dangers(&elements), Vec::<String>::new(), "{payload}");
            for hostile in ["<script>x", "<img", "<svg/"] {
                assert!(!page.contains(hostile), "{payload}: {page}");
            }
        }
    }

    assert!(checked > 600, "only {checked} pages have a hostile text");
}

#[test]
fn hostile_texts_reach_the_pages() {
    let shown = |text: &str| pages_with(text).into_iter().flatten().filter(|page| page.contains(text)).count();

    assert!(shown(HARMLESS) > 40, "only {} pages show the text", shown(HARMLESS));
    let escaped = "&lt;script&gt;x&lt;/script&gt;";
    let pages = pages_with("<script>x</script>").into_iter().flatten().filter(|page| page.contains(escaped)).count();
    assert!(pages > 40, "only {pages} pages show the text");
}
