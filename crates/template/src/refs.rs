//! Finds the paths that a template reads, by traversing its syntax tree.

use serde_json::Value;

use crate::ast::{Base, Command, Node, Operand, Pipeline, SYNONYMS, Set};
use crate::functions::function::Function;

/// One place where a template reads a path.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Use {
    /// The keys from the root, where `*` is any element of a list or map.
    pub path: Vec<String>,
    /// True when the template itself handles a missing value at this place, for example with `default`.
    pub guarded: bool,
    /// The line, from 1.
    pub line: usize,
    /// The column, from 1, in characters.
    pub column: usize,
    /// The offset, from 0, in bytes.
    pub offset: usize,
}

type Path = Option<Vec<String>>;

/// Returns every place in `nodes` where a path is read, in the order of the text.
pub(crate) fn uses(text: &str, nodes: &[Node]) -> Vec<Use> {
    let mut walk = Walk { found: Vec::new(), variables: Vec::new() };
    walk.list(nodes, &Some(Vec::new()));
    walk.found.sort_by_key(|found| found.offset);
    locate(text, &mut walk.found);
    walk.found
}

/// Sets the lines and columns of `found` in one pass through the text. `found` must be sorted by offset.
fn locate(text: &str, found: &mut [Use]) {
    let (mut line, mut column, mut at) = (1, 1, 0);
    for one in found {
        for c in text.get(at..one.offset).unwrap_or_default().chars() {
            (line, column) = if c == '\n' { (line + 1, 1) } else { (line, column + 1) };
        }
        at = one.offset;
        (one.line, one.column) = (line, column);
    }
}

struct Walk {
    found: Vec<Use>,
    /// The variables in scope, the innermost last, each with the path of its value if this path is known.
    variables: Vec<(String, Path)>,
}

impl Walk {
    fn list(&mut self, nodes: &[Node], dot: &Path) {
        let scope = self.variables.len();
        for node in nodes {
            match node {
                Node::Text(_) | Node::Break | Node::Continue => {}
                Node::Action(pipeline) => {
                    self.pipeline(pipeline, dot, false);
                }
                Node::If { condition, body, otherwise } => {
                    let inner = self.variables.len();
                    self.pipeline(condition, dot, true);
                    self.list(body, dot);
                    self.list(otherwise, dot);
                    self.variables.truncate(inner);
                }
                Node::With { value, body, otherwise } => {
                    let inner = self.variables.len();
                    let path = self.pipeline(value, dot, true);
                    self.list(body, &path);
                    self.list(otherwise, dot);
                    self.variables.truncate(inner);
                }
                Node::Range { list, body, otherwise } => self.range(list, body, otherwise, dot),
            }
        }
        self.variables.truncate(scope);
    }

    fn range(&mut self, list: &Pipeline, body: &[Node], otherwise: &[Node], dot: &Path) {
        let inner = self.variables.len();
        let path = self.commands(list, dot, false);
        let element = path.map(|path| [path, vec!["*".to_owned()]].concat());
        match &list.set {
            Set::Declare(names) => {
                for (at, name) in names.iter().enumerate() {
                    let known = if at + 1 == names.len() { element.clone() } else { None };
                    self.variables.push((name.clone(), known));
                }
            }
            Set::Assign(names) => names.iter().for_each(|name| self.assign(name, &None)),
            Set::Nothing => {}
        }
        self.list(body, &element);
        self.list(otherwise, dot);
        self.variables.truncate(inner);
    }

    fn pipeline(&mut self, pipeline: &Pipeline, dot: &Path, guarded: bool) -> Path {
        let path = self.commands(pipeline, dot, guarded);
        match &pipeline.set {
            Set::Declare(names) => self.variables.extend(names.iter().map(|name| (name.clone(), path.clone()))),
            Set::Assign(names) => names.iter().for_each(|name| self.assign(name, &path)),
            Set::Nothing => {}
        }
        path
    }

    /// Discards the known path of a variable that is assigned another path, because the branches that a rendering
    /// executes decide which value the variable has.
    fn assign(&mut self, name: &str, path: &Path) {
        if let Some(slot) = self.variables.iter_mut().rev().find(|(known, _)| known == name)
            && slot.1 != *path
        {
            slot.1 = None;
        }
    }

    fn commands(&mut self, pipeline: &Pipeline, dot: &Path, guarded: bool) -> Path {
        let mut path = None;
        for (at, command) in pipeline.commands.iter().enumerate() {
            let guarded = match pipeline.commands.get(at + 1) {
                Some(Command::Call { function, .. }) => function.lenient,
                Some(Command::Operand(_)) => false,
                None => guarded,
            };
            path = match command {
                Command::Operand(operand) => self.operand(operand, dot, guarded),
                Command::Call { function, arguments, .. } => self.call(function, arguments, dot, guarded),
            };
        }
        path
    }

    fn call(&mut self, function: &Function, arguments: &[Operand], dot: &Path, guarded: bool) -> Path {
        if !matches!(function.name, "index" | "get") {
            for argument in arguments {
                self.operand(argument, dot, function.lenient);
            }
            return None;
        }
        let (first, keys) = arguments.split_first()?;
        let constants = keys.iter().map_while(constant).collect::<Vec<_>>();
        for key in keys.iter().skip(constants.len()) {
            self.operand(key, dot, false);
        }
        let whole = constants.len() == keys.len();
        let path = [self.resolve(first, dot, false)?, constants].concat();
        self.note(&path, first.at.0, guarded || function.name == "get");
        whole.then_some(path)
    }

    fn operand(&mut self, operand: &Operand, dot: &Path, guarded: bool) -> Path {
        let path = self.resolve(operand, dot, guarded);
        if let Some(path) = &path
            && !matches!(operand.base, Base::Literal(_))
        {
            self.note(path, operand.at.0, guarded);
        }
        path
    }

    /// Returns the path that `operand` reads. Records paths inside parentheses, but not this path itself.
    fn resolve(&mut self, operand: &Operand, dot: &Path, guarded: bool) -> Path {
        let base = match &operand.base {
            Base::Dot => dot.clone(),
            Base::Root => Some(Vec::new()),
            Base::Variable(name) => {
                self.variables.iter().rev().find(|(known, _)| known == name).and_then(|(_, path)| path.clone())
            }
            Base::Literal(_) => None,
            Base::Group(pipeline) => self.pipeline(pipeline, dot, guarded),
        };
        base.map(|base| [base, operand.fields.clone()].concat())
    }

    fn note(&mut self, path: &[String], offset: usize, guarded: bool) {
        // The root has the single key `nuon`, so a read of the root, or of any element of it, is a read of `nuon`.
        let mut path = if path.is_empty() { vec![String::new()] } else { path.to_vec() };
        if let Some(first) = path.first_mut()
            && matches!(first.as_str(), "" | "*")
        {
            "nuon".clone_into(first);
        }
        if let Some((_, meant)) = SYNONYMS.iter().find(|(word, _)| path.first().is_some_and(|first| first == word)) {
            path.splice(..1, meant.iter().map(|&key| key.to_owned()));
        }
        self.found.push(Use { path, guarded, line: 1, column: 1, offset });
    }
}

fn constant(operand: &Operand) -> Option<String> {
    match &operand.base {
        Base::Literal(Value::String(text)) => Some(text.clone()),
        Base::Literal(Value::Number(number)) => Some(number.to_string()),
        _ => None,
    }
}
