//! Tokens.

/// What a token is.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(crate) enum Token {
    Equals,
    NotEquals,
    In,
    Less,
    LessEquals,
    GreaterEquals,
    Greater,
    And,
    Or,
    LeftBracket,
    RightBracket,
    LeftBrace,
    RightBrace,
    LeftParen,
    RightParen,
    Dot,
    Comma,
    Minus,
    Not,
    Question,
    Colon,
    Plus,
    Star,
    Slash,
    Percent,
    True,
    False,
    Null,
    Float,
    Int,
    Uint,
    String,
    Bytes,
    Identifier,
    /// An identifier in backticks.
    Escaped,
    End,
}

impl Token {
    /// How error messages name the token.
    pub(crate) fn name(self) -> &'static str {
        match self {
            Self::Equals => "'=='",
            Self::NotEquals => "'!='",
            Self::In => "'in'",
            Self::Less => "'<'",
            Self::LessEquals => "'<='",
            Self::GreaterEquals => "'>='",
            Self::Greater => "'>'",
            Self::And => "'&&'",
            Self::Or => "'||'",
            Self::LeftBracket => "'['",
            Self::RightBracket => "']'",
            Self::LeftBrace => "'{'",
            Self::RightBrace => "'}'",
            Self::LeftParen => "'('",
            Self::RightParen => "')'",
            Self::Dot => "'.'",
            Self::Comma => "','",
            Self::Minus => "'-'",
            Self::Not => "'!'",
            Self::Question => "'?'",
            Self::Colon => "':'",
            Self::Plus => "'+'",
            Self::Star => "'*'",
            Self::Slash => "'/'",
            Self::Percent => "'%'",
            Self::True => "'true'",
            Self::False => "'false'",
            Self::Null => "'null'",
            Self::Float => "NUM_FLOAT",
            Self::Int => "NUM_INT",
            Self::Uint => "NUM_UINT",
            Self::String => "STRING",
            Self::Bytes => "BYTES",
            Self::Identifier => "IDENTIFIER",
            Self::Escaped => "ESC_IDENTIFIER",
            Self::End => "<EOF>",
        }
    }
}

/// A token and where it is, in characters.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Spanned {
    pub(crate) token: Token,
    pub(crate) start: usize,
    pub(crate) end: usize,
}

/// Characters that begin no token, or a token that does not end.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Unrecognized {
    pub(crate) start: usize,
    pub(crate) end: usize,
}

/// Longest tokens first.
const SYMBOLS: [(&str, Token); 24] = [
    ("==", Token::Equals),
    ("!=", Token::NotEquals),
    ("<=", Token::LessEquals),
    (">=", Token::GreaterEquals),
    ("&&", Token::And),
    ("||", Token::Or),
    ("<", Token::Less),
    (">", Token::Greater),
    ("[", Token::LeftBracket),
    ("]", Token::RightBracket),
    ("{", Token::LeftBrace),
    ("}", Token::RightBrace),
    ("(", Token::LeftParen),
    (")", Token::RightParen),
    (".", Token::Dot),
    (",", Token::Comma),
    ("-", Token::Minus),
    ("!", Token::Not),
    ("?", Token::Question),
    (":", Token::Colon),
    ("+", Token::Plus),
    ("*", Token::Star),
    ("/", Token::Slash),
    ("%", Token::Percent),
];

/// Splits a source into tokens, the last of which is the end.
pub(crate) fn tokenize(source: &[char]) -> (Vec<Spanned>, Vec<Unrecognized>) {
    let mut tokens = Vec::new();
    let mut errors = Vec::new();
    let lexer = Lexer { source };
    let mut at = 0;
    while at < source.len() {
        if let Some(end) = lexer.hidden(at) {
            at = end;
            continue;
        }
        match lexer.token(at) {
            Ok((token, end)) => {
                tokens.push(Spanned { token, start: at, end });
                at = end;
            }
            // The character at which no token could go on is skipped too.
            Err(failed) => {
                let end = (failed + 1).min(source.len());
                errors.push(Unrecognized { start: at, end });
                at = end;
            }
        }
    }
    tokens.push(Spanned { token: Token::End, start: source.len(), end: source.len() });
    (tokens, errors)
}

struct Lexer<'s> {
    source: &'s [char],
}

/// A token and its end, or the place of the character that does not fit.
type Found = Result<(Token, usize), usize>;

