//! The errors of Go's JSON decoder for bytes that should be an object.

/// The error of Go's `json.Unmarshal` into a map, if any.
pub(crate) fn object_error(bytes: &[u8]) -> Option<String> {
    let mut scanner = Scanner { bytes, at: 0 };
    if let Err(error) = scanner.document() {
        return Some(error);
    }
    let what = match bytes.iter().find(|byte| !byte.is_ascii_whitespace())? {
        b'{' | b'n' => return None,
        b'[' => "array",
        b'"' => "string",
        b't' | b'f' => "bool",
        _ => "number",
    };
    Some(format!("json: cannot unmarshal {what} into Go value of type map[string]interface {{}}"))
}

struct Scanner<'b> {
    bytes: &'b [u8],
    at: usize,
}

const MAX_DEPTH: usize = 10_000;

impl Scanner<'_> {
    fn peek(&self) -> Result<u8, String> {
        self.bytes.get(self.at).copied().ok_or_else(|| "unexpected end of JSON input".into())
    }

    fn space(&mut self) -> Result<u8, String> {
        while matches!(self.bytes.get(self.at), Some(b' ' | b'\t' | b'\r' | b'\n')) {
            self.at += 1;
        }
        self.peek()
    }

    fn wrong<T>(&self, context: &str) -> Result<T, String> {
        let byte = self.peek()?;
        let shown = match byte {
            b'\'' => "\\'".to_owned(),
            b'"' => "\"".to_owned(),
            byte => {
                let quoted = k1s_object::field::quote(&char::from(byte).to_string());
                quoted.trim_matches('"').to_owned()
            }
        };
        Err(format!("invalid character '{shown}' {context}"))
    }

    fn document(&mut self) -> Result<(), String> {
        // The closing bytes of the enclosing lists and objects.
        let mut open: Vec<u8> = Vec::new();
        loop {
            // Start of a value.
            let begin = self.space()?;
            let mut ended = true;
            match begin {
                b'{' | b'[' => {
                    self.at += 1;
                    let close = if begin == b'{' { b'}' } else { b']' };
                    if open.len() >= MAX_DEPTH {
                        return Err("exceeded max depth".into());
                    }
                    if self.space()? == close {
                        self.at += 1;
                    } else {
                        open.push(close);
                        if begin == b'{' {
                            self.key()?;
                        }
                        ended = false;
                    }
                }
                b'"' => self.string()?,
                b't' => self.literal("true")?,
                b'f' => self.literal("false")?,
                b'n' => self.literal("null")?,
                b'-' | b'0'..=b'9' => self.number()?,
                _ => return self.wrong("looking for beginning of value"),
            }
            if !ended {
                continue;
            }
            // End of a value, and perhaps of the enclosing ones.
            loop {
                let Some(&close) = open.last() else {
                    return if self.space().is_ok() { self.wrong("after top-level value") } else { Ok(()) };
                };
                match self.space()? {
                    b',' => {
                        self.at += 1;
                        if close == b'}' {
                            self.space()?;
                            self.key()?;
                        }
                        break;
                    }
                    byte if byte == close => {
                        self.at += 1;
                        open.pop();
                    }
                    _ if close == b'}' => return self.wrong("after object key:value pair"),
                    _ => return self.wrong("after array element"),
                }
            }
        }
    }

    fn key(&mut self) -> Result<(), String> {
        if self.space()? != b'"' {
            return self.wrong("looking for beginning of object key string");
        }
        self.string()?;
        if self.space()? != b':' {
            return self.wrong("after object key");
        }
        self.at += 1;
        Ok(())
    }

    fn literal(&mut self, word: &str) -> Result<(), String> {
        for byte in word.bytes() {
            if self.peek()? != byte {
                return self.wrong(&format!("in literal {word} (expecting '{}')", char::from(byte)));
            }
            self.at += 1;
        }
        Ok(())
    }

    fn string(&mut self) -> Result<(), String> {
        self.at += 1;
        loop {
            match self.peek()? {
                b'"' => {
                    self.at += 1;
                    return Ok(());
                }
                b'\\' => {
                    self.at += 1;
                    match self.peek()? {
                        b'b' | b'f' | b'n' | b'r' | b't' | b'\\' | b'/' | b'"' => {}
                        b'u' => {
                            for _ in 0..4 {
                                self.at += 1;
                                if !self.peek()?.is_ascii_hexdigit() {
                                    return self.wrong("in \\u hexadecimal character escape");
                                }
                            }
                        }
                        _ => return self.wrong("in string escape code"),
                    }
                }
                0..0x20 => return self.wrong("in string literal"),
                _ => {}
            }
            self.at += 1;
        }
    }

    fn digits(&mut self) -> bool {
        let begin = self.at;
        while self.bytes.get(self.at).is_some_and(u8::is_ascii_digit) {
            self.at += 1;
        }
        self.at > begin
    }

    fn number(&mut self) -> Result<(), String> {
        if self.peek()? == b'-' {
            self.at += 1;
        }
        if self.peek()? == b'0' {
            self.at += 1;
        } else if !self.digits() {
            return self.wrong("in numeric literal");
        }
        if self.bytes.get(self.at) == Some(&b'.') {
            self.at += 1;
            if !self.digits() {
                return self.wrong("after decimal point in numeric literal");
            }
        }
        if matches!(self.bytes.get(self.at), Some(b'e' | b'E')) {
            self.at += 1;
            if matches!(self.bytes.get(self.at), Some(b'+' | b'-')) {
                self.at += 1;
            }
            if !self.digits() {
                return self.wrong("in exponent of numeric literal");
            }
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::object_error;

    #[test]
    fn errors_are_those_of_go() {
        for (text, error) in [
            ("", "unexpected end of JSON input"),
            ("{", "unexpected end of JSON input"),
            ("{not json", "invalid character 'n' looking for beginning of object key string"),
            ("notjson", "invalid character 'o' in literal null (expecting 'u')"),
            ("hello", "invalid character 'h' looking for beginning of value"),
            (r#"{"a" 1}"#, "invalid character '1' after object key"),
            (r#"{"a":1 2}"#, "invalid character '2' after object key:value pair"),
            (r#"{"a":[1 2]}"#, "invalid character '2' after array element"),
            ("{} x", "invalid character 'x' after top-level value"),
            ("{'a':1}", "invalid character '\\'' looking for beginning of object key string"),
            ("{\"a\":\"\n\"}", "invalid character '\\n' in string literal"),
            (r#"{"a":1,}"#, "invalid character '}' looking for beginning of object key string"),
            (r#"{"a":-x}"#, "invalid character 'x' in numeric literal"),
            ("[1]", "json: cannot unmarshal array into Go value of type map[string]interface {}"),
            ("\"s\"", "json: cannot unmarshal string into Go value of type map[string]interface {}"),
            ("1.5e3", "json: cannot unmarshal number into Go value of type map[string]interface {}"),
        ] {
            assert_eq!(object_error(text.as_bytes()).as_deref(), Some(error), "{text}");
        }
        for text in ["{}", "null", r#" {"auths":{"x":{"auth":"eA==","n":[true,false,null,-1.5e+3,"A"]}}} "#] {
            assert_eq!(object_error(text.as_bytes()), None, "{text}");
        }
    }
}
