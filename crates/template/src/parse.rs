//! Parses tokens into a syntax tree, by recursive descent with a bounded depth.

use crate::ast::{At, Base, Command, Node, Operand, Pipeline, Set};
use crate::error::ParseError;
use crate::functions::{self, function::Function};
use crate::lex::{Kind, Token, tokens};
use crate::suggestion::nearest;

/// The maximum depth of nested blocks and parentheses.
const MAX_DEPTH: usize = 60;
/// The maximum number of variables in scope.
const MAX_VARIABLES: usize = 500;

const KEYWORDS: [&str; 10] = ["if", "else", "end", "with", "range", "break", "continue", "define", "template", "block"];

/// Parses `text` as one template.
pub(crate) fn parse(text: &str) -> Result<Vec<Node>, ParseError> {
    let mut parser = Parser { text, tokens: tokens(text)?, next: 0, depth: 0, loops: 0, variables: Vec::new() };
    let (nodes, end) = parser.list()?;
    match end {
        End::Text => Ok(nodes),
        End::Block(at) => parser.fail_at(at, "`end` closes nothing; remove it, or open `if`, `with` or `range` before"),
        End::Else(at) => parser.fail_at(at, "`else` is outside of `if`, `with` and `range`"),
    }
}

/// The way in which a list of nodes ended, with the offset of the word that ended it.
enum End {
    Text,
    Block(usize),
    /// The list ended with `else`. The parser has not yet read the tokens after this word.
    Else(usize),
}

#[derive(Clone, Copy, PartialEq, Eq)]
enum Block {
    If,
    With,
    Range,
}

impl Block {
    const fn keyword(self) -> &'static str {
        match self {
            Self::If => "if",
            Self::With => "with",
            Self::Range => "range",
        }
    }

    fn node(self, head: Pipeline, body: Vec<Node>, otherwise: Vec<Node>) -> Node {
        match self {
            Self::If => Node::If { condition: head, body, otherwise },
            Self::With => Node::With { value: head, body, otherwise },
            Self::Range => Node::Range { list: head, body, otherwise },
        }
    }
}

struct Parser<'a> {
    text: &'a str,
    tokens: Vec<Token>,
    next: usize,
    depth: usize,
    loops: usize,
    variables: Vec<String>,
}

