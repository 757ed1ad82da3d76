//! The parser. Its errors have upstream's places, and its words as far as they follow from the grammar alone.

use super::{
    ast::{Call, Expr, Id, Kind, op},
    lexer::{self, Spanned, Token, Unrecognized},
    macros::Macros,
    recover::STARTS,
};
use crate::{error::Issue, value::Value};

/// Maximum length of an expression in characters.
const MAX_LENGTH: usize = 100_000;

/// Maximum nesting of each rule of the grammar. It also bounds the stack of everything that walks the tree.
const MAX_DEPTH: usize = 250;

/// Trees of so many expressions are not repeated.
const MAX_COPIED: usize = 250_000;

const TOO_DEEP: &str = "expression recursion limit exceeded: 250";

/// Maximum number of syntax errors.
const MAX_ERRORS: usize = 100;

/// A parsed expression.
#[derive(Clone, Debug)]
pub(crate) struct Parsed {
    pub(crate) root: Expr,
    pub(crate) places: Places,
}

/// Where expressions are in the source.
#[derive(Clone, Debug, Default)]
pub(crate) struct Places {
    /// The character at which each expression is, by its id.
    offsets: Vec<u32>,
    /// The character at which each line begins.
    lines: Vec<usize>,
}

impl Places {
    /// The number of ids, with the unused 0.
    pub(crate) fn ids(&self) -> usize {
        self.offsets.len()
    }

    pub(crate) fn issue(&self, id: Id, message: String) -> Issue {
        self.issue_at(self.offsets.get(id as usize).map_or(0, |offset| *offset as usize), message)
    }

    pub(crate) fn issue_at(&self, offset: usize, message: String) -> Issue {
        let line = self.lines.partition_point(|start| *start <= offset);
        let start = line.checked_sub(1).and_then(|line| self.lines.get(line)).copied().unwrap_or(0);
        Issue { line, column: offset - start + 1, message }
    }
}

/// What the parser is inside of: says which tokens can end an operand.
#[derive(Clone, Copy, Debug)]
pub(crate) enum Context {
    Paren,
    Call,
    Index,
    List,
    Braces,
    Ternary,
}

/// Parses an expression and expands its macros.
pub(crate) fn parse(source: &str, macros: Macros) -> Result<Parsed, Vec<Issue>> {
    let length = source.chars().count();
    if length > MAX_LENGTH {
        let message = format!("expression code point size exceeds limit: size: {length}, limit {MAX_LENGTH}");
        return Err(vec![Issue { line: 0, column: 0, message }]);
    }
    let source: Vec<char> = source.chars().collect();
    let mut lines = vec![0];
    lines.extend(source.iter().enumerate().filter(|(_, c)| **c == '\n').map(|(at, _)| at + 1));
    let (tokens, unrecognized) = lexer::tokenize(&source);
    let mut parser = Parser {
        source: &source,
        tokens,
        at: 0,
        issues: Vec::new(),
        recovering: false,
        recovered_at: None,
        contexts: Vec::new(),
        places: Places { offsets: vec![0], lines },
        heights: vec![0],
        depth: Depth::default(),
        too_deep: None,
        macros,
    };
    for Unrecognized { start, end } in unrecognized {
        let text: String = source.get(start..end).unwrap_or_default().iter().collect();
        parser.issue_at(start, format!("Syntax error: token recognition error at: '{text}'"));
    }
    let root = parser.expr();
    if !parser.expect(Token::End) {
        parser.recover(false);
    }
    if let Some(message) = parser.too_deep {
        return Err(vec![Issue { line: 0, column: 0, message: message.to_owned() }]);
    }
    if source.is_empty() {
        // There is no line to show.
        parser.issues.iter_mut().for_each(|issue| issue.column = 0);
    }
    if parser.issues.is_empty() { Ok(Parsed { root, places: parser.places }) } else { Err(parser.issues) }
}

/// How deep rules are nested at present.
#[derive(Debug, Default)]
struct Depth {
    expr: usize,
    relation: usize,
    calc: usize,
}

