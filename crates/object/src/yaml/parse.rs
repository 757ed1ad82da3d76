//! Parses tokens into events, with the errors of libyaml.

use std::collections::HashMap;

use super::scan::{Mark, Scanner, Token};
use crate::decode::Error;

/// An event of a document.
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

/// A state of the parser.
#[derive(Debug, Clone, Copy)]
enum State {
    Node { block: bool, indentless: bool },
    BlockSequence,
    IndentlessSequence,
    BlockMappingKey,
    BlockMappingValue,
    FlowSequence { first: bool },
    FlowPairValue(Mark),
    FlowPairEnd(Mark),
    FlowMapping { first: bool },
    FlowMappingValue,
    FlowMappingNoValue,
}

/// The tokens before which a node of a mapping or a flow is empty.
const AFTER_BLOCK: [Token; 3] = [Token::Key, Token::Value, Token::BlockEnd];
const AFTER_SEQUENCE_ENTRY: [Token; 2] = [Token::FlowEntry, Token::FlowSequenceEnd];
const AFTER_MAPPING_ENTRY: [Token; 2] = [Token::FlowEntry, Token::FlowMappingEnd];

pub(super) struct Parser<'s, S> {
    scanner: Scanner,
    states: Vec<State>,
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
        Parser { scanner: Scanner::new(source), states: Vec::new(), tags: HashMap::new(), sink }
    }

    fn peek(&mut self) -> Result<(Token, Mark), Error> {
        self.scanner.peek().map(|(token, mark)| (token.clone(), mark))
    }

    /// Consumes the token if it is this one, and returns its position.
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
            _ => self.run(State::Node { block: true, indentless: false })?,
        }
        // Go reads the token after the document, and reports its errors.
        self.scanner.peek().map(|_| ())
    }

    /// Parses a node and its content. Pending states are on an explicit stack, so that nesting does not use the
    /// call stack.
    fn run(&mut self, first: State) -> Result<(), Error> {
        self.states.push(first);
        while let Some(state) = self.states.pop() {
            match state {
                State::Node { block, indentless } => self.node(block, indentless)?,
                State::BlockSequence => self.block_sequence()?,
                State::IndentlessSequence => self.indentless_sequence()?,
                State::BlockMappingKey => self.block_mapping_key()?,
                State::BlockMappingValue => {
                    self.states.push(State::BlockMappingKey);
                    self.value(&AFTER_BLOCK, true, None)?;
                }
                State::FlowSequence { first } => self.flow_sequence(first)?,
                State::FlowPairValue(mark) => self.value(&AFTER_SEQUENCE_ENTRY, false, Some(mark))?,
                State::FlowPairEnd(mark) => self.sink.event(Event::MappingEnd, mark)?,
                State::FlowMapping { first } => self.flow_mapping(first)?,
                State::FlowMappingValue => self.value(&AFTER_MAPPING_ENTRY, false, None)?,
                State::FlowMappingNoValue => {
                    let mark = self.peek()?.1;
                    self.empty(mark)?;
                }
            }
        }
        Ok(())
    }

    fn node(&mut self, block: bool, indentless: bool) -> Result<(), Error> {
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
        let (event, state) = match token {
            Token::BlockEntry if indentless => {
                // The entry itself is parsed with the sequence.
                self.states.push(State::IndentlessSequence);
                return self.sink.event(Event::SequenceStart { anchor }, start);
            }
            Token::Scalar(text, plain) => (Event::Scalar { text, plain, anchor, tag }, None),
            Token::FlowSequenceStart => {
                (Event::SequenceStart { anchor }, Some(State::FlowSequence { first: true }))
            }
            Token::FlowMappingStart => {
                (Event::MappingStart { anchor }, Some(State::FlowMapping { first: true }))
            }
            Token::BlockSequenceStart if block => {
                (Event::SequenceStart { anchor }, Some(State::BlockSequence))
            }
            Token::BlockMappingStart if block => {
                (Event::MappingStart { anchor }, Some(State::BlockMappingKey))
            }
            _ if anchor.is_some() || tag.is_some() => {
                let event = Event::Scalar { text: String::new(), plain: true, anchor, tag };
                return self.sink.event(event, start);
            }
            _ => return Err(problem(mark, "did not find expected node content")),
        };
        self.scanner.next()?;
        self.states.extend(state);
        self.sink.event(event, start)
    }

    /// A node, or an empty one before one of these tokens.
    fn node_unless(&mut self, tokens: &[Token], mark: Mark, block: bool) -> Result<(), Error> {
        if self.scanner.peek().map(|(token, _)| tokens.contains(token))? {
            return self.empty(mark);
        }
        let indentless = block && !tokens.contains(&Token::BlockEntry);
        self.states.push(State::Node { block, indentless });
        Ok(())
    }

    /// The value of a pair, or an empty one.
    fn value(&mut self, tokens: &[Token], block: bool, otherwise: Option<Mark>) -> Result<(), Error> {
        if let Some(mark) = self.skip_if(&Token::Value)? {
            return self.node_unless(tokens, mark, block);
        }
        let mark = match otherwise {
            Some(mark) => mark,
            None => self.peek()?.1,
        };
        self.empty(mark)
    }

    fn block_sequence(&mut self) -> Result<(), Error> {
        let (token, mark) = self.scanner.next()?;
        match token {
            Token::BlockEntry => {
                self.states.push(State::BlockSequence);
                self.node_unless(&[Token::BlockEntry, Token::BlockEnd], mark, true)
            }
            Token::BlockEnd => self.sink.event(Event::SequenceEnd, mark),
            _ => Err(problem(mark, "did not find expected '-' indicator")),
        }
    }

    fn indentless_sequence(&mut self) -> Result<(), Error> {
        if let Some(mark) = self.skip_if(&Token::BlockEntry)? {
            self.states.push(State::IndentlessSequence);
            let after = [Token::BlockEntry, Token::Key, Token::Value, Token::BlockEnd];
            return self.node_unless(&after, mark, true);
        }
        let mark = self.peek()?.1;
        self.sink.event(Event::SequenceEnd, mark)
    }

    fn block_mapping_key(&mut self) -> Result<(), Error> {
        let (token, mark) = self.scanner.next()?;
        match token {
            Token::Key => {
                self.states.push(State::BlockMappingValue);
                self.node_unless(&AFTER_BLOCK, mark, true)
            }
            Token::BlockEnd => self.sink.event(Event::MappingEnd, mark),
            _ => Err(problem(mark, "did not find expected key")),
        }
    }

    /// Whether the flow ends here; if not, a comma must separate its entries.
    fn flow_ends(&mut self, first: bool, end: &Token, wanted: &str) -> Result<bool, Error> {
        if self.scanner.peek()?.0 == end {
            return Ok(true);
        }
        if !first && self.skip_if(&Token::FlowEntry)?.is_none() {
            return Err(problem(self.peek()?.1, wanted));
        }
        Ok(self.scanner.peek()?.0 == end)
    }

    fn flow_sequence(&mut self, first: bool) -> Result<(), Error> {
        if self.flow_ends(first, &Token::FlowSequenceEnd, "did not find expected ',' or ']'")? {
            let (_, mark) = self.scanner.next()?;
            return self.sink.event(Event::SequenceEnd, mark);
        }
        self.states.push(State::FlowSequence { first: false });
        if let Some(mark) = self.skip_if(&Token::Key)? {
            self.sink.event(Event::MappingStart { anchor: None }, mark)?;
            self.states.extend([State::FlowPairEnd(mark), State::FlowPairValue(mark)]);
            return self.node_unless(&[Token::Value, Token::FlowEntry, Token::FlowSequenceEnd], mark, false);
        }
        self.states.push(State::Node { block: false, indentless: false });
        Ok(())
    }

    fn flow_mapping(&mut self, first: bool) -> Result<(), Error> {
        if self.flow_ends(first, &Token::FlowMappingEnd, "did not find expected ',' or '}'")? {
            let (_, mark) = self.scanner.next()?;
            return self.sink.event(Event::MappingEnd, mark);
        }
        self.states.push(State::FlowMapping { first: false });
        if let Some(mark) = self.skip_if(&Token::Key)? {
            self.states.push(State::FlowMappingValue);
            return self.node_unless(&[Token::Value, Token::FlowEntry, Token::FlowMappingEnd], mark, false);
        }
        self.states.extend([State::FlowMappingNoValue, State::Node { block: false, indentless: false }]);
        Ok(())
    }
}
