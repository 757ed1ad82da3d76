//! Parses templates into nodes.

use super::{Node, Param};

/// Maximum nesting of filters and unions.
const MAX_DEPTH: usize = 16;

pub(super) fn template(text: &str) -> Result<Vec<Node>, String> {
    parse(text, 0)
}

fn parse(text: &str, depth: usize) -> Result<Vec<Node>, String> {
    if depth > MAX_DEPTH {
        return Err("expression nested too deeply".into());
    }
    let mut parser = Parser { rest: text, depth };
    let mut nodes = Vec::new();
    loop {
        let (plain, rest) = match parser.rest.find('{') {
            None => (parser.rest, None),
            Some(at) => (parser.rest.get(..at).unwrap_or_default(), parser.rest.get(at + 1..)),
        };
        if !plain.is_empty() {
            nodes.push(Node::Text(plain.to_owned()));
        }
        let Some(rest) = rest else { return Ok(nodes) };
        parser.rest = rest;
        nodes.push(Node::List(parser.action()?));
    }
}

/// The nodes of one expression, parsed as if in braces.
fn expression(text: &str, depth: usize) -> Result<Vec<Node>, String> {
    match parse(&format!("{{{text}}}"), depth + 1)?.into_iter().next() {
        Some(Node::List(nodes)) => Ok(nodes),
        _ => Ok(Vec::new()),
    }
}

struct Parser<'t> {
    rest: &'t str,
    depth: usize,
}

fn is_terminator(c: char) -> bool {
    matches!(c, ' ' | '\t' | '\r' | '\n' | '.' | ',' | '[' | ']' | '$' | '@' | '{' | '}')
}

fn is_alphanumeric(c: char) -> bool {
    c == '_' || c.is_alphanumeric()
}

impl<'t> Parser<'t> {
    fn peek(&self) -> Option<char> {
        self.rest.chars().next()
    }

    /// Consumes `length` bytes.
    fn take(&mut self, length: usize) -> &'t str {
        let (taken, rest) = self.rest.split_at_checked(length).unwrap_or((self.rest, ""));
        self.rest = rest;
        taken
    }

    fn action(&mut self) -> Result<Vec<Node>, String> {
        let mut nodes = Vec::new();
        loop {
            if let Some(rest) = self.rest.strip_prefix('}') {
                self.rest = rest;
                return Ok(nodes);
            }
            if let Some(rest) = self.rest.strip_prefix("[?(") {
                self.rest = rest;
                nodes.push(self.filter()?);
                continue;
            }
            if let Some(rest) = self.rest.strip_prefix("..") {
                if nodes.last() == Some(&Node::Recursive) {
                    return Err("invalid multiple recursive descent".into());
                }
                self.rest = rest;
                nodes.push(Node::Recursive);
                if self.peek().is_some_and(is_alphanumeric) {
                    nodes.push(self.field());
                }
                continue;
            }
            match self.peek() {
                None | Some('\r' | '\n') => return Err("unclosed action".into()),
                Some(' ' | '@' | '$') => {
                    self.take(1);
                }
                Some('[') => self.array(&mut nodes)?,
                Some(quote @ ('"' | '\'')) => nodes.push(self.quoted(quote)?),
                Some('.') => {
                    self.take(1);
                    nodes.push(self.field());
                }
                Some(c) if c == '+' || c == '-' || c.is_numeric() => nodes.push(self.number()?),
                Some(c) if is_alphanumeric(c) => {
                    let length = self.rest.find(is_terminator).unwrap_or(self.rest.len());
                    nodes.push(match self.take(length) {
                        "true" => Node::Bool(true),
                        "false" => Node::Bool(false),
                        name => Node::Identifier(name.to_owned()),
                    });
                }
                Some(c) => {
                    let shown = if c.is_control() { String::new() } else { format!(" '{c}'") };
                    return Err(format!("unrecognized character in action: U+{:04X}{shown}", u32::from(c)));
                }
            }
        }
    }

    /// A name up to the next unescaped terminator.
    fn field(&mut self) -> Node {
        let mut escaped = false;
        let length = self.rest.find(|c| {
            let ends = !escaped && is_terminator(c);
            escaped = c == '\\' && !escaped;
            ends
        });
        match self.take(length.unwrap_or(self.rest.len())) {
            "*" => Node::Wildcard,
            name => Node::Field(name.replace('\\', "")),
        }
    }

    fn number(&mut self) -> Result<Node, String> {
        let signed = usize::from(self.rest.starts_with(['+', '-']));
        let digits = self.rest.get(signed..).unwrap_or_default();
        let length = digits.find(|c: char| c != '.' && !c.is_numeric()).unwrap_or(digits.len());
        let text = self.take(signed + length);
        if let Ok(number) = text.parse() {
            return Ok(Node::Int(number));
        }
        text.parse().map(Node::Float).map_err(|_| format!("cannot parse number {text}"))
    }

    fn quoted(&mut self, quote: char) -> Result<Node, String> {
        let mut before = quote;
        let mut end = None;
        for (at, c) in self.rest.char_indices().skip(1) {
            if c == '\n' {
                break;
            }
            if c == quote && before != '\\' {
                end = Some(at + 1);
                break;
            }
            before = c;
        }
        let Some(end) = end else { return Err("unterminated quoted string".into()) };
        let text = self.take(end);
        let inside = text.get(1..text.len().saturating_sub(1)).unwrap_or_default();
        match unquote(inside, quote) {
            Some(text) => Ok(Node::Text(text)),
            None => Err(format!("unquote string {text} error invalid syntax")),
        }
    }

    fn array(&mut self, nodes: &mut Vec<Node>) -> Result<(), String> {
        let end = self.rest.find([']', '\n']).filter(|&at| self.rest.as_bytes().get(at) == Some(&b']'));
        let Some(end) = end else { return Err("unterminated array".into()) };
        let text = self.take(end + 1);
        let text = text.get(1..text.len().saturating_sub(1)).unwrap_or_default();
        let text = if text == "*" { ":" } else { text };
        if text.contains(',') {
            let parts =
                text.split(',').map(|part| expression(&format!("[{}]", part.trim_matches(' ')), self.depth));
            nodes.push(Node::Union(parts.collect::<Result<_, _>>()?));
            return Ok(());
        }
        let key = text.strip_prefix('\'').and_then(|text| text.strip_suffix('\''));
        if let Some(key) = key.filter(|key| !key.contains('\'')) {
            nodes.extend(expression(&format!(".{key}"), self.depth)?);
            return Ok(());
        }
        nodes.push(Node::Array(slice(text)?));
        Ok(())
    }

    fn filter(&mut self) -> Result<Node, String> {
        let (mut begin, mut end) = (false, false);
        let mut pair = '"';
        let mut before = '(';
        let mut close = None;
        for (at, c) in self.rest.char_indices() {
            match c {
                '\n' => break,
                '"' | '\'' if !begin => {
                    begin = true;
                    pair = c;
                }
                '"' | '\'' if before != '\\' && c == pair => end = true,
                ')' if begin == end => {
                    close = Some(at);
                    break;
                }
                _ => {}
            }
            before = c;
        }
        let Some(close) = close else { return Err("unterminated filter".into()) };
        let text = self.take(close);
        let Some(rest) = self.rest.strip_prefix(")]") else {
            return Err("unclosed array expect ]".into());
        };
        self.rest = rest;
        let is_operator = |c: char| matches!(c, '!' | '<' | '>' | '=');
        let start = text.find(is_operator).filter(|&at| at > 0);
        let split = start.and_then(|start| {
            let (left, rest) = text.split_at_checked(start)?;
            let length = rest.find(|c| !is_operator(c)).unwrap_or(rest.len());
            // The right operand may not be empty: if need be, it takes the last character of the operator.
            let length =
                if length == rest.len() { length.checked_sub(1).filter(|&n| n > 0)? } else { length };
            let (operator, right) = rest.split_at_checked(length)?;
            Some((left, operator, right))
        });
        Ok(match split {
            None => Node::Filter {
                left: expression(text, self.depth)?,
                right: Vec::new(),
                operator: "exists".into(),
            },
            Some((left, operator, right)) => Node::Filter {
                left: expression(left, self.depth)?,
                right: expression(right, self.depth)?,
                operator: operator.to_owned(),
            },
        })
    }
}

