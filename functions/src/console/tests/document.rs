//! A page as a document: its elements and what a browser would load or run because of it.

use quick_xml::Reader;
use quick_xml::events::Event;

/// The elements without an end tag that pages have.
const VOID: [&str; 3] = ["input", "link", "meta"];
/// The attributes that name an address.
const ADDRESSES: [&str; 4] = ["href", "src", "action", "data-live"];

/// An element: its name and its attributes.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Element {
    pub(crate) name: String,
    pub(crate) attributes: Vec<(String, String)>,
    /// The names of the elements around it.
    pub(crate) around: Vec<String>,
}

impl Element {
    pub(crate) fn get(&self, name: &str) -> Option<&str> {
        self.attributes.iter().find(|(other, _)| other == name).map(|(_, value)| value.as_str())
    }
}

/// Returns the elements of a page. Panics if the tags of the page do not match.
pub(crate) fn elements(page: &str) -> Vec<Element> {
    read(page).unwrap_or_else(|error| panic!("{error} in {page}"))
}

/// Returns the elements of a page.
///
/// # Errors
/// What is not a tag that matches another, a text or an entity.
pub(crate) fn read(page: &str) -> Result<Vec<Element>, String> {
    let mut reader = Reader::from_str(page);
    reader.config_mut().check_end_names = false;
    reader.config_mut().allow_unmatched_ends = true;
    let (mut elements, mut around) = (Vec::new(), Vec::<String>::new());
    loop {
        match reader.read_event().map_err(|error| error.to_string())? {
            Event::Start(start) => {
                let name = start.name().0.to_owned();
                let mut attributes = Vec::new();
                for attribute in start.html_attributes() {
                    let attribute = attribute.map_err(|error| error.to_string())?;
                    attributes.push((attribute.key.0.to_owned(), attribute.value.into_owned()));
                }
                elements.push(Element { name: name.clone(), attributes, around: around.clone() });
                if !VOID.contains(&name.as_str()) {
                    around.push(name);
                }
            }
            Event::End(end) => {
                let (open, name) = (around.pop(), end.name().0);
                if open.as_deref() != Some(name) {
                    return Err(format!("`{name}` ends, and {open:?} is open"));
                }
            }
            Event::Eof => break,
            Event::Text(_) | Event::GeneralRef(_) | Event::DocType(_) => {}
            other => return Err(format!("there is {other:?}")),
        }
    }
    if around.is_empty() { Ok(elements) } else { Err(format!("{around:?} is open at the end")) }
}

/// Returns the tags of a page with the names of their attributes.
pub(crate) fn skeleton(elements: &[Element]) -> Vec<String> {
    let tag = |element: &Element| {
        let names: Vec<&str> = element.attributes.iter().map(|(name, _)| name.as_str()).collect();
        format!("{} {}", element.name, names.join(" "))
    };
    elements.iter().map(tag).collect()
}

/// Returns what a page must not have: inline scripts and styles, and addresses outside of the console.
pub(crate) fn dangers(elements: &[Element]) -> Vec<String> {
    let mut dangers = Vec::new();
    for element in elements {
        for (name, value) in &element.attributes {
            let is_inline = name == "style" || name.starts_with("on") || name == "srcdoc";
            let is_own = value.starts_with('#') || value.starts_with('/') && !value.starts_with("//");
            if is_inline || ADDRESSES.contains(&name.as_str()) && !is_own {
                dangers.push(format!("<{} {name}=\"{value}\">", element.name));
            }
        }
        let is_own_script = element.name == "script" && element.get("src").is_some();
        if ["script", "style", "iframe", "object", "embed", "base"].contains(&element.name.as_str()) && !is_own_script {
            dangers.push(format!("<{}>", element.name));
        }
    }
    dangers
}

#[test]
fn what_a_page_must_not_have_is_found() {
    for (page, count) in [
        ("<p style=\"color: red\">a</p>", 1),
        ("<a href=\"https://evil.example\" onclick=\"x\">a</a>", 2),
        ("<a href=\"//evil.example\">a</a>", 1),
        ("<a href=\"javascript:x\">a</a>", 1),
        ("<script>x</script>", 1),
        ("<script src=\"/assets/live.js\" defer></script><a href=\"/apps\">a</a><a href=\"#main\">b</a>", 0),
    ] {
        assert_eq!(dangers(&elements(page)).len(), count, "{page}");
    }
}