impl Parser<'_> {
    fn peek(&self) -> Option<&Kind> {
        self.tokens.get(self.next).map(|token| &token.kind)
    }

    fn at(&self) -> usize {
        self.tokens.get(self.next).map_or(self.text.len(), |token| token.at)
    }

    fn bump(&mut self) -> Option<Token> {
        let token = self.tokens.get(self.next).cloned();
        self.next += 1;
        token
    }

    fn spaces(&mut self) {
        while self.peek() == Some(&Kind::Space) {
            self.next += 1;
        }
    }

    fn fail_at<T>(&self, at: usize, message: impl Into<String>) -> Result<T, ParseError> {
        Err(ParseError::at(self.text, at, message))
    }

    fn fail<T>(&self, message: impl Into<String>) -> Result<T, ParseError> {
        self.fail_at(self.at(), message)
    }

    fn deeper(&mut self) -> Result<(), ParseError> {
        self.depth += 1;
        if self.depth > MAX_DEPTH {
            return self.fail(format!("blocks and parentheses nest deeper than {MAX_DEPTH}"));
        }
        Ok(())
    }

    /// Reads nodes until the text or the block ends.
    fn list(&mut self) -> Result<(Vec<Node>, End), ParseError> {
        let mut nodes = Vec::new();
        loop {
            let at = self.at();
            let Some(token) = self.bump() else {
                return Ok((nodes, End::Text));
            };
            if let Kind::Text(text) = token.kind {
                // A comment between two texts has no token, so the texts are joined.
                match nodes.last_mut() {
                    Some(Node::Text(before)) => before.push_str(&text),
                    _ => nodes.push(Node::Text(text)),
                }
                continue;
            }
            self.spaces();
            let word = match self.peek() {
                Some(Kind::Word(word)) if KEYWORDS.contains(&word.as_str()) => word.clone(),
                _ => {
                    let pipeline = self.pipeline(false)?;
                    self.close()?;
                    nodes.push(Node::Action(pipeline));
                    continue;
                }
            };
            let word_at = self.at();
            self.bump();
            match word.as_str() {
                "if" => nodes.push(self.block(Block::If, at)?),
                "with" => nodes.push(self.block(Block::With, at)?),
                "range" => nodes.push(self.block(Block::Range, at)?),
                "end" => {
                    self.close()?;
                    return Ok((nodes, End::Block(word_at)));
                }
                "else" => return Ok((nodes, End::Else(word_at))),
                "break" | "continue" => {
                    if self.loops == 0 {
                        return self.fail_at(word_at, format!("`{word}` is outside of `range`"));
                    }
                    self.close()?;
                    nodes.push(if word == "break" { Node::Break } else { Node::Continue });
                }
                _ => {
                    return self.fail_at(word_at, format!("`{word}` is not supported; write the text itself instead"));
                }
            }
        }
    }

    /// Reads the rest of a block after its keyword, including its `end`.
    fn block(&mut self, block: Block, at: usize) -> Result<Node, ParseError> {
        self.deeper()?;
        let scope = self.variables.len();
        let head = self.pipeline(block == Block::Range)?;
        self.close()?;
        let inner = self.variables.len();
        self.loops += usize::from(block == Block::Range);
        let (body, end) = self.list()?;
        self.loops -= usize::from(block == Block::Range);
        self.variables.truncate(inner);
        let otherwise = match end {
            End::Block(_) => Vec::new(),
            End::Else(_) => self.otherwise(block, at)?,
            End::Text => return self.unclosed(block, at),
        };
        self.variables.truncate(scope);
        self.depth -= 1;
        Ok(block.node(head, body, otherwise))
    }

    /// Reads the branch after the word `else`, including the `end` of the block.
    fn otherwise(&mut self, block: Block, at: usize) -> Result<Vec<Node>, ParseError> {
        self.spaces();
        let chained = match self.peek() {
            Some(Kind::Word(word)) if word == "if" && block == Block::If => Some(Block::If),
            Some(Kind::Word(word)) if word == "with" && block == Block::With => Some(Block::With),
            _ => None,
        };
        if let Some(block) = chained {
            self.bump();
            return Ok(vec![self.block(block, at)?]);
        }
        self.close()?;
        match self.list()? {
            (nodes, End::Block(_)) => Ok(nodes),
            (_, End::Else(second)) => self.fail_at(second, format!("a second `else` in one `{}`", block.keyword())),
            (_, End::Text) => self.unclosed(block, at),
        }
    }

    fn unclosed<T>(&self, block: Block, at: usize) -> Result<T, ParseError> {
        self.fail_at(at, format!("`{}` is never closed; add `{{{{ end }}}}`", block.keyword()))
    }

    fn close(&mut self) -> Result<(), ParseError> {
        self.spaces();
        match self.peek() {
            Some(Kind::Close) => {
                self.bump();
                Ok(())
            }
            _ => self.unexpected("the end of the action"),
        }
    }

    fn unexpected<T>(&self, wanted: &str) -> Result<T, ParseError> {
        let found = match self.peek() {
            None | Some(Kind::Text(_) | Kind::Open) => "the end of the template".to_owned(),
            Some(Kind::Close) => "the end of the action".to_owned(),
            Some(Kind::Space) => "a space".to_owned(),
            Some(Kind::Dot) => "`.`".to_owned(),
            Some(Kind::Field(name)) => format!("`.{name}`"),
            Some(Kind::Variable(name)) => format!("`${name}`"),
            Some(Kind::Word(word)) => format!("`{word}`"),
            Some(Kind::Literal(value)) => format!("`{value}`"),
            Some(Kind::Pipe) => "`|`".to_owned(),
            Some(Kind::Comma) => "`,`".to_owned(),
            Some(Kind::Declare) => "`:=`".to_owned(),
            Some(Kind::Assign) => "`=`".to_owned(),
            Some(Kind::LeftParen) => "`(`".to_owned(),
            Some(Kind::RightParen) => "`)`".to_owned(),
        };
        self.fail(format!("expected {wanted}, found {found}"))
    }

    fn pipeline(&mut self, range: bool) -> Result<Pipeline, ParseError> {
        self.deeper()?;
        self.spaces();
        let at = self.at();
        let (set, declared) = self.set(range)?;
        let mut commands = vec![self.command()?];
        loop {
            self.spaces();
            if self.peek() != Some(&Kind::Pipe) {
                break;
            }
            self.bump();
            self.spaces();
            let at = self.at();
            let command = self.command()?;
            if matches!(command, Command::Operand(_)) {
                return self.fail_at(at, "only a function can follow `|`");
            }
            commands.push(command);
        }
        self.variables.extend(declared);
        if self.variables.len() > MAX_VARIABLES {
            return self.fail_at(at, format!("more than {MAX_VARIABLES} variables are in scope"));
        }
        self.depth -= 1;
        Ok(Pipeline { set, commands, at: At(at) })
    }

    /// Reads `$a :=`, `$a =` or, in a range, `$a, $b :=`, if the pipeline starts with it. Also returns the names that
    /// it declares.
    fn set(&mut self, range: bool) -> Result<(Set, Vec<String>), ParseError> {
        let start = self.next;
        let mut names = Vec::new();
        while let Some(Kind::Variable(name)) = self.peek() {
            names.push(name.clone());
            self.bump();
            self.spaces();
            if !(range && names.len() == 1 && self.peek() == Some(&Kind::Comma)) {
                break;
            }
            self.bump();
            self.spaces();
        }
        match self.peek() {
            Some(Kind::Declare) if !names.is_empty() => {
                self.bump();
                self.spaces();
                Ok((Set::Declare(names.clone()), names))
            }
            Some(Kind::Assign) if !names.is_empty() => {
                if let Some(unknown) = names.iter().find(|name| !self.variables.contains(name)) {
                    return self.fail(format!("variable `${unknown}` is not declared; use `:=` for the first value"));
                }
                self.bump();
                self.spaces();
                Ok((Set::Assign(names), Vec::new()))
            }
            _ if names.len() > 1 => self.unexpected("`:=`"),
            _ => {
                self.next = start;
                Ok((Set::Nothing, Vec::new()))
            }
        }
    }

    fn command(&mut self) -> Result<Command, ParseError> {
        let at = self.at();
        if let Some(Kind::Word(word)) = self.peek()
            && !is_root(word)
        {
            let function = self.function(&word.clone())?;
            self.bump();
            let arguments = self.arguments()?;
            return Ok(Command::Call { function, arguments, at: At(at) });
        }
        let operand = self.operand()?;
        self.spaces();
        match self.peek() {
            Some(Kind::Pipe | Kind::Close | Kind::RightParen) => Ok(Command::Operand(operand)),
            _ => self.unexpected("`|` or the end of the action (a value takes no arguments)"),
        }
    }

    fn function(&self, word: &str) -> Result<&'static Function, ParseError> {
        if let Some(function) = functions::find(word) {
            return Ok(function);
        }
        let hint = nearest(word, functions::names()).map_or_else(
            || "; a value starts with a dot, as in `.nuon.install.id`".to_owned(),
            |name| format!("; did you mean `{name}`?"),
        );
        self.fail(format!("there is no function `{word}`{hint}"))
    }

    fn arguments(&mut self) -> Result<Vec<Operand>, ParseError> {
        let mut arguments = Vec::new();
        loop {
            let spaced = self.peek() == Some(&Kind::Space);
            self.spaces();
            match self.peek() {
                Some(Kind::Pipe | Kind::Close | Kind::RightParen) => return Ok(arguments),
                Some(_) if spaced => arguments.push(self.operand()?),
                _ => return self.unexpected("a space before the next argument"),
            }
        }
    }

    fn operand(&mut self) -> Result<Operand, ParseError> {
        let at = self.at();
        let mut fields = Vec::new();
        let base = match self.peek().cloned() {
            Some(Kind::Dot) => Base::Dot,
            Some(Kind::Field(name)) => {
                fields.push(name);
                Base::Dot
            }
            Some(Kind::Variable(name)) if name.is_empty() => Base::Root,
            Some(Kind::Variable(name)) => {
                if !self.variables.contains(&name) {
                    let hint = nearest(&name, self.variables.iter().map(String::as_str))
                        .map_or_else(String::new, |near| format!("; did you mean `${near}`?"));
                    return self.fail(format!("variable `${name}` is not declared{hint}"));
                }
                Base::Variable(name)
            }
            Some(Kind::Literal(value)) => Base::Literal(value),
            Some(Kind::Word(word)) if is_root(&word) => {
                fields.push(word);
                Base::Root
            }
            Some(Kind::Word(word)) if functions::find(&word).is_some() => Base::Group(Box::new(Pipeline {
                set: Set::Nothing,
                commands: vec![Command::Call { function: self.function(&word)?, arguments: Vec::new(), at: At(at) }],
                at: At(at),
            })),
            Some(Kind::Word(word)) => {
                self.function(&word)?;
                return self.unexpected("a value");
            }
            Some(Kind::LeftParen) => {
                self.bump();
                let pipeline = self.pipeline(false)?;
                self.spaces();
                if self.peek() != Some(&Kind::RightParen) {
                    return self.unexpected("`)`");
                }
                Base::Group(Box::new(pipeline))
            }
            _ => return self.unexpected("a value or a function"),
        };
        self.bump();
        while let Some(Kind::Field(name)) = self.peek() {
            fields.push(name.clone());
            self.bump();
        }
        if matches!(base, Base::Literal(_)) && !fields.is_empty() {
            return self.fail_at(at, "a literal value has no fields");
        }
        Ok(Operand { base, fields, at: At(at) })
    }
}

/// Returns whether `word` is the root key of the tree, which may be written without its leading dot.
fn is_root(word: &str) -> bool {
    matches!(word, "nuon" | "freehold")
}
