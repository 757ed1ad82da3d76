//! Scans characters into tokens, with the errors of libyaml in its order.

mod text;

use std::collections::VecDeque;

use crate::decode::{Error, MAX_DEPTH};

/// Maximum nesting of flows and indentations in the scanner. More than the decoder allows, which rejects a
/// document only after it was scanned to the end; every token may visit all open flows.
const MAX_LEVELS: usize = 2 * MAX_DEPTH;

/// A position in the source, counted from zero.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub(super) struct Mark {
    pub(super) index: usize,
    pub(super) line: usize,
    pub(super) column: usize,
}

#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum Token {
    StreamEnd,
    VersionDirective,
    TagDirective(String, String),
    DocumentStart,
    DocumentEnd,
    BlockSequenceStart,
    BlockMappingStart,
    BlockEnd,
    FlowSequenceStart,
    FlowSequenceEnd,
    FlowMappingStart,
    FlowMappingEnd,
    BlockEntry,
    FlowEntry,
    Key,
    Value,
    Alias(String),
    Anchor(String),
    Tag(String, String),
    /// The text, and whether it is plain.
    Scalar(String, bool),
}

/// A possible simple key, which only becomes one with its colon.
#[derive(Debug, Clone, Copy)]
struct SimpleKey {
    possible: bool,
    /// Whether tokens are held back until that is known.
    awaited: bool,
    required: bool,
    token: usize,
    mark: Mark,
}

const NO_KEY: SimpleKey = SimpleKey {
    possible: false,
    awaited: false,
    required: false,
    token: 0,
    mark: Mark { index: 0, line: 0, column: 0 },
};

#[derive(Debug)]
pub(super) struct Scanner {
    chars: Vec<char>,
    mark: Mark,
    tokens: VecDeque<(Token, Mark)>,
    taken: usize,
    /// The number of a token that is known not to be a key.
    settled: Option<usize>,
    ended: bool,
    flow_level: usize,
    indent: isize,
    indents: Vec<isize>,
    key_allowed: bool,
    keys: Vec<SimpleKey>,
}

fn is_blank(c: Option<char>) -> bool {
    matches!(c, Some(' ' | '\t'))
}

fn is_break(c: Option<char>) -> bool {
    matches!(c, Some('\r' | '\n' | '\u{85}' | '\u{2028}' | '\u{2029}'))
}

fn is_blank_or_end(c: Option<char>) -> bool {
    c.is_none() || is_blank(c) || is_break(c)
}

fn is_alpha(c: char) -> bool {
    c.is_ascii_alphanumeric() || matches!(c, '_' | '-')
}

impl Scanner {
    pub(super) fn new(source: &str) -> Scanner {
        Scanner {
            chars: source.chars().collect(),
            mark: Mark::default(),
            tokens: VecDeque::new(),
            taken: 0,
            settled: None,
            ended: false,
            flow_level: 0,
            indent: -1,
            indents: Vec::new(),
            key_allowed: true,
            keys: vec![NO_KEY],
        }
    }

    /// The next token, without consuming it.
    pub(super) fn peek(&mut self) -> Result<(&Token, Mark), Error> {
        self.fetch_more()?;
        match self.tokens.front() {
            Some((token, mark)) => Ok((token, *mark)),
            None => Ok((&Token::StreamEnd, self.mark)),
        }
    }

    /// Consumes the next token.
    pub(super) fn next(&mut self) -> Result<(Token, Mark), Error> {
        self.fetch_more()?;
        match self.tokens.pop_front() {
            Some(token) => {
                self.taken += 1;
                Ok(token)
            }
            None => Ok((Token::StreamEnd, self.mark)),
        }
    }

    fn at(&self, offset: usize) -> Option<char> {
        self.chars.get(self.mark.index + offset).copied()
    }

    fn problem(&self, problem: &str) -> Error {
        match self.mark.line {
            0 => Error::new(format!("yaml: {problem}")),
            line => Error::new(format!("yaml: line {}: {problem}", line + 1)),
        }
    }

    fn skip(&mut self) {
        self.mark.index += 1;
        self.mark.column += 1;
    }

    fn skip_line(&mut self) {
        let two = self.at(0) == Some('\r') && self.at(1) == Some('\n');
        self.mark.index += if two { 2 } else { 1 };
        self.mark.column = 0;
        self.mark.line += 1;
    }

    fn read_line(&mut self, into: &mut String) {
        match self.at(0) {
            Some(c @ ('\u{2028}' | '\u{2029}')) => into.push(c),
            _ => into.push('\n'),
        }
        self.skip_line();
    }

