//! Numbers as Go writes them.

/// A float as `%g` writes it: the shortest digits, with an exponent below 1e-4 and from 1e21 on, or beyond six digits
/// before the point.
pub(crate) fn general(value: f64) -> String {
    if value.is_nan() {
        return "NaN".to_owned();
    }
    if value.is_infinite() {
        return if value > 0.0 { "+Inf" } else { "-Inf" }.to_owned();
    }
    if value == 0.0 {
        return if value.is_sign_negative() { "-0" } else { "0" }.to_owned();
    }
    let text = format!("{value:e}");
    let Some((digits, exponent)) = text.split_once('e') else { return text };
    let power = exponent.parse::<i32>().unwrap_or_default();
    // Whole numbers of up to 21 digits are written out only if all their digits are significant.
    if (-4..6).contains(&power) {
        return format!("{value}");
    }
    let sign = if power < 0 { '-' } else { '+' };
    format!("{digits}e{sign}{:02}", power.unsigned_abs())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn floats_are_written_as_go_writes_them() {
        for (value, text) in [
            (123_456_789.25, "1.2345678925e+08"),
            (1e6, "1e+06"),
            (123_456.0, "123456"),
            (1e21, "1e+21"),
            (0.0001, "0.0001"),
            (0.00001, "1e-05"),
            (-1.5, "-1.5"),
            (2.0, "2"),
        ] {
            assert_eq!(general(value), text);
        }
    }
}
