//! Times on the wire: RFC 3339 with a zone, UTC with milliseconds in answers, 64-bit milliseconds inside.
//!
//! Own code because this crate takes no time library: civil dates of the proleptic Gregorian calendar, years 0..=9999.

use std::fmt;

use serde::{Deserialize, Deserializer, Serialize, Serializer};
use utoipa::openapi::schema::{ObjectBuilder, SchemaFormat, Type};
use utoipa::openapi::{KnownFormat, RefOr, Schema};
use utoipa::{PartialSchema, ToSchema};

/// Milliseconds of 0000-01-01T00:00:00.000Z.
const MIN_MS: i64 = -62_167_219_200_000;
/// Milliseconds of 9999-12-31T23:59:59.999Z.
const MAX_MS: i64 = 253_402_300_799_999;
const DAY_MS: i64 = 86_400_000;

/// A point in time on the wire: milliseconds since the Unix epoch inside, RFC 3339 UTC outside.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Time(i64);

impl Time {
    /// The point in time that lies `ms` milliseconds after the Unix epoch.
    #[must_use]
    pub const fn from_ms(ms: i64) -> Self {
        Self(ms)
    }

    /// Milliseconds since the Unix epoch.
    #[must_use]
    pub const fn ms(self) -> i64 {
        self.0
    }
}

impl fmt::Display for Time {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(Rfc3339::of(self.0).as_str())
    }
}

impl Serialize for Time {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.serialize_str(Rfc3339::of(self.0).as_str())
    }
}

impl<'de> Deserialize<'de> for Time {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        let text = std::borrow::Cow::<str>::deserialize(deserializer)?;
        parse_rfc3339(&text).map(Self).map_err(serde::de::Error::custom)
    }
}

impl PartialSchema for Time {
    fn schema() -> RefOr<Schema> {
        ObjectBuilder::new()
            .schema_type(Type::String)
            .format(Some(SchemaFormat::KnownFormat(KnownFormat::DateTime)))
            .description(Some("RFC 3339 with a zone; in answers always UTC with milliseconds."))
            .examples(["2026-07-01T12:00:00.000Z"])
            .into()
    }
}

impl ToSchema for Time {}

/// Why a text is not a time that we take.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum TimeError {
    /// Date and time without zone: nobody can know which instant is meant.
    #[error("a time needs its zone: write 2026-07-01T12:00:00Z or 2026-07-01T12:00:00+02:00")]
    WithoutZone,
    /// Not RFC 3339, or a date or time of day that does not exist.
    #[error("not a time: write RFC 3339 such as 2026-07-01T12:00:00Z")]
    Malformed,
    /// A year before 0000 or after 9999 in UTC.
    #[error("the year must lie between 0000 and 9999")]
    OutOfRange,
}

/// Milliseconds since the Unix epoch of an RFC 3339 time. Digits beyond milliseconds are cut off; a leap second
/// counts as the first second of the next minute.
pub fn parse_rfc3339(text: &str) -> Result<i64, TimeError> {
    let mut cursor = Cursor(text.as_bytes());
    let date = cursor.date().ok_or(TimeError::Malformed)?;
    let clock_ms = cursor.clock().ok_or(TimeError::Malformed)?;
    if cursor.0.is_empty() {
        return Err(TimeError::WithoutZone);
    }
    let offset_ms = cursor.zone().ok_or(TimeError::Malformed)?;
    if !cursor.0.is_empty() {
        return Err(TimeError::Malformed);
    }
    let ms = days_from_civil(date) * DAY_MS + clock_ms - offset_ms;
    if (MIN_MS..=MAX_MS).contains(&ms) { Ok(ms) } else { Err(TimeError::OutOfRange) }
}

/// RFC 3339 in UTC with milliseconds. Times outside the years 0000..=9999, which no field can hold, are shown as the
/// nearest edge.
#[must_use]
pub fn format_rfc3339(ms: i64) -> String {
    Rfc3339::of(ms).as_str().to_owned()
}

/// A time as text, without an allocation: each job that is shown has at least three.
struct Rfc3339([u8; 24]);

impl Rfc3339 {
    fn of(ms: i64) -> Self {
        let ms = ms.clamp(MIN_MS, MAX_MS);
        let Date { year, month, day } = civil_from_days(ms.div_euclid(DAY_MS));
        let clock = ms.rem_euclid(DAY_MS);
        let mut text = *b"0000-00-00T00:00:00.000Z";
        put_digits(&mut text[0..4], year);
        put_digits(&mut text[5..7], month);
        put_digits(&mut text[8..10], day);
        put_digits(&mut text[11..13], clock / 3_600_000);
        put_digits(&mut text[14..16], clock / 60_000 % 60);
        put_digits(&mut text[17..19], clock / 1000 % 60);
        put_digits(&mut text[20..23], clock % 1000);
        Self(text)
    }

