//! Scans scalars: block, quoted and plain.

use super::{Scanner, Token, is_blank, is_blank_or_end, is_break};
use crate::decode::Error;

impl Scanner {
    pub(super) fn scan_block_scalar(&mut self, literal: bool) -> Result<(), Error> {
        let mark = self.mark;
        self.skip();
        let (mut keep, mut increment) = (0, 0);
        for _ in 0..2 {
            match self.at(0) {
                Some(c @ ('+' | '-')) if keep == 0 => {
                    keep = if c == '+' { 1 } else { -1 };
                    self.skip();
                }
                Some('0') if increment == 0 => {
                    return Err(self.problem("found an indentation indicator equal to 0"));
                }
                Some(c) if c.is_ascii_digit() && increment == 0 => {
                    increment = isize::try_from(c.to_digit(10).unwrap_or(1)).unwrap_or(1);
                    self.skip();
                }
                _ => break,
            }
        }
        self.end_of_line()?;
        let mut indent = if increment > 0 { self.indent.max(0) + increment } else { 0 };
        let (mut text, mut leading_break, mut breaks) = (String::new(), String::new(), String::new());
        self.block_breaks(&mut indent, &mut breaks)?;
        let mut leading_blank = false;
        while self.column() == indent && self.at(0).is_some() {
            let trailing_blank = is_blank(self.at(0));
            if !literal && !leading_blank && !trailing_blank && leading_break.starts_with('\n') {
                if breaks.is_empty() {
                    text.push(' ');
                }
            } else {
                text.push_str(&leading_break);
            }
            leading_break.clear();
            text.push_str(&breaks);
            breaks.clear();
            leading_blank = is_blank(self.at(0));
            while let Some(c) = self.at(0).filter(|&c| !is_break(Some(c))) {
                text.push(c);
                self.skip();
            }
            if self.at(0).is_some() {
                self.read_line(&mut leading_break);
            }
            self.block_breaks(&mut indent, &mut breaks)?;
        }
        if keep != -1 {
            text.push_str(&leading_break);
        }
        if keep == 1 {
            text.push_str(&breaks);
        }
        self.tokens.push_back((Token::Scalar(text, false), mark));
        Ok(())
    }

    fn block_breaks(&mut self, indent: &mut isize, breaks: &mut String) -> Result<(), Error> {
        let mut widest = 0;
        loop {
            while (*indent == 0 || self.column() < *indent) && self.at(0) == Some(' ') {
                self.skip();
            }
            widest = widest.max(self.column());
            if (*indent == 0 || self.column() < *indent) && self.at(0) == Some('\t') {
                return Err(self.problem("found a tab character where an indentation space is expected"));
            }
            if !is_break(self.at(0)) {
                break;
            }
            self.read_line(breaks);
        }
        if *indent == 0 {
            *indent = widest.max(self.indent + 1).max(1);
        }
        Ok(())
    }

    pub(super) fn scan_quoted(&mut self, quote: char) -> Result<(), Error> {
        let mark = self.mark;
        self.skip();
        let mut text = String::new();
        loop {
            if self.is_document_indicator() {
                return Err(self.problem("found unexpected document indicator"));
            }
            if self.at(0).is_none() {
                return Err(self.problem("found unexpected end of stream"));
            }
            let mut folded = false;
            while let Some(c) = self.at(0).filter(|&c| !is_blank_or_end(Some(c))) {
                if c == '\'' && quote == '\'' && self.at(1) == Some('\'') {
                    text.push('\'');
                    self.skip();
                    self.skip();
                } else if c == quote {
                    break;
                } else if c == '\\' && quote == '"' && is_break(self.at(1)) {
                    self.skip();
                    self.skip_line();
                    folded = true;
                    break;
                } else if c == '\\' && quote == '"' {
                    text.push(self.escape()?);
                } else {
                    text.push(c);
                    self.skip();
                }
            }
            if self.at(0) == Some(quote) {
                break;
            }
            let (mut blanks, mut leading, mut trailing) = (String::new(), String::new(), String::new());
            self.blanks(&mut folded, &mut blanks, &mut leading, &mut trailing, None)?;
            join(&mut text, folded, &blanks, &leading, &trailing);
        }
        self.skip();
        self.tokens.push_back((Token::Scalar(text, false), mark));
        Ok(())
    }

