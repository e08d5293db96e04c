//! Renders a parsed template over a tree, and counts steps and bytes against the limits.

use serde_json::Value;

use crate::ast::{Base, Command, Node, Operand, Pipeline, SYNONYMS, Set};
use crate::error::{RenderError, RenderErrorKind as Kind};
use crate::format::print;
use crate::functions::function::{Cost, Function, MANY, Room};
use crate::functions::go;
use crate::limits::Limits;
use crate::suggestion::nearest;
use crate::value::{V, entries, kind, size, truth, whole};

/// Renders `nodes`, which were parsed from `text`, over `tree`.
pub(crate) fn render(text: &str, nodes: &[Node], tree: &Value, limits: &Limits) -> Result<String, RenderError> {
    let mut run = Run { text, tree, limits, steps: 0, out: String::new(), variables: Vec::new() };
    run.list(nodes, &V::Tree(tree))?;
    Ok(run.out)
}

/// The iterations of a range: each with a key or position, and an element.
type Steps<'t> = Vec<(Value, V<'t>)>;

/// The way in which the rendering of nodes ended.
#[derive(PartialEq, Eq)]
enum Flow {
    Done,
    Break,
    Continue,
}

struct Run<'a, 't> {
    text: &'a str,
    tree: &'t Value,
    limits: &'a Limits,
    steps: u64,
    out: String,
    /// The variables in scope, the innermost last.
    variables: Vec<(String, V<'t>)>,
}

impl<'t> Run<'_, 't> {
    fn fail<T>(&self, at: usize, kind: Kind) -> Result<T, RenderError> {
        Err(RenderError::at(self.text, at, kind))
    }

    fn spend(&mut self, steps: u64, at: usize) -> Result<(), RenderError> {
        self.steps = self.steps.saturating_add(steps);
        if self.steps > self.limits.max_steps {
            return self.fail(at, Kind::Limit { limit: self.limits.max_steps, unit: "steps" });
        }
        Ok(())
    }

    fn write(&mut self, text: &str, at: usize) -> Result<(), RenderError> {
        if self.out.len().saturating_add(text.len()) > self.limits.max_output_bytes {
            return self.too_large(at);
        }
        self.out.push_str(text);
        Ok(())
    }

    fn too_large<T>(&self, at: usize) -> Result<T, RenderError> {
        let limit = u64::try_from(self.limits.max_output_bytes).unwrap_or(u64::MAX);
        self.fail(at, Kind::Limit { limit, unit: "bytes" })
    }

    fn list(&mut self, nodes: &[Node], dot: &V<'t>) -> Result<Flow, RenderError> {
        let scope = self.variables.len();
        for node in nodes {
            let flow = self.node(node, dot)?;
            if flow != Flow::Done {
                self.variables.truncate(scope);
                return Ok(flow);
            }
        }
        self.variables.truncate(scope);
        Ok(Flow::Done)
    }

    fn node(&mut self, node: &Node, dot: &V<'t>) -> Result<Flow, RenderError> {
        let scope = self.variables.len();
        let flow = match node {
            Node::Text(text) => {
                self.spend(1, 0)?;
                self.write(text, 0)?;
                return Ok(Flow::Done);
            }
            Node::Action(pipeline) => {
                self.action(pipeline, dot)?;
                return Ok(Flow::Done);
            }
            Node::Break => return Ok(Flow::Break),
            Node::Continue => return Ok(Flow::Continue),
            Node::If { condition, body, otherwise } => {
                let holds = self.pipeline(condition, dot, true)?;
                self.list(if truth(holds.get()) { body } else { otherwise }, dot)?
            }
            Node::With { value, body, otherwise } => {
                let value = self.pipeline(value, dot, true)?;
                if truth(value.get()) { self.list(body, &value)? } else { self.list(otherwise, dot)? }
            }
            Node::Range { list, body, otherwise } => self.range(list, body, otherwise, dot)?,
        };
        self.variables.truncate(scope);
        Ok(flow)
    }

    fn action(&mut self, pipeline: &Pipeline, dot: &V<'t>) -> Result<(), RenderError> {
        let value = self.pipeline(pipeline, dot, false)?;
        if pipeline.set != Set::Nothing {
            return Ok(());
        }
        let at = pipeline.at.0;
        match value.get() {
            Value::String(text) => self.write(text, at),
            Value::Null => {
                let end = self.text.get(at..).and_then(|rest| rest.find("}}")).unwrap_or_default();
                let path = self.text.get(at..at + end).unwrap_or_default().trim();
                self.fail(at, Kind::Null { path: path.trim_end_matches('-').trim_end().to_owned() })
            }
            other => {
                self.charge(other, at)?;
                self.write(&print(other), at)
            }
        }
    }

