//! Shapes of texts. The code's check and the pattern in the published schema come from the same value.

/// The form that a text must have.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Shape {
    /// Lower-case letters, digits and single dashes. The first character is a letter, and the last one is not a dash.
    Slug { min: usize, max: usize },
    /// ASCII letters, digits and the characters of `also`. The first character is a letter or a digit.
    Label { max: usize, also: &'static str },
    /// ASCII letters, digits and the characters of `also`, in any order.
    Letters { max: usize, also: &'static str },
    /// Decimal digits.
    Digits { min: usize, max: usize },
    /// `prefix`, followed by exactly `digits` lower-case hex digits.
    Hex { prefix: &'static str, digits: usize },
    /// Visible ASCII characters, all of which an HTTP header may contain.
    Visible { max: usize },
    /// One line of text without control characters, which must contain more than spaces.
    Line { max: usize },
    /// An AWS region, such as `eu-west-1` or `us-gov-east-1`.
    Region,
}

/// The longest region, in characters.
const REGION_CHARS: usize = 20;

impl Shape {
    /// Returns whether `text` has this shape.
    pub fn accepts(self, text: &str) -> bool {
        let chars = text.chars().count();
        let (min, max) = self.chars();
        (min..=max).contains(&chars) && self.spells(text)
    }

    /// Returns the smallest and the largest number of characters.
    const fn chars(self) -> (usize, usize) {
        match self {
            Self::Slug { min, max } | Self::Digits { min, max } => (min, max),
            Self::Label { max, .. } | Self::Letters { max, .. } | Self::Visible { max } | Self::Line { max } => {
                (1, max)
            }
            Self::Hex { prefix, digits } => (prefix.len() + digits, prefix.len() + digits),
            Self::Region => (1, REGION_CHARS),
        }
    }

    /// Returns whether `text` has only permitted characters at permitted places. The length is not checked.
    fn spells(self, text: &str) -> bool {
        let first = |test: fn(&char) -> bool| text.starts_with(|c: char| test(&c));
        match self {
            Self::Slug { .. } => first(char::is_ascii_lowercase) && text.split('-').all(is_lower_or_digit),
            Self::Label { also, .. } => first(char::is_ascii_alphanumeric) && is_alphanumeric_or(text, also),
            Self::Letters { also, .. } => is_alphanumeric_or(text, also),
            Self::Digits { .. } => text.bytes().all(|b| b.is_ascii_digit()),
            Self::Hex { prefix, .. } => text
                .strip_prefix(prefix)
                .is_some_and(|rest| rest.bytes().all(|b| matches!(b, b'0'..=b'9' | b'a'..=b'f'))),
            Self::Visible { .. } => text.bytes().all(|b| b.is_ascii_graphic()),
            Self::Line { .. } => text.contains(|c: char| c != ' ') && !text.contains(char::is_control),
            Self::Region => is_region(text),
        }
    }

    /// Returns a regular expression for the shape, without anchors (ECMA-262, the dialect of JSON Schema). The schema's
    /// `minLength` and `maxLength` limit the length of a slug, a line or a region; the expression does not.
    pub fn pattern(self) -> String {
        match self {
            Self::Slug { .. } => "[a-z][a-z0-9]*(-[a-z0-9]+)*".into(),
            Self::Label { max, also } => format!("[A-Za-z0-9][A-Za-z0-9{also}]{{0,{}}}", max - 1),
            Self::Letters { max, also } => format!("[A-Za-z0-9{also}]{{1,{max}}}"),
            Self::Digits { min, max } => format!("[0-9]{{{min},{max}}}"),
            Self::Hex { prefix, digits } => format!("{prefix}[0-9a-f]{{{digits}}}"),
            Self::Visible { max } => format!("[!-~]{{1,{max}}}"),
            Self::Line { .. } => r" *[^ \x00-\x1f\x7f-\x9f][^\x00-\x1f\x7f-\x9f]*".into(),
            Self::Region => "[a-z]{2,}(-[a-z]+)+-[0-9]".into(),
        }
    }

    /// Returns the JSON Schema of texts with this shape.
    #[cfg(feature = "schema")]
    pub fn schema(self) -> schemars::Schema {
        let mut schema = schemars::json_schema!({ "type": "string", "pattern": format!("^{}$", self.pattern()) });
        let (min, max) = self.chars();
        schema.insert("minLength".into(), min.into());
        schema.insert("maxLength".into(), max.into());
        schema
    }
}

fn is_lower_or_digit(part: &str) -> bool {
    !part.is_empty() && part.bytes().all(|b| b.is_ascii_lowercase() || b.is_ascii_digit())
}

fn is_alphanumeric_or(text: &str, also: &str) -> bool {
    text.chars().all(|c| c.is_ascii_alphanumeric() || also.contains(c))
}

fn is_region(text: &str) -> bool {
    let letters = |part: &str| !part.is_empty() && part.bytes().all(|b| b.is_ascii_lowercase());
    let Some((place, number)) = text.rsplit_once('-') else { return false };
    let Some((area, rest)) = place.split_once('-') else { return false };
    area.len() >= 2
        && letters(area)
        && rest.split('-').all(letters)
        && number.len() == 1
        && number.bytes().all(|b| b.is_ascii_digit())
}

/// Returns whether YAML allows a character without an escape and does not read it as the end of a line (YAML 1.1,
/// sections 5.1 and 5.4).
pub fn is_printable_in_yaml(c: char) -> bool {
    !c.is_control() && !matches!(c, '\u{2028}' | '\u{2029}' | '\u{feff}' | '\u{fffe}' | '\u{ffff}')
}

/// Returns the escape of a character in a double-quoted scalar of YAML (YAML 1.1, section 5.6).
pub fn yaml_escape(c: char) -> String {
    format!("\\U{:08X}", u32::from(c))
}

/// Returns whether a character is invisible and changes how other text is shown, such as the order of its letters
/// (Unicode, general category `Cf`).
pub const fn is_format(c: char) -> bool {
    matches!(
        c,
        '\u{ad}'
            | '\u{600}'..='\u{605}'
            | '\u{61c}'
            | '\u{6dd}'
            | '\u{70f}'
            | '\u{890}'..='\u{891}'
            | '\u{8e2}'
            | '\u{180e}'
            | '\u{200b}'..='\u{200f}'
            | '\u{202a}'..='\u{202e}'
            | '\u{2060}'..='\u{206f}'
            | '\u{feff}'
            | '\u{fff9}'..='\u{fffb}'
            | '\u{110bd}'
            | '\u{110cd}'
            | '\u{13430}'..='\u{1343f}'
            | '\u{1bca0}'..='\u{1bca3}'
            | '\u{1d173}'..='\u{1d17a}'
            | '\u{e0001}'
            | '\u{e0020}'..='\u{e007f}'
    )
}

#[cfg(all(test, feature = "schema"))]
mod tests {
    use proptest::prelude::*;
    use serde_json::Value;

    use super::*;

    const SHAPES: [Shape; 10] = [
        Shape::Slug { min: 2, max: 5 },
        Shape::Label { max: 4, also: "_-" },
        Shape::Label { max: 4, also: "._-" },
        Shape::Letters { max: 4, also: "_.:-" },
        Shape::Digits { min: 3, max: 4 },
        Shape::Hex { prefix: "wf_", digits: 4 },
        Shape::Hex { prefix: "sha256:", digits: 2 },
        Shape::Visible { max: 4 },
        Shape::Line { max: 4 },
        Shape::Region,
    ];

    /// Generates short texts from the characters of the shapes, so that many of them are almost valid.
    fn texts() -> impl Strategy<Value = String> {
        prop_oneof![
            "[a-c0-1A_.: -]{0,6}",
            "(wf_|sha256:)?[0-9a-g]{0,5}",
            "[a-z]{1,2}(-[a-z]{0,3}){0,2}-?[0-9]{0,2}",
            "[ a\t\u{7f}\u{85}\u{a0}\u{3000}é\n]{0,5}",
            "[0-9]{2,5}",
        ]
    }

    #[test]
    fn the_schema_accepts_what_the_check_accepts() {
        let schemas = SHAPES.map(|shape| (shape, jsonschema::validator_for(shape.schema().as_value()).unwrap()));

        proptest!(|(text in texts())| {
            for (shape, schema) in &schemas {
                let published = schema.is_valid(&Value::from(text.as_str()));
                prop_assert_eq!(published, shape.accepts(&text), "{:?} {:?}", shape, text);
            }
        });
    }

    #[test]
    fn each_shape_accepts_what_it_is_for() {
        let good = ["ab-1", "A_b", "a.b", "a:.b", "0012", "wf_00ff", "sha256:0a", "a~!", "a  b", "us-gov-east-1"];

        for (shape, text) in SHAPES.into_iter().zip(good) {
            assert!(shape.accepts(text), "{shape:?} {text}");
        }
    }
}
