//! Forms: a POST with labels for its fields, the token against forged requests, and a confirmation for what removes
//! something.

use maud::{Markup, html};

/// A form that is sent with POST.
#[derive(Debug)]
pub struct Form<'a> {
    action: &'a str,
    button: &'a str,
    hidden: Vec<(&'static str, String)>,
    fields: Vec<Field<'a>>,
    confirmation: Option<&'a str>,
}

/// One field of a form. `name` is unique on the page, because it is the field's id too.
#[derive(Debug, Clone)]
pub enum Field<'a> {
    /// One line of text.
    Text { name: &'a str, label: &'a str, value: &'a str, hint: &'a str, is_required: bool },
    /// Several lines of text.
    Lines { name: &'a str, label: &'a str, value: &'a str },
    /// One of several values: the value and its text.
    Choice { name: &'a str, label: &'a str, options: Vec<(String, String)>, chosen: &'a str },
}

impl<'a> Form<'a> {
    /// Returns a form with the CSRF token `csrf`, which is sent to the path `action`.
    pub fn new(action: &'a str, button: &'a str, csrf: &str) -> Self {
        let hidden = vec![("csrf", csrf.to_owned())];
        Self { action, button, hidden, fields: Vec::new(), confirmation: None }
    }

    /// Adds a value that is sent and not shown.
    #[must_use]
    pub fn hidden(mut self, name: &'static str, value: impl Into<String>) -> Self {
        self.hidden.push((name, value.into()));
        self
    }

    /// Adds a field.
    #[must_use]
    pub fn field(mut self, field: Field<'a>) -> Self {
        self.fields.push(field);
        self
    }

    /// Makes the form ask for a confirmation: it is behind a disclosure, and `question` has a box to tick.
    #[must_use]
    pub const fn confirmed(mut self, question: &'a str) -> Self {
        self.confirmation = Some(question);
        self
    }

    /// Returns the form.
    pub fn render(&self) -> Markup {
        match self.confirmation {
            Some(question) => html! {
                details .confirm {
                    summary { (self.button) "…" }
                    (self.form(html! {
                        label .check { input type="checkbox" name="confirmed" value="yes" required; " " (question) }
                    }, "danger"))
                }
            },
            None => self.form(Markup::default(), ""),
        }
    }

    fn form(&self, confirmation: Markup, class: &str) -> Markup {
        html! {
            form method="post" action=(self.action) {
                @for (name, value) in &self.hidden { input type="hidden" name=(*name) value=(value); }
                @for field in &self.fields { (field.render()) }
                (confirmation)
                button type="submit" class=[Some(class).filter(|class| !class.is_empty())] { (self.button) }
            }
        }
    }
}

impl Field<'_> {
    fn render(&self) -> Markup {
        match self {
            Self::Text { name, label, value, hint, is_required } => {
                let hint_id = (!hint.is_empty()).then(|| format!("{name}-hint"));
                html! {
                    div .field {
                        label for=(*name) { (*label) }
                        @if let Some(id) = &hint_id { small id=(id) { (*hint) } }
                        input type="text" id=(*name) name=(*name) value=(*value) required[*is_required]
                            autocomplete="off" aria-describedby=[&hint_id];
                    }
                }
            }
            Self::Lines { name, label, value } => html! {
                div .field {
                    label for=(*name) { (*label) }
                    // The parser drops one line break after the start tag, so that a text may begin with one.
                    textarea id=(*name) name=(*name) rows="16" spellcheck="false" { "\n" (*value) }
                }
            },
            Self::Choice { name, label, options, chosen } => html! {
                div .field {
                    label for=(*name) { (*label) }
                    select id=(*name) name=(*name) {
                        @for (value, text) in options {
                            option value=(value) selected[value == chosen] { (text) }
                        }
                    }
                }
            },
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_form_has_the_token_and_a_label_for_each_field() {
        let form = Form::new("/jobs/j/reject", "Reject", "t0ken").hidden("key", "k1").field(Field::Text {
            name: "reason",
            label: "Reason",
            value: "\"><script>",
            hint: "The customer sees it.",
            is_required: true,
        });

        assert_eq!(
            form.render().into_string(),
            "<form method=\"post\" action=\"/jobs/j/reject\"><input type=\"hidden\" name=\"csrf\" value=\"t0ken\">\
             <input type=\"hidden\" name=\"key\" value=\"k1\"><div class=\"field\"><label for=\"reason\">Reason</label>\
             <small id=\"reason-hint\">The customer sees it.</small><input type=\"text\" id=\"reason\" name=\"reason\" \
             value=\"&quot;&gt;&lt;script&gt;\" required autocomplete=\"off\" aria-describedby=\"reason-hint\"></div>\
             <button type=\"submit\">Reject</button></form>"
        );
    }

    #[test]
    fn a_confirmation_has_to_be_ticked() {
        let form = Form::new("/members/a/remove", "Remove", "t").confirmed("Remove ana").render().into_string();

        assert!(form.starts_with("<details class=\"confirm\"><summary>Remove…</summary>"), "{form}");
        assert!(form.contains("name=\"confirmed\" value=\"yes\" required> Remove ana</label>"), "{form}");
        assert!(form.contains("<button type=\"submit\" class=\"danger\">Remove</button>"), "{form}");
    }

    #[test]
    fn the_chosen_option_is_selected() {
        let options = vec![("a".to_owned(), "A".to_owned()), ("b".to_owned(), "B".to_owned())];
        let field = Field::Choice { name: "release", label: "Release", options, chosen: "b" };

        let form = Form::new("/x", "Go", "t").field(field).render().into_string();

        assert!(form.contains("<option value=\"a\">A</option><option value=\"b\" selected>B</option>"), "{form}");
    }
}
