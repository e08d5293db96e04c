//! Templates in the language of Go's `text/template`, over a JSON tree. This crate parses templates, finds the paths
//! that they read, and renders them. It does no I/O, bounds time and memory, and does not panic.
//!
//! The syntax is that of Go's `text/template` (<https://pkg.go.dev/text/template>) with the functions of Sprig that app
//! configs and charts use. A test renders thousands of templates with this crate and with Go's own engine, and compares
//! the results. These differences are intended (`tests/suite/go/differences.rs` lists them):
//!
//! - the root of the tree has the key `nuon`; `.freehold` is a synonym of `.nuon`, and `nuon.install.id` without the
//!   leading dot is read as `.nuon.install.id`, because real configs write it. `.action` and `.runbook_inputs` are
//!   synonyms of `.nuon.action` and `.nuon.runbook.inputs`, if the tree does not have such keys;
//! - names after a dot may contain single dashes (`.nuon.components.store-info`);
//! - a missing key is an error that names the path, except where the template itself tests for it (`if`, `with`, `and`,
//!   `or`, `not`, `default`, `coalesce`, `empty`, `all`, `any`, `required`, `hasKey`, `kindOf`); printing `null` is an
//!   error too;
//! - `eq` and `ne` can compare a string with a boolean: the boolean counts as the string `true` or `false`, because real
//!   configs do this;
//! - there is one type of number: no `int` beside `float64`, and whole numbers are never printed as `1e+06`;
//! - mistakes that Go ignores are errors: a string that is not a number, a sum beyond 64 bits, wrong arguments of
//!   `printf`, text that is not base64 or JSON, an invalid pattern.
//!
//! Not supported: `define`, `template` and `block`; `include`, `tpl` and `lookup` of Helm; characters in single quotes
//! and complex numbers; functions that change a map (`set`, `unset`), that read the clock, the machine, the network or
//! random numbers (`now`, `env`, `uuidv4`, `rand...`), or that make keys or certificates; functions for dates,
//! `semver`, `fromYaml`, `js`, paths and URLs; case functions beyond `upper`, `lower`, `title` and `untitle`;
//! arithmetic with fractions beyond `round`, `floor` and `ceil`.
//!
//! Two public engines are not sufficient. `gtmpl` is unmaintained and its errors have no columns. `gotmpl` bounds loops
//! but not the size of values (`{{ $x = print $x $x }}`), and its errors do not give the whole path or a similar name.

mod ast;
mod error;
mod eval;
mod format;
mod functions;
mod json;
mod lex;
mod limits;
mod parse;
mod printf;
mod refs;
mod suggestion;
mod value;
mod write;
mod yaml;

use std::collections::BTreeSet;
use std::fmt;

use serde_json::Value;

pub use error::{ParseError, RenderError, RenderErrorKind};
pub use limits::Limits;
pub use refs::Use;
pub use suggestion::nearest;

/// A parsed template. Two templates are equal when their syntax trees are equal: comments, and spaces inside actions,
/// do not matter.
#[derive(Debug, Clone)]
pub struct Template {
    text: String,
    nodes: Vec<ast::Node>,
}

impl Template {
    /// Parses `text`.
    ///
    /// # Errors
    /// [`ParseError`] for the first mistake, with its position in `text`.
    pub fn parse(text: &str) -> Result<Self, ParseError> {
        let nodes = parse::parse(text)?;
        Ok(Self { text: text.to_owned(), nodes })
    }

    /// Returns the paths of the fields that the template reads. Each path starts with `nuon`; `*` in a path is any
    /// element of a list or map.
    pub fn references(&self) -> BTreeSet<Vec<String>> {
        self.uses().into_iter().map(|found| found.path).collect()
    }

    /// Returns each place where the template reads a field path, in the order of the text.
    pub fn uses(&self) -> Vec<Use> {
        refs::uses(&self.text, &self.nodes)
    }

    /// Renders the template over `tree`, a map with the key `nuon`.
    ///
    /// # Errors
    /// [`RenderError`] when a key is missing, a function does not accept its arguments, or a limit is reached.
    pub fn render(&self, tree: &Value, limits: &Limits) -> Result<String, RenderError> {
        eval::render(&self.text, &self.nodes, tree, limits)
    }
}

impl PartialEq for Template {
    fn eq(&self, other: &Self) -> bool {
        self.nodes == other.nodes
    }
}

/// Writes the template in its normal form. Parsing this text gives an equal template.
impl fmt::Display for Template {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write::write(&self.nodes, f)
    }
}

/// The reason why a text could not be rendered.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum Error {
    #[error(transparent)]
    Parse(#[from] ParseError),
    #[error(transparent)]
    Render(#[from] RenderError),
    /// An error in one string of a larger value.
    #[error("at `{path}`")]
    Inside {
        /// The keys and positions that lead to the string, such as `tags.owner` and `subnets.0`.
        path: String,
        #[source]
        source: Box<Error>,
    },
}

impl Error {
    /// Returns the place of the error, if it is inside of a larger value, and the reason, as one text.
    #[must_use]
    pub fn explain(&self) -> String {
        match self {
            Self::Inside { source, .. } => format!("{self}: {}", source.explain()),
            Self::Parse(_) | Self::Render(_) => self.to_string(),
        }
    }

    /// Returns the error with `step`, a key or position, before its path.
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
/// The errors of [`Template::parse`] and [`Template::render`].
pub fn render(text: &str, tree: &Value, limits: &Limits) -> Result<String, Error> {
    if !text.contains("{{") && text.len() <= limits.max_output_bytes {
        return Ok(text.to_owned());
    }
    Ok(Template::parse(text)?.render(tree, limits)?)
}

/// Renders every string inside `value` over `tree`; keys and other values stay as they are.
///
/// # Errors
/// The error of [`render`] for the first string that fails. If this string is in a list or map, the error is
/// [`Error::Inside`].
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