    fn range(&mut self, list: &Pipeline, body: &[Node], otherwise: &[Node], dot: &V<'t>) -> Result<Flow, RenderError> {
        let scope = self.variables.len();
        let at = list.at.0;
        let value = self.pipeline(list, dot, false)?;
        self.charge_copy(&value, at)?;
        let names = match &list.set {
            Set::Nothing => [].as_slice(),
            Set::Declare(names) | Set::Assign(names) => names.as_slice(),
        };
        let declares = matches!(list.set, Set::Declare(_));
        let steps: Steps<'t> = match value.get() {
            Value::Array(items) => {
                (0..items.len()).filter_map(|at| Some((at.into(), value.child(|v| v.get(at))?))).collect()
            }
            Value::Object(map) => entries(map)
                .into_iter()
                .filter_map(|(key, _)| Some((key.clone().into(), value.child(|v| v.get(key))?)))
                .collect(),
            Value::Number(number) => self.count(number, names.len(), at)?,
            Value::Null => Vec::new(),
            other => {
                let message = format!("`range` takes a list, a map or a whole number, got {}", kind(other));
                return self.fail(at, Kind::Misuse(message));
            }
        };
        if steps.is_empty() {
            return self.list(otherwise, dot);
        }
        for (key, item) in steps {
            self.spend(1, at)?;
            self.variables.truncate(scope);
            let values = match names {
                [_, _] => vec![V::made(key), item.clone()],
                _ => vec![item.clone()],
            };
            for (name, value) in names.iter().zip(values) {
                if declares {
                    self.variables.push((name.clone(), value));
                } else {
                    self.assign(name, value);
                }
            }
            if self.list(body, &item)? == Flow::Break {
                break;
            }
        }
        Ok(Flow::Done)
    }

    /// Returns the iterations of a range over a whole number: from 0 to the number minus one, as in Go since 1.22.
    fn count(&mut self, number: &serde_json::Number, names: usize, at: usize) -> Result<Steps<'t>, RenderError> {
        let Some(end) = whole(number) else {
            return self.fail(at, misuse("`range` takes a list, a map or a whole number, got a fraction"));
        };
        if names > 1 {
            return self.fail(at, misuse("`range` over a number has no keys; give it one variable"));
        }
        self.spend(u64::try_from(end).unwrap_or_default(), at)?;
        Ok((0..end).map(|step| (step.into(), V::made(step.into()))).collect())
    }

    fn assign(&mut self, name: &str, value: V<'t>) {
        if let Some(slot) = self.variables.iter_mut().rev().find(|(known, _)| known == name) {
            slot.1 = value;
        }
    }

    /// Evaluates a pipeline. If `lenient`, a missing key is null and not an error.
    fn pipeline(&mut self, pipeline: &Pipeline, dot: &V<'t>, lenient: bool) -> Result<V<'t>, RenderError> {
        let mut value = None;
        for (at, command) in pipeline.commands.iter().enumerate() {
            let asked = match pipeline.commands.get(at + 1) {
                Some(next) => accepts_missing(next),
                None => lenient,
            };
            value = Some(self.command(command, dot, value, asked)?);
        }
        let value = value.unwrap_or_else(V::null);
        match &pipeline.set {
            Set::Declare(names) if names.len() == 1 => {
                self.variables.extend(names.iter().map(|name| (name.clone(), value.clone())));
            }
            Set::Assign(names) if names.len() == 1 => names.iter().for_each(|name| self.assign(name, value.clone())),
            Set::Nothing | Set::Declare(_) | Set::Assign(_) => {}
        }
        Ok(value)
    }

    fn command(
        &mut self,
        command: &Command,
        dot: &V<'t>,
        piped: Option<V<'t>>,
        lenient: bool,
    ) -> Result<V<'t>, RenderError> {
        match command {
            Command::Operand(operand) => self.operand(operand, dot, lenient),
            Command::Call { function, arguments, at } => self.call(function, arguments, at.0, dot, piped, lenient),
        }
    }

    /// Calls `function`. If `lenient`, `index` returns null for a missing key of a map.
    fn call(
        &mut self,
        function: &'static Function,
        operands: &[Operand],
        at: usize,
        dot: &V<'t>,
        piped: Option<V<'t>>,
        lenient: bool,
    ) -> Result<V<'t>, RenderError> {
        self.spend(1, at)?;
        let mut arguments = Vec::with_capacity(operands.len() + 1);
        for operand in operands {
            let value = self.operand(operand, dot, function.lenient)?;
            // `and` and `or` stop at the first argument that decides the result, as in Go.
            let decided = match function.name {
                "and" => !truth(value.get()),
                "or" => truth(value.get()),
                _ => false,
            };
            if decided {
                return Ok(value);
            }
            arguments.push(value);
        }
        arguments.extend(piped);
        let refused = |message| Kind::Function { function: function.name.to_owned(), message };
        if !(function.min..=function.max).contains(&arguments.len()) {
            return self.fail(at, refused(arity(function, arguments.len())));
        }
        self.charge_arguments(function.cost, &arguments, at)?;
        let answer = match function.name {
            "index" => go::index(&arguments, lenient),
            _ => (function.call)(&arguments, Room(self.limits.max_output_bytes)),
        };
        let value = match answer {
            Ok(value) => value,
            Err(message) => return self.fail(at, refused(message)),
        };
        self.charge_copy(&value, at)?;
        Ok(value)
    }

    fn charge_arguments(&mut self, cost: Cost, arguments: &[V<'t>], at: usize) -> Result<(), RenderError> {
        if cost == Cost::Light {
            return Ok(());
        }
        let mut total = 0usize;
        for argument in arguments {
            total = total.saturating_add(self.charge(argument.get(), at)?);
        }
        if total > self.limits.max_output_bytes.saturating_mul(2) {
            return self.too_large(at);
        }
        match cost {
            Cost::Light | Cost::Walk => Ok(()),
            Cost::Search => self.spend(u64::try_from(total).unwrap_or(u64::MAX), at),
        }
    }

    /// Adds one step for each 256 bytes of `value`. Returns its size in bytes.
    fn charge(&mut self, value: &Value, at: usize) -> Result<usize, RenderError> {
        let Some(bytes) = size(value) else {
            return self.fail(at, misuse("the value is nested too deeply"));
        };
        self.spend(u64::try_from(bytes / 256).unwrap_or(u64::MAX), at)?;
        if bytes > self.limits.max_output_bytes.saturating_mul(8) {
            return self.too_large(at);
        }
        Ok(bytes)
    }

    fn operand(&mut self, operand: &Operand, dot: &V<'t>, lenient: bool) -> Result<V<'t>, RenderError> {
        let at = operand.at.0;
        self.spend(1, at)?;
        let base = match &operand.base {
            Base::Dot => dot.clone(),
            Base::Root => V::Tree(self.tree),
            Base::Variable(name) => {
                let found = self.variables.iter().rev().find(|(known, _)| known == name);
                found.map_or_else(V::null, |(_, value)| value.clone())
            }
            Base::Literal(value) => V::made(value.clone()),
            Base::Group(pipeline) => self.pipeline(pipeline, dot, lenient)?,
        };
        let mut value = base;
        for (depth, name) in operand.fields.iter().enumerate() {
            value = match self.field(&value, name) {
                Some(child) => child,
                None if lenient && (value.get().is_object() || value.get().is_null()) => return Ok(V::null()),
                None => return self.fail(at, missing(operand, depth, name, value.get())),
            };
            self.charge_copy(&value, at)?;
        }
        Ok(value)
    }

    /// Adds steps for the size of a value that is a copy and not a reference into the tree.
    fn charge_copy(&mut self, value: &V<'t>, at: usize) -> Result<(), RenderError> {
        match value {
            V::Tree(_) => Ok(()),
            V::Made(made) => self.charge(made, at).map(|_| ()),
        }
    }

    fn field(&self, value: &V<'t>, name: &str) -> Option<V<'t>> {
        if let Some(child) = value.child(|v| v.as_object()?.get(name)) {
            return Some(child);
        }
        let is_root = matches!(value, V::Tree(tree) if std::ptr::eq(*tree, self.tree));
        let synonym = SYNONYMS.iter().find(|(word, _)| is_root && *word == name);
        synonym.and_then(|(_, path)| value.child(|v| path.iter().try_fold(v, |v, key| v.get(*key))))
    }
}

fn misuse(message: &str) -> Kind {
    Kind::Misuse(message.to_owned())
}

/// Returns whether `command` accepts a missing key as null.
fn accepts_missing(command: &Command) -> bool {
    match command {
        Command::Call { function, .. } => function.lenient,
        Command::Operand(_) => false,
    }
}

fn arity(function: &Function, got: usize) -> String {
    match (function.min, function.max) {
        (min, max) if min == max => format!("takes {min} arguments, got {got}"),
        (min, MANY) => format!("takes at least {min} arguments, got {got}"),
        (min, max) => format!("takes {min} to {max} arguments, got {got}"),
    }
}

fn missing(operand: &Operand, at: usize, name: &str, parent: &Value) -> Kind {
    let base = match &operand.base {
        Base::Dot => String::new(),
        Base::Root => "$".to_owned(),
        Base::Variable(name) => format!("${name}"),
        Base::Literal(_) | Base::Group(_) => "(...)".to_owned(),
    };
    let named = operand.fields.get(..=at).unwrap_or_default();
    let path = match (&operand.base, operand.fields.first()) {
        (Base::Root, Some(first)) if first == "nuon" || first == "freehold" => {
            format!(".{}", named.join("."))
        }
        _ => format!("{base}.{}", named.join(".")),
    };
    match parent {
        Value::Object(map) => {
            Kind::MissingKey { path, nearest: nearest(name, map.keys().map(String::as_str)).map(str::to_owned) }
        }
        other => Kind::NotAMap { path, found: kind(other) },
    }
}