    fn column(&self) -> isize {
        isize::try_from(self.mark.column).unwrap_or(isize::MAX)
    }

    fn key_is_valid(&mut self, at: usize) -> Result<bool, Error> {
        let mark = self.mark;
        let Some(key) = self.keys.get_mut(at).filter(|key| key.possible) else { return Ok(false) };
        if key.mark.line < mark.line || key.mark.index + 1024 < mark.index {
            if key.required {
                return Err(self.problem("could not find expected ':'"));
            }
            key.possible = false;
            return Ok(false);
        }
        Ok(true)
    }

    fn fetch_more(&mut self) -> Result<(), Error> {
        while !self.ended {
            if !self.tokens.is_empty() {
                let head = self.taken;
                // Later keys follow the next token, so the result holds until it is consumed.
                if self.settled == Some(head) {
                    return Ok(());
                }
                let awaits = match self.awaited_key(head) {
                    Some(at) => self.key_is_valid(at)?,
                    None => false,
                };
                if !awaits {
                    self.settled = Some(head);
                    return Ok(());
                }
            }
            self.fetch_next()?;
        }
        Ok(())
    }

    /// The level at which the token of this number may be a key.
    fn awaited_key(&self, head: usize) -> Option<usize> {
        for (at, key) in self.keys.iter().enumerate().rev() {
            if key.possible && key.awaited && key.token == head {
                return Some(at);
            }
            // Keys of outer flows precede it.
            if key.possible && key.token < head {
                return None;
            }
        }
        None
    }

    fn fetch_next(&mut self) -> Result<(), Error> {
        self.scan_to_next_token();
        self.unroll_indent(self.column());
        let (Some(c), next) = (self.at(0), self.at(1)) else { return self.fetch_stream_end() };
        let in_flow = self.flow_level > 0;
        if self.mark.column == 0 {
            if c == '%' {
                return self.fetch_directive();
            }
            if self.is_document_indicator() {
                let token = if c == '-' { Token::DocumentStart } else { Token::DocumentEnd };
                self.unroll_indent(-1);
                self.remove_key()?;
                self.key_allowed = false;
                return self.push_and_skip(token, 3);
            }
        }
        match c {
            '[' => self.flow_start(Token::FlowSequenceStart),
            '{' => self.flow_start(Token::FlowMappingStart),
            ']' => self.flow_end(Token::FlowSequenceEnd),
            '}' => self.flow_end(Token::FlowMappingEnd),
            ',' => {
                self.remove_key()?;
                self.key_allowed = true;
                self.push_and_skip(Token::FlowEntry, 1)
            }
            '-' if is_blank_or_end(next) => self.block_entry(),
            '?' if in_flow || is_blank_or_end(next) => self.key(),
            ':' if in_flow || is_blank_or_end(next) => self.value(),
            '*' | '&' => {
                self.save_key()?;
                self.key_allowed = false;
                self.scan_anchor(c == '*')
            }
            '!' => {
                self.save_key()?;
                self.key_allowed = false;
                self.scan_tag()
            }
            '|' | '>' if !in_flow => {
                self.remove_key()?;
                self.key_allowed = true;
                self.scan_block_scalar(c == '|')
            }
            '\'' | '"' => {
                self.save_key()?;
                self.key_allowed = false;
                self.scan_quoted(c)
            }
            _ => {
                let indicator = "-?:,[]{}#&*!|>'\"%@`".contains(c);
                let plain = (!is_blank_or_end(Some(c)) && !indicator)
                    || (c == '-' && !is_blank(next))
                    || (!in_flow && matches!(c, '?' | ':') && !is_blank_or_end(next));
                if !plain {
                    return Err(self.problem("found character that cannot start any token"));
                }
                self.save_key()?;
                self.key_allowed = false;
                self.scan_plain()
            }
        }
    }

    fn push_and_skip(&mut self, token: Token, length: usize) -> Result<(), Error> {
        self.tokens.push_back((token, self.mark));
        for _ in 0..length {
            self.skip();
        }
        Ok(())
    }

    fn is_document_indicator(&self) -> bool {
        let three = |c: char| (0..3).all(|i| self.at(i) == Some(c));
        self.mark.column == 0 && (three('-') || three('.')) && is_blank_or_end(self.at(3))
    }

    fn scan_to_next_token(&mut self) {
        loop {
            while self.at(0) == Some(' ')
                || ((self.flow_level > 0 || !self.key_allowed) && self.at(0) == Some('\t'))
            {
                self.skip();
            }
            if self.at(0) == Some('#') {
                while self.at(0).is_some() && !is_break(self.at(0)) {
                    self.skip();
                }
            }
            if !is_break(self.at(0)) {
                return;
            }
            self.skip_line();
            if self.flow_level == 0 {
                self.key_allowed = true;
            }
        }
    }

