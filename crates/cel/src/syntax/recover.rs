//! How the parser words what it did not expect, and goes on after it: the strategy of ANTLR, with which upstream parses.
//! One token too many is skipped, one that is missing is supplied, and after anything else tokens are skipped until
//! something around the error can use them.

use super::{
    lexer::Token,
    parser::{Context, Parser},
};

/// What an expression can begin with, in the order in which messages list it.
pub(crate) const STARTS: [Token; 15] = [
    Token::LeftBracket,
    Token::LeftBrace,
    Token::LeftParen,
    Token::Dot,
    Token::Minus,
    Token::Not,
    Token::True,
    Token::False,
    Token::Null,
    Token::Float,
    Token::Int,
    Token::Uint,
    Token::String,
    Token::Bytes,
    Token::Identifier,
];

/// What can follow an operand.
const OPERATORS: [Token; 15] = [
    Token::Equals,
    Token::NotEquals,
    Token::In,
    Token::Less,
    Token::LessEquals,
    Token::GreaterEquals,
    Token::Greater,
    Token::And,
    Token::Or,
    Token::Minus,
    Token::Question,
    Token::Plus,
    Token::Star,
    Token::Slash,
    Token::Percent,
];

/// A list of tokens as messages have it: in the order of the grammar.
pub(crate) fn expecting(tokens: &[Token]) -> String {
    if let [one] = tokens {
        return one.name().to_owned();
    }
    let mut sorted = tokens.to_vec();
    sorted.sort_by_key(|token| *token as u8);
    let names: Vec<_> = sorted.into_iter().map(Token::name).collect();
    format!("{{{}}}", names.join(", "))
}

impl Parser<'_> {
    /// The text of a token in a message.
    fn shown(&self, token_at: usize) -> String {
        if self.token_at(token_at) == Token::End {
            "<EOF>".to_owned()
        } else {
            self.text_at(token_at).replace('\n', "\\n")
        }
    }

    /// Takes a token that must be here. `false`: it is not, and the rule ends.
    pub(crate) fn expect(&mut self, wanted: Token) -> bool {
        if self.peek() == wanted {
            self.advance();
            return true;
        }
        let shown = self.shown(self.at);
        if self.token_at(self.at + 1) == wanted && self.peek() != Token::End {
            self.syntax_error(self.at, &format!("extraneous input '{shown}' expecting {}", wanted.name()));
            self.at += 1;
            self.advance();
            return true;
        }
        if self.can_follow(wanted) {
            self.syntax_error(self.at, &format!("missing {} at '{shown}'", wanted.name()));
            self.recovering = true;
            return true;
        }
        self.syntax_error(self.at, &format!("mismatched input '{shown}' expecting {}", wanted.name()));
        self.recovering = true;
        false
    }

    /// Whether the present token could follow a token that is missing.
    fn can_follow(&self, missing: Token) -> bool {
        let next = self.peek();
        match missing {
            Token::Colon => STARTS.contains(&next),
            Token::End | Token::Identifier => false,
            // These end an operand.
            _ => {
                OPERATORS.contains(&next)
                    || matches!(next, Token::Dot | Token::LeftBracket)
                    || self.contexts.last().map_or(next == Token::End, |context| context.closes(next))
            }
        }
    }

    /// One of several tokens must be here. `false`: it is not, and the rule ends.
    pub(crate) fn expect_one_of(&mut self, wanted: &[Token]) -> bool {
        if wanted.contains(&self.peek()) {
            return true;
        }
        let shown = self.shown(self.at);
        let next = self.token_at(self.at + 1);
        if self.peek() != Token::End && wanted.contains(&next) {
            self.syntax_error(
                self.at,
                &format!("extraneous input '{shown}' expecting {}", expecting(wanted)),
            );
            self.at += 1;
            return true;
        }
        self.syntax_error(self.at, &format!("mismatched input '{shown}' expecting {}", expecting(wanted)));
        self.recovering = true;
        false
    }

    /// Skips tokens until one that can follow an operand here.
    pub(crate) fn recover(&mut self, in_member: bool) {
        loop {
            let next = self.peek();
            let fits = next == Token::End
                || OPERATORS.contains(&next)
                || (in_member && matches!(next, Token::Dot | Token::LeftBracket))
                || self.contexts.iter().any(|context| context.closes(next));
            // The same place twice: go on, or this would not end.
            if fits && self.recovered_at != Some(self.at) {
                break;
            }
            if next == Token::End {
                break;
            }
            self.at += 1;
        }
        self.recovered_at = Some(self.at);
    }
}

impl Context {
    /// Whether a token ends or continues what the parser is in.
    fn closes(self, token: Token) -> bool {
        match self {
            Self::Paren => token == Token::RightParen,
            Self::Call => matches!(token, Token::RightParen | Token::Comma),
            Self::Index => token == Token::RightBracket,
            Self::List => matches!(token, Token::RightBracket | Token::Comma),
            Self::Braces => matches!(token, Token::RightBrace | Token::Comma | Token::Colon),
            Self::Ternary => token == Token::Colon,
        }
    }
}
