//! A CSV parser that accepts what Go's `encoding/csv` accepts, so that token files of kube-apiserver can be used.

/// A line number and its values.
pub(super) type Record = (usize, Vec<String>);

/// All records of a text. Empty lines and lines that begin with `#` are skipped.
///
/// A quoted value may contain commas, line breaks and doubled quotes. Spaces are significant.
///
/// # Errors
/// A description of the syntax error, with its line number.
pub(super) fn records(text: &str) -> Result<Vec<Record>, String> {
    let mut records = Vec::new();
    let mut lines = (1..).zip(text.split('\n').map(|line| line.strip_suffix('\r').unwrap_or(line)));
    while let Some((number, line)) = lines.next() {
        if line.is_empty() || line.starts_with('#') {
            continue;
        }
        let mut values = Vec::new();
        let mut rest = line;
        loop {
            let Some(quoted) = rest.strip_prefix('"') else {
                let (value, more) =
                    rest.split_once(',').map_or((rest, None), |(value, more)| (value, Some(more)));
                if value.contains('"') {
                    return Err(format!(
                        "line {number}: a quote in the middle of value {}; quote the whole value",
                        values.len() + 1
                    ));
                }
                values.push(value.to_owned());
                match more {
                    Some(more) => rest = more,
                    None => break,
                }
                continue;
            };
            let (value, behind) = in_quotes(number, quoted, &mut lines)?;
            values.push(value);
            match behind.strip_prefix(',') {
                Some(more) => rest = more,
                None if behind.is_empty() => break,
                None => {
                    return Err(format!(
                        "line {number}: expected a comma after the closing quote of value {}",
                        values.len()
                    ));
                }
            }
        }
        records.push((number, values));
    }
    Ok(records)
}

/// The value after whose opening quote `text` begins, and the text after the closing quote.
fn in_quotes<'a>(
    number: usize,
    mut text: &'a str,
    lines: &mut impl Iterator<Item = (usize, &'a str)>,
) -> Result<(String, &'a str), String> {
    let mut value = String::new();
    loop {
        match text.split_once('"') {
            Some((part, behind)) => {
                value.push_str(part);
                match behind.strip_prefix('"') {
                    Some(more) => {
                        value.push('"');
                        text = more;
                    }
                    None => return Ok((value, behind)),
                }
            }
            None => {
                value.push_str(text);
                value.push('\n');
                let Some((_, next)) = lines.next() else {
                    return Err(format!("line {number}: a quote is never closed"));
                };
                text = next;
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn values(text: &str) -> Vec<Vec<String>> {
        records(text).unwrap().into_iter().map(|(_, values)| values).collect()
    }

    #[test]
    fn values_are_parsed_as_go_parses_them() {
        assert_eq!(values("a,b,c\r\n\n# no\nd,,\n"), [vec!["a", "b", "c"], vec!["d", "", ""]]);
        assert_eq!(values("\"a,b\",\"say \"\"hi\"\"\",\"\""), [["a,b", "say \"hi\"", ""]]);
        assert_eq!(values("\"two\nlines\",x\ny, z "), [["two\nlines", "x"], ["y", " z "]]);
        assert_eq!(values("\"ends\""), [["ends"]]);
    }

    #[test]
    fn syntax_errors_of_go_are_reported_with_their_line() {
        for (text, error) in [
            ("a,b\nx,y\"z", "line 2: a quote in the middle of value 2"),
            ("a, \"b\"", "line 1: a quote in the middle of value 2"),
            ("\"a\"b,c", "line 1: expected a comma after the closing quote of value 1"),
            ("a\n\n\"b,c\n", "line 3: a quote is never closed"),
        ] {
            let refused = records(text).unwrap_err();
            assert!(refused.starts_with(error), "{text:?}: {refused}");
        }
    }
}
