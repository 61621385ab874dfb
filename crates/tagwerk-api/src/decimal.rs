//! Exact reading of JSON numbers, without a detour through floating point.

use std::cmp::Ordering;
use std::ops::RangeInclusive;

/// A JSON number times a power of ten.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Scaled {
    /// The value, rounded half away from zero, at the ends of the range if it lies beyond.
    pub(crate) value: i64,
    /// How `value` compares with what was written: equal unless it was rounded or cut.
    pub(crate) rounded: Ordering,
}

impl Scaled {
    /// Whether nothing was rounded or cut.
    pub(crate) fn is_exact(self) -> bool {
        self.rounded == Ordering::Equal
    }

    /// Whether what was written lies in the range, not only what it was rounded to.
    pub(crate) fn lies_in(self, range: &RangeInclusive<i64>) -> bool {
        let above_its_start = self.value > *range.start() || self.rounded != Ordering::Greater;
        let below_its_end = self.value < *range.end() || self.rounded != Ordering::Less;
        range.contains(&self.value) && above_its_start && below_its_end
    }
}

/// More digits than this cannot matter: i64 has 19.
const MAX_DIGITS: usize = 30;

/// `text` times 10^`power`. `None` when `text` is not a number as JSON writes it.
pub(crate) fn scaled(text: &str, power: i64) -> Option<Scaled> {
    let number = Number::read(text)?;
    let shift = number.exponent.saturating_add(power).saturating_sub(len(number.fraction));
    let digits: String = number.whole.chars().chain(number.fraction.chars()).collect();
    let digits = digits.trim_start_matches('0');
    let kept = len(digits).saturating_add(shift);
    let (magnitude, rounded) = if digits.is_empty() {
        (0, Ordering::Equal)
    } else if kept > 19 {
        (i128::from(i64::MAX) + 1, Ordering::Less)
    } else if kept < 0 {
        (0, Ordering::Less)
    } else {
        rounded(digits, usize::try_from(kept).ok()?)
    };
    let (value, rounded) =
        if number.negative { (-magnitude, rounded.reverse()) } else { (magnitude, rounded) };
    Some(match i64::try_from(value) {
        Ok(value) => Scaled { value, rounded },
        Err(_) if number.negative => Scaled { value: i64::MIN, rounded: Ordering::Greater },
        Err(_) => Scaled { value: i64::MAX, rounded: Ordering::Less },
    })
}

/// The number that the first `kept` digits make (zeros are appended if there are fewer), rounded by what follows, and
/// how it compares with all of them.
fn rounded(digits: &str, kept: usize) -> (i128, Ordering) {
    let (head, tail) = digits.split_at(kept.min(digits.len()));
    let zeros = kept - head.len();
    let magnitude = head
        .bytes()
        .chain(std::iter::repeat_n(b'0', zeros))
        .take(MAX_DIGITS)
        .fold(0_i128, |sum, digit| sum * 10 + i128::from(digit - b'0'));
    if tail.as_bytes().first().is_some_and(|digit| *digit >= b'5') {
        return (magnitude + 1, Ordering::Greater);
    }
    let nothing_lost = tail.bytes().all(|digit| digit == b'0');
    (magnitude, if nothing_lost { Ordering::Equal } else { Ordering::Less })
}

fn len(digits: &str) -> i64 {
    i64::try_from(digits.len()).unwrap_or(i64::MAX)
}

/// The parts of a JSON number.
struct Number<'a> {
    negative: bool,
    whole: &'a str,
    fraction: &'a str,
    exponent: i64,
}

impl<'a> Number<'a> {
    fn read(text: &'a str) -> Option<Self> {
        let (negative, text) = text.strip_prefix('-').map_or((false, text), |rest| (true, rest));
        let (mantissa, exponent) = text.split_once(['e', 'E']).map_or((text, None), |(m, e)| (m, Some(e)));
        let (whole, fraction) = mantissa.split_once('.').map_or((mantissa, None), |(w, f)| (w, Some(f)));
        let canonical = whole == "0" || !whole.starts_with('0');
        if !canonical || !is_digits(whole) || !fraction.is_none_or(is_digits) {
            return None;
        }
        let exponent = exponent.map_or(Some(0), read_exponent)?;
        Some(Self { negative, whole, fraction: fraction.unwrap_or(""), exponent })
    }
}

