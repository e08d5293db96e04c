//! Describes a key: its name, whether it is required, and the type of its value. The tables of keys are in the other
//! files of this directory.

/// The maximum time limit of a component's build or deploy, in seconds.
pub(crate) const MAX_COMPONENT_SECS: u32 = 60 * 60;
/// The maximum time limit of an action's run, in seconds.
pub(crate) const MAX_ACTION_SECS: u32 = 30 * 60;

/// A key of a table.
#[derive(Debug)]
pub(crate) struct Key {
    pub(crate) name: &'static str,
    pub(crate) must: bool,
    pub(crate) holds: Holds,
    /// The description in Markdown that editors and the reference show; empty until [`Key::doc`] sets it.
    pub(crate) doc: &'static str,
    pub(crate) effect: Effect,
    /// Whether an empty string is an error.
    pub(crate) filled: bool,
}

/// Whether a key has an effect in Freehold. A config that sets a key without an effect gets a warning, and the
/// reference marks such a key.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Effect {
    Works,
    /// The key never has an effect. It is accepted because configs for other tools have it. The text is what Freehold
    /// does instead, or what a vendor can do instead.
    Never(&'static str),
    /// The first text is a value of the key that never has an effect; its other values have one. The second text is as
    /// in [`Effect::Never`].
    NeverFor(&'static str, &'static str),
}

impl Effect {
    /// Returns the sentence which states that the key or some of its values have no effect; `None` for a key that
    /// works. Editors and the reference show the sentence after the key's description.
    pub(crate) fn remark(self) -> Option<String> {
        match self {
            Self::Works => None,
            Self::Never(instead) => Some(format!("Has no effect: {instead}.")),
            Self::NeverFor(word, instead) => Some(format!("`{word}` has no effect: {instead}.")),
        }
    }
}

impl Key {
    /// Marks a key that never has an effect ([`Effect::Never`]).
    pub(crate) const fn never(self, instead: &'static str) -> Self {
        Self { effect: Effect::Never(instead), ..self }
    }

    /// Marks a value of a key that never has an effect ([`Effect::NeverFor`]).
    pub(crate) const fn never_for(self, word: &'static str, instead: &'static str) -> Self {
        Self { effect: Effect::NeverFor(word, instead), ..self }
    }

    /// Returns the description of the key and the sentence about its effect; `None` if there are neither.
    pub(crate) fn about(&self) -> Option<String> {
        let doc = self.doc.trim_end_matches('.');
        let meaning = (!doc.is_empty()).then(|| format!("{doc}."));
        let sentences: Vec<String> = meaning.into_iter().chain(self.effect.remark()).collect();
        (!sentences.is_empty()).then(|| sentences.join(" "))
    }

    /// Makes an empty string an error.
    pub(crate) const fn filled(self) -> Self {
        Self { filled: true, ..self }
    }

    /// Sets the description that editors and the reference show.
    pub(crate) const fn doc(self, doc: &'static str) -> Self {
        Self { doc, ..self }
    }
}

/// The type that the value of a key must have.
#[derive(Debug, Clone, Copy)]
pub(crate) enum Holds {
    /// A string.
    Text,
    /// A string that is a template.
    Template,
    /// A string that is a template, or the path of a file that contains one, such as `./path`.
    TemplateFile,
    /// A string, or the path of a file that contains it, such as `./path`. The text is in another system's language, so
    /// it is not a template.
    File,
    /// One of these strings.
    Word(&'static [&'static str]),
    Flag,
    Whole,
    /// A duration of at most this many seconds.
    Duration(u32),
    /// A list of strings.
    Texts,
    /// A table of numbers, booleans and strings that are templates.
    Scalars,
    /// A table of any values; strings are templates.
    Values,
    Table(&'static [Key]),
    Tables(&'static [Key]),
    /// Any value; it is not checked.
    Any,
}

impl Holds {
    /// Returns the name of the expected type in messages.
    pub(crate) fn expected(&self) -> String {
        match self {
            Self::Text | Self::Template => "a string".to_owned(),
            Self::TemplateFile | Self::File => "a string: the text itself or `./path` of a file".to_owned(),
            Self::Word(words) => {
                let words: Vec<String> = words.iter().map(|word| format!("`{word}`")).collect();
                format!("one of {}", words.join(", "))
            }
            Self::Flag => "`true` or `false`".to_owned(),
            Self::Whole => "a whole number".to_owned(),
            Self::Duration(_) => "a length of time such as `90s`, `5m` or `1h30m`".to_owned(),
            Self::Texts => "a list of strings".to_owned(),
            Self::Scalars => "a table of strings".to_owned(),
            Self::Values | Self::Table(_) => "a table".to_owned(),
            Self::Tables(_) => "a list of tables".to_owned(),
            Self::Any => "a value".to_owned(),
        }
    }

    /// Returns an example line that sets the key `name`.
    pub(crate) fn example(&self, name: &str) -> String {
        match self {
            Self::Text | Self::Template | Self::TemplateFile | Self::File => format!("{name} = \"...\""),
            Self::Word(words) => format!("{name} = \"{}\"", words.first().copied().unwrap_or_default()),
            Self::Flag => format!("{name} = true"),
            Self::Whole => format!("{name} = 1"),
            Self::Duration(_) => format!("{name} = \"5m\""),
            Self::Texts => format!("{name} = [\"...\"]"),
            Self::Scalars | Self::Values | Self::Table(_) | Self::Any => format!("[{name}]"),
            Self::Tables(_) => format!("[[{name}]]"),
        }
    }
}

/// Returns a required key.
pub(crate) const fn must(name: &'static str, holds: Holds) -> Key {
    Key { name, must: true, holds, doc: "", effect: Effect::Works, filled: false }
}

/// Returns an optional key.
pub(crate) const fn may(name: &'static str, holds: Holds) -> Key {
    Key { name, must: false, holds, doc: "", effect: Effect::Works, filled: false }
}

/// Parses a duration such as `1h30m` into seconds; hours, minutes and seconds may come in any order.
pub(crate) fn seconds(text: &str) -> Option<u32> {
    let mut total: u32 = 0;
    let mut number = String::new();
    for c in text.chars() {
        if c.is_ascii_digit() {
            number.push(c);
            continue;
        }
        let unit: u32 = match c {
            'h' => 3600,
            'm' => 60,
            's' => 1,
            _ => return None,
        };
        total = total.checked_add(number.parse::<u32>().ok()?.checked_mul(unit)?)?;
        number.clear();
    }
    (number.is_empty() && !text.is_empty()).then_some(total)
}
