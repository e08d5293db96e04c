//! Writes a template in its normal form: without comments, and with a single space wherever spaces are allowed.

use std::fmt::{self, Write as _};

use serde_json::Value;

use crate::ast::{Base, Command, Node, Operand, Pipeline, Set};
use crate::format::{number_text, quoted};

/// A comment that separates two braces of a text, which would open an action otherwise. Parsing removes it.
const APART: &str = " {{- /**/}}";

/// Writes `nodes` as a text. Parsing the text gives the same nodes.
pub(crate) fn write(nodes: &[Node], out: &mut fmt::Formatter<'_>) -> fmt::Result {
    nodes.iter().try_for_each(|one| node(one, out))
}

fn node(node: &Node, out: &mut fmt::Formatter<'_>) -> fmt::Result {
    match node {
        Node::Text(text) => self::text(text, out),
        Node::Action(pipeline) => {
            out.write_str("{{ ")?;
            self::pipeline(pipeline, out)?;
            out.write_str(" }}")
        }
        Node::If { condition, body, otherwise } => block("if", condition, body, otherwise, out),
        Node::With { value, body, otherwise } => block("with", value, body, otherwise, out),
        Node::Range { list, body, otherwise } => block("range", list, body, otherwise, out),
        Node::Break => out.write_str("{{ break }}"),
        Node::Continue => out.write_str("{{ continue }}"),
    }
}

fn block(word: &str, head: &Pipeline, body: &[Node], otherwise: &[Node], out: &mut fmt::Formatter<'_>) -> fmt::Result {
    write!(out, "{{{{ {word} ")?;
    pipeline(head, out)?;
    out.write_str(" }}")?;
    write(body, out)?;
    if !otherwise.is_empty() {
        out.write_str("{{ else }}")?;
        write(otherwise, out)?;
    }
    out.write_str("{{ end }}")
}

/// Writes a text. Puts [`APART`] between an opening brace and a brace or node after it.
fn text(text: &str, out: &mut fmt::Formatter<'_>) -> fmt::Result {
    let mut chars = text.chars().peekable();
    while let Some(c) = chars.next() {
        out.write_char(c)?;
        if c == '{' && chars.peek().is_none_or(|next| *next == '{') {
            out.write_str(APART)?;
        }
    }
    Ok(())
}

fn pipeline(pipeline: &Pipeline, out: &mut fmt::Formatter<'_>) -> fmt::Result {
    match &pipeline.set {
        Set::Nothing => {}
        Set::Declare(names) => write!(out, "${} := ", names.join(", $"))?,
        Set::Assign(names) => write!(out, "${} = ", names.join(", $"))?,
    }
    for (at, command) in pipeline.commands.iter().enumerate() {
        if at > 0 {
            out.write_str(" | ")?;
        }
        match command {
            Command::Operand(operand) => self::operand(operand, out)?,
            Command::Call { function, arguments, .. } => {
                out.write_str(function.name)?;
                for argument in arguments {
                    out.write_char(' ')?;
                    self::operand(argument, out)?;
                }
            }
        }
    }
    Ok(())
}

fn operand(operand: &Operand, out: &mut fmt::Formatter<'_>) -> fmt::Result {
    match &operand.base {
        Base::Dot if operand.fields.is_empty() => out.write_char('.')?,
        Base::Dot => {}
        Base::Root => out.write_char('$')?,
        Base::Variable(name) => write!(out, "${name}")?,
        Base::Literal(value) => literal(value, out)?,
        Base::Group(inner) => {
            out.write_char('(')?;
            pipeline(inner, out)?;
            out.write_char(')')?;
        }
    }
    operand.fields.iter().try_for_each(|field| write!(out, ".{field}"))
}

fn literal(value: &Value, out: &mut fmt::Formatter<'_>) -> fmt::Result {
    match value {
        Value::String(text) => out.write_str(&quoted(text)),
        Value::Number(number) if number.is_f64() => {
            let text = number_text(number);
            // A float with a whole value is written with `.0`, so that parsing gives a float again.
            let whole = !text.contains(['.', 'e']);
            write!(out, "{text}{}", if whole { ".0" } else { "" })
        }
        Value::Number(number) => write!(out, "{number}"),
        Value::Bool(flag) => write!(out, "{flag}"),
        // Of these values, only `nil` can be a literal in a template.
        Value::Null | Value::Array(_) | Value::Object(_) => out.write_str("nil"),
    }
}
