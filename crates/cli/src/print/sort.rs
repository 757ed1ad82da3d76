//! `--sort-by`: objects in the order of a field.

use std::cmp::Ordering;

use k1s_object::quantity::Quantity;
use serde_json::Value;

use super::columns::relaxed;
use crate::api::Error;

/// Sorts by what a path finds; objects without it come first. `of` finds the object of an entry.
pub(crate) fn sort_by<T>(entries: &mut [T], path: &str, of: impl Fn(&T) -> &Value) -> Result<(), Error> {
    let found = relaxed(path)?;
    let key = |entry: &T| {
        let values = found.find(of(entry)).unwrap_or_default();
        values.into_iter().flatten().next().map(std::borrow::Cow::into_owned)
    };
    let keys: Vec<Option<Value>> = entries.iter().map(key).collect();
    if !entries.is_empty() && keys.iter().all(Option::is_none) {
        let name = path.trim_matches(['{', '}']);
        return Err(Error::failed(format!(
            "couldn't find any field with path \"{{{name}}}\" in the list of objects"
        )));
    }
    let mut order: Vec<usize> = (0..entries.len()).collect();
    order.sort_by(|a, b| compare(keys[*a].as_ref(), keys[*b].as_ref()));
    // Where each entry goes: a permutation, applied in place.
    let mut target = vec![0; order.len()];
    for (place, from) in order.into_iter().enumerate() {
        target[from] = place;
    }
    for index in 0..entries.len() {
        while target[index] != index {
            let to = target[index];
            entries.swap(index, to);
            target.swap(index, to);
        }
    }
    Ok(())
}

fn compare(a: Option<&Value>, b: Option<&Value>) -> Ordering {
    match (a, b) {
        (None, None) => Ordering::Equal,
        (None, Some(_)) => Ordering::Less,
        (Some(_), None) => Ordering::Greater,
        (Some(Value::Number(a)), Some(Value::Number(b))) => {
            a.as_f64().unwrap_or_default().total_cmp(&b.as_f64().unwrap_or_default())
        }
        (Some(Value::Bool(a)), Some(Value::Bool(b))) => a.cmp(b),
        (Some(Value::String(a)), Some(Value::String(b))) => texts(a, b),
        (Some(a), Some(b)) => a.to_string().cmp(&b.to_string()),
    }
}

/// Quantities by size (`9Mi` before `1Gi`), other texts with their numbers as numbers (`a2` before `a10`).
fn texts(a: &str, b: &str) -> Ordering {
    if let (Ok(a), Ok(b)) = (Quantity::parse(a), Quantity::parse(b)) {
        return a.cmp(&b);
    }
    let (mut a, mut b) = (a.chars().peekable(), b.chars().peekable());
    loop {
        match (a.peek().copied(), b.peek().copied()) {
            (None, None) => return Ordering::Equal,
            (None, Some(_)) => return Ordering::Less,
            (Some(_), None) => return Ordering::Greater,
            (Some(x), Some(y)) if x.is_ascii_digit() && y.is_ascii_digit() => {
                let (x, y) = (digits(&mut a), digits(&mut b));
                let numbers = (x.trim_start_matches('0'), y.trim_start_matches('0'));
                let order = numbers.0.len().cmp(&numbers.1.len()).then_with(|| numbers.0.cmp(numbers.1));
                let order = order.then_with(|| x.len().cmp(&y.len()));
                if order.is_ne() {
                    return order;
                }
            }
            (Some(x), Some(y)) if x == y => {
                a.next();
                b.next();
            }
            (Some(x), Some(y)) => return x.cmp(&y),
        }
    }
}

fn digits(text: &mut std::iter::Peekable<std::str::Chars<'_>>) -> String {
    let mut digits = String::new();
    while let Some(digit) = text.next_if(char::is_ascii_digit) {
        digits.push(digit);
    }
    digits
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn numbers_quantities_and_texts_have_their_own_order() {
        let sorted = |values: Vec<Value>| {
            let mut objects: Vec<Value> = values.into_iter().map(|value| json!({"v": value})).collect();
            sort_by(&mut objects, "{.v}", |object| object).unwrap();
            objects.into_iter().map(|object| object["v"].clone()).collect::<Vec<_>>()
        };
        assert_eq!(sorted(vec![json!(10), json!(9), json!(-1)]), [json!(-1), json!(9), json!(10)]);
        assert_eq!(sorted(vec![json!("1Gi"), json!("9Mi")]), ["9Mi", "1Gi"]);
        assert_eq!(sorted(vec![json!("a10"), json!("a2"), json!("a")]), ["a", "a2", "a10"]);
        let mut none = vec![json!({}), json!({})];
        assert!(sort_by(&mut none, ".v", |object| object).is_err());
    }
}
