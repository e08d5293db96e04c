//! The tree of a parsed template. Two trees are equal when their parts are equal, at whatever positions.

use serde_json::Value;

use crate::functions::function::Function;

/// Where a part starts in the text, in bytes; ignored when trees are compared.
#[derive(Debug, Clone, Copy)]
pub(crate) struct At(pub(crate) usize);

impl PartialEq for At {
    fn eq(&self, _: &Self) -> bool {
        true
    }
}

/// One part of a template's text.
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

/// Commands, each of which takes the result of the one before it; may set variables.
#[derive(Debug, Clone, PartialEq)]
pub(crate) struct Pipeline {
    pub(crate) set: Set,
    pub(crate) commands: Vec<Command>,
    pub(crate) at: At,
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
#[derive(Debug, Clone, PartialEq)]
pub(crate) enum Command {
    Operand(Operand),
    Call { function: &'static Function, arguments: Vec<Operand>, at: At },
}

/// A value and the fields read from it.
#[derive(Debug, Clone, PartialEq)]
pub(crate) struct Operand {
    pub(crate) base: Base,
    pub(crate) fields: Vec<String>,
    pub(crate) at: At,
}

/// Where an operand starts.
#[derive(Debug, Clone, PartialEq)]
pub(crate) enum Base {
    Dot,
    /// `$`, or a path without its leading dot.
    Root,
    Variable(String),
    Literal(Value),
    Group(Box<Pipeline>),
}
