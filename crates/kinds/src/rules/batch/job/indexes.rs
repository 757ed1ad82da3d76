//! Lists of indexes in the format of Jobs: `1,3-5,7`.

type Interval = (i64, i64);

fn number(text: &str, completions: i64) -> Result<i64, String> {
    let value: i64 =
        text.parse().map_err(|_| format!("cannot convert string to integer for index: {text:?}"))?;
    if value >= completions {
        return Err(format!("too large index: {text:?}"));
    }
    Ok(value)
}

fn interval(text: &str, completions: i64) -> Result<Interval, String> {
    let mut parts = text.split('-');
    let (first, second, more) = (parts.next().unwrap_or_default(), parts.next(), parts.next());
    if more.is_some() {
        return Err(format!(
            "the fragment {text:?} violates the requirement that an index interval can have at most two parts separated by '-'"
        ));
    }
    let low = number(first, completions)?;
    let Some(second) = second else { return Ok((low, low)) };
    let high = number(second, completions)?;
    if low >= high {
        return Err(format!("non-increasing order, previous: {low}, current: {high}"));
    }
    Ok((low, high))
}

/// The number of indexes.
pub(crate) fn count(text: &str, completions: i64) -> Result<i64, String> {
    if text.is_empty() {
        return Ok(0);
    }
    let mut total: i64 = 0;
    let mut last: Option<i64> = None;
    for part in text.split(',') {
        let (low, high) = interval(part, completions)?;
        if let Some(last) = last
            && last >= low
        {
            return Err(format!("non-increasing order, previous: {last}, current: {low}"));
        }
        total = total.saturating_add(high - low + 1);
        last = Some(high);
    }
    Ok(total)
}

/// The first index in both lists; parts that cannot be parsed are skipped.
pub(crate) fn overlap(completed: &str, failed: &str, completions: i64) -> Option<i64> {
    let read = |text: &str| -> Vec<Interval> {
        text.split(',').filter_map(|part| interval(part, completions).ok()).collect()
    };
    let (completed, failed) = (read(completed), read(failed));
    let (mut a, mut b) = (completed.iter().peekable(), failed.iter().peekable());
    while let (Some(done), Some(bad)) = (a.peek(), b.peek()) {
        if done.0 <= bad.1 && bad.0 <= done.1 {
            return Some(done.0.max(bad.0));
        }
        if done.0 <= bad.0 {
            a.next();
        } else {
            b.next();
        }
    }
    None
}

#[cfg(test)]
mod tests {
    use super::{count, overlap};

    #[test]
    fn indexes_are_counted_or_refused() {
        assert_eq!(count("1,3-5,7", 8), Ok(5));
        assert_eq!(count("", 8), Ok(0));
        assert_eq!(count("3,1", 8), Err("non-increasing order, previous: 3, current: 1".into()));
        assert_eq!(count("9", 8), Err("too large index: \"9\"".into()));
        assert_eq!(count("x", 8), Err("cannot convert string to integer for index: \"x\"".into()));
        assert_eq!(overlap("0-3", "2", 8), Some(2));
        assert_eq!(overlap("0,4", "1-3", 8), None);
    }
}
