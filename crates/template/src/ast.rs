//! The tree of a parsed template.

use serde_json::Value;

/// One part of a template's text.
#[derive(Debug, Clone)]
pub(crate) enum Node {
    Text(String),
    Action(Pipeline),
    If { condition: Pipeline, body: Vec<Node>, otherwise: Vec<Node> },
    With { value: Pipeline, body: Vec<Node>, otherwise: Vec<Node> },
    Range { list: Pipeline, body: Vec<Node>, otherwise: Vec<Node> },
    Break,
    Continue,
}

/// Commands, each fed with the result of the one before; may set variables.
#[derive(Debug, Clone)]
pub(crate) struct Pipeline {
    pub(crate) set: Set,
    pub(crate) commands: Vec<Command>,
    /// Where it starts in the text, in bytes.
    pub(crate) at: usize,
}

/// What a pipeline does with variables.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum Set {
    Nothing,
    /// `$a := ...`, in a range also `$key, $value := ...`.
    Declare(Vec<String>),
    /// `$a = ...`
    Assign(Vec<String>),
}

/// An operand alone, or a function with its arguments.
#[derive(Debug, Clone)]
pub(crate) enum Command {
    Operand(Operand),
    Call { function: &'static str, arguments: Vec<Operand>, at: usize },
}

/// A value and the fields read from it.
#[derive(Debug, Clone)]
pub(crate) struct Operand {
    pub(crate) base: Base,
    pub(crate) fields: Vec<String>,
    pub(crate) at: usize,
}

/// Where an operand starts.
#[derive(Debug, Clone)]
pub(crate) enum Base {
    Dot,
    /// `$`, or a path without its leading dot.
    Root,
    Variable(String),
    Literal(Value),
    Group(Box<Pipeline>),
}