pub(crate) struct Parser<'s> {
    source: &'s [char],
    tokens: Vec<Spanned>,
    pub(crate) at: usize,
    issues: Vec<Issue>,
    /// After an error, until a token fits again: nothing is reported.
    pub(crate) recovering: bool,
    pub(crate) recovered_at: Option<usize>,
    pub(crate) contexts: Vec<Context>,
    places: Places,
    /// How many operators and selections each expression nests, by its id.
    heights: Vec<usize>,
    depth: Depth,
    too_deep: Option<&'static str>,
    macros: Macros,
}

impl Parser<'_> {
    pub(crate) fn token_at(&self, at: usize) -> Token {
        self.tokens.get(at).map_or(Token::End, |spanned| spanned.token)
    }

    pub(crate) fn peek(&self) -> Token {
        self.token_at(self.at)
    }

    pub(crate) fn start_of(&self, at: usize) -> usize {
        self.tokens.get(at).map_or(self.source.len(), |spanned| spanned.start)
    }

    pub(crate) fn text_at(&self, at: usize) -> String {
        let range = self.tokens.get(at).map_or(0..0, |spanned| spanned.start..spanned.end);
        self.source.get(range).unwrap_or_default().iter().collect()
    }

    /// The text from one token to another, with what is between them.
    fn text_between(&self, first: usize, last: usize) -> String {
        let end = self.tokens.get(last).map_or(self.source.len(), |spanned| spanned.end);
        // The end is not shown, nor what is before it.
        let end = if self.token_at(last) == Token::End { self.start_of(first) + 1 } else { end };
        self.source.get(self.start_of(first)..end).unwrap_or_default().iter().collect()
    }

    pub(crate) fn advance(&mut self) {
        self.at += 1;
        self.recovering = false;
    }

    pub(crate) fn accept(&mut self, token: Token) -> bool {
        let is_next = self.peek() == token;
        if is_next {
            self.advance();
        }
        is_next
    }

    pub(crate) fn syntax_error(&mut self, token_at: usize, message: &str) {
        if !self.recovering {
            self.issue_at(self.start_of(token_at), format!("Syntax error: {message}"));
        }
    }

    pub(crate) fn issue_at(&mut self, offset: usize, message: String) {
        if self.issues.len() < MAX_ERRORS {
            let issue = self.places.issue_at(offset, message);
            self.issues.push(issue);
        }
    }

    /// Reports a mistake in an expression. The answer stands for the expression.
    pub(crate) fn error_at(&mut self, id: Id, message: String) -> Expr {
        let offset = self.places.offsets.get(id as usize).map_or(0, |offset| *offset as usize);
        self.issue_at(offset, message);
        self.at_offset(offset, Kind::Literal(Value::Null))
    }

    fn at_offset(&mut self, offset: usize, kind: Kind) -> Expr {
        let id = Id::try_from(self.places.offsets.len()).unwrap_or(Id::MAX);
        self.places.offsets.push(u32::try_from(offset).unwrap_or(u32::MAX));
        self.heights.push(0);
        Expr { id, kind }
    }

    /// An expression at the place of a token.
    pub(crate) fn node(&mut self, token_at: usize, kind: Kind) -> Expr {
        self.at_offset(self.start_of(token_at), kind)
    }

    /// An expression at the place of another one.
    pub(crate) fn node_like(&mut self, id: Id, kind: Kind) -> Expr {
        let offset = self.places.offsets.get(id as usize).map_or(0, |offset| *offset as usize);
        self.at_offset(offset, kind)
    }

    pub(crate) fn failed(&mut self) -> Expr {
        self.node(self.at, Kind::Literal(Value::Null))
    }

    pub(crate) fn height(&self, expr: &Expr) -> usize {
        self.heights.get(expr.id as usize).copied().unwrap_or(0)
    }

    /// Notes that an expression nests others, and `own` levels itself.
    pub(crate) fn set_height(&mut self, expr: &Expr, highest: usize, own: usize) {
        if let Some(height) = self.heights.get_mut(expr.id as usize) {
            *height = highest + own;
            if *height > MAX_DEPTH {
                self.give_up("max recursion depth exceeded");
            }
        }
    }

    /// Whether a macro may repeat its operand. Without a limit, macros of macros would double the tree again and again.
    pub(crate) fn may_copy(&mut self) -> bool {
        let fits = self.places.ids() < MAX_COPIED;
        if !fits {
            self.give_up("expression is too large: macros repeat their operands too often");
        }
        fits
    }

    /// Ends parsing, by taking all tokens.
    fn give_up(&mut self, message: &'static str) {
        self.too_deep.get_or_insert(message);
        self.at = self.tokens.len();
    }

    /// Enters a rule of the grammar. `false`: too deep.
    fn enter(&mut self, rule: fn(&mut Depth) -> &mut usize) -> bool {
        let depth = rule(&mut self.depth);
        *depth += 1;
        if *depth > MAX_DEPTH {
            self.give_up(TOO_DEEP);
        }
        self.too_deep.is_none()
    }

    fn leave(&mut self, rule: fn(&mut Depth) -> &mut usize) {
        *rule(&mut self.depth) -= 1;
    }

    pub(crate) fn expr(&mut self) -> Expr {
        let expr = if self.enter(|depth| &mut depth.expr) { self.conditional() } else { self.failed() };
        self.leave(|depth| &mut depth.expr);
        expr
    }

    /// An expression inside of something that ends with certain tokens.
    pub(crate) fn expr_in(&mut self, context: Context) -> Expr {
        self.contexts.push(context);
        let expr = self.expr();
        self.contexts.pop();
        expr
    }

    fn conditional(&mut self) -> Expr {
        let condition = self.logical();
        if self.peek() == Token::Question { self.branches(condition) } else { condition }
    }

    fn branches(&mut self, condition: Expr) -> Expr {
        let node = self.node(self.at, Kind::Literal(Value::Null));
        self.advance();
        self.contexts.push(Context::Ternary);
        let yes = self.logical();
        self.contexts.pop();
        if !self.expect(Token::Colon) {
            self.recover(false);
            return node;
        }
        let no = self.expr();
        let highest = self.height(&condition).max(self.height(&yes)).max(self.height(&no));
        let call = self.call_or_macro(node.id, op::CONDITIONAL, None, vec![condition, yes, no]);
        self.set_height(&call, highest, 1);
        call
    }

    /// Terms of `||`, which are terms of `&&`.
    fn logical(&mut self) -> Expr {
        let first = self.binary(0);
        match self.peek() {
            Token::And | Token::Or => self.terms(first),
            _ => first,
        }
    }

    /// The terms after the first one. They become balanced trees, so that many of them do not nest deeply.
    fn terms(&mut self, first: Expr) -> Expr {
        let (mut or_terms, mut or_ids) = (Vec::new(), Vec::new());
        let (mut and_terms, mut and_ids) = (vec![Some(first)], Vec::new());
        loop {
            let operator = self.peek();
            if operator == Token::And {
                and_ids.push(self.node(self.at, Kind::Literal(Value::Null)).id);
            } else {
                let term = self.tree(op::AND, &mut and_terms, &and_ids);
                or_terms.push(Some(term));
                (and_terms, and_ids) = (Vec::new(), Vec::new());
                if operator != Token::Or {
                    return self.tree(op::OR, &mut or_terms, &or_ids);
                }
                or_ids.push(self.node(self.at, Kind::Literal(Value::Null)).id);
            }
            self.advance();
            and_terms.push(Some(self.binary(0)));
        }
    }

    fn tree(&mut self, function: &str, terms: &mut [Option<Expr>], ids: &[Id]) -> Expr {
        let highest = terms.iter().flatten().map(|term| self.height(term)).max().unwrap_or(0);
        let tree = balanced(function, ids, terms);
        self.set_height(&tree, highest, 0);
        tree
    }

    /// Comparisons (0), sums (1), products (2) or operands (3).
    fn binary(&mut self, precedence: usize) -> Expr {
        let compares = precedence == 0;
        let mut left = if self.enter_binary(compares) { self.unary() } else { self.failed() };
        while let Some((function, binds)) = operator(self.peek()).filter(|(_, binds)| *binds >= precedence) {
            let operator = self.at;
            self.advance();
            // The right side of a comparison counts as one.
            self.depth.relation += usize::from(binds == 0);
            let right = self.binary(binds + 1);
            self.depth.relation -= usize::from(binds == 0);
            left = self.operation(operator, function, left, right);
        }
        self.depth.relation -= usize::from(compares);
        self.depth.calc -= 1;
        left
    }

    fn enter_binary(&mut self, compares: bool) -> bool {
        self.depth.relation += usize::from(compares);
        if self.depth.relation > MAX_DEPTH {
            self.give_up(TOO_DEEP);
        }
        self.enter(|depth| &mut depth.calc)
    }

    fn operation(&mut self, operator: usize, function: &str, left: Expr, right: Expr) -> Expr {
        let highest = self.height(&left).max(self.height(&right));
        let id = self.node(operator, Kind::Literal(Value::Null)).id;
        let call = self.call_or_macro(id, function, None, vec![left, right]);
        self.set_height(&call, highest, 1);
        call
    }

    fn unary(&mut self) -> Expr {
        if !self.expect_one_of(&STARTS) {
            self.recover(false);
            return self.failed();
        }
        let operator = self.peek();
        let start = self.at;
        let is_literal = |token| matches!(token, Token::Int | Token::Float);
        if operator == Token::Minus && is_literal(self.token_at(start + 1)) {
            return self.member();
        }
        let (Token::Not | Token::Minus) = operator else { return self.member() };
        while self.peek() == operator {
            self.advance();
        }
        let count = self.at - start;
        let begins = match self.peek() {
            Token::Minus => is_literal(self.token_at(self.at + 1)),
            Token::Not => false,
            token => STARTS.contains(&token),
        };
        if !begins {
            if operator == Token::Minus {
                let text = self.text_between(self.at - 1, self.at);
                self.syntax_error(self.at, &format!("no viable alternative at input '{text}'"));
                self.recovering = false;
            }
            self.expect_one_of(&STARTS);
            self.recovering = true;
            self.recover(false);
            return self.failed();
        }
        let operand = self.member();
        if count.is_multiple_of(2) {
            return operand;
        }
        let highest = self.height(&operand);
        let function = if operator == Token::Not { op::NOT } else { op::NEGATE };
        let id = self.node(start, Kind::Literal(Value::Null)).id;
        let call = self.call_or_macro(id, function, None, vec![operand]);
        self.set_height(&call, highest, 0);
        call
    }

    pub(crate) fn call_or_macro(
        &mut self,
        id: Id,
        function: &str,
        target: Option<Expr>,
        args: Vec<Expr>,
    ) -> Expr {
        match self.macros.find(function, target.is_some(), args.len()) {
            Some(expand) => expand(self, id, target, args),
            None => Expr { id, kind: Kind::Call(Box::new(Call { function: function.into(), target, args })) },
        }
    }
}

