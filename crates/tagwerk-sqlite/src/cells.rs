//! Reading the cells of a row. What does not fit is a damaged row ([`Fail::Row`]), never a panic.

use rusqlite::Row;
use rusqlite::types::ValueRef;
use tagwerk_core::Timestamp;

use crate::code::Code;
use crate::error::{Fail, Res};

/// The cells of one row.
#[derive(Clone, Copy)]
pub(crate) struct Cells<'a>(pub(crate) &'a Row<'a>);

impl<'a> Cells<'a> {
    fn value(self, at: usize) -> Res<ValueRef<'a>> {
        self.0.get_ref(at).map_err(|error| Fail::Row(error.to_string()))
    }

    fn damaged<T>(self, at: usize, why: &str) -> Res<T> {
        let name = self.0.as_ref().column_name(at).unwrap_or("?");
        Err(Fail::Row(format!("column `{name}` {why}")))
    }

    /// An integer, or nothing.
    pub(crate) fn maybe_int(self, at: usize) -> Res<Option<i64>> {
        match self.value(at)? {
            ValueRef::Integer(n) => Ok(Some(n)),
            ValueRef::Null => Ok(None),
            _ => self.damaged(at, "is not an integer"),
        }
    }

    /// An integer.
    pub(crate) fn int(self, at: usize) -> Res<i64> {
        match self.value(at)? {
            ValueRef::Integer(n) => Ok(n),
            _ => self.damaged(at, "is not an integer"),
        }
    }

    /// An integer that fits in a narrower type.
    pub(crate) fn narrow<T: TryFrom<i64>>(self, at: usize) -> Res<T> {
        let n = self.int(at)?;
        T::try_from(n).or_else(|_| self.damaged(at, &format!("holds {n}, which is out of range")))
    }

    /// An integer that fits in a narrower type, or nothing.
    pub(crate) fn maybe_narrow<T: TryFrom<i64>>(self, at: usize) -> Res<Option<T>> {
        if self.maybe_int(at)?.is_none() { Ok(None) } else { self.narrow(at).map(Some) }
    }

    /// A point in time.
    pub(crate) fn time(self, at: usize) -> Res<Timestamp> {
        self.int(at).map(Timestamp::from_millis)
    }

    /// A point in time, or nothing.
    pub(crate) fn maybe_time(self, at: usize) -> Res<Option<Timestamp>> {
        Ok(self.maybe_int(at)?.map(Timestamp::from_millis))
    }

    /// An enumeration.
    pub(crate) fn code<T: Code>(self, at: usize) -> Res<T> {
        let n = self.int(at)?;
        T::from_code(n).map_or_else(|| self.damaged(at, &format!("holds {n}, which is no {}", T::WHAT)), Ok)
    }

    /// An enumeration, or nothing.
    pub(crate) fn maybe_code<T: Code>(self, at: usize) -> Res<Option<T>> {
        if self.maybe_int(at)?.is_none() { Ok(None) } else { self.code(at).map(Some) }
    }

    /// Text, or nothing.
    pub(crate) fn maybe_text(self, at: usize) -> Res<Option<&'a str>> {
        match self.value(at)? {
            ValueRef::Text(bytes) => match std::str::from_utf8(bytes) {
                Ok(text) => Ok(Some(text)),
                Err(_) => self.damaged(at, "is not UTF-8"),
            },
            ValueRef::Null => Ok(None),
            _ => self.damaged(at, "is not text"),
        }
    }

    /// Text, or nothing.
    pub(crate) fn maybe_string(self, at: usize) -> Res<Option<String>> {
        Ok(self.maybe_text(at)?.map(str::to_owned))
    }

    /// Text.
    pub(crate) fn text(self, at: usize) -> Res<&'a str> {
        self.maybe_text(at)?.map_or_else(|| self.damaged(at, "is missing"), Ok)
    }

    /// Text.
    pub(crate) fn string(self, at: usize) -> Res<String> {
        self.text(at).map(str::to_owned)
    }

    /// A number with a fraction, or nothing.
    pub(crate) fn maybe_real(self, at: usize) -> Res<Option<f64>> {
        match self.value(at)? {
            ValueRef::Real(x) => Ok(Some(x)),
            ValueRef::Null => Ok(None),
            _ => self.damaged(at, "is not a number"),
        }
    }

    /// A hash, or nothing.
    pub(crate) fn maybe_hash(self, at: usize) -> Res<Option<[u8; 16]>> {
        match self.value(at)? {
            ValueRef::Blob(bytes) => match bytes.try_into() {
                Ok(hash) => Ok(Some(hash)),
                Err(_) => self.damaged(at, "does not hold 16 bytes"),
            },
            ValueRef::Null => Ok(None),
            _ => self.damaged(at, "is not a blob"),
        }
    }

    /// A yes or no.
    pub(crate) fn flag(self, at: usize) -> Res<bool> {
        Ok(self.int(at)? != 0)
    }
}
