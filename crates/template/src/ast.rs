//! The syntax tree of a template. A comparison of two trees ignores the positions of their parts in the text.

use serde_json::Value;

use crate::functions::function::Function;

/// The byte offset at which a part starts in the text. Any two offsets compare as equal, so that a comparison of trees
/// ignores them.
#[derive(Debug, Clone, Copy)]
pub(crate) struct At(pub(crate) usize);

impl PartialEq for At {
    fn eq(&self, _: &Self) -> bool {
        true
    }
}

/// One part of a template: a text, an action or a block.
#[derive(Debug, Clone, PartialEq)]
pub(crate) enum Node {
    Text(String),
    Action(Pipeline),
    If { condition: Pipeline, body: Vec<Node>, otherwise: Vec<Node> },
    With { value: Pipeline, body: Vec<Node>, otherwise: Vec<Node> },
    Range { list: Pipeline, body: Vec<Node>, otherwise: Vec<Node> },
    Break,
    Continue,
}

/// A sequence of commands: each takes the result of the command before it. A pipeline may set variables.
#[derive(Debug, Clone, PartialEq)]
pub(crate) struct Pipeline {
    pub(crate) set: Set,
    pub(crate) commands: Vec<Command>,
    pub(crate) at: At,
}

/// The variables that a pipeline sets.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum Set {
    Nothing,
    /// Declares variables: `$a := ...`, in a range also `$key, $value := ...`.
    Declare(Vec<String>),
    /// Gives new values to declared variables: `$a = ...`.
    Assign(Vec<String>),
}

/// An operand, or a function with its arguments.
#[derive(Debug, Clone, PartialEq)]
pub(crate) enum Command {
    Operand(Operand),
    Call { function: &'static Function, arguments: Vec<Operand>, at: At },
}

/// A value, and the path of the field that is read from it; the path is empty for the value itself.
#[derive(Debug, Clone, PartialEq)]
pub(crate) struct Operand {
    pub(crate) base: Base,
    pub(crate) fields: Vec<String>,
    pub(crate) at: At,
}

/// Words at the root of the tree that are synonyms of a path in it.
pub(crate) const SYNONYMS: [(&str, &[&str]); 3] =
    [("freehold", &["nuon"]), ("action", &["nuon", "action"]), ("runbook_inputs", &["nuon", "runbook", "inputs"])];

/// The value from which an operand reads its fields.
#[derive(Debug, Clone, PartialEq)]
pub(crate) enum Base {
    Dot,
    /// `$`, or the root of a path that is written without its leading dot.
    Root,
    Variable(String),
    Literal(Value),
    Group(Box<Pipeline>),
}