    fn save_key(&mut self) -> Result<(), Error> {
        if self.key_allowed {
            let required = self.flow_level == 0 && self.indent == self.column();
            let token = self.taken + self.tokens.len();
            self.remove_key()?;
            if let Some(key) = self.keys.last_mut() {
                *key = SimpleKey { possible: true, awaited: true, required, token, mark: self.mark };
            }
        }
        Ok(())
    }

    fn remove_key(&mut self) -> Result<(), Error> {
        match self.keys.last_mut() {
            Some(key) if key.possible && key.required => Err(self.problem("could not find expected ':'")),
            Some(key) => {
                key.possible = false;
                Ok(())
            }
            None => Ok(()),
        }
    }

    fn roll_indent(
        &mut self,
        column: isize,
        at: Option<usize>,
        token: Token,
        mark: Mark,
    ) -> Result<(), Error> {
        if self.flow_level > 0 || self.indent >= column {
            return Ok(());
        }
        self.indents.push(self.indent);
        self.indent = column;
        if self.indents.len() > MAX_LEVELS {
            return Err(self.problem(&format!("exceeded max depth of {MAX_DEPTH}")));
        }
        match at {
            Some(at) => self.tokens.insert(at.min(self.tokens.len()), (token, mark)),
            None => self.tokens.push_back((token, mark)),
        }
        Ok(())
    }

    fn unroll_indent(&mut self, column: isize) {
        while self.flow_level == 0 && self.indent > column {
            self.tokens.push_back((Token::BlockEnd, self.mark));
            self.indent = self.indents.pop().unwrap_or(-1);
        }
    }

    fn fetch_stream_end(&mut self) -> Result<(), Error> {
        if self.mark.column != 0 {
            self.mark.column = 0;
            self.mark.line += 1;
        }
        self.unroll_indent(-1);
        self.remove_key()?;
        self.key_allowed = false;
        self.ended = true;
        self.tokens.push_back((Token::StreamEnd, self.mark));
        Ok(())
    }

    fn flow_start(&mut self, token: Token) -> Result<(), Error> {
        self.save_key()?;
        self.keys.push(SimpleKey { token: self.taken + self.tokens.len(), ..NO_KEY });
        self.flow_level += 1;
        if self.flow_level > MAX_LEVELS {
            return Err(self.problem(&format!("exceeded max depth of {MAX_DEPTH}")));
        }
        self.key_allowed = true;
        self.push_and_skip(token, 1)
    }

    fn flow_end(&mut self, token: Token) -> Result<(), Error> {
        self.remove_key()?;
        if self.flow_level > 0 {
            self.flow_level -= 1;
            // Go does not wait to see whether an empty flow is a key.
            let inner = self.keys.pop().unwrap_or(NO_KEY);
            if let Some(key) = self.keys.last_mut().filter(|key| key.token == inner.token) {
                key.awaited = false;
            }
        }
        self.key_allowed = false;
        self.push_and_skip(token, 1)
    }

    fn block_entry(&mut self) -> Result<(), Error> {
        if self.flow_level == 0 {
            if !self.key_allowed {
                return Err(self.problem("block sequence entries are not allowed in this context"));
            }
            self.roll_indent(self.column(), None, Token::BlockSequenceStart, self.mark)?;
        }
        self.remove_key()?;
        self.key_allowed = true;
        self.push_and_skip(Token::BlockEntry, 1)
    }

    fn key(&mut self) -> Result<(), Error> {
        if self.flow_level == 0 {
            if !self.key_allowed {
                return Err(self.problem("mapping keys are not allowed in this context"));
            }
            self.roll_indent(self.column(), None, Token::BlockMappingStart, self.mark)?;
        }
        self.remove_key()?;
        self.key_allowed = self.flow_level == 0;
        self.push_and_skip(Token::Key, 1)
    }

    fn value(&mut self) -> Result<(), Error> {
        let last = self.keys.len().saturating_sub(1);
        if self.key_is_valid(last)? {
            let key = self.keys.get(last).copied().unwrap_or(NO_KEY);
            let at = key.token.checked_sub(self.taken).unwrap_or(self.tokens.len()).min(self.tokens.len());
            self.tokens.insert(at, (Token::Key, key.mark));
            let column = isize::try_from(key.mark.column).unwrap_or(isize::MAX);
            self.roll_indent(column, Some(at), Token::BlockMappingStart, key.mark)?;
            if let Some(key) = self.keys.last_mut() {
                key.possible = false;
            }
            self.key_allowed = false;
        } else {
            if self.flow_level == 0 {
                if !self.key_allowed {
                    return Err(self.problem("mapping values are not allowed in this context"));
                }
                self.roll_indent(self.column(), None, Token::BlockMappingStart, self.mark)?;
            }
            self.key_allowed = self.flow_level == 0;
        }
        self.push_and_skip(Token::Value, 1)
    }

