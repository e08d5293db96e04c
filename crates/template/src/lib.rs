//! Go `text/template` over a JSON tree: parsing, the references a template makes, and rendering. Pure, bounded, and
//! free of panics.
//!
//! The syntax is that of Go's `text/template` (<https://pkg.go.dev/text/template>) with the functions of Sprig that app
//! configs and charts use. A test renders thousands of templates with Go's own engine too and compares the results.
//! The intended differences, which `tests/suite/go/differences.rs` lists, are:
//!
//! - the tree's root holds `nuon`; `.freehold` is a synonym of `.nuon`, and `nuon.install.id` without the leading dot
//!   is read as `.nuon.install.id` (real configs write it);
//! - names after a dot may contain single dashes (`.nuon.components.store-info`);
//! - a missing key is an error that names the path, except where the template itself asks (`if`, `with`, `and`, `or`,
//!   `not`, `default`, `coalesce`, `empty`, `all`, `any`, `required`, `hasKey`, `kindOf`); printing `null` is an error
//!   too;
//! - there is one type of number: no `int` beside `float64`, and whole numbers are never printed as `1e+06`;
//! - mistakes that Go ignores are errors: a string that is not a number, a sum beyond 64 bits, wrong arguments of
//!   `printf`, text that is not base64 or JSON, an invalid pattern.
//!
//! Left out: `define`, `template` and `block`; `include`, `tpl` and `lookup` of Helm; characters in single quotes and
//! complex numbers; functions that change a map (`set`, `unset`), read the clock, the machine, the network or chance
//! (`now`, `env`, `uuidv4`, `rand...`), make keys or certificates; dates, `semver`, `fromYaml`, `js`, path, URL and
//! case functions beyond `upper`, `lower`, `title` and `untitle`, and arithmetic with fractions beyond `round`, `floor`
//! and `ceil`.
//!
//! The public engines are not sufficient: `gtmpl` is no longer developed and its errors have no columns; `gotmpl` bounds
//! loops but not the size of values (`{{ $x = print $x $x }}`), and its errors do not name the whole path or a near one.

mod ast;
mod error;
mod eval;
mod format;
mod functions;
mod json;
mod lex;
mod limits;
mod nearest;
mod parse;
mod printf;
mod refs;
mod value;
mod write;
mod yaml;

use std::collections::BTreeSet;
use std::fmt;

use serde_json::Value;

pub use error::{ParseError, RenderError, RenderErrorKind};
pub use limits::Limits;
pub use nearest::nearest;
pub use refs::Use;

/// A parsed template. Two templates are equal when their trees are; comments and spaces inside of actions do not count.
#[derive(Debug, Clone)]
pub struct Template {
    text: String,
    nodes: Vec<ast::Node>,
}

impl Template {
    /// Parses `text`.
    ///
    /// # Errors
    /// When `text` is not a template: the first mistake, with its position in `text`.
    pub fn parse(text: &str) -> Result<Self, ParseError> {
        let nodes = parse::parse(text)?;
        Ok(Self { text: text.to_owned(), nodes })
    }

    /// Returns the field paths that the template reads, `nuon` first; a step over the elements of a list or map is `*`.
    pub fn references(&self) -> BTreeSet<Vec<String>> {
        self.uses().into_iter().map(|found| found.path).collect()
    }

    /// Returns each place where the template reads a field path, in the order of the text.
    pub fn uses(&self) -> Vec<Use> {
        refs::uses(&self.text, &self.nodes)
    }

    /// Renders the template over `tree`, whose root holds `nuon`.
    ///
    /// # Errors
    /// When a key is missing, a function does not accept its arguments, or a limit is reached.
    pub fn render(&self, tree: &Value, limits: &Limits) -> Result<String, RenderError> {
        eval::render(&self.text, &self.nodes, tree, limits)
    }
}

impl PartialEq for Template {
    fn eq(&self, other: &Self) -> bool {
        self.nodes == other.nodes
    }
}

/// The normal form: parsing it gives an equal template.
impl fmt::Display for Template {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write::write(&self.nodes, f)
    }
}

/// Why a text could not be rendered.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum Error {
    #[error(transparent)]
    Parse(#[from] ParseError),
    #[error(transparent)]
    Render(#[from] RenderError),
    /// An error in one string of a larger value.
    #[error("at `{path}`")]
    Inside {
        /// Keys and positions from the value down, as in `tags.owner` and `subnets.0`.
        path: String,
        #[source]
        source: Box<Error>,
    },
}

impl Error {
    /// Adds that the error is at `step` of a larger value.
    fn inside(self, step: &str) -> Self {
        match self {
            Self::Inside { path, source } => Self::Inside { path: format!("{step}.{path}"), source },
            Self::Parse(_) | Self::Render(_) => Self::Inside { path: step.to_owned(), source: Box::new(self) },
        }
    }
}

/// Returns the names of all functions that a template may call.
pub fn function_names() -> impl Iterator<Item = &'static str> {
    functions::names()
}

/// Parses `text` and renders it over `tree`.
///
/// # Errors
/// As [`Template::parse`] and [`Template::render`].
pub fn render(text: &str, tree: &Value, limits: &Limits) -> Result<String, Error> {
    if !text.contains("{{") && text.len() <= limits.max_output_bytes {
        return Ok(text.to_owned());
    }
    Ok(Template::parse(text)?.render(tree, limits)?)
}

/// Renders every string inside `value` over `tree`; keys and other values stay as they are.
///
/// # Errors
/// As [`render`], for the first string that fails; [`Error::Inside`] says which one it is in a list or map.
pub fn render_value(value: &Value, tree: &Value, limits: &Limits) -> Result<Value, Error> {
    Ok(match value {
        Value::String(text) => Value::String(render(text, tree, limits)?),
        Value::Array(items) => {
            let rendered = items
                .iter()
                .enumerate()
                .map(|(at, item)| render_value(item, tree, limits).map_err(|error| error.inside(&at.to_string())));
            Value::Array(rendered.collect::<Result<_, _>>()?)
        }
        Value::Object(map) => {
            let rendered = map.iter().map(|(key, item)| {
                Ok((key.clone(), render_value(item, tree, limits).map_err(|error| error.inside(key))?))
            });
            Value::Object(rendered.collect::<Result<_, Error>>()?)
        }
        Value::Null | Value::Bool(_) | Value::Number(_) => value.clone(),
    })
}
