//! The clock of `k1s-env` as Kubernetes writes it.

use std::cell::RefCell;

use jiff::{Timestamp, fmt::temporal::DateTimePrinter};
use k1s_env::Env;

/// The wall clock.
pub(crate) fn now(env: &Env) -> Timestamp {
    Timestamp::try_from(env.wall()).unwrap_or(Timestamp::UNIX_EPOCH)
}

/// The wall clock as a `metav1.Time`: `2026-01-02T15:04:05Z`.
pub(crate) fn stamp(env: &Env) -> String {
    format(now(env))
}

thread_local! {
    /// The last second that was written, and its text: `2026-01-02T15:04:05`.
    static SECOND: RefCell<(i64, Vec<u8>)> = const { RefCell::new((i64::MIN, Vec::new())) };
}

/// Writes a timestamp as a `metav1.MicroTime`: `2026-01-02T15:04:05.000006Z`. Many are of the same second.
pub(crate) fn write_micros(out: &mut Vec<u8>, at: Timestamp) {
    const PRINTER: DateTimePrinter = DateTimePrinter::new().precision(Some(0));
    let Ok(nanos) = u32::try_from(at.subsec_nanosecond()) else {
        // Before 1970 they count backwards.
        let _ = DateTimePrinter::new().precision(Some(6)).print_timestamp(&at, out);
        return;
    };
    SECOND.with_borrow_mut(|(second, text)| {
        if *second != at.as_second() || text.is_empty() {
            text.clear();
            // Writing to memory does not fail.
            let _ = PRINTER.print_timestamp(&at, &mut *text);
            text.pop();
            *second = at.as_second();
        }
        out.extend_from_slice(text);
    });
    let digit = |place: u32| b'0' + (nanos / 1000 / place % 10) as u8;
    out.extend_from_slice(&[
        b'.',
        digit(100_000),
        digit(10_000),
        digit(1000),
        digit(100),
        digit(10),
        digit(1),
        b'Z',
    ]);
}

/// A timestamp as a `metav1.Time`.
pub(crate) fn format(at: Timestamp) -> String {
    at.strftime("%Y-%m-%dT%H:%M:%SZ").to_string()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn microseconds_are_written_as_jiff_does() {
        let printer = DateTimePrinter::new().precision(Some(6));
        let nanos =
            [0, 1, 999, 1000, 999_999_999, 1_000_000_000, 1_700_000_000_123_456_789, -1, -1_500_000_000];
        for nanos in nanos.into_iter().flat_map(|at: i128| [at, at + 1_000_000_000, at]) {
            let at = Timestamp::from_nanosecond(nanos).unwrap();
            let mut out = Vec::new();
            write_micros(&mut out, at);
            assert_eq!(String::from_utf8(out).unwrap(), printer.timestamp_to_string(&at));
        }
    }
}