    /// The blanks and line breaks between words. With `indent`, a tab may not indent a line less than that.
    fn blanks(
        &mut self,
        folded: &mut bool,
        blanks: &mut String,
        leading: &mut String,
        trailing: &mut String,
        indent: Option<isize>,
    ) -> Result<(), Error> {
        loop {
            match self.at(0) {
                Some(c @ (' ' | '\t')) => {
                    if *folded && c == '\t' && indent.is_some_and(|indent| self.column() < indent) {
                        return Err(self.problem("found a tab character that violates indentation"));
                    }
                    if !*folded {
                        blanks.push(c);
                    }
                    self.skip();
                }
                c if is_break(c) => {
                    if *folded {
                        self.read_line(trailing);
                    } else {
                        blanks.clear();
                        self.read_line(leading);
                        *folded = true;
                    }
                }
                _ => return Ok(()),
            }
        }
    }

    fn escape(&mut self) -> Result<char, Error> {
        let simple = match self.at(1) {
            Some('0') => '\0',
            Some('a') => '\u{7}',
            Some('b') => '\u{8}',
            Some('t' | '\t') => '\t',
            Some('n') => '\n',
            Some('v') => '\u{b}',
            Some('f') => '\u{c}',
            Some('r') => '\r',
            Some('e') => '\u{1b}',
            Some(c @ (' ' | '"' | '\'' | '\\' | '/')) => c,
            Some('N') => '\u{85}',
            Some('_') => '\u{a0}',
            Some('L') => '\u{2028}',
            Some('P') => '\u{2029}',
            Some(kind @ ('x' | 'u' | 'U')) => {
                let digits = match kind {
                    'x' => 2,
                    'u' => 4,
                    _ => 8,
                };
                self.skip();
                self.skip();
                let mut code = 0_u32;
                for i in 0..digits {
                    let Some(digit) = self.at(i).and_then(|c| c.to_digit(16)) else {
                        return Err(self.problem("did not find expected hexadecimal number"));
                    };
                    code = code.wrapping_mul(16).wrapping_add(digit);
                }
                let Some(c) = char::from_u32(code) else {
                    return Err(self.problem("found invalid Unicode character escape code"));
                };
                for _ in 0..digits {
                    self.skip();
                }
                return Ok(c);
            }
            _ => return Err(self.problem("found unknown escape character")),
        };
        self.skip();
        self.skip();
        Ok(simple)
    }

    pub(super) fn scan_plain(&mut self) -> Result<(), Error> {
        let mark = self.mark;
        let in_flow = self.flow_level > 0;
        let indent = self.indent + 1;
        let mut text = String::new();
        let (mut blanks, mut leading, mut trailing) = (String::new(), String::new(), String::new());
        let mut folded = false;
        while !self.is_document_indicator() && self.at(0) != Some('#') {
            while let Some(c) = self.at(0).filter(|&c| !is_blank_or_end(Some(c))) {
                let ends = (c == ':' && is_blank_or_end(self.at(1))) || (in_flow && ",?[]{}".contains(c));
                if ends {
                    break;
                }
                if folded || !blanks.is_empty() {
                    join(&mut text, folded, &blanks, &leading, &trailing);
                    blanks.clear();
                    leading.clear();
                    trailing.clear();
                    folded = false;
                }
                text.push(c);
                self.skip();
            }
            if !is_blank(self.at(0)) && !is_break(self.at(0)) {
                break;
            }
            self.blanks(&mut folded, &mut blanks, &mut leading, &mut trailing, Some(indent))?;
            if !in_flow && self.column() < indent {
                break;
            }
        }
        self.tokens.push_back((Token::Scalar(text, true), mark));
        if folded {
            self.key_allowed = true;
        }
        Ok(())
    }
}

/// Joins two words with the blanks, or the folded line breaks, between them.
fn join(text: &mut String, folded: bool, blanks: &str, leading: &str, trailing: &str) {
    if !folded {
        text.push_str(blanks);
    } else if leading.starts_with('\n') {
        text.push_str(if trailing.is_empty() { " " } else { trailing });
    } else {
        text.push_str(leading);
        text.push_str(trailing);
    }
}
