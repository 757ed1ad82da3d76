//! Tokens to events, with the problems libyaml finds.

use std::collections::HashMap;

use super::scan::{Mark, Scanner, Token};
use crate::decode::{Error, MAX_DEPTH};

/// What a document is made of, in order.
#[derive(Debug, Clone, PartialEq)]
pub(super) enum Event {
    Scalar { text: String, plain: bool, anchor: Option<String>, tag: Option<String> },
    Alias(String),
    SequenceStart { anchor: Option<String> },
    SequenceEnd,
    MappingStart { anchor: Option<String> },
    MappingEnd,
}

/// Receives the events of a document.
pub(super) trait Sink {
    fn event(&mut self, event: Event, mark: Mark) -> Result<(), Error>;
}

pub(super) struct Parser<'s, S> {
    scanner: Scanner,
    tags: HashMap<String, String>,
    sink: &'s mut S,
}

fn problem(mark: Mark, problem: &str) -> Error {
    match mark.line {
        0 => Error::new(format!("yaml: {problem}")),
        line => Error::new(format!("yaml: line {line}: {problem}")),
    }
}

impl<'s, S: Sink> Parser<'s, S> {
    pub(super) fn new(source: &str, sink: &'s mut S) -> Parser<'s, S> {
        Parser { scanner: Scanner::new(source), tags: HashMap::new(), sink }
    }

    fn peek(&mut self) -> Result<(Token, Mark), Error> {
        self.scanner.peek().map(|(token, mark)| (token.clone(), mark))
    }

    fn is(&mut self, tokens: &[Token]) -> Result<bool, Error> {
        self.scanner.peek().map(|(token, _)| tokens.contains(token))
    }

    /// Takes the token if it is this one, and tells where it was.
    fn skip_if(&mut self, token: &Token) -> Result<Option<Mark>, Error> {
        let (next, mark) = self.scanner.peek()?;
        if next != token {
            return Ok(None);
        }
        self.scanner.next()?;
        Ok(Some(mark))
    }

    fn empty(&mut self, mark: Mark) -> Result<(), Error> {
        self.sink.event(Event::Scalar { text: String::new(), plain: true, anchor: None, tag: None }, mark)
    }

    /// The first document of the stream.
    pub(super) fn document(&mut self) -> Result<(), Error> {
        self.tags.insert("!".into(), "!".into());
        self.tags.insert("!!".into(), "tag:yaml.org,2002:".into());
        let mut version = false;
        let mut directives = false;
        let mut explicit = false;
        loop {
            match self.peek()? {
                (Token::StreamEnd, _) if !directives => return Ok(()),
                (Token::VersionDirective, mark) => {
                    if version {
                        return Err(problem(mark, "found duplicate %YAML directive"));
                    }
                    version = true;
                }
                (Token::TagDirective(handle, prefix), _) => {
                    self.tags.insert(handle, prefix);
                }
                (Token::DocumentStart, _) => {
                    self.scanner.next()?;
                    explicit = true;
                    break;
                }
                (_, mark) if directives => {
                    return Err(problem(mark, "did not find expected <document start>"));
                }
                _ => break,
            }
            directives = true;
            self.scanner.next()?;
        }
        let (token, mark) = self.peek()?;
        match token {
            Token::VersionDirective
            | Token::TagDirective(..)
            | Token::DocumentStart
            | Token::DocumentEnd
            | Token::StreamEnd
                if explicit =>
            {
                self.empty(mark)?;
            }
            _ => self.node(true, false, 0)?,
        }
        // Go looks at the token after the document, and so finds what is wrong with it.
        self.scanner.peek().map(|_| ())
    }

    fn node(&mut self, block: bool, indentless: bool, depth: usize) -> Result<(), Error> {
        if depth > MAX_DEPTH {
            return Err(Error::new("yaml: exceeded max depth of 10000"));
        }
        let (token, start) = self.peek()?;
        if let Token::Alias(name) = token {
            self.scanner.next()?;
            return self.sink.event(Event::Alias(name), start);
        }
        let (mut anchor, mut tag) = (None, None);
        loop {
            match self.peek()?.0 {
                Token::Anchor(name) if anchor.is_none() => anchor = Some(name),
                Token::Tag(handle, suffix) if tag.is_none() => {
                    let prefix = match handle.as_str() {
                        "" => String::new(),
                        handle => match self.tags.get(handle) {
                            Some(prefix) => prefix.clone(),
                            None => return Err(problem(start, "found undefined tag handle")),
                        },
                    };
                    tag = Some(prefix + &suffix);
                }
                _ => break,
            }
            self.scanner.next()?;
        }
        let (token, mark) = self.peek()?;
        match token {
            Token::BlockEntry if indentless => {
                self.sink.event(Event::SequenceStart { anchor }, start)?;
                self.indentless_sequence(depth)
            }
            Token::Scalar(text, plain) => {
                self.scanner.next()?;
                self.sink.event(Event::Scalar { text, plain, anchor, tag }, start)
            }
            Token::FlowSequenceStart => {
                self.scanner.next()?;
                self.sink.event(Event::SequenceStart { anchor }, start)?;
                self.flow_sequence(depth)
            }
            Token::FlowMappingStart => {
                self.scanner.next()?;
                self.sink.event(Event::MappingStart { anchor }, start)?;
                self.flow_mapping(depth)
            }
            Token::BlockSequenceStart if block => {
                self.scanner.next()?;
                self.sink.event(Event::SequenceStart { anchor }, start)?;
                self.block_sequence(depth)
            }
            Token::BlockMappingStart if block => {
                self.scanner.next()?;
                self.sink.event(Event::MappingStart { anchor }, start)?;
                self.block_mapping(depth)
            }
            _ if anchor.is_some() || tag.is_some() => {
                self.sink.event(Event::Scalar { text: String::new(), plain: true, anchor, tag }, start)
            }
            _ => Err(problem(mark, "did not find expected node content")),
        }
    }

    /// A node, or nothing where one of these tokens stands.
    fn node_unless(&mut self, tokens: &[Token], mark: Mark, block: bool, depth: usize) -> Result<(), Error> {
        if self.is(tokens)? {
            return self.empty(mark);
        }
        self.node(block, block && !tokens.contains(&Token::BlockEntry), depth + 1)
    }

    fn block_sequence(&mut self, depth: usize) -> Result<(), Error> {
        loop {
            let (token, mark) = self.scanner.next()?;
            match token {
                Token::BlockEntry => {
                    self.node_unless(&[Token::BlockEntry, Token::BlockEnd], mark, true, depth)?;
                }
                Token::BlockEnd => return self.sink.event(Event::SequenceEnd, mark),
                _ => return Err(problem(mark, "did not find expected '-' indicator")),
            }
        }
    }

    fn indentless_sequence(&mut self, depth: usize) -> Result<(), Error> {
        let after = [Token::BlockEntry, Token::Key, Token::Value, Token::BlockEnd];
        while let Some(mark) = self.skip_if(&Token::BlockEntry)? {
            self.node_unless(&after, mark, true, depth)?;
        }
        let mark = self.peek()?.1;
        self.sink.event(Event::SequenceEnd, mark)
    }

    fn block_mapping(&mut self, depth: usize) -> Result<(), Error> {
        let after = [Token::Key, Token::Value, Token::BlockEnd];
        loop {
            let (token, mark) = self.scanner.next()?;
            match token {
                Token::Key => self.node_unless(&after, mark, true, depth)?,
                Token::BlockEnd => return self.sink.event(Event::MappingEnd, mark),
                _ => return Err(problem(mark, "did not find expected key")),
            }
            match self.skip_if(&Token::Value)? {
                Some(mark) => self.node_unless(&after, mark, true, depth)?,
                None => {
                    let mark = self.peek()?.1;
                    self.empty(mark)?;
                }
            }
        }
    }

    fn flow_sequence(&mut self, depth: usize) -> Result<(), Error> {
        let ends = [Token::FlowEntry, Token::FlowSequenceEnd];
        let mut first = true;
        while !self.is(&[Token::FlowSequenceEnd])? {
            if !first && self.skip_if(&Token::FlowEntry)?.is_none() {
                return Err(problem(self.peek()?.1, "did not find expected ',' or ']'"));
            }
            first = false;
            if let Some(mark) = self.skip_if(&Token::Key)? {
                self.sink.event(Event::MappingStart { anchor: None }, mark)?;
                let [entry, end] = &ends;
                self.node_unless(&[Token::Value, entry.clone(), end.clone()], mark, false, depth)?;
                match self.skip_if(&Token::Value)? {
                    Some(mark) => self.node_unless(&ends, mark, false, depth)?,
                    None => self.empty(mark)?,
                }
                self.sink.event(Event::MappingEnd, mark)?;
            } else if !self.is(&[Token::FlowSequenceEnd])? {
                self.node(false, false, depth + 1)?;
            }
        }
        let (_, mark) = self.scanner.next()?;
        self.sink.event(Event::SequenceEnd, mark)
    }

    fn flow_mapping(&mut self, depth: usize) -> Result<(), Error> {
        let ends = [Token::FlowEntry, Token::FlowMappingEnd];
        let mut first = true;
        while !self.is(&[Token::FlowMappingEnd])? {
            if !first && self.skip_if(&Token::FlowEntry)?.is_none() {
                return Err(problem(self.peek()?.1, "did not find expected ',' or '}'"));
            }
            first = false;
            if let Some(mark) = self.skip_if(&Token::Key)? {
                let [entry, end] = &ends;
                self.node_unless(&[Token::Value, entry.clone(), end.clone()], mark, false, depth)?;
                match self.skip_if(&Token::Value)? {
                    Some(mark) => self.node_unless(&ends, mark, false, depth)?,
                    None => {
                        let mark = self.peek()?.1;
                        self.empty(mark)?;
                    }
                }
            } else if !self.is(&[Token::FlowMappingEnd])? {
                self.node(false, false, depth + 1)?;
                let mark = self.peek()?.1;
                self.empty(mark)?;
            }
        }
        let (_, mark) = self.scanner.next()?;
        self.sink.event(Event::MappingEnd, mark)
    }
}