impl Lexer<'_> {
    fn get(&self, at: usize) -> Option<char> {
        self.source.get(at).copied()
    }

    fn skip(&self, mut at: usize, is: impl Fn(char) -> bool) -> usize {
        while self.get(at).is_some_and(&is) {
            at += 1;
        }
        at
    }

    /// White space and comments.
    fn hidden(&self, at: usize) -> Option<usize> {
        let end = self.skip(at, |c| matches!(c, '\t' | ' ' | '\r' | '\n' | '\u{c}'));
        if end > at {
            return Some(end);
        }
        (self.get(at) == Some('/') && self.get(at + 1) == Some('/')).then(|| self.skip(at, |c| c != '\n'))
    }

    fn token(&self, at: usize) -> Found {
        let Some(first) = self.get(at) else { return Err(at) };
        if first.is_ascii_digit() || (first == '.' && self.get(at + 1).is_some_and(|c| c.is_ascii_digit())) {
            return Ok(self.number(at));
        }
        if matches!(first, '"' | '\'') {
            return self.string(at, false).map(|end| (Token::String, end));
        }
        if first.is_ascii_alphabetic() || first == '_' {
            return Ok(self.word(at));
        }
        if first == '`' {
            let end =
                self.skip(at + 1, |c| c.is_ascii_alphanumeric() || matches!(c, '_' | '.' | '-' | '/' | ' '));
            return if end > at + 1 && self.get(end) == Some('`') {
                Ok((Token::Escaped, end + 1))
            } else {
                Err(end)
            };
        }
        for (symbol, token) in SYMBOLS {
            if symbol.chars().enumerate().all(|(offset, c)| self.get(at + offset) == Some(c)) {
                return Ok((token, at + symbol.len()));
            }
        }
        // These begin longer tokens.
        Err(if matches!(first, '=' | '&' | '|') { at + 1 } else { at })
    }

    fn number(&self, at: usize) -> (Token, usize) {
        let digit = |c: char| c.is_ascii_digit();
        if self.get(at) == Some('0') && self.get(at + 1) == Some('x') {
            let end = self.skip(at + 2, |c| c.is_ascii_hexdigit());
            if end > at + 2 {
                return self.unsigned(end);
            }
        }
        let whole = self.skip(at, digit);
        let mut end = whole;
        if self.get(end) == Some('.') && self.get(end + 1).is_some_and(digit) {
            end = self.skip(end + 1, digit);
        }
        if matches!(self.get(end), Some('e' | 'E')) {
            let sign = usize::from(matches!(self.get(end + 1), Some('+' | '-')));
            let exponent = self.skip(end + 1 + sign, digit);
            if exponent > end + 1 + sign {
                return (Token::Float, exponent);
            }
        }
        if end > whole { (Token::Float, end) } else { self.unsigned(end) }
    }

    fn unsigned(&self, end: usize) -> (Token, usize) {
        if matches!(self.get(end), Some('u' | 'U')) { (Token::Uint, end + 1) } else { (Token::Int, end) }
    }

    fn word(&self, at: usize) -> (Token, usize) {
        let bytes = usize::from(matches!(self.get(at), Some('b' | 'B')));
        let raw = usize::from(matches!(self.get(at + bytes), Some('r' | 'R')));
        let quote = at + bytes + raw;
        if quote > at
            && matches!(self.get(quote), Some('"' | '\''))
            && let Ok(end) = self.string(quote, raw > 0)
        {
            return (if bytes > 0 { Token::Bytes } else { Token::String }, end);
        }
        let end = self.skip(at, |c| c.is_ascii_alphanumeric() || c == '_');
        let word: String = self.source.get(at..end).unwrap_or_default().iter().collect();
        let token = match word.as_str() {
            "in" => Token::In,
            "true" => Token::True,
            "false" => Token::False,
            "null" => Token::Null,
            _ => Token::Identifier,
        };
        (token, end)
    }

    /// The end of the string that begins with a quote.
    fn string(&self, at: usize, raw: bool) -> Result<usize, usize> {
        let quote = self.get(at);
        let triple = self.get(at + 1) == quote && self.get(at + 2) == quote;
        if triple && let Ok(end) = self.string_body(at + 3, quote, raw, true) {
            return Ok(end);
        }
        self.string_body(at + 1, quote, raw, false)
    }

    fn string_body(
        &self,
        mut at: usize,
        quote: Option<char>,
        raw: bool,
        triple: bool,
    ) -> Result<usize, usize> {
        loop {
            let next = self.get(at);
            if next.is_none() {
                return Err(at);
            }
            if next == quote {
                if !triple {
                    return Ok(at + 1);
                }
                if self.get(at + 1) == quote && self.get(at + 2) == quote {
                    return Ok(at + 3);
                }
            }
            at = match next {
                Some('\n' | '\r') if !triple => return Err(at),
                Some('\\') if !raw => self.escape(at + 1)?,
                _ => at + 1,
            };
        }
    }

    /// The end of the escape sequence whose backslash is before a place.
    fn escape(&self, at: usize) -> Result<usize, usize> {
        let hex = |count: usize| {
            let end = self.skip(at + 1, |c| c.is_ascii_hexdigit());
            if end > at + count { Ok(at + 1 + count) } else { Err(end) }
        };
        match self.get(at) {
            Some('a' | 'b' | 'f' | 'n' | 'r' | 't' | 'v' | '"' | '\'' | '\\' | '?' | '`') => Ok(at + 1),
            Some('x' | 'X') => hex(2),
            Some('u') => hex(4),
            Some('U') => hex(8),
            Some('0'..='3') => {
                for place in [at + 1, at + 2] {
                    if !matches!(self.get(place), Some('0'..='7')) {
                        return Err(place);
                    }
                }
                Ok(at + 3)
            }
            _ => Err(at),
        }
    }
}