    fn as_str(&self) -> &str {
        // Digits and marks, all ASCII.
        std::str::from_utf8(&self.0).unwrap_or_default()
    }
}

/// The last decimal digits of a number, as many as there is room for.
fn put_digits(room: &mut [u8], number: i64) {
    let mut rest = number.unsigned_abs();
    for digit in room.iter_mut().rev() {
        *digit = b'0' + (rest % 10) as u8;
        rest /= 10;
    }
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Date {
    year: i64,
    month: i64,
    day: i64,
}

/// Days since 1970-01-01. Years are counted from March, so that the leap day is the last of its year, in eras of
/// 400 years, which all have 146,097 days.
const fn days_from_civil(date: Date) -> i64 {
    let year = if date.month <= 2 { date.year - 1 } else { date.year };
    let era = year.div_euclid(400);
    let year_of_era = year.rem_euclid(400);
    let month_from_march = (date.month + 9) % 12;
    let day_of_year = (153 * month_from_march + 2) / 5 + date.day - 1;
    let day_of_era = year_of_era * 365 + year_of_era / 4 - year_of_era / 100 + day_of_year;
    era * 146_097 + day_of_era - 719_468
}

/// The inverse of [`days_from_civil`].
const fn civil_from_days(days: i64) -> Date {
    let days = days + 719_468;
    let era = days.div_euclid(146_097);
    let day_of_era = days.rem_euclid(146_097);
    let year_of_era = (day_of_era - day_of_era / 1460 + day_of_era / 36_524 - day_of_era / 146_096) / 365;
    let day_of_year = day_of_era - (365 * year_of_era + year_of_era / 4 - year_of_era / 100);
    let month_from_march = (5 * day_of_year + 2) / 153;
    let day = day_of_year - (153 * month_from_march + 2) / 5 + 1;
    let month = if month_from_march < 10 { month_from_march + 3 } else { month_from_march - 9 };
    let year = year_of_era + era * 400 + if month <= 2 { 1 } else { 0 };
    Date { year, month, day }
}

const fn days_in_month(year: i64, month: i64) -> i64 {
    match month {
        2 if year % 4 == 0 && (year % 100 != 0 || year % 400 == 0) => 29,
        2 => 28,
        4 | 6 | 9 | 11 => 30,
        _ => 31,
    }
}

/// What is left of the text.
struct Cursor<'a>(&'a [u8]);

