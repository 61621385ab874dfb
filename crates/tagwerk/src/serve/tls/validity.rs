//! From when until when a certificate is valid: the one thing in it that the TLS library leaves to the clients.
//!
//! Reads no more of X.509 than the way to these two dates: certificate, what is signed of it, version, number, algorithm,
//! issuer, validity (RFC 5280, section 4.1).

use jiff::Timestamp;
use jiff::civil::DateTime;
use jiff::tz::TimeZone;

const SEQUENCE: u8 = 0x30;
const INTEGER: u8 = 0x02;
const UTC_TIME: u8 = 0x17;
const GENERALIZED_TIME: u8 = 0x18;
/// The tag of the version, which the oldest certificates leave out.
const VERSION: u8 = 0xa0;

/// Milliseconds since 1970.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Validity {
    pub(super) from: i64,
    pub(super) until: i64,
}

impl Validity {
    /// Of a certificate in DER. `None`: it is none.
    pub(super) fn of(certificate: &[u8]) -> Option<Self> {
        let mut outer = Der(certificate);
        let mut signed = Der(Der(outer.take(SEQUENCE)?).take(SEQUENCE)?);
        if signed.0.first() == Some(&VERSION) {
            signed.take(VERSION)?;
        }
        signed.take(INTEGER)?;
        signed.take(SEQUENCE)?;
        signed.take(SEQUENCE)?;
        let mut dates = Der(signed.take(SEQUENCE)?);
        Some(Self { from: dates.time()?, until: dates.time()? })
    }
}

/// An instant in words.
pub(super) fn shown(ms: i64) -> String {
    Timestamp::from_millisecond(ms).map_or_else(|_| "a time out of range".to_owned(), |at| at.to_string())
}

/// What is still to be read.
struct Der<'a>(&'a [u8]);

impl<'a> Der<'a> {
    /// The content of the next element, if it has this tag.
    fn take(&mut self, wanted: u8) -> Option<&'a [u8]> {
        let (tag, content) = self.next()?;
        (tag == wanted).then_some(content)
    }

    fn next(&mut self) -> Option<(u8, &'a [u8])> {
        let (tag, rest) = self.0.split_first()?;
        let (first, rest) = rest.split_first()?;
        let (length, rest) = match first {
            0..=0x7f => (usize::from(*first), rest),
            // A length of up to four bytes: a certificate has some thousand.
            0x81..=0x84 => {
                let (bytes, rest) = rest.split_at_checked(usize::from(first & 0x7f))?;
                (bytes.iter().fold(0, |sum, byte| (sum << 8) | usize::from(*byte)), rest)
            }
            _ => return None,
        };
        let (content, rest) = rest.split_at_checked(length)?;
        self.0 = rest;
        Some((*tag, content))
    }

    fn time(&mut self) -> Option<i64> {
        let (tag, content) = self.next()?;
        let text = std::str::from_utf8(content).ok()?;
        let text = match tag {
            // Two digits of the year; from 50 on they are of the last century.
            UTC_TIME if text.get(..2)? < "50" => format!("20{text}"),
            UTC_TIME => format!("19{text}"),
            GENERALIZED_TIME => text.to_owned(),
            _ => return None,
        };
        let at = DateTime::strptime("%Y%m%d%H%M%SZ", text).ok()?;
        Some(TimeZone::UTC.to_timestamp(at).ok()?.as_millisecond())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// An element: tag, length, content.
    fn der(tag: u8, content: &[u8]) -> Vec<u8> {
        let length = content.len();
        let mut bytes = vec![tag];
        if let Ok(short @ 0..=0x7f) = u8::try_from(length) {
            bytes.push(short);
        } else {
            bytes.push(0x82);
            bytes.extend(u16::try_from(length).unwrap().to_be_bytes());
        }
        bytes.extend(content);
        bytes
    }

    fn certificate(version: &[u8], dates: &[u8]) -> Vec<u8> {
        let number = der(INTEGER, &[7]);
        let issuer = der(SEQUENCE, &[0; 300]);
        let signed = [version, &number, &der(SEQUENCE, b""), &issuer, &der(SEQUENCE, dates)].concat();
        der(SEQUENCE, &der(SEQUENCE, &signed))
    }

    fn dates((from_tag, from): (u8, &str), (until_tag, until): (u8, &str)) -> Vec<u8> {
        [der(from_tag, from.as_bytes()), der(until_tag, until.as_bytes())].concat()
    }

    #[test]
    fn both_forms_of_dates_are_read() {
        let dates = dates((UTC_TIME, "260102030405Z"), (GENERALIZED_TIME, "20500102030405Z"));
        let expected = Some(Validity { from: 1_767_323_045_000, until: 2_524_705_445_000 });
        assert_eq!(Validity::of(&certificate(&der(VERSION, &[2, 1, 2]), &dates)), expected);
        assert_eq!(Validity::of(&certificate(b"", &dates)), expected, "version 1 names none");
    }

    #[test]
    fn two_digits_of_a_year_are_of_this_century_up_to_49() {
        let until = |text| {
            let dates = dates((UTC_TIME, "500101000000Z"), (UTC_TIME, text));
            Validity::of(&certificate(b"", &dates))
                .map(|validity| (shown(validity.from), shown(validity.until)))
        };
        let at = |from: &str, until: &str| Some((from.to_owned(), until.to_owned()));
        assert_eq!(until("491231235959Z"), at("1950-01-01T00:00:00Z", "2049-12-31T23:59:59Z"));
        assert_eq!(until("991231235959Z"), at("1950-01-01T00:00:00Z", "1999-12-31T23:59:59Z"));
    }

    #[test]
    fn what_is_no_certificate_has_no_dates() {
        let good = certificate(b"", &dates((UTC_TIME, "260102030405Z"), (UTC_TIME, "270102030405Z")));
        assert!(Validity::of(&good).is_some());
        for length in 0..good.len() {
            assert_eq!(Validity::of(&good[..length]), None, "cut at {length}");
        }
        for wrong in ["2601020304Z", "260102030405", "261302030405Z", "26010203040ßZ", ""] {
            let dates = dates((UTC_TIME, wrong), (UTC_TIME, "270102030405Z"));
            assert_eq!(Validity::of(&certificate(b"", &dates)), None, "{wrong}");
        }
        assert_eq!(Validity::of(&[SEQUENCE, 0x85, 1, 1, 1, 1, 1]), None);
        assert_eq!(Validity::of(&[SEQUENCE, 0x80]), None);
    }
}