/// `start:end:step`, each of them optional.
fn slice(text: &str) -> Result<[Param; 3], String> {
    let wrong = || format!("invalid array index {text}");
    let parts: Vec<&str> = text.split(':').collect();
    let number = |part: &str| {
        let digits = part.strip_prefix('-').unwrap_or(part);
        digits.bytes().all(|byte| byte.is_ascii_digit())
    };
    if parts.len() > 3 || !parts.iter().all(|part| number(part)) {
        return Err(wrong());
    }
    let mut params = [Param::default(); 3];
    for (i, part) in parts.iter().enumerate() {
        if !part.is_empty() {
            let value = part.parse().map_err(|_| format!("array index {part} is not a number"))?;
            if let Some(param) = params.get_mut(i) {
                *param = Param { value, known: true, derived: false };
            }
        }
    }
    if parts.len() == 1 {
        params[1] = Param { value: params[0].value.saturating_add(1), known: true, derived: true };
    }
    Ok(params)
}

/// Go's `Unquote`, for single and double quotes.
fn unquote(text: &str, quote: char) -> Option<String> {
    let mut out = String::with_capacity(text.len());
    let mut chars = text.chars();
    while let Some(c) = chars.next() {
        if c == quote {
            return None;
        }
        if c != '\\' {
            out.push(c);
            continue;
        }
        let c = match chars.next()? {
            'a' => '\u{7}',
            'b' => '\u{8}',
            'f' => '\u{c}',
            'n' => '\n',
            'r' => '\r',
            't' => '\t',
            'v' => '\u{b}',
            '\\' => '\\',
            c if c == quote => c,
            'x' => hex(&mut chars, 2)?,
            'u' => hex(&mut chars, 4)?,
            'U' => hex(&mut chars, 8)?,
            c @ '0'..='7' => {
                let mut value = c.to_digit(8)?;
                for _ in 0..2 {
                    value = value * 8 + chars.next()?.to_digit(8)?;
                }
                char::from_u32(value).filter(|_| value < 256)?
            }
            _ => return None,
        };
        out.push(c);
    }
    Some(out)
}

fn hex(chars: &mut std::str::Chars<'_>, digits: usize) -> Option<char> {
    let mut value = 0_u32;
    for _ in 0..digits {
        value = value.checked_mul(16)?.checked_add(chars.next()?.to_digit(16)?)?;
    }
    char::from_u32(value)
}