impl Cursor<'_> {
    /// Exactly `count` digits.
    fn digits(&mut self, count: usize) -> Option<i64> {
        let (head, tail) = self.0.split_at_checked(count)?;
        let value = head
            .iter()
            .try_fold(0_i64, |sum, byte| byte.is_ascii_digit().then(|| sum * 10 + i64::from(byte - b'0')))?;
        self.0 = tail;
        Some(value)
    }

    /// One of these bytes.
    fn one_of(&mut self, bytes: &[u8]) -> Option<u8> {
        let (first, tail) = self.0.split_first()?;
        bytes.contains(first).then(|| {
            self.0 = tail;
            *first
        })
    }

    fn date(&mut self) -> Option<Date> {
        let year = self.digits(4)?;
        self.one_of(b"-")?;
        let month = self.digits(2)?;
        self.one_of(b"-")?;
        let day = self.digits(2)?;
        let exists = (1..=12).contains(&month) && (1..=days_in_month(year, month)).contains(&day);
        exists.then_some(Date { year, month, day })
    }

    /// Time of day in milliseconds.
    fn clock(&mut self) -> Option<i64> {
        self.one_of(b"Tt ")?;
        let hour = self.digits(2)?;
        self.one_of(b":")?;
        let minute = self.digits(2)?;
        self.one_of(b":")?;
        let second = self.digits(2)?;
        let fraction_ms = if self.one_of(b".").is_some() { self.fraction_ms()? } else { 0 };
        let exists = hour <= 23 && minute <= 59 && second <= 60;
        exists.then_some(hour * 3_600_000 + minute * 60_000 + second * 1000 + fraction_ms)
    }

    fn fraction_ms(&mut self) -> Option<i64> {
        let count = self.0.iter().take_while(|byte| byte.is_ascii_digit()).count();
        let (head, tail) = self.0.split_at_checked(count).filter(|_| count > 0)?;
        self.0 = tail;
        Some([100, 10, 1].iter().zip(head).map(|(weight, digit)| weight * i64::from(digit - b'0')).sum())
    }

    /// Offset from UTC in milliseconds.
    fn zone(&mut self) -> Option<i64> {
        let sign = match self.one_of(b"Zz+-")? {
            b'+' => 1,
            b'-' => -1,
            _ => return Some(0),
        };
        let hour = self.digits(2)?;
        self.one_of(b":")?;
        let minute = self.digits(2)?;
        (hour <= 23 && minute <= 59).then_some(sign * (hour * 3_600_000 + minute * 60_000))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn known_instants() {
        for (text, ms) in [
            ("1970-01-01T00:00:00Z", 0),
            ("1970-01-01T00:00:00.001Z", 1),
            ("1969-12-31T23:59:59.999Z", -1),
            ("2000-02-29T12:00:00Z", 951_825_600_000),
            ("2000-03-01T00:00:00Z", 951_868_800_000),
            ("2026-07-01T12:00:00Z", 1_782_907_200_000),
            ("2038-01-19T03:14:08Z", 2_147_483_648_000),
            ("2400-02-29T00:00:00Z", 13_574_563_200_000),
            ("1600-02-29T00:00:00Z", -11_670_998_400_000),
            ("0001-01-01T00:00:00Z", -62_135_596_800_000),
            ("0000-01-01T00:00:00Z", MIN_MS),
            ("9999-12-31T23:59:59.999Z", MAX_MS),
        ] {
            assert_eq!(parse_rfc3339(text), Ok(ms), "{text}");
            let shown = format_rfc3339(ms);
            assert_eq!(parse_rfc3339(&shown), Ok(ms), "{shown}");
            assert!(shown.starts_with(&text[..19]), "{shown} {text}");
        }
        assert_eq!(format_rfc3339(1_782_907_200_007), "2026-07-01T12:00:00.007Z");
    }

    #[test]
    fn offsets_and_fractions() {
        let noon = 1_782_907_200_000;
        for (text, ms) in [
            ("2026-07-01T14:00:00+02:00", noon),
            ("2026-07-01T08:30:00-03:30", noon),
            ("2026-07-02T02:00:00+14:00", noon),
            ("2026-07-01T12:00:00-00:00", noon),
            ("2026-07-01t12:00:00z", noon),
            ("2026-07-01 12:00:00Z", noon),
            ("2026-07-01T12:00:00.5Z", noon + 500),
            ("2026-07-01T12:00:00.05Z", noon + 50),
            ("2026-07-01T12:00:00.123999999Z", noon + 123),
            ("2026-07-01T11:59:60Z", noon),
        ] {
            assert_eq!(parse_rfc3339(text), Ok(ms), "{text}");
        }
    }

    #[test]
    fn a_missing_zone_is_its_own_error() {
        for text in ["2026-07-01T12:00:00", "2026-07-01T12:00:00.5", "2026-07-01 12:00:00"] {
            assert_eq!(parse_rfc3339(text), Err(TimeError::WithoutZone), "{text}");
        }
    }

    #[test]
    fn what_is_no_time_is_malformed() {
        for text in [
            "",
            "now",
            "1782907200",
            "2026-07-01",
            "2026-07-01T12:00Z",
            "2026-7-1T12:00:00Z",
            "2026-02-29T00:00:00Z",
            "2100-02-29T00:00:00Z",
            "2026-04-31T00:00:00Z",
            "2026-13-01T00:00:00Z",
            "2026-00-01T00:00:00Z",
            "2026-01-00T00:00:00Z",
            "2026-07-01T24:00:00Z",
            "2026-07-01T12:60:00Z",
            "2026-07-01T12:00:61Z",
            "2026-07-01T12:00:00.Z",
            "2026-07-01T12:00:00+0200",
            "2026-07-01T12:00:00+24:00",
            "2026-07-01T12:00:00+02:60",
            "2026-07-01T12:00:00 Europe/Berlin",
            "2026-07-01T12:00:00ZZ",
            "+2026-07-01T12:00:00Z",
            "12026-07-01T12:00:00Z",
            "２026-07-01T12:00:00Z",
        ] {
            assert_eq!(parse_rfc3339(text), Err(TimeError::Malformed), "{text}");
        }
        assert_eq!(parse_rfc3339("9999-12-31T23:59:59-01:00"), Err(TimeError::OutOfRange));
        assert_eq!(parse_rfc3339("0000-01-01T00:00:00+01:00"), Err(TimeError::OutOfRange));
    }

    #[test]
    fn times_beyond_the_range_show_as_its_edge() {
        assert_eq!(format_rfc3339(i64::MAX), "9999-12-31T23:59:59.999Z");
        assert_eq!(format_rfc3339(i64::MIN), "0000-01-01T00:00:00.000Z");
    }

    #[test]
    fn every_day_of_the_range_comes_back_and_follows_the_day_before() {
        let first = days_from_civil(Date { year: 0, month: 1, day: 1 });
        let last = days_from_civil(Date { year: 9999, month: 12, day: 31 });
        let mut expected = Date { year: 0, month: 1, day: 1 };
        for days in first..=last {
            assert_eq!(civil_from_days(days), expected);
            assert_eq!(days_from_civil(expected), days);
            expected.day += 1;
            if expected.day > days_in_month(expected.year, expected.month) {
                expected.day = 1;
                expected.month += 1;
            }
            if expected.month > 12 {
                expected.month = 1;
                expected.year += 1;
            }
        }
        assert_eq!(expected.year, 10_000);
    }
}
