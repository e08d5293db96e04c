//! A list of names with their values.

use maud::{Markup, Render, html};

/// A list of names with their values, in the order of the calls.
#[derive(Debug, Default)]
pub struct Facts(Vec<(&'static str, Markup)>);

impl Facts {
    /// Returns an empty list.
    pub const fn new() -> Self {
        Self(Vec::new())
    }

    /// Adds a name and its value.
    #[must_use]
    pub fn with(mut self, name: &'static str, value: impl Render) -> Self {
        self.0.push((name, value.render()));
        self
    }

    /// Adds a name and its value, if there is a value.
    #[must_use]
    pub fn maybe(self, name: &'static str, value: Option<impl Render>) -> Self {
        match value {
            Some(value) => self.with(name, value),
            None => self,
        }
    }

    /// Returns the list as a description list.
    pub fn render(&self) -> Markup {
        html! {
            dl {
                @for (name, value) in &self.0 {
                    div { dt { (*name) } dd { (value) } }
                }
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn texts_are_escaped_and_absent_values_left_out() {
        let facts = Facts::new().with("Region", "<b>").maybe("App", None::<&str>).maybe("Stage", Some("a&b"));

        assert_eq!(
            facts.render().into_string(),
            "<dl><div><dt>Region</dt><dd>&lt;b&gt;</dd></div><div><dt>Stage</dt><dd>a&amp;b</dd></div></dl>"
        );
    }
}