/// A balanced tree of terms. Every term is taken once.
fn balanced(function: &str, operators: &[Id], terms: &mut [Option<Expr>]) -> Expr {
    let middle = operators.len() / 2;
    let Some(id) = operators.get(middle).copied() else {
        let term = terms.first_mut().and_then(Option::take);
        return term.unwrap_or(Expr { id: 0, kind: Kind::Literal(Value::Null) });
    };
    let (left, right) = terms.split_at_mut(middle + 1);
    let left = balanced(function, operators.get(..middle).unwrap_or_default(), left);
    let right = balanced(function, operators.get(middle + 1..).unwrap_or_default(), right);
    Expr {
        id,
        kind: Kind::Call(Box::new(Call { function: function.into(), target: None, args: vec![left, right] })),
    }
}

/// An operator with two sides, and how strongly it binds.
fn operator(token: Token) -> Option<(&'static str, usize)> {
    Some(match token {
        Token::Equals => (op::EQUALS, 0),
        Token::NotEquals => (op::NOT_EQUALS, 0),
        Token::In => (op::IN, 0),
        Token::Less => (op::LESS, 0),
        Token::LessEquals => (op::LESS_EQUALS, 0),
        Token::Greater => (op::GREATER, 0),
        Token::GreaterEquals => (op::GREATER_EQUALS, 0),
        Token::Plus => (op::ADD, 1),
        Token::Minus => (op::SUBTRACT, 1),
        Token::Star => (op::MULTIPLY, 2),
        Token::Slash => (op::DIVIDE, 2),
        Token::Percent => (op::MODULO, 2),
        _ => return None,
    })
}