/// The exponent; one that no i64 holds is as good as endless.
fn read_exponent(text: &str) -> Option<i64> {
    let digits = text.strip_prefix(['+', '-']).unwrap_or(text);
    let size = is_digits(digits).then(|| digits.parse::<i64>().unwrap_or(i64::MAX / 4).min(i64::MAX / 4))?;
    Some(if text.starts_with('-') { -size } else { size })
}

fn is_digits(text: &str) -> bool {
    !text.is_empty() && text.bytes().all(|byte| byte.is_ascii_digit())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn exact(value: i64) -> Scaled {
        Scaled { value, rounded: Ordering::Equal }
    }

    /// Less than what was written.
    fn cut(value: i64) -> Scaled {
        Scaled { value, rounded: Ordering::Less }
    }

    /// More than what was written.
    fn raised(value: i64) -> Scaled {
        Scaled { value, rounded: Ordering::Greater }
    }

    fn read(text: &str, power: i64) -> Scaled {
        scaled(text, power).unwrap()
    }

    #[test]
    fn whole_numbers() {
        assert_eq!(read("0", 0), exact(0));
        assert_eq!(read("-0", 0), exact(0));
        assert_eq!(read("17", 0), exact(17));
        assert_eq!(read("-17", 0), exact(-17));
        assert_eq!(read("3.0", 0), exact(3));
        assert_eq!(read("1e2", 0), exact(100));
        assert_eq!(read("1.5e1", 0), exact(15));
        assert_eq!(read("100e-2", 0), exact(1));
        assert_eq!(read("3.5", 0), raised(4));
        assert_eq!(read("-3.5", 0), cut(-4));
        assert_eq!(read("9223372036854775807", 0), exact(i64::MAX));
        assert_eq!(read("-9223372036854775808", 0), exact(i64::MIN));
        assert_eq!(read("9223372036854775808", 0), cut(i64::MAX));
        assert_eq!(read("9007199254740993", 0), exact(9_007_199_254_740_993));
    }

    #[test]
    fn seconds_become_milliseconds() {
        assert_eq!(read("0.1", 3), exact(100));
        assert_eq!(read("2.5", 3), exact(2500));
        assert_eq!(read("1.0005", 3), raised(1001));
        assert_eq!(read("0.0004", 3), cut(0));
        assert_eq!(read("0.00000000000000000000000000000000000004", 3), cut(0));
        assert_eq!(read("1e-400", 3), cut(0));
        assert_eq!(read("60", 3), exact(60_000));
    }

    #[test]
    fn absurd_numbers_end_at_the_edge_of_the_range() {
        assert_eq!(read("1e400", 3), cut(i64::MAX));
        assert_eq!(read("-1e400", 3), raised(i64::MIN));
        assert_eq!(read("1e99999999999999999999999", 0), cut(i64::MAX));
        assert_eq!(read("1e-99999999999999999999999", 0), cut(0));
        assert_eq!(read("0e99999999999999999999999", 0), exact(0));
        assert_eq!(read(&"9".repeat(100_000), 3), cut(i64::MAX));
    }

    #[test]
    fn what_json_does_not_call_a_number_is_none() {
        for text in [
            "", "-", "+1", "01", "1.", ".5", "1e", "1e+", "NaN", "Infinity", "0x10", "1_000", " 1", "1 ", "٣",
        ] {
            assert_eq!(scaled(text, 0), None, "{text:?}");
        }
    }

    #[test]
    fn what_is_rounded_into_a_range_does_not_lie_in_it() {
        let range = 1..=60_000;
        for (text, inside) in [
            ("0.001", true),
            ("60", true),
            ("59.9999", true),
            ("0.0014", true),
            ("60.000", true),
            ("0.0009", false),
            ("0.0005", false),
            ("60.0001", false),
            ("60.00000000000000000000000000000000001", false),
            ("0", false),
            ("1e400", false),
        ] {
            assert_eq!(read(text, 3).lies_in(&range), inside, "{text}");
        }
        let not_negative = 0..=60_000;
        for (text, inside) in
            [("0", true), ("-0", true), ("1e-400", true), ("-1e-400", false), ("-0.0001", false)]
        {
            assert_eq!(read(text, 3).lies_in(&not_negative), inside, "{text}");
        }
        assert!(read("-0.0001", 3).lies_in(&(-1..=0)));
    }
}