    fn word(&mut self, allowed: impl Fn(char) -> bool) -> String {
        let mut word = String::new();
        while let Some(c) = self.at(0).filter(|&c| allowed(c)) {
            word.push(c);
            self.skip();
        }
        word
    }

    fn scan_anchor(&mut self, alias: bool) -> Result<(), Error> {
        let mark = self.mark;
        self.skip();
        let name = self.word(is_alpha);
        let ends = is_blank_or_end(self.at(0)) || self.at(0).is_some_and(|c| "?:,]}%@`".contains(c));
        if name.is_empty() || !ends {
            return Err(self.problem("did not find expected alphabetic or numeric character"));
        }
        self.tokens.push_back((if alias { Token::Alias(name) } else { Token::Anchor(name) }, mark));
        Ok(())
    }

    fn uri(&mut self) -> Result<String, Error> {
        let uri = self.word(|c| is_alpha(c) || ";/?:@&=+$,.!~*'()[]%".contains(c));
        if uri.is_empty() { Err(self.problem("did not find expected tag URI")) } else { Ok(uri) }
    }

    fn scan_tag(&mut self) -> Result<(), Error> {
        let mark = self.mark;
        let tag = if self.at(1) == Some('<') {
            self.skip();
            self.skip();
            let suffix = self.uri()?;
            if self.at(0) != Some('>') {
                return Err(self.problem("did not find the expected '>'"));
            }
            self.skip();
            Token::Tag(String::new(), suffix)
        } else {
            self.skip();
            let word = self.word(is_alpha);
            if self.at(0) == Some('!') {
                self.skip();
                Token::Tag(format!("!{word}!"), self.uri()?)
            } else if word.is_empty() && is_blank_or_end(self.at(0)) {
                Token::Tag(String::new(), "!".into())
            } else {
                let more = self.word(|c| is_alpha(c) || ";/?:@&=+$,.!~*'()[]%".contains(c));
                Token::Tag("!".into(), word + &more)
            }
        };
        if !is_blank_or_end(self.at(0)) {
            return Err(self.problem("did not find expected whitespace or line break"));
        }
        self.tokens.push_back((tag, mark));
        Ok(())
    }

    fn fetch_directive(&mut self) -> Result<(), Error> {
        self.unroll_indent(-1);
        self.remove_key()?;
        self.key_allowed = false;
        let mark = self.mark;
        self.skip();
        let name = self.word(is_alpha);
        if name.is_empty() {
            return Err(self.problem("could not find expected directive name"));
        }
        if !is_blank_or_end(self.at(0)) {
            return Err(self.problem("found unexpected non-alphabetical character"));
        }
        let blank = |c: char| matches!(c, ' ' | '\t');
        self.word(blank);
        let token = match name.as_str() {
            "YAML" => {
                if self.word(|c| c.is_ascii_digit()).is_empty() {
                    return Err(self.problem("did not find expected version number"));
                }
                if self.at(0) != Some('.') {
                    return Err(self.problem("did not find expected digit or '.' character"));
                }
                self.skip();
                if self.word(|c| c.is_ascii_digit()).is_empty() {
                    return Err(self.problem("did not find expected version number"));
                }
                Token::VersionDirective
            }
            "TAG" => {
                let handle = self.word(|c| !blank(c) && !is_break(Some(c)));
                self.word(blank);
                Token::TagDirective(handle, self.uri()?)
            }
            _ => return Err(self.problem("found unknown directive name")),
        };
        self.end_of_line()?;
        self.tokens.push_back((token, mark));
        Ok(())
    }

    /// Only blanks and a comment may follow on this line.
    fn end_of_line(&mut self) -> Result<(), Error> {
        while is_blank(self.at(0)) {
            self.skip();
        }
        if self.at(0) == Some('#') {
            while self.at(0).is_some() && !is_break(self.at(0)) {
                self.skip();
            }
        }
        if self.at(0).is_some() && !is_break(self.at(0)) {
            return Err(self.problem("did not find expected comment or line break"));
        }
        if is_break(self.at(0)) {
            self.skip_line();
        }
        Ok(())
    }
}
