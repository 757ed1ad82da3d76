//! Operands: literals, names, calls, lists, maps and objects, with what follows them.

use super::{
    ast::{Call, Entry, Expr, FieldInit, Item, Kind, Select, Struct, op},
    lexer::Token,
    literal,
    parser::{Context, Parser},
    recover::STARTS,
};
use crate::value::Value;

/// Words that are no variables.
const RESERVED: [&str; 17] = [
    "as",
    "break",
    "const",
    "continue",
    "else",
    "for",
    "function",
    "if",
    "import",
    "let",
    "loop",
    "package",
    "namespace",
    "return",
    "var",
    "void",
    "while",
];

impl Parser<'_> {
    pub(crate) fn member(&mut self) -> Expr {
        let mut expr = self.primary();
        while matches!(self.peek(), Token::Dot | Token::LeftBracket) {
            let highest = self.height(&expr);
            let (next, done) =
                if self.peek() == Token::Dot { self.selection(expr) } else { self.index(expr) };
            expr = next;
            let highest = highest.max(self.height(&expr));
            self.set_height(&expr, highest, 1);
            if done {
                break;
            }
        }
        expr
    }

    /// `.field`, `.?field` or `.function(…)`. The answer says whether an error ends the operand.
    fn selection(&mut self, operand: Expr) -> (Expr, bool) {
        let dot = self.at;
        let after = self.token_at(dot + 1);
        if !matches!(after, Token::Identifier | Token::Escaped | Token::Question) {
            let text = self.text_at(dot + 1);
            let message = if matches!(after, Token::True | Token::False | Token::Null) {
                format!("mismatched input '{text}' expecting IDENTIFIER")
            } else {
                format!("no viable alternative at input '.{text}'")
            };
            self.syntax_error(dot + 1, &message);
            self.at += 1;
            self.recovering = true;
            self.recover(false);
            return (self.failed(), true);
        }
        self.advance();
        let optional = self.accept(Token::Question);
        let name_at = self.at;
        if optional && !self.expect_one_of(&[Token::Identifier, Token::Escaped]) {
            self.recover(false);
            return (self.failed(), true);
        }
        let text = self.text_at(name_at);
        let is_plain = self.peek() == Token::Identifier;
        self.advance();
        let name = text.trim_matches('`');
        if optional {
            let node = self.node(dot, Kind::Literal(Value::Null));
            let field = self.node(name_at, Kind::Literal(Value::string(name)));
            let call = Call { function: op::OPT_SELECT.into(), target: None, args: vec![operand, field] };
            return (Expr { kind: Kind::Call(Box::new(call)), ..node }, false);
        }
        if is_plain && self.peek() == Token::LeftParen {
            let open = self.at;
            self.advance();
            let id = self.node(open, Kind::Literal(Value::Null)).id;
            let (args, done) = self.arguments();
            let highest = args.iter().map(|arg| self.height(arg)).max().unwrap_or(0);
            let call = self.call_or_macro(id, name, Some(operand), args);
            self.set_height(&call, highest, 0);
            return (call, done);
        }
        let select = Select { operand, field: name.into(), test: false };
        (self.node(dot, Kind::Select(Box::new(select))), false)
    }

    fn index(&mut self, operand: Expr) -> (Expr, bool) {
        let open = self.at;
        self.advance();
        let function = if self.accept(Token::Question) { op::OPT_INDEX } else { op::INDEX };
        if function == op::INDEX && !STARTS.contains(&self.peek()) {
            let wanted: Vec<Token> = STARTS.iter().copied().chain([Token::Question]).collect();
            if !self.expect_one_of(&wanted) {
                self.recover(false);
                return (self.failed(), true);
            }
        }
        let id = self.node(open, Kind::Literal(Value::Null)).id;
        let index = self.expr_in(Context::Index);
        let highest = self.height(&index);
        let closed = self.expect(Token::RightBracket);
        if !closed {
            self.recover(false);
        }
        let call = self.call_or_macro(id, function, None, vec![operand, index]);
        self.set_height(&call, highest, 0);
        (call, !closed)
    }

    /// The arguments of a call, after its parenthesis.
    fn arguments(&mut self) -> (Vec<Expr>, bool) {
        let mut args = Vec::new();
        if self.peek() != Token::RightParen {
            let wanted: Vec<Token> = STARTS.iter().copied().chain([Token::RightParen]).collect();
            if !self.expect_one_of(&wanted) {
                self.contexts.push(Context::Call);
                self.recover(false);
                self.contexts.pop();
                return (args, true);
            }
            if self.peek() != Token::RightParen {
                args.push(self.expr_in(Context::Call));
                while self.accept(Token::Comma) {
                    args.push(self.expr_in(Context::Call));
                }
            }
        }
        let closed = self.expect(Token::RightParen);
        if !closed {
            self.recover(false);
        }
        (args, !closed)
    }

    fn primary(&mut self) -> Expr {
        let start = self.at;
        match self.peek() {
            Token::LeftParen => {
                self.advance();
                let expr = self.expr_in(Context::Paren);
                if !self.expect(Token::RightParen) {
                    self.recover(true);
                }
                expr
            }
            Token::LeftBracket => self.list(),
            Token::LeftBrace => self.map(),
            Token::Dot | Token::Identifier => self.name(),
            Token::Minus => {
                self.advance();
                self.literal(start, true)
            }
            _ => self.literal(start, false),
        }
    }

    fn literal(&mut self, start: usize, negative: bool) -> Expr {
        let token = self.peek();
        let text = self.text_at(self.at);
        self.advance();
        let value = match token {
            Token::True => Ok(Value::Bool(true)),
            Token::False => Ok(Value::Bool(false)),
            Token::Null => Ok(Value::Null),
            Token::Int => literal::int(&text, negative).ok_or("invalid int literal"),
            Token::Uint => literal::uint(&text).ok_or("invalid uint literal"),
            Token::Float => literal::double(&text, negative).ok_or("invalid double literal"),
            Token::String => literal::string(&text),
            _ => literal::bytes(&text),
        };
        match value {
            Ok(value) => self.node(start, Kind::Literal(value)),
            Err(message) => {
                self.issue_at(self.start_of(start), message.to_owned());
                self.failed()
            }
        }
    }

    /// An identifier, a call of a function, or the construction of an object.
    fn name(&mut self) -> Expr {
        let start = self.at;
        let leading = self.accept(Token::Dot);
        if self.peek() != Token::Identifier {
            let text = self.text_at(self.at);
            self.syntax_error(self.at, &format!("no viable alternative at input '.{text}'"));
            self.recovering = true;
            self.recover(true);
            return self.failed();
        }
        let name_at = self.at;
        let mut after = name_at + 1;
        while self.token_at(after) == Token::Dot && self.token_at(after + 1) == Token::Identifier {
            after += 2;
        }
        let dot = if leading { "." } else { "" };
        if self.token_at(after) == Token::LeftBrace {
            let parts: String = (name_at..after).map(|at| self.text_at(at)).collect();
            self.at = after;
            return self.object(format!("{dot}{parts}"));
        }
        let text = self.text_at(name_at);
        self.advance();
        let reserved = RESERVED.contains(&text.as_str());
        if reserved {
            self.issue_at(self.start_of(start), format!("reserved identifier: {text}"));
        }
        let name = format!("{dot}{text}");
        if self.peek() != Token::LeftParen {
            return if reserved { self.failed() } else { self.node(name_at, Kind::Ident(name.into())) };
        }
        let open = self.at;
        self.advance();
        let id = self.node(open, Kind::Literal(Value::Null)).id;
        let (args, _) = self.arguments();
        let highest = args.iter().map(|arg| self.height(arg)).max().unwrap_or(0);
        if reserved {
            return self.failed();
        }
        let call = self.call_or_macro(id, &name, None, args);
        self.set_height(&call, highest, 0);
        call
    }

    fn list(&mut self) -> Expr {
        let node = self.node(self.at, Kind::Literal(Value::Null));
        self.advance();
        let mut items = Vec::new();
        let mut highest = 0;
        let begins = [Token::RightBracket, Token::Comma, Token::Question];
        if !begins.contains(&self.peek()) {
            let wanted: Vec<Token> = STARTS.iter().copied().chain(begins).collect();
            if !self.expect_one_of(&wanted) {
                self.recover(true);
                return node;
            }
        }
        while !matches!(self.peek(), Token::RightBracket | Token::Comma) || items.is_empty() {
            if items.is_empty() && matches!(self.peek(), Token::RightBracket | Token::Comma) {
                break;
            }
            let optional = self.accept(Token::Question);
            let value = self.expr_in(Context::List);
            highest = highest.max(self.height(&value));
            items.push(Item { optional, value });
            // A comma may also come last.
            let after = self.token_at(self.at + 1);
            if self.peek() != Token::Comma || matches!(after, Token::RightBracket | Token::Comma) {
                break;
            }
            self.advance();
        }
        self.close(Token::RightBracket);
        let expr = Expr { kind: Kind::List(items), ..node };
        self.set_height(&expr, highest, 0);
        expr
    }

    /// The end of a list or of braces, after an optional comma.
    fn close(&mut self, end: Token) {
        if self.peek() != end && self.peek() != Token::Comma && !self.expect_one_of(&[end, Token::Comma]) {
            self.recover(true);
            return;
        }
        self.accept(Token::Comma);
        if !self.expect(end) {
            self.recover(true);
        }
    }

    fn map(&mut self) -> Expr {
        let node = self.node(self.at, Kind::Literal(Value::Null));
        self.advance();
        let mut entries = Vec::new();
        let mut highest = 0;
        let begins = [Token::RightBrace, Token::Comma, Token::Question];
        if !begins.contains(&self.peek()) {
            let wanted: Vec<Token> = STARTS.iter().copied().chain(begins).collect();
            if !self.expect_one_of(&wanted) {
                self.recover(true);
                return node;
            }
        }
        while !matches!(self.peek(), Token::RightBrace | Token::Comma) {
            let optional = self.accept(Token::Question);
            let key = self.expr_in(Context::Braces);
            if !self.expect(Token::Colon) {
                self.contexts.push(Context::Braces);
                self.recover(true);
                self.contexts.pop();
                break;
            }
            let value = self.expr_in(Context::Braces);
            highest = highest.max(self.height(&key)).max(self.height(&value));
            entries.push(Entry { optional, key, value });
            let after = self.token_at(self.at + 1);
            if self.peek() != Token::Comma || matches!(after, Token::RightBrace | Token::Comma) {
                break;
            }
            self.advance();
        }
        self.close(Token::RightBrace);
        let expr = Expr { kind: Kind::Map(entries), ..node };
        self.set_height(&expr, highest, 0);
        expr
    }

    fn object(&mut self, name: String) -> Expr {
        let node = self.node(self.at, Kind::Literal(Value::Null));
        self.advance();
        let mut fields = Vec::new();
        let mut highest = 0;
        let begins = [Token::RightBrace, Token::Comma, Token::Question, Token::Identifier, Token::Escaped];
        if !self.expect_one_of(&begins) {
            self.recover(true);
            return node;
        }
        while !matches!(self.peek(), Token::RightBrace | Token::Comma) {
            let optional = self.accept(Token::Question);
            let field = self.text_at(self.at);
            let colon = self.at + 1;
            if !self.expect_one_of(&[Token::Identifier, Token::Escaped]) {
                self.recover(true);
                return node;
            }
            self.advance();
            if !self.expect(Token::Colon) {
                self.recover(true);
                return node;
            }
            let id = self.node(colon, Kind::Literal(Value::Null)).id;
            let value = self.expr_in(Context::Braces);
            highest = highest.max(self.height(&value));
            fields.push(FieldInit { id, name: field.trim_matches('`').into(), value, optional });
            let after = self.token_at(self.at + 1);
            if self.peek() != Token::Comma || matches!(after, Token::RightBrace | Token::Comma) {
                break;
            }
            self.advance();
        }
        self.close(Token::RightBrace);
        let expr = Expr { kind: Kind::Struct(Box::new(Struct { name: name.into(), fields })), ..node };
        self.set_height(&expr, highest, 0);
        expr
    }
}
